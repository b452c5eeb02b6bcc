"""JSON numbers that are surely finite: one regular language for those who read numbers and for those who mask them.

Whether a JSON number fits a double depends on the digits before its point and on its exponent together, which no finite
automaton weighs. `FINITE` settles for less: integers of any length; other numbers with at most 200 digits before the
point and an exponent of at most two digits or a negative one; with at most eight digits and an exponent below 300; and
one digit up to the largest double. Where text stands for a number or for a string, what is outside is a string, so that
reader and mask agree to the last digit.

Invariants: every number of it fits a double or is an integer; every double as Python prints it is in it, and so is
every number that a mask writes (`decimals`). Sign and leading zeros of exponents do not count as digits.
Cost: about 250 states, built once.

Source: RFC 8259, section 6; IEEE 754 binary64.
"""

from __future__ import annotations

import re

from .dfa import Dfa
from .regex import terminal_dfa

__all__ = ["FINITE", "finite_dfa", "is_finite"]

_LARGEST = "7976931348623157"  # the largest double is this between 1. and e308


def _below() -> str:
    """What may stand behind the point of 1.…e308."""
    smaller = [f"{_LARGEST[:at]}[0-{int(digit) - 1}][0-9]*" for at, digit in enumerate(_LARGEST)]
    beginnings = [_LARGEST[:length] for length in range(1, len(_LARGEST))]
    return "|".join((*smaller, *beginnings, f"{_LARGEST}0*"))


_WHOLE = r"0|[1-9][0-9]{{0,{}}}"
_FRACTION = r"(?:\.[0-9]+)?"
_POWER = r"[eE](?:-[0-9]+|\+?0*{})"
FINITE = "-?(?:{})".format(
    "|".join(
        (
            r"0|[1-9][0-9]*",
            rf"(?:{_WHOLE.format(199)}){_FRACTION}(?:{_POWER.format('[0-9]{1,2}')})?",
            rf"(?:{_WHOLE.format(7)}){_FRACTION}{_POWER.format('[12][0-9][0-9]')}",
            rf"[0-9]{_FRACTION}{_POWER.format('30[0-7]')}",
            rf"0{_FRACTION}{_POWER.format('308')}",
            rf"1(?:\.(?:{_below()}))?{_POWER.format('308')}",
        )
    )
)
"""The language as a regular expression that Python and `terminal_dfa` read alike."""

_MATCH = re.compile(FINITE).fullmatch


def is_finite(number: str) -> bool:
    """Whether a text is a JSON number that is surely finite."""
    return _MATCH(number) is not None


def finite_dfa() -> Dfa:
    """The automaton of `FINITE`."""
    return terminal_dfa(FINITE)
