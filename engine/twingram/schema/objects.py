"""Objects: declared members, free members, and which must be there.

In: schemas that hold together. Out: a plan: the parts it needs (the values of members), and how they make the objects
of the place.

A declared key is one that some schema lists or requires; its value is under every schema that speaks of it. All other
keys are free: they fall into classes by the key patterns that they match, and each class has one schema of values.
An optional member that nothing satisfies, or whose key the format cannot write, is left out and reported; a required
one makes the object unwritable.
Cost: linear in the members, in any order (`automaton.members`). Free keys cost one product of automata a pattern.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..automaton.choice import alt
from ..automaton.counted import counted
from ..automaton.expression import INFINITE, NOTHING, Expr, seq, text
from ..automaton.members import ObjectTemplate
from .bounds import greatest, least
from .context import Context
from .forms import Forms
from .keys import FreeKeys, KeyRule
from .literals import ranks_of
from .report import Placed, Refusal, step
from .stated import Branch

__all__ = ["REPEATED", "ObjectPlan"]

REPEATED = "keys that are not declared may be written more than once"


class Member(NamedTuple):
    """A declared key: its path, its spelling (None: it has none), and whether it must be there."""

    name: str
    path: str
    spelt: bytes | None
    required: bool


class ObjectPlan:
    """The objects of a branch. `parts` are the schemas of declared members, then those of the classes of free keys."""

    def __init__(self, branch: Branch, forms: Forms, path: str, rest: Context) -> None:
        self.branch, self.forms, self.path = branch, forms, path
        self.report, self.options = rest.report, rest.options
        self.parts: list[tuple[Placed, ...]] = []
        self.members: list[Member] = []
        self.keys = KeyRule(branch, forms, rest)
        self._declare()
        self.free: list[FreeKeys] = self._free_keys()
        self.parts += [free.values for free in self.free]

    @property
    def part_forms(self) -> Forms:
        return self.forms.member

    def path_of(self, index: int) -> str:
        return self.members[index].path if index < len(self.members) else f"{self.path}.additionalProperties"

    # -- declared keys -------------------------------------------------------------------------------------------------

    def _declare(self) -> None:
        required = self._required()
        listed: dict[str, str] = {}  # name -> path of its first schema
        for schema, path in self.branch:
            properties = schema.get("properties")
            if isinstance(properties, Mapping):
                for name in properties:
                    if isinstance(name, str):
                        listed.setdefault(name, f"{path}.properties{step(name)}")
                    else:
                        self.report.malformed(path, "properties", "an object, whose names are texts")
            elif properties is not None:
                self.report.malformed(path, "properties", "an object")
        for name, path in required.items():
            listed.setdefault(name, f"{path}.required")
        spell = self.forms.object.key.spell
        for name, path in listed.items():
            spelt = spell(name)
            self.members.append(Member(name, path, spelt if self.keys.admits(name) else None, name in required))
            self.parts.append(tuple(self.keys.values_of(name)))

    def _required(self) -> dict[str, str]:
        """Required names, with the path of the schema that says so."""
        found: dict[str, str] = {}
        for schema, path in self.branch:
            names = schema.get("required")
            if isinstance(names, list) and all(isinstance(name, str) for name in names):
                for name in names:
                    found.setdefault(name, path)
            elif names is not None and not isinstance(names, bool):  # drafts up to 3 have a flag here
                self.report.malformed(path, "required", "a list of names")
        return found

    # -- free keys -----------------------------------------------------------------------------------------------------

    @property
    def _closed(self) -> bool:
        """Whether only the declared keys are to be written, whatever else the schema admits.

        An empty list of properties declares that a tool has no parameters; deeper, it declares nothing.
        """
        if self.options.additional_properties == "schema":
            return False
        return any(
            schema.get("properties") or (self.forms.arguments and _no_parameters(schema)) for schema, _ in self.branch
        )

    def _free_keys(self) -> list[FreeKeys]:
        if self._closed:
            for schema, path in self.branch:
                if "properties" not in schema:
                    continue
                if schema.get("additionalProperties", True) is not False:
                    self.report.narrow(path, "additionalProperties", "only the declared members are written")
                if schema.get("patternProperties"):
                    self.report.narrow(path, "patternProperties", "only the declared members are written")
            return []
        return self.keys.classes(tuple(member.name for member in self.members))

    # -- building ------------------------------------------------------------------------------------------------------

    def build(self, exprs: Sequence[Expr], refusals: Sequence[Refusal | None]) -> Expr | Refusal:
        """The expression, once the parts are compiled."""
        names: list[str] = []
        entries: list[tuple[bytes, Expr, bool]] = []
        for member, expr, refusal in zip(self.members, exprs, refusals, strict=False):
            why = self._unwritable(member, expr, refusal)
            if why is None:
                assert member.spelt is not None
                names.append(member.name)
                entries.append((member.spelt, self.forms.after_key(expr), member.required))
            elif member.required:
                return why
            else:
                self.report.refuse(why._replace(reason=f"{why.reason}; the member is left out"))
        most = least(self.branch, "maxProperties", self.report)
        free = self._free(exprs[len(self.members) :]) if most != 0 else NOTHING
        wrong = self._count(entries, free, most)
        if wrong is not None:
            return wrong
        if most == 0:
            names, entries = [], []
        template = ObjectTemplate(
            entries, before=self.forms.before_key, separator=self.forms.object.separator,
            free=free, order=ranks_of(names, self.options.key_order),
        )  # fmt: skip
        return self.forms.object_of(template)

    def _unwritable(self, member: Member, expr: Expr, refusal: Refusal | None) -> Refusal | None:
        """Why a member cannot be written, if so."""
        if member.spelt is None:
            if self.keys.admits(member.name):
                return Refusal(member.path, "properties", f"the format cannot write the key {member.name!r}")
            return Refusal(member.path, "propertyNames", f"the key {member.name!r} is not admitted")
        if expr is not NOTHING:
            return None
        return refusal or Refusal(member.path, "properties", "nothing satisfies this")

    def _free(self, exprs: Sequence[Expr]) -> Expr:
        """Whole members with free keys, each from its key on."""
        ways = []
        for free, expr in zip(self.free, exprs, strict=True):
            if expr is not NOTHING:
                any_length = (free.low, free.high) == (0, INFINITE)
                key = text(free.dfa) if any_length else counted(free.dfa, free.low, free.high)
                ways.append(seq(key, self.forms.after_key(expr)))
        found = alt(ways)
        if found is not NOTHING:
            self.report.relax(self.path, "additionalProperties", REPEATED, always=True)
        return found

    def _count(self, entries: list[tuple[bytes, Expr, bool]], free: Expr, high: int | None) -> Refusal | None:
        """Hold `minProperties` and `maxProperties` where the declared members decide them."""
        low = greatest(self.branch, "minProperties", self.report)
        needed = sum(required for _, _, required in entries)
        if high is not None and high < needed:
            return Refusal(self.path, "maxProperties", f"{needed} members are required")
        writable = 0 if high == 0 else len(entries)
        if free is NOTHING and low > writable:
            return Refusal(self.path, "minProperties", f"only {writable} members can be written")
        if low > needed:
            self._uncounted("minProperties")
        if high is not None and (free is not NOTHING or high < writable):
            self._uncounted("maxProperties")
        return None

    def _uncounted(self, keyword: str) -> None:
        path = next(path for schema, path in self.branch if keyword in schema)
        self.report.relax(path, keyword, "members are not counted")


def _no_parameters(schema: Mapping[str, Any]) -> bool:
    return "properties" in schema and not schema.keys() & {"additionalProperties", "patternProperties"}
