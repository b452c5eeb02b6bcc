"""Schemas of tools that are surely written: whatever becomes of them, nothing is refused, and nothing relaxed.

In: a schema, the forms of arguments, options. Out: how many containers it describes, if it says no more than most tools
do: an object with properties of plain types, lists of words, arrays and objects of such. Else None. `put_off` makes of
such a schema a `CompiledSchema` that is compiled when it is reached: of a hundred tools a call needs one.

Invariant: what is put off compiles, with every keyword enforced but for keys that are not declared, which are not
written. What might not is compiled at once, so that a request that cannot be kept is refused when it is made.
Cost: a look at each keyword and the spelling of each key, about 7 us for four parameters; to compile them takes 180.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from ..automaton.expression import EMPTY, Expr, Seq, seq
from ..automaton.later import later
from ..grammar.holes import row_of
from ..grammar.spelling import ObjectShape
from .forms import Forms
from .options import SchemaOptions
from .report import CompiledSchema, Finding

__all__ = ["put_off", "surely_written"]

_DESCRIBING = frozenset({"title", "description", "default", "example", "examples", "$comment"})
_OF_OBJECTS = _DESCRIBING | {"type", "properties", "required", "additionalProperties"}
_OF_ROOTS = _OF_OBJECTS | {"$schema"}
_OF_ARRAYS = _DESCRIBING | {"type", "items"}
_OF_WORDS = _DESCRIBING | {"type", "enum"}
_OF_SCALARS = _DESCRIBING | {"type"}
_SCALARS = frozenset({"string", "integer", "number", "boolean", "null"})
_DEEPEST = 8  # containers in each other
_MOST = 256  # members of an object, and words of a list


def surely_written(schema: Any, shape: ObjectShape, options: SchemaOptions) -> int | None:
    """How many containers a tool's schema describes, if it is surely written; else None."""
    if not isinstance(schema, Mapping) or not schema.keys() <= _OF_ROOTS:
        return None
    deepest = min(_DEEPEST, options.limits.schema_depth, options.limits.depth)
    return _object(schema, shape, Forms.of(shape.value), options.additional_properties == "declared", deepest)


def _object(schema: Mapping[str, Any], shape: ObjectShape, forms: Forms, closed: bool, room: int) -> int | None:
    """The containers of an object whose members are written in `forms`. `closed`: free keys are not written anyway."""
    properties, required = schema.get("properties"), schema.get("required", [])
    more = schema.get("additionalProperties", True)
    if schema.get("type") != "object" or not isinstance(properties, Mapping) or not 0 < len(properties) <= _MOST:
        return None
    if not isinstance(required, list) or not (more is False or (closed and more is True)):
        return None
    spell = shape.key.spell
    if not all(isinstance(name, str) and spell(name) is not None for name in properties):
        return None
    if not all(isinstance(name, str) and name in properties for name in required):
        return None
    return _sum([_value(child, forms, closed, room - 1) for child in properties.values()])


def _value(schema: Any, forms: Forms, closed: bool, room: int) -> int | None:
    if not isinstance(schema, Mapping) or room <= 0:
        return None
    name, keywords = schema.get("type"), schema.keys()
    if not isinstance(name, str) or (name if name != "integer" else "number") not in forms.types:
        return None
    if name in _SCALARS and keywords <= _OF_SCALARS:
        return 0
    if name == "string" and keywords <= _OF_WORDS:
        return 0 if _words(schema["enum"], forms) else None
    if name == "array" and keywords <= _OF_ARRAYS and "items" in schema:
        return _sum([_value(schema["items"], forms.item, closed, room - 1)])
    if name == "object" and keywords <= _OF_OBJECTS:
        return _object(schema, forms.object, forms.member, closed, room)
    return None


def _words(listed: Any, forms: Forms) -> bool:
    if not isinstance(listed, list) or not 0 < len(listed) <= _MOST:
        return False
    spell = forms.string.spell
    return all(isinstance(word, str) and spell(word) is not None for word in listed)


def _sum(inner: list[int | None]) -> int | None:
    """The containers of a container with these parts."""
    total = 1
    for part in inner:
        if part is None:
            return None
        total += part
    return total


class _Once:
    """A compilation that happens when it is first asked for."""

    def __init__(self, make: Callable[[], CompiledSchema]) -> None:
        self._make = make

    @cached_property
    def made(self) -> CompiledSchema:
        return self._make()


class _PutOff(CompiledSchema):
    """Its expression is one that compiles when the first member is reached."""

    def __init__(self, once: _Once, containers: int, before: Expr) -> None:
        self._once = once
        self.expr, self.containers = seq(before, later(lambda: _after(once.made.expr, before))), containers

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        return self._once.made.findings


def _after(expr: Expr, before: Expr) -> Expr:
    """What follows `before` in an expression that begins with it."""
    for part in row_of(before) if before is not EMPTY else []:
        assert isinstance(expr, Seq), "an object has members, or what ends it"
        assert expr.head is part, "an object begins as its format says"
        expr = expr.tail
    return expr


def put_off(make: Callable[[], CompiledSchema], containers: int, before: Expr) -> CompiledSchema:
    """What `make` compiles, once it is needed; it begins with `before`. It must not fail: see `surely_written`."""
    return _PutOff(_Once(make), containers, before)
