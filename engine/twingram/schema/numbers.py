"""Numbers within bounds.

In: schemas that hold together, and whether only integers are admitted. Out: the expression of the numbers that satisfy
`minimum`, `maximum`, their exclusive forms and `multipleOf`, in the format's spelling.

Integers are exact at any size and are written without a fraction. `multipleOf` of a non-integer number is held where
it is a whole number: the value is then written as an integer, which is reported.
Cost: an automaton for each new pair of bounds.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

from ..automaton.dfa import Dfa
from ..automaton.expression import Expr, seq, text
from ..automaton.numbers import integer_dfa, number_dfa
from ..errors import LimitExceeded
from ..limits import Limits
from .bounds import Bounds, bounds_of, quantity
from .forms import Forms, both
from .keywords import PLAIN_SCALAR
from .report import Refusal, Report
from .stated import Branch

__all__ = ["numbers"]

_BOUNDS = frozenset({"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"})


def numbers(kind: str, branch: Branch, forms: Forms, report: Report, limits: Limits) -> Expr | Refusal:
    """The numbers of a branch; `kind` is `integer` or `number`."""
    if all(schema.keys() <= PLAIN_SCALAR for schema, _ in branch):
        return forms.plain(kind)
    bounds = bounds_of(branch, report)
    step = _step(kind, branch, report)
    if step is not None:
        kind = "integer"
    try:
        dfa = _within(kind, bounds, step, limits)
    except LimitExceeded as error:
        for schema, path in branch:
            for keyword in _BOUNDS & schema.keys():
                report.relax(path, keyword, f"it needs too large an automaton: {error}")
        return forms.plain(kind)
    before, after, terminal = forms.number
    shared = both(terminal, dfa, limits)
    if not shared.start:
        return Refusal(branch[0].path, _blamed(branch), f"no {kind} is within the bounds")
    return seq(before, text(shared), after)


def _within(kind: str, bounds: Bounds, step: int | None, limits: Limits) -> Dfa:
    low, low_open, high, high_open = bounds
    if kind == "number":
        return number_dfa(low, low_open, high, high_open, limits=limits)
    lowest = None if low is None else math.floor(low) + 1 if low_open else math.ceil(low)
    highest = None if high is None else math.ceil(high) - 1 if high_open else math.floor(high)
    return integer_dfa(lowest, highest, step, limits=limits)


def _step(kind: str, branch: Branch, report: Report) -> int | None:
    """What divides every integer that is admitted; None if nothing is asked."""
    steps = []
    for schema, path in branch:
        if "multipleOf" not in schema:
            continue
        value: Decimal | None = quantity(schema["multipleOf"])
        if value is None or value <= 0:
            report.malformed(path, "multipleOf", "a number above zero")
            continue
        part = Fraction(value)
        if kind == "integer" or part.denominator == 1:
            steps.append(part.numerator)  # an integer is a multiple of p/q in lowest terms if p divides it
            if kind == "number":
                report.narrow(path, "multipleOf", "the number is written as an integer")
        else:
            report.relax(path, "multipleOf", "multiples of a fraction are not told apart among non-integers")
    return math.lcm(*steps) if steps else None


def _blamed(branch: Branch) -> str:
    for keyword in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"):
        if any(keyword in schema for schema, _ in branch):
            return keyword
    return "type"
