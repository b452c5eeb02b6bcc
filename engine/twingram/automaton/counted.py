"""Counted text: the language of a byte automaton with bounds on its number of characters.

In: an automaton, a least and a greatest length. Out: `Counted` leaves, whose state is the automaton's state and what
is left of the bounds.
Invariant: a `Counted` can always be completed: a byte after which no allowed length can be reached is not in `first`.
Cost: lengths are bit sets of the automaton (`Dfa.lengths`), exact up to `COUNT_HORIZON`; nothing is unrolled, so an
upper bound of a million compiles at once.
"""

from __future__ import annotations

from collections.abc import Callable

from .dfa import Dfa
from .expression import EMPTY, INFINITE, NOTHING, Expr, Head, Leaf, text
from .interning import intern
from .kept import known

__all__ = ["COUNT_HORIZON", "Counted", "counted", "width"]

_WIDEST = 12  # bytes of a character in any spelling in use: two escapes of six


class Counted(Leaf):
    """Text of an automaton with `low` to `high` more characters.

    A character is counted when the automaton enters a state that completes one (`Dfa.boundary`).
    """

    __slots__ = ("dfa", "first", "high", "low", "state")

    def __init__(self, dfa: Dfa, state: int, low: int, high: int) -> None:
        self.dfa, self.state, self.low, self.high = dfa, state, low, high
        self.first = self._find_first()

    def _find_first(self) -> int:
        bits = self.dfa.first[self.state]
        if self.high >= COUNT_HORIZON and self.low == 0:
            return bits
        row, alive = self.dfa.rows[self.state], 0
        verdicts: dict[int, bool] = {}
        while bits:
            lowest = bits & -bits
            bits ^= lowest
            target = row[lowest.bit_length() - 1]
            if target not in verdicts:
                verdicts[target] = self.admits(target, self.dfa.boundary[target])
            if verdicts[target]:
                alive |= lowest
        return alive

    def admits(self, state: int, counted: int) -> bool:
        """Whether the text can still end well at `state` after `counted` more characters."""
        low, high = max(0, self.low - counted), self.high - counted
        if high < 0:
            return False
        limit = min(high, COUNT_HORIZON)
        lengths = self.dfa.lengths(state, limit)
        if low > limit:
            # Past the horizon every automaton in use can go on if it can reach the horizon at all.
            return bool(lengths >> (limit - len(self.dfa) if limit > len(self.dfa) else 0))
        return bool(lengths >> low)

    def moved(self, state: int, counted: int) -> Expr:
        """What is left at `state` after `counted` more characters."""
        found: Expr = intern(Counted, self.dfa, state, max(0, self.low - counted), self.high - counted)
        return found

    def after(self, sym: int) -> Expr:
        target = self.dfa.rows[self.state][sym]
        count = self.dfa.boundary[target]
        low, high = max(0, self.low - count), self.high if self.high >= INFINITE else self.high - count
        if not low and high >= INFINITE:
            return text(self.dfa, target)
        found: Expr = intern(Counted, self.dfa, target, low, high)
        return found

    def _find_heads(self) -> tuple[Head, ...]:
        heads: list[Head] = []
        if self.low == 0 and self.dfa.accept[self.state]:
            heads.append(((), None, EMPTY))
        if self.first:
            heads.append(((), self, EMPTY))
        return tuple(heads)

    def measure(self, of: Callable[[Expr], int], spell: Callable[[bytes], int]) -> int:
        """Bytes to the end, a bound from above that falls with every byte of the way it is the length of: the character
        that is being read exactly, the least number of those after it at their `width` each."""
        limit = min(self.high, COUNT_HORIZON)
        lengths = self.dfa.lengths(self.state, limit) >> min(self.low, limit)
        left = self.low + (lengths & -lengths).bit_length() - 1 if lengths else self.low
        if left <= 0:
            return self._bytes_to(lambda state: bool(self.dfa.accept[state]), boundary=False)
        exact = left <= limit
        here = self._bytes_to(lambda state: not exact or bool(self._fits(state, left - 1)), boundary=True)
        return here + (left - 1) * width(self.dfa) if left > 1 else here

    @property
    def worst(self) -> int:
        """What `measure` gives at most wherever this text leads to. From every state the least length that is left is
        the lower bound and what leads from there to a word at most, and no more than the upper bound."""
        return _WIDEST + width(self.dfa) * min(self.high, self.low + _farthest(self.dfa))

    def _fits(self, state: int, length: int) -> int:
        return self.dfa.lengths(state, length) >> length & 1

    def _bytes_to(self, wanted: Callable[[int], bool], *, boundary: bool) -> int:
        """Fewest bytes to a wanted state within the present character, or (`boundary`) to one that completes it."""
        dfa, seen, depth, level = self.dfa, {self.state}, 0, [self.state]
        if not boundary and wanted(self.state):
            return 0
        while level and depth < _WIDEST:
            depth, below = depth + 1, set[int]()
            for state in level:
                below.update(dfa.rows[state])
            below.discard(0)
            if any(bool(dfa.boundary[state]) == boundary and wanted(state) for state in below):
                return depth
            level = [state for state in below if not dfa.boundary[state] and state not in seen]
            seen.update(level)
        return _WIDEST

    def __repr__(self) -> str:
        return f"text[{self.dfa.key.hex()[:4]}:{self.state}]{{{self.low},{self.high}}}"


@known
def width(dfa: Dfa, *, longest: bool = False) -> int:
    """Bytes that suffice for one character from any state to any other that one leads to; `longest`: of the longest
    character there is."""
    most = 1
    for start in range(1, len(dfa.runs)):
        if start != dfa.start and not dfa.boundary[start]:
            continue
        level, depth, reached = {start}, 0, set[int]()
        while level and depth < _WIDEST:
            depth += 1
            below = {target for state in level for _, _, target in dfa.runs[state]}
            level = {state for state in below if not dfa.boundary[state]}
            if longest and len(level) < len(below):
                most = max(most, depth)
            elif not longest:
                new = below - level - reached
                reached |= new
                most = max(most, depth) if new else most
    return most


@known
def _farthest(dfa: Dfa) -> int:
    """Of all states the greatest number of characters that the nearest word is away."""
    before: list[list[int]] = [[] for _ in dfa.runs]
    for state, row in enumerate(dfa.runs):
        for target in {target for _, _, target in row}:
            before[target].append(state)
    away = {state: 0 for state, flag in enumerate(dfa.accept) if flag}
    level = list(away)
    while level:
        further: list[int] = []  # one character more
        for target in level:  # grows by the states that lead here within the character
            for state in before[target]:
                if state in away:
                    continue
                if dfa.boundary[target]:
                    further.append(state)
                else:
                    away[state] = away[target]
                    level.append(state)
        count = away[level[0]] + 1
        level = [state for state in dict.fromkeys(further) if state not in away]
        away.update(dict.fromkeys(level, count))
    return max(away.values(), default=0)


COUNT_HORIZON = 4096  # lengths are decided exactly up to here; longer upper bounds count as this one or more


def counted(dfa: Dfa, low: int, high: int = INFINITE) -> Expr:
    """Text of `dfa` with `low` to `high` characters; `NOTHING` if no such text exists."""
    if dfa.start == 0 or low > high:
        return NOTHING
    if low == 0 and high >= INFINITE:
        return text(dfa)
    made: Counted = intern(Counted, dfa, dfa.start, low, high)
    return made if made.admits(dfa.start, 0) else NOTHING
