"""Terms: what grammar languages are made of, whatever their notation.

In: the constructors below. Out: frozen values: texts, sets of characters, tokens, names of rules, and how they are put
together. `NONE` is the empty language, `NULL` the empty text.
Invariants: `NONE` stands in no other term; a `Row` holds no `Row`, an `Either` no `Either`; neighbouring texts are one
text, and sets of characters in an `Either` that go on alike are one set. Equal terms compare equal.
Cost: linear in what is put together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from ..automaton.expression import INFINITE

__all__ = [
    "NONE", "NULL", "Chars", "Either", "Name", "Row", "Span", "Term", "Text", "Times", "Token", "either", "parts_of",
    "row", "size_of", "times", "walk",
]  # fmt: skip

Span: TypeAlias = "tuple[int, int]"


@dataclass(frozen=True)
class Text:
    """Just this text."""

    text: str


@dataclass(frozen=True)
class Chars:
    """One character of these code points: rising spans, not adjacent."""

    spans: tuple[Span, ...]


@dataclass(frozen=True)
class Token:
    """One token, by its id."""

    id: int


@dataclass(frozen=True)
class Name:
    """What a rule says."""

    name: str


@dataclass(frozen=True)
class Row:
    """One after the other; of none: the empty text."""

    parts: tuple[Term, ...]


@dataclass(frozen=True)
class Either:
    """One of several; of none: nothing at all."""

    parts: tuple[Term, ...]


@dataclass(frozen=True)
class Times:
    """`low` to `high` times; `high` may be `INFINITE`."""

    body: Term
    low: int
    high: int


Term: TypeAlias = "Text | Chars | Token | Name | Row | Either | Times"

NULL = Row(())
NONE = Either(())


def row(*parts: Term) -> Term:
    flat: list[Term] = []
    for part in parts:
        if part == NONE:
            return NONE
        for each in part.parts if isinstance(part, Row) else (part,):
            if isinstance(each, Text) and flat and isinstance(flat[-1], Text):
                flat[-1] = Text(flat[-1].text + each.text)
            else:
                flat.append(each)
    return flat[0] if len(flat) == 1 else Row(tuple(flat))


def either(parts: Iterable[Term]) -> Term:
    flat: dict[Term, None] = {}
    spans: list[Span] = []
    begun: dict[tuple[Term, ...], list[Span]] = {}  # what follows a character -> the characters
    for part in parts:
        for each in part.parts if isinstance(part, Either) else (part,):
            if isinstance(each, Chars):
                spans += each.spans
            elif isinstance(each, Row) and each.parts and isinstance(each.parts[0], Chars):
                begun.setdefault(each.parts[1:], []).extend(each.parts[0].spans)
            else:
                flat[each] = None
    flat = {**{Row((Chars(_joined(some)), *after)): None for after, some in begun.items()}, **flat}
    if spans:
        flat = {Chars(_joined(spans)): None, **flat}
    if len(flat) == 2:
        one, other = flat
        return _repeated(one, other) or _repeated(other, one) or Either((one, other))
    return next(iter(flat)) if len(flat) == 1 else Either(tuple(flat))


def _repeated(rest: Term, longer: Term) -> Term | None:
    """`rest | x rest` is `x? rest`, and `rest | x x{0,n} rest` is `x{0,n+1} rest`."""
    parts = longer.parts if isinstance(longer, Row) else (longer,)
    if not parts or rest == NONE:
        return None
    body, after = parts[0], parts[1:]
    if row(*after) == rest:
        return row(times(body, 0, 1), rest)
    first = after[0] if after else NULL
    if isinstance(first, Times) and first.body == body and first.low == 0 and row(*after[1:]) == rest:
        high = first.high if first.high >= INFINITE else first.high + 1
        return row(times(body, 0, high), rest)
    return None


def _joined(spans: Iterable[Span]) -> tuple[Span, ...]:
    out: list[Span] = []
    for low, high in sorted(spans):
        if out and low <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(high, out[-1][1]))
        else:
            out.append((low, high))
    return tuple(out)


def times(body: Term, low: int = 0, high: int = INFINITE) -> Term:
    if high == 0 or body == NULL or (body == NONE and low == 0):
        return NULL
    if body == NONE or (low == 1 and high == 1):
        return body
    if isinstance(body, Times) and body.low == 0 and body.high == INFINITE and high >= 1:
        return body  # (x*)+, (x*)*
    return Times(body, low, high)


def parts_of(term: Term) -> tuple[Term, ...]:
    """The terms that it is put together from."""
    if isinstance(term, (Row, Either)):
        return term.parts
    return (term.body,) if isinstance(term, Times) else ()


def walk(term: Term) -> Iterator[Term]:
    """The term and everything in it."""
    stack = [term]
    while stack:
        top = stack.pop()
        yield top
        stack += parts_of(top)


def size_of(term: Term) -> int:
    """How many terms it is put together from."""
    return sum(1 for _ in walk(term))
