"""Byte automata: the one form in which text regions, patterns, number ranges and word lists reach the engine.

In: a `Draft` (rows of runs over bytes), or other automata. Out: a `Dfa`.
Invariant: a `Dfa` is minimal, trimmed and canonically numbered (0 is dead, 1 the start, then breadth first by byte), so
equal languages with equal boundary flags have equal tables, one digest and one object: compare with `is`. It is
frozen once built; only answers that are computed on demand (`table`, `lengths`) are kept.
Cost: building is linear in the runs plus the refinement of `minimize`; an operation on two automata visits the
pairs of states that occur together. Tuples of 256 targets a state are what the hot loops index; equal rows are shared.

Boundary flags: `boundary[s]` is 1 if entering `s` completes a character of the decoded text. States that differ in it
never merge. `intersect` and `difference` take the flags of their first operand; `union` and `concat` set a flag where
any of the merged states has it, which is exact if the operands spell characters alike.

Source: M. O. Rabin, D. Scott, "Finite Automata and Their Decision Problems" (1959), for products and subsets;
J. Daciuk et al., "Incremental Construction of Minimal Acyclic Finite-State Automata" (2000), for word lists.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from threading import Lock
from typing import TypeVar
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from ..errors import LimitExceeded
from ..limits import DEFAULT_LIMITS, Limits
from .lengths import WordLengths
from .minimize import minimize
from .runs import EMPTY_DRAFT, Draft, Row, Run, merge_runs, number, overlay, pair_runs

__all__ = [
    "NEVER",
    "Dfa",
    "check_states",
    "concat",
    "difference",
    "from_draft",
    "intersect",
    "literal",
    "literals",
    "union",
]

NEVER = 1 << 30
"""`Dfa.shortest` of the dead state."""

Node = TypeVar("Node")


class Dfa:
    """One minimal byte automaton. Read its attributes; never write them."""

    __slots__ = (
        "__weakref__", "_lengths", "_table", "accept", "boundary", "first", "key", "rows", "runs", "shortest",
        "start",
    )  # fmt: skip

    rows: tuple[tuple[int, ...], ...]  # rows[state][byte] -> state; 0 is dead. The collector passes over such tuples
    runs: tuple[Row, ...]  # the same as runs, for what visits whole rows
    start: int  # 1, or 0 if the language is empty
    accept: bytes  # accept[state]: 1 or 0
    boundary: bytes  # boundary[state]: 1 if entering the state completes a character
    first: tuple[int, ...]  # first[state]: bit b set if byte b leads to a live state
    shortest: tuple[int, ...]  # shortest[state]: fewest bytes to acceptance
    key: bytes  # digest of all of the above

    def __init__(self, draft: Draft, key: bytes) -> None:
        self.runs = tuple(draft.rows)
        self.start, self.key = draft.start, key
        self.accept, self.boundary = bytes(draft.accept), bytes(draft.boundary)
        shared: dict[Row, tuple[tuple[int, ...], int]] = {}  # runs -> (targets by byte, set of bytes)
        rows, firsts = [], []
        for row in self.runs:
            made = shared.get(row)
            if made is None:
                made = shared[row] = _expand(row)
            rows.append(made[0])
            firsts.append(made[1])
        self.rows, self.first = tuple(rows), tuple(firsts)
        self.shortest = _shortest(self.runs, self.accept)
        self._table: NDArray[np.generic] | None = None
        self._lengths: WordLengths | None = None

    @property
    def table(self) -> NDArray[np.generic]:
        """Targets as one array (states, 256), uint16 where that suffices, else int32; read-only."""
        if self._table is None:
            kind = np.uint16 if len(self.rows) <= 1 << 16 else np.int32
            table = np.array(self.rows, dtype=kind)
            table.flags.writeable = False
            self._table = table
        return self._table

    def matches(self, data: bytes) -> bool:
        """Whether the whole of `data` is in the language."""
        rows, state = self.rows, self.start
        for byte in data:
            state = rows[state][byte]
        return self.accept[state] == 1

    def lengths(self, state: int, limit: int) -> int:
        """Bit n set if some accepted continuation holds exactly n further characters, for n <= limit."""
        if limit < 0 or not state:
            return 0
        known = self._lengths
        if known is None:
            known = self._lengths = WordLengths(self.runs, self.accept, self.boundary)
        return known.upto(state, limit)

    def memory_usage(self) -> int:
        """Bytes held, shared rows counted once."""
        lists = {id(row): sys.getsizeof(row) for row in self.rows}
        runs = {id(row): sys.getsizeof(row) + 80 * len(row) for row in self.runs}
        table = 0 if self._table is None else self._table.nbytes
        return sum(lists.values()) + sum(runs.values()) + 120 * len(self.rows) + table

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"<Dfa {self.key.hex()[:8]}: {len(self.rows)} states>"

    def __reduce__(self) -> tuple[Callable[[Draft], Dfa], tuple[Draft]]:
        return _intern, (Draft(self.runs, self.accept, self.boundary, self.start),)


def _expand(row: Row) -> tuple[tuple[int, ...], int]:
    targets, first = [0] * 256, 0
    for low, high, target in row:
        width = high - low + 1
        if width == 1:
            targets[low] = target
        else:
            targets[low : high + 1] = [target] * width
        first |= ((1 << width) - 1) << low
    return tuple(targets), first


def _shortest(runs: Sequence[Row], accept: bytes) -> tuple[int, ...]:
    sources: list[list[int]] = [[] for _ in runs]
    for state, row in enumerate(runs):
        for _, _, target in row:
            sources[target].append(state)
    lengths = [NEVER] * len(runs)
    order = [state for state, flag in enumerate(accept) if flag]
    for state in order:
        lengths[state] = 0
    for state in order:
        for source in sources[state]:
            if lengths[source] == NEVER:
                lengths[source] = lengths[state] + 1
                order.append(source)
    return tuple(lengths)


_INTERNED: WeakValueDictionary[bytes, Dfa] = WeakValueDictionary()
_LOCK = Lock()


def from_draft(draft: Draft, *, minimal: bool = False) -> Dfa:
    """The interned automaton of a draft. `minimal` says that the draft is minimal, trimmed and numbered already."""
    return _intern(draft if minimal else minimize(draft))


def _intern(draft: Draft) -> Dfa:
    numbers = array("i")
    for row in draft.rows:
        numbers.append(-1)
        for run in row:
            numbers.extend(run)
    if sys.byteorder == "big":
        numbers.byteswap()
    digest = blake2b(numbers.tobytes(), digest_size=16)
    digest.update(bytes(draft.accept) + bytes(draft.boundary))
    key = digest.digest()
    with _LOCK:
        found = _INTERNED.get(key)
        if found is None:
            found = _INTERNED[key] = Dfa(draft, key)
    return found


def check_states(count: int, limits: Limits) -> None:
    """Refuses an automaton that grows past the limit."""
    if count > limits.automaton_states:
        raise LimitExceeded("automaton_states", limits.automaton_states, "a pattern or range needs too many states")


def _explore(
    start: Node,
    row_of: Callable[[Node], Iterable[tuple[int, int, Node | None]]],
    flags_of: Callable[[Node], tuple[int, int]],
    limits: Limits,
) -> Dfa:
    """The automaton whose states are the nodes met from `start`; `None` is the dead node."""
    numbers: dict[Node, int] = {start: 1}
    order = [start]
    rows: list[Row] = [()]
    for node in order:
        runs: list[Run] = []
        for low, high, target in row_of(node):
            if target is None:
                continue
            name = numbers.get(target)
            if name is None:
                name = numbers[target] = len(numbers) + 1
                order.append(target)
                check_states(name, limits)
            runs.append((low, high, name))
        rows.append(merge_runs(runs))
    flags = [flags_of(node) for node in order]
    return from_draft(Draft(rows, [0, *(flag[0] for flag in flags)], [0, *(flag[1] for flag in flags)], 1))


def intersect(a: Dfa, b: Dfa, *, limits: Limits = DEFAULT_LIMITS) -> Dfa:
    """Texts of both. Boundary flags come from `a`."""
    if a is b:
        return a
    if not a.start or not b.start:
        return from_draft(EMPTY_DRAFT, minimal=True)

    def row(pair: tuple[int, int]) -> Iterable[tuple[int, int, tuple[int, int] | None]]:
        for low, high, left, right in pair_runs(a.runs[pair[0]], b.runs[pair[1]]):
            yield low, high, (left, right) if right else None

    def flags(pair: tuple[int, int]) -> tuple[int, int]:
        return a.accept[pair[0]] & b.accept[pair[1]], a.boundary[pair[0]]

    return _explore((a.start, b.start), row, flags, limits)


def difference(a: Dfa, b: Dfa, *, limits: Limits = DEFAULT_LIMITS) -> Dfa:
    """Texts of `a` that are not in `b`. Boundary flags come from `a`."""
    if a is b or not a.start:
        return from_draft(EMPTY_DRAFT, minimal=True)
    if not b.start:
        return a

    def row(pair: tuple[int, int]) -> Iterable[tuple[int, int, tuple[int, int]]]:
        for low, high, left, right in pair_runs(a.runs[pair[0]], b.runs[pair[1]]):
            yield low, high, (left, right)

    def flags(pair: tuple[int, int]) -> tuple[int, int]:
        return a.accept[pair[0]] & ~b.accept[pair[1]] & 1, a.boundary[pair[0]]

    return _explore((a.start, b.start), row, flags, limits)


def union(*dfas: Dfa, limits: Limits = DEFAULT_LIMITS) -> Dfa:
    """Texts of any of them; of none, the empty language."""
    parts = [dfa for dfa in dict.fromkeys(dfas) if dfa.start]
    if not parts:
        return from_draft(EMPTY_DRAFT, minimal=True)
    while len(parts) > 1:  # pairwise and balanced: each step sees small automata
        pairs = [_union(*parts[i : i + 2], limits=limits) for i in range(0, len(parts) - 1, 2)]
        parts = pairs + parts[len(parts) & ~1 :]
    return parts[0]


def _union(a: Dfa, b: Dfa, *, limits: Limits) -> Dfa:
    def row(pair: tuple[int, int]) -> Iterable[tuple[int, int, tuple[int, int]]]:
        both = list(pair_runs(a.runs[pair[0]], b.runs[pair[1]]))
        only = [(low, high, (0, target)) for low, high, target, other in
                pair_runs(b.runs[pair[1]], a.runs[pair[0]]) if not other]  # fmt: skip
        return sorted([(low, high, (left, right)) for low, high, left, right in both] + only)

    def flags(pair: tuple[int, int]) -> tuple[int, int]:
        left, right = pair
        return a.accept[left] | b.accept[right], a.boundary[left] | b.boundary[right]

    return _explore((a.start, b.start), row, flags, limits)


def concat(a: Dfa, b: Dfa, *, limits: Limits = DEFAULT_LIMITS) -> Dfa:
    """A text of `a` followed by a text of `b`."""
    if not a.start or not b.start:
        return from_draft(EMPTY_DRAFT, minimal=True)
    empty: frozenset[int] = frozenset()

    def entered(left: int, others: frozenset[int]) -> tuple[int, frozenset[int]]:
        return left, others | {b.start} if a.accept[left] else others

    def row(node: tuple[int, frozenset[int]]) -> Iterable[tuple[int, int, tuple[int, frozenset[int]]]]:
        left, others = node
        rows = [a.runs[left], *(b.runs[state] for state in others)]
        for low, high, targets in overlay(rows):
            yield low, high, entered(targets[0], frozenset(targets[1:]) - {0})

    def flags(node: tuple[int, frozenset[int]]) -> tuple[int, int]:
        left, others = node
        accept = any(b.accept[state] for state in others)
        return int(accept), a.boundary[left] | max((b.boundary[state] for state in others), default=0)

    return _explore(entered(a.start, empty), row, flags, limits)


def literal(data: bytes, *, limits: Limits = DEFAULT_LIMITS) -> Dfa:
    """Exactly this text."""
    return literals((data,), limits=limits)


def literals(words: Iterable[bytes], *, limits: Limits = DEFAULT_LIMITS) -> Dfa:
    """Exactly these texts. Boundary flags follow UTF-8 (a byte that is not part of a character counts as one)."""
    register: dict[tuple[tuple[Run, ...], int, int], int] = {}  # (row, accept, boundary) -> state
    rows: list[Row] = [()]
    accept, boundary = [0], [0]
    path: list[tuple[list[Run], int, int]] = [([], 0, 1)]  # open states: (runs, accept, boundary), the root first

    def close(depth: int) -> None:
        while len(path) > depth:
            runs, accepts, bounds = path.pop()
            state = (tuple(runs), accepts, bounds)
            name = register.get(state)
            if name is None:
                name = register[state] = len(rows)
                rows.append(merge_runs(runs))
                accept.append(accepts)
                boundary.append(bounds)
            if path:
                above = path[-1][0]
                low, high, _ = above[-1]
                above[-1] = (low, high, name)

    last: bytes | None = None
    for word in sorted(set(words)):
        common = 0 if last is None else _common_prefix(last, word)
        close(common + 1)
        flags = _boundaries(word)
        for position in range(common, len(word)):
            path[-1][0].append((word[position], word[position], -1))
            path.append(([], 0, flags[position]))
        check_states(len(rows) + len(path), limits)
        path[-1] = (path[-1][0], 1, path[-1][2])
        last = word
    if last is None:
        return from_draft(EMPTY_DRAFT, minimal=True)
    close(0)
    return from_draft(number(Draft(rows, accept, boundary, len(rows) - 1)), minimal=True)


def _common_prefix(a: bytes, b: bytes) -> int:
    size = min(len(a), len(b))
    if a[:size] == b[:size]:
        return size
    return next(i for i in range(size) if a[i] != b[i])


def _boundaries(word: bytes) -> list[int]:
    """For each byte, 1 if it completes a character."""
    flags: list[int] = []
    missing = 0
    for byte in word:
        if missing and 0x80 <= byte < 0xC0:
            missing -= 1
        else:
            missing = 3 if byte >= 0xF0 else 2 if byte >= 0xE0 else 1 if byte >= 0xC2 else 0
        flags.append(0 if missing else 1)
    return flags
