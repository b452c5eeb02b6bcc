"""Rows of items of which some have to match: how many items, and how many of them are of a special kind.

In: a `RowTemplate`: for each position an expression of its items, and one of those items that match. Out: expressions
whose state is the template and two counts. Items that match need not be told from those that do not: then an item is
read both ways side by side, and the row may end when one way has counted enough.
Invariant: only states are built from which the row can be completed.
Cost: a state costs its two alternatives; counts stop where more makes no difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .choice import alt
from .expression import EMPTY, INFINITE, NOTHING, Expr, Head, seq
from .interning import intern

__all__ = ["RowTemplate", "rows"]

Kinds = tuple[Expr, Expr]  # items as they are admitted, and those of them that match


class RowTemplate:
    """`leading` are the kinds of the first items, `rest` those of all after them. `low` to `high` items, `least` to
    `most` of which match; where `most` is given, the first of a pair of kinds excludes the second."""

    __slots__ = ("__weakref__", "_feasible", "high", "leading", "least", "low", "most", "rest", "separator")

    def __init__(
        self, leading: Sequence[Kinds], rest: Kinds, separator: Expr, *, low: int, high: int, least: int, most: int
    ) -> None:
        self.leading, self.rest, self.separator = tuple(leading), rest, separator
        self.low, self.high, self.least, self.most = low, high, least, most
        self._feasible: dict[tuple[int, int], bool] = {}

    def kinds(self, count: int) -> Kinds:
        return self.leading[count] if count < len(self.leading) else self.rest

    def after(self, count: int, hits: int, hit: int) -> tuple[int, int]:
        """The counts after one more item, stopped where more makes no difference."""
        enough = max(len(self.leading), self.low, 1) if self.high >= INFINITE else self.high + 1
        hits_enough = self.least if self.most >= INFINITE else self.most + 1
        return min(count + 1, enough), min(hits + hit, hits_enough)

    def ends(self, count: int, hits: int) -> bool:
        """Whether the row may end here."""
        return self.low <= count <= self.high and self.least <= hits <= self.most

    def completes(self, count: int, hits: int) -> bool:
        """Whether the row can be completed from here."""
        key = (count, hits)
        if key not in self._feasible:
            self._feasible[key] = self.feasible(count, hits, lambda expr: expr is not NOTHING)
        return self._feasible[key]

    def feasible(self, count: int, hits: int, usable: Callable[[Expr], bool]) -> bool:
        """Whether the row can be completed from here with items that are usable."""
        reached = {(count, hits)}
        while reached:
            reached = {(n, k) for n, k in reached if n <= self.high and k <= self.most}
            past = len(self.leading)
            if any(self.ends(n, k) or (n >= past and self._rest_completes(n, k, usable)) for n, k in reached):
                return True
            reached = {
                self.after(n, k, hit)
                for n, k in reached if n < len(self.leading)
                for hit in (0, 1) if usable(self.leading[n][hit])
            }  # fmt: skip
        return False

    def _rest_completes(self, count: int, hits: int, usable: Callable[[Expr], bool]) -> bool:
        plain, match = (usable(expr) for expr in self.rest)
        wanted, most = max(0, self.least - hits), self.most - hits
        items, room = max(0, self.low - count), self.high - count
        if plain:
            return wanted <= (min(room, most) if match else 0) and items <= room
        return match and max(items, wanted) <= min(room, most)


class Rows(Expr):
    """The items still to come after `count` items, `hits` of which matched."""

    __slots__ = ("count", "hits", "template")

    def __init__(self, template: RowTemplate, count: int, hits: int) -> None:
        self.template, self.count, self.hits = template, count, hits

    def parts(self) -> tuple[Expr, ...]:
        template = self.template
        every = (*(expr for kinds in template.leading for expr in kinds), *template.rest, template.separator)
        return tuple(expr for expr in every if expr is not NOTHING)

    def measure(self, of: Callable[[Expr], int], spell: Callable[[bytes], int]) -> int:
        template, total, count, hits = self.template, 0, self.count, self.hits
        between = of(template.separator)
        while count < len(template.leading) and not template.ends(count, hits):
            hit, cost = self._cheapest(template.leading[count], hits, of)
            total += cost + (between if count else 0)
            count, hits = template.after(count, hits, hit)
        wanted, items = max(0, template.least - hits), max(0, template.low - count)
        plain, match = (INFINITE if expr is NOTHING else of(expr) for expr in template.rest)
        others = max(0, items - wanted)
        total += wanted * (match if wanted else 0) + (others * min(plain, match) if others else 0)
        return min(INFINITE, total + between * max(0, wanted + others - (not count)))

    def climb(self, of: Callable[[Expr], int]) -> int:
        def within(most: int) -> Callable[[Expr], bool]:
            return lambda expr: expr is not NOTHING and of(expr) <= most

        peaks = sorted({0, *(of(expr) for expr in self.parts())})
        feasible = (peak for peak in peaks if self.template.feasible(self.count, self.hits, within(peak)))
        return next(feasible, INFINITE)

    def _cheapest(self, kinds: Kinds, hits: int, of: Callable[[Expr], int]) -> tuple[int, int]:
        """Whether the next item should match, and its cost."""
        plain, match = (INFINITE if expr is NOTHING else of(expr) for expr in kinds)
        if match < INFINITE and (hits < self.template.least or plain >= INFINITE):
            return 1, match
        return 0, plain

    def _find_heads(self) -> tuple[Head, ...]:
        template, ways = self.template, []
        kinds = template.kinds(self.count)
        for hit in (1, 0):
            counts = template.after(self.count, self.hits, hit)
            if kinds[hit] is not NOTHING and template.completes(*counts):
                ways.append(seq(kinds[hit], intern(Rows, template, *counts)))
        heads = seq(template.separator if self.count else EMPTY, alt(ways)).heads() if ways else ()
        return (*heads, ((), None, EMPTY)) if template.ends(self.count, self.hits) else heads

    def __repr__(self) -> str:
        return f"rows[{self.count},{self.hits}]"


def rows(template: RowTemplate) -> Expr:
    """The items of one row; `NOTHING` if there is none."""
    if not template.completes(0, 0):
        return NOTHING
    found: Expr = intern(Rows, template, 0, 0)
    return found
