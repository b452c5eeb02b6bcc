"""Casts: text of a value and the types of its place, to JSON text."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twingram.schema.declared import ANYTHING, UNDECLARED, Place, admitted_types
from twingram.session.casts import Types, cast_bare, cast_raw, cast_string, document, quote, unescape, unquote
from twingram.session.tools import Tools

DEEP = 512


def types(*names: str) -> Types:
    return admitted_types({"type": list(names)}, {}) if names else None


TEXT = object()  # the text itself, as a string

BARE: list[tuple[str, tuple[str, ...], Any]] = [
    # nothing declared
    ("42", (), "42"),
    ("-7", (), "-7"),
    ("+7", (), "7"),
    ("007", (), "7"),
    ("-007.50", (), "-7.50"),
    ("0", (), "0"),
    ("-0", (), "-0"),
    ("00", (), "0"),
    ("1_000", (), TEXT),
    ("123456789012345678901234567890", (), "123456789012345678901234567890"),
    ("1.50", (), "1.50"),
    ("108.", (), "108.0"),
    (".5", (), "0.5"),
    ("-.5e3", (), "-0.5e3"),
    ("1.E5", (), "1.0E5"),
    ("1e5", (), "1e5"),
    ("1e-07", (), "1e-07"),
    ("1e999", (), TEXT),
    ("9" * 400, (), "9" * 400),
    ("9" * 400 + ".0", (), TEXT),
    (".", (), TEXT),
    ("e5", (), TEXT),
    ("+", (), TEXT),
    ("1e", (), TEXT),
    ("٣", (), TEXT),
    ("true", (), "true"),
    ("True", (), "true"),
    ("FALSE", (), "false"),
    ("null", (), "null"),
    ("None", (), "null"),
    ("NULL", (), TEXT),
    ("none", (), TEXT),
    ("NaN", (), TEXT),
    ("-Infinity", (), TEXT),
    ("bare word", (), TEXT),
    ("", (), '""'),
    ("  spaced\n", (), '"spaced"'),
    ('"42"', (), '"42"'),
    ("'x'", (), '"x"'),
    ("`a\\n`", (), '"a\\\\n"'),
    ('"a\\n\\u00e9"', (), '"a\\né"'),
    ('"a" or "b"', (), TEXT),
    ("'it's'", (), TEXT),
    ("'", (), TEXT),
    # strings only
    ("00750", ("string",), TEXT),
    ("null", ("string",), TEXT),
    ("True", ("string",), TEXT),
    ("'42'", ("string",), '"42"'),
    (" a ", ("string",), '"a"'),
    # one type that is no string: what the text says, then the strict forms
    ("10.0", ("integer",), "10.0"),
    ("007", ("integer",), "7"),
    ("true", ("integer",), "true"),
    ("null", ("integer",), "null"),
    ("word", ("integer",), TEXT),
    ("1", ("boolean",), "1"),
    ("True", ("boolean",), "true"),
    ("3", ("number",), "3"),
    ('"42"', ("integer",), "42"),
    ("[1, 2]", ("array",), "[1, 2]"),
    ("[1, 2", ("array",), TEXT),
    ('{"a": 1}', ("object", "null"), '{"a": 1}'),
    # strings or something else: only what JSON writes exactly so
    ("42", ("string", "integer"), "42"),
    ("007", ("string", "integer"), TEXT),
    ("1.0", ("string", "integer"), TEXT),
    ("1.0", ("string", "number"), "1.0"),
    ("42", ("string", "null"), TEXT),
    ("null", ("string", "null"), "null"),
    ("None", ("string", "null"), "null"),
    ("null", ("string", "integer"), TEXT),
    ("True", ("string", "boolean"), "true"),
    ("True", ("string", "integer"), TEXT),
    ("[1]", ("string", "array"), TEXT),
]

STRING: list[tuple[str, tuple[str, ...], Any]] = [
    ("42", (), TEXT),
    ("null", (), TEXT),
    ("42", ("string",), TEXT),
    ("42", ("string", "integer"), TEXT),
    ("null", ("string", "null"), TEXT),
    ("42", ("integer",), "42"),
    (" +7 ", ("integer",), "7"),
    ("10.0", ("integer",), TEXT),
    ("1e5", ("integer",), TEXT),
    ("1_000", ("integer",), TEXT),
    ("true", ("integer",), TEXT),
    ("null", ("integer",), TEXT),
    ("null", ("integer", "null"), "null"),
    ("1.50", ("number",), "1.50"),
    ("3", ("number",), "3"),
    ("1e999", ("number",), TEXT),
    ("NaN", ("number",), TEXT),
    ("False", ("boolean",), "false"),
    ("yes", ("boolean",), TEXT),
    ("1", ("boolean",), TEXT),
    ('["a", 1]', ("array",), '["a", 1]'),
    ("[NaN]", ("array",), TEXT),
    ("[1e999]", ("array",), TEXT),
    ("[01]", ("array",), TEXT),
    ('{"a":}', ("object",), TEXT),
    ("", ("integer",), TEXT),
]

RAW: list[tuple[str, tuple[str, ...], Any]] = [
    ("  hi  ", ("string",), TEXT),
    ("1234", ("string",), TEXT),
    ('"q"', ("string",), TEXT),
    ("42", ("integer",), "42"),
    (" 7 ", ("integer",), "7"),
    ("+3", ("integer",), "3"),
    ("12345678901234567890123", ("integer",), "12345678901234567890123"),
    ("10.0", ("integer",), TEXT),
    ("1e5", ("integer",), TEXT),
    ("1_000", ("integer",), TEXT),
    ("true", ("integer",), TEXT),
    ("3", ("number",), "3"),
    ("1.50", ("number",), "1.50"),
    ("NaN", ("number",), TEXT),
    ("Infinity", ("number",), TEXT),
    ("-Infinity", ("number",), TEXT),
    ("1e999", ("number",), TEXT),
    ("true", ("boolean",), "true"),
    ("False", ("boolean",), "false"),
    ("1", ("boolean",), TEXT),
    ("yes", ("boolean",), TEXT),
    (' {"k": "v"}\n', ("object",), '{"k": "v"}'),
    ("[1, 2]", ("array",), "[1, 2]"),
    ("[1, 2", ("array",), TEXT),
    ("null", ("string", "null"), "null"),
    ("5", ("string", "null"), TEXT),
    ("None", ("string", "null"), TEXT),
    ("42", ("string", "integer"), "42"),
    (" 42 ", ("string", "integer"), "42"),
    ("+42", ("string", "integer"), TEXT),
    ("4.5", ("string", "integer"), TEXT),
    ("False", ("string", "boolean"), TEXT),
    ('["a"]', ("string", "array"), '["a"]'),
    ('{"a": 1}', ("string", "array"), TEXT),
    ('"q"', ("string", "array"), TEXT),
    ("42", (), "42"),
    ("[1, 2]", (), "[1, 2]"),
    ("hello", (), TEXT),
    ('"q"', (), TEXT),
    ("NaN", (), TEXT),
    ("1e999", (), TEXT),
    ("-Infinity", (), TEXT),
    ("", (), TEXT),
]


def check(found: str, text: str, expected: Any) -> None:
    assert found == (quote(text) if expected is TEXT else expected)
    json.loads(found, parse_constant=pytest.fail)


@pytest.mark.parametrize(("text", "declared", "expected"), BARE)
def test_bare(text: str, declared: tuple[str, ...], expected: Any) -> None:
    check(cast_bare(text, "bare", types(*declared), DEEP), text, expected)


@pytest.mark.parametrize(("text", "declared", "expected"), STRING)
def test_string(text: str, declared: tuple[str, ...], expected: Any) -> None:
    check(cast_string(text, types(*declared), DEEP), text, expected)


@pytest.mark.parametrize(("text", "declared", "expected"), RAW)
def test_raw(text: str, declared: tuple[str, ...], expected: Any) -> None:
    check(cast_raw(text, types(*declared), DEEP), text, expected)


def test_the_grammars_word_for_a_scalar_wins() -> None:
    assert cast_bare("yes", "true", None, DEEP) == "true"
    assert cast_bare("no", "false", types("boolean"), DEEP) == "false"
    assert cast_bare("nil", "null", types("string", "null"), DEEP) == "null"
    assert cast_bare("nil", "null", types("string"), DEEP) == '"nil"'
    assert cast_bare("7", "number", types("string"), DEEP) == '"7"'


def test_json_strings_where_no_tool_is_known() -> None:
    assert cast_raw('"q"', None, DEEP, declared=False) == '"q"'
    assert cast_raw("q", None, DEEP, declared=False) == '"q"'


# -- JSON --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["[]", "{}", "[1,2 , 3]", '{"a":[{"b":null}],"c":"\\"]"}', '"x"', "1", "-0", "true", " [ ] ", '"\\u00e9\\/"',
     "[[],[]]", "", "[", "]", "[,]", "[1,]", "[1 2]", "{,}", '{"a"}', '{"a":}', '{"a":1,}', '{1:2}', "[1}", "[]]",
     "[] []", "01", "1.", ".5", "+1", "nul", "truely", "'a'", '"\n"', '"\\x"', '"\\u12"', "[NaN]", "Infinity", "[1]x",
     '"a" "b"', ":", '{"a":1:2}', "[1:2]", "{[]}", '{"a" 1}', ",", "1,2"],
)  # fmt: skip
def test_documents_are_those_of_the_json_module(text: str) -> None:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        value = json.loads(text, parse_constant=refuse)
    except ValueError:
        assert document(text, DEEP) is None
        return
    kinds = {list: "array", dict: "object", str: "string", int: "integer", bool: "boolean", type(None): "null"}
    assert document(text, DEEP) == (kinds[type(value)], text.strip())


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES, st.booleans(), st.sampled_from([None, 1]))
@settings(max_examples=150, deadline=None)
def test_any_json_is_a_document(value: object, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    found = document(text, DEEP)
    assert found is not None
    assert json.loads(found[1]) == value
    broken = text[:-1]
    assert document(broken, DEEP) is None or isinstance(value, (int, float))


def test_depth_is_counted_without_recursion() -> None:
    assert document("[" * 512 + "]" * 512, 512) == ("array", "[" * 512 + "]" * 512)
    assert document("[" * 513 + "]" * 513, 512) is None
    assert document('{"a":' * 20_000 + "1" + "}" * 20_000, 20_000) is not None
    assert document("[1]", 0) is None


def test_half_a_surrogate_pair_is_no_character() -> None:
    assert document('["\\ud83d\\ude00 \\ud83d \\\\ud83d \\udc00x"]', DEEP) == (
        "array",
        '["\\ud83d\\ude00 \\ufffd \\\\ud83d \\ufffdx"]',
    )


@given(st.text(alphabet='\\u"ndD8cCaA09eé', max_size=30), st.integers(0, 30))
@settings(max_examples=400, deadline=None)
def test_unescaping_in_pieces(text: str, cut: int) -> None:
    whole, waiting = unescape(text)
    assert waiting == 0
    whole.encode()
    first, waiting = unescape(text[:cut], final=False)
    assert waiting <= min(cut, 11)
    rest, _ = unescape(text[min(cut, len(text)) - waiting :])
    assert first + rest == whole
    try:
        assert json.loads(f'"{text}"').encode("utf-16", "replace").replace(b"?", b"") is not None
    except ValueError:
        return
    assert json.loads(quote(whole)) == whole


def test_unquote() -> None:
    assert unquote('"a\\"b"') == 'a"b'
    assert unquote("'a\\'") == "a\\"
    assert [unquote(text) for text in ("a", '"', '"a', "'a\"", '"a"b"', '"a\\"', "")] == [None] * 7


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers())
def test_numbers_keep_their_value(value: float) -> None:
    for written in (str(value), f"+{value}", f"000{value}"):
        if value >= 0 and math.copysign(1, value) > 0:
            assert json.loads(cast_bare(written, "bare", None, DEEP)) == value
            assert json.loads(cast_raw(written, types("number"), DEEP)) == value


# -- what a schema admits ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, None),
        (True, None),
        (False, None),
        ({"type": "string"}, "string"),
        ({"type": "number"}, "integer number"),
        ({"type": ["string", "null"]}, "null string"),
        ({"type": "date"}, None),
        ({"type": 5}, None),
        ({"type": "string", "nullable": True}, "null string"),
        ({"enum": ["a", 1, None]}, "integer null string"),
        ({"enum": [1.5, True, [], {}]}, "array boolean integer number object"),
        ({"enum": [2.0]}, "integer number"),
        ({"enum": []}, None),
        ({"type": "string", "enum": ["a", None]}, "string"),
        ({"const": "x"}, "string"),
        ({"const": None}, "null"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "integer string"),
        ({"oneOf": [{"type": "string"}, {}]}, None),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}], "type": "integer"}, "integer"),
        ({"anyOf": [{"type": "object"}], "nullable": True}, "null object"),
        ({"allOf": [{"type": ["string", "number"]}, {"type": ["integer", "null"]}]}, "integer"),
        ({"allOf": [{"type": "string"}, {"type": "integer"}]}, None),
        ({"allOf": [False]}, None),
        ({"$ref": "#/$defs/a"}, "integer"),
        ({"$ref": "#/$defs/a~1b%20c"}, "boolean"),
        ({"$ref": "#/$defs/loop"}, None),
        ({"$ref": "#/$defs/tree"}, "null object"),
        ({"$ref": "#/$defs/missing"}, None),
        ({"$ref": "#/$defs/list/1"}, "string"),
        ({"$ref": "other.json"}, None),
        ({"$ref": "#anchor"}, None),
        ({"$ref": "#"}, "object"),
        ({"$ref": "#/$defs/a", "type": ["integer", "string"]}, "integer"),
    ],
)
def test_admitted_types(schema: object, expected: str | None) -> None:
    root = {
        "type": "object",
        "$defs": {
            "a": {"type": "integer"},
            "a/b c": {"type": "boolean"},
            "loop": {"$ref": "#/$defs/loop"},
            "tree": {
                "anyOf": [{"$ref": "#/$defs/tree"}, {"type": "object"}, {"type": "null"}],
                "type": ["object", "null"],
            },
            "list": [{"type": "integer"}, {"type": "string"}],
        },
    }
    found = admitted_types(schema, root)
    assert (None if found is None else " ".join(sorted(found))) == expected


def at(schema: object, *path: str | int) -> str | None:
    place = Place.of(schema)
    for step in path:
        place = place.member(step) if isinstance(step, str) else place.item(step)
    return None if place.types is None else " ".join(sorted(place.types))


def test_places_follow_members_and_items() -> None:
    tree = {
        "$defs": {
            "node": {
                "type": "object",
                "properties": {"v": {"type": "string"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
            }
        },
        "$ref": "#/$defs/node",
    }
    assert at(tree, "kids", 3, "kids", 0, "v") == "string"
    assert at(tree, "other") is None
    place = Place.of(tree)
    assert place.member("other") is ANYTHING
    assert place.member("v") is place.member("v")
    tuples = {"prefixItems": [{"type": "string"}, {"type": "integer"}], "items": {"type": "boolean"}}
    assert [at(tuples, index) for index in range(3)] == ["string", "integer", "boolean"]
    old = {"items": [{"type": "string"}], "additionalItems": {"type": "null"}}
    assert [at(old, index) for index in range(2)] == ["string", "null"]
    assert UNDECLARED.member("a").item(0) is UNDECLARED


def test_members_of_alternatives() -> None:
    either = {"anyOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"a": {"type": "integer"}}}]}
    assert at(either, "a") == "integer string"
    assert at({"anyOf": [{"type": "string"}, {"properties": {"a": {"type": "integer"}}}]}, "a") == "integer"
    both = {"allOf": [{"properties": {"a": {"type": ["string", "null"]}}}, {"properties": {"a": {"type": "string"}}}]}
    assert at(both, "a") == "string"
    assert at({"properties": {"a": True}, "additionalProperties": {"type": "string"}}, "a") is None
    assert at({"properties": {"a": True}, "additionalProperties": {"type": "string"}}, "b") == "string"
    assert at({"properties": {"a": False}}, "a") is None


class Schemas:
    """Random schemas and values, small enough to meet."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def schema(self, depth: int = 0) -> Any:
        rng = self.rng
        names = ["string", "integer", "number", "boolean", "null", "array", "object"]
        kind = rng.randrange(10 if depth < 3 else 4)
        inner = [self.schema(depth + 1) for _ in range(3)] if kind > 3 else []
        return [
            {"type": rng.choice(names)},
            {"type": rng.sample(names, 2)},
            {"enum": rng.sample(["a", 1, 1.5, None, True, [], {}], 2)},
            rng.choice([{}, {"const": rng.choice(["a", 1, None])}, True, False, {"$ref": "#/$defs/x"}]),
            {"anyOf": inner},
            {"oneOf": inner[:2]},
            {"allOf": inner[:2]},
            {"properties": dict(zip("ab", inner, strict=False)), "additionalProperties": inner[-1:] and inner[-1]},
            {"type": "array", "items": inner[-1:] and inner[-1]},
            {"prefixItems": inner[:2], "items": inner[-1:] and inner[-1], "$ref": "#/$defs/x"},
        ][kind]

    def value(self, depth: int = 0) -> Any:
        kind = self.rng.randrange(9 if depth < 3 else 6)
        if kind < 6:
            return ["a", 1, 1.5, None, True, "b"][kind]
        inner = [self.value(depth + 1) for _ in range(2)]
        return inner if kind < 8 else dict(zip(self.rng.sample("abc", 2), inner, strict=True))


def check_places(place: Place, value: object) -> None:
    names = {str: "string", bool: "boolean", type(None): "null", int: "integer", float: "number"}
    name = names.get(type(value), "array" if isinstance(value, list) else "object")
    assert place.types is None or name in place.types
    for key, inner in value.items() if isinstance(value, dict) else ():
        check_places(place.member(key), inner)
    for index, inner in enumerate(value) if isinstance(value, list) else ():
        check_places(place.item(index), inner)


def test_whatever_a_schema_accepts_has_an_admitted_type() -> None:
    schemas, met = Schemas(3), 0
    for _ in range(1500):
        schema = schemas.schema()
        root = {"$defs": {"x": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#/$defs/x"}}]}}}
        root |= schema if isinstance(schema, dict) else {}
        validator = jsonschema.Draft202012Validator(root)
        for value in (schemas.value() for _ in range(6)):
            if validator.is_valid(value):
                met += 1
                check_places(Place.of(root), value)
    assert met > 1000


def test_key_patterns() -> None:
    schema = {
        "patternProperties": {"^x_": {"type": "integer"}, "^s_": {"type": "string"}, "(": {"type": "null"}},
        "additionalProperties": {"type": "boolean"},
    }
    assert [at(schema, key) for key in ("x_1", "s_1", "z")] == ["integer", "string", "boolean"]


def test_large_schemas() -> None:
    many = {"allOf": [{"anyOf": [{"type": "string", "title": f"{i} {j}"} for j in range(9)]} for i in range(9)]}
    assert admitted_types(many, many) == {"string"}
    parts = [{"anyOf": [{"properties": {f"{i} {j}": True}} for j in range(9)]} for i in range(9)]
    assert Place.of({"allOf": parts}).types is None
    constants = {"oneOf": [{"const": f"{n}", "title": "t"} for n in range(500)]}
    assert admitted_types(constants, constants) == {"string"}
    names = [f"#/$defs/{n}" for n in range(20)]
    tangle = {"$defs": {f"{n}": {"anyOf": [{"$ref": name} for name in names]} for n in range(20)}, "$ref": names[0]}
    assert admitted_types(tangle, tangle) is None
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(5000):
        deep = {"anyOf": [deep]}
    assert admitted_types(deep, deep) is None


def test_tools_give_places() -> None:
    tools = Tools.parse([{"name": "f", "parameters": {"properties": {"a": {"type": "string"}}}}])
    assert tools.place("f").member("a").types == {"string"}
    assert tools.place("f") is tools.place("f")
    assert tools.place("g") is UNDECLARED
