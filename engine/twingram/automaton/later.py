"""Later: an expression that is put off until it is reached.

In: a function that gives an expression. Out: `Later`, which is that expression for all who read it. It is made when its
first symbol is asked for, or a number that nobody has told.
Invariant: the function gives the same expression each time, and never `NOTHING`.
Cost: nothing until then; who makes it keeps it.
"""

from __future__ import annotations

from collections.abc import Callable

from .expression import Expr, Head
from .interning import intern

__all__ = ["Later", "later"]


class Later(Expr):
    """What `make` gives. `least` is its shortest completion, and it opens no container; None: both are asked of it."""

    __slots__ = ("least", "make")

    def __init__(self, make: Callable[[], Expr], least: int | None) -> None:
        self.make, self.least = make, least

    def made(self) -> Expr:
        """The expression itself."""
        return self.make()

    def parts(self) -> tuple[Expr, ...]:
        return () if self.least is not None else (self.make(),)

    def measure(self, of: Callable[[Expr], int], spell: Callable[[bytes], int]) -> int:
        return of(self.make()) if self.least is None else self.least

    def climb(self, of: Callable[[Expr], int]) -> int:
        return of(self.make()) if self.least is None else 0

    def _find_heads(self) -> tuple[Head, ...]:
        return self.make().heads()

    def __repr__(self) -> str:
        return "..."


def later(make: Callable[[], Expr], least: int | None = None) -> Expr:
    """An expression that is put off. Equal ones are told by `make`, so the caller keeps one for each."""
    found: Expr = intern(Later, make, least)
    return found
