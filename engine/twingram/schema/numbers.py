"""Numbers within bounds.

In: schemas that hold together, and whether only integers are admitted. Out: the expression of the numbers that satisfy
`minimum`, `maximum`, their exclusive forms and `multipleOf`, in the format's spelling.

Integers are exact at any size and are written without a fraction. Multiples are exact, too; those of a number are
written without an exponent.
Cost: an automaton for each new pair of bounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from functools import reduce

from ..automaton.dfa import Dfa, difference, intersect, union
from ..automaton.expression import Expr, seq, text
from ..automaton.multiples import multiples_dfa
from ..automaton.numbers import integer_dfa, number_dfa
from ..automaton.regex import terminal_dfa
from ..errors import LimitExceeded
from ..limits import Limits
from .bounds import Bounds, bounds_of, quantity
from .forms import Forms, both
from .keywords import PLAIN_SCALAR, Own
from .report import Refusal, Report
from .stated import Branch

__all__ = ["numbers"]

_BOUNDS = frozenset({"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"})
_FRACTION = r"-?(?:0|[1-9][0-9]{0,199})\.[0-9]*[1-9][0-9]*"
_MOST_GAPS = 8  # values that are left out by the bounds beside them


def numbers(kind: str, branch: Branch, forms: Forms, report: Report, limits: Limits) -> Expr | Refusal:
    """The numbers of a branch; `kind` is `integer` or `number`."""
    if all(schema.keys() <= PLAIN_SCALAR for schema, _ in branch):
        return forms.plain(kind)
    bounds = bounds_of(branch, report)
    step = _step(branch, report)
    fraction = any(Own.FRACTION in schema for schema, _ in branch)
    if fraction and kind == "integer":
        return Refusal(branch[0].path, "type", "an integer is no fraction")
    try:
        dfa = _within(kind, bounds, step, fraction, _excluded(branch), limits)
    except LimitExceeded as error:
        for schema, path in branch:
            for keyword in _BOUNDS & schema.keys():
                report.relax(path, keyword, f"it needs too large an automaton: {error}")
        return forms.plain(kind)
    before, after, terminal = forms.number
    shared = dfa if forms.writes_all_numbers else both(terminal, dfa, limits)
    if not shared.start:
        return Refusal(branch[0].path, _blamed(branch), f"no {kind} is within the bounds")
    return seq(before, text(shared), after)


def _within(
    kind: str, bounds: Bounds, step: Fraction | None, fraction: bool, excluded: list[Decimal], limits: Limits
) -> Dfa:
    if kind == "integer" or (step is not None and step.denominator == 1):
        if fraction:
            return union()
        dfa = _integers(bounds, None if step is None else step.numerator, limits)
    elif step is not None or fraction:
        shape = multiples_dfa(step, limits=limits) if step is not None else terminal_dfa(_FRACTION, limits=limits)
        dfa = intersect(number_dfa(*bounds, exponent=False, limits=limits), shape, limits=limits)
        if step is not None and fraction:
            dfa = intersect(dfa, terminal_dfa(_FRACTION, limits=limits), limits=limits)
    elif 0 < len(excluded) <= _MOST_GAPS:
        return union(*(number_dfa(*gap, limits=limits) for gap in _gaps(bounds, excluded)), limits=limits)
    else:
        dfa = number_dfa(*bounds, exponent=not excluded, limits=limits)
    away = union(*(number_dfa(value, False, value, False, exponent=False, limits=limits) for value in excluded))
    return difference(dfa, away, limits=limits)


def _integers(bounds: Bounds, step: int | None, limits: Limits) -> Dfa:
    low, low_open, high, high_open = bounds
    lowest = None if low is None else math.floor(low) + 1 if low_open else math.ceil(low)
    highest = None if high is None else math.ceil(high) - 1 if high_open else math.floor(high)
    return integer_dfa(lowest, highest, step, limits=limits)


def _gaps(bounds: Bounds, excluded: Iterable[Decimal]) -> Iterable[Bounds]:
    """The ranges between values that are left out."""
    low, low_open = bounds.low, bounds.low_open
    for value in sorted(set(excluded)):
        if (low is not None and value < low) or (bounds.high is not None and value > bounds.high):
            continue
        yield Bounds(low, low_open, value, True)
        low, low_open = value, True
    yield Bounds(low, low_open, bounds.high, bounds.high_open)


def _excluded(branch: Branch) -> list[Decimal]:
    values = (quantity(value) for schema, _ in branch for value in schema.get(Own.EXCLUDED, ()))
    return [value for value in values if value is not None]


def _step(branch: Branch, report: Report) -> Fraction | None:
    """What divides every number that is admitted; None if nothing is asked."""
    steps = []
    for schema, path in branch:
        if "multipleOf" not in schema:
            continue
        value: Decimal | None = quantity(schema["multipleOf"])
        if value is None or value <= 0:
            report.malformed(path, "multipleOf", "a number above zero")
        else:
            steps.append(Fraction(value))
    return reduce(_together, steps) if steps else None


def _together(one: Fraction, other: Fraction) -> Fraction:
    """The least common multiple."""
    return Fraction(math.lcm(one.numerator, other.numerator), math.gcd(one.denominator, other.denominator))


def _blamed(branch: Branch) -> str:
    for keyword in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"):
        if any(keyword in schema for schema, _ in branch):
            return keyword
    return "type"
