"""The oracle itself is checked: against brute force, `re`, `json`, `jsonschema`, renderers, Lark and the case table."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.oracle import (
    FORMATS, OracleState, Request, Symbol, Unsupported, complete, initial, make_request, markers, symbols, tool, viable,
)  # fmt: skip
from tests.oracle.generate import (
    KEYS, NoValue, arguments_for, outside_arguments, plain_schema, random_arguments, random_text, random_tool,
    random_tools, tool_definitions, tools_and_arguments,
)  # fmt: skip
from tests.oracle.lark_reader import read
from tests.oracle.matcher import start
from tests.oracle.numerals import NumberRange, Numeral, exact
from tests.oracle.patterns import pattern
from tests.oracle.render import render_call, render_turn, spellable
from tests.oracle.text import Text, TextRule

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


def accepted(piece: Any, data: bytes) -> bool | None:
    """None: not viable; else whether it may end."""
    state = start([piece]).run(data)
    return None if state is None else state.can_end


# Numbers


@pytest.mark.parametrize(
    ("low", "high", "step"), [(-123, 42, None), (-5, None, None), (None, -7, None), (0, 0, None), (98, 1001, 7)]
)
def test_integer_prefixes_agree_with_brute_force(low: int | None, high: int | None, step: int | None) -> None:
    bounds = NumberRange(
        True, None if low is None else exact(low), None if high is None else exact(high), multiple=step
    )
    numbers = [n for n in range(-20_000, 20_001) if (low is None or n >= low) and (high is None or n <= high)]
    texts = {str(n) for n in numbers if step is None or n % step == 0}
    prefixes = {text[:size] for text in texts for size in range(1, len(text) + 1)}
    for n in range(-2100, 2101):
        for text in (str(n), "-" + str(abs(n)), "0" + str(abs(n))):
            got = accepted(Numeral(bounds), text.encode())
            assert (got is not None) == (text in prefixes), text
            assert bool(got) == (text in texts), text


@pytest.mark.parametrize(("low", "high", "open_low", "open_high"), [(1, 5, False, False), (-0.5, 0.25, True, True)])
@pytest.mark.parametrize("exponent", [False, True])
def test_number_prefixes_agree_with_brute_force(
    low: float, high: float, open_low: bool, open_high: bool, exponent: bool
) -> None:
    bounds = NumberRange(False, exact(low), exact(high), open_low, open_high, exponent=exponent)
    shape = re.compile(r"(?!-0$)-?(0|[1-9]\d*)(\.\d+)?" + (r"([eE][+-]?\d{1,2})?" if exponent else ""))

    def fits(text: str) -> bool:
        value = exact(float(text)) if shape.fullmatch(text) else None
        above = value is not None and (value > exact(low) or (value == exact(low) and not open_low))
        return value is not None and above and (value < exact(high) or (value == exact(high) and not open_high))

    alphabet = "015.-" + ("e" if exponent else "")
    words = [""]
    texts = []
    for _ in range(5):
        words = [word + char for word in words for char in alphabet if re.match(r"-?(\d|$)", word + char)]
        texts += words
    good = {text for text in texts if fits(text)}
    for text in texts:
        got = accepted(Numeral(bounds), text.encode())
        assert bool(got) == (text in good), text
        if any(longer.startswith(text) for longer in good):
            assert got is not None, text


def test_numbers_have_one_spelling() -> None:
    free = NumberRange()
    for text in ("0", "-7", "1.0", "-0.0", "1e-07", "1E+22", "-0e1", "9" * 300, "1.50"):
        assert accepted(Numeral(free), text.encode()), text
    for text in ("-0", "1.", "1e", "-"):
        assert accepted(Numeral(free), text.encode()) is False, text
    for text in ("01", "+1", ".5", "1e999", "00", "-01", "9" * 201 + ".", "1.e"):
        assert accepted(Numeral(free), text.encode()) is None, text


# Patterns and text

PATTERNS = [
    "^a+$", "a|b$", "^on$|^off$", r"^\d{2,3}$", "b", "^(a|ab)(c|bcd)?$", r"\S", "[^a-c]$", "^.{1,3}$", "a*?b", "^$", "",
    "(a$|^b)", r"\w\W", "^(?:a{2}){1,2}$", "^[a-]b?$",
]  # fmt: skip


@pytest.mark.parametrize("text", PATTERNS)
def test_patterns_agree_with_re(text: str) -> None:
    rng = random.Random(text)
    meant = re.compile(text.replace("$", r"\Z"), re.ASCII)
    for _ in range(400):
        word = "".join(rng.choices("abcd1 -é", k=rng.randint(0, 6)))
        assert pattern(text).matches(word) == bool(meant.search(word)), word


@pytest.mark.parametrize("text", PATTERNS)
@pytest.mark.parametrize(("least", "most"), [(0, None), (2, 3), (0, 1)])
def test_text_viability_agrees_with_brute_force(text: str, least: int, most: int | None) -> None:
    needles = (b"ab-", b"b1")
    letters = "ab1-"
    words = [""]
    for size in range(5):
        words += [word + char for word in words if len(word) == size for char in letters]

    def fits(word: str) -> bool:
        plain = not any(needle.decode() in word for needle in needles)
        return plain and least <= len(word) <= (9 if most is None else most) and pattern(text).matches(word)

    good = {word for word in words if fits(word)}
    rule = TextRule(needles=needles, least=least, most=most, machines=((pattern(text), True),))
    for word in words:
        got = accepted(Text(rule), word.encode()) if Text(rule).satisfiable() else None
        assert bool(got) == (word in good), word
        if any(longer.startswith(word) for longer in good):
            assert got is not None, word
        if got is not None and most is not None:  # other letters may finish it: try a few
            tails = ["", *"abcd1- ", "cd", "c ", "dd", "aa"]
            assert any(pattern(text).matches(word + tail) for tail in tails), word


@given(st.binary(max_size=6))
def test_raw_text_is_valid_utf8(data: bytes) -> None:
    try:
        data.decode()
        valid = True
    except UnicodeDecodeError:
        valid = False
    assert (accepted(Text(TextRule()), data) is True) == valid


@given(st.text(alphabet='a"\\/bnu0d83cDE{<|é😀\n\x1f', max_size=13))
def test_json_text_is_what_json_reads(text: str) -> None:
    try:
        value = json.loads(f'"{text}"')
        valid = not any(0xD800 <= ord(char) <= 0xDFFF for char in value)
    except ValueError:
        valid = False
    assert (accepted(Text(TextRule(spelling="json")), text.encode()) is True) == valid


@given(st.text(alphabet='a"\\é😀\n\x1f<', max_size=6), st.randoms(use_true_random=False))
def test_json_text_counts_characters(text: str, rng: random.Random) -> None:
    spelt = "".join(rng.choice([json.dumps(char)[1:-1], json.dumps(char, ensure_ascii=False)[1:-1]]) for char in text)
    for most in (len(text), len(text) - 1):
        if most >= 0:
            got = accepted(Text(TextRule(spelling="json", most=most)), spelt.encode())
            assert (got is True) == (most == len(text))
    short = TextRule(spelling="json", escapes=False)
    canonical = json.dumps(text, ensure_ascii=False)[1:-1]
    assert (accepted(Text(short), spelt.encode()) is True) == (spelt == canonical)


def test_a_needle_leaves_no_dead_end() -> None:
    rule = TextRule(needles=(b"<|x|>",), machines=((pattern(r"^a<\|x\|>$|^a<\|y\|>$"), True),))
    assert accepted(Text(rule), b"a<|y|>")
    assert accepted(Text(rule), b"a<|") is False
    assert accepted(Text(rule), b"a<|x") is None


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
    ("runes", {"k": {"type": ["string", "null", "boolean"]}}, "[[call]]f(k=", ["nil)", "yes)", "[[s]][[/s]])"], ["null"]),
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
        assert ends(name, required, call[name]) and ends(name, required, two[name]) and ends(name, required, thought[name])
        assert not ends(name, required, "") and not may(name, required, "Hi")
        single = make_request([f, g], "required", parallel=False)
        assert ends(name, single, call[name]) and not may(name, single, two[name])
        named = make_request([f, g], {"type": "function", "function": {"name": "g"}})
        assert not may(name, named, call[name]) and ends(name, named, render_turn(name, [("g", {})]))
        forbid = make_request([f], "required", reasoning="forbid")
        assert ends(name, forbid, call[name]) and not may(name, forbid, thought[name])
        require = make_request([f], "required", reasoning="require")
        assert ends(name, require, thought[name]) and not may(name, require, call[name])
        none = make_request([f], "none")
        assert ends(name, none, render_turn(name, content="Hi <b>.")) and not may(name, none, call[name])
        auto = make_request([f, g])
        assert ends(name, auto, render_turn(name, content="Hi")) and ends(name, auto, two[name])


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
    assert not may("gemma4", both, "<|tool_call>call:f") and may("gemma4", both, "<|tool_call>call:g{}")


def test_an_answer_under_a_schema() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    for name, prefix in (("gemma4", ""), ("atem", " to=user<|message|>")):
        request = make_request(response=schema)
        assert ends(name, request, prefix + '{"a": 1}') and not may(name, request, prefix + "Sure")


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
        assert ends(name, request, prefix) if stops else may(name, request, whole.removeprefix("<|start|>assistant")), text
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
        arguments = arguments_for(schema, rng)
        assert Draft202012Validator(plain_schema(schema)).is_valid(arguments)
        text = render_turn(name, [(definition["function"]["name"], arguments)])
        accepted = ends(name, make_request([definition], "required"), text)
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
            assert state is not None and not state.can_end
            state = state.advance(symbol)
        assert state is not None and state.can_end


def walk(state: OracleState, name: str, rng: random.Random, most: int = 3000) -> list[Symbol] | None:
    """A random complete sequence, or None if it did not end in time. Raises if it meets a dead end."""
    path: list[Symbol] = []
    for _ in range(most):
        if state.can_end and rng.random() < 0.5:
            return path
        options: list[Symbol] = [mark for mark in markers(name) if state.advance(mark)]
        if not options or rng.random() < 0.7:
            options += list(state.nexts())
        eager: list[Symbol] = [s for s in options if isinstance(s, str) or chr(s) in "}])>\"</|"]
        assert options, "a dead end"
        choice = rng.choice(eager if eager and rng.random() < 0.5 else options)
        path.append(choice)
        after = state.advance(choice)
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
        if len(text) > 700 or not file.exists() or re.search(r"\d[.eE]", text):
            continue
        reading = read(file, text, start=rule, tools=[definition])
        assert reading is not None and len(reading.calls) == 1, text
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
        if len(text) < 700 and not re.search(r"\d[.eE]", text):
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
            # a validator takes 3.0 for an integer; the formats write integers without a fraction
            whole = isinstance(arguments["n"], int)
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
