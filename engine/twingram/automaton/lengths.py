"""How many characters may still follow: word lengths of one state of an automaton.

In: rows of runs, acceptance, boundary flags, a state. Out: `WordLengths`, which answers for any limit a bit set whose
bit n says that some accepted continuation holds exactly n further characters. A character is counted when a state whose
boundary flag is set is entered.

Method: the set of states that n characters lead to, one n after another, until a set comes back; from there on the
answer repeats. Cost: one step per n asked for, at most until the first repetition.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

from .runs import Row

__all__ = ["CharacterSteps", "WordLengths"]

_LOCK = Lock()  # held while answers are added; a bit is set before `_known` passes it, so readers need none


class CharacterSteps:
    """For each state, as bit sets: where less than a character leads, and where one whole character leads."""

    __slots__ = ("_boundary", "_rows", "_steps", "accepting")

    def __init__(self, rows: Sequence[Row], accept: bytes, boundary: bytes) -> None:
        self._rows, self._boundary = rows, boundary
        self._steps: dict[int, tuple[int, int]] = {}  # state -> (within this character, after it)
        self.accepting = sum(1 << state for state, flag in enumerate(accept) if flag)

    def step(self, states: int) -> tuple[int, int]:
        """Both sets for a whole set of states."""
        within = after = 0
        while states:
            bit = states & -states
            states ^= bit
            state = bit.bit_length() - 1
            found = self._steps.get(state)
            if found is None:
                found = self._steps[state] = self._of(state)
            within |= found[0]
            after |= found[1]
        return within, after

    def _of(self, start: int) -> tuple[int, int]:
        within, after, order = 1 << start, 0, [start]
        for state in order:
            for _, _, target in self._rows[state]:
                bit = 1 << target
                if self._boundary[target]:
                    after |= bit
                elif not within & bit:
                    within |= bit
                    order.append(target)
        return within, after


class WordLengths:
    """The lengths of one state, found as far as they were asked for."""

    __slots__ = ("_bits", "_frontier", "_known", "_loop", "_seen", "_steps")

    def __init__(self, steps: CharacterSteps, state: int) -> None:
        self._steps, self._frontier = steps, 1 << state
        self._bits, self._known = 0, 0  # bits 0 .. known-1 are final
        self._seen: dict[int, int] = {}  # set of states -> number of characters that led to it
        self._loop = 0  # period once a set came back, else 0

    def upto(self, limit: int) -> int:
        """Bit n set if a continuation of exactly n characters is accepted, for n <= limit."""
        if self._known <= limit:
            with _LOCK:
                self._extend(limit)
        return self._bits & ((2 << limit) - 1)

    def _extend(self, limit: int) -> None:
        while self._known <= limit and not self._loop:
            self._advance()
        if self._known <= limit:
            self._repeat(limit)

    def _advance(self) -> None:
        first = self._seen.setdefault(self._frontier, self._known)
        if first != self._known:
            self._loop = self._known - first
            self._seen.clear()
            return
        within, after = self._steps.step(self._frontier)
        if within & self._steps.accepting:
            self._bits |= 1 << self._known
        self._frontier, self._known = after, self._known + 1

    def _repeat(self, limit: int) -> None:
        period = self._loop
        pattern = self._bits >> (self._known - period)
        while self._known <= limit:
            self._bits |= pattern << self._known
            self._known += period
            pattern |= pattern << period
            period *= 2
