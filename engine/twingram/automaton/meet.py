"""The texts that several byte automata share, their product put off until a text is really begun.

In: automata, bounds on the number of characters. Out: an expression that becomes the text of their intersection when
it is reached; `NOTHING` if they share no such text, which is known at once: the product is searched for its shortest
text, which as a rule is found soon. A schema with a hundred patterns is compiled without a single product, and a
generation meets few of them.

Invariant: the first automaton is the one whose characters are counted (see `dfa.intersect`). What is put off is small:
a product that could become large is made at once, so that a limit is met while compiling and not later.
Cost: the search, for patterns in use some dozens of states; the product once for each set of automata that is reached.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, reduce
from heapq import heappop, heappush
from math import prod

from ..errors import LimitExceeded
from ..limits import DEFAULT_LIMITS, Limits
from .counted import counted
from .dfa import Dfa, intersect
from .expression import INFINITE, NOTHING, Expr, Head, intern
from .kept import kept
from .runs import overlay

__all__ = ["later", "meet", "product", "shares"]

_PUT_OFF = 4000  # states of all automata but the first multiplied, up to which a product waits
_COUNTED = 64  # fewest characters up to which a search follows the count
_LONGEST_CHARACTER = 12  # bytes, in any spelling in use


class Later(Expr):
    """What `make` gives, made when it is reached; `least` is its shortest completion."""

    __slots__ = ("least", "make")

    def __init__(self, make: Callable[[], Expr], least: int) -> None:
        self.make, self.least = make, least

    def measure(self, of: Callable[[Expr], int], spell: Callable[[bytes], int]) -> int:
        return self.least

    def _find_heads(self) -> tuple[Head, ...]:
        return self.make().heads()

    def __repr__(self) -> str:
        return "..."


def later(make: Callable[[], Expr], least: int) -> Expr:
    """An expression that is put off; the caller knows its shortest completion, and keeps it for equal ones."""
    found: Expr = intern(Later, make, least)
    return found


class Meet(Expr):
    """The texts of all the automata that have `low` to `high` characters. `least` bounds the shortest."""

    __slots__ = ("dfas", "high", "least", "low")

    def __init__(self, dfas: tuple[Dfa, ...], low: int, high: int, least: int) -> None:
        self.dfas, self.low, self.high, self.least = dfas, low, high, least

    def measure(self, of: Callable[[Expr], int], spell: Callable[[bytes], int]) -> int:
        return self.least

    def _find_heads(self) -> tuple[Head, ...]:
        limits = replace(DEFAULT_LIMITS, automaton_states=INFINITE)
        return counted(product(self.dfas, limits), self.low, self.high).heads()

    def __repr__(self) -> str:
        return "&".join(dfa.key.hex()[:4] for dfa in self.dfas)


def meet(dfas: Sequence[Dfa], low: int = 0, high: int = INFINITE, *, limits: Limits = DEFAULT_LIMITS) -> Expr:
    """The texts of `low` to `high` characters that all of the automata accept."""
    distinct = tuple(dict.fromkeys(dfas))
    if len(distinct) == 1:
        return counted(distinct[0], low, high)
    if low > _COUNTED or prod(len(dfa) for dfa in distinct[1:]) > _PUT_OFF:
        return counted(product(distinct, limits), low, high)
    least = _shortest(distinct, low, high, limits)
    if least is None:
        return NOTHING
    found: Expr = intern(Meet, distinct, low, high, max(least, low * _LONGEST_CHARACTER))
    return found


@kept
def product(dfas: tuple[Dfa, ...], limits: Limits = DEFAULT_LIMITS) -> Dfa:
    """The intersection."""
    return reduce(lambda one, other: intersect(one, other, limits=limits), dfas)


def shares(dfas: Sequence[Dfa], limits: Limits = DEFAULT_LIMITS) -> bool:
    """Whether some text is accepted by all."""
    return _shortest(tuple(dfas), 0, INFINITE, limits) is not None


@lru_cache(maxsize=2048)
def _shortest(dfas: tuple[Dfa, ...], low: int, high: int, limits: Limits) -> int | None:
    """The length in bytes of the shortest text of `low` to `high` characters that all accept; None if there is none.

    Best first: a state of the product is as far from the end as the farthest of its parts, at least.
    """
    start = tuple(dfa.start for dfa in dfas)
    if low > high or not all(start):
        return None
    boundary, enough = dfas[0].boundary, low if high >= INFINITE else high + 1  # counts from there on are alike
    lengths = [dfa.shortest for dfa in dfas]
    todo: list[tuple[int, int, int, tuple[int, ...]]] = [(0, 0, 0, start)]  # (length in all, -length, count, states)
    seen = {(start, 0)}
    while todo:
        _, length, count, states = heappop(todo)
        if count >= low and all(dfa.accept[state] for dfa, state in zip(dfas, states, strict=True)):
            return -length
        for _, _, targets in overlay([dfa.runs[state] for dfa, state in zip(dfas, states, strict=True)]):
            if not all(targets):
                continue
            counted = min(count + boundary[targets[0]], enough)
            if counted > high or (targets, counted) in seen:
                continue
            seen.add((targets, counted))
            ahead = max(low - counted, *[known[target] for known, target in zip(lengths, targets, strict=True)])
            heappush(todo, (1 - length + ahead, length - 1, counted, targets))
        if len(seen) > limits.automaton_states:
            raise LimitExceeded("automaton_states", limits.automaton_states, "patterns that meet need too many states")
    return None
