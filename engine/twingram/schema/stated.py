"""What a schema states about types and values, by itself.

In: schemas whose combinators are resolved. Out: the types that `type`, `nullable`, `enum` and `const` admit, the listed
values, and a key under which equal JSON values are equal.

Invariant: where `number` is in a set of types, so is `integer`. `None` stands for "nothing stated".
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from .keywords import MAPPING, Derived
from .report import Placed

__all__ = [
    "ALL_TYPES", "Branch", "Types", "admitted", "canonical", "derived", "listed_values", "type_of", "types_as_read",
]  # fmt: skip

Branch: TypeAlias = "tuple[Placed, ...]"  # schemas that hold together; combinators are already followed
Types: TypeAlias = "frozenset[str] | None"

_NUMBER = frozenset({"number", "integer"})
_NULL = frozenset({"null"})
_BY_NAME = {
    "null": _NULL,
    "boolean": frozenset({"boolean"}),
    "integer": frozenset({"integer"}),
    "number": _NUMBER,
    "string": frozenset({"string"}),
    "array": frozenset({"array"}),
    "object": frozenset({"object"}),
}
ALL_TYPES = frozenset(_BY_NAME)


def declared_types(schema: Mapping[str, Any]) -> Types:
    """What `type` says, `None` if nothing that is known; `nullable` adds null to it."""
    name = schema.get("type")
    if name is None:
        return None
    if isinstance(name, str):
        types = _BY_NAME.get(name)
    elif isinstance(name, list) and all(isinstance(each, str) and each in _BY_NAME for each in name):
        types = frozenset().union(*(_BY_NAME[each] for each in name))
    else:
        types = None
    if types is not None and schema.get("nullable") is True:
        return types | _NULL
    return types


def listed_values(schema: Mapping[str, Any]) -> list[Any] | None:
    """The values of `enum` or `const`."""
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    return values if isinstance(values, list) else None


def admitted(branch: Sequence[Placed]) -> frozenset[str]:
    """The types that schemas admit together, going by `type`."""
    together = ALL_TYPES
    for schema, _ in branch:
        types = declared_types(schema)
        if types is not None:
            together &= types
    return together


def derived(branch: Branch) -> bool:
    """Whether a condition has a part in a branch: then it may contradict itself, and nobody is to blame."""
    return any(isinstance(schema, Derived) for schema, _ in branch)


def types_as_read(branches: Iterable[Branch]) -> Types:
    """The types by which a reader tells a text from another value: by all that is stated, bounds left aside."""
    found: frozenset[str] = frozenset()
    for branch in branches:
        together: Types = None
        for schema, _ in branch:
            values = listed_values(schema)
            listed = None if not values else frozenset().union(*(type_of(value) for value in values))
            for types in (declared_types(schema), listed):
                if types is not None:
                    together = types if together is None else together & types
        if together is None:
            return None
        found |= together
        if any(schema.get("nullable") is True for schema, _ in branch):
            found |= _NULL
    return found


def type_of(value: object) -> frozenset[str]:
    """The types of a value; an integer is a number, too."""
    if value is None:
        return _NULL
    if isinstance(value, bool):
        return _BY_NAME["boolean"]
    if isinstance(value, int):
        return _BY_NAME["integer"]
    if isinstance(value, float):
        return _NUMBER
    if isinstance(value, str):
        return _BY_NAME["string"]
    return _BY_NAME["array"] if isinstance(value, list) else _BY_NAME["object"]


def canonical(value: Any) -> Hashable:
    """A key that is equal for equal JSON values: 1 and 1.0 are one number, 1 and true are not."""
    if isinstance(value, (str, int, float)):
        return ("boolean", value) if isinstance(value, bool) else value
    if isinstance(value, list):
        return ("array", tuple(canonical(item) for item in value))
    if isinstance(value, MAPPING):
        return ("object", frozenset((key, canonical(item)) for key, item in value.items()))
    return None if value is None else ("no JSON", repr(value))
