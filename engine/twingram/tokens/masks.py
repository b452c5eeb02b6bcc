"""The mask of a state: the tokens that the automaton can read from it.

In: a `State`, a `TokenBinding`, the vocabulary's `WideMasks`. Out: a `Mask`.

Two ways share the work. Where few bytes may follow, the trie of the vocabulary and the derivatives are walked together
and only branches that match are visited. Where text may follow, the row of the text's automaton is taken as it is; the
tokens that leave the text half-way come as a small trie of their rests, which is walked with what follows the text.
Invariant: bit set if and only if `TokenBinding.transition` gives a transition (a property test).
Cost: per state 15 to 40 us where little may follow; a row of text by reference otherwise. A mask is kept at its state.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ..automaton.machine import State
from ..caches import charge, watch
from .binding import TokenBinding
from .bitmask import unpack, words_for
from .distance import Distances
from .landing import Farthest, Landing
from .walk import Walk, bits
from .wide import Row, WideMasks

__all__ = ["Mask", "Masks"]

_MOST_SHARED = 4096  # masks kept for sharing
_MASK_BYTES = 400
_FEW = 100


class Mask:
    """A set of allowed tokens: a row shared with others, or a few ids. Immutable."""

    __slots__ = ("_places", "_row", "_shared", "_values", "ids", "place", "size")

    def __init__(
        self, size: int, *, ids: NDArray[np.int32] | None = None, row: Row | None = None, shared: bool = False
    ) -> None:
        """`shared`: somebody else keeps the row, and counts it."""
        self.size, self.ids, self._row, self._shared = size, ids, row, shared
        self._places: NDArray[np.intp] | None = None  # the words that are not 0, made when first filled
        self._values: NDArray[np.int32] | None = None
        self.place = (-1, -1)  # (epoch, id) in a table of masks, see mask_table.py; as one value, for it is not locked

    def fill(self, row: Row) -> None:
        """Write the whole row."""
        if self.ids is not None:
            if self._places is None or self._values is None:
                self._places, self._values = _spread(self.ids)
            row.fill(0)  # with `put`, 1.2 us for 32 KB; by slices and fancy indices 1.6
            row.put(self._places, self._values)
        elif self._row is not None:
            if len(row) == len(self._row):
                row[:] = self._row
                return
            row[: len(self._row)] = self._row
            row[len(self._row) :] = 0

    @property
    def row(self) -> Row:
        """The packed row, read-only; made when first asked for."""
        if self._row is None:
            row = np.empty(words_for(self.size), dtype=np.int32)
            self.fill(row)
            row.flags.writeable = False
            self._row = row
            charge(row.nbytes)
        return self._row

    def allowed(self) -> NDArray[np.int32]:
        """The ids, rising."""
        return self.ids if self.ids is not None else unpack(self.row, self.size)

    def __contains__(self, token: int) -> bool:
        return 0 <= token < self.size and bool(int(self.row[token >> 5]) >> (token & 31) & 1)

    def memory_usage(self) -> int:
        held = 0 if self._row is None or self._shared else self._row.nbytes
        arrays = (self.ids, self._places, self._values)
        return _MASK_BYTES + held + sum(array.nbytes for array in arrays if array is not None)


class Masks:
    """Makes the masks of one binding."""

    def __init__(self, binding: TokenBinding, wide: WideMasks) -> None:
        self.binding, self.wide = binding, wide
        self.size = len(binding.vocabulary)
        # (identities of rows, extra ids) -> mask and those rows: equal masks are one object
        self._shared: dict[tuple[tuple[int, ...], tuple[int, ...]], tuple[Mask, tuple[Row, ...]]] = {}
        watch(self)

    def of(self, state: State) -> Mask:
        """The mask of a state, kept there."""
        found = state.mask
        if found is None:
            found = state.mask = self._make(state)
        assert isinstance(found, Mask)
        return found

    def within(self, state: State, distances: Distances, most: int) -> Mask:
        """The tokens after which the turn can still be ended within `most` more tokens. Text is judged by what follows
        it: a token that stays text is kept if the text can be left from where it ends."""
        ids: list[int] = []
        rows: list[Row] = []
        for symbol in bits(state.first >> 256 << 256):
            step = state.step(symbol)
            if step is not None and distances.of_state(step.state) <= most:
                ids += self.binding.ids(symbol)
        Landing(self.wide, ids, rows, distances, most).begin(state)
        return self._share(ids, rows)

    def farthest(self, state: State, distances: Distances) -> int:
        """Within how many tokens the turn can be ended after the worst token that `state` allows, itself included."""
        worst = 0
        for symbol in bits(state.first >> 256 << 256):
            step = state.step(symbol)
            if step is not None:
                worst = max(worst, distances.of_state(step.state))
        walk = Farthest(self.wide, [], [], distances, worst)
        walk.begin(state)
        return walk.most

    def only(self, ids: Iterable[int]) -> Mask:
        """A mask of just these tokens."""
        return self._share(list(ids), [])

    def memory_usage(self) -> int:
        """Bytes of the masks kept for sharing."""
        return sum(mask.memory_usage() for mask, _ in list(self._shared.values()))

    def clear(self) -> None:
        """Forget them; a mask that is in use stays as it is."""
        self._shared = {}

    def _make(self, state: State) -> Mask:
        ids: list[int] = []
        rows: list[Row] = []
        for symbol in bits(state.first >> 256 << 256):
            if state.step(symbol) is not None:  # a marker may open one container too many
                ids += self.binding.ids(symbol)
        Walk(self.wide, ids, rows).begin(state)
        return self._share(ids, rows)

    def _share(self, ids: list[int], rows: list[Row]) -> Mask:
        few = sorted(set(ids))  # for the few ids that most states have, this beats numpy's ways
        unique = {id(row): row for row in rows}
        key = (tuple(sorted(unique)), tuple(few))
        found = self._shared.get(key)
        if found is not None:
            return found[0]
        made = self._made(few, list(unique.values()))
        if len(self._shared) >= _MOST_SHARED:
            self._shared.clear()
        # The rows are kept with the mask: their identities are the key.
        self._shared[key] = (made, tuple(unique.values()))
        charge(made.memory_usage())
        return made

    def _made(self, ids: list[int], rows: list[Row]) -> Mask:
        if not rows:
            return Mask(self.size, ids=np.array(ids, dtype=np.int32))
        row, shared = self.wide.joined(rows, ids)
        return Mask(self.size, row=row, shared=shared)


def _spread(ids: NDArray[np.int32]) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
    """The words of a row in which the bits of `ids` are, and these words."""
    if len(ids) <= _FEW:  # 3 us for 8 ids, where numpy takes 25
        found: dict[int, int] = {}
        for token in ids.tolist():
            found[token >> 5] = found.get(token >> 5, 0) | 1 << (token & 31)
        few = np.array([*found.values()], dtype=np.uint32)
        return np.array([*found], dtype=np.intp), few.view(np.int32)
    words = ids >> 5
    places = np.unique(words)
    values = np.zeros(len(places), dtype=np.uint32)
    np.bitwise_or.at(values, np.searchsorted(places, words), np.uint32(1) << (ids & 31).astype(np.uint32))
    return places.astype(np.intp), values.view(np.int32)
