"""Work that a schema takes, counted: it grows with what the schema says, not with how often it says so."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import combinations, product
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.counting import calls_of
from tests.spelt import ATEM, GEMMA, Format, of_x
from twingram.automaton.dfa import intersect
from twingram.automaton.expression import Expr
from twingram.automaton.meet import acquainted, sample
from twingram.automaton.numbers import integer_dfa
from twingram.automaton.regex import pattern_dfa
from twingram.schema.context import Context
from twingram.schema.forms import Forms
from twingram.schema.numbers import numbers
from twingram.schema.options import SchemaOptions
from twingram.schema.report import Placed

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


def doubled(keyword: str) -> Callable[[int], Any]:
    """A chain of definitions, each of which speaks of the next one twice."""

    def shape(count: int) -> Any:
        at = count // 8
        steps: dict[str, Any] = {f"d{n}": {keyword: [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(at)}
        return {"properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": {**steps, f"d{at}": {"type": "string"}}}

    shape.__name__ = f"doubled {keyword}"
    return shape


def many_patterns(count: int) -> Any:
    """Keys of many kinds, each with values of its own."""
    return {"type": "object", "patternProperties": {f"^k{at}-": {"const": at} for at in range(count)}}


def told_by_pattern(count: int) -> Any:
    return {"properties": {"x": {"oneOf": [{"type": "string", "pattern": f"^k{at}:"} for at in range(count)]}}}


def told_by_condition(count: int) -> Any:
    kinds = [f"kind {at}" for at in range(count // 8)]
    rules = [
        {"if": {"properties": {"k": {"const": kind}}, "required": ["k"]}, "then": {"required": [f"for {kind}"]}}
        for kind in kinds
    ]
    return {"properties": {"x": {"type": "object", "properties": {"k": {"enum": kinds}}, "allOf": rules}}}


LINEAR: list[Callable[[int], Any]] = [
    back_to_itself, annotated, patterned, doubled("allOf"), doubled("anyOf"), doubled("oneOf"),
]  # fmt: skip
QUADRATIC: list[Callable[[int], Any]] = [many_patterns, told_by_pattern, told_by_condition]  # pairs, each at small cost


def work(fmt: Format, schema: Any) -> int:
    fmt.compile(schema, additional_properties="schema")  # whatever the process makes once
    return calls_of(lambda: fmt.compile(schema, additional_properties="schema"))


@pytest.mark.parametrize("shape", LINEAR, ids=lambda shape: shape.__name__)
@pytest.mark.parametrize("fmt", [GEMMA, ATEM], ids=["quoted", "raw"])
def test_work_is_linear(fmt: Format, shape: Callable[[int], Any]) -> None:
    less, more = (work(fmt, shape(count)) for count in (60, 240))
    assert more < 4.5 * less


@pytest.mark.parametrize("shape", QUADRATIC, ids=lambda shape: shape.__name__)
def test_work_of_pairs(shape: Callable[[int], Any]) -> None:
    less, more = (work(GEMMA, shape(count)) for count in (60, 240))
    assert more < 40 * less
    made = GEMMA.compile(shape(240), additional_properties="schema")
    assert all(found.status == "enforced" for found in made.findings)


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


BOUNDS: list[dict[str, Any]] = [
    {"type": kind, **bounds, **step}
    for kind in ("integer", "number")
    for bounds in (
        {}, {"minimum": 0}, {"exclusiveMinimum": 0}, {"maximum": -0.25}, {"minimum": -7, "exclusiveMaximum": 1e30},
        {"minimum": 1e-9, "maximum": 2.5}, {"not": {"enum": [3, 0.5]}}, {"not": {"const": 12}, "minimum": 1},
        {"not": {"type": "integer"}},
    )
    for step in ({}, {"multipleOf": 7}, {"multipleOf": 0.25}, {"multipleOf": 37})
]  # fmt: skip


@pytest.mark.parametrize("fmt", [GEMMA, ATEM], ids=["quoted", "raw"])
def test_numbers_are_within_what_the_format_writes(fmt: Format, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is taken out of them, since nothing would be."""
    forms = Forms(None, fmt.shape).member
    rest = Context(True, SchemaOptions(), "f")
    branches = [(s, b) for s in BOUNDS for b in rest.resolver.branches([Placed(s, "$")])]

    def made() -> list[Any]:
        return [numbers(schema["type"], branch, forms, rest.report, rest.limits) for schema, branch in branches]

    assert forms.writes_all_numbers
    found = made()
    monkeypatch.setitem(forms.__dict__, "writes_all_numbers", False)
    assert found == made()
    assert sum(isinstance(each, Expr) for each in found) > len(BOUNDS) / 2


ONE_OF: list[list[Any]] = [
    [{"type": "string", "pattern": f"^{letter}"} for letter in "abcdef"],
    [{"type": "string", "pattern": pattern} for pattern in ("^[ab]", "^[bc]", "d")],
    [{"type": "string", "pattern": "^a"}, {"type": "string", "maxLength": 1}, {"type": "object"}],
    [{"required": [f"k{at}"], "properties": {f"k{at}": {"type": "integer"}}} for at in range(40)],
    [{"required": ["k0"], "properties": {"k0": False}}, {"required": ["k1"], "properties": {"k1": True}}],
]


@pytest.mark.parametrize("options", ONE_OF, ids=lambda options: str(options)[:60])
def test_exactly_one(options: list[Any]) -> None:
    """Options that patterns or members tell apart, and options that some values have in common."""
    texts = ["", "a", "b", "c", "d", "ab", "bd", "ad", "cc", "z"]
    objects = [{}, {"k0": 1}, {"k0": "s"}, {"k1": 1}, {"k0": 1, "k1": 1}, {"k0": 1, "k1": "s"}, {"k39": 2, "z": 0}]
    schema = {"type": ["string", "object"], "oneOf": options}
    made, wanted = GEMMA.compile(of_x(schema), additional_properties="schema"), Draft202012Validator(schema)
    assert {found.status for found in made.findings} <= {"enforced", "refused"}
    for value in [*texts, *objects]:
        assert GEMMA.admits(made, {"x": value}) is wanted.is_valid(value), value


@pytest.mark.parametrize("seed", range(40))
def test_acquainted(seed: int) -> None:
    """The automata that meet are those of which two at a time have a text in common."""
    rng = random.Random(seed)
    pieces = ("a", "b", "^a", "^b", "ab$", "[ab]c", "(ab)+", "^c?$", "^x{2}", "(?!a)b")
    dfas = [pattern_dfa("".join(rng.sample(pieces, rng.choice((1, 2))))) for _ in range(rng.choice((2, 5, 12)))]
    pairs = combinations(range(len(dfas)), 2)
    assert acquainted(dfas) == {pair for pair in pairs if sample([dfas[at] for at in pair], 0, 1000) is not None}


def test_a_pattern_of_many_states_is_relaxed() -> None:
    """Too large only together with what can be written: reported as any other, and no failure of the request."""
    pattern = "^" + "".join(f"(?=.*{letter})" for letter in "abcdefghij")
    made = GEMMA.compile(of_x({"type": "string", "pattern": pattern}), additional_properties="schema")
    assert [(found.path, found.keyword) for found in made.findings if found.status == "relaxed"] == [
        ("$.properties.x", "pattern")
    ]


@pytest.mark.parametrize("step", [2, 3, 5, 7, 9, 10, 11, 21, 37, 250, 999, 1001])
def test_multiples_are_minimal(step: int) -> None:
    """Made as they are, without a search for states that are alike, where there are none."""
    every = integer_dfa(None, None)
    assert intersect(every, integer_dfa(None, None, step)) is integer_dfa(None, None, step)
    for value in (0, step, -step, 7 * step, step + 1, -3 * step - 1, 10**30 * step):
        assert integer_dfa(None, None, step).matches(str(value).encode()) is (value % step == 0)


CLOSED: list[Any] = [
    {"oneOf": [
        {"properties": {"a": {"type": "string"}}, "additionalProperties": False},
        {"properties": {"b": {"type": "string"}}, "additionalProperties": False},
    ]},
    {"properties": {"a": {}, "b": {}}, "additionalProperties": False, "not": {
        "properties": {"a": {"type": "integer"}}, "additionalProperties": False}},
    {"oneOf": [
        {"properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "integer"}},
        {"properties": {"a": {}, "b": {"type": ["integer", "null"]}}, "additionalProperties": False},
    ], "propertyNames": {"enum": ["a", "b"]}, "properties": {"a": {}, "b": {}}, "additionalProperties": False},
    {"properties": {"a": {}, "b": {}, "c": {}}, "additionalProperties": False,
     "if": {"properties": {"a": {}}, "additionalProperties": False}, "then": {"required": ["a"]},
     "else": {"required": ["b"]}},
    {"enum": [{}, {"a": 1}, {"b": "s"}, {"a": "s", "c": None}], "not": {
        "properties": {"a": {}}, "additionalProperties": {"type": "null"}}},
    {"oneOf": [{"properties": {}, "additionalProperties": False}, {"maxProperties": 1}],
     "properties": {"a": {}, "b": {}, "c": {}}, "additionalProperties": False},
]


@pytest.mark.parametrize("fmt", [GEMMA, ATEM], ids=["quoted", "raw"])
@pytest.mark.parametrize("schema", CLOSED, ids=lambda schema: str(schema)[:60])
def test_what_is_not_closed(fmt: Format, schema: Any) -> None:
    """A value that closed objects do not admit has a member besides theirs: known where there are no free keys."""
    schema = {"type": "object", **schema}
    made, wanted = fmt.compile(of_x(schema), additional_properties="schema"), Draft202012Validator(schema)
    assert {found.status for found in made.findings} <= {"enforced", "refused"}
    values = [None, 1, "s"]
    for names in ((), ("a",), ("b",), ("c",), ("a", "b"), ("a", "c"), ("b", "c"), ("a", "b", "c")):
        for rows in product(values, repeat=len(names)):
            value = dict(zip(names, rows, strict=True))
            assert fmt.admits(made, {"x": value}) is wanted.is_valid(value), value


def test_what_is_not_closed_beside_free_keys() -> None:
    """There it is said."""
    schema = {"type": "object", "not": {"properties": {"a": {}}, "additionalProperties": False}}
    made = GEMMA.compile(of_x(schema), additional_properties="schema")
    assert [found.keyword for found in made.findings if found.status == "relaxed"] == ["additionalProperties"]
    assert GEMMA.admits(made, {"x": {"b": 1}})
