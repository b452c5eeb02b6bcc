"""Reading the numbers in keywords: counts and bounds, of one schema or of several that hold together.

In: schemas that hold together. Out: the strictest count, or the strictest bounds as exact decimals. What is no number
is reported as malformed and restricts nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, NamedTuple

from .report import Placed, Report

__all__ = ["Bounds", "bounds_of", "greatest", "least", "quantity"]


class Bounds(NamedTuple):
    """The strictest bounds; `None` is no bound."""

    low: Decimal | None
    low_open: bool
    high: Decimal | None
    high_open: bool


def quantity(value: Any) -> Decimal | None:
    """The exact value of a JSON number, in the shortest form of a double."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if isinstance(value, float):
        return Decimal(repr(value)) if math.isfinite(value) else None
    return Decimal(value)


def _counts(branch: Iterable[Placed], keyword: str, report: Report) -> list[int]:
    found = []
    for schema, path in branch:
        if keyword in schema:
            value = quantity(schema[keyword])
            if value is None or value != value.to_integral_value():
                report.malformed(path, keyword, "a whole number")
            else:
                found.append(int(value))
    return found


def greatest(branch: Iterable[Placed], keyword: str, report: Report) -> int:
    """The greatest of lower counts, 0 without any."""
    return max((0, *_counts(branch, keyword, report)))


def least(branch: Iterable[Placed], keyword: str, report: Report) -> int | None:
    """The least of upper counts."""
    return min(_counts(branch, keyword, report), default=None)


def bounds_of(branch: Iterable[Placed], report: Report) -> Bounds:
    """The strictest bounds of numbers."""
    lows: list[tuple[Decimal, bool]] = []
    highs: list[tuple[Decimal, bool]] = []
    for schema, path in branch:
        for inclusive, exclusive, into in (
            ("minimum", "exclusiveMinimum", lows),
            ("maximum", "exclusiveMaximum", highs),
        ):
            for keyword in (inclusive, exclusive):
                if keyword not in schema or (keyword == exclusive and isinstance(schema[keyword], bool)):
                    continue
                value = quantity(schema[keyword])
                if value is None:
                    report.malformed(path, keyword, "a finite number")
                else:  # in draft 4 the exclusive form is a flag beside the inclusive one
                    into.append((value, keyword == exclusive or schema.get(exclusive) is True))
    low, low_open = max(lows, default=(None, False))
    high, negated = min(((value, not is_open) for value, is_open in highs), default=(None, True))
    return Bounds(low, low_open, high, not negated)
