"""Sets of characters, and the coarsest classes that tell several sets apart.

In: ranges of code points. Out: `CharSet`, a sorted tuple of ranges `(low, high)`, not adjacent, without surrogates, so
equal sets are equal tuples; and `Partition`, which names for every character the class it falls in.
Invariant: a set never holds a surrogate (U+D800 to U+DFFF), which no text can hold.
Cost: linear in the ranges. The Unicode tables are read from `unicodedata` when a pattern first asks for them (some
20 ms), and kept.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

__all__ = [
    "ANY",
    "DIGIT",
    "NOTHING",
    "SPACE",
    "UNICODE_SPACE",
    "WORD",
    "CharSet",
    "Partition",
    "category",
    "charset",
    "complement",
    "contains",
    "intersection",
    "partition",
    "single",
    "span_at",
    "unicode_digits",
    "unicode_word",
    "with_case_variants",
]

CharSet = tuple[tuple[int, int], ...]

_SURROGATES = (0xD800, 0xDFFF)
_LAST = 0x10FFFF

NOTHING: CharSet = ()
ANY: CharSet = ((0, 0xD7FF), (0xE000, _LAST))


def charset(ranges: Iterable[tuple[int, int]]) -> CharSet:
    """The set of these ranges, in any order, overlapping or not."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            if high > merged[-1][1]:
                merged[-1] = (merged[-1][0], high)
        elif low <= high:
            merged.append((low, high))
    if all(high < _SURROGATES[0] or low > _SURROGATES[1] for low, high in merged):
        return tuple(merged)
    kept = []
    for low, high in merged:
        if low < _SURROGATES[0]:
            kept.append((low, min(high, _SURROGATES[0] - 1)))
        if high > _SURROGATES[1]:
            kept.append((max(low, _SURROGATES[1] + 1), high))
    return tuple(kept)


def single(code: int) -> CharSet:
    return charset(((code, code),))


def complement(chars: CharSet) -> CharSet:
    """Every character that is not in the set."""
    gaps, start = [], 0
    for low, high in chars:
        if low > start:
            gaps.append((start, low - 1))
        start = high + 1
    gaps.append((start, _LAST))
    return charset(gaps)


def intersection(a: CharSet, b: CharSet) -> CharSet:
    found, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        low, high = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if low <= high:
            found.append((low, high))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return tuple(found)


def contains(chars: CharSet, code: int) -> bool:
    place = bisect_right(chars, (code, _LAST)) - 1
    return place >= 0 and chars[place][1] >= code


DIGIT = charset([(0x30, 0x39)])
WORD = charset([(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)])
_SPACES = [(9, 13), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F),
           (0x205F, 0x205F), (0x3000, 0x3000)]  # fmt: skip
SPACE = charset([*_SPACES, (0xFEFF, 0xFEFF)])
"""White space as ECMA-262 has it: WhiteSpace and LineTerminator."""
UNICODE_SPACE = charset([*_SPACES, (0x1C, 0x1F), (0x85, 0x85)])
"""White space as Python has it: `str.isspace`."""

# Elsewhere nothing is assigned but private use; scanned in full, the tables would take five times as long.
_SCANNED = ((0, 0xD7FF), (0xE000, 0x3FFFF), (0xE0000, 0xE0FFF))


@cache
def _categories() -> dict[str, CharSet]:
    ranges: dict[str, list[tuple[int, int]]] = {"Co": [(0xF0000, 0xFFFFD), (0x100000, 0x10FFFD)], "Cs": []}
    ranges["Cn"] = [(0x40000, 0xDFFFF), (0xE1000, 0xEFFFF), (0xFFFFE, 0xFFFFF), (0x10FFFE, 0x10FFFF)]
    look_up = unicodedata.category
    for first, last in _SCANNED:
        name, start = look_up(chr(first)), first
        for code in range(first, last + 1):
            here = look_up(chr(code))
            if here != name:
                ranges.setdefault(name, []).append((start, code - 1))
                name, start = here, code
        ranges.setdefault(name, []).append((start, last))
    return {name: charset(found) for name, found in ranges.items()}


@cache
def category(name: str) -> CharSet | None:
    """A general category by its short name, of two letters (`Lu`) or one (`L`); None if there is none such."""
    found = [chars for key, chars in _categories().items() if key == name or (len(name) == 1 and key[0] == name)]
    return charset(run for chars in found for run in chars) if found else None


@cache
def unicode_digits() -> CharSet:
    """What Python's `\\d` matches in a string."""
    return category("Nd") or NOTHING


@cache
def unicode_word() -> CharSet:
    """What Python's `\\w` matches in a string: letters, everything with a numeric value, and the underscore."""
    found = [(0x5F, 0x5F)]
    for first, last in _SCANNED:
        start = -1
        for code in range(first, last + 2):
            if code <= last and chr(code).isalnum():
                start = code if start < 0 else start
            elif start >= 0:
                found.append((start, code - 1))
                start = -1
    return charset(found)


@cache
def _case_variants() -> dict[int, frozenset[int]]:
    """For each character that has case: all characters that match it when case does not count, itself included."""
    groups: dict[int, set[int]] = {}
    for name in ("Lu", "Ll", "Lt", "Mn", "Nl", "So"):
        for low, high in category(name) or NOTHING:
            for code in range(low, high + 1):
                text = chr(code)
                forms = {code, *(ord(form) for form in (text.lower(), text.upper()) if len(form) == 1)}
                if len(forms) > 1:
                    group = set().union(forms, *(groups.get(form, ()) for form in forms))
                    for member in group:
                        groups[member] = group
    return {code: frozenset(group) for code, group in groups.items()}


def with_case_variants(chars: CharSet) -> CharSet:
    """The set with every character added that differs from a member only in case."""
    if chars == ANY or not chars:
        return chars
    if chars[-1][1] < 0x80:  # the common case needs no table: K and S have variants outside ASCII
        found = set()
        for low, high in chars:
            for code in range(low, high + 1):
                text = chr(code)
                found.update({code, ord(text.lower()), ord(text.upper())})
        found.update({0x212A} if 0x6B in found else (), {0x17F} if 0x73 in found else ())
        return charset((code, code) for code in found)
    more = [(other, other) for code, group in _case_variants().items() if contains(chars, code) for other in group]
    return charset([*chars, *more])


class Partition(NamedTuple):
    """Classes of characters. `spans` cover all of them in order: (low, high, class), neighbours of one class merged."""

    spans: tuple[tuple[int, int, int], ...]
    size: int
    members: tuple[tuple[int, ...], ...]  # for each set that was asked for: the classes it consists of


@lru_cache(maxsize=512)
def partition(sets: tuple[CharSet, ...]) -> Partition:
    """The coarsest classes of which every given set is a union, numbered in the order of their first characters."""
    events: dict[int, int] = {}  # code point -> sets that start or end there, one bit each
    for index, chars in enumerate((ANY, *sets)):
        bit = 1 << index
        for low, high in chars:
            events[low] = events.get(low, 0) ^ bit
            events[high + 1] = events.get(high + 1, 0) ^ bit
    names: dict[int, int] = {}  # which sets hold a character -> class
    spans: list[tuple[int, int, int]] = []
    inside, start = 0, 0
    for code in sorted(events):
        if inside & 1:
            _append_span(spans, start, code - 1, names.setdefault(inside, len(names)))
        inside ^= events[code]
        start = code
    members = tuple(
        tuple(name for signature, name in names.items() if signature >> index & 1) for index in range(1, len(sets) + 1)
    )
    return Partition(tuple(spans), len(names), members)


def _append_span(spans: list[tuple[int, int, int]], low: int, high: int, name: int) -> None:
    if spans and spans[-1][2] == name and spans[-1][1] == low - 1:
        low = spans.pop()[0]
    spans.append((low, high, name))


def span_at(spans: Sequence[tuple[int, int, int]], code: int) -> int:
    """Index of the first span that ends at or after this character."""
    low, high = 0, len(spans)
    while low < high:
        middle = (low + high) // 2
        if spans[middle][1] < code:
            low = middle + 1
        else:
            high = middle
    return low
