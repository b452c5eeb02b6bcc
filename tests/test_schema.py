"""JSON Schema to expressions: what is accepted, what is not, what is reported; against two outside judges.

The texts of an expression are drawn at random, read back and judged by `jsonschema`; and the expression is walked side
by side with the oracle, which knows the formats from their descriptions alone.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests import oracle
from tests.oracle import atem, gemma4, matcher, runes
from tests.oracle.generate import NoValue, plain_schema, random_arguments, random_tool
from tests.oracle.render import admitted_types, render_call, spellable
from tests.oracle.schema_oracle import Values
from twingram.automaton.machine import Machine, State
from twingram.automaton.recursion import Reference
from twingram.errors import LimitExceeded, SchemaError
from twingram.grammar.alphabet import Alphabet
from twingram.grammar.compile import Compiler, Reading
from twingram.grammar.source import load_file
from twingram.grammar.spelling import Spelling
from twingram.limits import Limits
from twingram.schema.compiler import SchemaOptions, compile_arguments, compile_value
from twingram.schema.readings import read_as
from twingram.schema.report import CompiledSchema

ROOT = Path(__file__).resolve().parents[1]


class Format:
    """A grammar, and the shape of its arguments."""

    def __init__(self, name: str, path: Path, head: str, tail: str) -> None:
        self.name, self.head, self.tail = name, head, tail
        self.grammar = load_file(path)
        self.alphabet = Alphabet.of(self.grammar.markers, special=self.grammar.markers)
        compiler = Compiler(self.grammar, self.alphabet, Reading.MASK)
        self.shape = Spelling.plain(compiler, "value").object_of("object")
        self.value = Spelling(compiler, "value")

    def compile(self, schema: Any, limits: Limits | None = None, **options: Any) -> CompiledSchema:
        options |= {"limits": limits} if limits else {}
        return compile_arguments(schema, self.shape, tool="f", options=SchemaOptions(**options))

    def machine(self, compiled: CompiledSchema) -> Machine:
        return Machine(compiled.expr, widths=self.alphabet.widths)

    def symbols(self, text: str) -> list[int]:
        numbers = {marker: 256 + k for k, marker in enumerate(self.grammar.markers)}
        return [numbers[s] if isinstance(s, str) else s for s in oracle.symbols(text, self.grammar.markers)]

    def state(self, compiled: CompiledSchema, text: str) -> State | None:
        found = self.machine(compiled).start.run(self.symbols(text))
        return None if found is None else found.state

    def accepts(self, compiled: CompiledSchema, text: str) -> bool:
        state = self.state(compiled, text)
        return state is not None and state.accepting

    def render(self, arguments: dict[str, Any]) -> str:
        text = render_call(self.name, "f", arguments, sort=False)
        assert text.startswith(self.head)
        assert text.endswith(self.tail)
        return text[len(self.head) : len(text) - len(self.tail)]

    def admits(self, compiled: CompiledSchema, arguments: dict[str, Any]) -> bool:
        return self.accepts(compiled, self.render(arguments))


FORMATS = {
    "gemma4": Format("gemma4", ROOT / "grammars/gemma4.lark", "<|tool_call>call:f", "<tool_call|>"),
    "atem": Format(
        "atem", ROOT / "grammars/atem.lark", '<atem:function_calls>\n<atem:invoke name="f">\n',
        "</atem:invoke>\n</atem:function_calls>",
    ),
    "runes": Format("runes", ROOT / "tests/formats/runes.lark", "[[call]]f", "[[/call]]"),
}  # fmt: skip
GEMMA, ATEM = FORMATS["gemma4"], FORMATS["atem"]
SPELLINGS = {"gemma4": gemma4.Braces, "atem": atem.Tags, "runes": runes.Runes}
each_format = pytest.mark.parametrize("name", FORMATS)


def of_x(schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": schema}, "required": ["x"]}


# -- keyword by keyword ------------------------------------------------------------------------------------------------

RECURSIVE = {
    "anyOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#/properties/x"}, "maxItems": 2}],
}
CASES: list[tuple[Any, list[Any], list[Any]]] = [
    ({"type": "string"}, ["", "a", 'é"😀\\\n', "<b>", "null"], []),
    ({"type": "boolean"}, [True, False], [None, 1, "true2"]),
    ({"type": "null"}, [None], [False, 0]),
    ({"type": "integer"}, [0, -7, 10**40], [1.5, True]),
    ({"type": "number"}, [0, -7, 1.0, 1e-07, 1e22, 0.5], [True, None]),
    ({"type": ["integer", "null"]}, [3, None], [2.5, False]),
    ({"type": "array"}, [[], [1, "a", [None]], [{"k": {"l": []}}]], [{}, 1]),
    ({"type": "object"}, [{}, {"a": 1, "b": {"c": [True]}}], [[], 1]),
    ({}, [None, True, 0, 1.5, "a", [], {"a": []}], []),
    (True, [None, "a", [1]], []),
    ({"enum": [None, True, 1.5, "x"]}, [None, True, 1.5, "x"], [False, 1, "xy", "", [None]]),
    ({"enum": ["a", "b", ""]}, ["a", "b", ""], ["c", "ab", None]),
    ({"const": 0}, [0], [False, 1]),
    ({"enum": [[1, "a"], {"k": 1, "l": [2]}, []]}, [[1, "a"], {"k": 1, "l": [2]}, {"l": [2], "k": 1}, []], [{"k": 1}, [1]]),
    ({"enum": [1, 2.5, "a"], "type": "integer"}, [1], [2.5, "a"]),
    ({"enum": [1, 20, 30], "minimum": 10, "multipleOf": 20}, [20], [1, 30]),
    ({"enum": ["aa", "b", "cc"], "minLength": 2, "pattern": "^a"}, ["aa"], ["b", "cc"]),
    ({"enum": [[1], [1, 2], ["a"]], "items": {"type": "integer"}, "maxItems": 1}, [[1]], [[1, 2], ["a"]]),
    ({"enum": [{"a": 1}, {"a": "b"}, {}], "required": ["a"], "properties": {"a": {"type": "string"}}}, [{"a": "b"}], [{"a": 1}, {}]),
    ({"enum": ["a", "b"], "const": "b"}, ["b"], ["a"]),
    ({"type": "string", "minLength": 2}, ["ab", "é漢", "x" * 300], ["", "a", "😀"]),
    ({"type": "string", "maxLength": 3}, ["", "é漢😀", "abc"], ["abcd"]),
    ({"type": "string", "maxLength": 2000}, ["x" * 1999, "x" * 2000], ["x" * 2001]),
    ({"type": "string", "minLength": 3, "maxLength": 3}, ["abc"], ["ab", "abcd"]),
    ({"type": "string", "maxLength": 0}, [""], ["a"]),
    ({"type": "string", "pattern": "^on$|^off$"}, ["on", "off"], ["o", "onn", ""]),
    ({"type": "string", "pattern": r"\S"}, ["a", " a b"], ["", " ", "\n"]),
    ({"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 4}, ["ab", "abcd"], ["a", "abcde", "AB"]),
    ({"type": "string", "pattern": '^"\\\\'}, ['"\\x'], ['\\"', "a"]),
    ({"type": "integer", "minimum": -123, "maximum": 42}, [-123, 42, 0, -9], [-124, 43, 100, -200]),
    ({"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 3}, [1, 2], [0, 3]),
    ({"type": "integer", "minimum": 1.5, "maximum": 3.5}, [2, 3], [1, 4]),
    ({"type": "integer", "minimum": 10**30}, [10**30, 10**31], [10**30 - 1, 0]),
    ({"type": "integer", "multipleOf": 7, "minimum": 1}, [7, 14, 7000], [0, 8]),
    ({"type": "integer", "multipleOf": 1.5}, [3, 6, 0], [1, 2, 4]),
    ({"type": "integer", "minimum": 0, "maximum": 10, "exclusiveMaximum": True}, [9], [10]),
    ({"type": "number", "minimum": 1, "maximum": 5}, [5, 5.0, 4.99, 1], [5.7, 0.9, 6, 5.01]),
    ({"type": "number", "exclusiveMinimum": 0}, [0.001, 7], [0, -1]),
    ({"type": "number", "multipleOf": 5}, [10, -5, 0], [7]),
    ({"minimum": 3}, [3, 5.5, "a", None, [1], {"a": 1}], [2, -1.5]),
    ({"minLength": 2}, ["ab", 1, None, []], ["a"]),
    ({"required": ["a"]}, [{"a": 1}, {"a": 1, "b": 2}, "s", 3], [{"b": 2}, {}]),
    ({"type": "array", "items": {"type": "integer"}}, [[], [1], [1, 2, 3]], [["a"], [1, None]]),
    ({"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 3}, [[1, 2], [1, 2, 3]], [[], [1], [1, 2, 3, 4]]),
    ({"type": "array", "minItems": 1}, [[1], ["a", None]], [[]]),
    ({"type": "array", "maxItems": 0}, [[]], [[1]]),
    ({"type": "array", "items": False}, [[]], [[1]]),
    (
        {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False, "minItems": 2},
        [["a", 1]], [["a"], ["a", "b"], ["a", 1, 2], [1, "a"]],
    ),
    (
        {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
        [[], ["a"], ["a", 1], ["a", 1, None, []]], [[1], ["a", "b"]],
    ),
    (
        {"type": "array", "prefixItems": [{"type": "null"}], "items": {"type": "integer"}, "minItems": 2, "maxItems": 3},
        [[None, 1], [None, 1, 2]], [[None], [None, None], [None, 1, 2, 3], [1, 2]],
    ),
    ({"type": "array", "items": [{"type": "null"}], "additionalItems": {"type": "boolean"}}, [[None, True]], [[True], [None, 1]]),
    ({"type": "array", "prefixItems": [{"type": "null"}, False]}, [[], [None]], [[None, None]]),
    (
        {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["b"]},
        [{"b": "x"}, {"a": 1, "b": ""}, {"b": "", "a": 1}], [{"a": 1}, {}, {"a": "1", "b": ""}, {"b": "", "c": 1}],
    ),
    ({"type": "object", "properties": {"a": {}}, "required": ["a", "z"]}, [{"a": 1, "z": 2}], [{"a": 1}, {"z": 2}]),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, [{}, {"k": 1, "l": 2}], [{"k": "a"}, {"k": None}]),
    ({"type": "object", "additionalProperties": False}, [{}], [{"a": 1}]),
    ({"type": "object", "additionalProperties": {"type": "null"}, "required": ["q"]}, [{"q": None}, {"r": None, "q": None}], [{}, {"q": 1}]),
    (
        {"type": "object", "patternProperties": {"^x_": {"type": "integer"}}, "additionalProperties": False},
        [{}, {"x_1": 5}], [{"y": 5}, {"x_1": "a"}, {"x": 1}],
    ),
    (
        {"type": "object", "patternProperties": {"^x": {"type": "integer"}, "y$": {"minimum": 10}}, "additionalProperties": {"type": "null"}},
        [{"x": 5, "xy": 11, "y": "s"}, {"b": None}], [{"xy": 5}, {"xy": "a"}, {"b": 1}, {"y": 3}],
    ),
    (
        {"type": "object", "properties": {"x_1": {"minimum": 10}}, "patternProperties": {"^x_": {"type": "integer"}}},
        [{"x_1": 12}, {}], [{"x_1": 9}, {"x_1": "a"}],
    ),
    ({"type": "object", "propertyNames": {"type": "string"}, "additionalProperties": {"type": "integer"}}, [{"a": 1}], [{"a": "b"}]),
    ({"type": "object", "propertyNames": {"pattern": "^[a-c]+$", "maxLength": 2}}, [{"ab": 1}, {}], [{"abc": 1}, {"d": 1}]),
    ({"type": "object", "propertyNames": {"enum": ["a", "bb"]}}, [{"a": 1}, {"bb": 1}, {}], [{"b": 1}, {"ab": 1}]),
    ({"type": "object", "properties": {"a": {}, "b": {}}, "maxProperties": 0}, [{}], [{"a": 1}]),
    ({"anyOf": [{"type": "string", "enum": ["c", "f"]}, {"type": "null"}]}, ["c", None], ["k", 1, True]),
    ({"anyOf": [{"type": "integer"}, {"type": "boolean"}], "enum": [1, True, "a"]}, [1, True], ["a", 2, False]),
    ({"anyOf": [{"minimum": 5}, {"maximum": 2}], "type": "integer"}, [5, 2], [3, 4]),
    ({"oneOf": [{"type": "string"}, {"type": "integer", "minimum": 3}]}, [3], [2, None]),
    ({"allOf": [{"type": "integer"}, {"minimum": 3}, {"maximum": 5, "minimum": 1}]}, [3, 5], [2, 6, "a"]),
    ({"allOf": [{"type": "string"}], "maxLength": 1}, ["a"], ["ab", 1]),
    (
        {
            "allOf": [
                {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
                {"properties": {"a": {"minimum": 4}, "b": {"type": "null"}}},
            ]
        },
        [{"a": 4}, {"a": 5, "b": None}], [{"a": 3}, {"b": None}, {"a": 4, "b": 1}],
    ),
    ({"allOf": [{"type": "array", "items": {"minimum": 1}}, {"items": {"type": "integer"}}]}, [[1], []], [[0], ["a"]]),
    ({"type": "integer", "nullable": True}, [1, None], ["a", True]),
    ({"$ref": "#/properties/x/$defs/n", "$defs": {"n": {"type": "integer"}}, "minimum": 2}, [2], [1, "a"]),
    (RECURSIVE, [None, [], [None, [None]], [[[[]]]]], [[None, None, None], 1, [1]]),
]  # fmt: skip


OLD_FORMS = ("exclusiveMaximum\": true", "additionalItems", "nullable")  # not 2020-12: the validator does not know them


def is_text(name: str, schema: Any, value: Any) -> bool:
    """Whether a value of another type is written as the text of an admitted string."""
    types = admitted_types(schema, of_x(schema))
    kind = atem.reads_as(value if isinstance(value, str) else json.dumps(value))
    return name == "atem" and (types is None or "string" in types) and kind not in (types or ())


@each_format
@pytest.mark.parametrize(("schema", "good", "bad"), CASES, ids=[json.dumps(case[0])[:50] for case in CASES])
def test_keyword(name: str, schema: Any, good: list[Any], bad: list[Any]) -> None:
    fmt = FORMATS[name]
    compiled = fmt.compile(of_x(schema))
    for value in good:
        if spellable({"x": value}, name, of_x(schema)):
            assert fmt.admits(compiled, {"x": value}), value
    for value in bad:
        if not is_text(name, schema, value):
            assert not fmt.admits(compiled, {"x": value}), value


VALUES = list({json.dumps(value): value for _, good, bad in CASES for value in (*good, *bad)}.values())


@pytest.mark.parametrize("name", ["gemma4", "runes"])
def test_every_value_against_every_schema(name: str) -> None:
    """Accepted if and only if a validator accepts it."""
    fmt = FORMATS[name]
    for schema, _, _ in CASES:
        if any(form in json.dumps(schema) for form in OLD_FORMS):
            continue
        validator = Draft202012Validator(of_x(schema))
        compiled = fmt.compile(of_x(schema), additional_properties="schema")
        for value in VALUES:
            if spellable({"x": value}, name):
                admitted = fmt.admits(compiled, {"x": value})
                assert admitted == validator.is_valid({"x": value}), (schema, value)


@each_format
def test_enum_of_a_thousand(name: str) -> None:
    fmt = FORMATS[name]
    schema = of_x({"enum": [f"value-{i}" for i in range(1000)]})
    fmt.compile(schema)
    begin = time.perf_counter()
    compiled = fmt.compile(schema)
    assert time.perf_counter() - begin < 0.5
    assert fmt.admits(compiled, {"x": "value-999"})
    assert not fmt.admits(compiled, {"x": "value-1000"})


# -- arguments as a whole ----------------------------------------------------------------------------------------------


@each_format
@pytest.mark.parametrize("schema", [None, {"type": "object", "properties": {}}, {"additionalProperties": False}])
def test_no_parameters(name: str, schema: Any) -> None:
    compiled = FORMATS[name].compile(schema)
    assert FORMATS[name].admits(compiled, {})
    assert not FORMATS[name].admits(compiled, {"a": 1})


@each_format
@pytest.mark.parametrize("schema", [{}, True, {"type": "object"}, {"type": "object", "properties": {}, "additionalProperties": {}}])
def test_free_form(name: str, schema: Any) -> None:
    compiled = FORMATS[name].compile(schema)
    for arguments in ({}, {"a": 1}, {"k": "v", "l": [{"m": None}]}):
        assert FORMATS[name].admits(compiled, arguments)
    assert ("$", "additionalProperties", "relaxed") in statuses(compiled)


@each_format
def test_key_order(name: str) -> None:
    fmt = FORMATS[name]
    schema = {"type": "object", "properties": {"b": {}, "B": {}, "a": {}}, "required": ["b"]}
    orders = {
        "any": ["b", "bB", "Bb", "ba", "ab", "abB", "Bab", "bBa"],
        "declared": ["b", "bB", "ba", "bBa"],
        "sorted": ["b", "ab", "bB", "abB"],
    }
    for option, fine in orders.items():
        compiled = fmt.compile(schema, key_order=option)
        for text in sorted(set().union(*orders.values())):
            assert fmt.admits(compiled, dict.fromkeys(text, 1)) == (text in fine), (option, text)


@each_format
def test_each_key_once(name: str) -> None:
    fmt = FORMATS[name]
    compiled = fmt.compile({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}})
    text = fmt.render({"a": 1, "b": 2})
    doubled = text.replace("b", "a") if name != "atem" else text.replace('"b"', '"a"')
    assert fmt.accepts(compiled, text)
    assert not fmt.accepts(compiled, doubled)


@each_format
def test_additional_properties_by_the_schema(name: str) -> None:
    fmt = FORMATS[name]
    schema = {"type": "object", "properties": {"ab": {"type": "integer"}}, "additionalProperties": {"type": "null"}}
    assert not fmt.admits(fmt.compile(schema), {"ac": None})
    compiled = fmt.compile(schema, additional_properties="schema")
    for arguments in ({"ab": 1}, {"ac": None}, {"a": None, "ab": 2, "abc": None}):
        assert fmt.admits(compiled, arguments)
    for arguments in ({"ab": None}, {"ac": 1}):
        assert not fmt.admits(compiled, arguments)


def test_declared_key_in_another_spelling() -> None:
    schema = of_x({"type": "object", "properties": {"ab": {"type": "integer"}}})
    compiled = ATEM.compile(schema, additional_properties="schema")
    text = ATEM.render({"x": {"ac": None}})
    assert ATEM.accepts(compiled, text)
    assert ATEM.accepts(compiled, text.replace("ac", r"a\u0063"))
    assert not ATEM.accepts(compiled, text.replace("ac", r"a\u0062"))


def test_root_alternatives() -> None:
    schema = {"anyOf": [
        {"properties": {"k": {"const": "a"}, "n": {"type": "integer"}}, "required": ["k", "n"]},
        {"properties": {"k": {"const": "b"}, "s": {"type": "string"}}, "required": ["k"]},
    ], "type": "object"}  # fmt: skip
    for fmt in FORMATS.values():
        compiled = fmt.compile(schema)
        assert fmt.admits(compiled, {"n": 1, "k": "a"})
        assert fmt.admits(compiled, {"k": "b", "s": ""})
        assert not fmt.admits(compiled, {"k": "a"})
        assert not fmt.admits(compiled, {"k": "b", "n": 1})


# -- raw strings -------------------------------------------------------------------------------------------------------


def raw_text(schema: Any, text: str) -> bool:
    compiled = ATEM.compile({"type": "object", "properties": {"x": schema}})
    return ATEM.accepts(compiled, f'<atem:parameter name="x">{text}</atem:parameter>\n')


@pytest.mark.parametrize("text", ["42", " true ", "null", '{"a": 1}', "[1", '"q"', "", " ", "</atem:", "<eom>"])
def test_a_declared_string_is_verbatim(text: str) -> None:
    assert raw_text({"type": "string"}, text)
    assert raw_text({"enum": [text, "b"]}, text)


@pytest.mark.parametrize("text", ["</atem:parameter>", "a<|eot|>", "</atem:invoke>", "<|start|>"])
def test_a_string_cannot_hold_what_ends_it(text: str) -> None:
    schema = {"type": "object", "properties": {"x": {"type": "string"}, "y": {"const": text}}}
    compiled = ATEM.compile(schema)
    assert not ATEM.accepts(compiled, f'<atem:parameter name="x">{text}b</atem:parameter>\n')
    assert [(f.path, f.status) for f in compiled.findings if f.status == "refused"] == [("$.properties.y", "refused")]


def test_text_that_reads_as_another_type_is_no_string() -> None:
    several = {"type": ["string", "boolean"]}
    assert not raw_text(several, " true")
    assert raw_text(several, "True")
    assert raw_text(several, "42")
    number = {"anyOf": [{"type": "string"}, {"type": "integer", "maximum": 5}]}
    assert raw_text(number, "4")
    assert not raw_text(number, "6")  # it would be read as an integer
    assert raw_text(number, "007")
    assert raw_text(number, "1.5")
    anything: dict[str, Any] = {}
    for text in ("{x}", "[draft] hello", "[1 2]", '{"a" 1}', "{'a': 1}", "12 monkeys", "-", '"q"', "nul", "[1"):
        assert raw_text(anything, text), text
    for text in ("[1}", ' {"a": 1}', "[ 1]", "[[1]", " null", "1e5 ", '{"a":  1}'):
        assert not raw_text(anything, text), text


def test_listed_text_that_reads_as_another_type() -> None:
    schema = {"type": "object", "properties": {"x": {"enum": ["1", 1, "a", "[1"]}, "y": {"enum": ["null", None]}}}
    compiled = ATEM.compile(schema)
    assert ATEM.admits(compiled, {"x": 1})
    assert ATEM.admits(compiled, {"x": "[1"})
    refused = [(f.path, f.keyword) for f in compiled.findings if f.status == "refused"]
    assert refused == [("$.properties.x", "enum"), ("$.properties.y", "enum")]
    assert not [f for f in GEMMA.compile(schema).findings if f.status == "refused"]


def test_types_of_a_member_under_all_alternatives() -> None:
    """A reader does not know which alternative was written: the text 5 is a number for it in both."""
    schema = {"anyOf": [
        {"properties": {"x": {"type": "string"}, "a": {"type": "null"}}, "required": ["a"]},
        {"properties": {"x": {"type": "integer"}, "b": {"type": "null"}}, "required": ["b"]},
    ]}  # fmt: skip
    compiled = ATEM.compile(schema)
    member = '<atem:parameter name="{}">{}</atem:parameter>\n'.format
    assert ATEM.accepts(compiled, member("a", "null") + member("x", "five"))
    assert not ATEM.accepts(compiled, member("a", "null") + member("x", "5"))
    assert ATEM.accepts(compiled, member("b", "null") + member("x", "5"))


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
                    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)), st.integers(0, 2))  # fmt: skip
def test_what_reads_as_json_is_known_to(value: Any, indent: int) -> None:
    text = json.dumps(value, ensure_ascii=indent == 2, indent=indent or None)
    kinds = {dict: "object", list: "array", bool: "boolean", int: "integer", float: "number", type(None): "null"}
    if type(value) is not str:
        for spaced in (text, f" \n{text}\t"):
            try:
                data = spaced.encode()
            except UnicodeEncodeError:
                continue
            assert read_as(frozenset({kinds[type(value)]})).matches(data)
            assert not read_as(frozenset({"null", "boolean"}) - {kinds[type(value)]}).matches(data)


@pytest.mark.parametrize("text", ["", "a", "[", "]", "[1,]", "{a}", '{"a"}', '{"a":}', "[1 1]", "01", "[01]", '["\n"]', "tru", "[,]", "[1]x"])
def test_what_is_no_json_is_text(text: str) -> None:
    assert not read_as(frozenset({"object", "array", "number", "boolean", "null"})).matches(text.encode())


# -- what is reported, what is refused ---------------------------------------------------------------------------------


def statuses(compiled: CompiledSchema) -> set[tuple[str, str, str]]:
    return {(f.path, f.keyword, f.status) for f in compiled.findings}


def test_findings() -> None:
    schema = {
        "type": "object", "title": "t", "x-order": 1,
        "properties": {
            "a": {"type": "string", "format": "date", "description": "d", "default": ""},
            "b c": {"type": "integer", "minLength": 3},
            "d": {"type": "array", "uniqueItems": True, "items": {"type": "integer", "exclusiveMinimum": 1, "maximum": 1}},
            "e": {"type": "string", "pattern": "(a)\\1"},
            "g": {"type": "integer", "minimum": 2, "maximum": 1},
            "h": {"oneOf": [{"type": "integer"}, {"type": "number"}]},
            "i": {"oneOf": [{"type": "integer"}, {"type": "string"}]},
            "j": {"type": "number", "multipleOf": 0.1},
            "k": {"type": "object", "minProperties": 1, "additionalProperties": {"not": {"const": 1}}},
            "l": {"$ref": "https://example.com/schema"},
            "m": {"type": "string", "minLength": "3"},
            "n": {"tpye": "string"},
        },
    }  # fmt: skip
    found = statuses(GEMMA.compile(schema))
    expected = {
        ("$", "type", "enforced"), ("$", "properties", "enforced"), ("$", "additionalProperties", "narrowed"),
        ("$.properties.a", "type", "enforced"), ("$.properties.a", "format", "relaxed"),
        ("$.properties['b c']", "minLength", "enforced"), ("$.properties.d", "uniqueItems", "relaxed"),
        ("$.properties.e", "pattern", "relaxed"), ("$.properties.g", "minimum", "refused"),
        ("$.properties.h", "oneOf", "relaxed"), ("$.properties.i", "oneOf", "enforced"),
        ("$.properties.j", "multipleOf", "relaxed"), ("$.properties.k", "minProperties", "relaxed"),
        ("$.properties.k", "additionalProperties", "relaxed"), ("$.properties.k.additionalProperties", "not", "relaxed"),
        ("$.properties.l", "$ref", "relaxed"), ("$.properties.m", "minLength", "relaxed"), ("$.properties.n", "tpye", "relaxed"),
    }  # fmt: skip
    assert expected <= found, expected - found
    assert not {f for f in found if f[1] in ("title", "description", "default", "x-order")}
    assert {f.tool for f in GEMMA.compile(schema).findings} == {"f"}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "format": "date"}, {"type": "array", "uniqueItems": True}, {"not": {"type": "null"}},
        {"type": "string", "pattern": "(?<=a)b"}, {"type": "object", "maxProperties": 3}, {"if": {}, "then": {}},
        {"oneOf": [{"type": "integer"}, {"type": "number"}]}, {"$ref": "#/nowhere"}, {"type": "float"},
    ],
)  # fmt: skip
def test_unsupported_as_an_error(schema: Any) -> None:
    GEMMA.compile(of_x(schema))
    with pytest.raises(SchemaError) as error:
        GEMMA.compile(of_x(schema), on_unsupported="error")
    assert error.value.tool == "f"
    assert error.value.path.startswith("$.properties.x")
    assert error.value.keyword
    assert error.value.hint


@pytest.mark.parametrize(
    ("schema", "path", "keyword"),
    [
        (of_x({"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 1}), "$.properties.x", "exclusiveMinimum"),
        (of_x(False), "$.properties.x", ""),
        (of_x({"type": "string", "minLength": 3, "maxLength": 2}), "$.properties.x", "minLength"),
        (of_x({"type": "string", "pattern": "^a$", "minLength": 2}), "$.properties.x", "pattern"),
        (of_x({"enum": []}), "$.properties.x", "enum"),
        (of_x({"enum": ['<|"|>']}), "$.properties.x", "enum"),
        (of_x({"enum": [float("nan"), 1e300]}), "$.properties.x", "enum"),
        (of_x({"type": "array", "items": False, "minItems": 1}), "$.properties.x.items", ""),
        (of_x({"allOf": [{"type": "string"}, {"type": "integer"}]}), "$.properties.x", "type"),
        ({"type": "object", "properties": {"a:b": {}}, "required": ["a:b"]}, "$.properties['a:b']", "properties"),
        ({"type": "object", "required": ["a"], "additionalProperties": False}, "$.additionalProperties", ""),
        ({"type": "object", "required": ["a"], "maxProperties": 0}, "$", "maxProperties"),
        ({"type": "object", "required": ["ab"], "propertyNames": {"maxLength": 1}}, "$.required", "propertyNames"),
        ({"type": "string"}, "$", "type"),
        (False, "$", ""),
        (of_x({"$ref": "#"}), "$", "$ref"),
    ],
)
def test_refused(schema: Any, path: str, keyword: str) -> None:
    with pytest.raises(SchemaError) as error:
        GEMMA.compile(schema)
    assert (error.value.path, error.value.keyword) == (path, keyword)
    assert error.value.tool == "f"


def test_an_optional_member_that_nothing_satisfies_is_left_out() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"enum": [1], "type": "string"}, "c{": {}, "d": {"$ref": "#/$defs/d"}},
        "$defs": {"d": {"type": "object", "properties": {"d": {"$ref": "#/$defs/d"}}, "required": ["d"]}},
    }
    compiled = GEMMA.compile(schema)
    assert GEMMA.admits(compiled, {"a": ""})
    assert GEMMA.state(compiled, "{b") is None
    assert GEMMA.state(compiled, "{d") is None
    refused = {f.path for f in compiled.findings if f.status == "refused"}
    assert refused == {"$.properties.b", "$.properties['c{']", "$.$defs.d"}


def test_only_refused_alternatives_are_dropped() -> None:
    schema = {"$defs": {"a": {"type": "array", "items": {"$ref": "#/$defs/a"}, "minItems": 1}},
              "type": "object", "properties": {"x": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]}}}  # fmt: skip
    compiled = GEMMA.compile(schema)
    assert GEMMA.admits(compiled, {"x": None})
    assert GEMMA.admits(compiled, {"x": [None]}) is False


# -- recursion and size ------------------------------------------------------------------------------------------------


def test_mutual_recursion() -> None:
    schema = {
        "type": "object", "properties": {"c": {"$ref": "#/$defs/list"}}, "required": ["c"],
        "$defs": {
            "list": {"type": "array", "items": {"$ref": "#/$defs/node"}},
            "node": {"type": "object", "properties": {"p": {"type": "string"}, "c": {"$ref": "#/$defs/list"}}, "required": ["p"]},
        },
    }  # fmt: skip
    value: dict[str, Any] = {"p": "leaf"}
    for _ in range(40):
        value = {"p": "a", "c": [value, {"p": ""}]}
    for fmt in FORMATS.values():
        compiled = fmt.compile(schema)
        assert fmt.admits(compiled, {"c": [value]})
        assert not fmt.admits(compiled, {"c": [{"c": []}]})
        assert compiled.expr.shortest < 200


def test_recursion_in_the_root() -> None:
    schema = {"type": "object", "properties": {"sub": {"$ref": "#"}, "n": {"type": "integer"}}, "additionalProperties": False}
    for fmt in FORMATS.values():
        assert fmt.admits(fmt.compile(schema), {"n": 1, "sub": {"sub": {"n": 2, "sub": {}}}})
        assert not fmt.admits(fmt.compile(schema), {"n": 1, "sub": {"sub": 2}})


def test_references() -> None:
    anchor = of_x({"$ref": "#here"}) | {"$defs": {"n": {"$anchor": "here", "type": "null"}}}
    itself = of_x({"anyOf": [{"$ref": "#/properties/x"}, {"type": "null"}]})
    escaped = of_x({"$ref": "#/$defs/a~1b%20c~0"}) | {"$defs": {"a/b c~": {"type": "null"}}}
    for schema in (anchor, itself, escaped):
        compiled = GEMMA.compile(schema)
        assert GEMMA.admits(compiled, {"x": None})
        assert not GEMMA.admits(compiled, {"x": 1})


def test_recursion_through_alternatives_and_conjunctions() -> None:
    schema = of_x({"$ref": "#/$defs/expr"}) | {"$defs": {
        "expr": {"oneOf": [{"type": "integer"}, {"$ref": "#/$defs/pair"}]},
        "pair": {"allOf": [{"type": "array", "items": {"$ref": "#/$defs/expr"}}, {"minItems": 2, "maxItems": 2}]},
    }}  # fmt: skip
    for fmt in FORMATS.values():
        compiled = fmt.compile(schema)
        assert fmt.admits(compiled, {"x": [1, [[2, 3], 4]]})
        assert not fmt.admits(compiled, {"x": [1, [2]]})


def test_any_value_is_one_reference() -> None:
    compiled = compile_value({}, GEMMA.value)
    assert isinstance(compiled.expr, Reference)
    assert compile_value(True, GEMMA.value).expr is compiled.expr
    deep = "[" * 500 + "]" * 500
    assert GEMMA.accepts(compiled, deep)
    assert not GEMMA.accepts(compiled, deep[:-1])


def test_depth_is_limited_not_fatal() -> None:
    schema: Any = {"type": "integer"}
    for _ in range(190):
        schema = {"type": "array", "items": schema}
    assert GEMMA.state(GEMMA.compile(of_x(schema)), "{x:" + "[" * 190 + "7") is not None
    for nest in (lambda s: {"type": "array", "items": s}, lambda s: {"anyOf": [s]}, lambda s: {"allOf": [s]}):
        deep: Any = {"type": "integer"}
        for _ in range(5000):
            deep = nest(deep)
        with pytest.raises(LimitExceeded):
            GEMMA.compile(of_x(deep))
        with pytest.raises(LimitExceeded):
            GEMMA.compile(of_x(schema), limits=Limits(schema_depth=100))
    value: Any = 1
    for _ in range(5000):
        value = [value]
    with pytest.raises(LimitExceeded):
        GEMMA.compile(of_x({"const": value}))


def test_a_long_chain_of_references() -> None:
    defs: dict[str, Any] = {f"d{i}": {"type": "array", "items": {"$ref": f"#/$defs/d{i + 1}"}} for i in range(400)}
    schema = of_x({"$ref": "#/$defs/d0"}) | {"$defs": defs | {"d400": {"type": "null"}}}
    compiled = GEMMA.compile(schema, limits=Limits(schema_depth=1000))
    assert GEMMA.accepts(compiled, "{x:" + "[" * 400 + "null" + "]" * 400 + "}")


def test_combinators_that_multiply() -> None:
    doubled = {"$defs": {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(40)} | {"d40": {"type": "null"}}}
    begin = time.perf_counter()
    GEMMA.compile(of_x({"$ref": "#/$defs/d0"}) | doubled)
    wide = {"allOf": [{"anyOf": [{"minLength": i}, {"minimum": i}]} for i in range(40)]}
    compiled = GEMMA.compile(of_x(wide))
    assert time.perf_counter() - begin < 5
    assert any(f.status == "relaxed" for f in compiled.findings)


@pytest.mark.parametrize(
    "schema",
    [
        3, "object", [], {"properties": []}, {"properties": {"a": 3}}, {"required": "a"}, {"type": 5}, {"enum": 3},
        {"properties": {"a": {"items": 7}}}, {"properties": {"a": {"anyOf": []}}}, {"properties": {"a": {"anyOf": {}}}},
        {"properties": {"a": {"minimum": "x", "maximum": None}}}, {"properties": {"a": {"pattern": 3}}},
        {"properties": {"a": {"pattern": "["}}}, {"patternProperties": {"(": {}}}, {"patternProperties": 3},
        {"properties": {"a": {"multipleOf": 0}}}, {"properties": {"a": {"type": "array", "prefixItems": {}}}},
        {"properties": {"a": {"$ref": 3}}}, {"$ref": "#"}, {"properties": {"a": {"minItems": 1.5, "maxLength": True}}},
        {"properties": {"\ud800": {}}}, {"properties": {"a": {"const": "\ud800"}}}, {"properties": {"": {}}},
        {"properties": {"a": {"maximum": 10**4000}}}, {"properties": {"a": {"maximum": 1e308, "minimum": -1e308}}},
        {"properties": {"a": {"type": "string", "maxLength": 10**30}}}, {"additionalProperties": 3},
        {"properties": {"a": {"type": ["string", "wat"]}}}, {"propertyNames": False}, {"propertyNames": 3},
    ],
)  # fmt: skip
@each_format
def test_malformed_schemas_are_reported(name: str, schema: Any) -> None:
    for additional in ("declared", "schema"):
        try:
            compiled = FORMATS[name].compile(schema, additional_properties=additional)
        except (SchemaError, LimitExceeded):
            continue
        assert compiled.expr.shortest < 10_000
        assert compiled.findings


def test_options_are_checked() -> None:
    with pytest.raises(ValueError, match="key_order"):
        SchemaOptions(key_order="random")


# -- outside judges ----------------------------------------------------------------------------------------------------


def bits(number: int) -> Iterator[int]:
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest


CLOSING = '</atem:parameter>\n"]}),;|0'


class Walk:
    """A random text of an expression, symbol by symbol, with an end in sight."""

    def __init__(self, fmt: Format, compiled: CompiledSchema, rng: random.Random) -> None:
        self.fmt, self.rng = fmt, rng
        self.state = fmt.machine(compiled).start
        self.symbols: list[int] = []

    def choices(self) -> list[int]:
        return list(bits(self.state.first))

    def choose(self, hurry: bool) -> int:
        choices = self.choices()
        if hurry:
            sample = [symbol for symbol in choices if symbol > 255 or chr(symbol) in CLOSING]
            sample += self.rng.sample(choices, min(len(choices), 5))
            return min(sample, key=lambda symbol: self.after(symbol).shortest)
        plain = [symbol for symbol in choices if 32 <= symbol < 127 or symbol > 255]
        return self.rng.choice(plain if plain and self.rng.random() < 0.8 else choices)

    def after(self, symbol: int) -> State:
        step = self.state.step(symbol)
        assert step is not None
        return step.state

    def step(self, symbol: int) -> None:
        self.symbols.append(symbol)
        self.state = self.after(symbol)

    def text(self) -> str:
        markers = self.fmt.grammar.markers
        parts = [bytes((s,)) if s < 256 else markers[s - 256].encode() for s in self.symbols]
        return b"".join(parts).decode("utf-8", "replace")

    def finish(self, steps: int) -> str:
        while not (self.state.accepting and (len(self.symbols) > steps or not self.state.first)):
            self.step(self.choose(len(self.symbols) > steps))
            assert len(self.symbols) < 50 * steps + 5000
        return self.text()


class Reader:
    """Reads the values of the two bracketed formats."""

    SIGNS = {
        "gemma4": ("{", "}", ",", ":", "[", "]", ",", '<|"|>', '<|"|>', {"true": True, "false": False, "null": None}),
        "runes": ("(", ")", "; ", "=", "<", ">", " | ", "[[s]]", "[[/s]]", {"yes": True, "no": False, "nil": None}),
    }

    def __init__(self, name: str, text: str) -> None:
        self.text, self.at = text, 0
        (self.open, self.close, self.comma, self.colon, self.first, self.last, self.bar, self.quote, self.end, self.words,
         ) = self.SIGNS[name]  # fmt: skip

    def take(self, sign: str) -> bool:
        if self.text.startswith(sign, self.at):
            self.at += len(sign)
            return True
        return False

    def upto(self, sign: str) -> str:
        begin, self.at = self.at, self.text.index(sign, self.at) + len(sign)
        return self.text[begin : self.at - len(sign)]

    def value(self) -> Any:
        if self.take(self.quote):
            return self.upto(self.end)
        if self.take(self.open):
            found: dict[str, Any] = {}
            while not self.take(self.close):
                assert not found or self.take(self.comma)
                key = self.upto(self.colon)
                assert key not in found or not key, key
                found[key] = self.value()
            return found
        if self.take(self.first):
            items: list[Any] = []
            while not self.take(self.last):
                assert not items or self.take(self.bar)
                items.append(self.value())
            return items
        for word, value in self.words.items():
            if self.take(word):
                return value
        number = re.compile(r"-?[0-9][0-9.eE+-]*").match(self.text, self.at)
        assert number, self.text[self.at :]
        self.at = number.end()
        return json.loads(number[0])


def read(name: str, text: str, schema: Any) -> dict[str, Any]:
    if name != "atem":
        reader = Reader(name, text)
        value = reader.value()
        assert reader.at == len(text)
        return value  # type: ignore[no-any-return]
    found = {}
    for key, body in re.findall(r'<atem:parameter name="([^"]*)">(.*?)</atem:parameter>\n', text, re.DOTALL):
        types = admitted_types(schema["properties"][key], schema)
        kind = atem.reads_as(body)
        typed = kind is not None and kind != "string" and (types is None or kind in types or (kind, "number") == ("integer", *types & {"number"}))
        assert key not in found
        found[key] = json.loads(body) if typed else body
        assert typed or types is None or "string" in types
    return found


MORE: list[Any] = [
    {"type": "object", "properties": {"p": {"type": "number", "minimum": -1.5, "exclusiveMaximum": 2}, "q": {"type": "integer", "multipleOf": 3}}},
    {"type": "object", "properties": {"p": {"type": "array", "prefixItems": [{"type": "null"}, {"type": "string"}], "items": {"type": "integer", "minimum": 7}, "minItems": 1}}},
    {"type": "object", "properties": {"p": {"oneOf": [{"type": "null"}, {"type": "object", "properties": {"k": {"const": "v"}}, "required": ["k"], "additionalProperties": False}]}}, "required": ["p"]},
    {"type": "object", "properties": {"p": {"allOf": [{"properties": {"a": {"type": "integer"}}}, {"type": "object", "properties": {"a": {"maximum": 0}, "b": {"type": "null"}}, "required": ["a"]}]}}, "required": ["p"]},
    {"type": "object", "properties": {"p": {"enum": [[1, {"a": None}], {"k": [], "l": "x"}, 2.5, "t"]}}, "required": ["p"]},
    {"type": "object", "properties": {"p": {"type": ["string", "null", "number"], "maxLength": 3, "minimum": 10}}, "required": ["p"]},
    {"type": "object", "properties": {"p": {"type": "string", "pattern": "^(?:[a-f]{2}-?){2,3}$"}, "q": {"type": "string", "minLength": 2, "maxLength": 3}}, "required": ["p", "q"]},
    {"type": "object", "properties": {"p": {"type": ["string", "integer"]}, "q": {"type": ["string", "boolean", "null"]}}, "required": ["p", "q"]},
    {"type": "object", "properties": {"p": {"anyOf": [{"type": "array", "items": {"$ref": "#/properties/p"}, "maxItems": 2}, {"type": "integer", "minimum": 0, "maximum": 9}]}}, "required": ["p"]},
]  # fmt: skip


@each_format
def test_what_is_written_validates(name: str) -> None:
    """Random texts, read back by code that knows the format only, satisfy the schema for an outside validator."""
    fmt = FORMATS[name]
    rng = random.Random(7)
    schemas = MORE + [random_tool(rng)["function"]["parameters"] for _ in range(25)]
    judged = 0
    for schema in schemas:
        if "additionalProperties" in schema and not schema["properties"]:
            continue
        validator = Draft202012Validator(plain_schema(schema))
        try:
            compiled = fmt.compile(schema)
        except SchemaError:
            continue
        if any(f.status == "relaxed" for f in compiled.findings):
            continue
        for _ in range(3):
            text = Walk(fmt, compiled, rng).finish(rng.choice((5, 40, 120)))
            validator.validate(read(name, text, schema))
            judged += 1
    assert judged > 40


def oracle_state(name: str, schema: Any, options: dict[str, Any]) -> matcher.OracleState | None:
    names = {"additional_properties": "additional"}
    chosen = {names.get(key, key): value for key, value in options.items()}
    space = "".join(char for char in map(chr, range(256)) if char.isspace())
    definition = {"name": "f", "parameters": schema}
    request = oracle.make_request([definition], "required", untyped_json_string=True, key_space=space, **chosen)
    values = Values(schema, SPELLINGS[name](request), request)
    return matcher.start((values.value(values.root, "root"),)) if values.satisfiable else None


def in_step(name: str, schema: Any, options: dict[str, Any], rng: random.Random, steps: int = 50) -> None:
    """Walk expression and oracle side by side; both allow the same symbols and end at the same places."""
    fmt, judge = FORMATS[name], oracle_state(name, schema, options)
    try:
        compiled = fmt.compile(schema, **options)
    except SchemaError:
        assert judge is None
        return
    assert judge is not None
    walk = Walk(fmt, compiled, rng)
    every = [*range(256), *(256 + k for k in range(len(fmt.grammar.markers)))]

    def judged(symbol: int) -> matcher.OracleState | None:
        return judge.advance(symbol if symbol < 256 else fmt.grammar.markers[symbol - 256])

    for count in range(steps):
        assert walk.state.accepting == judge.can_end, walk.text()
        choices = walk.choices()
        for symbol in rng.sample(choices, min(len(choices), 4)) + rng.sample(every, 10):
            allowed = walk.state.step(symbol) is not None
            assert allowed == (judged(symbol) is not None), (walk.text(), symbol, allowed)
        if not choices:
            return
        symbol = walk.choose(count > 0.6 * steps)
        judge = judged(symbol)
        walk.step(symbol)


@each_format
@pytest.mark.parametrize("seed", range(14))
def test_in_step_with_the_oracle(name: str, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(2):
        schema = random_tool(rng, odd_keys=name != "runes")["function"]["parameters"]
        if not schema["properties"]:
            continue  # whether an empty list lists anything is a choice of its own
        options = rng.choice([{}, {}, {"key_order": "sorted"}, {"key_order": "declared"}, {"additional_properties": "schema"}])
        try:
            in_step(name, schema, options, rng)
        except oracle.Unsupported:
            continue


@each_format
def test_valid_arguments_are_accepted(name: str) -> None:
    rng = random.Random(3)
    for _ in range(40):
        definition = random_tool(rng, odd_keys=name != "runes")
        try:
            arguments = random_arguments(definition, name, rng, tries=5)
            compiled = FORMATS[name].compile(definition["function"]["parameters"])
        except (NoValue, SchemaError):
            continue
        assert FORMATS[name].admits(compiled, arguments), arguments
