"""Loops: what may be read at a state and leads back to it with nothing fired.

In: a state, and of its transitions and those after them what is known so far. Out: a regular expression for runs of
such text: letters of a text region, characters of several bytes, a space after which another reading began and died.
Invariant: what it matches leads from the state to the state, and its moves are None; it does not match all that does.
Cost: a walk over known transitions, `_MOST` at most; matching takes 4 ns a byte, where a step for each takes 60.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .moves import Moves, compose, simplified

if TYPE_CHECKING:
    from .machine import State

__all__ = ["loop_of"]

_LONGEST = 4  # bytes of a character
_MOST = 400
_AT_ONCE = 500  # repetitions: the matcher remembers each


def loop_of(state: State) -> re.Pattern[bytes] | None:
    """Text that changes nothing at this state, as far as that is known; None if none is known."""
    ways = list(_Walk(state).ways(state, b"", None, 0))
    if not ways:
        return None
    return re.compile(b"(?:%b){1,%d}" % (b"|".join(ways), _AT_ONCE))


class _Walk:
    """Ways from a state back to itself."""

    def __init__(self, home: State) -> None:
        self.home, self.left = home, _MOST

    def ways(self, state: State, before: bytes, moves: Moves, width: int) -> Iterator[bytes]:
        """`before` and `moves` are what was read on the way to `state`. Bytes that do the same are one set."""
        groups: dict[tuple[int, Moves], list[int]] = {}
        for symbol, step in list(state.next.items()):
            if step is not None and symbol < 256:
                groups.setdefault((id(step.state), step.moves), []).append(symbol)
        longer: list[tuple[State, bytes, Moves]] = []
        for symbols in groups.values():
            self.left -= 1
            step = state.next.get(symbols[0])
            if step is None or self.left < 0:
                continue
            read = before + b"[%b]" % b"".join(b"\\x%02x" % symbol for symbol in symbols)
            total = compose(moves, step.moves, width)
            if step.state is not self.home:
                longer.append((step.state, read, total))
            elif simplified(total, len(self.home.threads)) is None:
                yield read if before else read + b"+"
        if width + 1 < _LONGEST:
            for after, read, total in longer:
                yield from self.ways(after, read, total, width + 1)
