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
from functools import reduce
from heapq import heappop, heappush
from itertools import combinations

from ..errors import LimitExceeded
from ..limits import DEFAULT_LIMITS, Limits
from .counted import counted, width
from .dfa import Dfa, intersect
from .expression import INFINITE, NOTHING, Expr, Head
from .interning import intern
from .kept import kept, known
from .runs import overlay

__all__ = ["Meet", "acquainted", "meet", "product", "sample"]

_PUT_OFF = 4000  # states of what the first automaton meets, up to which their product waits
_ACQUAINTING = 300_000  # targets looked at to find out which automata meet: a tenth of a second
_COUNTED = 64  # fewest characters up to which a search follows the count


class Meet(Expr):
    """The texts of all the automata that have `low` to `high` characters. `least` bounds the shortest."""

    __slots__ = ("dfas", "high", "least", "low")

    def __init__(self, dfas: tuple[Dfa, ...], low: int, high: int, least: int) -> None:
        self.dfas, self.low, self.high, self.least = dfas, low, high, least

    def measure(self, of: Callable[[Expr], int], spell: Callable[[bytes], int]) -> int:
        return self.least

    def made(self) -> Expr:
        """The expression itself."""
        limits = replace(DEFAULT_LIMITS, automaton_states=INFINITE)
        return counted(product(self.dfas, limits), self.low, self.high)

    def _find_heads(self) -> tuple[Head, ...]:
        return self.made().heads()

    def __repr__(self) -> str:
        return "&".join(dfa.key.hex()[:4] for dfa in self.dfas)


def meet(dfas: Sequence[Dfa], low: int = 0, high: int = INFINITE, *, limits: Limits = DEFAULT_LIMITS) -> Expr:
    """The texts of `low` to `high` characters that all of the automata accept."""
    distinct = tuple(dict.fromkeys(dfas))
    if len(distinct) == 1:
        return counted(distinct[0], low, high)
    if len(distinct) > 2:
        distinct = (distinct[0], product(distinct[1:], limits))
    if low > _COUNTED or len(distinct[1]) > _PUT_OFF:
        return counted(product(distinct, limits), low, high)
    least = _shortest(distinct, low, high, limits)
    if least is None:
        return NOTHING
    found: Expr = intern(Meet, distinct, low, high, _bound(distinct[0], least, counted=low > 0 or high < INFINITE))
    return found


def _bound(dfa: Dfa, text: bytes, *, counted: bool) -> int:
    """Bytes to the end of a product with `dfa` that `text` belongs to: what `measure` gives then, at most."""
    if not counted:
        return len(text)
    state, characters = dfa.start, 0
    for byte in text:
        state = dfa.rows[state][byte]
        characters += dfa.boundary[state]
    return characters * width(dfa, longest=True)


@kept
def product(dfas: tuple[Dfa, ...], limits: Limits = DEFAULT_LIMITS) -> Dfa:
    """The intersection; characters are counted as the first automaton does. The small ones meet first."""
    first, *others = dfas
    if not others:
        return first
    rest = reduce(lambda one, other: intersect(one, other, limits=limits), sorted(others, key=len))
    return intersect(first, rest, limits=limits)


def sample(dfas: Sequence[Dfa], low: int, high: int, *, limits: Limits = DEFAULT_LIMITS) -> bytes | None:
    """A shortest text of `low` to `high` characters that all accept; None if there is none."""
    return _shortest(tuple(dfas), low, high, limits)


def acquainted(dfas: Sequence[Dfa]) -> set[tuple[int, int]] | None:
    """The pairs of automata, by number, that accept a common text; None where that is too much to find out.

    All of them are followed at once, those that have failed left behind: hundreds of patterns that differ in their
    first letters are told apart in as many steps as they have letters.
    """
    start = tuple((index, dfa.start) for index, dfa in enumerate(dfas) if dfa.start)
    found: set[tuple[int, int]] = set()
    seen, todo, work = {start}, [start], 0
    while todo:
        node = todo.pop()
        found.update(combinations([index for index, state in node if dfas[index].accept[state]], 2))
        moves = overlay([dfas[index].runs[state] for index, state in node])
        work += len(moves) * len(node)
        if work > _ACQUAINTING:
            return None
        for _, _, targets in moves:
            after = tuple((index, target) for (index, _), target in zip(node, targets, strict=True) if target)
            if len(after) > 1 and after not in seen:
                seen.add(after)
                todo.append(after)
    return found


@known
def _shortest(dfas: tuple[Dfa, ...], low: int, high: int, limits: Limits) -> bytes | None:
    """The shortest text of `low` to `high` characters that all accept; None if there is none.

    Best first: a state of the product is as far from the end as the farthest of its parts, at least.
    """
    start = tuple(dfa.start for dfa in dfas)
    if low > high or not all(start):
        return None
    boundary, enough = dfas[0].boundary, low if high >= INFINITE else high + 1  # counts from there on are alike
    lengths = [dfa.shortest for dfa in dfas]
    # (length in all, -length, text, characters, states)
    todo: list[tuple[int, int, bytes, int, tuple[int, ...]]] = [(0, 0, b"", 0, start)]
    seen = {(start, 0)}
    while todo:
        _, length, text, count, states = heappop(todo)
        if count >= low and all(dfa.accept[state] for dfa, state in zip(dfas, states, strict=True)):
            return text
        for byte, _, targets in overlay([dfa.runs[state] for dfa, state in zip(dfas, states, strict=True)]):
            if not all(targets):
                continue
            counted = min(count + boundary[targets[0]], enough)
            if counted > high or (targets, counted) in seen:
                continue
            seen.add((targets, counted))
            ahead = max(low - counted, *[known[target] for known, target in zip(lengths, targets, strict=True)])
            heappush(todo, (1 - length + ahead, length - 1, text + bytes((byte,)), counted, targets))
        if len(seen) > limits.automaton_states:
            raise LimitExceeded("automaton_states", limits.automaton_states, "patterns that meet need too many states")
    return None
