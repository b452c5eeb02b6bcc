"""Depth: how many containers may be open at once, so that a limit on nesting never leads into a dead end.

In: an expression, a limit. Out: its *peak*, the fewest containers that are open at once on some way to the end, those
that are open already included; and `Depth`, which says whether an expression can be ended within a limit.

Where every state that is let through has a peak within the limit, one of its symbols leads to such a state again: a
schema that nests can be followed down to the limit, and there the alternatives that need one container more are gone.
Invariant: `peak(expr) <= expr.nesting + slack`, where `slack` is the number of containers that a
request's schemas describe: a shortest way never opens one of them inside itself. So far from the limit nothing needs
to be looked at. Cost: one addition for a state, the parts of an expression once near the limit.

Source: D. E. Knuth, "A Generalization of Dijkstra's Algorithm" (1977): a peak is a superior function of its parts.
"""

from __future__ import annotations

from .bound import Bound, bound
from .choice import Alt, alt
from .expression import NOTHING, Expr
from .fold import fold

__all__ = ["Depth", "peak"]


def peak(root: Expr) -> int:
    """The fewest containers that are open at once on some way from here to the end."""
    if root._peak < 0:
        known: dict[Expr, int] = {}
        fold(root, known, _unknown_parts, lambda expr: _peak(expr, known))
    return root._peak


def _unknown_parts(expr: Expr) -> tuple[Expr, ...]:
    return expr.parts() if expr._peak < 0 else ()


def _peak(expr: Expr, known: dict[Expr, int]) -> int:
    if expr._peak < 0:
        expr._peak = expr.climb(known.__getitem__)
    return expr._peak


class Depth:
    """At most `most` open containers; `slack`: how many more than are open the nearest end needs at most."""

    __slots__ = ("calm", "most")

    def __init__(self, most: int, slack: int = 0) -> None:
        self.most, self.calm = most, most - slack

    def near(self, expr: Expr) -> bool:
        """Whether the limit is so near that ends may lie past it."""
        return expr.nesting > self.calm

    def fits(self, expr: Expr) -> bool:
        """Whether an end can be reached within the limit."""
        return expr.nesting <= self.calm or peak(expr) <= self.most

    def cut(self, expr: Expr) -> Expr:
        """What is left of an expression without the alternatives that do not fit."""
        if isinstance(expr, Bound):
            return bound(self.cut(expr.base), expr.env)
        if isinstance(expr, Alt):
            return alt(item for item in expr.items if self.fits(item))
        return expr if self.fits(expr) else NOTHING
