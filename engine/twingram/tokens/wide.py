"""Masks of text: what a byte automaton allows of a whole vocabulary, kept for each of its states.

In: a `Vocabulary` and states of byte automata. Out: for a state, the packed row of the tokens that stay text, and for a
byte, the tokens that leave the text there (`exits`), as a small trie of their rests.

A state that is not the start of its automaton, such as the middle of a marker, mostly differs from the start in a
handful of tokens: its row is made from the start's row and the difference. Rows of starts are kept on disk.
Invariant: a table belongs to one vocabulary; it only grows, up to `MOST` entries, then it starts again.
Cost: a start 3 to 8 ms once for a vocabulary (not at all with a warm disk cache), another state about 0.1 ms.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary, proxy

import numpy as np
from numpy.typing import NDArray

from ..automaton.dfa import Dfa
from ..caches import charge, watch
from . import cache
from .bitmask import pack, unpack
from .sweep import Sweep, difference, sweep
from .trie import TokenTrie
from .vocabulary import WORTH_KEEPING, Vocabulary

__all__ = ["WideMasks"]

Row = NDArray[np.int32]

_TABLES: WeakKeyDictionary[Vocabulary, WideMasks] = WeakKeyDictionary()
MOST = 4096  # states kept: 32 KB each for 262,144 tokens, so 128 MB at the very most
_LENGTHS_TRIED = 64
_NARROW = 32  # bytes that may come first: with so few, only a small part of the trie is swept
_FEW_DYING = 2000  # so many tokens are followed one by one to find where they leave


class WideMasks:
    """The rows and exits of one vocabulary."""

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> WideMasks:
        """The one table of a vocabulary."""
        found = _TABLES.get(vocabulary)
        if found is None:
            found = _TABLES.setdefault(vocabulary, cls(vocabulary))
        return found

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = proxy(vocabulary)  # the table hangs on the vocabulary, not the other way round
        self._rows: dict[tuple[Dfa, int], Row] = {}
        self._own: set[int] = set()  # the identities of these rows
        # (identities of rows, extra ids) -> their union, and those rows: equal masks of all requests are one row
        self._joined: dict[tuple[tuple[int, ...], tuple[int, ...]], tuple[Row, list[Row]]] = {}
        self._sweeps: dict[tuple[Dfa, int], Sweep] = {}
        self._exits: dict[tuple[Dfa, int, int, bool], TokenTrie] = {}
        self._any_length: dict[Dfa, bool] = {}
        self._containing: dict[int, NDArray[np.bool_]] = {}
        watch(self)

    def row(self, dfa: Dfa, state: int) -> Row:
        """The tokens that stay text of `dfa` from `state` on, as a packed row."""
        key = (dfa, state)
        found = self._rows.get(key)
        if found is None:
            if len(self._rows) >= MOST:
                self._rows, self._own, self._joined = {}, set(), {}
            found = self._rows.setdefault(key, self._start_row(dfa) if state == dfa.start else self._row(dfa, state))
            self._own.add(id(found))
            charge(found.nbytes)
        return found

    def joined(self, rows: list[Row], ids: list[int]) -> tuple[Row, bool]:
        """All tokens of these rows (one at least) and these ids, as one row, and whether it is kept here."""
        if len(rows) == 1 and not ids:
            return rows[0], id(rows[0]) in self._own
        key = (tuple(sorted(map(id, rows))), tuple(ids))
        found = self._joined.get(key)
        if found is not None:
            return found[0], True
        row = rows[0].copy()
        for other in rows[1:]:
            row |= other
        some = np.array(ids, dtype=np.int32)
        np.bitwise_or.at(row.view(np.uint32), some >> 5, np.uint32(1) << (some & 31).astype(np.uint32))
        row.flags.writeable = False
        if not self._own.issuperset(key[0]):
            return row, False
        if len(self._joined) >= MOST:
            self._joined = {}
        self._joined[key] = (row, rows)
        charge(row.nbytes)
        return row, True

    def _start_row(self, dfa: Dfa) -> Row:
        size = len(self.vocabulary)
        if size < WORTH_KEEPING or dfa.first[dfa.start].bit_count() <= _NARROW:  # a sweep is as quick as a file
            row = pack(self.sweep(dfa, dfa.start).token_ids, size)
            row.flags.writeable = False
            return row
        key = self.vocabulary.fingerprint + dfa.key + size.to_bytes(4, "little")
        kept = cache.load("row", key)
        if kept is not None and len(kept["row"]) == (size + 31) // 32:
            return np.asarray(kept["row"], dtype=np.int32)
        row = pack(self.sweep(dfa, dfa.start).token_ids, size)
        row.flags.writeable = False
        cache.store("row", key, {"row": row})
        return row

    def _row(self, dfa: Dfa, state: int) -> Row:
        if dfa.first[state].bit_count() <= _NARROW:
            return pack(self.sweep(dfa, state).token_ids, len(self.vocabulary))
        gained, lost = difference(self.vocabulary.trie, dfa, state, dfa.start)
        row = self.row(dfa, dfa.start).copy()
        flip(row, gained)
        flip(row, lost)
        row.flags.writeable = False
        return row

    def sweep(self, dfa: Dfa, state: int) -> Sweep:
        """The full run, with end states and counts; the last few are kept."""
        key = (dfa, state)
        found = self._sweeps.get(key)
        if found is None:
            if len(self._sweeps) >= 64:
                self._sweeps.clear()
            found = self._sweeps[key] = sweep(self.vocabulary.trie, dfa, state)
            charge(2 * found.memory_usage())  # as much again will be asked of it
        return found

    def exits(self, dfa: Dfa, state: int, byte: int, *, every: bool = False) -> TokenTrie:
        """The rests, from `byte` on, of the tokens that are not text of `dfa` but leave it in an accepting state.

        `every`: also of tokens that could stay, for text that may be over before the automaton says so.
        """
        key = (dfa, state, byte, every)
        found = self._exits.get(key)
        if found is None:
            if len(self._exits) >= MOST:
                self._exits.clear()
            found = self._exits.setdefault(key, self._find_exits(dfa, state, byte, every))
            charge(found.memory_usage())
        return found

    def _find_exits(self, dfa: Dfa, state: int, byte: int, every: bool) -> TokenTrie:
        alive = np.zeros(len(self.vocabulary), dtype=np.bool_)
        if not every:
            alive[unpack(self.row(dfa, state), len(self.vocabulary))] = True
        dying = np.flatnonzero(self._having(byte) & ~alive)
        if len(dying) > _FEW_DYING:
            return self.sweep(dfa, state).exits(byte, every=every)
        found: list[tuple[int, bytes]] = []
        for token in dying.tolist():
            data, at = self.vocabulary.token_bytes(token), state
            for i, value in enumerate(data):
                if value == byte and dfa.accept[at]:
                    found.append((token, data[i:]))
                at = dfa.rows[at][value]
                if not at:
                    break
        return TokenTrie.of(found)

    def _having(self, byte: int) -> NDArray[np.bool_]:
        """By id: whether an ordinary token has this byte in it."""
        found = self._containing.get(byte)
        if found is None:
            trie = self.vocabulary.trie
            found = np.zeros(len(self.vocabulary), dtype=np.bool_)
            doors = np.flatnonzero(trie.np_byte == byte)
            for door in doors[doors > 0].tolist():
                found[trie.subtree_tokens(door)] = True
            self._containing[byte] = found
            charge(found.nbytes)
        return found

    def any_length(self, dfa: Dfa) -> bool:
        """Whether every text of `dfa` can go on to any greater length: then only the upper bound matters."""
        found = self._any_length.get(dfa)
        if found is None:
            every = (1 << _LENGTHS_TRIED + 1) - 1
            found = self._any_length[dfa] = all(
                dfa.lengths(state, _LENGTHS_TRIED) | (not dfa.accept[state]) == every for state in range(1, len(dfa))
            )
        return found

    def clear(self) -> None:
        """Forget them all."""
        self._rows, self._own, self._joined = {}, set(), {}
        self._sweeps, self._exits, self._containing, self._any_length = {}, {}, {}, {}

    def memory_usage(self) -> int:
        """Bytes of rows, sweeps and exits held."""
        rows = sum(row.nbytes for row in [*self._rows.values(), *self._containing.values()])
        rows += sum(row.nbytes for row, _ in list(self._joined.values()))
        return rows + sum(s.memory_usage() for s in list(self._sweeps.values())) + sum(
            trie.memory_usage() for trie in list(self._exits.values())
        )


def flip(row: Row, ids: NDArray[np.integer]) -> None:
    """Toggle the bits of distinct `ids`."""
    np.bitwise_xor.at(row.view(np.uint32), ids >> 5, np.uint32(1) << (ids & 31).astype(np.uint32))
