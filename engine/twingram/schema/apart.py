"""Whether two alternatives exclude each other.

In: branches, or lists of them. Out: yes where types, listed values, or a member that one of them requires tell them
apart; no where that is not known. A wrong no costs time, not exactness.

What a schema says by itself is worked out once (`Facts`), what a branch says once for all the branches that it is put
together with (`Gist`): a place of two hundred alternatives is made of some thousand pairs.
Cost: pairs of gists and of their shared members, a few levels deep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..automaton.dfa import Dfa
from ..automaton.meet import acquainted
from ..automaton.regex import RegexError, pattern_dfa
from ..errors import LimitExceeded
from ..limits import Limits
from .keywords import MAPPING
from .report import Placed
from .stated import ALL_TYPES, Branch, canonical, declared_types, listed_values, type_of

__all__ = ["Apart", "Gist"]

_LEVELS = 3
_OBJECT = frozenset({"object"})
_TEXT = frozenset({"string"})
_NUMBER = frozenset({"integer"})
Direct = Callable[[Placed], Placed]  # follows bare references
Values = frozenset[Any] | None


class Facts(NamedTuple):
    """What a schema says by itself. `schema` keeps it alive: it is known by its identity."""

    schema: Mapping[Any, Any]
    types: frozenset[str]
    values: Values  # as canonical keys; None where it lists none
    required: frozenset[str]
    members: Mapping[Any, Any]
    closed: bool  # whether other members are forbidden


class Gist(NamedTuple):
    """What the schemas of a branch say together."""

    types: frozenset[str]
    values: Values
    required: frozenset[str]
    rows: tuple[Mapping[Any, Any], ...]  # the members that they list

    def children(self, name: str) -> list[Any]:
        """The schemas that are listed for a member."""
        return [row[name] for row in self.rows if name in row]


_NOTHING_SAID = Gist(ALL_TYPES, None, frozenset(), ())


class Apart:
    """Tells alternatives of one document apart."""

    def __init__(self, direct: Direct, limits: Limits) -> None:
        self._direct, self._limits = direct, limits
        self._facts: dict[int, Facts] = {}  # by the identity of the schema

    def facts(self, schema: Mapping[Any, Any]) -> Facts:
        found = self._facts.get(id(schema))
        if found is None:
            found = self._facts[id(schema)] = _facts(schema)
        return found

    def gist(self, branch: Branch, before: Gist = _NOTHING_SAID) -> Gist:
        """What the schemas of a branch say together, and with what was said before."""
        types, values, required, rows = before
        for schema, _ in branch:
            facts = self.facts(schema)
            types &= facts.types
            values = _meet(values, facts.values)
            if facts.required:
                required |= facts.required
            if facts.members:
                rows = (*rows, facts.members)
        return Gist(types, values, required, rows)

    def clash(self, left: Gist, right: Gist) -> bool:
        """Whether surely no value satisfies both: by what they admit of types, or of members that are required.
        Neither is known to contradict itself."""
        types = left.types & right.types
        if types != _OBJECT:
            return not types
        if any(self._impossible([*left.children(name), *right.children(name)]) for name in right.required):
            return True
        return any(  # members of which the right one says nothing stay as they are
            self._impossible([*left.children(name), *more])
            for name in left.required - right.required
            for more in (right.children(name),)
            if more
        )

    def contradicts(self, branch: Branch) -> bool:
        """Whether surely no value satisfies the branch."""
        return self.clash(_NOTHING_SAID, self.gist(branch))

    def _impossible(self, children: Sequence[Any]) -> bool:
        """Whether schemas of one member exclude each other by type or by value."""
        if any(child is False for child in children):
            return True
        stated = [self.facts(child) for child in children if isinstance(child, MAPPING)]
        if len(stated) < 2:
            return False
        if not frozenset.intersection(*(facts.types for facts in stated)):
            return True
        listed = [facts.values for facts in stated if facts.values is not None]
        return bool(listed) and not frozenset.intersection(*listed)

    # -- pairs of alternatives -----------------------------------------------------------------------------------------

    def apart(self, left: Branch, right: Branch, levels: int = _LEVELS) -> bool:
        """Whether surely no value satisfies both."""
        one, other = self.gist(left), self.gist(right)
        if one.values is not None and other.values is not None:
            return one.values.isdisjoint(other.values)
        shared = one.types & other.types
        if shared != _OBJECT:
            return not shared
        return (
            any(self._forbids(right, name) for name in one.required)
            or any(self._forbids(left, name) for name in other.required)
            or (levels > 0 and any(self._members_apart(left, right, n, levels) for n in one.required | other.required))
        )

    def _forbids(self, branch: Branch, name: str) -> bool:
        for schema, _ in branch:
            facts = self.facts(schema)
            if facts.members.get(name) is False or (facts.closed and name not in facts.members):
                return True
        return False

    def _members_apart(self, left: Branch, right: Branch, name: str, levels: int) -> bool:
        one, other = self._member(left, name), self._member(right, name)
        return bool(one) and bool(other) and self.apart(one, other, levels - 1)

    def _member(self, branch: Branch, name: str) -> Branch:
        """What the schemas of a branch say of a member, as far as they list it."""
        children = []
        for schema, path in branch:
            members = self.facts(schema).members
            if name in members:
                children.append(self._direct(Placed(members[name], path)))
        return tuple(child for child in children if isinstance(child.schema, MAPPING))

    def only_keys(self, branch: Branch) -> set[str] | None:
        """The keys that the objects of a branch may have; None if others are free."""
        found: set[str] | None = None
        for schema, _ in branch:
            facts = self.facts(schema)
            if facts.closed:
                found = set(facts.members) if found is None else found & set(facts.members)
        return found

    # -- many alternatives ---------------------------------------------------------------------------------------------

    def told_apart(self, options: Sequence[Sequence[Branch]], beside: Branch) -> bool:
        """Whether options are told apart by the values that they list: their own, or those of a member that all
        require. What hundreds of options do as a rule, in time that is linear in them."""
        branches = [branch for option in options for branch in option]
        gists = {id(branch): self.gist(branch) for branch in branches}
        if all(gist.values is not None for gist in gists.values()):
            return _owned(options, lambda branch: gists[id(branch)].values)
        types = self.gist(beside).types
        if not branches or any(types & gist.types != _OBJECT for gist in gists.values()):
            return False
        return any(
            _owned(options, lambda branch, name=name: self.gist(self._member(branch, name)).values)  # type: ignore[misc]
            for name in sorted(frozenset.intersection(*(gist.required for gist in gists.values())))
        )


    def texts(self, options: Sequence[Sequence[Branch]], beside: Branch) -> Callable[[int, int], bool]:
        """Whether two of the options are texts that a pattern tells apart."""
        types = self.gist(beside).types
        dfas: dict[int, Dfa] = {}
        for index, option in enumerate(options):
            found = [self._pattern(branch) for branch in option if types & self.gist(branch).types == _TEXT]
            if len(option) == 1 and len(found) == 1 and found[0] is not None:
                dfas[index] = found[0]
        pairs = acquainted(list(dfas.values())) if len(dfas) > 1 else None
        place = {index: at for at, index in enumerate(dfas if pairs is not None else ())}
        return lambda one, other: one in place and other in place and (place[one], place[other]) not in (pairs or ())

    def _pattern(self, branch: Branch) -> Dfa | None:
        """The automaton of a pattern that all texts of a branch match, if there is one."""
        for schema, _ in branch:
            pattern = schema.get("pattern")
            if isinstance(pattern, str):
                try:
                    return pattern_dfa(pattern, limits=self._limits)
                except (RegexError, LimitExceeded):
                    continue
        return None


def _owned(options: Sequence[Sequence[Branch]], values: Callable[[Branch], Values]) -> bool:
    """Whether each value is that of one option only."""
    owner: dict[Any, int] = {}
    for index, option in enumerate(options):
        for branch in option:
            found = values(branch)
            if found is None or any(owner.setdefault(value, index) != index for value in found):
                return False
    return True


def _meet(one: Values, other: Values) -> Values:
    return one if other is None else other if one is None else one & other


def _facts(schema: Mapping[Any, Any]) -> Facts:
    types = declared_types(schema) or ALL_TYPES
    listed = listed_values(schema)
    if listed is not None:
        kinds: frozenset[str] = frozenset().union(*(type_of(value) for value in listed))
        types &= kinds | _NUMBER if "number" in kinds else kinds
    required = schema.get("required")
    members = schema.get("properties")
    return Facts(
        schema,
        types,
        None if listed is None else frozenset(map(canonical, listed)),
        _texts(required) if isinstance(required, list) else frozenset(),
        members if isinstance(members, MAPPING) else {},
        schema.get("additionalProperties") is False and not schema.get("patternProperties"),
    )


def _texts(names: Iterable[Any]) -> frozenset[str]:
    return frozenset(name for name in names if isinstance(name, str))
