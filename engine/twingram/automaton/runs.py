"""Automata on their way to a `Dfa`: rows of runs, and their numbering.

A `Draft` is a deterministic automaton whose row of state `s` is a tuple of runs `(low, high, target)`, sorted, not
overlapping, with neighbours of one target merged. State 0 is dead and is never a target. The letters may be bytes or
classes of characters; nothing here depends on which.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

__all__ = ["EMPTY_DRAFT", "Draft", "Row", "Run", "merge_runs", "number", "overlay", "pair_runs", "row_of"]

Run = tuple[int, int, int]
Row = tuple[Run, ...]


class Draft(NamedTuple):
    """`accept` and `boundary` hold one flag a state."""

    rows: Sequence[Row]
    accept: Sequence[int]
    boundary: Sequence[int]
    start: int


EMPTY_DRAFT = Draft(((),), (0,), (0,), 0)


def merge_runs(runs: Iterable[Run]) -> Row:
    """Sorted runs with dead ones left out and neighbours of one target merged."""
    merged: list[Run] = []
    low, high, target = 0, -2, 0
    for run in runs:
        next_low, next_high, next_target = run
        if next_target == target and next_low == high + 1:
            high = next_high
            continue
        if target:
            merged.append((low, high, target))
        low, high, target = run
    if target:
        merged.append((low, high, target))
    return tuple(merged)


def row_of(moves: Iterable[tuple[int, int]]) -> Row:
    """The row of `(letter, target)` pairs sorted by letter."""
    return merge_runs([(letter, letter, target) for letter, target in moves])


def pair_runs(left: Row, right: Row) -> Iterator[tuple[int, int, int, int]]:
    """The runs of `left`, cut where `right` changes: (low, high, target in left, target in right or 0)."""
    position = 0
    for low, high, target in left:
        while position < len(right) and right[position][1] < low:
            position += 1
        at = position
        while low <= high:
            if at == len(right) or right[at][0] > high:
                yield low, high, target, 0
                break
            start, end, other = right[at]
            if start > low:
                yield low, start - 1, target, 0
                low = start
            end = min(end, high)
            yield low, end, target, other
            low = end + 1
            at += 1


def overlay(rows: Sequence[Row]) -> list[tuple[int, int, tuple[int, ...]]]:
    """The runs of several rows laid over one another, with the targets of all; runs dead in all are left out."""
    cuts = sorted({low for row in rows for low, _, _ in row} | {high + 1 for row in rows for _, high, _ in row})
    places = [0] * len(rows)
    found = []
    for low, end in pairwise(cuts):
        targets = []
        for index, row in enumerate(rows):
            place = places[index]
            while place < len(row) and row[place][1] < low:
                place += 1
            places[index] = place
            targets.append(row[place][2] if place < len(row) and row[place][0] <= low else 0)
        if any(targets):
            found.append((low, end - 1, tuple(targets)))
    return found


def number(draft: Draft) -> Draft:
    """The same automaton, its states numbered from 1 breadth first in the order of the letters; the rest dropped."""
    if not draft.start:
        return EMPTY_DRAFT
    rows, numbers, order = draft.rows, {0: 0, draft.start: 1}, [0, draft.start]
    for state in order:
        for _, _, target in rows[state]:
            if target not in numbers:
                numbers[target] = len(order)
                order.append(target)
    renamed = [tuple([(low, high, numbers[target]) for low, high, target in rows[state]]) for state in order]
    return Draft(renamed, [draft.accept[s] for s in order], [draft.boundary[s] for s in order], 1)
