"""The vocabulary of JSON Schema as this package knows it: which keyword is enforced, which only describes.

In: nothing. Out: sets of keywords, and for those that are not enforced the type they speak of and why.
A keyword speaks of one type and says nothing of values of another.

Source: JSON Schema 2020-12 (core and validation), with `nullable` of OpenAPI 3.0 and the forms that drafts 4 to 7 gave
to `items`, `additionalItems`, `exclusiveMinimum`, `exclusiveMaximum` and `definitions`.
"""

from __future__ import annotations

__all__ = ["ANNOTATIONS", "COMBINING", "ENFORCED", "KNOWN", "PLAIN_SCALAR", "UNKNOWN", "unsupported"]

ANNOTATIONS = frozenset(
    {
        "title", "description", "default", "example", "examples", "$schema", "$id", "id", "$anchor", "$dynamicAnchor",
        "$comment", "$vocabulary", "$defs", "definitions", "deprecated", "readOnly", "writeOnly", "contentEncoding",
        "contentMediaType", "contentSchema", "discriminator", "externalDocs", "xml",
    }
)  # fmt: skip
"""They describe and restrict nothing; no report lists them."""

COMBINING = frozenset({"$ref", "allOf", "anyOf", "oneOf"})
"""They combine other schemas."""

ENFORCED = frozenset(
    {
        "type", "nullable", "enum", "const", "minLength", "maxLength", "pattern", "minimum", "maximum",
        "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "items", "prefixItems", "additionalItems", "minItems",
        "maxItems", "properties", "required", "additionalProperties", "patternProperties", "propertyNames",
        "minProperties", "maxProperties",
    }
)  # fmt: skip
"""Some builder looks at them, and reports what it cannot do."""

KNOWN = ANNOTATIONS | COMBINING | ENFORCED
PLAIN_SCALAR = ANNOTATIONS | {"type"}

_SPEAKS_OF = {
    "uniqueItems": "array",
    "contains": "array",
    "minContains": "array",
    "maxContains": "array",
    "unevaluatedItems": "array",
    "unevaluatedProperties": "object",
    "dependentRequired": "object",
    "dependentSchemas": "object",
    "dependencies": "object",
}
_REASONS = {
    "format": "the text is not checked against the format; a pattern would be",
    "not": "what a schema excludes is not taken out",
    "if": "conditions are not followed",
    "uniqueItems": "items are not compared with each other",
    "dependencies": "members do not depend on each other",
    "dependentRequired": "members do not depend on each other",
    "dependentSchemas": "members do not depend on each other",
    "$dynamicRef": "only references to a fixed place are followed",
    "$recursiveRef": "only references to a fixed place are followed",
}
_SILENT = {"uniqueItems": False, "unevaluatedProperties": True, "unevaluatedItems": True, "not": False}


UNKNOWN = "this keyword is not known, and restricts nothing"


def unsupported(keyword: str, value: object, types: frozenset[str]) -> str:
    """Why a keyword outside `KNOWN` is not enforced for values of these types; "" if it says nothing about them."""
    if _SPEAKS_OF.get(keyword, "") not in ("", *types) or keyword.startswith("x-") or keyword in ("then", "else"):
        return ""
    if keyword in _SILENT and value is _SILENT[keyword]:
        return ""
    if keyword in _REASONS:
        return _REASONS[keyword]
    return "this keyword is not enforced" if keyword in _SPEAKS_OF else UNKNOWN
