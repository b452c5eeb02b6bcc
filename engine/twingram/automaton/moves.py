"""Moves: where the threads of a state came from, and what they fired on the way.

In: the moves of single steps. Out: those of steps in a row. None stands for the common case: all threads go on and
nothing is fired.
Invariant: offsets count in bytes from where the first of the steps began.
Cost: linear in threads and tags.
"""

from __future__ import annotations

from typing import NamedTuple

from .tags import Tag

__all__ = ["Fired", "Move", "Moves", "compose", "simplified"]

Fired = tuple[Tag, int]  # a tag and its offset in bytes from where the transition began


class Move(NamedTuple):
    """Where a thread came from, and what it fired on the way."""

    source: int
    tags: tuple[Fired, ...]


Moves = tuple[Move, ...] | None


def compose(first: Moves, second: Moves, width: int) -> Moves:
    """Two transitions in a row, the first of `width` bytes, as one."""
    if second is None:
        return first
    shifted = tuple(Move(source, tuple((tag, at + width) for tag, at in tags)) for source, tags in second)
    if first is None:
        return shifted
    return tuple(Move(first[source].source, first[source].tags + tags) for source, tags in shifted)


def simplified(moves: Moves, threads: int) -> Moves:
    """None if all of so many threads go on with nothing fired."""
    if moves is None or len(moves) != threads:
        return moves
    return None if all(at == source and not tags for at, (source, tags) in enumerate(moves)) else moves
