"""Vocabularies that lack tokens for some bytes: what of a text they can spell to its end.

In: a vocabulary, byte automata. Out: for the states of an automaton, within how many tokens its text can be ended with
the tokens there are; `INFINITE` where it cannot, or where that is not known.

A way by bytes that are tokens of their own is looked for first; where there is none, whole tokens are tried, for as
many states as it pays. Text with a count is judged by single bytes alone. So the answer is on the safe side: what is
said to end can be ended, and from there on one token brings the end nearer.
Invariant: a state other than one that ends has a token that leads to a state with less, unless it is `INFINITE`.
Cost: a search for each automaton; for a state that bytes do not lead on from, a sweep.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from weakref import WeakKeyDictionary

import numpy as np

from ..automaton.counted import Counted
from ..automaton.dfa import Dfa
from ..automaton.expression import INFINITE
from ..automaton.interning import intern
from ..automaton.runs import Draft, Row
from .sweep import sweep
from .vocabulary import Vocabulary

__all__ = ["PartialTexts"]

_SWEPT = 256  # states of one automaton that are tried with whole tokens


class PartialTexts:
    """The texts of one vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._trie = vocabulary.trie
        missing = set(vocabulary.missing_bytes)
        self._spelt = [byte not in missing for byte in range(256)]
        self._ways: WeakKeyDictionary[Dfa, Sequence[int]] = WeakKeyDictionary()
        self._bytes: WeakKeyDictionary[Dfa, Dfa] = WeakKeyDictionary()

    def ways(self, dfa: Dfa) -> Sequence[int]:
        """By state: within how many tokens a text that stands there can be ended."""
        found = self._ways.get(dfa)
        if found is None:
            found = self._ways[dfa] = self._find_ways(dfa)
        return found

    def counted(self, leaf: Counted) -> int:
        """The same for a text with a count."""
        twin: Counted = intern(Counted, self._by_bytes(leaf.dfa), leaf.state, leaf.low, leaf.high)
        return twin.shortest if twin.admits(leaf.state, 0) else INFINITE

    def _find_ways(self, dfa: Dfa) -> Sequence[int]:
        ways = [length if length < len(dfa) else INFINITE for length in self._by_bytes(dfa).shortest]
        stuck = [state for state in range(1, len(dfa)) if ways[state] == INFINITE][:_SWEPT]
        ends = {state: np.unique(sweep(self._trie, dfa, state).end_states).tolist() for state in stuck}
        changed = True
        while changed:
            changed = False
            for state, after in ends.items():
                best = 1 + min((ways[end] for end in after), default=INFINITE)
                if best < ways[state]:
                    ways[state], changed = best, True
        return ways

    def _by_bytes(self, dfa: Dfa) -> Dfa:
        """The automaton without the bytes that are no tokens; its states are numbered as they were."""
        found = self._bytes.get(dfa)
        if found is None:
            rows = [tuple(self._kept(row)) for row in dfa.runs]
            draft = Draft(rows, dfa.accept, dfa.boundary, dfa.start)
            found = self._bytes[dfa] = Dfa(draft, dfa.key + bytes(self._spelt))
        return found

    def _kept(self, row: Row) -> Iterator[tuple[int, int, int]]:
        for low, high, target in row:
            begin = low
            for byte in range(low, high + 2):
                if byte > high or not self._spelt[byte]:
                    if begin < byte:
                        yield begin, byte - 1, target
                    begin = byte + 1
