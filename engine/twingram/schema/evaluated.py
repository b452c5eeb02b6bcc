"""What an alternative evaluates: which members and items its schemas speak of.

In: a branch that a schema with `unevaluatedProperties` or `unevaluatedItems` was resolved to, and that schema. Out: a
derived schema that puts what is left under the keyword's own schema: `{}` where nothing is left, None where it depends
on the values.

Invariant: derived schemas (what a condition excludes) evaluate nothing.
Source: JSON Schema 2020-12 core, section 11.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .keywords import MAPPING, Derived
from .report import Placed
from .stated import Branch

__all__ = ["closed_items", "closed_properties"]


def closed_properties(branch: Branch, owner: Placed) -> Derived | None:
    """The members that nobody evaluates under the schema that is for them."""
    names: dict[Any, Any] = {}
    patterns: dict[Any, Any] = {}
    for schema, _ in branch:
        if isinstance(schema, Derived):
            continue
        nested = schema is not owner.schema and "unevaluatedProperties" in schema
        if nested or "additionalProperties" in schema:
            return Derived()
        names.update(dict.fromkeys(_mapping(schema.get("properties")), True))
        patterns.update(dict.fromkeys(_mapping(schema.get("patternProperties")), True))
    rest = owner.schema["unevaluatedProperties"]
    return Derived({"properties": names, "patternProperties": patterns, "additionalProperties": rest})


def closed_items(branch: Branch, owner: Placed) -> Derived | None:
    """The same of items. None: `contains` evaluates items by their values."""
    leading, searched = 0, False
    for schema, _ in branch:
        if isinstance(schema, Derived):
            continue
        nested = schema is not owner.schema and "unevaluatedItems" in schema
        items = schema.get("items")
        if nested or isinstance(items, (dict, Mapping, bool)) or "additionalItems" in schema:
            return Derived()
        for listed in (items, schema.get("prefixItems")):
            leading = max(leading, len(listed) if isinstance(listed, list) else 0)
        searched = searched or "contains" in schema
    if searched:
        return None
    return Derived({"prefixItems": [True] * leading, "items": owner.schema["unevaluatedItems"]})


def _mapping(value: object) -> Mapping[Any, Any]:
    return value if isinstance(value, MAPPING) else {}
