"""Choices: one of several expressions, and sets of literals as tries.

In: expressions. Out: `alt` and `words`, with the same guarantees as the constructors of `expression.py`.

Neighbours that begin with the same part are factored, and runs of literals become one trie, so that a hundred tools
that share all but the name are one expression until the name is read; its nodes are made when they are reached.
In a trie the literals keep their order as well: one that begins an earlier one comes after it.
Invariant: no `Alt` holds another, nor `NOTHING`, nor the same expression twice.
Cost: linear in the alternatives; a trie node costs its children. 100 names as alternatives took 9.9 ms a mask, as a
trie they take 0.1 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from threading import RLock
from types import MappingProxyType
from typing import Any
from weakref import WeakValueDictionary

from .expression import EMPTY, NOTHING, Expr, Head, Leaf, Literal, Seq, literal, seq
from .hoist import opened
from .interning import intern
from .spelt import Spelt, spelt

__all__ = ["alt", "maybe", "slices", "words"]


class Alt(Expr):
    """One of several, in order of preference."""

    __slots__ = ("binding", "items", "nesting", "nesting_least")

    def __init__(self, items: tuple[Expr, ...]) -> None:
        self.items = items
        self.binding = any(item.binding for item in items)
        self.nesting, self.nesting_least = _nesting(items)

    def parts(self) -> tuple[Expr, ...]:
        return self.items

    def measure(self, of: Callable[[Expr], int], spell: Callable[[bytes], int]) -> int:
        return min(of(item) for item in self.items)

    def climb(self, of: Callable[[Expr], int]) -> int:
        return min(of(item) for item in self.items)

    def _find_heads(self) -> tuple[Head, ...]:
        return tuple(dict.fromkeys(head for item in self.items for head in item.heads()))

    def __repr__(self) -> str:
        return "(" + " | ".join(map(repr, self.items)) + ")"


def alt(items: Iterable[Expr]) -> Expr:
    """The first of the alternatives that fits, the others kept beside it.

    Neighbours that begin with the same part are factored, and runs of literals become one trie: a hundred tools that
    share all but the name are one expression until the name is read.
    """
    flat: dict[Expr, None] = {}
    for item in items:
        if isinstance(item, Alt):
            flat.update(dict.fromkeys(item.items))
        elif item is not NOTHING:
            flat.setdefault(item)
    if not flat:
        return NOTHING
    if len(flat) == 1:
        return next(iter(flat))
    grouped = _factored([opened(item) for item in flat])  # what begins alike is found in what is put together
    if len(grouped) == 1:
        return grouped[0]
    found: Expr = intern(Alt, tuple(grouped))
    return found


def _nesting(items: Sequence[Expr]) -> tuple[int, int]:
    return max(item.nesting for item in items), min(item.nesting_least for item in items)


def _split(expr: Expr) -> tuple[Expr, Expr]:
    return (expr.head, expr.tail) if isinstance(expr, Seq) else (expr, EMPTY)


def _factored(items: Sequence[Expr]) -> list[Expr]:
    out: list[Expr] = []
    run: list[tuple[Expr, Expr]] = []  # neighbours with equal heads, or with literals at the head

    def flush() -> None:
        if len(run) == 1:
            out.append(seq(*run[0]))
        elif run and all(head is run[0][0] for head, _ in run):
            out.append(seq(run[0][0], alt(tail for _, tail in run)))
        elif run:
            read = {head.data: head.read for head, _ in run if isinstance(head, Spelt)}
            out.append(words([(head.data, tail) for head, tail in run], read))  # type: ignore[attr-defined]
        run.clear()

    for item in items:
        head, tail = _split(item)
        if run and not (head is run[-1][0] or (isinstance(head, Literal) and isinstance(run[-1][0], Literal))):
            flush()
        if head is EMPTY:
            flush()
            out.append(item)
        else:
            run.append((head, tail))
    flush()
    return out


class Table:
    """The literals of a trie, sorted, each with what follows it. Equal ones are one object while it is in use.

    `read`: those of them that are markers, and what of each had been read before. `ranks`: the places of all in the
    order in which they were given, where one of them begins an earlier one.
    """

    __slots__ = ("__weakref__", "entries", "nesting", "ranks", "read")

    def __init__(
        self, entries: Sequence[tuple[bytes, Expr]], read: Mapping[bytes, bytes], ranks: tuple[int, ...]
    ) -> None:
        self.entries, self.read, self.ranks = tuple(entries), dict(read), ranks
        self.nesting = _nesting([tail for _, tail in entries])

    @classmethod
    def of(cls, entries: Sequence[tuple[bytes, Expr]], read: Mapping[bytes, bytes], ranks: tuple[int, ...]) -> Table:
        # The table holds the tails: see `intern`.
        names = (*((word, id(tail), read.get(word)) for word, tail in entries), ranks)
        with _LOCK:
            found = _TABLES.get(names)
            if found is None:
                found = _TABLES[names] = cls(entries, read, ranks)
        return found

    def some(self, places: Sequence[int], depth: int) -> Expr:
        """A node of these entries alone."""
        if not places:
            return NOTHING
        entries, ranks = [self.entries[at] for at in places], tuple(self.ranks[at] for at in places)
        return _word_node(Table.of(entries, self.read, ranks), 0, len(entries), depth)


_TABLES: WeakValueDictionary[tuple[Any, ...], Table] = WeakValueDictionary()
_LOCK = RLock()  # a collection may drop a table while it is held


class Words(Leaf):
    """A set of literals, each with what follows it: a trie whose nodes are made when they are reached.

    `entries` are sorted by their bytes; this node is the slice `low:high`, of which the first `depth` bytes are read.
    """

    __slots__ = ("_children", "depth", "entries", "first", "high", "low", "nesting", "nesting_least", "table")

    def __init__(self, table: Table, low: int, high: int, depth: int) -> None:
        self.table, self.low, self.high, self.depth = table, low, high, depth
        self.entries = table.entries
        self.nesting, self.nesting_least = table.nesting
        self._children: dict[int, tuple[int, int]] = slices(self.entries, low, high, depth)
        self.first = sum(1 << byte for byte in self._children)

    def parts(self) -> tuple[Expr, ...]:
        return tuple(tail for _, tail in self.entries[self.low : self.high])

    @property
    def begun(self) -> bytes:
        """What of the literals has been read."""
        word, _ = self.entries[self.low]
        return self.table.read.get(word, b"") + word[: self.depth]

    def measure(self, of: Callable[[Expr], int], spell: Callable[[bytes], int]) -> int:
        return min(spell(word[self.depth :]) + of(tail) for word, tail in self.entries[self.low : self.high])

    def climb(self, of: Callable[[Expr], int]) -> int:
        return min(of(tail) for _, tail in self.entries[self.low : self.high])

    def after(self, sym: int) -> Expr:
        low, high = self._children[sym]
        return _word_node(self.table, low, high, self.depth + 1)

    def _find_heads(self) -> tuple[Head, ...]:
        word, tail = self.entries[self.low]
        ending = tail.heads() if len(word) == self.depth else ()
        return (*ending, ((), self, EMPTY)) if self.first else ending

    def __repr__(self) -> str:
        return f"words[{self.high - self.low}@{self.depth}]"


def slices(entries: Sequence[tuple[bytes, Any]], low: int, high: int, depth: int) -> dict[int, tuple[int, int]]:
    """byte -> slice of the sorted entries whose byte at `depth` it is."""
    out: dict[int, tuple[int, int]] = {}
    at = low + 1 if len(entries[low][0]) == depth else low
    while at < high:
        byte, begin = entries[at][0][depth], at
        while at < high and entries[at][0][depth] == byte:
            at += 1
        out[byte] = (begin, at)
    return out


def _word_node(table: Table, low: int, high: int, depth: int) -> Expr:
    if high - low == 1:
        word, tail = table.entries[low]
        before = table.read.get(word)
        rest = literal(word[depth:]) if before is None else spelt(word[depth:], before + word[:depth])
        return seq(rest, tail)
    if table.ranks and len(table.entries[low][0]) == depth:
        own, behind = table.ranks[low], range(low + 1, high)
        earlier = [at for at in behind if table.ranks[at] < own]
        if earlier:
            later = [at for at in behind if table.ranks[at] > own]
            return alt((table.some(earlier, depth), table.entries[low][1], table.some(later, depth)))
    found: Expr = intern(Words, table, low, high, depth)
    return found


def words(entries: Iterable[tuple[bytes, Expr]], read: Mapping[bytes, bytes] = MappingProxyType({})) -> Expr:
    """One of the literals, then what belongs to it. `read`: see `Table`."""
    merged: dict[bytes, list[Expr]] = {}
    for word, tail in entries:
        if tail is not NOTHING:
            merged.setdefault(word, []).append(tail)
    if not merged:
        return NOTHING
    table = Table.of(
        sorted(((word, alt(tails)) for word, tails in merged.items()), key=lambda pair: pair[0]), read, _ranks(merged)
    )
    return _word_node(table, 0, len(table.entries), 0)


def _ranks(given: Iterable[bytes]) -> tuple[int, ...]:
    """For each word, in the order of their bytes, its place among the given; none if no word begins an earlier one."""
    places = {word: place for place, word in enumerate(given)}
    ordered = sorted(places)
    if not any(two.startswith(one) for one, two in pairwise(ordered)):
        return ()
    for at, word in enumerate(ordered):
        for other in ordered[at + 1 :]:
            if not other.startswith(word):
                break
            if places[other] < places[word]:
                return tuple(places[each] for each in ordered)
    return ()


def maybe(body: Expr) -> Expr:
    return alt((body, EMPTY))
