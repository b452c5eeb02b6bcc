"""What a schema says, to a reader, about the value at one place of the arguments: the types that it admits.

In: a JSON Schema, used as it came. Out: `Place` objects; `place.types` is the admitted types (None for anything),
`place.member(key)` and `place.item(index)` lead deeper.

A reader types raw text by this, and the compiler keeps clear of what a reader would read otherwise. It errs towards
"anything": `not`, `if`, `unevaluatedProperties` and the like are passed over, alternatives (`anyOf`, `oneOf`) are kept
side by side, what must hold together (`allOf`, `$ref` beside other keywords) is intersected. Any value that the schema
accepts has a type that its place admits.
Invariant: a place is immutable but for its caches, which have one entry for each set of schemas that can apply to a
child, and one for each declared key: text from a model cannot make them grow.
Cost: a place is worked out once, when it is first reached; then it costs a look at the schemas that meet there.
References may be circular: they are followed only when a value is really there. At most `_MOST` alternatives are kept
apart.

Source: JSON Schema 2020-12 (core, section 10; validation, section 6); OpenAPI 3.0 for `nullable`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..automaton.regex import pattern_dfa
from ..errors import LimitExceeded
from .keywords import MAPPING
from .references import References
from .report import Placed
from .stated import Types

__all__ = ["ANYTHING", "UNDECLARED", "Place", "admitted_types"]

_MOST = 64
_DEPTH = 64
_STEPS = 10_000

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
    "properties", "patternProperties", "additionalProperties", "items", "prefixItems", "additionalItems",
})  # fmt: skip
_COMBINING = frozenset({"$ref", "allOf", "anyOf", "oneOf", "nullable"})


class Place:
    """One place: alternatives of schemas that hold together. `declared` is False where there is no schema at all."""

    __slots__ = (
        "_branches", "_inner", "_items", "_keys", "_listed", "_members", "_others", "_root", "declared", "types",
    )  # fmt: skip

    def __init__(self, branches: Iterable[_Branch], root: References, *, declared: bool = True) -> None:
        self._branches = tuple(branches)
        self._root = root
        self._inner: dict[tuple[int, ...], Place] = {}  # identities of the schemas that apply -> their place
        self._keys: frozenset[str] | None = None  # those that are declared by name; found when first asked for
        self._members: dict[str, Place] = {}  # of declared keys (to work one out anew took 4 us, for each key read)
        self._others: Place | None = None  # of all other keys, where no pattern tells them apart
        self._listed: int | None = None  # how many items have schemas of their own
        self._items: dict[int, Place] = {}  # of these, and of the first that is like all that follow
        self.declared = declared
        self.types: Types = _types(self._branches)

    @classmethod
    def of(cls, schema: object) -> Place:
        """The root of a schema's values."""
        root = References(schema)
        return cls(_expand(schema, root), root)

    def member(self, key: str) -> Place:
        """The place of the value under this key of an object here."""
        found = self._members.get(key)
        if found is not None:
            return found
        if self._keys is None:
            self._keys = frozenset(
                name for listed in self._stated("properties") if isinstance(listed, MAPPING) for name in listed
            )
        if key in self._keys:
            found = self._members[key] = self._member(key)
        elif self._others is not None:
            found = self._others
        else:
            found = self._member(key)
            if not self._stated("patternProperties"):
                self._others = found
        return found

    def _member(self, key: str) -> Place:
        return self._deeper([_children(branch, "object", lambda part: _named(part, key)) for branch in self._branches])

    def item(self, index: int) -> Place:
        """The place of an element of an array here."""
        if self._listed is None:
            listed = self._stated("prefixItems") + self._stated("items")
            self._listed = max((len(items) for items in listed if isinstance(items, list)), default=0)
        index = min(index, self._listed)
        found = self._items.get(index)
        if found is None:
            children = [_children(branch, "array", lambda part: _item(part, index)) for branch in self._branches]
            found = self._items[index] = self._deeper(children)
        return found

    def _stated(self, keyword: str) -> list[Any]:
        """What any schema here has under a keyword."""
        return [part[keyword] for branch in self._branches for part in branch if keyword in part]

    def _deeper(self, children: list[list[object]]) -> Place:
        """The place of a child, for each alternative given the schemas that hold for it."""
        possible = [together for together in children if False not in together]
        if not possible or not all(possible):
            return ANYTHING if self.declared else UNDECLARED
        name = tuple(id(child) for together in possible for child in (*together, None))
        found = self._inner.get(name)
        if found is None:
            branches: list[_Branch] = []
            for together in possible:
                inner: list[_Branch] = [()]
                for child in together:
                    inner = _both(inner, _expand(child, self._root))
                branches += inner
            found = self._inner[name] = Place(_distinct(branches), self._root)
        return found


def admitted_types(schema: object, root: object) -> Types:
    """The types that a schema admits, `None` for anything. `root` is what its local references point into."""
    return _types(tuple(_expand(schema, References(root))))


# -- children of one schema object -------------------------------------------------------------------------------------


def _children(branch: _Branch, container: str, of: Callable[[_Plain], list[object]]) -> list[object]:
    """The schemas that hold for a child in one alternative; one of them False if it can have no such child."""
    types = _intersect(_stated(part) for part in branch)
    if types is not None and container not in types:
        return [False]
    return [child for part in branch for child in of(part)]


def _named(schema: _Plain, key: str) -> list[object]:
    found: list[object] = []
    properties = schema.get("properties")
    if isinstance(properties, MAPPING) and key in properties:
        found.append(properties[key])
    patterns = schema.get("patternProperties")
    if isinstance(patterns, MAPPING):
        found += [child for pattern, child in patterns.items() if isinstance(pattern, str) and _matches(pattern, key)]
    return found or _others(schema, "additionalProperties")


def _item(schema: _Plain, index: int) -> list[object]:
    for keyword in ("prefixItems", "items"):
        listed = schema.get(keyword)
        if isinstance(listed, list) and index < len(listed):
            return [listed[index]]
    return _others(schema, "items", "additionalItems")


def _others(schema: _Plain, *keywords: str) -> list[object]:
    """The first of these keywords that says something."""
    for keyword in keywords:
        child = schema.get(keyword)
        if child is False or isinstance(child, MAPPING):
            return [child]
    return []


def _matches(pattern: str, key: str) -> bool:
    """Whether a key pattern applies. One that cannot be read says nothing. Linear in the key, whatever the pattern."""
    try:
        return pattern_dfa(pattern).matches(key.encode("utf-8", "replace"))
    except (ValueError, LimitExceeded):
        return False


# -- schemas to alternatives -------------------------------------------------------------------------------------------


def _expand(schema: object, root: References) -> list[_Branch]:
    """The alternatives of a schema: `[()]` admits anything, `[]` nothing."""
    return _Expansion(root).of(schema, frozenset(), 0)


class _Expansion:
    """One walk through what a schema refers to. Definitions that refer to each other can be walked in more ways than
    there is time for: past `_STEPS` nothing more is said."""

    __slots__ = ("_known", "_left", "_root")

    def __init__(self, root: References) -> None:
        self._root, self._left = root, _STEPS
        self._known: dict[tuple[int, frozenset[str]], list[_Branch]] = {}  # what schemas with combinators came to

    def of(self, schema: object, seen: frozenset[str], depth: int) -> list[_Branch]:
        self._left -= 1
        if schema is False:
            return []
        if not isinstance(schema, MAPPING) or depth > _DEPTH or self._left < 0:
            return [()]
        read: _Plain = self._root.readable(Placed(schema, "")).schema if self._root.foreign else schema
        branches: list[_Branch] = [(_plain(read),)]
        if _COMBINING.isdisjoint(read):  # most schemas: a parser that is given its tools anew pays for each place
            return branches
        found = self._known.get((id(read), seen))
        if found is None:
            found = self._known[id(read), seen] = self._combined(read, branches, seen, depth)
        return found

    def _combined(self, read: _Plain, branches: list[_Branch], seen: frozenset[str], depth: int) -> list[_Branch]:
        reference = read.get("$ref")
        if isinstance(reference, str) and reference not in seen:
            target = self._root.resolve(Placed(read, ""))
            below = self.of(True if target is None else target.schema, seen | {reference}, depth + 1)
            if self._root.alone:
                return below
            branches = _both(branches, below)
        for part in _list(read.get("allOf")):
            branches = _both(branches, self.of(part, seen, depth + 1))
        for keyword in ("anyOf", "oneOf"):
            options = _list(read.get(keyword))
            if options:
                either = _distinct([part for option in options for part in self.of(option, seen, depth + 1)])
                branches = _both(branches, either)
        if read.get("nullable") is True:
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
    if isinstance(listed, str) and "enum" not in schema and "const" not in schema:
        return _NAMES.get(listed)
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
        return _NUMBER if isinstance(value, float) else _NAMES["integer"]
    if isinstance(value, str):
        return _NAMES["string"]
    return _NAMES["array"] if isinstance(value, list) else _NAMES["object"]


ANYTHING = Place([()], References(True))
"""A place that a schema says nothing about."""
UNDECLARED = Place([()], References(True), declared=False)
"""A place in the arguments of a tool that is not known."""
