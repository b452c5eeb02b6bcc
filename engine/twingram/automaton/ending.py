"""Early ends: what stands here is followed by the end of the turn, or by what follows the role that is open.

In: what follows the turn in a parser's expression (a stop marker in text, or nothing), or a role. Out: `at_end`, an
expression of no width after which the rest of the turn is skipped: the roles that are open are closed, nothing but the
end follows; and `closed`, after which the rest of the innermost such role is skipped.
Invariant: the tags of the roles that are open fire, no others.
Cost: a walk along the spine, once for each place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from .bound import Bound, bound
from .choice import Alt, Words
from .expression import EMPTY, Expr, Head, Mark, Seq, seq
from .interning import intern
from .tags import Tag, TagKind, close_tag

__all__ = ["Scopes", "at_end", "closed", "scopes"]


class Scopes(NamedTuple):
    """What a row says of the roles around it."""

    closing: tuple[Expr, ...]  # the closing marks of those that are open before it, innermost first
    ahead: tuple[str, ...]  # roles that begin and end in it
    rest: Expr  # what follows the last mark that was asked for


def scopes(tail: Expr, last: Tag | None = None) -> Scopes:
    """The scopes of what is left of a reading, up to the closing mark `last`.

    Where readings part before the end of a role, its mark stands in each of them: the first one counts.
    """
    found: list[Expr] = []
    begun: list[str] = []  # roles that begin in the row itself and are still open
    ahead: list[str] = []
    at = tail
    while True:
        part, after = (at.head, at.tail) if isinstance(at, Seq) else (at, EMPTY)
        if isinstance(part, Bound):
            inner = scopes(seq(part.base, after), last)
            return Scopes((*found, *inner.closing), (*ahead, *inner.ahead), bound(inner.rest, part.env))
        if isinstance(part, (Alt, Words)):
            way = next((item for item in _ways(part) if _closes(item)), None)
            if way is not None:
                at = seq(way, after)
                continue
        elif isinstance(part, Mark):
            kind, role = part.tag.kind, part.tag.role
            if kind is TagKind.OPEN:
                begun.append(role)
            elif kind is TagKind.CLOSE and role in begun:
                begun.remove(role)
                ahead.append(role)
            elif kind is TagKind.CLOSE:
                found.append(part)
                if part.tag is last:
                    return Scopes(tuple(found), tuple(ahead), after)
        if after is EMPTY:
            return Scopes(tuple(found), tuple(ahead), EMPTY)
        at = after


def _ways(part: Alt | Bound | Words) -> Iterable[Expr]:
    """What may follow from here, where readings part."""
    if isinstance(part, Bound):
        return (part.base,)
    return part.items if isinstance(part, Alt) else (tail for _, tail in part.entries[part.low : part.high])


def _closes(expr: Expr) -> bool:
    """Whether a role that is open before ends in this row."""
    begun: list[str] = []
    at = expr
    while True:
        part = at.head if isinstance(at, Seq) else at
        if isinstance(part, Mark) and part.tag.kind is TagKind.OPEN:
            begun.append(part.tag.role)
        elif isinstance(part, Mark) and part.tag.kind is TagKind.CLOSE:
            if part.tag.role not in begun:
                return True
            begun.remove(part.tag.role)
        elif isinstance(part, (Alt, Bound, Words)) and any(map(_closes, _ways(part))):
            return True
        if not isinstance(at, Seq):
            return False
        at = at.tail


class AtEnd(Expr):
    """Nothing may follow but `ending`."""

    __slots__ = ("ending",)

    def __init__(self, ending: Expr) -> None:
        self.ending = ending

    def follow(self, tail: Expr) -> Expr:
        closing = scopes(tail).closing
        return seq(*closing, self.ending)

    def _find_heads(self) -> tuple[Head, ...]:
        return (((), None, self),)

    def measure(self, of: Callable[[Expr], int], spell: Callable[[bytes], int]) -> int:
        return 0

    def __repr__(self) -> str:
        return "at end"


def at_end(ending: Expr) -> Expr:
    found: Expr = intern(AtEnd, ending)
    return found


class Closed(Expr):
    """Everything up to the end of the innermost `role` is closed."""

    __slots__ = ("role",)

    def __init__(self, role: Tag) -> None:
        self.role = role

    def follow(self, tail: Expr) -> Expr:
        found = scopes(tail, self.role)
        return seq(*found.closing, found.rest)

    def _find_heads(self) -> tuple[Head, ...]:
        return (((), None, self),)

    def measure(self, of: Callable[[Expr], int], spell: Callable[[bytes], int]) -> int:
        return 0

    def __repr__(self) -> str:
        return f"all closed in {self.role.role}"


def closed(role: str) -> Expr:
    found: Expr = intern(Closed, close_tag(role))
    return found
