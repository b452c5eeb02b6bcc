"""The contract of ExecuTorch's detectors: the thirty rules of the ATEM one, and the same contract for Gemma."""

from __future__ import annotations

import json
from typing import Any

import pytest

from twingram_bindings.executorch import AtemToolCallDetector, Detection, GemmaToolCallDetector

NUMBERS = {"properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
TOOLS: dict[str, Any] = {
    "weather": {"type": "object", "properties": {"city": {"type": "string"}, "units": {"type": "string"}}},
    "sum": {"type": "object", **NUMBERS},
}


def invoke(name: str, **values: str) -> str:
    members = "".join(f'<atem:parameter name="{key}">{value}</atem:parameter>\n' for key, value in values.items())
    return f'<atem:invoke name="{name}">\n{members}</atem:invoke>\n'


def block(*invokes: str) -> str:
    return "<atem:function_calls>\n" + "".join(invokes) + "</atem:function_calls>"


def to(name: str, body: str, more: str = "") -> str:
    return f" to={name}{more}<|message|>{body}"


def read(text: str, tools: dict[str, Any] | None = None) -> Detection:
    return AtemToolCallDetector().detect_and_parse(text=text, tools=TOOLS if tools is None else tools)


def calls(found: Detection) -> list[tuple[int, str, Any]]:
    return [(call.tool_index, call.name, json.loads(call.arguments)) for call in found.calls]


OSLO = block(invoke("weather", city="Oslo"))
CALLS = {
    "1 terminated": (to("weather", OSLO) + "<|eom|>", ""),
    "2 without a terminator": (to("weather", OSLO), ""),
    "4 constrain in the header": (to("weather", OSLO, " constrain=json") + "<|eom|>", ""),
    "5 no header": (OSLO, ""),
    "9 prose before the header": ("On it." + to("weather", OSLO) + "<|eom|>", "On it."),
}


@pytest.mark.parametrize(("text", "normal"), CALLS.values(), ids=CALLS.keys())
def test_one_call(text: str, normal: str) -> None:
    found = read(text)
    assert calls(found) == [(0, "weather", {"city": "Oslo"})]
    assert found.normal_text == normal


def test_3_start_prefix() -> None:
    found = read("<|start|>assistant" + to("sum", block(invoke("sum", a="1", b="2"))) + "<|eot|>")
    assert calls(found) == [(0, "sum", {"a": 1, "b": 2})]


def test_6_several_invokes_in_a_block() -> None:
    found = read(to("sum", block(invoke("sum", a="1"), invoke("sum", a="3"))) + "<|eot|>")
    assert calls(found) == [(0, "sum", {"a": 1}), (1, "sum", {"a": 3})]


def test_7_several_blocks() -> None:
    one, two = block(invoke("sum", a="1")), block(invoke("sum", a="3"))
    found = read(to("sum", one) + "<|eom|><|start|>assistant" + to("sum", two) + "<|eot|>")
    assert calls(found) == [(0, "sum", {"a": 1}), (1, "sum", {"a": 3})]


def test_8_several_parameters() -> None:
    found = read(to("weather", block(invoke("weather", city="Oslo", units="C"))))
    assert calls(found) == [(0, "weather", {"city": "Oslo", "units": "C"})]


def test_10_private_text_is_kept() -> None:
    found = read(to("self", "I should look.") + "<|eom|><|start|>assistant" + to("weather", OSLO) + "<|eom|>")
    assert len(found.calls) == 1
    assert "I should look." in found.normal_text


@pytest.mark.parametrize("text", ["It rains.", "Rome is in Italy."], ids=["11", "12"])
def test_plain_text(text: str) -> None:
    assert read(text) == Detection(text)


def test_13_unknown_tool_gives_the_whole_text_back() -> None:
    text = to("drop_tables", block(invoke("drop_tables", table="all"))) + "<|eom|>"
    assert read(text) == Detection(text)


def test_14_cut_call() -> None:
    text = 'Sure! <atem:function_calls>\n<atem:invoke name="weather">\n<atem:parameter name="city">Os'
    assert read(text) == Detection("Sure!")


TYPES: dict[str, tuple[Any, str, Any]] = {
    "15 integer": ({"type": "integer"}, "2", 2),
    "16 number": ({"type": "number"}, "3.14", 3.14),
    "17 true": ({"type": "boolean"}, "true", True),
    "18 False": ({"type": "boolean"}, "False", False),
    "19 a string of digits": ({"type": "string"}, "1234", "1234"),
    "20 white space": ({"type": "string"}, "  hi  ", "  hi  "),
    "21 untyped number": (None, "42", 42),
    "21 untyped list": (None, "[1, 2]", [1, 2]),
    "22 array": ({"type": "array"}, "[1, 2]", [1, 2]),
    "22 object": ({"type": "object"}, '{"k": "v"}', {"k": "v"}),
    "23 a float for an integer": ({"type": "integer"}, "10.0", "10.0"),
    "24 1 for a boolean": ({"type": "boolean"}, "1", "1"),
    "25 an underscore": ({"type": "integer"}, "1_000", "1_000"),
    "26 NaN": ({"type": "number"}, "NaN", "NaN"),
    "26 Infinity": ({"type": "number"}, "Infinity", "Infinity"),
    "26 -Infinity": ({"type": "number"}, "-Infinity", "-Infinity"),
    "26 1e999": ({"type": "number"}, "1e999", "1e999"),
    "27 a literal closer": ({"type": "string"}, "a </atem:parameter> b", "a </atem:parameter> b"),
    "28 an opener": ({"type": "string"}, 'x = <atem:invoke name="foo">', 'x = <atem:invoke name="foo">'),
    "29 angle brackets": ({"type": "string"}, "a < b && c > d", "a < b && c > d"),
}


@pytest.mark.parametrize(("schema", "text", "value"), TYPES.values(), ids=TYPES.keys())
def test_types(schema: Any, text: str, value: Any) -> None:
    tools = {"f": {"properties": {} if schema is None else {"v": schema}}}
    found = read(block(invoke("f", v=text)), tools)
    assert len(found.calls) == 1
    read_back = json.loads(found.calls[0].arguments, parse_constant=pytest.fail)["v"]
    assert read_back == value
    assert type(read_back) is type(value)


def test_30_indices_start_anew() -> None:
    detector = AtemToolCallDetector()
    for _ in range(2):
        assert [call.tool_index for call in detector.detect_and_parse(OSLO, TOOLS).calls] == [0]


def test_gemma() -> None:
    detector = GemmaToolCallDetector()
    found = detector.detect_and_parse('Look: <|tool_call>call:weather{city:<|"|>Oslo<|"|>}<tool_call|>', TOOLS)
    assert calls(found) == [(0, "weather", {"city": "Oslo"})]
    assert found.normal_text == "Look:"
    text = "<|tool_call>call:nobody{}<tool_call|>"
    assert detector.detect_and_parse(text, TOOLS) == Detection(text)
    assert detector.detect_and_parse("Just text.", TOOLS) == Detection("Just text.")
