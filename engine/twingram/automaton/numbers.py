"""Number ranges as byte automata.

In: bounds. Out: the automaton of the numbers within them, as JSON writes them in ASCII: no leading zeros, no `+`, no
bare point, and no `-0` standing alone.

Method: a number is read digit by digit beside the digits of its bounds; a state remembers how many digits there were
and whether they are still equal to a bound's, greater or less. Magnitudes are built apart for either sign.
Cost: linear in the digits of the bounds; a multiple costs that many states. Bounds may have any size within
`Limits.automaton_states`. Results are kept.

What is exact, and what is narrowed:
* `integer_dfa`: exact, for bounds and multiples of any size that the limit admits.
* `number_dfa`, decimals without exponent: exact for inclusive bounds (`5`, `5.0`, `4.990` under a maximum of 5). A
  non-integer has at most 200 digits before its point, so with its exponent it is finite.
* An exclusive bound is moved to the next double, in its shortest decimal form, because readers compare doubles: what
  would round onto the bound is left out. Beside zero it is moved to 1e-200.
* Exponents have one or two digits. Where nothing but the sign is bounded they may follow any decimal; under other
  bounds only `d.ddd` with a leading digit that is not zero (as printers of numbers write it), exact for the bounds.
* `-0.0` is written only where numbers below zero are admitted.
"""

from __future__ import annotations

import math
from decimal import Decimal
from functools import partial

from ..limits import DEFAULT_LIMITS, Limits
from .decimals import LONGEST, plain, scientific
from .dfa import Dfa, check_states, from_draft, intersect, literals, union
from .digits import ABOVE, BELOW, EQUAL, MINUS, ZERO, Build, Magnitude, Range, sign_ranges, spans
from .kept import kept
from .runs import EMPTY_DRAFT, Draft, Row, merge_runs, number

__all__ = ["integer_dfa", "number_dfa"]

_LISTED = 2000  # multiples in a range up to which they are listed one by one


@kept
def integer_dfa(
    minimum: int | None, maximum: int | None, multiple_of: int | None = None, *, limits: Limits = DEFAULT_LIMITS
) -> Dfa:
    """The integers from `minimum` to `maximum`, both included, that `multiple_of` divides."""
    if minimum is not None and maximum is not None and minimum > maximum:
        return from_draft(EMPTY_DRAFT, minimal=True)
    step = 1 if multiple_of is None else abs(multiple_of)
    if step == 0:
        raise ValueError("multiple_of is not zero")
    if step > 1 and minimum is not None and maximum is not None and (maximum - minimum) // step <= _LISTED:
        numbers = range(-(-minimum // step) * step, maximum + 1, step)
        return literals((f"{Decimal(number):f}".encode() for number in numbers), limits=limits)
    if step > 1 and minimum is None and maximum is None:
        return _multiples(step, limits)
    found = _integers(minimum, maximum, limits)
    return found if step == 1 else intersect(found, _multiples(step, limits), limits=limits)


def _integers(minimum: int | None, maximum: int | None, limits: Limits) -> Dfa:
    build = Build(limits)
    start = build.state("start")
    low, high = sign_ranges(
        None if minimum is None else Decimal(minimum), None if maximum is None else Decimal(maximum)
    )
    if high is not None:
        _Whole(build, high).read(start, zero=True)
    if low is not None:
        sign = build.state("sign")
        build.move(start, MINUS, MINUS, sign)
        _Whole(build, low).read(sign, zero=False)
    return build.finish(start)


class _Whole:
    """Digits beside those of both bounds: `above` compares with the lower one, `below` with the upper one."""

    def __init__(self, build: Build, magnitudes: Range) -> None:
        self.build = build
        self.low = Magnitude.of(magnitudes[0]).whole
        self.high = None if magnitudes[1] is None else Magnitude.of(magnitudes[1]).whole
        self.longest = max(len(self.low), len(self.high or "")) + 1

    def read(self, root: int, *, zero: bool) -> None:
        if zero and not self.low:
            state = self.build.state("zero")
            self.build.accept[state] = 1
            self.build.digits(root, 0, 0, state)
        self._digits(root, 0, EQUAL, EQUAL, 1)

    def _digits(self, source: int, count: int, above: int, below: int, least: int) -> None:
        size = min(count + 1, self.longest)
        above = ABOVE if size > len(self.low) else above
        below = BELOW if self.high is None else below
        for first, last, over, under in spans(least, above, self.low, below, self.high or "", count):
            if self.high is None or size < len(self.high) or (size == len(self.high) and under != ABOVE):
                then = partial(self._after, size, over, under)
                self.build.digits(source, first, last, self.build.state(self, size, over, under, then=then))

    def _after(self, size: int, above: int, below: int, state: int) -> None:
        self.build.accept[state] = int(size >= len(self.low) and above != BELOW)
        self._digits(state, size, above, below, 0)


def _multiples(step: int, limits: Limits) -> Dfa:
    """All integers that `step` divides; a state is a remainder."""
    check_states(step, limits)
    rows: list[Row] = [()]
    for rest in range(step):
        rows.append(merge_runs([(ZERO + d, ZERO + d, 1 + (rest * 10 + d) % step) for d in range(10)]))
    first = [(ZERO + d, ZERO + d, 1 + d % step) for d in range(1, 10)]
    zero, sign, start = step + 1, step + 2, step + 3
    rows += [(), merge_runs(first), merge_runs([(MINUS, MINUS, sign), (ZERO, ZERO, zero), *first])]
    accept = [0, 1, *[0] * (step - 1), 1, 0, 0]
    draft = Draft(rows, accept, [0] + [1] * (len(rows) - 1), start)
    if math.gcd(step, 10) == 1:  # any remainder can be completed, each by digits of its own: no two states are alike
        return from_draft(number(draft), minimal=True)
    return from_draft(draft)


@kept
def number_dfa(
    minimum: Decimal | None = None,
    exclusive_min: bool = False,
    maximum: Decimal | None = None,
    exclusive_max: bool = False,
    *,
    exponent: bool = True,
    limits: Limits = DEFAULT_LIMITS,
) -> Dfa:
    """The finite JSON numbers within the bounds; `exponent` says whether exponents may be written."""
    for bound in (minimum, maximum):
        _check_bound(bound, limits)
    if minimum is not None and exclusive_min:
        minimum = _beside(minimum, up=True)
    if maximum is not None and exclusive_max:
        maximum = _beside(maximum, up=False)
    if minimum is not None and maximum is not None and minimum > maximum:
        return from_draft(EMPTY_DRAFT, minimal=True)
    below_zero, others = sign_ranges(minimum, maximum)
    parts = []
    for magnitudes, negative in ((below_zero, True), (others, False)):
        if magnitudes is not None:
            bounded = magnitudes != (Decimal(0), None)
            parts.append(plain(magnitudes, negative, exponent and not bounded, limits))
            if exponent and bounded:
                parts.append(scientific(magnitudes, negative, limits))
    return union(*parts, limits=limits)


def _check_bound(bound: Decimal | None, limits: Limits) -> None:
    if bound is not None:
        if not bound.is_finite():
            raise ValueError("a bound is a finite number")
        check_states(abs(bound.adjusted()) + len(bound.as_tuple().digits), limits)


def _beside(bound: Decimal, *, up: bool) -> Decimal:
    """The inclusive bound that stands for an exclusive one: the next double beyond it, in its shortest form."""
    if bound == 0:
        return Decimal((0 if up else 1, (1,), -LONGEST))
    try:
        nearest = float(bound)
    except OverflowError:
        nearest = math.inf
    step = math.nextafter(nearest, math.inf if up else -math.inf)
    if math.isinf(nearest) or math.isinf(step):  # out there are integers only
        whole = math.floor(bound) + 1 if up else math.ceil(bound) - 1
        return Decimal(whole)
    if bound != Decimal(repr(nearest)) and (nearest > bound if up else nearest < bound):
        return Decimal(repr(nearest))
    return Decimal(repr(step))
