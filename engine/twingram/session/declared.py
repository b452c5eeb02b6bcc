"""What a tool's schema says about the value at one place of the arguments: the types that it admits.

In: a JSON Schema, used as it came. Out: `Place` objects; `place.types` is the admitted types (None for anything),
`place.member(key)` and `place.item(index)` lead deeper.

This is for reading only, so it errs towards "anything": `not`, `if` and cross-references between members are passed
over, alternatives (`anyOf`, `oneOf`) are kept side by side, what must hold together (`allOf`, `$ref` beside other
keywords) is intersected. A key that some alternatives list is typed by those alone.
Invariant: a place is immutable but for its cache, which has one entry for each set of schemas that can apply to a
child: text from a model cannot make it grow.
Cost: a place is worked out once, when it is first reached; then it costs a look at the schemas that meet there.
References may be circular: they are followed only when a value is really there. At most `_MOST` alternatives are kept
apart.

Source: JSON Schema 2020-12 (core, section 10; validation, section 6); OpenAPI 3.0 for `nullable`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote

from ..automaton.regex import pattern_dfa
from ..errors import LimitExceeded
from .casts import Types

__all__ = ["ANYTHING", "UNDECLARED", "Place", "admitted_types"]

_MOST = 64
_DEPTH = 64

_Plain = Mapping[str, Any]  # a schema object; keywords that lead to other schemas are already expanded
_Branch = tuple[_Plain, ...]  # schemas that hold together

_NUMBER = frozenset({"number", "integer"})
_NAMES = {
    "string": frozenset({"string"}),
    "integer": frozenset({"integer"}),
    "number": _NUMBER,
    "boolean": frozenset({"boolean"}),
    "null": frozenset({"null"}),
    "array": frozenset({"array"}),
    "object": frozenset({"object"}),
}
_NULL: _Plain = {"type": "null"}
_LEAVES: dict[Types, _Plain] = {_NAMES["null"]: _NULL}  # types -> the one schema that stands for them
_CHILDREN = frozenset({
    "properties", "patternProperties", "additionalProperties", "unevaluatedProperties",
    "items", "prefixItems", "additionalItems", "unevaluatedItems",
})  # fmt: skip


class Place:
    """One place: alternatives of schemas that hold together. `declared` is False where there is no schema at all."""

    __slots__ = ("_branches", "_inner", "_root", "declared", "types")

    def __init__(self, branches: Iterable[_Branch], root: object, *, declared: bool = True) -> None:
        self._branches = tuple(branches)
        self._root = root
        self._inner: dict[tuple[int, ...], Place] = {}  # identities of the schemas that apply -> their place
        self.declared = declared
        self.types: Types = _types(self._branches)

    @classmethod
    def of(cls, schema: object) -> Place:
        """The root of a schema's values."""
        return cls(_expand(schema, schema), schema)

    def member(self, key: str) -> Place:
        """The place of the value under this key of an object here."""
        return self._deeper([[child for part in branch for child in _named(part, key)] for branch in self._branches])

    def item(self, index: int) -> Place:
        """The place of an element of an array here."""
        return self._deeper([[child for part in branch for child in _item(part, index)] for branch in self._branches])

    def _deeper(self, children: list[list[object]]) -> Place:
        """Alternatives that say nothing of the child do not count, unless none says anything."""
        if not any(children):
            return ANYTHING if self.declared else UNDECLARED
        name = tuple(id(child) for together in children for child in (*together, None))
        found = self._inner.get(name)
        if found is None:
            branches: list[_Branch] = []
            for together in filter(None, children):
                inner: list[_Branch] = [()]
                for child in together:
                    inner = _both(inner, _expand(child, self._root))
                branches += inner
            found = self._inner[name] = Place(_distinct(branches), self._root)
        return found


def admitted_types(schema: object, root: object) -> Types:
    """The types that a schema admits, `None` for anything. `root` is what its local references point into."""
    return _types(tuple(_expand(schema, root)))


# -- children of one schema object -------------------------------------------------------------------------------------


def _named(schema: _Plain, key: str) -> list[object]:
    found: list[object] = []
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and key in properties:
        found.append(properties[key])
    patterns = schema.get("patternProperties")
    if isinstance(patterns, Mapping):
        found += [child for pattern, child in patterns.items() if _matches(pattern, key)]
    return found or _others(schema, "additionalProperties", "unevaluatedProperties")


def _item(schema: _Plain, index: int) -> list[object]:
    for keyword in ("prefixItems", "items"):
        listed = schema.get(keyword)
        if isinstance(listed, list) and index < len(listed):
            return [listed[index]]
    return _others(schema, "items", "additionalItems", "unevaluatedItems")


def _others(schema: _Plain, *keywords: str) -> list[object]:
    """The first of these keywords that holds a schema with something to say."""
    return [schema[keyword] for keyword in keywords if isinstance(schema.get(keyword), Mapping)][:1]


def _matches(pattern: str, key: str) -> bool:
    """Whether a key pattern applies. One that cannot be read says nothing. Linear in the key, whatever the pattern."""
    try:
        return pattern_dfa(pattern, search=True).matches(key.encode("utf-8", "replace"))
    except (ValueError, LimitExceeded):
        return False


# -- schemas to alternatives -------------------------------------------------------------------------------------------


def _expand(schema: object, root: object, seen: frozenset[str] = frozenset(), depth: int = 0) -> list[_Branch]:
    """The alternatives of a schema: `[()]` admits anything, `[]` nothing."""
    if schema is False:
        return []
    if not isinstance(schema, Mapping) or depth > _DEPTH:
        return [()]
    branches: list[_Branch] = [(_plain(schema),)]
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference not in seen:
        target = _resolve(reference, root)
        branches = _both(branches, _expand(target, root, seen | {reference}, depth + 1))
    for part in _list(schema.get("allOf")):
        branches = _both(branches, _expand(part, root, seen, depth + 1))
    for keyword in ("anyOf", "oneOf"):
        options = _list(schema.get(keyword))
        if options:
            either = _distinct([part for option in options for part in _expand(option, root, seen, depth + 1)])
            branches = _both(branches, either)
    if schema.get("nullable") is True:
        branches = [*branches, (_NULL,)]
    return _distinct(branches)


def _plain(schema: _Plain) -> _Plain:
    """A schema without children counts by its types alone, so that a long list of constants is one alternative."""
    if not _CHILDREN.isdisjoint(schema):
        return schema
    stated = _stated(schema)
    return _LEAVES.setdefault(stated, {} if stated is None else {"type": sorted(stated)})


def _both(one: list[_Branch], other: list[_Branch]) -> list[_Branch]:
    """Every pair of alternatives together. Too many to keep apart: no statement at all."""
    if len(one) * len(other) > _MOST:
        return [()]
    return _distinct([left + right for left in one for right in other])


def _distinct(branches: list[_Branch]) -> list[_Branch]:
    """Each alternative once, each schema in it once (by identity)."""
    kept: dict[tuple[int, ...], _Branch] = {}
    for branch in branches:
        unique = {id(schema): schema for schema in branch}
        kept.setdefault(tuple(unique), tuple(unique.values()))
    return list(kept.values()) if len(kept) <= _MOST else [()]


def _resolve(reference: str, root: object) -> object:
    """A local JSON pointer; anything else is not followed and says nothing."""
    if not reference.startswith("#"):
        return True
    target = root
    for part in unquote(reference[1:]).split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(target, Mapping) and name in target:
            target = target[name]
        elif isinstance(target, list) and name.isdecimal() and int(name) < len(target):
            target = target[int(name)]
        else:
            return True
    return target


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


# -- alternatives to types ---------------------------------------------------------------------------------------------


def _types(branches: tuple[_Branch, ...]) -> Types:
    admitted: set[str] = set()
    for branch in branches:
        together = _intersect(_stated(schema) for schema in branch)
        if together is None:
            return None
        admitted |= together
    return frozenset(admitted) or None


def _stated(schema: _Plain) -> Types:
    """What `type`, `enum` and `const` of one schema object say."""
    listed = schema.get("type")
    names = [listed] if isinstance(listed, str) else _list(listed)
    known = [_NAMES[name] for name in names if isinstance(name, str) and name in _NAMES]
    stated: list[Types] = []
    if known and len(known) == len(names):
        stated.append(frozenset().union(*known))
    if _list(schema.get("enum")):
        stated.append(frozenset().union(*(_type_of(value) for value in schema["enum"])))
    if "const" in schema:
        stated.append(_type_of(schema["const"]))
    return _intersect(stated)


def _intersect(parts: Iterable[Types]) -> Types:
    together: Types = None
    for part in parts:
        if part is not None:
            together = part if together is None else together & part
    return together


def _type_of(value: object) -> frozenset[str]:
    if value is None:
        return _NAMES["null"]
    if isinstance(value, bool):
        return _NAMES["boolean"]
    if isinstance(value, (int, float)):
        return _NUMBER if isinstance(value, float) and not value.is_integer() else _NAMES["integer"]
    if isinstance(value, str):
        return _NAMES["string"]
    return _NAMES["array"] if isinstance(value, list) else _NAMES["object"]


ANYTHING = Place([()], True)
"""A place that a schema says nothing about."""
UNDECLARED = Place([()], True, declared=False)
"""A place in the arguments of a tool that is not known."""
