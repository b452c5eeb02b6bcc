"""Decimal numbers of bounded magnitude, with a point, an exponent, or neither.

In: a range of magnitudes and a sign. Out: the automaton of their spellings: `plain` for decimals (with any exponent as
well where the magnitude is not bounded), `scientific` for `d.ddde+dd` under bounds.
Invariant: exact for the bounds. Before a point stand at most `LONGEST` digits, an exponent has one or two: so every
number is finite. An integer without point and exponent may have any length.
Cost: linear in the digits of the bounds and in `LONGEST`.
"""

from __future__ import annotations

from decimal import Decimal
from functools import partial

from ..limits import Limits
from .dfa import Dfa
from .digits import ABOVE, BELOW, EQUAL, MINUS, NINE, POINT, ZERO, Build, Magnitude, Range, spans

__all__ = ["LONGEST", "plain", "scientific"]

LONGEST = 200
_LAST_POWER = 99


def _root(build: Build, negative: bool) -> tuple[int, int]:
    """The start, and the state behind the sign."""
    start = build.state("start")
    if not negative:
        return start, start
    sign = build.state("sign")
    build.move(start, MINUS, MINUS, sign)
    return start, sign


def plain(magnitudes: Range, negative: bool, exponent: bool, limits: Limits) -> Dfa:
    """Decimals within the range; `exponent` allows one behind any of them (for unbounded ranges)."""
    build = Build(limits)
    start, sign = _root(build, negative)
    _Plain(build, magnitudes, negative, exponent).read(sign)
    return build.finish(start)


class _Plain:
    """Digits before the point, then those behind it, each beside the digits of both bounds.

    `above` compares with the lower bound, `below` with the upper one.
    """

    def __init__(self, build: Build, magnitudes: Range, negative: bool, exponent: bool) -> None:
        self.build, self.negative = build, negative
        self.low = Magnitude.of(magnitudes[0])
        self.high = None if magnitudes[1] is None else Magnitude.of(magnitudes[1])
        self.longest = max(len(self.low.whole), len(self.high.whole) if self.high else 0, LONGEST) + 1
        self.power = self._any_power() if exponent else 0

    def _any_power(self) -> int:
        build = self.build
        letter, sign, one, two = (build.state("power", place) for place in range(4))
        for source in (letter, sign):
            build.move(source, ZERO, NINE, one)
        build.move(letter, 0x2B, 0x2B, sign)
        build.move(letter, MINUS, MINUS, sign)
        build.move(one, ZERO, NINE, two)
        build.accept[one] = build.accept[two] = 1
        return letter

    def read(self, root: int) -> None:
        above = BELOW if self.low.whole else EQUAL
        below = EQUAL if self.high is not None and not self.high.whole else BELOW
        zero = self.build.state("whole", 0, above, below, then=partial(self._after_whole, 0, above, below))
        self.build.digits(root, 0, 0, zero)
        self._digits(root, 0, EQUAL, EQUAL, 1)

    def _digits(self, source: int, count: int, above: int, below: int, least: int) -> None:
        low, high = self.low.whole, self.high.whole if self.high else None
        size = min(count + 1, self.longest)
        above = ABOVE if size > len(low) else above
        below = BELOW if high is None else below
        for first, last, over, under in spans(least, above, low, below, high or "", count):
            if high is None or size < len(high) or (size == len(high) and under != ABOVE):
                then = partial(self._after_whole, size, over, under)
                self.build.digits(source, first, last, self.build.state("whole", size, over, under, then=then))

    def _after_whole(self, size: int, above: int, below: int, state: int) -> None:
        """`size` digits stand before the point, 0 for a zero."""
        if size:
            self._digits(state, size, above, below, 0)
        if size < len(self.low.whole):
            above = BELOW
        if self.high is not None and size < len(self.high.whole):
            below = BELOW
        if above == BELOW:
            return
        if size or not self.negative:
            self.build.accept[state] = int(above == ABOVE or not self.low.part)
        if size <= LONGEST:
            then = partial(self._after_point, -1, above, below)
            self.build.move(state, POINT, POINT, self.build.state("part", -1, above, below, then=then))
            if self.power:
                self.build.letter_e(state, self.power)

    def _after_point(self, count: int, above: int, below: int, state: int) -> None:
        """`count` digits stand behind the point, as far as they matter; -1 for none."""
        low, high = self.low.part, self.high.part if self.high else ""
        read = max(count, 0)
        if count >= 0:
            self.build.accept[state] = int(above == ABOVE or read >= len(low))
            if self.power:
                self.build.letter_e(state, self.power)
        for first, last, over, under in spans(0, above, low, below, high, read):
            if over == BELOW or under == ABOVE:
                continue
            matter = max(len(low) if over == EQUAL else 0, len(high) if under == EQUAL else 0)
            size = min(read + 1, matter)
            then = partial(self._after_point, size, over, under)
            self.build.digits(state, first, last, self.build.state("part", size, over, under, then=then))


def scientific(magnitudes: Range, negative: bool, limits: Limits) -> Dfa:
    """`d.ddde+dd` within the range, the first digit not zero."""
    build = Build(limits)
    start, sign = _root(build, negative)
    _Scientific(build, *magnitudes).read(sign)
    return build.finish(start)


class _Scientific:
    """Digits beside the significant digits of both bounds; then the powers that these digits admit."""

    def __init__(self, build: Build, low: Decimal, high: Decimal | None) -> None:
        self.build = build
        self.low, self.least = _significant(low) if low else ("", -_LAST_POWER - 1)
        self.high, self.most = _significant(high) if high else ("", _LAST_POWER + 1 if high is None else -_LAST_POWER)

    def read(self, root: int) -> None:
        self._digits(root, 0, EQUAL, EQUAL, 1)

    def _digits(self, source: int, count: int, above: int, below: int, least: int) -> None:
        for first, last, over, under in spans(least, above, self.low, below, self.high, count):
            matter = max(len(self.low) if over == EQUAL else 0, len(self.high) if under == EQUAL else 0, 2)
            size = min(count + 1, matter)
            then = partial(self._after_digit, size, over, under)
            self.build.digits(source, first, last, self.build.state("digits", size, over, under, then=then))

    def _after_digit(self, count: int, above: int, below: int, state: int) -> None:
        build = self.build
        if count == 1:
            point = build.state("point", above, below)
            build.move(state, POINT, POINT, point)
            self._digits(point, 1, above, below, 0)
        else:
            self._digits(state, count, above, below, 0)
        short = above == BELOW or (above == EQUAL and count < len(self.low))
        least = max(self.least + short, -_LAST_POWER)
        most = min(self.most - (below == ABOVE), _LAST_POWER)
        if least <= most:
            build.letter_e(state, build.state("powers", least, most, then=partial(self._powers, least, most)))

    def _powers(self, least: int, most: int, state: int) -> None:
        """Adds every spelling of the powers least..most."""
        self._listed(state, range(max(least, 0), most + 1))
        for sign, sizes in ((0x2B, range(max(least, 0), most + 1)), (MINUS, range(max(-most, 0), -least + 1))):
            if sizes:
                signed = self.build.state("signed", sign, sizes.start, sizes.stop)
                if not self.build.rows[signed]:
                    self._listed(signed, sizes)
                self.build.move(state, sign, sign, signed)

    def _listed(self, state: int, sizes: range) -> None:
        """Adds one or two digits whose value is in `sizes`, which lies within 0..99."""
        end = self.build.state("end")
        self.build.accept[end] = 1
        for first in range(10):
            alone = first in sizes
            seconds = [second for second in range(10) if first * 10 + second in sizes]
            if alone or seconds:
                after = self.build.state("first", alone, *seconds)
                self.build.accept[after] = int(alone)
                self.build.rows[after] = [(ZERO + second, ZERO + second, end) for second in seconds]
                self.build.digits(state, first, first, after)


def _significant(value: Decimal) -> tuple[str, int]:
    """(digits without zeros around them, power of ten of the first), of a number that is not zero."""
    return "".join(map(str, value.as_tuple().digits)).strip("0"), value.adjusted()
