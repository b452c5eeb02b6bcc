"""Arrays: items, leading items, how many, how many of a kind, and none twice.

In: schemas that hold together. Out: a plan: the parts it needs, and how they make the arrays of the place.

An array is its leading items (`prefixItems`, or `items` as a list) and the rest, each position under all schemas at
once. A position that nothing satisfies ends the array before it. Where items have to be contained, each position has a
second part: its items that match as well. Items that must differ are exact where they are enumerated: they are written
as the members of an object are, each once.
Cost: linear in the leading items; counts cost nothing, they are part of a repetition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..automaton.choice import maybe
from ..automaton.expression import EMPTY, INFINITE, NOTHING, Expr, seq
from ..automaton.members import ObjectTemplate, members
from ..automaton.rows import RowTemplate, rows
from .bounds import greatest, least
from .context import Context
from .forms import Forms, row_of
from .keywords import Own
from .literals import Literals
from .report import Placed, Refusal, Report
from .stated import Branch

__all__ = ["ArrayPlan"]


class ArrayPlan:
    """The arrays of a branch. `parts` are the schemas of the leading items, then that of the rest; where items are
    contained, then the same once more with what they have to match."""

    def __init__(self, branch: Branch, forms: Forms, path: str, rest: Context, literals: Literals) -> None:
        self.branch, self.forms, self.path, self._rest, self._literals = branch, forms, path, rest, literals
        report = rest.report
        self.low = greatest(branch, "minItems", report)
        if any([] in schema.get(Own.EXCLUDED, ()) for schema, _ in branch):
            self.low = max(self.low, 1)
        self.high = least(branch, "maxItems", report)
        lists = [_positions(placed, report) for placed in branch]
        width = max((len(leading) for leading, _ in lists), default=0)
        if self.high is not None:
            width = min(width, max(self.high, 0))
        self.parts: list[tuple[Placed, ...]] = []
        for index in range(width):
            here = (leading[index] if index < len(leading) else rest for leading, rest in lists)
            self.parts.append(tuple(placed for placed in here if placed is not None))
        self.parts.append(tuple(rest for _, rest in lists if rest is not None))
        self._own = len(self.parts)
        self.sought = self._contained()

    def _contained(self) -> tuple[int, int] | None:
        """How many items have to match; the parts for it are added."""
        found = [placed for placed in self.branch if "contains" in placed.schema]
        for placed in found[1:]:
            self._rest.report.relax(placed.path, "contains", "only one such keyword is followed where several meet")
        if not found:
            return None
        schema, path = found[0]
        low = greatest(found[:1], "minContains", self._rest.report) if "minContains" in schema else 1
        high = least(found[:1], "maxContains", self._rest.report)
        if not low and high is None:
            return None
        wanted = Placed(schema["contains"], f"{path}.contains")
        own = self.parts
        if high is not None:
            away = Placed(self._rest.resolver.negated(wanted.schema), wanted.path)
            self.parts = [(*part, away) for part in own]
        self.parts = [*self.parts, *((*part, wanted) for part in own)]
        return low, INFINITE if high is None else high

    @property
    def part_forms(self) -> Forms:
        return self.forms.item

    def path_of(self, index: int) -> str:
        return f"{self.path}.items"

    # -- building ------------------------------------------------------------------------------------------------------

    def build(self, exprs: Sequence[Expr], refusals: Sequence[Refusal | None]) -> Expr | Refusal:
        """The expression, once the parts are compiled."""
        unique = next((placed for placed in self.branch if placed.schema.get("uniqueItems") is True), None)
        if unique is not None and (self.high is None or self.high > 1):
            distinct = None if len(exprs) > 1 else self._distinct()
            if distinct is not None:
                return distinct
            self._rest.report.relax(unique.path, "uniqueItems", "items that are not enumerated are not compared")
        if self.sought is not None:
            return self._matching(exprs)
        return self._plain(exprs, refusals)

    def _plain(self, exprs: Sequence[Expr], refusals: Sequence[Refusal | None]) -> Expr | Refusal:
        *leading, rest = exprs
        high = self.high
        for index, expr in enumerate(leading if rest is not NOTHING else [*leading, NOTHING]):
            if expr is NOTHING:
                high = index if high is None else min(index, high)
                leading, rest = leading[:index], NOTHING
                break
        if high is not None and high < self.low:
            reason = next((r for r in refusals if r is not None), None)
            if reason is not None and (self.high is None or high < self.high):
                return Refusal(reason.path, reason.keyword, f"{reason.reason}, and {self.low} items are needed")
            return Refusal(self.path, "minItems", f"an array of {self.low} to {high} items does not exist")
        if not leading:
            return self.forms.list_of(rest, self.low, high)
        shape = self.forms.array
        return seq(shape.before, self._row(leading[:high], rest, high), shape.after)

    def _row(self, leading: Sequence[Expr], rest: Expr, high: int | None) -> Expr:
        separator, count = self.forms.array.separator, len(leading)
        if not count:
            return EMPTY
        more = seq(separator, rest)
        tail = EMPTY if rest is NOTHING else row_of(
            more, EMPTY, max(0, self.low - count), None if high is None else high - count
        )  # fmt: skip
        for index in range(count - 1, -1, -1):
            tail = seq(separator if index else EMPTY, leading[index], tail)
            if index >= self.low:
                tail = maybe(tail)
        return tail

    def _matching(self, exprs: Sequence[Expr]) -> Expr | Refusal:
        """Arrays of which some items match."""
        assert self.sought is not None
        shape, (low, high) = self.forms.array, self.sought
        kinds = list(zip(exprs[: self._own], exprs[self._own :], strict=True))
        row = rows(
            RowTemplate(
                kinds[:-1], kinds[-1], shape.separator, low=self.low,
                high=INFINITE if self.high is None else self.high, least=low, most=high,
            )
        )  # fmt: skip
        if row is NOTHING:
            return Refusal(self.path, "contains", "no array has so many items of that kind")
        return seq(shape.before, row, shape.after)

    def _distinct(self) -> Expr | Refusal | None:
        """Arrays of enumerated items, each at most once; None where they are not enumerated, or not of one type."""
        entries = self._literals.alternatives(self.parts[-1], self.part_forms)
        if entries is None:
            return None
        before, words = entries
        shape = self.forms.array
        high = INFINITE if self.high is None or self.high >= len(words) else max(self.high, -1)
        row = members(
            ObjectTemplate(
                [(word, tail, False) for word, tail in words], before=before, separator=shape.separator,
                least=self.low, most=high,
            )
        )  # fmt: skip
        if row is NOTHING:
            return Refusal(self.path, "uniqueItems", f"there are no {self.low} different items")
        return seq(shape.before, row, shape.after)


def _positions(placed: Placed, report: Report) -> tuple[list[Placed], Placed | None]:
    """The schemas of the leading items and of the rest (None: anything)."""
    schema, path = placed
    for keyword, others in (("prefixItems", "items"), ("items", "additionalItems")):
        listed = schema.get(keyword)
        if isinstance(listed, list):
            leading = [Placed(item, f"{path}.{keyword}[{index}]") for index, item in enumerate(listed)]
            return leading, _single(schema, others, path)
        if keyword == "prefixItems" and listed is not None:
            report.malformed(path, keyword, "a list of schemas")
    return [], _single(schema, "items", path)


def _single(schema: Any, keyword: str, path: str) -> Placed | None:
    value = schema.get(keyword, True)
    return None if value is True or isinstance(value, list) else Placed(value, f"{path}.{keyword}")
