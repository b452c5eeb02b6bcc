"""The token trie: all tokens of a vocabulary, or any small collection of byte strings, as flat arrays.

In: byte strings (slices of one block) with their token ids. Out: `TokenTrie`, nodes numbered breadth first.
Invariants: node 0 is the root; the children of node n are `first_child[n] .. first_child[n + 1] - 1`, sorted by the
byte on their edge, so that one `bytes.find` finds a child; all nodes of one depth are neighbours (`level_start`). A
second order, depth first, lists the tokens so that those below one node are neighbours as well (`subtree_entries`).
Cost: built level by level with numpy, one sort a level, about 0.2 s for 262,144 tokens; no Python object per node, so
the garbage collector sees a dozen arrays.
Source: a trie as arrays (E. Fredkin, "Trie Memory", 1960), breadth first so that numpy takes a level in one step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from .table import TokenTable

__all__ = ["TokenTrie"]

_ARRAYS = ("bytes", "first", "levels", "starts", "ids", "entries", "weight", "subtree")


class TokenTrie:
    """A trie over `entries`: parallel arrays of token id, where its bytes start in `blob`, and how many there are.

    For a vocabulary each id occurs once. A collection of suffixes may hold an id several times (a token that can leave
    a region at two places); `chars` then says how many characters lie before the suffix.
    """

    def __init__(
        self,
        blob: bytes,
        ids: NDArray[np.int32],
        start: NDArray[np.int32],
        length: NDArray[np.int32],
        chars: NDArray[np.int32] | None = None,
        arrays: Mapping[str, NDArray[np.generic]] | None = None,
    ) -> None:
        self.blob, self.entry_ids, self.entry_start, self.entry_length = blob, ids, start, length
        self.entry_chars = chars
        built = _build(blob, start, length, ids) if arrays is None else arrays
        self.np_byte = built["bytes"].view(np.uint8)
        self.np_first = built["first"].astype(np.int32, copy=False)
        self.level_start: list[int] = built["levels"].tolist()
        self.np_token_start = built["starts"].astype(np.int32, copy=False)
        self.np_token_ids = built["ids"].astype(np.int32, copy=False)
        self.np_entry = built["entries"].astype(np.int32, copy=False)
        self.np_weight = built["weight"].astype(np.int32, copy=False)
        self.np_subtree = built["subtree"].astype(np.int32, copy=False)
        self.node_byte = self.np_byte.tobytes()
        self.first_child = self.np_first.data
        self.token_start = self.np_token_start.data
        self.token_ids = self.np_token_ids.data
        self.weight = self.np_weight.data

    @classmethod
    def of(cls, tokens: Iterable[tuple[int, bytes]]) -> TokenTrie:
        """From (id, bytes) pairs; empty strings are left out."""
        pairs = [(token_id, data) for token_id, data in tokens if data]
        table = TokenTable.of([data for _, data in pairs])
        ids = np.array([token_id for token_id, _ in pairs], dtype=np.int32)
        return cls(table.blob, ids, table.offsets[:-1], np.diff(table.offsets))

    @classmethod
    def of_table(cls, table: TokenTable, arrays: Mapping[str, NDArray[np.generic]] | None = None) -> TokenTrie:
        """Of all ordinary tokens that spell something. `arrays`: what `arrays()` gave for the same table."""
        length = np.diff(table.offsets)
        ids = np.flatnonzero((length > 0) & ~table.special).astype(np.int32)
        return cls(table.blob, ids, table.offsets[ids], length[ids], arrays=arrays)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """What is worth keeping on disk."""
        levels = np.array(self.level_start, dtype=np.int32)
        kept = (
            self.np_byte, self.np_first, levels, self.np_token_start, self.np_token_ids,
            self.np_entry, self.np_weight, self.np_subtree,
        )  # fmt: skip
        return dict(zip(_ARRAYS, kept, strict=True))

    def __len__(self) -> int:
        """Number of nodes, with the root."""
        return len(self.node_byte)

    @property
    def depth(self) -> int:
        """Length of the longest token."""
        return len(self.level_start) - 2

    def child(self, node: int, byte: int) -> int:
        """The node after `byte`, or -1."""
        return self.node_byte.find(byte, self.first_child[node], self.first_child[node + 1])

    def walk(self, data: bytes, node: int = 0) -> int:
        """The node after all of `data`, or -1."""
        for byte in data:
            node = self.child(node, byte)
            if node < 0:
                break
        return node

    def tokens(self, node: int) -> list[int]:
        """Ids of the tokens that end at `node`."""
        return self.token_ids[self.token_start[node] : self.token_start[node + 1]].tolist()

    def entries(self, node: int) -> NDArray[np.int32]:
        """Which entries (of `entry_ids`, `entry_chars` ...) end at `node`."""
        return self.np_entry[self.np_token_start[node] : self.np_token_start[node + 1]]

    def subtree_entries(self, node: int) -> NDArray[np.int32]:
        """Entries that end at `node` or below it."""
        start = self.np_subtree[node]
        return self.depth_first[start : start + self.np_weight[node]]

    def subtree_tokens(self, node: int) -> NDArray[np.int32]:
        """Ids of the tokens that end at `node` or below it."""
        return self.entry_ids[self.subtree_entries(node)]

    @cached_property
    def node_of_entry(self) -> NDArray[np.int32]:
        counts = np.diff(self.np_token_start)
        nodes = np.empty(len(self.np_entry), dtype=np.int32)
        nodes[self.np_entry] = np.repeat(np.arange(len(self), dtype=np.int32), counts)
        return nodes

    @cached_property
    def node_of_token(self) -> NDArray[np.int32]:
        """By id, -1 where an id has no entry (the last one where it has several)."""
        size = int(self.entry_ids.max()) + 1 if len(self.entry_ids) else 0
        nodes = np.full(size, -1, dtype=np.int32)
        nodes[self.entry_ids] = self.node_of_entry
        return nodes

    @cached_property
    def child_count(self) -> NDArray[np.intp]:
        return np.diff(self.np_first).astype(np.intp)

    @cached_property
    def token_count(self) -> NDArray[np.intp]:
        """Of each node, the tokens that end there."""
        return np.diff(self.np_token_start).astype(np.intp)

    @cached_property
    def parent(self) -> NDArray[np.intp]:
        """Of each node; of the root 0. (Wide integers: numpy then indexes without a copy.)"""
        parents = np.zeros(len(self), dtype=np.intp)
        parents[1:] = np.repeat(np.arange(len(self), dtype=np.intp), self.child_count)
        return parents

    @cached_property
    def np_depth(self) -> NDArray[np.int32]:
        return np.repeat(np.arange(self.depth + 1, dtype=np.int32), np.diff(self.level_start))

    @cached_property
    def np_blob(self) -> NDArray[np.uint8]:
        return np.frombuffer(self.blob, dtype=np.uint8)

    @cached_property
    def depth_first(self) -> NDArray[np.int32]:
        """Entries in depth-first order: `np_subtree` points into it."""
        own = np.diff(self.np_token_start)
        before = np.repeat(self.np_subtree - self.np_token_start[:-1], own)
        order = np.empty(len(self.np_entry), dtype=np.int32)
        order[np.arange(len(order)) + before] = self.np_entry
        return order

    def memory_usage(self) -> int:
        """Bytes of the arrays, without the block of token bytes that the vocabulary owns."""
        named = list(vars(self).items())  # another thread may add to them
        held = [value for name, value in named if isinstance(value, np.ndarray) and name != "np_blob"]
        return sum(array.nbytes for array in held) + len(self.node_byte)


def _build(
    blob: bytes, start: NDArray[np.int32], length: NDArray[np.int32], ids: NDArray[np.int32]
) -> dict[str, NDArray[np.generic]]:
    """All arrays of the trie. A level's nodes are the distinct pairs (parent, next byte), sorted."""
    data = np.frombuffer(blob, dtype=np.uint8)
    at = np.zeros(len(ids), dtype=np.int64)  # the node that each entry has reached, numbered within its level
    end_node = np.zeros(len(ids), dtype=np.int64)  # where it ends, numbered over all levels
    alive = np.argsort(length, kind="stable")  # entries still growing, shortest first
    bytes_of, children, levels = [np.zeros(1, dtype=np.uint8)], [], [0, 1]
    for level in range(int(length.max(initial=0))):
        alive = alive[np.searchsorted(length[alive], level, side="right") :]
        keys = (at[alive] << 8) | data[start[alive] + level]
        nodes, where = np.unique(keys, return_inverse=True)
        at[alive] = where
        done = alive[: np.searchsorted(length[alive], level + 1, side="right")]
        end_node[done] = at[done] + levels[-1]
        bytes_of.append((nodes & 0xFF).astype(np.uint8))
        children.append(np.bincount(nodes >> 8, minlength=levels[-1] - levels[-2]))
        levels.append(levels[-1] + len(nodes))
    children.append(np.zeros(levels[-1] - levels[-2], dtype=np.int64))
    first = np.ones(levels[-1] + 1, dtype=np.int64)
    first[1:] += np.cumsum(np.concatenate(children))
    order = np.lexsort((ids, end_node))
    own = np.bincount(end_node, minlength=levels[-1])
    starts = np.concatenate(([0], np.cumsum(own)))
    weight, subtree = _subtrees(first, own, levels)
    arrays = (np.concatenate(bytes_of), first, levels, starts, ids[order], order, weight, subtree)
    narrow = [np.asarray(array, dtype=np.uint8 if array is arrays[0] else np.int32) for array in arrays]
    return dict(zip(_ARRAYS, narrow, strict=True))


def _subtrees(
    first: NDArray[np.int64], own: NDArray[np.int64], levels: list[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Tokens at or below each node, and where they start in depth-first order, a node's own before its children's."""
    weight, subtree = own.copy(), np.zeros_like(own)
    for low, high in reversed(list(pairwise(levels[1:]))):  # nodes low .. high - 1, the deepest level first
        total = np.concatenate(([0], np.cumsum(weight[low:high])))
        parents = _level_above(levels, low)
        weight[parents] += total[first[parents.start + 1 : parents.stop + 1] - low] - total[first[parents] - low]
    for low, high in pairwise(levels[1:]):
        before = np.concatenate(([0], np.cumsum(weight[low:high])[:-1]))
        parents = _level_above(levels, low)
        begin = subtree[parents] + own[parents]
        firsts = np.append(before, 0)[np.minimum(first[parents] - low, high - low)]
        counts = first[parents.start + 1 : parents.stop + 1] - first[parents]
        subtree[low:high] = before + np.repeat(begin - firsts, counts)
    return weight, subtree


def _level_above(levels: list[int], low: int) -> slice:
    index = levels.index(low)
    return slice(levels[index - 1], low)
