"""JSON Schema to shapes to pieces.

In: the parameters of a tool and a format's spelling. Out: pieces for the values that the schema accepts and the
format can write. A `Node` is a conjunction of subschemas; its shapes are what is left of them per JSON type, after
references, `allOf` and `anyOf` are resolved. Invariant: what nothing satisfies (a range without a number, a required
member that needs itself) is found by a least fixed point and never becomes a piece. Keywords that are not listed here
raise `Unsupported`.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from jsonschema import Draft202012Validator

from .matcher import Choice, Later, Piece, Word
from .numerals import NumberRange, Numeral, exact
from .patterns import pattern
from .request import Request, Unsupported
from .text import TextRule

__all__ = ["Node", "Shape", "Spelling", "Values"]

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
    numbers: NumberRange = NumberRange()
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

    def __init__(self, values: Values, schemas: tuple[Schema, ...]) -> None:
        self.values, self.schemas = values, schemas
        self._shapes: list[Shape] | None = None

    @property
    def shapes(self) -> list[Shape]:
        if self._shapes is None:
            self._shapes = []
            for simple in self.values.disjuncts(self.schemas):
                self._shapes += self.values.shapes_of(simple)
        return self._shapes


class Spelling(ABC):
    """How a format writes JSON. A level is where a value stands: "root" (the arguments), "top" (a value directly in
    them) or "inner"."""

    @abstractmethod
    def text(self, level: str, rule: TextRule, others: frozenset[str]) -> Sequence[Piece] | None:
        """A string under a rule; `others` are the other types that the place admits."""

    @abstractmethod
    def string(self, level: str, value: str, others: frozenset[str]) -> Sequence[Piece] | None:
        """One string."""

    @abstractmethod
    def word(self, value: bool | None) -> str: ...

    @abstractmethod
    def array(self, level: str) -> tuple[Sequence[Piece], Sequence[Piece], Sequence[Piece]]:
        """What opens, separates and closes."""

    @abstractmethod
    def object(self, level: str) -> tuple[Sequence[Piece], Sequence[Piece], Sequence[Piece]]: ...

    @abstractmethod
    def key(self, level: str, name: str) -> Sequence[Piece] | None:
        """A key and what stands between it and its value; None if the key cannot be written."""

    @abstractmethod
    def free_key(self, level: str, others: frozenset[str]) -> Sequence[Piece]: ...

    @abstractmethod
    def member_end(self, level: str) -> Sequence[Piece]: ...


class Values:
    """The values of one document in one spelling."""

    def __init__(self, document: Schema, spelling: Spelling, request: Request, level: str = "root") -> None:
        self.level = level
        self.document, self.spelling, self.request = document, spelling, request
        self._nodes: dict[str, Node] = {}
        self._pieces: dict[tuple[Node, str], Piece] = {}
        self._productive: dict[tuple[Node, str], bool] = {}
        self._scalars: dict[tuple[int, str], Sequence[Piece] | None] = {}
        self.root = self.node(document)
        self._find_productive()

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
            raise Unsupported(f"keyword {sorted(unknown)[0]}")
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
        place = self.document
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
        lows = [(exact(s[k]), k == "exclusiveMinimum") for s in simples for k in ("minimum", "exclusiveMinimum") if k in s]
        highs = [(-exact(s[k]), k == "exclusiveMaximum") for s in simples for k in ("maximum", "exclusiveMaximum") if k in s]
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
            self.node(*(s["prefixItems"][i] if i < len(s.get("prefixItems", ())) else s.get("items", True) for s in simples))
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
            parts = [s["properties"][name] if name in s.get("properties", {}) else s.get("additionalProperties", True) for s in simples]
            members[name] = self.node(*parts)
        closed = self.request.additional == "declared" and any("properties" in simple for simple in simples)
        free = None if closed else self.node(*(simple.get("additionalProperties", True) for simple in simples))
        return Shape("object", members=members, required=required, free=free)

    # Satisfiable?

    def _find_productive(self) -> None:
        """The least fixed point: what can be finished without needing itself."""
        reached = self._reached()
        self._productive = dict.fromkeys(reached, False)
        changed = True
        while changed:
            changed = False
            for place in reached:
                if not self._productive[place] and any(self._finishes(shape, place) for shape in place[0].shapes):
                    self._productive[place] = changed = True

    def _reached(self) -> list[tuple[Node, str]]:
        todo, seen = [(self.root, self.level)], {(self.root, self.level)}
        for node, level in todo:
            for shape in node.shapes:
                children = [*shape.items, *shape.members.values()]
                children += [child for child in (shape.rest, shape.free) if child is not None]
                for place in [(child, below(level)) for child in children]:
                    if place not in seen:
                        seen.add(place)
                        todo.append(place)
        return todo

    def _finishes(self, shape: Shape, place: tuple[Node, str]) -> bool:
        if shape.kind == "array":
            enough = shape.most is None or shape.most >= shape.least
            return enough and all(self.productive(self.item(shape, i), place[1]) for i in range(shape.least))
        if shape.kind == "object":
            level = below(place[1])
            fine = (self._productive[shape.members[k], level] and self.writable(k, place[1]) for k in shape.required)
            return all(fine)
        if place[1] == "root":
            return False
        return self.scalar(shape, place) is not None

    def writable(self, key: str, level: str) -> bool:
        return self.spelling.key(level, key) is not None

    def item(self, shape: Shape, index: int) -> Node | None:
        return shape.items[index] if index < len(shape.items) else shape.rest

    def productive(self, node: Node | None, level: str) -> bool:
        return node is not None and self._productive[node, below(level)]

    @property
    def satisfiable(self) -> bool:
        return self._productive[self.root, self.level]

    # Shapes to pieces

    def scalar(self, shape: Shape, place: tuple[Node, str]) -> Sequence[Piece] | None:
        key = (id(shape), place[1])
        if key not in self._scalars:
            self._scalars[key] = self._scalar(shape, place)
        return self._scalars[key]

    def _scalar(self, shape: Shape, place: tuple[Node, str]) -> Sequence[Piece] | None:
        others = frozenset(other.json_type for other in place[0].shapes) - {"string"}
        if any(other.json_type == "string" and other.kind == "string" for other in place[0].shapes):
            others |= {"untyped"} if len(others) >= 5 else frozenset()
        if shape.kind == "literal":
            return self._literal(shape.literal, place[1], others)
        if shape.kind in ("integer", "number"):
            numeral = Numeral(shape.numbers)
            return (numeral,) if numeral.satisfiable() else None
        if shape.kind == "string":
            rule = TextRule(
                least=shape.least,
                most=shape.most,
                machines=tuple((pattern(text), True) for text in shape.patterns),
                escapes=self.request.any_escape,
            )
            return self.spelling.text(place[1], rule, others)
        words = (None,) if shape.kind == "null" else (True, False)
        return (Choice([(Word(tuple(self.spelling.word(word).encode())),) for word in words]),)

    def _literal(self, value: Any, level: str, others: frozenset[str]) -> Sequence[Piece] | None:
        if isinstance(value, str):
            return self.spelling.string(level, value, others)
        if value is None or isinstance(value, bool):
            return (Word(tuple(self.spelling.word(value).encode())),)
        if isinstance(value, int | float):
            return (Word(tuple(repr(value).encode())),)
        raise Unsupported("a container in enum or const")

    def whole(self) -> Piece:
        """The value of the document itself."""
        return self.value(self.root, self.level)

    def value(self, node: Node, level: str) -> Piece:
        if (node, level) not in self._pieces:
            self._pieces[node, level] = Later(lambda: (Choice(self._options(node, level)),))
        return self._pieces[node, level]

    def _options(self, node: Node, level: str) -> Iterator[Sequence[Piece]]:
        for shape in node.shapes:
            if not self._finishes(shape, (node, level)):
                continue
            if shape.kind == "array":
                opener, _, closer = self.spelling.array(level)
                yield (*opener, _Items(self, shape, level, 0), *closer)
            elif shape.kind == "object":
                opener, _, closer = self.spelling.object(level)
                keys = tuple(k for k, child in shape.members.items() if self._productive[child, below(level)])
                keys = tuple(k for k in keys if self.writable(k, level))
                if self.request.key_order == "sorted":
                    keys = tuple(sorted(keys, key=str.lower))
                yield (*opener, _Members(self, shape, level, keys, False), *closer)
            elif (pieces := self.scalar(shape, (node, level))) is not None:
                yield pieces


def _unlike(schemas: Sequence[Schema]) -> dict[str, Schema]:
    """Each conjunct once, by its text, without those that say nothing."""
    texts = {json.dumps(schema, sort_keys=True): schema for schema in schemas}
    return {text: schema for text, schema in texts.items() if text not in ("true", "{}")}


def below(level: str) -> str:
    return "top" if level == "root" else "inner"


def _types(simple: Mapping[str, Any]) -> set[str]:
    declared = simple.get("type", list(TYPES))
    types = {declared} if isinstance(declared, str) else set(declared)
    if unknown := types - set(TYPES):
        raise Unsupported(f"type {sorted(unknown)[0]}")
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


class _Items(Piece):
    """What is left of an array after some items."""

    __slots__ = ("count", "level", "shape", "values")

    def __init__(self, values: Values, shape: Shape, level: str, count: int) -> None:
        self.values, self.shape, self.level = values, shape, level
        limit = max(shape.least, len(shape.items), 1)
        self.count = count if shape.most is not None else min(count, limit)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Items) and (self.shape is other.shape, self.count) == (True, other.count)

    def __hash__(self) -> int:
        return hash((id(self.shape), self.count))

    def open(self) -> Iterator[Sequence[Piece]]:
        shape, values = self.shape, self.values
        if self.count >= shape.least:
            yield ()
        item = values.item(shape, self.count)
        if (shape.most is None or self.count < shape.most) and values.productive(item, self.level):
            assert item is not None
            separator = values.spelling.array(self.level)[1] if self.count else ()
            after = _Items(values, shape, self.level, self.count + 1)
            yield (*separator, values.value(item, below(self.level)), after)


class _Members(Piece):
    """What is left of an object after some members: the keys that may still come, in order where there is one."""

    __slots__ = ("keys", "level", "shape", "some", "values")

    def __init__(self, values: Values, shape: Shape, level: str, keys: tuple[str, ...], some: bool) -> None:
        self.values, self.shape, self.level, self.keys, self.some = values, shape, level, keys, some

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Members):
            return False
        return self.shape is other.shape and (self.level, self.keys, self.some) == (other.level, other.keys, other.some)

    def __hash__(self) -> int:
        return hash((id(self.shape), self.keys, self.some))

    def open(self) -> Iterator[Sequence[Piece]]:
        missing = [key for key in self.keys if key in self.shape.required]
        if not missing:
            yield ()
        spelling, level = self.values.spelling, self.level
        separator = spelling.object(level)[1] if self.some else ()
        for index, key in enumerate(self.keys):
            if self.values.request.key_order == "any":
                left = self.keys[:index] + self.keys[index + 1 :]
            elif missing and self.keys.index(missing[0]) < index:
                break
            else:
                left = self.keys[index + 1 :]
            spelt = spelling.key(level, key)
            assert spelt is not None
            yield (*separator, *spelt, *self._tail(self.shape.members[key], left))
        if self.shape.free is not None and self.values.productive(self.shape.free, level):
            key_pieces = spelling.free_key(level, frozenset(self.shape.members))
            yield (*separator, *key_pieces, *self._tail(self.shape.free, self.keys))

    def _tail(self, child: Node, left: tuple[str, ...]) -> Sequence[Piece]:
        after = _Members(self.values, self.shape, self.level, left, True)
        value = self.values.value(child, below(self.level))
        return (value, *self.values.spelling.member_end(self.level), after)
