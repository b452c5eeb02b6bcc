"""The end of the turn as a condition: what stands here may only be followed by the end.

In: what follows the turn in a parser's expression (a stop marker in text, or nothing). Out: `at_end`, an expression of
no width after which the rest of the turn is skipped: the roles that are open are closed, nothing but the end follows.
Invariant: the tags of the roles that are open fire, no others.
Cost: a walk along the spine, once for each place.
"""

from __future__ import annotations

from collections.abc import Callable

from .expression import Expr, Head, Mark, Seq, seq
from .interning import intern
from .tags import TagKind

__all__ = ["at_end"]


class AtEnd(Expr):
    """Nothing may follow but `ending`."""

    __slots__ = ("ending",)

    def __init__(self, ending: Expr) -> None:
        self.ending = ending

    def follow(self, tail: Expr) -> Expr:
        closing: list[Expr] = []
        at: Expr = tail
        while True:
            part = at.head if isinstance(at, Seq) else at
            if isinstance(part, Mark) and part.tag.kind is TagKind.CLOSE:
                closing.append(part)
            if not isinstance(at, Seq):
                return seq(*closing, self.ending)
            at = at.tail

    def _find_heads(self) -> tuple[Head, ...]:
        return (((), None, self),)

    def measure(self, of: Callable[[Expr], int], spell: Callable[[bytes], int]) -> int:
        return 0

    def __repr__(self) -> str:
        return "at end"


def at_end(ending: Expr) -> Expr:
    found: Expr = intern(AtEnd, ending)
    return found
