"""Numbers as text: which prefixes can still become an admitted number.

In: bounds of a JSON Schema and a prefix. Out: yes or no, by arithmetic on exact fractions: a prefix stands for
intervals of values, and an interval either meets the bounds or does not.

One spelling: integers are `0` or `-?[1-9][0-9]*`; other numbers have a fraction, an exponent of one or two digits, or
both, and a bounded number of integer digits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from .matcher import Piece, Symbol

__all__ = ["NumberRange", "Numeral", "exact"]

_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_OTHER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,2})?")
_WITH_EXPONENT = re.compile(r"(-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?[eE])([+-]?)([0-9]{0,2})")
_WITH_POINT = re.compile(r"-?(0|[1-9][0-9]*)\.([0-9]*)")
_DIGITS = "0123456789"


def exact(number: float | Decimal) -> Fraction:
    """The value that the shortest text of a number stands for."""
    return Fraction(repr(number)) if isinstance(number, float) else Fraction(number)


@dataclass(frozen=True)
class NumberRange:
    integer: bool = False
    low: Fraction | None = None
    high: Fraction | None = None
    open_low: bool = False
    open_high: bool = False
    multiple: int | None = None  # integers only
    max_digits: int = 200
    exponent: bool = True

    def holds(self, value: Fraction) -> bool:
        if self.low is not None and (value < self.low or (self.open_low and value == self.low)):
            return False
        if self.high is not None and (value > self.high or (self.open_high and value == self.high)):
            return False
        return self.multiple is None or value % self.multiple == 0

    def meets(self, low: Fraction, high: Fraction) -> bool:
        """Whether some number between both (ends included) with finitely many digits is in range."""
        if self.low is not None and (high < self.low or (self.open_low and high == self.low)):
            return False
        return not (self.high is not None and (low > self.high or (self.open_high and low == self.high)))

    def meets_half_open(self, near: Fraction, far: Fraction) -> bool:
        """The same for the values from `near` up to, but without, `far` (which may be the lower one)."""
        if not self.meets(min(near, far), max(near, far)):
            return False
        return not (far == self.low if far > near else far == self.high)

    def has_integer(self, low: int, high: int) -> bool:
        if self.low is not None:
            low = max(low, -((-self.low) // 1) if not self.open_low else self.low // 1 + 1)
        if self.high is not None:
            high = min(high, self.high // 1 if not self.open_high else -((-self.high) // 1) - 1)
        step = self.multiple or 1
        return -(-low // step) * step <= high

    @property
    def span(self) -> int:
        """More digits than any bound has."""
        sizes = [len(str(abs(int(b)))) for b in (self.low, self.high) if b is not None]
        return max(sizes, default=0) + len(str(self.multiple or 1)) + 2

    def scaled(self, power: int) -> NumberRange:
        """The range of the mantissas that an exponent brings into this range."""
        factor = Fraction(10) ** -power
        return NumberRange(
            low=None if self.low is None else self.low * factor,
            high=None if self.high is None else self.high * factor,
            open_low=self.open_low,
            open_high=self.open_high,
            max_digits=self.max_digits,
        )


@lru_cache(maxsize=100_000)
def complete(text: str, bounds: NumberRange) -> bool:
    if _INTEGER.fullmatch(text):
        return bounds.holds(Fraction(int(text)))
    found = _OTHER.fullmatch(text)
    if found is None or bounds.integer or text == "-0" or len(found[1]) > bounds.max_digits:
        return False
    if found[3] and not bounds.exponent:
        return False
    return bounds.multiple is None and bounds.holds(Fraction(text))


@lru_cache(maxsize=100_000)
def viable(prefix: str, bounds: NumberRange) -> bool:
    """Whether the prefix, itself included, can become an admitted number."""
    if prefix in ("", "-"):
        return any(viable(prefix + char, bounds) for char in _DIGITS + ("" if prefix else "-"))
    if complete(prefix, bounds):
        return True
    if found := _WITH_EXPONENT.fullmatch(prefix):
        return _exponent_viable(found[1], found[2], found[3], bounds)
    if found := _WITH_POINT.fullmatch(prefix):
        return _mantissa_viable(prefix, len(found[1]), found[2], bounds)
    if not re.fullmatch(r"-?(0|[1-9][0-9]*)", prefix):
        return False
    return _integer_viable(prefix, bounds) or _digits_viable(prefix, bounds)


def _exponent_viable(head: str, sign: str, digits: str, bounds: NumberRange) -> bool:
    signs = [sign] if sign or digits else ["", "+", "-"]
    tails = ["", *_DIGITS, *(f"{n:02}" for n in range(100))]
    return any(
        complete(head + s + digits + tail, bounds) for s in signs for tail in tails if len(digits + tail) in (1, 2)
    )


def _powers(bounds: NumberRange, room: int = 0) -> range:
    """The powers of ten that may still stretch a mantissa: an exponent, or `room` further digits before the point."""
    return range(-99, 100 + room) if bounds.exponent else range(room + 1)


def _mantissa_viable(prefix: str, digits: int, fraction: str, bounds: NumberRange) -> bool:
    if bounds.integer or bounds.multiple is not None or digits > bounds.max_digits:
        return False
    near = Fraction(prefix + "0")
    far = near + Fraction(1, 10 ** len(fraction)) * (-1 if prefix[0] == "-" else 1)
    return any(bounds.scaled(power).meets_half_open(near, far) for power in _powers(bounds))


def _integer_viable(prefix: str, bounds: NumberRange) -> bool:
    if prefix in ("0", "-0"):
        return prefix == "0" and bounds.holds(Fraction(0))
    value = abs(int(prefix))
    for more in range(bounds.span + 1):
        low, high = value * 10**more, (value + 1) * 10**more - 1
        if bounds.has_integer(*((-high, -low) if prefix[0] == "-" else (low, high))):
            return True
    return False


def _digits_viable(prefix: str, bounds: NumberRange) -> bool:
    """A run of digits that becomes the integer part of a number with a fraction or an exponent."""
    digits = prefix.lstrip("-")
    room = bounds.max_digits - len(digits)
    if bounds.integer or bounds.multiple is not None or room < 0:
        return False
    if bounds.low is None and bounds.high is None:
        return True
    near = Fraction(int(prefix))
    far = near + (-1 if prefix[0] == "-" else 1)
    powers = _powers(bounds, room if digits != "0" else 0)
    return any(bounds.scaled(power).meets_half_open(near, far) for power in powers)


class Numeral(Piece):
    """A number in the making."""

    __slots__ = ("bounds", "text")

    def __init__(self, bounds: NumberRange, text: str = "") -> None:
        self.bounds, self.text = bounds, text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Numeral) and self.text == other.text and self.bounds == other.bounds

    def __hash__(self) -> int:
        return hash((self.bounds, self.text))

    def satisfiable(self) -> bool:
        return viable(self.text, self.bounds)

    def may_end(self) -> bool:
        return complete(self.text, self.bounds)

    def step(self, symbol: Symbol) -> Piece | None:
        if isinstance(symbol, str) or chr(symbol) not in "+-.eE0123456789":
            return None
        longer = self.text + chr(symbol)
        return Numeral(self.bounds, longer) if viable(longer, self.bounds) else None
