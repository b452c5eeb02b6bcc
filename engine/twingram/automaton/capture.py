"""Captures: the same text twice, and words whose choice decides what may follow.

In: a byte automaton for the first occurrence and, in what follows it, `same` placeholders. Out: a `Recorder` that keeps
the bytes it has read; when it ends, the placeholders in what follows become that text. `fills` says more about what a
text stands for: which other parts of what follows it puts something in the place of.

This is the only place where an expression depends on what was read. It stays finite: what is recorded is bounded, and a
name is as long as a name is.
Invariant: a placeholder that no recorder before it fills reads nothing (the grammar check refuses such a grammar). A
recorder decides until the next one of its name.
Cost: a state for each prefix of each name that occurs; what follows is not rebuilt (see `bound.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from .bound import Env, bound, same
from .choice import Alt, Words, alt, words
from .dfa import Dfa
from .expression import EMPTY, NOTHING, Expr, Head, Leaf, Repeat, Seq, literal, repeat, seq
from .interning import intern

__all__ = ["Fills", "listed", "recorder", "replaced", "same"]


class Fills(Protocol):
    """The text that was read -> placeholders in what follows, and what they stand for. `gives`: the bits of these."""

    @property
    def gives(self) -> int: ...

    def __call__(self, text: bytes, /) -> Mapping[Expr, Expr]: ...


_LONGEST = 512  # bytes that are recorded at most


class Recorder(Leaf):
    """Text of `dfa`, of which `seen` is read; `name` is what `same` calls it."""

    __slots__ = ("dfa", "fills", "first", "gives", "name", "seen", "state")

    def __init__(self, dfa: Dfa, state: int, name: str, seen: bytes, fills: Fills | None) -> None:
        self.dfa, self.state, self.name, self.seen, self.fills = dfa, state, name, seen, fills
        self.gives = same(name).bit | (0 if fills is None else fills.gives)
        self.first = dfa.first[state] if len(seen) < _LONGEST else 0

    def after(self, sym: int) -> Expr:
        seen = self.seen + bytes((sym,))
        found: Expr = intern(Recorder, self.dfa, self.dfa.rows[self.state][sym], self.name, seen, self.fills)
        return found

    def follow(self, tail: Expr) -> Expr:
        return _filled(self.name, self.seen, self.fills, tail)

    def _find_heads(self) -> tuple[Head, ...]:
        ending: tuple[Head, ...] = (((), None, self),) if self.dfa.accept[self.state] else ()
        return (*ending, ((), self, EMPTY)) if self.first else ending

    def measure(self, of: Callable[[Expr], int], spell: Callable[[bytes], int]) -> int:
        return self.dfa.shortest[self.state]

    def __repr__(self) -> str:
        return f"record[{self.name}={self.seen!r}]"


def _filled(name: str, seen: bytes, fills: Fills | None, tail: Expr) -> Expr:
    """What follows a text that was recorded."""
    places: dict[Expr, Expr] = {same(name): literal(seen)}
    if fills is not None:
        places.update(fills(seen))
    return bound(tail, Env.of(places))


def recorder(dfa: Dfa, name: str, fills: Fills | None = None) -> Expr:
    """`fills` must be one object for one meaning: it is compared by identity."""
    if dfa.start == 0:
        return NOTHING
    found: Expr = intern(Recorder, dfa, dfa.start, name, b"", fills)
    return found


class Listed(Leaf):
    """As a recorder of a list of words, `seen` of which is read; `words` are those that begin with it.

    No automaton is made of the list, which took 0.4 ms for the keys of a tool: it is read once or twice in a turn.
    """

    __slots__ = ("fills", "first", "gives", "name", "seen", "words")

    def __init__(self, words: tuple[bytes, ...], name: str, seen: bytes, fills: Fills | None) -> None:
        self.words, self.name, self.seen, self.fills = words, name, seen, fills
        self.gives = same(name).bit | (0 if fills is None else fills.gives)
        first, at = 0, len(seen)
        for word in words:
            if len(word) > at:
                first |= 1 << word[at]
        self.first = first

    def after(self, sym: int) -> Expr:
        at = len(self.seen)
        words = tuple([word for word in self.words if len(word) > at and word[at] == sym])
        found: Expr = intern(Listed, words, self.name, self.seen + bytes((sym,)), self.fills)
        return found

    def follow(self, tail: Expr) -> Expr:
        return _filled(self.name, self.seen, self.fills, tail)

    def _find_heads(self) -> tuple[Head, ...]:
        ending: tuple[Head, ...] = (((), None, self),) if self.seen in self.words else ()
        return (*ending, ((), self, EMPTY)) if self.first else ending

    def measure(self, of: Callable[[Expr], int], spell: Callable[[bytes], int]) -> int:
        return min(map(len, self.words)) - len(self.seen)

    def __repr__(self) -> str:
        return f"record[{self.name}={self.seen!r}]"


def listed(words: Iterable[bytes], name: str, fills: Fills | None = None) -> Expr:
    """One of the words, none of them empty, recorded as `name`. `fills` is compared by identity."""
    kept = tuple(sorted({word for word in words if len(word) <= _LONGEST}))
    found: Expr = intern(Listed, kept, name, b"", fills) if kept else NOTHING
    return found


def replaced(expr: Expr, places: Mapping[Expr, Expr]) -> Expr:
    """`expr` with others in the places of some of its parts. Parts without any of them are kept as they are."""
    return _Replacement(places).row(expr)


class _Replacement:
    """One walk. What became of each part is kept."""

    __slots__ = ("known", "places")

    def __init__(self, places: Mapping[Expr, Expr]) -> None:
        self.places = places
        self.known: dict[Expr, Expr] = {}

    def row(self, expr: Expr) -> Expr:
        row: list[Expr] = []
        at = expr
        changed = False
        while True:  # along the spine without recursion: it is as long as the output is deep
            part = at.head if isinstance(at, Seq) else at
            made = self.known.get(part)
            if made is None:
                made = self.known[part] = self.part(part)
            changed = changed or made is not part
            row.append(made)
            if not isinstance(at, Seq):
                return seq(*row) if changed else expr
            at = at.tail

    def part(self, part: Expr) -> Expr:
        if part in self.places:
            return self.places[part]
        if isinstance(part, Alt):
            items = [self.row(item) for item in part.items]
            return part if all(a is b for a, b in zip(items, part.items, strict=True)) else alt(items)
        if isinstance(part, Repeat):
            body = self.row(part.body)
            return part if body is part.body else repeat(body, part.low, part.high)
        if isinstance(part, Words):
            entries = part.entries[part.low : part.high]
            tails = [self.row(tail) for _, tail in entries]
            if all(a is b for a, (_, b) in zip(tails, entries, strict=True)):
                return part
            read = {word[part.depth :]: before + word[: part.depth] for word, before in part.table.read.items()}
            made = [(word[part.depth :], tail) for (word, _), tail in zip(entries, tails, strict=True)]
            ranks = part.table.ranks[part.low : part.high]
            return words([made[at] for at in sorted(range(len(made)), key=ranks.__getitem__)] if ranks else made, read)
        return part
