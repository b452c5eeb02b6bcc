"""Work that a schema takes, counted: it grows with what the schema says, not with how often it says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.counting import calls_of
from tests.spelt import ATEM, GEMMA, Format, of_x

DRAFT_4 = "http://json-schema.org/draft-04/schema#"


def back_to_itself(count: int) -> Any:
    """Members that all refer to the whole, each beside words of its own."""
    members = {f"m{at}": {"type": "object", "$ref": "#", "title": f"{at}", "default": {}} for at in range(count)}
    return {"$schema": DRAFT_4, "type": "object", "properties": members}


def annotated(count: int) -> Any:
    """The same where what stands beside a reference counts."""
    return {"type": "object", "properties": {f"m{at}": {"$ref": "#", "title": f"{at}"} for at in range(count)}}


def patterned(count: int) -> Any:
    """Objects of many members, beside keys that a pattern speaks of."""
    inner = {f"key-{at}": {"type": "string"} for at in range(count)}
    closed = {"type": "object", "properties": inner, "patternProperties": {"^x-": {}}, "additionalProperties": False}
    return {"type": "object", "properties": {"a": closed, "b": {**closed, "required": ["key-0"]}}}


SHAPES: list[Callable[[int], Any]] = [back_to_itself, annotated, patterned]


def work(fmt: Format, schema: Any) -> int:
    fmt.compile(schema, additional_properties="schema")  # whatever the process makes once
    return calls_of(lambda: fmt.compile(schema, additional_properties="schema"))


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
@pytest.mark.parametrize("fmt", [GEMMA, ATEM], ids=["quoted", "raw"])
def test_work_is_linear(fmt: Format, shape: Callable[[int], Any]) -> None:
    less, more = (work(fmt, shape(count)) for count in (60, 240))
    assert more < 4.5 * less


DECLARED = [{"a": {"type": "integer"}}, {"a": {"type": "integer"}, "x-a": {"type": "null"}, "y": {}}]
FREE: list[Any] = [
    {"patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": False},
    {"patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": {"type": "boolean"}},
    {"patternProperties": {"^x-": False, "^y": {"type": "integer"}}},
    {"patternProperties": {"^x-": {"type": "string"}, "a$": {"minLength": 2}}, "additionalProperties": False},
    {"propertyNames": {"enum": ["a", "b", "x-a"]}, "additionalProperties": {"type": "string"}},
    {"propertyNames": {"enum": ["a", "b"]}, "additionalProperties": {"type": "string", "minLength": 1}},
    {"propertyNames": {"maxLength": 1}, "additionalProperties": {"type": "string"}},
    {"allOf": [
        {"patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": False},
        {"patternProperties": {"b$": {"minLength": 2}}, "additionalProperties": True},
    ], "additionalProperties": {"type": "string"}},
    {"allOf": [{"properties": {"b": {}}, "additionalProperties": False}], "patternProperties": {"^b": {"not": {}}}},
]


@pytest.mark.parametrize("fmt", [GEMMA, ATEM], ids=["quoted", "raw"])
@pytest.mark.parametrize("free", FREE, ids=str)
@pytest.mark.parametrize("declared", DECLARED, ids=str)
def test_free_keys_beside_declared_ones(fmt: Format, declared: dict[str, Any], free: Any) -> None:
    """Values of several types under keys that are declared, that a pattern speaks of, and that neither does."""
    schema = {"type": "object", "properties": declared, **free}
    made, wanted = fmt.compile(of_x(schema), additional_properties="schema"), Draft202012Validator(schema)
    assert all(found.status in ("enforced", "refused") for found in made.findings)
    for key in ("a", "b", "y", "x-", "x-a", "x-b", "x-aa", "ya", "q"):
        for value in (4, "4", "s", "no", None, True):
            if fmt is ATEM and value == "4" and wanted.is_valid({key: 4}):
                continue  # without delimiters, a text that reads as another value is that value
            assert fmt.admits(made, {"x": {key: value}}) is wanted.is_valid({key: value}), (key, value)


@pytest.mark.parametrize("fmt", [GEMMA, ATEM], ids=["quoted", "raw"])
def test_every_short_key_is_declared(fmt: Format) -> None:
    """No key of one character is free then, and longer ones are."""
    names = [chr(code) for code in range(0x20, 0x7F) if chr(code) not in ":,{}<>\"\\|"]
    schema = {"properties": {name: {"type": "integer"} for name in names}, "additionalProperties": True}
    made = fmt.compile(of_x(schema), additional_properties="schema")
    assert fmt.admits(made, {"x": {"a": 1, "bb": None}})
    assert not fmt.admits(made, {"x": {"a": None}})


def test_a_free_key_is_read_as_such() -> None:
    """Where texts have no delimiters, the value of a free key is typed by what is said of free keys."""
    schema = {
        "type": "object", "properties": {"a": {"type": "integer"}}, "propertyNames": {"enum": ["a", "b"]},
        "additionalProperties": {"type": "string", "minLength": 1},
    }  # fmt: skip
    made = ATEM.compile(schema, additional_properties="schema")
    assert ATEM.admits(made, {"b": "4"})
