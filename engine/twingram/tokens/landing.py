"""Landing: what may still be generated when only so many tokens are left.

In: expressions, a budget. Out: as for `walk.py`, but only the tokens after which an end can still be reached in time
(`Landing`), or how far from an end the worst token leads (`Farthest`), by which most states are known to need no look.
Invariant: text is judged by what follows it, so the verdict on a token that stays text is on the safe side; the token
that `Distances` promises is always kept, so a landing never empties a mask.
Cost: a walk, near the end of the budget only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

import numpy as np

from ..automaton.counted import Counted
from ..automaton.depth import Depth
from ..automaton.expression import INFINITE, Expr, Leaf, Text
from ..automaton.machine import State
from ..automaton.notjson import NotJson
from .bitmask import pack
from .distance import Distances
from .sweep import Sweep, sweep
from .trie import TokenTrie
from .walk import Walk, bits, first_bytes
from .wide import Row, WideMasks

__all__ = ["Farthest", "Landing"]


class Landing(Walk):
    """A walk that keeps only what can still be ended within `most` tokens."""

    __slots__ = ("distances", "limit", "most")

    limit: Depth

    direct = False

    def __init__(self, wide: WideMasks, ids: list[int], rows: list[Row], distances: Distances, most: int) -> None:
        super().__init__(wide, ids, rows)
        self.distances, self.most = distances, most

    def begin(self, state: State) -> Walk:
        self.limit = state.machine.depth
        return super().begin(state)

    def left(self, expr: Expr) -> int:
        """The distance of an expression."""
        return self.distances.of(expr, self.limit)

    def admits(self, rest: tuple[Expr, ...]) -> bool:
        return any(self.left(expr) <= self.most for expr in rest)

    def wide_text(self, leaf: Leaf) -> TypeGuard[Text | Counted]:
        return isinstance(leaf, (Text, Counted)) and not isinstance(leaf, NotJson)  # how near its end is: not in `dfa`

    def text(self, leaf: Text | Counted, tail: Expr) -> None:
        left = self.most - self.left(tail)
        if isinstance(leaf, Text) and left >= 0:
            ways = self.distances.texts(leaf.dfa)
            if left >= max(ways[1:]):
                self.rows.append(self.wide.row(leaf.dfa, leaf.state))
            else:
                found = self.wide.sweep(leaf.dfa, leaf.state)
                near = np.array([INFINITE, *ways[1:]])
                self.rows.append(pack(found.token_ids[near[found.end_states] <= left], len(self.wide.vocabulary)))
        elif isinstance(leaf, Counted) and left >= 0:
            found = self.wide.sweep(leaf.dfa, leaf.state)
            self.ids.extend(self._counted_within(leaf, found, left))
        for byte in bits(first_bytes(tail)):
            self.leave(self.wide.exits(leaf.dfa, leaf.state, byte, every=isinstance(leaf, Counted)), leaf, tail)

    def _counted_within(self, leaf: Counted, found: Sweep, left: int) -> Iterator[int]:
        verdicts: dict[tuple[int, int], bool] = {}
        pairs = zip(found.token_ids.tolist(), found.end_states.tolist(), found.char_counts.tolist(), strict=True)
        for token, state, count in pairs:
            key = (state, count)
            if key not in verdicts:
                verdicts[key] = leaf.admits(state, count) and self.left(leaf.moved(state, count)) <= left
            if verdicts[key]:
                yield token

    def sweep_below(self, trie: TokenTrie, node: int, leaf: Text | Counted, tail: Expr) -> None:
        found = sweep(trie, leaf.dfa, leaf.state, node)
        left = self.most - self.left(tail)
        if isinstance(leaf, Text):
            near = self.distances.texts(leaf.dfa)
            pairs = zip(found.token_ids.tolist(), found.end_states.tolist(), strict=True)
            self.ids.extend(token for token, state in pairs if near[state] <= left)
        else:
            self.ids.extend(self._counted_within(leaf, found, left))
        for byte in bits(first_bytes(tail)):
            self.leave(found.exits(byte, every=isinstance(leaf, Counted)), leaf, tail)


class Farthest(Landing):
    """A walk that finds the greatest distance a token leads to: `most`."""

    __slots__ = ()

    def admits(self, rest: tuple[Expr, ...]) -> bool:
        self.most = max(self.most, min(self.left(expr) for expr in rest))
        return False

    def wide_text(self, leaf: Leaf) -> TypeGuard[Text | Counted]:
        return isinstance(leaf, (Text, Counted))

    def text(self, leaf: Text | Counted, tail: Expr) -> None:
        self._bound(leaf, tail)
        for byte in bits(first_bytes(tail)):
            self.leave(self.wide.exits(leaf.dfa, leaf.state, byte, every=isinstance(leaf, Counted)), leaf, tail)

    def sweep_below(self, trie: TokenTrie, node: int, leaf: Text | Counted, tail: Expr) -> None:
        self._bound(leaf, tail)
        for byte in bits(first_bytes(tail)):
            self.leave(sweep(trie, leaf.dfa, leaf.state, node).exits(byte, every=isinstance(leaf, Counted)), leaf, tail)

    def _bound(self, leaf: Text | Counted, tail: Expr) -> None:
        """No token that stays text leads further than this."""
        within = max(self.distances.texts(leaf.dfa)[1:]) + isinstance(leaf, NotJson)
        if isinstance(leaf, Counted):
            within = max(within, self.distances.worst(leaf))
        self.most = max(self.most, within + self.left(tail))
