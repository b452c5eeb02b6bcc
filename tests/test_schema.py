"""JSON Schema to expressions: what is accepted keyword by keyword, what is reported, what is refused."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.oracle import atem
from tests.oracle.render import admitted_types, spellable
from tests.spelt import ATEM, BOOL, FORMATS, GEMMA, INT, NULL, NUM, STR, arr, each_format, obj, of_x
from twingram.automaton.recursion import Reference
from twingram.errors import LimitExceeded, SchemaError
from twingram.limits import Limits
from twingram.schema.compiler import SchemaOptions, compile_value
from twingram.schema.readings import read_as
from twingram.schema.report import CompiledSchema

# -- keyword by keyword ------------------------------------------------------------------------------------------------

RECURSIVE = {
    "anyOf": [NULL, {"type": "array", "items": {"$ref": "#/properties/x"}, "maxItems": 2}],
}
CASES: list[tuple[Any, list[Any], list[Any]]] = [
    (STR, ["", "a", 'é"😀\\\n', "<b>", "null"], []),
    (BOOL, [True, False], [None, 1, "true2"]),
    (NULL, [None], [False, 0]),
    (INT, [0, -7, 10**40], [1.5, True]),
    (NUM, [0, -7, 1.0, 1e-07, 1e22, 0.5], [True, None]),
    ({"type": ["integer", "null"]}, [3, None], [2.5, False]),
    (arr(), [[], [1, "a", [None]], [{"k": {"l": []}}]], [{}, 1]),
    ({"type": "object"}, [{}, {"a": 1, "b": {"c": [True]}}], [[], 1]),
    ({}, [None, True, 0, 1.5, "a", [], {"a": []}], []),
    (True, [None, "a", [1]], []),
    ({"enum": [None, True, 1.5, "x"]}, [None, True, 1.5, "x"], [False, 1, "xy", "", [None]]),
    ({"enum": ["a", "b", ""]}, ["a", "b", ""], ["c", "ab", None]),
    ({"const": 0}, [0], [False, 1]),
    (
        {"enum": [[1, "a"], {"k": 1, "l": [2]}, []]},
        [[1, "a"], {"k": 1, "l": [2]}, {"l": [2], "k": 1}, []],
        [{"k": 1}, [1]],
    ),
    ({"enum": [1, 2.5, "a"], "type": "integer"}, [1], [2.5, "a"]),
    ({"enum": [1, 20, 30], "minimum": 10, "multipleOf": 20}, [20], [1, 30]),
    ({"enum": ["aa", "b", "cc"], "minLength": 2, "pattern": "^a"}, ["aa"], ["b", "cc"]),
    ({"enum": [[1], [1, 2], ["a"]], "items": INT, "maxItems": 1}, [[1]], [[1, 2], ["a"]]),
    ({"enum": [{"a": 1}, {"a": "b"}, {}], "required": ["a"], "properties": {"a": STR}}, [{"a": "b"}], [{"a": 1}, {}]),
    ({"enum": ["a", "b"], "const": "b"}, ["b"], ["a"]),
    ({"type": "string", "minLength": 2}, ["ab", "é漢", "x" * 300], ["", "a", "😀"]),
    ({"type": "string", "maxLength": 3}, ["", "é漢😀", "abc"], ["abcd"]),
    ({"type": "string", "maxLength": 2000}, ["x" * 1999, "x" * 2000], ["x" * 2001]),
    ({"type": "string", "minLength": 3, "maxLength": 3}, ["abc"], ["ab", "abcd"]),
    ({"type": "string", "maxLength": 0}, [""], ["a"]),
    ({"type": "string", "pattern": "^on$|^off$"}, ["on", "off"], ["o", "onn", ""]),
    ({"type": "string", "pattern": "\\S"}, ["a", " a b"], ["", " ", "\n"]),
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
    (arr(items=INT), [[], [1], [1, 2, 3]], [["a"], [1, None]]),
    (arr(items=INT, minItems=2, maxItems=3), [[1, 2], [1, 2, 3]], [[], [1], [1, 2, 3, 4]]),
    (arr(minItems=1), [[1], ["a", None]], [[]]),
    (arr(maxItems=0), [[]], [[1]]),
    (arr(items=False), [[]], [[1]]),
    (arr(prefixItems=[STR, INT], items=False, minItems=2), [["a", 1]], [["a"], ["a", "b"], ["a", 1, 2], [1, "a"]]),
    (arr(prefixItems=[STR, INT]), [[], ["a"], ["a", 1], ["a", 1, None, []]], [[1], ["a", "b"]]),
    (
        arr(prefixItems=[NULL], items=INT, minItems=2, maxItems=3),
        [[None, 1], [None, 1, 2]],
        [[None], [None, None], [None, 1, 2, 3], [1, 2]],
    ),
    (arr(items=[NULL], additionalItems=BOOL), [[None, True]], [[True], [None, 1]]),
    (arr(prefixItems=[NULL, False]), [[], [None]], [[None, None]]),
    (
        obj({"a": INT, "b": STR}, "b"),
        [{"b": "x"}, {"a": 1, "b": ""}, {"b": "", "a": 1}],
        [{"a": 1}, {}, {"a": "1", "b": ""}, {"b": "", "c": 1}],
    ),
    (obj({"a": {}}, "a", "z"), [{"a": 1, "z": 2}], [{"a": 1}, {"z": 2}]),
    ({"type": "object", "additionalProperties": INT}, [{}, {"k": 1, "l": 2}], [{"k": "a"}, {"k": None}]),
    ({"type": "object", "additionalProperties": False}, [{}], [{"a": 1}]),
    (
        {"type": "object", "additionalProperties": NULL, "required": ["q"]},
        [{"q": None}, {"r": None, "q": None}],
        [{}, {"q": 1}],
    ),
    (
        {"type": "object", "patternProperties": {"^x_": INT}, "additionalProperties": False},
        [{}, {"x_1": 5}],
        [{"y": 5}, {"x_1": "a"}, {"x": 1}],
    ),
    (
        {"type": "object", "patternProperties": {"^x": INT, "y$": {"minimum": 10}}, "additionalProperties": NULL},
        [{"x": 5, "xy": 11, "y": "s"}, {"b": None}],
        [{"xy": 5}, {"xy": "a"}, {"b": 1}, {"y": 3}],
    ),
    (obj({"x_1": {"minimum": 10}}, patternProperties={"^x_": INT}), [{"x_1": 12}, {}], [{"x_1": 9}, {"x_1": "a"}]),
    ({"type": "object", "propertyNames": STR, "additionalProperties": INT}, [{"a": 1}], [{"a": "b"}]),
    (
        {"type": "object", "propertyNames": {"pattern": "^[a-c]+$", "maxLength": 2}},
        [{"ab": 1}, {}],
        [{"abc": 1}, {"d": 1}],
    ),
    ({"type": "object", "propertyNames": {"enum": ["a", "bb"]}}, [{"a": 1}, {"bb": 1}, {}], [{"b": 1}, {"ab": 1}]),
    (obj({"a": {}, "b": {}}, maxProperties=0), [{}], [{"a": 1}]),
    ({"anyOf": [{"type": "string", "enum": ["c", "f"]}, NULL]}, ["c", None], ["k", 1, True]),
    ({"anyOf": [INT, BOOL], "enum": [1, True, "a"]}, [1, True], ["a", 2, False]),
    ({"anyOf": [{"minimum": 5}, {"maximum": 2}], "type": "integer"}, [5, 2], [3, 4]),
    ({"oneOf": [STR, {"type": "integer", "minimum": 3}]}, [3], [2, None]),
    ({"allOf": [INT, {"minimum": 3}, {"maximum": 5, "minimum": 1}]}, [3, 5], [2, 6, "a"]),
    ({"allOf": [STR], "maxLength": 1}, ["a"], ["ab", 1]),
    (
        {"allOf": [obj({"a": INT}, "a"), {"properties": {"a": {"minimum": 4}, "b": NULL}}]},
        [{"a": 4}, {"a": 5, "b": None}],
        [{"a": 3}, {"b": None}, {"a": 4, "b": 1}],
    ),
    ({"allOf": [arr(items={"minimum": 1}), {"items": INT}]}, [[1], []], [[0], ["a"]]),
    ({"type": "integer", "nullable": True}, [1, None], ["a", True]),
    ({"$ref": "#/properties/x/$defs/n", "$defs": {"n": INT}, "minimum": 2}, [2], [1, "a"]),
    (RECURSIVE, [None, [], [None, [None]], [[[[]]]]], [[None, None, None], 1, [1]]),
]


OLD_FORMS = ('exclusiveMaximum": true', "additionalItems", "nullable")  # not 2020-12: the validator does not know them


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
                admitted, valid = fmt.admits(compiled, {"x": value}), validator.is_valid({"x": value})
                if valid and any(end in json.dumps(value) for end in (".0", "e+")):
                    continue  # a whole number has one spelling where integers are asked for or listed
                if "multipleOf" in json.dumps(schema) and isinstance(value, int) and abs(value) > 2**53:
                    continue  # the validator divides doubles
                assert admitted == valid, (schema, value)


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
@pytest.mark.parametrize(
    "schema", [{}, True, {"type": "object"}, {"type": "object", "properties": {}, "additionalProperties": {}}]
)
def test_free_form(name: str, schema: Any) -> None:
    compiled = FORMATS[name].compile(schema)
    for arguments in ({}, {"a": 1}, {"k": "v", "l": [{"m": None}]}):
        assert FORMATS[name].admits(compiled, arguments)
    assert ("$", "additionalProperties", "enforced") in statuses(compiled)


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
    compiled = fmt.compile({"type": "object", "properties": {"a": INT, "b": INT}})
    text = fmt.render({"a": 1, "b": 2})
    doubled = text.replace("b", "a") if name != "atem" else text.replace('"b"', '"a"')
    assert fmt.accepts(compiled, text)
    assert not fmt.accepts(compiled, doubled)


@each_format
def test_additional_properties_by_the_schema(name: str) -> None:
    fmt = FORMATS[name]
    schema = {"type": "object", "properties": {"ab": INT}, "additionalProperties": NULL}
    assert not fmt.admits(fmt.compile(schema), {"ac": None})
    compiled = fmt.compile(schema, additional_properties="schema")
    for arguments in ({"ab": 1}, {"ac": None}, {"a": None, "ab": 2, "abc": None}):
        assert fmt.admits(compiled, arguments)
    for arguments in ({"ab": None}, {"ac": 1}):
        assert not fmt.admits(compiled, arguments)


def test_declared_key_in_another_spelling() -> None:
    schema = of_x({"type": "object", "properties": {"ab": INT}})
    compiled = ATEM.compile(schema, additional_properties="schema")
    text = ATEM.render({"x": {"ac": None}})
    assert ATEM.accepts(compiled, text)
    assert ATEM.accepts(compiled, text.replace("ac", r"a\u0063"))
    assert not ATEM.accepts(compiled, text.replace("ac", r"a\u0062"))


def test_root_alternatives() -> None:
    schema = {"anyOf": [
        {"properties": {"k": {"const": "a"}, "n": INT}, "required": ["k", "n"]},
        {"properties": {"k": {"const": "b"}, "s": STR}, "required": ["k"]},
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
    assert raw_text(STR, text)
    assert raw_text({"enum": [text, "b"]}, text)


@pytest.mark.parametrize("text", ["</atem:parameter>", "a<|eot|>", "</atem:invoke>", "<|start|>"])
def test_a_string_cannot_hold_what_ends_it(text: str) -> None:
    schema = {"type": "object", "properties": {"x": STR, "y": {"const": text}}}
    compiled = ATEM.compile(schema)
    assert not ATEM.accepts(compiled, f'<atem:parameter name="x">{text}b</atem:parameter>\n')
    assert [(f.path, f.status) for f in compiled.findings if f.status == "refused"] == [("$.properties.y", "refused")]


def test_text_that_reads_as_another_type_is_no_string() -> None:
    several = {"type": ["string", "boolean"]}
    assert not raw_text(several, " true")
    assert raw_text(several, "True")
    assert raw_text(several, "42")
    number = {"anyOf": [STR, {"type": "integer", "maximum": 5}]}
    assert raw_text(number, "4")
    assert not raw_text(number, "6")  # it would be read as an integer
    assert raw_text(number, "007")
    assert raw_text(number, "1.5")
    anything: dict[str, Any] = {}
    for text in (
        "{x}", "[draft] hello", "[1 2]", '{"a" 1}', "{'a': 1}", "12 monkeys", "-", '"q"', "nul", "[1", "[1}", "[[1]",
    ):  # fmt: skip
        assert raw_text(anything, text), text
    for text in (' {"a": 1}', "[ 1]", " null", "1e5 ", '{"a":  1}'):
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
        {"properties": {"x": STR, "a": NULL}, "required": ["a"]},
        {"properties": {"x": INT, "b": NULL}, "required": ["b"]},
    ]}  # fmt: skip
    compiled = ATEM.compile(schema)
    member = '<atem:parameter name="{}">{}</atem:parameter>\n'.format
    assert ATEM.accepts(compiled, member("a", "null") + member("x", "five"))
    assert not ATEM.accepts(compiled, member("a", "null") + member("x", "5"))
    assert ATEM.accepts(compiled, member("b", "null") + member("x", "5"))


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()


@given(st.recursive(SCALARS, lambda below: st.lists(below) | st.dictionaries(st.text(), below)), st.integers(0, 2))
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


@pytest.mark.parametrize(
    "text", ["", "a", "[", "]", "[1,]", "{a}", '{"a"}', '{"a":}', "[1 1]", "01", "[01]", '["\n"]', "tru", "[,]", "[1]x"]
)
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
            "d": arr(uniqueItems=True, items={"type": "integer", "exclusiveMinimum": 1, "maximum": 1}),
            "e": {"type": "string", "pattern": "(a)\\1"},
            "g": {"type": "integer", "minimum": 2, "maximum": 1},
            "h": {"oneOf": [INT, NUM]},
            "i": {"oneOf": [INT, STR]},
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
        ("$.properties.a", "type", "enforced"), ("$.properties.a", "format", "enforced"),
        ("$.properties['b c']", "minLength", "enforced"), ("$.properties.d", "uniqueItems", "relaxed"),
        ("$.properties.e", "pattern", "relaxed"), ("$.properties.g", "minimum", "refused"),
        ("$.properties.h", "oneOf", "enforced"), ("$.properties.i", "oneOf", "enforced"),
        ("$.properties.j", "multipleOf", "enforced"), ("$.properties.k", "minProperties", "enforced"),
        ("$.properties.k", "additionalProperties", "enforced"),
        ("$.properties.k.additionalProperties", "not", "enforced"), ("$.properties.l", "$ref", "refused"),
        ("$.properties.m", "minLength", "relaxed"), ("$.properties.n", "tpye", "enforced"),
    }  # fmt: skip
    assert expected <= found, expected - found
    assert not {f for f in found if f[1] in ("title", "description", "default", "x-order")}
    assert {f.tool for f in GEMMA.compile(schema).findings} == {"f"}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "format": "regex"}, {"type": "array", "uniqueItems": True},
        {"not": {"additionalProperties": NULL}}, {"type": "string", "pattern": "(?<=a)b"},
        {"type": "object", "minProperties": 3}, {"if": {"propertyNames": {"minLength": 1}}, "then": {"type": "object"}},
        {"oneOf": [{"patternProperties": {"a": INT}}, {"uniqueItems": True}]}, {"$ref": "#/nowhere"}, {"type": "float"},
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
        (of_x({"allOf": [STR, INT]}), "$.properties.x", "type"),
        ({"type": "object", "properties": {"a:b": {}}, "required": ["a:b"]}, "$.properties['a:b']", "properties"),
        ({"type": "object", "required": ["a"], "additionalProperties": False}, "$.additionalProperties", ""),
        ({"type": "object", "required": ["a"], "maxProperties": 0}, "$", "maxProperties"),
        ({"type": "object", "required": ["ab"], "propertyNames": {"maxLength": 1}}, "$.required", "propertyNames"),
        (STR, "$", "type"),
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
        "properties": {"a": STR, "b": {"enum": [1], "type": "string"}, "c{": {}, "d": {"$ref": "#/$defs/d"}},
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
              "type": "object", "properties": {"x": {"anyOf": [{"$ref": "#/$defs/a"}, NULL]}}}  # fmt: skip
    compiled = GEMMA.compile(schema)
    assert GEMMA.admits(compiled, {"x": None})
    assert GEMMA.admits(compiled, {"x": [None]}) is False


# -- recursion and size ------------------------------------------------------------------------------------------------


def test_mutual_recursion() -> None:
    schema = {
        "type": "object", "properties": {"c": {"$ref": "#/$defs/list"}}, "required": ["c"],
        "$defs": {
            "list": {"type": "array", "items": {"$ref": "#/$defs/node"}},
            "node": {"type": "object", "properties": {"p": STR, "c": {"$ref": "#/$defs/list"}}, "required": ["p"]},
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
    schema = {"type": "object", "properties": {"sub": {"$ref": "#"}, "n": INT}, "additionalProperties": False}
    for fmt in FORMATS.values():
        assert fmt.admits(fmt.compile(schema), {"n": 1, "sub": {"sub": {"n": 2, "sub": {}}}})
        assert not fmt.admits(fmt.compile(schema), {"n": 1, "sub": {"sub": 2}})


def test_references() -> None:
    anchor = of_x({"$ref": "#here"}) | {"$defs": {"n": {"$anchor": "here", "type": "null"}}}
    itself = of_x({"anyOf": [{"$ref": "#/properties/x"}, NULL]})
    escaped = of_x({"$ref": "#/$defs/a~1b%20c~0"}) | {"$defs": {"a/b c~": NULL}}
    whole = of_x({"$ref": "https://a.b/c.json#/$defs/n"}) | {"$id": "https://a.b/c.json", "$defs": {"n": NULL}}
    inner = of_x({"$ref": "item#/$defs/n"}) | {"$defs": {"i": {"$id": "item", "$defs": {"n": NULL}}}}
    for schema in (anchor, itself, escaped, whole, inner):
        compiled = GEMMA.compile(schema)
        assert GEMMA.admits(compiled, {"x": None})
        assert not GEMMA.admits(compiled, {"x": 1})


def test_recursion_through_alternatives_and_conjunctions() -> None:
    schema = of_x({"$ref": "#/$defs/expr"}) | {"$defs": {
        "expr": {"oneOf": [INT, {"$ref": "#/$defs/pair"}]},
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
    schema: Any = INT
    for _ in range(190):
        schema = {"type": "array", "items": schema}
    assert GEMMA.state(GEMMA.compile(of_x(schema)), "{x:" + "[" * 190 + "7") is not None
    for nest in (lambda s: {"type": "array", "items": s}, lambda s: {"anyOf": [s]}, lambda s: {"allOf": [s]}):
        deep: Any = INT
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
    schema = of_x({"$ref": "#/$defs/d0"}) | {"$defs": defs | {"d400": NULL}}
    compiled = GEMMA.compile(schema, limits=Limits(schema_depth=1000))
    assert GEMMA.accepts(compiled, "{x:" + "[" * 400 + "null" + "]" * 400 + "}")


def test_combinators_that_multiply() -> None:
    doubled = {"$defs": {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(40)} | {"d40": NULL}}
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
        {"properties": {"a": {"type": ["string", "wat"]}}}, {"propertyNames": False},
        {"properties": {1: {}}}, {"patternProperties": {1: {}}},
        {"properties": {"a": {"enum": [{1: 2}, (1,), b"", None]}}}, {3: 4}, {"propertyNames": 3},
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
