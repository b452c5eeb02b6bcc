"""Arrays: items, leading items, and how many.

In: schemas that hold together. Out: a plan: the parts it needs, and how they make the arrays of the place.

An array is its leading items (`prefixItems`, or `items` as a list) and the rest, each position under all schemas at
once. A position that nothing satisfies ends the array before it.
Cost: linear in the leading items; counts cost nothing, they are part of a repetition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..automaton.choice import maybe
from ..automaton.expression import EMPTY, NOTHING, Expr, seq
from .bounds import greatest, least
from .forms import Forms, row_of
from .report import Placed, Refusal, Report
from .stated import Branch

__all__ = ["ArrayPlan"]


class ArrayPlan:
    """The arrays of a branch. `parts` are the schemas of the leading items, then that of the rest."""

    def __init__(self, branch: Branch, forms: Forms, path: str, report: Report) -> None:
        self.branch, self.forms, self.path = branch, forms, path
        self.low = greatest(branch, "minItems", report)
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

    @property
    def part_forms(self) -> Forms:
        return self.forms.item

    def path_of(self, index: int) -> str:
        return f"{self.path}.items"

    def build(self, exprs: Sequence[Expr], refusals: Sequence[Refusal | None]) -> Expr | Refusal:
        """The expression, once the parts are compiled."""
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
