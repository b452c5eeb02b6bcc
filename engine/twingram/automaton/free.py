"""Placeholders that an expression asks for: those in it that nothing in it gives a meaning to.

In: an expression. Out: their bits, as one integer. What a recorder in a row gives a meaning to, what follows it there
does not ask for. A meaning of other placeholders makes no difference to an expression: leaving it away makes readings
one again that have parted and met.
Invariant: never too few. Cost: an operation or two for a new row in front of a known one.
"""

from __future__ import annotations

from .expression import Expr, Seq
from .fold import fold

__all__ = ["asked"]


def asked(expr: Expr) -> int:
    """The bits of the placeholders that have no meaning yet. Kept at the expression."""
    found = expr._asked
    if found >= 0:
        return found
    if isinstance(expr, Seq) and expr.head._asked >= 0 and expr.tail._asked >= 0:
        found = expr._asked = expr.head._asked | (expr.tail._asked & ~expr.head.gives)
        return found
    known: dict[Expr, int] = {}
    return fold(expr, known, _unknown_parts, lambda part: _asked(part, known))


def _unknown_parts(expr: Expr) -> tuple[Expr, ...]:
    return expr.parts() if expr._asked < 0 else ()


def _asked(expr: Expr, known: dict[Expr, int]) -> int:
    if expr._asked < 0:
        expr._asked = expr.ask(known.__getitem__)
    return expr._asked
