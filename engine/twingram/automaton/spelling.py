"""How characters are written in bytes, and automata over classes of characters turned into automata over bytes.

In: the spans of a partition and the name of a spelling. Out: a `Decoder`, the acyclic automaton that reads one spelled
character and ends in its class. And: a minimal automaton over classes, plus a decoder. Out: the automaton over bytes.

Spellings, which belong to no format:
    raw         UTF-8, as Unicode defines it (no overlong forms, no surrogates)
    json        inside a JSON string: UTF-8 but for the quote, the backslash and controls; the short escapes; four-digit
                escapes in either case; a pair of them for a character above U+FFFF. No lone surrogate
    json-short  the same, but four-digit escapes for control characters only: it keeps automata small

Invariant: every character has a spelling and no two characters share one. So from a minimal automaton over classes
comes a minimal one over bytes, if states inside a character that read the same are shared, as they are here.
A state's boundary flag is set where a character is complete.
Cost: the decoder is linear in the spans; each state over classes costs the part of the decoder that it does not refuse.
Source: K. Thompson's UTF-8 range splitting, as in R. Cox, "Regular Expression Matching in the Wild" (2010); RFC 8259.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from ..limits import Limits
from .charset import span_at
from .dfa import check_states
from .runs import EMPTY_DRAFT, Draft, Row, Run, merge_runs, number

__all__ = ["SPELLINGS", "Decoder", "TooLarge", "decoder", "spell"]

SPELLINGS = ("raw", "json", "json-short")

Spans = Sequence[tuple[int, int, int]]

_SHORT = {0x22: 0x22, 0x5C: 0x5C, 0x2F: 0x2F, 8: 0x62, 12: 0x66, 10: 0x6E, 13: 0x72, 9: 0x74}  # character -> its letter
_UNWRITABLE = {0x22, 0x5C, *range(0x20)}  # not raw in a JSON string
_LEADS = ((0x80, 0x7FF, 1, 0xC0), (0x800, 0xFFFF, 2, 0xE0), (0x10000, 0x10FFFF, 3, 0xF0))  # first, last, tail, lead
_SHORTEST = (0, 0, 0x800, 0x10000)  # first character that needs a tail of this many bytes; less is overlong


class TooLarge(Exception):
    """Spelled this way, the automaton would have more states than the caller asked for. Never leaves this package."""


class Decoder(NamedTuple):
    """`rows[node]` holds runs (low, high, ref): ref >= 0 is a node, ref < 0 the class `~ref`. The root comes last."""

    rows: tuple[Row, ...]
    classes: tuple[tuple[int, ...], ...]  # for each node, the classes it can end in


def _units(spans: Spans, first: int, last: int, unit: int) -> Iterator[tuple[int, int, int | None]]:
    """Blocks of `unit` characters within first..last: (first block, last block, value), or one block of mixed value."""
    index, code = span_at(spans, first), first
    while index < len(spans) and code <= last:
        low, high, value = spans[index]
        low, high = max(low, code), min(high, last)
        if low > last:
            return
        whole = (high + 1) // unit
        if low % unit == 0 and whole * unit > low:
            yield low // unit, whole - 1, value
            code = whole * unit
        else:
            yield low // unit, low // unit, None
            code = (low // unit + 1) * unit
        while index < len(spans) and spans[index][1] < code:
            index += 1


class _Builder:
    """Nodes of one decoder; equal nodes are one."""

    def __init__(self, spans: Spans) -> None:
        self.spans = spans
        self.rows: list[Row] = []
        self._numbers: dict[Row, int] = {}  # row -> node
        self._uniform: dict[tuple[str, int, int], int] = {}  # (kind, length, ref) -> node

    def node(self, runs: Iterable[Run]) -> int:
        merged = _merge_refs(runs)
        found = self._numbers.get(merged)
        if found is None:
            found = self._numbers[merged] = len(self.rows)
            self.rows.append(merged)
        return found

    def raw(self, skipped: Iterable[int] = ()) -> list[Run]:
        """The root's runs for UTF-8, without some ASCII characters."""
        runs: list[Run] = []
        for low, high, name in _units(self.spans, 0, 0x7F, 1):
            runs += [(code, code, ~name) for code in range(low, high + 1) if code not in skipped and name is not None]
        for first, last, length, lead in _LEADS:
            for low, high, name in _units(self.spans, first, last, 64**length):
                ref = self._tail(low * 64**length, length) if name is None else self._any_tail(length, ~name)
                runs.append((lead + low, lead + high, ref))
        return runs

    def _tail(self, first: int, length: int) -> int:
        unit = 64 ** (length - 1)
        runs = []
        for low, high, name in _units(self.spans, max(first, _SHORTEST[length]), first + 64 * unit - 1, unit):
            ref = self._tail(low * unit, length - 1) if name is None else self._any_tail(length - 1, ~name)
            runs.append((0x80 + low % 64, 0x80 + high % 64, ref))
        return self.node(runs)

    def _any_tail(self, length: int, ref: int) -> int:
        if not length:
            return ref
        key = ("tail", length, ref)
        if key not in self._uniform:
            self._uniform[key] = self.node([(0x80, 0xBF, self._any_tail(length - 1, ref))])
        return self._uniform[key]

    def escapes(self, *, full: bool) -> int:
        """The node behind a backslash."""
        runs = []
        for code, letter in _SHORT.items():
            _, _, name = self.spans[span_at(self.spans, code)]
            runs.append((letter, letter, ~name))
        if full:
            wide = [(low, min(high, 0xFFFF), ~name) for low, high, name in self.spans if low <= 0xFFFF]
            digits = self._hex(sorted(wide + self._high_halves()), 0, 4)
        else:
            digits = self._hex([(low, min(high, 0x1F), ~name) for low, high, name in self.spans if low < 0x20], 0, 4)
        return self.node(sorted([*runs, (0x75, 0x75, digits)]))

    def _high_halves(self) -> list[tuple[int, int, int]]:
        """For each first half of a pair, what reads the second half."""
        found = []
        for low, high, name in _units(self.spans, 0x10000, 0x10FFFF, 0x400):
            codes = self.spans if name is None else [(0, 0x10FFFF, name)]
            found.append((0xD800 + low - 0x40, 0xD800 + high - 0x40, self._low_half(codes, low * 0x400)))
        return found

    def _low_half(self, spans: Spans, first: int) -> int:
        refs = [(low, high, ~name) for low, high, name in spans if high >= first and low <= first + 0x3FF]
        runs: list[Run] = []
        for low, high, ref in _units(refs, first, first + 0x3FF, 0x100):
            below = self._hex(refs, low * 0x100, 2) if ref is None else self._any_hex(2, ref)
            runs += _digits(0xC + low % 4, 0xC + high % 4, below)
        second = self.node(sorted(runs))
        pair = self.node(_digits(0xD, 0xD, second))
        return self.node([(0x5C, 0x5C, self.node([(0x75, 0x75, pair)]))])

    def _hex(self, refs: Spans, first: int, length: int) -> int:
        unit = 16 ** (length - 1)
        runs: list[Run] = []
        for low, high, ref in _units(refs, first, first + 16 * unit - 1, unit):
            below = self._hex(refs, low * unit, length - 1) if ref is None else self._any_hex(length - 1, ref)
            runs += _digits(low % 16, high % 16, below)
        return self.node(sorted(runs))

    def _any_hex(self, length: int, ref: int) -> int:
        if not length:
            return ref
        key = ("hex", length, ref)
        if key not in self._uniform:
            self._uniform[key] = self.node(_digits(0, 15, self._any_hex(length - 1, ref)))
        return self._uniform[key]


def _digits(low: int, high: int, ref: int) -> list[Run]:
    """Hexadecimal digits low..high, letters in either case."""
    runs = []
    if low <= 9:
        runs.append((0x30 + low, 0x30 + min(high, 9), ref))
    if high >= 10:
        runs += [(letter + max(low, 10), letter + high, ref) for letter in (0x41 - 10, 0x61 - 10)]
    return runs


def _merge_refs(runs: Iterable[Run]) -> Row:
    merged: list[Run] = []
    for low, high, ref in runs:
        if merged and merged[-1][2] == ref and merged[-1][1] == low - 1:
            low = merged.pop()[0]
        merged.append((low, high, ref))
    return tuple(merged)


@lru_cache(maxsize=256)
def decoder(spans: tuple[tuple[int, int, int], ...], spelling: str) -> Decoder:
    """What reads one character of this spelling and tells its class."""
    if spelling not in SPELLINGS:
        raise ValueError(f"spelling is one of {', '.join(SPELLINGS)}, not {spelling!r}")
    builder = _Builder(spans)
    if spelling == "raw":
        builder.node(builder.raw())
    else:
        escapes = builder.escapes(full=spelling == "json")
        builder.node(sorted([*builder.raw(_UNWRITABLE), (0x5C, 0x5C, escapes)]))
    classes: list[tuple[int, ...]] = []
    for row in builder.rows:  # a node's children come before it
        found = {~ref for _, _, ref in row if ref < 0}.union(*(classes[ref] for _, _, ref in row if ref >= 0))
        classes.append(tuple(sorted(found)))
    return Decoder(tuple(builder.rows), tuple(classes))


def spell(draft: Draft, size: int, reader: Decoder, limits: Limits, cap: int | None = None) -> Draft:
    """The automaton over bytes of a minimal automaton over `size` classes, minimal and numbered.

    `TooLarge` is raised past `cap` states, `LimitExceeded` past the limit.
    """
    if not draft.start:
        return EMPTY_DRAFT
    rows: list[Row] = [()] * len(draft.rows)
    register: dict[Row, int] = {(): 0}  # row of a state inside a character -> state
    made: dict[tuple[int, tuple[int, ...]], int] = {}  # (node, targets of its classes) -> state
    most = min(limits.automaton_states, cap if cap is not None else limits.automaton_states)

    def inside(node: int, targets: Sequence[int]) -> int:
        wanted = tuple([targets[name] for name in reader.classes[node]])
        state = made.get((node, wanted))
        if state is None:
            row = across(node, targets) if any(wanted) else ()
            state = register.get(row)
            if state is None:
                state = register[row] = len(rows)
                rows.append(row)
            made[node, wanted] = state
        return state

    def across(node: int, targets: Sequence[int]) -> Row:
        return merge_runs(
            [(low, high, inside(ref, targets) if ref >= 0 else targets[~ref]) for low, high, ref in reader.rows[node]]
        )

    root = len(reader.rows) - 1
    for state in range(1, len(draft.rows)):
        targets = [0] * size
        for low, high, target in draft.rows[state]:
            targets[low : high + 1] = [target] * (high - low + 1)
        rows[state] = across(root, targets)
        if len(rows) > most:
            if cap is not None and len(rows) > cap:
                raise TooLarge
            check_states(len(rows), limits)
    inner = [0] * (len(rows) - len(draft.rows))
    return number(Draft(rows, [*draft.accept, *inner], [0, *[1] * (len(draft.rows) - 1), *inner], draft.start))
