"""Keywords one by one: what an answer may be, what it may not be, and that nothing is relaxed or narrowed."""

from __future__ import annotations

import gc
import json
import sys
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import twingram as tg
from tests.spelt import ATEM, GEMMA, Format, of_x
from tests.test_schema_random import SPELLING, accepts
from twingram.automaton.machine import Machine
from twingram.cli import main
from twingram.errors import SchemaError
from twingram.sampling import Sampler, spellings
from twingram.schema.compiler import SchemaOptions, compile_value
from twingram.schema.formats import FORMATS
from twingram.schema.report import CompiledSchema

DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_4 = "http://json-schema.org/draft-04/schema#"


def answer(schema: Any, **options: Any) -> CompiledSchema:
    return compile_value(schema, SPELLING, options=SchemaOptions(additional_properties="schema", **options))


def statuses(compiled: CompiledSchema) -> set[str]:
    return {finding.status for finding in compiled.findings}


EXACT: list[tuple[Any, list[Any], list[Any]]] = [
    ({"not": {"type": "string"}}, [1, None, [], {}], ["", "a"]),
    ({"not": {"enum": [1, "a", None, True]}}, [2, "b", False, 1.5, [], {}], [1, "a", None, True]),
    ({"type": "number", "not": {"type": "integer"}}, [0.5, -1.25], [1, -3]),
    ({"type": "string", "not": {"pattern": "^a"}}, ["", "ba"], ["a", "ab"]),
    ({"type": "object", "not": {"required": ["a"]}}, [{}, {"b": 1}], [{"a": 1}, {"b": 1, "a": 2}]),
    (
        {"if": {"properties": {"k": {"const": 1}}, "required": ["k"]}, "then": {"required": ["a"]},
         "else": {"maxProperties": 1}},
        [{"k": 1, "a": 0}, {"k": 2}, {}, 3], [{"k": 1}, {"k": 2, "b": 0}],
    ),
    ({"oneOf": [{"minimum": 2}, {"maximum": 5}], "type": "integer"}, [1, 6], [2, 5]),
    ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object"},
     [{"a": 1}, {"b": 1}], [{}, {"a": 1, "b": 1}]),
    (  # what stands beside the options tells them apart
        {"type": "object", "required": ["k"], "oneOf": [
            {"properties": {"k": {"const": n}, "v": {"additionalProperties": {"type": t}}}}
            for n, t in enumerate(("null", "string"))]},
        [{"k": 0}, {"k": 1}], [{"k": 2}, {}],
    ),
    (
        {"properties": {"k": {"enum": [0, 1]}}, "dependentSchemas": {"k": {"oneOf": [
            {"properties": {"k": {"enum": [n]}, "v": {"type": t}}} for n, t in enumerate(("null", "string"))]}}},
        [{"k": 0, "v": None}, {"k": 1, "v": "a"}, {"v": 3}], [{"k": 0, "v": "a"}, {"k": 2}],
    ),
    ({"dependentRequired": {"a": ["b"], "b": ["c"]}}, [{}, {"c": 1}, {"a": 1, "b": 1, "c": 1}], [{"a": 1}, {"b": 1}]),
    ({"dependencies": {"a": ["b"], "c": {"required": ["d"]}}, "$schema": DRAFT_7},
     [{"a": 1, "b": 2}, {"d": 0, "c": 0}], [{"a": 1}, {"c": 0}]),
    ({"dependentSchemas": {"a": {"properties": {"b": {"type": "null"}}}}},
     [{"b": 1}, {"a": 1, "b": None}], [{"a": 1, "b": 1}]),
    ({"properties": {"a": {}, "b": {}, "c": {}}, "additionalProperties": False, "minProperties": 1, "maxProperties": 2},
     [{"a": 1}, {"c": 0, "a": 1}], [{}, {"a": 1, "b": 1, "c": 1}]),
    ({"type": "object", "minProperties": 1, "maxProperties": 2},
     [{"x": 1}, {"x": 1, "y": 2}], [{}, {"x": 1, "y": 2, "z": 3}]),
    ({"type": "array", "contains": {"type": "integer"}, "maxItems": 3},
     [["a", 1], [1, 2, 3]], [[], ["a"], [1, 2, 3, 4]]),
    ({"contains": {"const": 1}, "minContains": 2, "maxContains": 2, "type": "array"},
     [[1, 0, 1]], [[1], [1, 1, 1], []]),
    ({"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True, "minItems": 2},
     [["a", "b"], ["c", "a", "b"]], [["a"], ["a", "a"], ["a", "d"]]),
    ({"type": "array", "items": {"enum": [1, 2, 2.5]}, "uniqueItems": True}, [[], [2.5, 1]], [[1, 1]]),
    ({"type": "array", "prefixItems": [{"type": "null"}, {"type": "string"}], "items": False},
     [[], [None], [None, "a"]], [["a"], [None, None], [None, "a", 1]]),
    ({"type": "number", "multipleOf": 0.01}, [1, 0.25, -3.1], [0.001, 1.005]),
    ({"type": "number", "multipleOf": 2.5, "minimum": 0, "exclusiveMaximum": 10}, [0, 2.5, 7.5], [-2.5, 10, 3]),
    ({"type": "string", "maxLength": 1_000_000}, ["", "a" * 3000], []),
    ({"type": "string", "pattern": "^[a-z][a-z0-9]{0,63}$", "minLength": 3},
     ["abc", "a" * 64], ["ab", "a" * 65, "1ab"]),
    ({"propertyNames": {"pattern": "^x"}, "type": "object"}, [{}, {"xa": 1}], [{"a": 1}]),
    ({"patternProperties": {"^n": {"type": "integer"}, "x$": {"minimum": 5}}, "additionalProperties": False},
     [{"n": 1}, {"nx": 5}, {"x": "t"}], [{"nx": 1}, {"n": "t"}, {"q": 1}]),
    ({"allOf": [{"properties": {"a": {}}}], "properties": {"b": {}}, "unevaluatedProperties": False},
     [{"a": 1, "b": 1}], [{"c": 1}]),
    ({"anyOf": [{"properties": {"a": {"const": 1}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b"]}],
      "unevaluatedProperties": False}, [{"a": 1}, {"b": 1}, {"a": 1, "b": 2}], [{"a": 2, "b": 2}, {"b": 1, "c": 1}]),
    ({"prefixItems": [True], "unevaluatedItems": {"type": "null"}, "type": "array"}, [[1, None], [1]], [[1, 2]]),
    ({"$ref": "#/$defs/t", "$defs": {"t": {"$anchor": "t", "type": ["null", "array"], "items": {"$ref": "#t"}}}},
     [None, [None, [[]]]], [1, [1]]),
    (  # who refers to a schema decides where its dynamic references lead
        {"$id": "https://e.org/root", "$ref": "list", "$defs": {
            "strings": {"$dynamicAnchor": "item", "type": "string"},
            "list": {"$id": "list", "type": "array", "items": {"$dynamicRef": "#item"},
                     "$defs": {"any": {"$dynamicAnchor": "item"}}}}},
        [[], ["a"]], [[1], 2],
    ),
    (  # a tree, and a strict one: its children are strict, too
        {"$id": "https://e.org/strict", "$dynamicAnchor": "node", "$ref": "tree", "unevaluatedProperties": False,
         "$defs": {"tree": {"$id": "tree", "$dynamicAnchor": "node", "type": "object", "properties": {
             "v": {"type": "integer"}, "c": {"type": "array", "items": {"$dynamicRef": "#node"}}}}}},
        [{"c": [{"v": 1}, {"c": []}]}], [{"w": 1}, {"c": [{"w": 1}]}, {"c": [{"c": [{"v": "a"}]}]}],
    ),
    (  # the same definition reached in two ways
        {"$id": "https://e.org/r", "properties": {
            "n": {"$id": "n", "$ref": "list", "$defs": {"i": {"$dynamicAnchor": "item", "type": "number"}}},
            "s": {"$id": "s", "$ref": "list", "$defs": {"i": {"$dynamicAnchor": "item", "type": "string"}}}},
         "$defs": {"list": {"$id": "list", "type": "array", "items": {"$dynamicRef": "#item"},
                            "$defs": {"any": {"$dynamicAnchor": "item"}}}}},
        [{"n": [1]}, {"s": ["a"]}], [{"n": ["a"]}, {"s": [1]}],
    ),
    ({"enum": [{"a": [1, {}]}, [], 2.0, "x"]}, [{"a": [1, {}]}, [], 2, "x"], [{}, [1], {"a": [1]}]),
    ({"type": "integer", "minimum": 10**40, "maximum": 10**40 + 1}, [10**40], [10**40 - 1, 10**40 + 2]),
    ({"type": "object", "if": True, "then": False, "$schema": DRAFT_4}, [{}, {"a": 1}], [1]),  # draft 4 has no `if`
    ({"$ref": "#/definitions/n", "minimum": 9, "definitions": {"n": {"type": "integer"}}, "$schema": DRAFT_7},
     [1, 10], ["a"]),  # and what stands beside a reference counts from draft 2019-09 on
]  # fmt: skip


@pytest.mark.parametrize(("schema", "right", "wrong"), EXACT, ids=range(len(EXACT)))
def test_exact(schema: Any, right: list[Any], wrong: list[Any]) -> None:
    made = answer(schema)
    assert statuses(made) <= {"enforced"}, made.findings
    machine = Machine(made.expr)
    for value in right:
        assert accepts(machine, json.dumps(value, ensure_ascii=False)), value
    for value in wrong:
        assert not accepts(machine, json.dumps(value, ensure_ascii=False)), value
    cls = Draft202012Validator if "$schema" not in schema else None
    if cls is not None:
        assert all(cls(schema).is_valid(value) for value in right)
        assert not any(cls(schema).is_valid(value) for value in wrong)


TEXTS = {
    "date": (["2024-02-29", "1999-12-31"], ["2023-02-29", "2024-13-01", "2024-1-1", "24-01-01"]),
    "time": (["12:00:00Z", "23:59:60Z", "08:30:06.25-08:00"], ["12:00:00", "24:00:00Z", "12:60:00Z", "22:59:60Z"]),
    "date-time": (["1990-02-28T15:59:50.123-08:00", "2024-01-01t00:00:00z"], ["2024-01-01 00:00:00Z", "2024-01-01"]),
    "duration": (["P3Y6M4DT12H30M5S", "PT36H", "P2W", "P1D"], ["P", "PT", "P1D2H", "1D", "P1W1D"]),
    "email": (["a.b+c@example.org", '"a b"@x.y', "a@[127.0.0.1]"], ["a@", "@b", "a..b@c.d", ".a@b.c", "a b@c.d"]),
    "hostname": (["www.example.com", "a-b", "x" * 63], ["-a", "a-", "a..b", "x" * 64, "a_b", ".".join(["x" * 63] * 4)]),
    "ipv4": (["0.0.0.0", "255.1.20.3"], ["256.0.0.1", "1.2.3", "01.2.3.4", "1.2.3.4.5"]),
    "ipv6": (["::1", "::", "1:2:3:4:5:6:7:8", "::ffff:1.2.3.4"], ["1::2::3", "12345::", "1:2:3:4:5:6:7", ":::", "1%e"]),
    "uri": (["http://a.b:80/c?d=e#f", "urn:x:y", "mailto:a@b.c"], ["//a.b", "a b:c", "/x", "http://a b", "http://[::1"]),
    "uri-reference": (["/a?b", "", "#f", "a/b"], ["\\a", "a b", "%zz"]),
    "uri-template": (["http://e/{a,b*}{?q:3}"], ["{", "{a b}"]),
    "iri": (["http://ƒøø.ßår/?∂=π"], ["/∂", "∂π:x"]),
    "uuid": (
        ["2eb8aa08-aa98-11ea-b4aa-73b441d16380"],
        ["2eb8aa08aa9811eab4aa73b441d16380", "2eb8aa08-aa98-11ea-b4ga-73b441d16380"],
    ),
    "json-pointer": (["", "/a/~0~1b"], ["a", "/~", "/~2"]),
    "relative-json-pointer": (["0", "1/a", "2#"], ["-1/a", "01", "/a"]),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_formats(name: str) -> None:
    right, wrong = TEXTS[name]
    made = answer({"type": "string", "format": name})
    assert statuses(made) == {"enforced"}
    machine = Machine(made.expr)
    assert all(accepts(machine, json.dumps(text, ensure_ascii=False)) for text in right)
    assert not any(accepts(machine, json.dumps(text, ensure_ascii=False)) for text in wrong)
    free = Machine(answer({"type": "string", "format": name}, formats=False).expr)
    assert all(accepts(free, json.dumps(text, ensure_ascii=False)) for text in right + wrong)


def test_every_format_is_tried() -> None:
    assert FORMATS.keys() - TEXTS.keys() == {"iri-reference"}


@pytest.mark.parametrize(
    ("schema", "path", "keyword", "status"),
    [
        ({"type": "string", "format": "regex"}, "$", "format", "relaxed"),
        ({"type": "array", "uniqueItems": True}, "$", "uniqueItems", "relaxed"),
        ({"type": "object", "minProperties": 2}, "$", "minProperties", "relaxed"),
        ({"not": {"patternProperties": {"^a": {"type": "null"}}}}, "$", "not", "relaxed"),
        ({"not": {"additionalProperties": {"type": "null"}}}, "$.not", "additionalProperties", "relaxed"),
        ({"not": {"const": [1]}}, "$.not", "not", "relaxed"),
        ({"anyOf": [{"type": "null"}, {"$ref": "https://example.org/s"}]}, "$.anyOf[1]", "$ref", "refused"),
        ({"minLenght": 3}, "$", "minLenght", "enforced"),
        ({"type": "string", "format": "int32"}, "$", "format", "enforced"),
    ],
)  # fmt: skip
def test_what_is_not_exact_is_said(schema: Any, path: str, keyword: str, status: str) -> None:
    found = {(f.path, f.keyword, f.status): f.reason for f in answer(schema).findings}
    assert found[path, keyword, status]


def test_a_remote_reference_is_refused_by_name() -> None:
    with pytest.raises(SchemaError, match=r"https://example\.org/s") as error:
        answer({"$ref": "https://example.org/s#/a"})
    assert error.value.keyword == "$ref"


def test_both_spellings() -> None:
    """Bounds, formats and conditions are enforced in the formats' own spellings, too."""
    for fmt in (GEMMA, ATEM):
        made = fmt.compile(of_x({"type": "string", "format": "ipv4"}))
        assert fmt.admits(made, {"x": "10.0.0.1"})
        assert not fmt.admits(made, {"x": "10.0.0.256"})
        made = fmt.compile(of_x({"type": "array", "contains": {"const": "a"}}))
        assert fmt.admits(made, {"x": ["b", "a"]})
        assert not fmt.admits(made, {"x": ["b"]})
        made = fmt.compile({"type": "object", "properties": {"a": {}, "b": {}}, "dependentRequired": {"a": ["b"]}})
        assert fmt.admits(made, {"a": "t", "b": "u"})
        assert not fmt.admits(made, {"a": "t"})


def test_raw_text_is_read_as_it_was_meant() -> None:
    """What a condition says of a member does not change how its text is read."""
    schema = {
        "type": "object", "properties": {"k": {"type": "string"}, "x": {}}, "required": ["x"],
        "if": {"required": ["k"]}, "then": {"properties": {"x": {"type": "string"}}},
    }  # fmt: skip
    made = ATEM.compile(schema)
    assert ATEM.admits(made, {"k": "a", "x": "b"})
    assert not ATEM.admits(made, {"k": "a", "x": "1"})


def test_key_order_with_counts() -> None:
    schema = {"properties": {name: {} for name in "dcba"}, "additionalProperties": False, "minProperties": 3}
    machine = Machine(answer(schema, key_order="sorted").expr)
    assert accepts(machine, '{"a":1,"b":1,"d":1}')
    assert not accepts(machine, '{"b":1,"a":1,"d":1}')
    assert not accepts(machine, '{"a":1,"d":1}')
    assert machine.start.run(b'{"c":') is None, "two more would have to follow, and only one is left"


@pytest.mark.parametrize("counted", [{}, {"minProperties": 3}])
@pytest.mark.parametrize("fmt", [GEMMA, ATEM], ids=["quoted", "raw"])
def test_many_properties_cost_little(counted: dict[str, int], fmt: Format) -> None:
    """Calls of functions for each byte of a member's key, among 20 properties and among 200."""

    def cost(count: int) -> int:
        properties = {f"key{i:03}": {"type": "integer"} for i in range(count)}
        state = fmt.machine(fmt.compile({"type": "object", "properties": properties} | counted)).start
        symbols = fmt.symbols(fmt.render({"key007": 1, "key009": 2, "key013": 3}))
        calls = 0

        def note(*_: object) -> None:
            nonlocal calls
            calls += 1

        gc.collect()  # what other tests left behind would call back in the middle
        gc.disable()
        sys.setprofile(note)
        try:
            found = state.run(symbols)
        finally:
            sys.setprofile(None)
            gc.enable()
        assert found is not None
        return calls

    assert 100 < cost(200) < 5 * cost(20)


def test_the_command(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tools.json"
    parameters = {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}}
    file.write_text(json.dumps([{"name": "get", "inputSchema": parameters}]))
    assert main(["schema", "check", str(file), "--format", "gemma4"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "gemma4 get $.properties.a uniqueItems relaxed: items that are not enumerated are not compared" in lines
    assert "gemma4 get $.properties.a type enforced" in lines
    file.write_text(json.dumps({"type": "string", "format": "regex"}))
    assert main(["schema", "check", str(file), "--problems"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "relaxed:" in line] == [
        f"{name} $ format relaxed: texts are not checked for being a regex" for name in tg.list_formats()
    ]
    file.write_text("{")
    assert main(["schema", "check", str(file)]) == 2


def test_many_patterns_at_one_place() -> None:
    """Their product would double with each: those that fit are enforced, the rest are reported."""
    patterns = [{"pattern": f"[{chr(97 + at)}]"} for at in range(20)]
    schema = {"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "allOf": patterns}}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    constraint = tg.load_format("gemma4").constraint(tools, "required", vocabulary=tg.Vocabulary.embedded())
    relaxed = [found for found in constraint.report() if found.status == "relaxed"]
    assert 4 < len(relaxed) < 16
    assert all(found.keyword == "pattern" and "too large an automaton" in found.reason for found in relaxed)
    with pytest.raises(tg.SchemaError, match="cannot be enforced: with what else restricts"):
        tg.load_format("gemma4").constraint(
            tools, "required", vocabulary=tg.Vocabulary.embedded(), on_unsupported="error"
        )


def test_walks_end_where_a_free_key_may_stand() -> None:
    """Only one member leads to the end, and any other may be written before it."""
    tools = [{"name": "f", "inputSchema": of_x({"type": "integer"})}]
    vocabulary = tg.Vocabulary.embedded()
    constraint = tg.load_format("gemma4").constraint(
        tools, "required", vocabulary=vocabulary, additional_properties="schema", parallel_tool_calls=False
    )
    sampler = Sampler(vocabulary, 1, spellings("gemma4"), soft_limit=20, hard_limit=300)
    assert all(sampler.walk(constraint.session()).ended for _ in range(5))


@pytest.mark.parametrize("fmt", [GEMMA, ATEM], ids=["quoted", "raw"])
def test_large_schemas_are_small(fmt: Format) -> None:
    """Long lists, great lengths and wide unions: what is at the end of them is known, and nothing is unrolled."""
    words = [f"word {i:05}" for i in range(10_000)]
    made = fmt.compile(of_x({"enum": words}))
    assert fmt.admits(made, {"x": words[-1]})
    assert not fmt.admits(made, {"x": "word 10000"})
    made = fmt.compile(of_x({"type": "string", "maxLength": 1_000_000}))
    assert fmt.admits(made, {"x": "a" * 5000})
    options = [{"properties": {"k": {"const": i}, f"v{i}": {"type": "integer"}}, "required": ["k"]} for i in range(60)]
    made = fmt.compile(of_x({"type": "object", "oneOf": options}), additional_properties="schema")
    assert fmt.admits(made, {"x": {"k": 59, "v59": 7}})
    assert not fmt.admits(made, {"x": {"k": 59, "v59": True}})
    assert fmt.admits(made, {"x": {"k": 59, "v58": True}})


COUNTED = [
    {"^[a-z]{3,10}$": {"type": "integer"}},
    {"^[a-z]{3,10}$": {"type": "integer"}, "^.{0,9}$": {"minimum": 5}},
    {"^a[a-z]{0,8}$": {"type": "integer"}, "^a": {"minimum": 5}, "^b$": {"type": "null"}, "^[bc]$": True},
    {"^x-": {"type": "null"}, "^y-": {"type": "integer"}, "^z-": {"type": "string"}, "^[xw]-[a-z]{8,}$": True},
]
COUNTED.append({"^w-[ab]*$": {"type": "null"}, "^x-[ab]*$": {"type": "integer"}, "^y-[ab]*$": {}, "^z-[ab]*$": False})
COUNTED.append({**COUNTED[-1], "^[a-z-]{2,9}$": {"minimum": 5}, "^(a|b|x-b)$": {"type": "integer"}})
ASCII = ["a", "b", "c", "ab", "abc", "a" * 9, "a" * 10, "a" * 11, "A", "x-", "x-b", "y-", "z-b", "w-", "x-aaaaaaaa"]
KEYS = {"gemma4": ASCII, "atem": [*ASCII, "", "é" * 9, "é" * 10, "z-é"]}
REST = [{}, {"additionalProperties": False}, {"additionalProperties": {"type": "null"}}]


@pytest.mark.parametrize("fmt", [GEMMA, ATEM], ids=["quoted", "raw"])
@pytest.mark.parametrize("patterns", COUNTED)
@pytest.mark.parametrize("rest", REST, ids=str)
def test_key_patterns_that_count(fmt: Format, patterns: dict[str, Any], rest: dict[str, Any]) -> None:
    """Keys of all lengths around the counts, with values of several types, as a validator judges them."""
    schema = {"type": "object", "patternProperties": patterns, **rest}
    made = fmt.compile(of_x(schema), additional_properties="schema")
    assert all(found.status == "enforced" for found in made.findings if found.path.startswith("$.properties.x"))
    wanted = Draft202012Validator(schema)
    for key in KEYS[fmt.name]:
        for value in (4, 7, None, "s"):
            assert fmt.admits(made, {"x": {key: value}}) is wanted.is_valid({key: value}), (key, value)


@pytest.mark.parametrize("free", [True, False])
def test_hundreds_of_options_are_told_apart(free: bool) -> None:
    """Options that list their own values, or those of a member; one that is listed twice holds for neither."""
    options: list[Any] = [{"properties": {"k": {"const": i}}, "required": ["k"], "type": "object"} for i in range(200)]
    options = [*options, {"const": "s"}, {"const": "t"}, {"const": "s"}] if free else options[:150] + [options[3]]
    made = ATEM.compile(of_x({"oneOf": options}), additional_properties="schema")
    wanted = Draft202012Validator({"oneOf": options})
    for value in ({"k": 3}, {"k": 4}, {"k": 149}, {"k": 150}, {"k": 199}, {"k": 200}, "s", "t", "u"):
        assert ATEM.admits(made, {"x": value}) is wanted.is_valid(value), value
