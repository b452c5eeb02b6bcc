"""Holes: placeholders in compiled rules, for what only a request or a schema knows.

In: a rule compiled with holes in the place of other rules. Out: its pieces around the holes (`cut`), or the whole with
the holes filled (`automaton.capture.replaced`).
Invariant: no expression that is derived from holds a hole.
Cost: one walk along the rule's row.
"""

from __future__ import annotations

from collections.abc import Callable

from ..automaton.expression import Expr, Seq, seq
from ..automaton.interning import intern

__all__ = ["Hole", "cut", "hole", "row_of"]


class Hole(Expr):
    """A placeholder; `cut` removes it before anything is derived."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def measure(self, of: Callable[[Expr], int], spell: Callable[[bytes], int]) -> int:
        return 0

    def __repr__(self) -> str:
        return f"_{self.name}_"


def hole(name: str) -> Expr:
    found: Expr = intern(Hole, name)
    return found


def cut(expr: Expr, *names: str) -> list[Expr]:
    """The pieces of a sequence around its holes, which must stand in the order of `names`."""
    pieces: list[Expr] = []
    row: list[Expr] = []
    wanted = list(names)
    at = expr
    while True:
        part = at.head if isinstance(at, Seq) else at
        if wanted and part is hole(wanted[0]):
            pieces.append(seq(*row))
            row = []
            wanted.pop(0)
        else:
            row.append(part)
        if not isinstance(at, Seq):
            break
        at = at.tail
    if wanted:
        raise ValueError(f"the parts {', '.join(names)} do not stand in a plain row")
    return [*pieces, seq(*row)]


def row_of(expr: Expr) -> list[Expr]:
    """The parts of a sequence."""
    row: list[Expr] = []
    while isinstance(expr, Seq):
        row.append(expr.head)
        expr = expr.tail
    return [*row, expr]
