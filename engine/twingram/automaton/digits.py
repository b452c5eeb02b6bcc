"""Reading digits beside the digits of a bound: what the automata of `numbers` and `decimals` are made of.

In: magnitudes as decimals. Out: their digits (`Magnitude`), how a next digit compares with theirs (`spans`), and
`Build`, which makes rows of states that are named by what they remember.
Invariant: exact at any size; nothing passes through floating point or a decimal context.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import NamedTuple

from ..limits import Limits
from .dfa import Dfa, check_states, from_draft
from .runs import Draft, Run, merge_runs

__all__ = ["ABOVE", "BELOW", "EQUAL", "MINUS", "NINE", "POINT", "ZERO", "Build", "Magnitude", "Range", "sign_ranges",
           "spans"]  # fmt: skip

ZERO, NINE, POINT, MINUS = 0x30, 0x39, 0x2E, 0x2D
EQUAL, ABOVE, BELOW = 0, 1, 2  # the digits so far, beside as many of a bound's

Range = tuple[Decimal, Decimal | None]
"""Magnitudes from the first to the second (None: without end), both included."""


class Magnitude(NamedTuple):
    """The digits of a number that is not negative: `whole` without leading zeros, `part` without trailing ones."""

    whole: str
    part: str

    @classmethod
    def of(cls, value: Decimal) -> Magnitude:
        _, digits, exponent = value.as_tuple()
        text, shift = "".join(map(str, digits)).lstrip("0"), int(exponent)
        if shift >= 0:
            return cls(text + "0" * shift if text else "", "")
        text = text.rjust(-shift, "0")
        return cls(text[:shift], text[shift:].rstrip("0"))


def _compare(order: int, digit: int, beside: str, at: int) -> int:
    """The order after one more digit, which stands beside `beside[at]`; after its end, zeros are meant."""
    if order != EQUAL:
        return order
    other = int(beside[at]) if at < len(beside) else 0
    return EQUAL if digit == other else ABOVE if digit > other else BELOW


def spans(first: int, above: int, low: str, below: int, high: str, at: int) -> list[tuple[int, int, int, int]]:
    """The digits first..9 in runs of one outcome: (from, to, order beside `low`, order beside `high`)."""
    if EQUAL not in (above, below):
        return [(first, 9, above, below)]
    found: list[tuple[int, int, int, int]] = []
    for digit in range(first, 10):
        over, under = _compare(above, digit, low, at), _compare(below, digit, high, at)
        if found and found[-1][2:] == (over, under):
            digit_from = found.pop()[0]
        else:
            digit_from = digit
        found.append((digit_from, digit, over, under))
    return found


def sign_ranges(minimum: Decimal | None, maximum: Decimal | None) -> tuple[Range | None, Range | None]:
    """The magnitudes of the numbers below zero, and of the others; None where there are none.

    With bounds on both sides of zero or none, zero is among the former too: `-0.5` begins like `-0`.
    """
    zero = Decimal(0)
    negative: Range | None = None
    positive: Range | None = None
    if minimum is None or minimum < 0:
        largest = None if minimum is None else minimum.copy_abs()
        negative = (zero if maximum is None or maximum >= 0 else maximum.copy_abs(), largest)
    if maximum is None or maximum >= 0:
        positive = (zero if minimum is None or minimum <= 0 else minimum, maximum)
    return negative, positive


class Build:
    """Rows in the making. A state is made once for each memory; `then` adds its moves when its turn comes."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.rows: list[list[Run]] = [[]]
        self.accept = [0]
        self._names: dict[tuple[object, ...], int] = {}
        self._todo: list[tuple[Callable[[int], None], int]] = []

    def state(self, *memory: object, then: Callable[[int], None] | None = None) -> int:
        name = self._names.get(memory)
        if name is None:
            name = self._names[memory] = len(self.rows)
            check_states(name, self.limits)
            self.rows.append([])
            self.accept.append(0)
            if then is not None:
                self._todo.append((then, name))
        return name

    def move(self, source: int, low: int, high: int, target: int) -> None:
        self.rows[source].append((low, high, target))

    def digits(self, source: int, first: int, last: int, target: int) -> None:
        self.rows[source].append((ZERO + first, ZERO + last, target))

    def letter_e(self, source: int, target: int) -> None:
        self.rows[source] += [(0x45, 0x45, target), (0x65, 0x65, target)]

    def finish(self, start: int) -> Dfa:
        for then, name in self._todo:
            then(name)
        rows = [merge_runs(sorted(row)) for row in self.rows]
        return from_draft(Draft(rows, self.accept, [0] + [1] * (len(rows) - 1), start))
