"""What became of each keyword.

In: marks that the builders leave while they compile. Out: `Finding`s: for each tool, JSON path and keyword whether the
mask holds it (`enforced`), is smaller than the schema there (`narrowed`), larger (`relaxed`), or whether nothing can be
written (`refused`), with the reason.

Invariant: a keyword that was read and restricts something is in the findings; what is not enforced carries a mark.
Cost: compiling leaves one reference a schema and one entry a mark; findings are made when they are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from ..automaton.expression import Expr
from ..errors import SchemaError
from .keywords import ANNOTATIONS

__all__ = ["CompiledSchema", "Finding", "Placed", "Refusal", "Report", "step"]


class Placed(NamedTuple):
    """A schema and the JSON path to it."""

    schema: Any
    path: str


class Refusal(NamedTuple):
    """Why nothing can be written at a place."""

    path: str
    keyword: str
    reason: str


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of one keyword at one place."""

    tool: str
    path: str
    keyword: str
    status: str  # "enforced" | "narrowed" | "relaxed" | "refused"
    reason: str = ""

    def for_tool(self, tool: str) -> Finding:
        """The same for another tool with an equal schema."""
        return self if tool == self.tool else Finding(tool, self.path, self.keyword, self.status, self.reason)


class Report:
    """The marks of one compilation. `strict`: a keyword that cannot be enforced is an error."""

    __slots__ = ("_marks", "_read", "strict", "tool")

    def __init__(self, tool: str, *, strict: bool) -> None:
        self.tool, self.strict = tool, strict
        self._read: list[Placed] = []
        self._marks: dict[tuple[str, str, str], str] = {}  # (path, keyword, status) -> reason

    def read(self, placed: Placed) -> None:
        """This schema takes part; its keywords count as enforced unless a mark says otherwise."""
        self._read.append(placed)

    def narrow(self, path: str, keyword: str, reason: str) -> None:
        self._marks.setdefault((path, keyword, "narrowed"), reason)

    def note(self, path: str, keyword: str, reason: str) -> None:
        """The mask says of values what the schema says; this is how."""
        self._marks.setdefault((path, keyword, "enforced"), reason)

    def relax(self, path: str, keyword: str, reason: str, *, always: bool = False) -> None:
        """The mask is larger than the schema. `always`: no request can avoid it, so that it is never an error."""
        if self.strict and not always:
            hint = "leave the keyword out, or allow it to be relaxed"
            raise SchemaError(f"cannot be enforced: {reason}", tool=self.tool, path=path, keyword=keyword, hint=hint)
        self._marks.setdefault((path, keyword, "relaxed"), reason)

    def refuse(self, refusal: Refusal) -> None:
        self._marks.setdefault((refusal.path, refusal.keyword, "refused"), refusal.reason)

    def malformed(self, path: str, keyword: str, wanted: str) -> None:
        """The value of a keyword is not what it has to be: it restricts nothing."""
        self.relax(path, keyword, f"malformed: the value must be {wanted}")

    def findings(self) -> tuple[Finding, ...]:
        """Every keyword that was read, in the order of reading, then what other keywords would have said."""
        marks: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for (path, keyword, status), reason in self._marks.items():
            marks.setdefault((path, keyword), []).append((status, reason))
        found: list[Finding] = []
        for placed in dict.fromkeys(_Same(placed) for placed in self._read):
            schema, path = placed.placed
            for keyword in schema:
                if keyword not in ANNOTATIONS and not str(keyword).startswith("x-"):
                    rows = marks.pop((path, str(keyword)), (("enforced", ""),))
                    found += [Finding(self.tool, path, str(keyword), *row) for row in _told(rows)]
        for (path, keyword), left in marks.items():
            found += [Finding(self.tool, path, keyword, *row) for row in _told(left)]
        return tuple(found)


def _told(rows: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    """What is enforced is said only where nothing else is."""
    return [row for row in rows if row[0] != "enforced"] or rows


class _Same:
    """A placed schema that equals only itself: schemas are told apart by identity."""

    __slots__ = ("placed",)

    def __init__(self, placed: tuple[Mapping[str, Any], str]) -> None:
        self.placed = placed

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.placed[0] is other.placed[0] and self.placed[1] == other.placed[1]

    def __hash__(self) -> int:
        return hash((id(self.placed[0]), self.placed[1]))


class CompiledSchema:
    """The language of a schema's values in one spelling, and what became of the schema's keywords. `containers`: how
    many objects and arrays it describes, those without end once (see `automaton.depth`)."""

    def __init__(self, expr: Expr, report: Report, containers: int) -> None:
        self.expr, self._report, self.containers = expr, report, containers

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        return self._report.findings()


@lru_cache(maxsize=4096)
def step(name: str) -> str:
    """One step of a JSON path: `.name`, or `['a name']` where the dot would not do."""
    if name.replace("$", "_").replace("-", "_").isidentifier():
        return "." + name
    shown = name.encode("utf-8", "backslashreplace").decode()  # a path is printed: half a surrogate pair cannot be
    return "['" + shown.replace("\\", "\\\\").replace("'", "\\'") + "']"
