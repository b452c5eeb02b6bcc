"""The vocabulary of JSON Schema as this package knows it: which keyword is enforced, which only describes.

In: nothing. Out: sets of keywords, and why those that are not enforced are not. A keyword speaks of one type and says
nothing of values of another. `Own` are keywords of this package's own, for what JSON Schema has no word for: they stand
in schemas that were derived from others, never in one that was given.

Source: JSON Schema 2020-12 (core and validation), with `nullable` of OpenAPI 3.0 and the forms that drafts 4 to 7 gave
to `items`, `additionalItems`, `exclusiveMinimum`, `exclusiveMaximum`, `dependencies` and `definitions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

__all__ = [
    "ANNOTATIONS", "COMBINING", "ENFORCED", "KNOWN", "MAPPING", "PLAIN_SCALAR", "UNKNOWN", "Derived", "Own",
    "unsupported",
]  # fmt: skip


MAPPING = (dict, Mapping)
"""What a schema may be, for `isinstance`: to ask for a dictionary first costs a fifth of asking the abstract class."""


class Own(Enum):
    """Keywords that no JSON text can hold."""

    EXCLUDED = "listed values that are not admitted"
    UNLIKE = "a pattern that is not found"
    FRACTION = "a number that is no integer"
    UNFIT = "a format that the text has not"
    BEYOND = "a member besides the listed ones that satisfies a schema"


class Derived(dict[Any, Any]):
    """A schema that follows from a given one. It lists no properties of its own, and no report lists it."""


ANNOTATIONS = frozenset(
    {
        "title", "description", "default", "example", "examples", "$schema", "$id", "id", "$anchor", "$dynamicAnchor",
        "$comment", "$vocabulary", "$defs", "definitions", "deprecated", "readOnly", "writeOnly", "contentEncoding",
        "contentMediaType", "contentSchema", "discriminator", "externalDocs", "xml", "$recursiveAnchor", "then", "else",
        "minContains", "maxContains",
    }
)  # fmt: skip
"""They describe and restrict nothing by themselves; no report lists them."""

COMBINING = frozenset(
    {
        "$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if", "dependentSchemas",
        "dependencies", "unevaluatedProperties", "unevaluatedItems",
    }
)  # fmt: skip
"""They combine other schemas."""

ENFORCED = frozenset(
    {
        "type", "nullable", "enum", "const", "minLength", "maxLength", "pattern", "format", "minimum", "maximum",
        "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "items", "prefixItems", "additionalItems", "minItems",
        "maxItems", "contains", "uniqueItems", "properties", "required", "additionalProperties", "patternProperties",
        "propertyNames", "minProperties", "maxProperties", "dependentRequired",
    }
)  # fmt: skip
"""Some builder looks at them, and reports what it cannot do."""

KNOWN = ANNOTATIONS | COMBINING | ENFORCED | frozenset(Own)
PLAIN_SCALAR = ANNOTATIONS | {"type"}

UNKNOWN = "no keyword of JSON Schema: it restricts nothing"


def unsupported(schema: Mapping[Any, Any]) -> list[str]:
    """The keywords of a schema that nobody knows; extensions with a name of their own kind are left out."""
    return [str(keyword) for keyword in schema if keyword not in KNOWN and not str(keyword).startswith("x-")]
