"""JSON Schema to shapes: what a conjunction of subschemas leaves of each JSON type.

In: a document and its subschemas. Out: for each `Node`, a conjunction of subschemas, a list of `Shape`s: one JSON
type each, or one literal. References, `allOf` and `anyOf` are resolved on the way (conjunctions are distributed over
unions). Keywords that are not listed here raise `Unsupported`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from jsonschema import Draft202012Validator

from .numerals import NumberRange, exact
from .request import Request, Unsupported

__all__ = ["Document", "Node", "Schema", "Shape"]

TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
_IGNORED = {
    "title", "description", "default", "examples", "$schema", "$id", "$comment", "deprecated", "readOnly", "writeOnly",
    "format", "$defs", "definitions",
}  # fmt: skip
_KNOWN = _IGNORED | {
    "type", "properties", "required", "enum", "const", "items", "prefixItems", "minItems", "maxItems", "minLength",
    "maxLength", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
    "additionalProperties", "anyOf", "oneOf", "allOf", "nullable", "$ref",
}  # fmt: skip

Schema = Any  # a mapping, True or False


@dataclass(frozen=True)
class Shape:
    """One JSON type under one conjunction of keywords. Literals have `kind` "literal"."""

    kind: str
    literal: Any = field(default=None, hash=False)
    least: int = 0
    most: int | None = None
    patterns: tuple[str, ...] = ()
    numbers: NumberRange = field(default_factory=NumberRange)
    items: tuple[Node, ...] = ()  # of the first places
    rest: Node | None = None  # of the places after them, None if there are none
    members: Mapping[str, Node] = field(default_factory=dict, hash=False)
    required: frozenset[str] = frozenset()
    free: Node | None = None  # the value of a key that is not listed

    @property
    def json_type(self) -> str:
        return _type_of(self.literal) if self.kind == "literal" else self.kind


def _type_of(value: Any) -> str:
    names = {type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
    return names.get(type(value), "object")


class Node:
    """A conjunction of subschemas of one document."""

    def __init__(self, document: Document, schemas: tuple[Schema, ...]) -> None:
        self.document, self.schemas = document, schemas
        self._shapes: list[Shape] | None = None

    @property
    def shapes(self) -> list[Shape]:
        if self._shapes is None:
            self._shapes = []
            for simple in self.document.disjuncts(self.schemas):
                self._shapes += self.document.shapes_of(simple)
        return self._shapes


class Document:
    """One schema document: its nodes, each made once."""

    def __init__(self, schema: Schema, request: Request) -> None:
        self.schema, self.request = schema, request
        self._nodes: dict[str, Node] = {}

    def node(self, *schemas: Schema) -> Node:
        unlike = _unlike(schemas)
        key = json.dumps(sorted(unlike))
        if key not in self._nodes:
            self._nodes[key] = Node(self, tuple(unlike.values()))
        return self._nodes[key]

    # Conjunctions to simple schemas

    def disjuncts(self, schemas: Sequence[Schema], seen: frozenset[str] = frozenset()) -> Iterator[list[Schema]]:
        """The conjunction as a union of conjunctions of schemas without references and combinators."""
        parts = [list(self._alternatives(schema, seen)) for schema in schemas]
        for combination in product(*parts):
            yield list(_unlike([simple for part in combination for simple in part]).values())

    def _alternatives(self, schema: Schema, seen: frozenset[str]) -> Iterator[list[Schema]]:
        if isinstance(schema, bool):
            if schema:
                yield [{}]
            return
        if unknown := set(schema) - _KNOWN:
            raise Unsupported(f"keyword {min(unknown)}")
        rest = {k: v for k, v in schema.items() if k not in ("$ref", "anyOf", "oneOf", "allOf", *_IGNORED)}
        conjuncts: list[Sequence[Schema]] = [[rest]]
        for key in ("anyOf", "oneOf"):
            if key in schema:
                conjuncts.append(self._branches(key, schema[key]))
        conjuncts += [[part] for part in schema.get("allOf", ())]
        if "$ref" in schema:
            if schema["$ref"] in seen:
                raise Unsupported("a reference to itself")
            conjuncts.append([self.resolve(schema["$ref"])])
            seen |= {schema["$ref"]}
        for combination in product(*conjuncts):
            others = [part for part in combination if part is not rest]
            for found in self.disjuncts(others, seen):
                yield [rest, *found]

    def _branches(self, key: str, branches: Sequence[Schema]) -> Sequence[Schema]:
        if key == "oneOf":
            kinds = [{shape.json_type for shape in self.node(branch).shapes} for branch in branches]
            kinds = [{"number" if kind == "integer" else kind for kind in found} for found in kinds]
            if sum(map(len, kinds)) != len(set().union(*kinds)):
                raise Unsupported("oneOf whose branches share a type")
        return branches

    def resolve(self, reference: str) -> Schema:
        if not reference.startswith("#"):
            raise Unsupported("a reference to another document")
        place = self.schema
        for step in reference[1:].split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            place = place[int(step)] if isinstance(place, list) else place[step]
        return place

    # Simple schemas to shapes

    def shapes_of(self, simples: list[Mapping[str, Any]]) -> Iterator[Shape]:
        types = set(TYPES)
        for simple in simples:
            types &= _types(simple)
        if any("enum" in simple or "const" in simple for simple in simples):
            yield from _literals(simples)
            return
        if "number" in types:
            types.discard("integer")
        for kind in TYPES:
            if kind in types:
                yield self._shape(kind, simples)

    def _shape(self, kind: str, simples: list[Mapping[str, Any]]) -> Shape:
        if kind == "string":
            patterns = tuple(simple["pattern"] for simple in simples if "pattern" in simple)
            return Shape(kind, least=_least(simples, "minLength"), most=_most(simples, "maxLength"), patterns=patterns)
        if kind in ("integer", "number"):
            return Shape(kind, numbers=self._numbers(kind, simples))
        if kind == "array":
            return self._array(simples)
        return self._object(simples) if kind == "object" else Shape(kind)

    def _numbers(self, kind: str, simples: list[Mapping[str, Any]]) -> NumberRange:
        lows = [
            (exact(s[k]), k == "exclusiveMinimum") for s in simples for k in ("minimum", "exclusiveMinimum") if k in s
        ]
        highs = [
            (-exact(s[k]), k == "exclusiveMaximum") for s in simples for k in ("maximum", "exclusiveMaximum") if k in s
        ]
        low, open_low = max(lows, default=(None, False))
        high, open_high = max(highs, default=(None, False))
        steps = [simple["multipleOf"] for simple in simples if "multipleOf" in simple]
        if steps and (kind != "integer" or len(steps) > 1 or not isinstance(steps[0], int)):
            raise Unsupported("multipleOf of numbers")
        return NumberRange(
            integer=kind == "integer",
            low=low,
            high=None if high is None else -high,
            open_low=open_low,
            open_high=open_high,
            multiple=steps[0] if steps else None,
            max_digits=self.request.max_integer_digits,
            exponent=self.request.bounded_exponent or (low is None and high is None),
        )

    def _array(self, simples: list[Mapping[str, Any]]) -> Shape:
        width = max((len(simple.get("prefixItems", ())) for simple in simples), default=0)
        places = [
            self.node(
                *(s["prefixItems"][i] if i < len(s.get("prefixItems", ())) else s.get("items", True) for s in simples)
            )
            for i in range(width)
        ]
        rest = [simple.get("items", True) for simple in simples]
        return Shape(
            "array",
            least=_least(simples, "minItems"),
            most=_most(simples, "maxItems"),
            items=tuple(places),
            rest=self.node(*rest),
        )

    def _object(self, simples: list[Mapping[str, Any]]) -> Shape:
        listed = [name for simple in simples for name in simple.get("properties", {})]
        required = frozenset(name for simple in simples for name in simple.get("required", ()))
        members = {}
        for name in dict.fromkeys([*listed, *sorted(required)]):
            parts = [
                s["properties"][name] if name in s.get("properties", {}) else s.get("additionalProperties", True)
                for s in simples
            ]
            members[name] = self.node(*parts)
        closed = self.request.additional == "declared" and any("properties" in simple for simple in simples)
        free = None if closed else self.node(*(simple.get("additionalProperties", True) for simple in simples))
        return Shape("object", members=members, required=required, free=free)


def _unlike(schemas: Sequence[Schema]) -> dict[str, Schema]:
    """Each conjunct once, by its text, without those that say nothing."""
    texts = {json.dumps(schema, sort_keys=True): schema for schema in schemas}
    return {text: schema for text, schema in texts.items() if text not in ("true", "{}")}


def _types(simple: Mapping[str, Any]) -> set[str]:
    declared = simple.get("type", list(TYPES))
    types = {declared} if isinstance(declared, str) else set(declared)
    if unknown := types - set(TYPES):
        raise Unsupported(f"type {min(unknown)}")
    if "number" in types:
        types.add("integer")
    return types | {"null"} if simple.get("nullable") else types


def _literals(simples: list[Mapping[str, Any]]) -> Iterator[Shape]:
    """The members that every conjunct accepts, each once."""
    source = next(simple for simple in simples if "enum" in simple or "const" in simple)
    members = source["enum"] if "enum" in source else [source["const"]]
    seen = set()
    for member in members:
        for simple in simples:
            plain = {**simple, "type": sorted(_types(simple))} if "type" in simple else simple
            if not Draft202012Validator(plain).is_valid(member):
                break
        else:
            text = json.dumps(member, sort_keys=True)
            if text not in seen:
                seen.add(text)
                yield Shape("literal", literal=member)


def _least(simples: list[Mapping[str, Any]], key: str) -> int:
    return max((simple.get(key, 0) for simple in simples), default=0)


def _most(simples: list[Mapping[str, Any]], key: str) -> int | None:
    return min((simple[key] for simple in simples if key in simple), default=None)
