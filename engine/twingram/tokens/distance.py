"""Distances: within how many tokens an expression can be ended.

In: a vocabulary. Out: for expressions and states, a number of tokens that reaches an end. Fixed text is spelt in as few
tokens as the vocabulary allows, text that is free is left at once; parts are not merged across, so the number is a
bound from above, and following it, it falls by one with every token. Near the limit on open containers, ways that lead
past it do not count. Where a vocabulary lacks tokens, the distance of what it cannot spell is `INFINITE`.
Invariant: for every state there is an allowed token after which the distance is smaller by at least one.
Cost: each expression once; a literal costs a walk in the token trie for each of its bytes. Near the limit, each once
for every number of containers that may still be opened.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from weakref import WeakKeyDictionary

from ..automaton.counted import Counted
from ..automaton.depth import Depth
from ..automaton.dfa import Dfa
from ..automaton.expression import INFINITE, Expr, Seq, Text
from ..automaton.fold import fold
from ..automaton.later import Later
from ..automaton.machine import State
from ..automaton.meet import Meet
from ..automaton.notjson import NotJson
from ..automaton.recursion import Definitions, Reference
from ..caches import charge, watch
from .partial import PartialTexts
from .vocabulary import Vocabulary

__all__ = ["Distances"]

_SPELLINGS_KEPT = 1 << 16
_BYTES = 150  # of an entry
_LIMITED_KEPT = 1 << 14

Placed = tuple[Expr, int]  # an expression and how many containers may be open in it
Solved = Mapping[Hashable, int]  # distances of the definitions of one table


class Distances:
    """The distances of one vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._trie = vocabulary.trie
        self._missing = frozenset(vocabulary.missing_bytes)
        self._partial = PartialTexts(vocabulary) if vocabulary.missing_bytes else None
        self._known: WeakKeyDictionary[Expr, int] = WeakKeyDictionary()
        self._limited: dict[Placed, int] = {}  # those near the limit, replaced when it is full
        self._spelt: dict[bytes, int] = {b"": 0}
        self._settled: WeakKeyDictionary[Definitions, Solved] = WeakKeyDictionary()
        self._levels: WeakKeyDictionary[Definitions, tuple[Solved, ...]] = WeakKeyDictionary()
        watch(self)

    def of_state(self, state: State) -> int:
        """The nearest end of any thread, the symbol of the end itself included."""
        depth = state.machine.depth
        return min(self.of(thread, depth) for thread in state.threads)

    def of(self, root: Expr, depth: Depth) -> int:
        """The distance of an expression."""
        if depth.near(root):
            if len(self._limited) > _LIMITED_KEPT:
                self._limited = {}
            known = self._limited
            return self._within((root, depth.most), known, self._placed_reference)
        return self._free(root)

    def _free(self, root: Expr) -> int:
        """The distance wherever containers may be opened."""
        known = self._known  # a walk goes on with this one, should all be forgotten meanwhile
        if root in known:
            return known[root]

        def value(expr: Expr) -> int:
            if isinstance(expr, Reference):
                return self._definitions(expr.owner).get(expr.key, INFINITE)
            return self._measure(expr, known.__getitem__)

        return fold(root, known, _parts, value)

    def _measure(self, expr: Expr, of: Callable[[Expr], int]) -> int:
        if self._partial is not None:
            if isinstance(expr, NotJson) and expr.complete:
                ways, onward = self._partial.ways(expr.dfa), expr.onward(self._missing)
                return min((1 + ways[state] for state in onward), default=INFINITE)
            if isinstance(expr, Text):
                return self._partial.ways(expr.dfa)[expr.state]
            if isinstance(expr, Counted):
                return self._partial.counted(expr)
            if isinstance(expr, (Later, Meet)):
                return self._free(expr.made())
        return min(expr.measure(of, self.spell), INFINITE)

    def texts(self, dfa: Dfa) -> Sequence[int]:
        """By state of an automaton of text: the distance from there."""
        return dfa.shortest if self._partial is None else self._partial.ways(dfa)

    def worst(self, leaf: Counted) -> int:
        """The greatest distance that a text with a count leads to."""
        return leaf.worst if self._partial is None else INFINITE

    def _definitions(self, owner: Definitions) -> Solved:
        """The distances of all definitions of a table."""
        found = self._settled.get(owner)
        if found is None:  # kept only when it is complete: another thread may ask
            known = self._known
            found = self._settled[owner] = owner.solve(self._measure, lambda expr: known.get(expr, -1))
        return found

    # -- spelling ------------------------------------------------------------------------------------------------------

    def spell(self, data: bytes) -> int:
        """The fewest tokens that spell `data` exactly."""
        found = self._spelt.get(data)
        if found is not None:
            return found
        if len(self._spelt) > _SPELLINGS_KEPT:
            self._spelt = {b"": 0}
        fewest = [0] * (len(data) + 1)
        for start in range(len(data) - 1, -1, -1):
            fewest[start] = self._from(data, start, fewest)
            self._spelt[data[start:]] = fewest[start]
        charge(_BYTES * len(data))
        return fewest[0]

    def memory_usage(self) -> int:
        """Bytes held, about."""
        return _BYTES * (len(self._known) + len(self._spelt) + len(self._limited))

    def clear(self) -> None:
        """Forget all distances."""
        self._known, self._limited, self._spelt = WeakKeyDictionary(), {}, {b"": 0}
        self._settled, self._levels = WeakKeyDictionary(), WeakKeyDictionary()

    def _from(self, data: bytes, start: int, fewest: list[int]) -> int:
        trie, node, best = self._trie, 0, INFINITE
        for end in range(start, len(data)):
            node = trie.child(node, data[end])
            if node < 0:
                break
            if trie.token_start[node] != trie.token_start[node + 1]:
                best = min(best, 1 + fewest[end + 1])
        return best

    # -- near the limit ------------------------------------------------------------------------------------------------

    def _within(self, root: Placed, known: dict[Placed, int], refer: Callable[[Reference, int], int]) -> int:
        """The distance where only so many containers may be open; `refer` gives that of a reference."""

        def value(placed: Placed) -> int:
            expr, room = placed
            if expr.nesting_least > room:
                return INFINITE
            if isinstance(expr, Reference):
                return refer(expr, room)
            if isinstance(expr, Seq):
                return min(INFINITE, known[expr.head, room - expr.tail.nesting_least] + known[expr.tail, room])
            return self._measure(expr, lambda part: known[part, room])

        return fold(root, known, _placed_parts, value)

    def _placed_reference(self, expr: Reference, room: int) -> int:
        """The distance of a definition in which `room` containers may be open."""
        levels, full = self._levels.get(expr.owner, ()), self._definitions(expr.owner)
        while len(levels) <= room and (not levels or levels[-1] != full):
            levels = self._levels[expr.owner] = (*levels, self._next_level(expr.owner, levels))
        return levels[min(room, len(levels) - 1)].get(expr.key, INFINITE)

    def _next_level(self, owner: Definitions, levels: tuple[Solved, ...]) -> Solved:
        """The distances of the definitions where one container more may be open: rounds until nothing gets less."""
        solved: dict[Hashable, int] = {}

        def refer(expr: Reference, room: int) -> int:
            if expr.owner is not owner:
                return self._placed_reference(expr, room)
            return (levels[room] if room < len(levels) else solved).get(expr.key, INFINITE)

        changed = True
        while changed:
            changed = False
            for key, body in owner.bodies.items():
                distance = self._within((body, len(levels)), {}, refer)
                if distance < solved.get(key, INFINITE):
                    solved[key], changed = distance, True
        return solved


def _placed_parts(placed: Placed) -> list[Placed]:
    expr, room = placed
    if expr.nesting_least > room:
        return []
    if isinstance(expr, Seq):
        return [(expr.head, room - expr.tail.nesting_least), (expr.tail, room)]
    return [(part, room) for part in expr.parts()]


def _parts(expr: Expr) -> tuple[Expr, ...]:
    return expr.parts()
