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
from ..automaton.expression import INFINITE, NOTHING, Expr, seq
from ..automaton.members import ObjectTemplate
from .bounds import greatest, least
from .context import Context
from .forms import Forms
from .keys import FreeKeys, KeyRule
from .keywords import MAPPING, Derived, Own
from .literals import ranks_of
from .report import Placed, Refusal, step
from .satisfies import needs_of
from .stated import Branch, derived

__all__ = ["REPEATED", "ObjectPlan"]

REPEATED = "a key that is not declared may be written more than once; the last value counts"


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
        self.report, self.options, self.limits = rest.report, rest.options, rest.limits
        self.parts: list[tuple[Placed, ...]] = []
        self.members: list[Member] = []
        self.keys = KeyRule(branch, forms, rest)
        self.needs: dict[str, set[str]] = {}  # name -> the members that it asks for
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
            if isinstance(properties, MAPPING):
                for name in properties:
                    if isinstance(name, str):
                        listed.setdefault(name, f"{path}.properties{step(name)}")
                    else:
                        self.report.malformed(path, "properties", "an object, whose names are texts")
            elif properties is not None:
                self.report.malformed(path, "properties", "an object")
        for name, path in required.items():
            listed.setdefault(name, f"{path}.required")
        self._depend(listed)
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

    def _depend(self, listed: dict[str, str]) -> None:
        """Note which members ask for which. Both are declared then, unless the asking one cannot be written at all."""
        for schema, path in self.branch:
            for name, needed in needs_of(schema):
                if name in listed or not self._closed:
                    self.needs.setdefault(name, set()).update(needed)
                    for each in (name, *needed):
                        listed.setdefault(each, f"{path}.dependentRequired")

    # -- free keys -----------------------------------------------------------------------------------------------------

    @property
    def _closed(self) -> bool:
        """Whether only the declared keys are to be written, whatever else the schema admits.

        An empty list of properties declares that a tool has no parameters; deeper, it declares nothing.
        """
        if self.options.additional_properties == "schema":
            return False
        return any(
            schema.get("properties") or (self.forms.arguments and _no_parameters(schema))
            for schema, _ in self.branch
            if not isinstance(schema, Derived)
        )

    def _free_keys(self) -> list[FreeKeys]:
        if self._closed:
            for schema, path in self.branch:
                if "properties" not in schema or isinstance(schema, Derived):
                    continue
                if schema.get("additionalProperties", True) is not False:
                    self.report.narrow(path, "additionalProperties", "only the declared members are written")
                if schema.get("patternProperties"):
                    self.report.narrow(path, "patternProperties", "only the declared members are written")
            return []
        return self.keys.classes(tuple(member.name for member in self.members))

    def sample_key(self, index: int) -> str:
        """One of the keys of a class of free keys; all of them are read alike."""
        free = self.free[index - len(self.members)]
        dfas, low, high, _ = free.keys
        found = self.forms.sample_key(dfas, low, high, self.limits)
        if found in free.declared:
            dfas = (*dfas, self.forms.free_keys(free.declared, self.limits))
            found = self.forms.sample_key(dfas, low, high, self.limits)
        return found or ""

    # -- building ------------------------------------------------------------------------------------------------------

    def build(self, exprs: Sequence[Expr], refusals: Sequence[Refusal | None]) -> Expr | Refusal:
        """The expression, once the parts are compiled."""
        written: list[tuple[Member, Expr]] = []
        left_out: dict[str, Refusal] = {}
        for member, expr, refusal in zip(self.members, exprs, refusals, strict=False):
            why = self._unwritable(member, expr, refusal)
            if why is None:
                written.append((member, expr))
            else:
                left_out[member.name] = why
        self._leave_out_askers(written, left_out)
        for member in self.members:
            why = left_out.get(member.name)
            if why is not None and member.required:
                return why
            if why is not None and why.keyword and not derived(self.branch):
                self.report.refuse(why._replace(reason=f"{why.reason}; the member is left out"))
        return self._object(written, self._free(exprs[len(self.members) :]))

    def _leave_out_askers(self, written: list[tuple[Member, Expr]], left_out: dict[str, Refusal]) -> None:
        """A member that asks for one that cannot be written cannot be written either."""
        while True:
            asking = [each for each in written if not self.needs.get(each[0].name, set()).isdisjoint(left_out)]
            if not asking:
                return
            for member, expr in asking:
                written.remove((member, expr))
                left_out[member.name] = Refusal(member.path, "dependentRequired", "what it asks for cannot be written")

    def _object(self, written: list[tuple[Member, Expr]], free: Expr) -> Expr | Refusal:
        entries = []
        for member, expr in written:
            assert member.spelt is not None
            entries.append((member.spelt, self.forms.after_key(expr), member.required))
        low, high = self._counts(entries, free)
        place = {member.name: index for index, (member, _) in enumerate(written)}
        needs = [[place[name] for name in self.needs.get(m.name, ()) if name in place] for m, _ in written]
        template = ObjectTemplate(
            entries, before=self.forms.before_key, separator=self.forms.object.separator, free=free,
            order=ranks_of([member.name for member, _ in written], self.options.key_order),
            least=low, most=high, needs=needs if self.needs else (),
        )  # fmt: skip
        found = self.forms.object_of(template)
        return found if found is not NOTHING else self._miscounted(entries, low, high)

    def _counts(self, entries: Sequence[tuple[bytes, Expr, bool]], free: Expr) -> tuple[int, int]:
        """How many members there are, as far as that is not plain from the members themselves."""
        low = greatest(self.branch, "minProperties", self.report)
        high = least(self.branch, "maxProperties", self.report)
        needed = sum(required for _, _, required in entries)
        if any({} in _excluded(schema) for schema, _ in self.branch):
            low = max(low, 1)
        if low > needed and self.needs and (high is not None or self.options.key_order != "any"):
            self._mark("minProperties", "members are not counted where some ask for others")
            low = 0
        if low > max(needed, 1) and free is not NOTHING:
            self._mark("minProperties", "a key that is not declared may be written twice, and is counted twice then")
        most = INFINITE if high is None or (free is NOTHING and high >= len(entries)) else high
        return (low if low > needed else 0), most

    def _mark(self, keyword: str, reason: str) -> None:
        path = next((path for schema, path in self.branch if keyword in schema), self.path)
        self.report.relax(path, keyword, reason)

    def _miscounted(self, entries: Sequence[tuple[bytes, Expr, bool]], low: int, high: int) -> Refusal:
        needed = sum(required for _, _, required in entries)
        if high < needed:
            return Refusal(self.path, "maxProperties", f"{needed} members are required")
        return Refusal(self.path, "minProperties", f"only {min(len(entries), high)} members can be written")

    def _unwritable(self, member: Member, expr: Expr, refusal: Refusal | None) -> Refusal | None:
        """Why a member cannot be written, if so."""
        if member.spelt is None:
            if self.keys.admits(member.name):
                return Refusal(member.path, "properties", f"the format cannot write the key {member.name!r}")
            return Refusal(member.path, "propertyNames", f"the key {member.name!r} is not admitted")
        if expr is not NOTHING:
            return None
        if refusal is None and all(placed.schema is False for placed in self.keys.values_of(member.name)):
            return Refusal(member.path, "", "it is excluded")
        return refusal or Refusal(member.path, "properties", "nothing satisfies this")

    def _free(self, exprs: Sequence[Expr]) -> Expr:
        """Whole members with free keys, each from its key on."""
        ways = []
        for free, expr in zip(self.free, exprs, strict=True):
            if expr is not NOTHING:
                key = self.forms.free_key(*free.keys[:3], free.declared, self.limits)
                ways.append(seq(key, self.forms.after_key(expr)))
        found = alt(ways)
        if found is not NOTHING:
            self.report.note(self.path, "additionalProperties", REPEATED)
        return found


def _excluded(schema: Mapping[Any, Any]) -> Sequence[Any]:
    found: Sequence[Any] = schema.get(Own.EXCLUDED, ())
    return found


def _no_parameters(schema: Mapping[str, Any]) -> bool:
    return "properties" in schema and not schema.keys() & {"additionalProperties", "patternProperties"}
