"""Sweeps: a byte automaton run over the whole token trie at once, with numpy, one level of the trie a step.

In: a trie, an automaton (`ByteAutomaton`, in practice `automaton.dfa.Dfa`), a state and a node to start from. Out:
which tokens the automaton reads to their end without dying, in which state each ends, and (`exits`) the rests of tokens
that stop being text of the automaton half-way.
Invariant: a node is live if the automaton, started at `state`, survives the bytes from the start node to it; live nodes
are closed under parents, so a level only needs the one above it.
Cost: a level in which many nodes live is computed for all its nodes (two gathers a node: about 3 ms for all 400,000
nodes of a vocabulary of 200,000 tokens); else only the live nodes' children are (about 20 us a level). `difference`
follows only what two states do not share: well under 0.1 ms for a state inside a marker against the text around it, and
never much more than two sweeps.
Source: this is the product construction of trie and automaton, breadth first; the narrow counterpart is `walk`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .trie import TokenTrie

__all__ = ["ByteAutomaton", "Sweep", "difference", "sweep"]

_WIDE = 8  # a level is computed whole if more than one node in _WIDE of the level above lives: measured break-even
_SMALL = 4096  # nodes of a trie in which whole sweeps are never worth while
_FEW = 24  # pairs that plain Python follows faster than numpy does

Nodes = NDArray[np.intp]
States = NDArray[Any]  # of the table's own width


class ByteAutomaton(Protocol):
    """What a sweep needs of an automaton. State 0 is dead, and its row leads to 0 only."""

    @property
    def rows(self) -> Sequence[Sequence[int]]: ...
    @property
    def table(self) -> NDArray[Any]: ...
    @property
    def accept(self) -> bytes: ...
    @property
    def boundary(self) -> bytes: ...


class Sweep:
    """The live part of the trie under one start, node by node; what callers ask for is computed when first asked."""

    def __init__(
        self, trie: TokenTrie, automaton: ByteAutomaton, state: int, node: int, nodes: Nodes, states: States
    ) -> None:
        self.trie, self.automaton, self.state, self.node = trie, automaton, state, node
        self.nodes, self.states = nodes, states  # live nodes below the start, rising, and the state at each
        self._exits: dict[tuple[int, bool], TokenTrie] = {}

    @cached_property
    def entries(self) -> NDArray[np.intp]:
        """Entries of the trie that end at live nodes, rising."""
        trie = self.trie
        if len(self.nodes) * _WIDE > len(trie):
            live = np.zeros(len(trie), dtype=np.bool_)
            live[self.nodes] = True
            return np.flatnonzero(live[trie.node_of_entry])
        places = _expand(trie.np_token_start[self.nodes], trie.token_count[self.nodes])
        return np.sort(trie.np_entry[places]).astype(np.intp)

    @cached_property
    def token_ids(self) -> NDArray[np.int32]:
        """Ids of the tokens that stay alive (rising, for a vocabulary's trie)."""
        return self.trie.entry_ids[self.entries]

    @cached_property
    def end_states(self) -> States:
        """The state after each token of `token_ids`."""
        return self.states[self._places]

    @cached_property
    def char_counts(self) -> NDArray[np.int32]:
        """How many characters each token of `token_ids` completes: boundary states entered on its way."""
        return self.node_chars[self._places]

    @cached_property
    def _places(self) -> NDArray[np.int32]:
        """Of each entry, where its node stands in `nodes`."""
        place = np.empty(len(self.trie), dtype=np.int32)  # pages that are not touched cost nothing
        place[self.nodes] = np.arange(len(self.nodes), dtype=np.int32)
        return place[self.trie.node_of_entry[self.entries]]

    @cached_property
    def node_chars(self) -> NDArray[np.int32]:
        """Characters completed between the start and each of `nodes`."""
        boundary = np.frombuffer(self.automaton.boundary, dtype=np.uint8)
        chars = boundary[self.states].astype(np.int32)
        parents = self.trie.parent[self.nodes]
        read = np.empty(len(self.trie), dtype=np.int32)
        read[self.node] = 0
        edges = np.searchsorted(self.nodes, self.trie.level_start).tolist()
        for low, high in pairwise(edges):
            chars[low:high] += read[parents[low:high]]
            read[self.nodes[low:high]] = chars[low:high]
        return chars

    @cached_property
    def dead_edges(self) -> tuple[Nodes, States]:
        """Nodes at which the run died: (the child that was not reached, the state before its byte)."""
        nodes = np.append(self.nodes, self.node)
        states = np.append(self.states, self.states.dtype.type(self.state))
        if not self.state:
            return nodes[:0], states[:0]
        counts = self.trie.child_count[nodes]
        children = _expand(self.trie.np_first[nodes], counts)
        before = np.repeat(states, counts)
        dead = self.automaton.table[before, self.trie.np_byte[children]] == 0
        return children[dead], before[dead]

    def exits(self, byte: int, *, every: bool = False) -> TokenTrie:
        """The rests, from `byte` on, of tokens that die here but pass an accepting state just before that byte.

        `every`: of tokens that live on as well.

        An entry of the result is one way out: its id, its rest, and in `entry_chars` the characters read before it. A
        token with several ways out has several entries.
        """
        found = self._exits.get((byte, every))
        if found is None:
            found = self._exits[byte, every] = self._build_exits(byte, every)
        return found

    def _build_exits(self, byte: int, every: bool) -> TokenTrie:
        trie = self.trie
        doors = np.flatnonzero(trie.np_byte == byte)  # nodes entered by that byte; the root's own byte is a stand-in
        doors = doors[doors > 0]
        states, chars = self._at(trie.parent[doors])
        accepting = np.frombuffer(self.automaton.accept, dtype=np.uint8)[states] != 0
        doors, chars = doors[accepting], chars[accepting]
        counts = trie.np_weight[doors]
        entries = trie.depth_first[_expand(trie.np_subtree[doors], counts)]
        read, chars = np.repeat(trie.np_depth[doors] - 1, counts), np.repeat(chars, counts)
        alive = np.zeros(len(trie.entry_ids), dtype=np.bool_)
        if not every:
            alive[self.entries] = True
        kept = ~alive[entries]
        entries, read, chars = entries[kept], read[kept], chars[kept]
        if trie.entry_chars is not None:
            chars = chars + trie.entry_chars[entries]
        start, length = trie.entry_start[entries] + read, trie.entry_length[entries] - read
        return TokenTrie(trie.blob, trie.entry_ids[entries], start, length, chars)

    def _at(self, nodes: Nodes) -> tuple[States, NDArray[np.int32]]:
        """State (0 if not live) and characters read at each of `nodes`, the start node included."""
        reached = np.zeros(len(self.trie), dtype=self.states.dtype)
        read = np.zeros(len(self.trie), dtype=np.int32)
        reached[self.nodes], read[self.nodes] = self.states, self.node_chars
        reached[self.node] = self.state
        return reached[nodes], read[nodes]

    def memory_usage(self) -> int:
        """Bytes of the arrays computed so far, without the trie and the automaton."""
        held = sum(value.nbytes for value in list(vars(self).values()) if isinstance(value, np.ndarray))
        return held + sum(trie.memory_usage() for trie in list(self._exits.values()))


def sweep(trie: TokenTrie, automaton: ByteAutomaton, state: int, node: int = 0) -> Sweep:
    """Run the automaton from `state` over everything below `node`."""
    nodes, states = _run(trie, automaton.table, state, node)
    return Sweep(trie, automaton, state, node, nodes, states)


def _expand(start: NDArray[np.integer], count: NDArray[np.integer]) -> Nodes:
    """The ranges start[i] .. start[i] + count[i] - 1, one after another."""
    ends = np.cumsum(count, dtype=np.intp)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(start - (ends - count), count) + np.arange(total, dtype=np.intp)


def _run(trie: TokenTrie, table: NDArray[Any], state: int, node: int) -> tuple[Nodes, States]:
    flat = table.reshape(-1)
    nodes, states = np.array([node], dtype=np.intp), np.array([state], dtype=table.dtype)
    if not state:
        return nodes[:0], states[:0]
    levels, level = trie.level_start, int(np.searchsorted(trie.level_start, node, side="right"))
    found: list[tuple[Nodes, States]] = []
    while len(nodes) and level < len(levels) - 1:
        if len(nodes) * _WIDE > levels[level] - levels[level - 1] and len(nodes) > _FEW:
            wide, level = _run_wide(trie, flat, nodes, states, level)
            nodes, states = wide[-1]
            found += wide
        else:
            nodes, states = _step(trie, flat, nodes, states)
            found.append((nodes, states))
            level += 1
    if not found:
        return nodes[:0], states[:0]
    return np.concatenate([part for part, _ in found]), np.concatenate([part for _, part in found])


def _step(trie: TokenTrie, flat: States, nodes: Nodes, states: States) -> tuple[Nodes, States]:
    """The live children of a frontier."""
    counts = trie.child_count[nodes]
    children = _expand(trie.np_first[nodes], counts)
    reached = flat[np.repeat(states.astype(np.intp) << 8, counts) | trie.np_byte[children]]
    live = np.flatnonzero(reached)
    return children[live], reached[live]


def _run_wide(
    trie: TokenTrie, flat: States, nodes: Nodes, states: States, level: int
) -> tuple[list[tuple[Nodes, States]], int]:
    """Whole levels while they are well filled: all but the last in one piece, the last, and the level after them."""
    levels = trie.level_start
    reached = np.zeros(len(trie), dtype=flat.dtype)
    reached[nodes] = states
    first = low = levels[level]
    width = len(nodes)
    while level < len(levels) - 1 and width * _WIDE > low - levels[level - 1]:
        high = levels[level + 1]
        index = reached[trie.parent[low:high]].astype(np.intp)
        index <<= 8
        index |= trie.np_byte[low:high]
        np.take(flat, index, out=reached[low:high], mode="clip")
        width = int(np.count_nonzero(reached[low:high]))
        level, low = level + 1, high
    last = levels[level - 1]
    return [_live(reached, first, last), _live(reached, last, low)], level


def _live(reached: States, low: int, high: int) -> tuple[Nodes, States]:
    nodes = np.flatnonzero(reached[low:high]) + low
    return nodes, reached[nodes]


def difference(
    trie: TokenTrie, automaton: ByteAutomaton, state: int, base_state: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """(ids alive from `state` only, ids alive from `base_state` only), sorted."""
    only: list[int] = []
    base: list[int] = []
    pairs = [(0, state, base_state)] if state != base_state else []
    unlike: dict[tuple[int, int], list[int]] = {}
    while pairs and len(pairs) <= _FEW:
        pairs = _step_pairs(trie, automaton, pairs, unlike, only, base)
    rest = _run_pairs(trie, automaton.table, pairs)
    if rest is None:
        return _compare(trie, sweep(trie, automaton, state), sweep(trie, automaton, base_state))
    return _sorted_ids(trie, only, rest[0]), _sorted_ids(trie, base, rest[1])


def _compare(trie: TokenTrie, one: Sweep, other: Sweep) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    alive = np.zeros((2, len(trie.entry_ids)), dtype=np.bool_)
    alive[0, one.entries], alive[1, other.entries] = True, True
    unlike = alive[0] != alive[1]
    first, second = (np.sort(trie.entry_ids[row & unlike]) for row in alive)
    return first, second


def _sorted_ids(trie: TokenTrie, few: list[int], many: list[Nodes]) -> NDArray[np.int32]:
    if not many:
        return np.array(sorted(few), dtype=np.int32)
    nodes = np.concatenate(many)
    ids = trie.np_token_ids[_expand(trie.np_token_start[nodes], trie.token_count[nodes])]
    return np.sort(np.concatenate((np.array(few, dtype=np.int32), ids)))


def _step_pairs(
    trie: TokenTrie,
    automaton: ByteAutomaton,
    pairs: list[tuple[int, int, int]],
    unlike: dict[tuple[int, int], list[int]],
    only: list[int],
    base: list[int],
) -> list[tuple[int, int, int]]:
    """One level of `difference` for a handful of pairs, in plain Python. `unlike` remembers where two rows differ."""
    rows, table, child = automaton.rows, automaton.table, trie.child
    found = []
    for node, state, other in pairs:
        differing = unlike.get((state, other))
        if differing is None:
            differing = unlike[state, other] = np.flatnonzero(table[state] != table[other]).tolist()
        row, other_row = rows[state], rows[other]
        for byte in differing:
            below = child(node, byte)
            if below < 0:
                continue
            after, other_after = row[byte], other_row[byte]
            if not other_after:
                only += trie.tokens(below)
            elif not after:
                base += trie.tokens(below)
            found.append((below, after, other_after))
    return found


def _run_pairs(
    trie: TokenTrie, table: NDArray[Any], pairs: list[tuple[int, int, int]]
) -> tuple[list[Nodes], list[Nodes]] | None:
    """The rest of `difference` with numpy: nodes alive from the one state only, and from the other only.

    None if the states differ in so much that two whole sweeps are cheaper.
    """
    only: list[Nodes] = []
    base: list[Nodes] = []
    nodes, states, others = np.array(pairs, dtype=np.intp).reshape(-1, 3).T
    flat, visited = table.reshape(-1), 0
    while len(nodes):
        counts = trie.child_count[nodes]
        visited += int(counts.sum())
        if len(trie) > _SMALL and visited * _WIDE > len(trie):
            return None
        children = _expand(trie.np_first[nodes], counts)
        byte = trie.np_byte[children]
        after = flat[np.repeat(states << 8, counts) | byte]
        other_after = flat[np.repeat(others << 8, counts) | byte]
        kept = np.flatnonzero(after != other_after)
        nodes, states, others = children[kept], after[kept].astype(np.intp), other_after[kept].astype(np.intp)
        only.append(nodes[others == 0])
        base.append(nodes[states == 0])
    return only, base
