"""The oracle as a whole, against written decisions, renderers, `jsonschema`, Lark and the case table."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.oracle import (
    FORMATS,
    OracleState,
    Request,
    Symbol,
    Unsupported,
    complete,
    initial,
    make_request,
    markers,
    symbols,
    tool,
    viable,
)  # fmt: skip
from tests.oracle.atem import reads_as
from tests.oracle.generate import (
    KEYS,
    NoValue,
    arguments_for,
    outside_arguments,
    plain_schema,
    random_arguments,
    random_text,
    random_tool,
    random_tools,
    tool_definitions,
    tools_and_arguments,
)  # fmt: skip
from tests.oracle.lark_reader import read
from tests.oracle.render import render_call, render_turn, spellable

HERE = Path(__file__).parent
CASES = [json.loads(line) for line in (HERE / "cases/cases.jsonl").read_text(encoding="utf-8").splitlines()]
GRAMMARS = {
    "gemma4": (HERE.parent / "grammars/gemma4.lark", "completion"),
    "atem": (HERE.parent / "grammars/atem.lark", "turn"),
    "runes": (HERE / "formats/runes.lark", "turn"),
}
BLOCK = ' to=f<|message|><atem:function_calls>\n<atem:invoke name="f">\n'


def request_for(schema: dict[str, Any], choice: str = "required", **options: Any) -> Request:
    return make_request([tool("f", schema)], choice, **options)


def may(name: str, request: Request, text: str) -> bool:
    return viable(name, request, symbols(text, markers(name)))


def ends(name: str, request: Request, text: str) -> bool:
    return complete(name, request, symbols(text, markers(name)))


# Formats

DECISIONS: list[tuple[str, dict[str, Any], str, list[str], list[str]]] = [
    ("gemma4", {"s": {"type": "string"}}, "<|tool_call>call:f{s:<|\"|>", ["<b>", "<|", "\n\"\\", "<|tool_cal "], []),
    ("gemma4", {"k": {"enum": [None, True, 1.5, "x"]}}, "<|tool_call>call:f{k:", ["null}", "1.5}"], ["1}", "false"]),
    ("gemma4", {"m": {"type": "object"}}, "<|tool_call>call:f{m:{", ["a b:1}", "é-.x:[]}", "}"],
     [" a:", "a :", "a{", '"a"', ":", "<"]),
    ("gemma4", {"a": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 3}},
     "<|tool_call>call:f{a:[1", [",2]", ",2,3]"], ["]", ",]", ",2,3,", ", 2"]),
    ("gemma4", {"p": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False}},
     "<|tool_call>call:f{p:[<|\"|>a<|\"|>", ["]", ",1]"], [",1,", ",<|\"|>"]),
    ("atem", {"u": {"type": ["string", "integer"]}}, BLOCK + '<atem:parameter name="u">',
     ["5</atem:parameter>\n", "5x</atem:parameter>\n", "</atem:parameter>\n", "4.0</atem:parameter>", "<b>"],
     [" 5</atem:parameter>\n", "-0</atem:parameter>\n", "<|eom|>", "a</atem:invoke>"]),
    ("atem", {"u": {"type": ["string", "null"], "maxLength": 4}}, BLOCK + '<atem:parameter name="u">',
     ["null</atem:parameter>\n", "nul</atem:parameter>\n", "nulx"], ["nullx", "null ", " null<"]),
    ("atem", {"u": {"enum": ["1", 2, "x"]}}, BLOCK + '<atem:parameter name="u">',
     ["2</atem:parameter>", "x</atem:parameter>"], ["1"]),
    ("atem", {"o": {"type": "array"}}, BLOCK + '<atem:parameter name="o">["',
     ['a", 1,{"k": null}]</atem:parameter>\n', '\\u003c/atem:invoke>"]', '\\ud83d\\ude00"', '\\/"'],
     ["\n", "\\x", "\\ud83d\"", 'a",  1', 'a" ,', "</atem:parameter>"]),
    ("runes", {"k": {"type": ["string", "null", "boolean"]}}, "[[call]]f(k=",
     ["nil)", "yes)", "[[s]][[/s]])"], ["null"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "properties", "prefix", "allow", "forbid"), DECISIONS)
def test_decisions(name: str, properties: dict[str, Any], prefix: str, allow: list[str], forbid: list[str]) -> None:
    request = request_for({"type": "object", "properties": properties, "required": list(properties)})
    for text in allow:
        assert may(name, request, prefix + text), text
    for text in forbid:
        assert not may(name, request, prefix + text), text


def test_a_marker_is_not_its_letters() -> None:
    request = request_for({"type": "object", "properties": {"s": {"type": "string"}}})
    prefix = symbols('<|tool_call>call:f{s:<|"|>', markers("gemma4"))
    assert viable("gemma4", request, [*prefix, '<|"|>'])
    assert not viable("gemma4", request, [*prefix, *b'<|"|>'])
    assert not viable("gemma4", request, [*prefix, *b"<|tool_call>"])
    lettered = request_for(
        {"type": "object", "properties": {"s": {"type": "string"}}}, letters=frozenset(markers("gemma4"))
    )
    assert complete("gemma4", lettered, b'<|tool_call>call:f{s:<|"|>x<|"|>}<tool_call|>')


def test_choice_reasoning_and_parallel_calls() -> None:
    f, g = tool("f"), tool("g")
    call = {name: render_turn(name, [("f", {})]) for name in FORMATS}
    two = {name: render_turn(name, [("f", {}), ("g", {})]) for name in FORMATS}
    thought = {name: render_turn(name, [("f", {})], reasoning="a {b") for name in FORMATS}
    for name in FORMATS:
        required = make_request([f, g], "required")
        assert ends(name, required, call[name])
        assert ends(name, required, two[name])
        assert ends(name, required, thought[name])
        assert not ends(name, required, "")
        assert not may(name, required, "Hi")
        single = make_request([f, g], "required", parallel=False)
        assert ends(name, single, call[name])
        assert not may(name, single, two[name])
        named = make_request([f, g], {"type": "function", "function": {"name": "g"}})
        assert not may(name, named, call[name])
        assert ends(name, named, render_turn(name, [("g", {})]))
        forbid = make_request([f], "required", reasoning="forbid")
        assert ends(name, forbid, call[name])
        assert not may(name, forbid, thought[name])
        require = make_request([f], "required", reasoning="require")
        assert ends(name, require, thought[name])
        assert not may(name, require, call[name])
        none = make_request([f], "none")
        assert ends(name, none, render_turn(name, content="Hi <b>."))
        assert not may(name, none, call[name])
        auto = make_request([f, g])
        assert ends(name, auto, render_turn(name, content="Hi"))
        assert ends(name, auto, two[name])


def test_a_prompt_inside_a_thought() -> None:
    request = make_request([tool("f")], "required", resumed=True)
    assert ends("gemma4", request, "so<channel|><|tool_call>call:f{}<tool_call|>")
    assert not may("gemma4", request, "<|tool_call>")


def test_key_orders() -> None:
    schema = {"type": "object", "properties": {k: {"type": "null"} for k in ("b", "C", "a")}, "required": ["C"]}
    prefix = "<|tool_call>call:f{"
    for order, fine, wrong in [
        ("declared", ["b:null,C:null,a:null}", "C:null}"], ["a:", "C:null,b:", "b:null,a:"]),
        ("sorted", ["a:null,b:null,C:null}", "C:null}"], ["C:null,", "b:null,a:"]),
        ("any", ["C:null,a:null,b:null}", "b:null,C:null}"], ["b:null}", "C:null,C:"]),
    ]:
        request = request_for(schema, key_order=order)
        assert all(may("gemma4", request, prefix + text) for text in fine), order
        assert not any(may("gemma4", request, prefix + text) for text in wrong), order


def test_additional_properties_by_the_letter() -> None:
    schema = {"type": "object", "properties": {"ab": {"type": "null"}}, "additionalProperties": {"type": "integer"}}
    declared, letter = request_for(schema), request_for(schema, additional="schema")
    assert not may("gemma4", declared, "<|tool_call>call:f{x")
    assert ends("gemma4", letter, "<|tool_call>call:f{abc:1,ab:null,a:2}<tool_call|>")
    assert not may("gemma4", letter, "<|tool_call>call:f{ab:1")
    inner = {"type": "object", "properties": {"o": schema}}
    prefix = BLOCK + '<atem:parameter name="o">'
    assert may("atem", request_for(inner, additional="schema"), prefix + '{"x": 1, "ab": null}')
    assert not may("atem", request_for(inner, additional="schema"), prefix + '{"\\u0061b": 1')


def test_unsatisfiable_branches_are_never_entered() -> None:
    empty = {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
    endless = {"type": "object", "properties": {"n": {"$ref": "#/$defs/e"}}, "required": ["n"]}
    schema = {
        "type": "object",
        "$defs": {"e": endless},
        "properties": {
            "x": {"anyOf": [empty, {"type": "null"}]},
            "y": {"type": "array", "items": empty},
            "z": empty,
            "e": {"anyOf": [{"$ref": "#/$defs/e"}, {"type": "boolean"}]},
            "s": {"type": "string", "pattern": "^ab$", "maxLength": 1},
        },
    }
    request = request_for(schema)
    prefix = "<|tool_call>call:f{"
    assert all(may("gemma4", request, prefix + text) for text in ("x:null}", "y:[]}", "e:true}"))
    assert not any(may("gemma4", request, prefix + text) for text in ("x:1", "y:[1", "z", "e:{", "s"))
    assert initial("gemma4", request_for({**schema, "required": ["z"]})) is None
    both = make_request([tool("f", {**schema, "required": ["s"]}), tool("g")], "required")
    assert not may("gemma4", both, "<|tool_call>call:f")
    assert may("gemma4", both, "<|tool_call>call:g{}")


def test_an_answer_under_a_schema() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    for name, prefix in (("gemma4", ""), ("atem", " to=user<|message|>")):
        request = make_request(response=schema)
        assert ends(name, request, prefix + '{"a": 1}')
        assert not may(name, request, prefix + "Sure")


# Case table


def _case_request(case: dict[str, Any]) -> tuple[str, Request]:
    name = case["format"] if case["format"] != "any" else "gemma4"
    options: dict[str, Any] = {"parallel": case.get("parallel_tool_calls", True), "response": case.get("json_schema")}
    options["resumed"] = case.get("start_state") == "reasoning"
    return name, make_request(case["tools"] or (), case["tool_choice"], **options)


NOT_ASKED = {
    "at-prompt-prefix-split": "generation starts at a header",
    "sc-ws-runaway": "its prefix is no turn",
    "sc-token-crosses-delimiter": "its prefix has another spelling of an answer",
    "sc-ff-newlines": "its prefix is an answer in a spelling of its own",
}


@pytest.mark.parametrize("case", [c for c in CASES if c["area"] in ("mask", "schema")], ids=lambda case: case["id"])
def test_cases_of_masks(case: dict[str, Any]) -> None:
    if case["id"] in NOT_ASKED:
        pytest.skip(NOT_ASKED[case["id"]])
    name, request = _case_request(case)
    prefix = case["expect"]["prefix"].removeprefix("<|start|>assistant")
    try:
        state = initial(name, request)
    except Unsupported as reason:
        pytest.skip(f"outside the oracle: {reason}")
    if case.get("compile_error"):
        assert state is None
        return
    for text in case["expect"]["allow"]:
        whole = prefix + text
        stops = text in ("<turn|>", "<|tool_response>", "<eos>", "<|eot|>")
        assert ends(name, request, prefix) if stops else may(name, request, whole.removeprefix("<|start|>assistant")), (
            text
        )
    for text in case["expect"]["forbid"]:
        stops = text in ("<turn|>", "<|tool_response>", "<eos>", "<|eot|>")
        assert not (ends(name, request, prefix) if stops else may(name, request, prefix + text)), text


# Generators, renderers, matcher and Lark agree


@pytest.mark.parametrize("name", FORMATS)
def test_canonical_texts_are_accepted_exactly_if_spellable(name: str) -> None:
    refused = 0
    for seed in range(150):
        rng = random.Random(f"{name}{seed}")
        definition = random_tool(rng, odd_keys=name != "runes")
        schema = definition["function"]["parameters"]
        try:
            arguments = arguments_for(schema, rng)
        except NoValue:  # nothing satisfies it, or hardly anything
            continue
        assert Draft202012Validator(plain_schema(schema)).is_valid(arguments)
        text = render_turn(name, [(definition["function"]["name"], arguments)])
        try:
            accepted = ends(name, make_request([definition], "required"), text)
        except Unsupported:
            continue
        if name == "atem" and any(isinstance(value, str) and reads_as(value) for value in arguments.values()):
            assert accepted or not spellable(arguments, name, schema)  # the text may stand for the other value
        else:
            assert accepted == spellable(arguments, name, schema), (seed, arguments, schema)
        refused += not accepted
    assert refused  # the generators try what cannot be written, too


@pytest.mark.parametrize("name", FORMATS)
def test_every_prefix_of_an_accepted_text_is_viable(name: str) -> None:
    for seed in range(20):
        rng = random.Random(seed)
        definitions = random_tools(rng, 3)
        chosen = rng.choice(definitions)
        text = render_turn(name, [(chosen["function"]["name"], random_arguments(chosen, name, rng))], reasoning="hm <b")
        state = initial(name, make_request(definitions, "required"))
        for symbol in symbols(text, markers(name)):
            assert state is not None
            assert not state.can_end
            state = state.advance(symbol)
        assert state is not None
        assert state.can_end


def walk(state: OracleState, name: str, rng: random.Random, most: int = 1500) -> list[Symbol] | None:
    """A random complete sequence, or None if it did not end in time. Fails if it meets a dead end."""
    path: list[Symbol] = []
    for _ in range(most):
        tried: list[Symbol] = [*markers(name), *b'<>/"})]|,:aem ', *rng.choices(range(256), k=4)]
        rng.shuffle(tried)
        found = next((symbol for symbol in tried if state.advance(symbol)), None)
        if found is None:
            found = next(state.nexts(), None)
        if state.can_end and (found is None or rng.random() < 0.5):
            return path
        assert found is not None, "a dead end"
        path.append(found)
        after = state.advance(found)
        assert after is not None
        state = after
    return None


def spelled(path: list[Symbol]) -> str:
    return b"".join(s.encode() if isinstance(s, str) else bytes((s,)) for s in path).decode()


@pytest.mark.parametrize("name", ["runes", "gemma4", "atem"])
def test_walks_end_and_read_back_as_valid_calls(name: str) -> None:
    ended = 0
    for seed in range(25):
        rng = random.Random(seed)
        definition = random_tool(rng, "f", depth=1)
        state = initial(name, make_request([definition], "required", reasoning="forbid", parallel=False))
        assert state is not None
        path = walk(state, name, rng)
        if path is None:
            continue
        ended += 1
        text = spelled(path)
        assert symbols(text, markers(name)) == path
        file, rule = GRAMMARS[name]
        if len(text) > 700 or not file.exists():
            continue
        reading = read(file, text, start=rule, tools=[definition])
        assert reading is not None, text
        assert len(reading.calls) == 1, text
        arguments = reading.calls[0][1]
        errors = list(Draft202012Validator(plain_schema(definition["function"]["parameters"])).iter_errors(arguments))
        assert not errors, (text, arguments)
    assert ended > 15


@pytest.mark.parametrize("name", FORMATS)
def test_lark_reads_canonical_texts(name: str) -> None:
    file, rule = GRAMMARS[name]
    if not file.exists():
        pytest.skip(f"{file.name} is not here")
    for seed in range(25):
        rng = random.Random(seed)
        definition = random_tool(rng, odd_keys=name != "runes")
        arguments = random_arguments(definition, name, rng)
        content = None if name == "atem" else "Well: "
        text = render_turn(name, [(definition["function"]["name"], arguments)], reasoning="so", content=content)
        if len(text) < 700:
            reading = read(file, text, start=rule, tools=[definition])
            assert reading is not None, text
            assert (reading.content, reading.reasoning) == (content, "so")
            assert reading.calls == ((definition["function"]["name"], arguments),)


@given(tools_and_arguments("gemma4"))
def test_strategies_give_what_the_matcher_accepts(drawn: tuple[dict[str, Any], dict[str, Any]]) -> None:
    definition, arguments = drawn
    text = render_call("gemma4", definition["function"]["name"], arguments)
    assert ends("gemma4", make_request([definition], "required"), text)


@given(st.data())
def test_arguments_from_someone_elses_generator(data: st.DataObject) -> None:
    pytest.importorskip("hypothesis_jsonschema")
    properties = {
        "s": {"type": "string", "maxLength": 4},
        "n": {"type": "integer", "minimum": -3, "maximum": 700},
        "x": {"type": ["number", "null"]},
        "l": {"type": "array", "items": {"type": "boolean"}, "maxItems": 2},
    }
    schema = {"type": "object", "properties": properties, "required": ["n"], "additionalProperties": False}
    arguments = data.draw(outside_arguments(schema))
    for name in FORMATS:
        if spellable(arguments, name, schema):
            whole = isinstance(arguments["n"], int)  # validators take 3.0 for an integer, a call says 3
            assert ends(name, request_for(schema), render_turn(name, [("f", arguments)])) == whole


@given(tool_definitions(odd_keys=True))
def test_generated_tools_have_arguments(definition: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(definition["function"]["parameters"])
    try:
        arguments = arguments_for(definition["function"]["parameters"], random.Random(0))
    except NoValue:
        return
    assert isinstance(arguments, dict)


def test_text_generator_respects_lengths() -> None:
    rng = random.Random(3)
    assert all(2 <= len(random_text(rng, 2, 5)) <= 5 for _ in range(50))
    assert set(KEYS)
