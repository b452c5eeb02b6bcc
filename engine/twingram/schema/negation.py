"""What a schema excludes: the opposite of a schema, as alternatives.

In: a schema. Out: schemas of which at least one admits a value exactly when the given one does not; None where there is
no such list. A schema says several things of a value, and its opposite is that one of them is wrong: each keyword gives
its own alternatives. Only one level is turned round; what lies below stays as a `not` of its own.

`None` is given for what would need more than the builders have: no text is told from the texts that match an unchecked
format, no array from those without a repeated item, no object from those that have no key outside a pattern. That a
member is not among the declared ones (`Own.BEYOND`) is for who knows which others there may be.
Cost: linear in the keywords; enumerations are taken as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any

from .formats import FORMATS, UNCHECKED
from .keywords import ANNOTATIONS, ENFORCED, MAPPING, Derived, Own
from .stated import ALL_TYPES, declared_types, listed_values

__all__ = ["negated", "opposite"]

_MOST_PAIRS = 16  # options of a `oneOf` of which pairs are made
Options = list[Any]


def negated(schema: Any) -> Any:
    """The schema `{"not": schema}`, without the detour where there is one."""
    if isinstance(schema, bool):
        return not schema
    if isinstance(schema, MAPPING) and schema.keys() <= ANNOTATIONS:
        return False
    if isinstance(schema, MAPPING) and set(schema) - ANNOTATIONS == {"not"}:
        return schema["not"]
    return Derived({"not": schema})


def opposite(schema: Any) -> Options | None:
    """Alternatives that together admit what `schema` does not."""
    if not isinstance(schema, MAPPING):
        return [] if schema is not False else [True]
    found: Options = []
    for keyword in schema:
        if keyword in ANNOTATIONS:
            continue
        rule = _RULES.get(keyword)
        ways = rule(schema) if rule is not None else None if keyword in ENFORCED or keyword in _REST else []
        if ways is None:
            return None
        found += ways
    return found


_REST = frozenset({"$ref", "$dynamicRef", "$recursiveRef", "unevaluatedProperties", "unevaluatedItems", *Own})


def _of(kind: str, **more: Any) -> Derived:
    return Derived({"type": kind, **more})


def _count(schema: Mapping[Any, Any], keyword: str) -> int | None:
    value = schema[keyword]
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value):
        return None
    return int(value)


def _least(kind: str, keyword: str, other: str) -> Callable[[Mapping[Any, Any]], Options | None]:
    """At least n becomes at most n - 1."""

    def rule(schema: Mapping[Any, Any]) -> Options | None:
        count = _count(schema, keyword)
        return None if count is None else [_of(kind, **{other: count - 1})] if count > 0 else []

    return rule


def _most(kind: str, keyword: str, other: str) -> Callable[[Mapping[Any, Any]], Options | None]:
    def rule(schema: Mapping[Any, Any]) -> Options | None:
        count = _count(schema, keyword)
        return None if count is None else [_of(kind, **{other: max(0, count + 1)})]

    return rule


def _bound(keyword: str, beyond: str, flag: str = "") -> Callable[[Mapping[Any, Any]], Options | None]:
    def rule(schema: Mapping[Any, Any]) -> Options | None:
        value = schema[keyword]
        if isinstance(value, bool):
            return []  # draft 4: a flag of the inclusive form, which has it
        if not isinstance(value, (int, float)):
            return None
        strict = bool(flag) and schema.get(flag) is True
        return [_of("number", **{_STRICT[beyond] if strict else beyond: value})]

    return rule


_STRICT = {"exclusiveMaximum": "maximum", "exclusiveMinimum": "minimum"}


def _type(schema: Mapping[Any, Any]) -> Options | None:
    types = declared_types(schema)
    if types is None:
        return None
    left = ALL_TYPES - types
    if "integer" in types and "number" not in types:
        left -= {"number"}
        return [Derived({"type": sorted(left)}), Derived({"type": "number", Own.FRACTION: True})]
    return [Derived({"type": sorted(left)})] if left else []


def _listed(schema: Mapping[Any, Any]) -> Options | None:
    values = listed_values(schema)
    return None if values is None else [Derived({Own.EXCLUDED: values})]


def _enum(schema: Mapping[Any, Any]) -> Options | None:
    return [Derived({Own.EXCLUDED: schema["enum"]})] if isinstance(schema["enum"], list) else None


def _pattern(schema: Mapping[Any, Any]) -> Options | None:
    pattern = schema["pattern"]
    return [Derived({"type": "string", Own.UNLIKE: pattern})] if isinstance(pattern, str) else None


def _format(schema: Mapping[Any, Any]) -> Options | None:
    name = schema["format"]
    if name in FORMATS:
        return [Derived({"type": "string", Own.UNFIT: name})]
    return None if name in UNCHECKED else []


def _required(schema: Mapping[Any, Any]) -> Options | None:
    names = schema["required"]
    if isinstance(names, bool):
        return []
    if not isinstance(names, list):
        return None
    others = _wrong_members(schema)
    return [_of("object", properties={name: others.get(name, False)}) for name in names if isinstance(name, str)]


def _properties(schema: Mapping[Any, Any]) -> Options | None:
    if not isinstance(schema["properties"], MAPPING):
        return None
    others = _wrong_members(schema)
    names = schema.get("required")
    missing = names if isinstance(names, list) else []  # may be missing as well as wrong, which is one alternative
    return [
        _of("object", required=[name], properties={name: other}) for name, other in others.items()
        if name not in missing
    ]  # fmt: skip


def _wrong_members(schema: Mapping[Any, Any]) -> dict[Any, Any]:
    """For each declared member that can be wrong, the opposite of its schema."""
    listed = schema.get("properties")
    pairs = ((name, negated(child)) for name, child in listed.items()) if isinstance(listed, MAPPING) else ()
    return {name: other for name, other in pairs if other is not False}


def _dependent_required(schema: Mapping[Any, Any]) -> Options | None:
    listed = schema["dependentRequired"]
    if not isinstance(listed, MAPPING) or not all(isinstance(names, list) for names in listed.values()):
        return None
    pairs = [(name, needed) for name, names in listed.items() for needed in names if needed != name]
    return [_of("object", required=[name], properties={needed: False}) for name, needed in pairs]


def _dependent_schemas(schema: Mapping[Any, Any]) -> Options | None:
    listed = schema["dependentSchemas"]
    if not isinstance(listed, MAPPING):
        return None
    return [
        Derived({"allOf": [_of("object", required=[name]), negated(child)]}) for name, child in listed.items()
    ]


def _dependencies(schema: Mapping[Any, Any]) -> Options | None:
    listed = schema["dependencies"]
    if not isinstance(listed, MAPPING):
        return None
    names = {name: value for name, value in listed.items() if isinstance(value, list)}
    schemas = {name: value for name, value in listed.items() if not isinstance(value, list)}
    return [
        *(_dependent_required({"dependentRequired": names}) or ()),
        *(_dependent_schemas({"dependentSchemas": schemas}) or ()),
    ]


def _items(schema: Mapping[Any, Any]) -> Options | None:
    items = schema["items"]
    if isinstance(items, list):
        rest = schema.get("additionalItems", True)
        return None if isinstance(rest, MAPPING) and rest else _positions(items, rest is False)
    other = negated(items)
    if other is False or (items is False and schema.get("prefixItems")):
        return []  # in the latter case see `_prefix`
    return [_of("array", contains=other)] if not schema.get("prefixItems") else None


def _prefix(schema: Mapping[Any, Any]) -> Options | None:
    leading = schema["prefixItems"]
    return _positions(leading, schema.get("items") is False) if isinstance(leading, list) else None


def _positions(leading: list[Any], closed: bool) -> Options:
    """One of the leading items is wrong, or there are more."""
    found: Options = []
    for index, child in enumerate(leading):
        other = negated(child)
        if other is not False:
            found.append(_of("array", prefixItems=[*([True] * index), other], minItems=index + 1))
    return [*found, _of("array", minItems=len(leading) + 1)] if closed else found


def _contains(schema: Mapping[Any, Any]) -> Options | None:
    if "minContains" in schema or "maxContains" in schema:
        return None
    return [_of("array", items=negated(schema["contains"]))]


def _all_of(schema: Mapping[Any, Any]) -> Options | None:
    parts = schema["allOf"]
    return [negated(part) for part in parts] if isinstance(parts, list) else None


def _any_of(schema: Mapping[Any, Any]) -> Options | None:
    parts = schema["anyOf"]
    return [Derived({"allOf": [negated(part) for part in parts]})] if isinstance(parts, list) and parts else None


def _one_of(schema: Mapping[Any, Any]) -> Options | None:
    parts = schema["oneOf"]
    if not isinstance(parts, list) or not 0 < len(parts) <= _MOST_PAIRS:
        return None
    none = Derived({"allOf": [negated(part) for part in parts]})
    return [none, *(Derived({"allOf": list(pair)}) for pair in combinations(parts, 2))]


def _if(schema: Mapping[Any, Any]) -> Options | None:
    condition, then, other = schema["if"], schema.get("then", True), schema.get("else", True)
    found: Options = []
    if negated(then) is not False:
        found.append(Derived({"allOf": [condition, negated(then)]}))
    if negated(other) is not False:
        found.append(Derived({"allOf": [negated(condition), negated(other)]}))
    return found


def _additional(schema: Mapping[Any, Any]) -> Options | None:
    other = negated(schema["additionalProperties"])
    if other is False:
        return []
    if schema.get("patternProperties"):
        return None
    listed = schema.get("properties")
    names = frozenset(listed) if isinstance(listed, MAPPING) else frozenset()
    return [Derived({"type": "object", Own.BEYOND: (names, other)})]


def _nothing(_: Mapping[Any, Any]) -> Options | None:
    return []


_RULES: dict[Any, Callable[[Mapping[Any, Any]], Options | None]] = {
    "type": _type,
    "nullable": _nothing,
    "enum": _enum,
    "const": lambda schema: [Derived({Own.EXCLUDED: [schema["const"]]})],
    "minLength": _least("string", "minLength", "maxLength"),
    "maxLength": _most("string", "maxLength", "minLength"),
    "pattern": _pattern,
    "format": _format,
    "minimum": _bound("minimum", "exclusiveMaximum", "exclusiveMinimum"),
    "maximum": _bound("maximum", "exclusiveMinimum", "exclusiveMaximum"),
    "exclusiveMinimum": _bound("exclusiveMinimum", "maximum"),
    "exclusiveMaximum": _bound("exclusiveMaximum", "minimum"),
    "minItems": _least("array", "minItems", "maxItems"),
    "maxItems": _most("array", "maxItems", "minItems"),
    "items": _items,
    "additionalItems": _nothing,  # with `items`
    "prefixItems": _prefix,
    "contains": _contains,
    "minProperties": _least("object", "minProperties", "maxProperties"),
    "maxProperties": _most("object", "maxProperties", "minProperties"),
    "additionalProperties": _additional,
    "required": _required,
    "properties": _properties,
    "dependentRequired": _dependent_required,
    "dependentSchemas": _dependent_schemas,
    "dependencies": _dependencies,
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": lambda schema: [schema["not"]],
    "if": _if,
}
