"""Whether two alternatives exclude each other.

In: branches, or lists of them. Out: yes where types, listed values, or a member that one of them requires tell them
apart; no where that is not known. A wrong no costs time, not exactness.
Cost: pairs of schemas and of their shared members, a few levels deep.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .report import Placed
from .stated import Branch, admitted, canonical, listed_values, type_of

__all__ = ["apart", "contradicts", "told_apart"]

_LEVELS = 3
Direct = Callable[[Placed], Placed]  # follows bare references


def apart(left: Branch, right: Branch, direct: Direct, levels: int = _LEVELS) -> bool:
    """Whether surely no value satisfies both."""
    one, other = _values(left), _values(right)
    if one is not None and other is not None:
        return one.isdisjoint(other)
    shared = _types(left) & _types(right)
    if not shared:
        return True
    return shared == {"object"} and _by_member(left, right, direct, levels)


def told_apart(options: Sequence[Sequence[Branch]], beside: Branch, direct: Direct) -> bool:
    """Whether options are told apart by the values that they list: their own, or those of a member that all require.

    What hundreds of options do as a rule, in time that is linear in them.
    """
    branches = [branch for option in options for branch in option]
    if all(_values(branch) is not None for branch in branches):
        return _owned(options, _values)
    if not branches or any(_types((*beside, *branch)) != {"object"} for branch in branches):
        return False
    return any(
        _owned(options, lambda branch, name=name: _values(_member(branch, name, direct)))  # type: ignore[misc]
        for name in sorted(set.intersection(*map(_required, branches)))
    )


def _owned(options: Sequence[Sequence[Branch]], values: Callable[[Branch], frozenset[Any] | None]) -> bool:
    """Whether each value is that of one option only."""
    owner: dict[Any, int] = {}
    for index, option in enumerate(options):
        for branch in option:
            found = values(branch)
            if found is None or any(owner.setdefault(value, index) != index for value in found):
                return False
    return True


def contradicts(branch: Branch, known: int = 0) -> bool:
    """Whether surely no value satisfies the branch: what it admits of types, or of members that it requires. The first
    `known` schemas are known not to contradict each other."""
    types = _types(branch)
    if not types:
        return True
    if types != {"object"}:
        return False
    names = _required(branch)
    if known:  # members of which the rest says nothing stay as they are
        listed = (_mapping(schema.get("properties")) for schema, _ in branch[known:])
        names &= _required(branch[known:]).union(*listed)
    return any(_impossible(branch, name) for name in names)


def _impossible(branch: Branch, name: str) -> bool:
    """Whether the schemas of a member that are listed exclude each other by type or by value."""
    rows = (_mapping(schema.get("properties")) for schema, _ in branch)
    children = [listed[name] for listed in rows if name in listed]
    if any(child is False for child in children):
        return True
    member = tuple(Placed(child, "") for child in children if isinstance(child, Mapping))
    return len(member) > 1 and (not _types(member) or _values(member) == frozenset())


def _types(branch: Branch) -> frozenset[str]:
    types = admitted(branch)
    for schema, _ in branch:
        values = listed_values(schema)
        if values is not None:
            listed: frozenset[str] = frozenset().union(*(type_of(value) for value in values))
            types &= listed | ({"integer"} if "number" in listed else frozenset())
    return types


def _values(branch: Branch) -> frozenset[Any] | None:
    """The values that all of the schemas list which list any."""
    together: frozenset[Any] | None = None
    for schema, _ in branch:
        values = listed_values(schema)
        if values is not None:
            mine = frozenset(canonical(value) for value in values)
            together = mine if together is None else together & mine
    return together


def _by_member(left: Branch, right: Branch, direct: Direct, levels: int) -> bool:
    needs, others = _required(left), _required(right)
    return (
        any(_forbids(right, name) for name in needs)
        or any(_forbids(left, name) for name in others)
        or any(_members_apart(left, right, name, direct, levels) for name in needs | others)
    )


def _required(branch: Branch) -> set[str]:
    return {
        name for schema, _ in branch if isinstance(schema.get("required"), list) for name in schema["required"]
        if isinstance(name, str)
    }  # fmt: skip


def _forbids(branch: Branch, name: str) -> bool:
    for schema, _ in branch:
        listed = _mapping(schema.get("properties"))
        if listed.get(name) is False:
            return True
        if name not in listed and schema.get("additionalProperties") is False and not schema.get("patternProperties"):
            return True
    return False


def _members_apart(left: Branch, right: Branch, name: str, direct: Direct, levels: int) -> bool:
    if not levels:
        return False
    one, other = _member(left, name, direct), _member(right, name, direct)
    return bool(one) and bool(other) and apart(one, other, direct, levels - 1)


def _member(branch: Branch, name: str, direct: Direct) -> Branch:
    """What the schemas of a branch say of a member, as far as they list it."""
    children = (
        direct(Placed(listed[name], path))
        for schema, path in branch
        for listed in (_mapping(schema.get("properties")),)
        if name in listed
    )
    return tuple(child for child in children if isinstance(child.schema, Mapping))


def _mapping(value: object) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}
