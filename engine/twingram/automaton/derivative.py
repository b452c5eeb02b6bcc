"""Derivatives: an expression and a symbol give what may still follow.

In: an expression, a symbol. Out: the ordered readings `(tags before the symbol, tags after it, rest)`, kept at the
expression, which is what makes the automaton lazy: nothing is derived twice.
Invariant: neighbours with equal tags are one reading: they differ in what may follow, not in what has been read. Tags
at the front of a rest have been taken off it: they fire with the symbol.
Cost: the heads that can read the symbol; afterwards one look-up.

Source: as for `expression.py`; S. Owens et al., "Regular-expression derivatives re-examined" (2009), for keeping them.
"""

from __future__ import annotations

from typing import TypeAlias

from .choice import alt
from .expression import Expr, hoist, seq
from .tags import Tag

__all__ = ["Derived", "derive"]

Derived: TypeAlias = "tuple[tuple[Tag, ...], tuple[Tag, ...], Expr]"


def derive(expr: Expr, sym: int) -> tuple[Derived, ...]:
    """What is left of `expr` after `sym`, one item for each reading, the preferred one first."""
    known = expr.derived
    if known is None:
        known = expr.derived = {}
    found: tuple[Derived, ...] | None = known.get(sym)
    if found is None:
        found = known[sym] = _derive(expr, sym)
    return found


def _derive(expr: Expr, sym: int) -> tuple[Derived, ...]:
    out: list[Derived] = []
    bit = 1 << sym
    for early, leaf, tail in expr.heads():
        if leaf is None or not leaf.first & bit:
            continue
        late, rest = hoist(seq(leaf.after(sym), tail))
        if out and out[-1][0] == early and out[-1][1] == late:
            out[-1] = (early, late, alt((out[-1][2], rest)))
        else:
            out.append((early, late, rest))
    return tuple(out)
