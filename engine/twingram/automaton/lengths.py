"""How many characters may still follow: word lengths of the states of an automaton.

In: rows of runs, acceptance, boundary flags. Out: `WordLengths`, which answers for any state and limit a bit set whose
bit n says that some accepted continuation holds exactly n further characters. A character is counted when a state whose
boundary flag is set is entered.

Method: backwards, for all states at once. From which states do n characters lead to acceptance? From those of which one
character leads to a state from which n - 1 do. When a set of states comes back, the answer repeats from there on.
Cost: one pass over the steps for each n asked for, at most until the first repetition; some 20 us
for a thousand states.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from .runs import Row

__all__ = ["WordLengths"]

_LOCK = Lock()  # held while answers are added
Bits = NDArray[np.uint8]


class WordLengths:
    """The lengths of all states, found as far as they were asked for."""

    __slots__ = ("_answers", "_known", "_levels", "_loop", "_now", "_seen", "_starts", "_targets")

    def __init__(self, rows: Sequence[Row], accept: bytes, boundary: bytes) -> None:
        targets: list[int] = []
        starts: list[int] = []
        now = np.zeros(len(rows), dtype=np.bool_)
        for state in range(len(rows)):
            within, after = _character(rows, boundary, state)
            now[state] = any(accept[each] for each in within)
            starts.append(len(targets))
            targets += after or (0,)  # the dead state leads nowhere
        self._targets, self._starts = np.array(targets), np.array(starts)  # one character on, state after state
        self._now = now  # the states from which `_known` characters lead to acceptance
        self._known = 0  # how many levels there are
        self._levels: Bits = np.zeros((16, (len(rows) + 7) // 8), dtype=np.uint8)  # level n: those for n characters
        self._seen: dict[bytes, int] = {}  # level -> its n
        self._loop = 0  # period once a level came back, else 0
        self._answers: dict[int, tuple[int, int]] = {}  # state -> how many bits are known, and these

    def upto(self, state: int, limit: int) -> int:
        """Bit n set if a continuation of exactly n characters from `state` is accepted, for n <= limit."""
        known, bits = self._answers.get(state, (0, 0))
        if known <= limit:
            with _LOCK:
                while self._known <= limit and not self._loop:
                    self._advance()
                known, bits = self._answers[state] = self._answer(state, limit)
        return bits & ((2 << limit) - 1)

    def _advance(self) -> None:
        level = np.packbits(self._now, bitorder="little")
        first = self._seen.setdefault(level.tobytes(), self._known)
        if first != self._known:
            self._loop = self._known - first
            self._seen.clear()
            return
        if self._known == len(self._levels):
            self._levels = np.concatenate([self._levels, np.zeros_like(self._levels)])
        self._levels[self._known] = level
        self._known += 1
        self._now = np.logical_or.reduceat(self._now[self._targets], self._starts)

    def _answer(self, state: int, limit: int) -> tuple[int, int]:
        column = self._levels[: self._known, state >> 3] >> (state & 7) & 1
        known, bits = self._known, int.from_bytes(np.packbits(column, bitorder="little").tobytes(), "little")
        period = self._loop
        pattern = bits >> (known - period)
        while known <= limit:
            bits |= pattern << known
            known += period
            pattern |= pattern << period
            period *= 2
        return known, bits


def _character(rows: Sequence[Row], boundary: bytes, start: int) -> tuple[list[int], list[int]]:
    """Where less than a character leads from a state, and where one whole character leads."""
    within, after = [start], dict[int, None]()
    for state in within:
        for _, _, target in rows[state]:
            if boundary[target]:
                after[target] = None
            elif target not in within:  # few: characters are short
                within.append(target)
    return within, list(after)
