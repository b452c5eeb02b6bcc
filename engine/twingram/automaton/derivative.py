"""Derivatives: an expression and a symbol give what may still follow.

In: an expression, a symbol. Out: the ordered readings `(tags before the symbol, tags after it, rest)`, kept at the
expression, which is what makes the automaton lazy: nothing is derived twice.
Invariant: neighbours with equal tags are one reading: they differ in what may follow, not in what has been read. Tags
at the front of a rest have been taken off it: they fire with the symbol.
Cost: the heads that can read the symbol; afterwards one look-up.

Source: as for `expression.py`; S. Owens et al., "Regular-expression derivatives re-examined" (2009), for keeping them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from .bound import Bound, begins, bound, either
from .choice import Alt, alt
from .expression import Expr, seq
from .hoist import hoist
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
    bit = 1 << sym
    if isinstance(expr, Bound):
        return _derive_bound(expr, sym)
    if isinstance(expr, Alt) and expr.binding:
        return _merged(reading for item in expr.items for reading in derive(item, sym))
    return _merged(
        (early, *_hoisted(seq(leaf.after(sym), tail)))
        for early, leaf, tail in expr.heads()
        if leaf is not None and leaf.first & bit
    )


def _derive_bound(expr: Bound, sym: int) -> tuple[Derived, ...]:
    """Where no placeholder reads the symbol, as the base does, which was worked out once for all."""
    env, bit = expr.env, 1 << sym
    places = begins(expr.base)[1]
    if not places or not any(begins(env.places[at])[0] & bit for at in places if at in env.places):
        return tuple([(early, late, bound(rest, env)) for early, late, rest in derive(expr.base, sym)])
    out = []
    for early, leaf, tail, _ in expr.meanings():
        if leaf is not None and leaf.first & bit:
            late, rest = _hoisted(seq(leaf.after(sym), tail))
            out.append((early, late, bound(rest, env)))
    return _merged(out)


def _merged(readings: Iterable[Derived]) -> tuple[Derived, ...]:
    out: list[Derived] = []
    for early, late, rest in readings:
        if out and out[-1][0] == early and out[-1][1] == late:
            both = (out[-1][2], rest)
            out[-1] = (early, late, either(both) if rest.binding or both[0].binding else alt(both))
        else:
            out.append((early, late, rest))
    return tuple(out)


def _hoisted(expr: Expr) -> tuple[tuple[Tag, ...], Expr]:
    """Tags that stand first in any case, taken off the front."""
    late, rest = hoist(expr)
    if not isinstance(rest, Bound):
        return late, rest
    more, base = hoist(rest.base)
    return (*late, *more), bound(base, rest.env)
