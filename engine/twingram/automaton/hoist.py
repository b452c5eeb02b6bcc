"""What stands first: tags that fire at once, and expressions that are put together only there.

In: an expression. Out: its first tags, and what is left of it when they have fired (`hoist`).
Invariants: what is left begins with no tag and with nothing that is put off, and nor does an alternative of a choice. A
`PutOff` may stand for what is made of a dozen others: before a long spine each of these costs a microsecond, and most
such places are looked at and not taken.
Cost: one step for each tag.
"""

from __future__ import annotations

from collections.abc import Callable

from .expression import EMPTY, Expr, Head, Mark, Seq
from .tags import LEVEL, Tag

__all__ = ["PutOff", "hoist", "opened"]


class PutOff(Expr):
    """Stands for `before(EMPTY)`, which takes its place as soon as it comes first."""

    __slots__ = ("_made",)

    _made: Expr | None

    def before(self, tail: Expr) -> Expr:
        """What it stands for, and then `tail`."""
        raise NotImplementedError

    @property
    def opening(self) -> Expr:
        """What that begins with."""
        raise NotImplementedError

    def made(self) -> Expr:
        """What it stands for, kept: what is known of that is known of this one object."""
        if self._made is None:
            self._made = self.before(EMPTY)
        return self._made

    def parts(self) -> tuple[Expr, ...]:
        return (self.made(),)

    def measure(self, of: Callable[[Expr], int], spell: Callable[[bytes], int]) -> int:
        return of(self.made())

    def climb(self, of: Callable[[Expr], int]) -> int:
        return of(self.made())

    def _find_heads(self) -> tuple[Head, ...]:
        return self.made().heads()


def opened(expr: Expr) -> Expr:
    """The expression, and what comes first in it put together."""
    while True:
        head = expr.head if isinstance(expr, Seq) else expr
        if not isinstance(head, PutOff):
            return expr
        expr = head.before(expr.tail if isinstance(expr, Seq) else EMPTY)


def hoist(expr: Expr) -> tuple[tuple[Tag, ...], Expr]:
    """Split off the tags that stand first in any case: they fire at once."""
    tags: list[Tag] = []
    while True:
        expr = opened(expr)
        head = expr.head if isinstance(expr, Seq) else expr
        if not isinstance(head, Mark):
            return tuple(tags), expr
        if head.tag is not LEVEL:
            tags.append(head.tag)
        if not isinstance(expr, Seq):
            return tuple(tags), EMPTY
        expr = expr.tail
