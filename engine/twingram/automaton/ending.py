"""Early ends: what stands here is followed by the end of the turn, or by what follows the role that is open.

In: what follows the turn in a parser's expression (a stop marker in text, or nothing), or a role. Out: `at_end`, an
expression of no width after which the rest of the turn is skipped: the roles that are open are closed, nothing but the
end follows; and `closed`, after which the rest of the innermost such role is skipped.
Invariant: the tags of the roles that are open fire, no others.
Cost: a walk along the spine, once for each place.
"""

from __future__ import annotations

from collections.abc import Callable

from .choice import Alt
from .expression import EMPTY, Expr, Head, Mark, Seq, seq
from .interning import intern
from .tags import Tag, TagKind, close_tag

__all__ = ["at_end", "closed"]


def _closings(tail: Expr, last: Tag | None) -> tuple[list[Expr], Expr]:
    """The closing marks of what is open before `tail`, up to `last`, and what follows that one.

    Where readings part before the end of a role, its mark stands in each of them: the first one counts.
    """
    found: list[Expr] = []
    begun: list[str] = []  # roles that begin in the tail itself
    at = tail
    while True:
        part, after = (at.head, at.tail) if isinstance(at, Seq) else (at, EMPTY)
        if isinstance(part, Alt):
            way = next((item for item in part.items if _closes(item)), None)
            if way is not None:
                at = seq(way, after)
                continue
        elif isinstance(part, Mark):
            kind, role = part.tag.kind, part.tag.role
            if kind is TagKind.OPEN:
                begun.append(role)
            elif kind is TagKind.CLOSE and role in begun:
                begun.remove(role)
            elif kind is TagKind.CLOSE:
                found.append(part)
                if part.tag is last:
                    return found, after
        if after is EMPTY:
            return found, EMPTY
        at = after


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
        if not isinstance(at, Seq):
            return False
        at = at.tail


class AtEnd(Expr):
    """Nothing may follow but `ending`."""

    __slots__ = ("ending",)

    def __init__(self, ending: Expr) -> None:
        self.ending = ending

    def follow(self, tail: Expr) -> Expr:
        closing, _ = _closings(tail, None)
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
        closing, rest = _closings(tail, self.role)
        return seq(*closing, rest)

    def _find_heads(self) -> tuple[Head, ...]:
        return (((), None, self),)

    def measure(self, of: Callable[[Expr], int], spell: Callable[[bytes], int]) -> int:
        return 0

    def __repr__(self) -> str:
        return f"all closed in {self.role.role}"


def closed(role: str) -> Expr:
    found: Expr = intern(Closed, close_tag(role))
    return found
