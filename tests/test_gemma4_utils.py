"""The offline helpers for Gemma 4 text."""

from __future__ import annotations

from typing import Any

import pytest

from twingram_bindings.gemma4_utils import has_tool_response_tag, parse_tool_calls

Q = '<|"|>'
CASES: dict[str, tuple[str, list[tuple[str, dict[str, Any]]]]] = {
    "markers": (f"<|tool_call>call:f{{s:{Q}x{Q},n:42}}<tool_call|>", [("f", {"s": "x", "n": 42})]),
    "nothing": ("no call here", []),
    "inner quotes": (f'<|tool_call>call:f{{s:{Q}say "hi"{Q}}}<tool_call|>', [("f", {"s": 'say "hi"'})]),
    "nested": ("<|tool_call>call:f{o:{b:1,l:[true,null]}}<tool_call|>", [("f", {"o": {"b": 1, "l": [True, None]}})]),
    "several": ("<|tool_call>call:f{}<tool_call|><|tool_call>call:g{}<tool_call|>", [("f", {}), ("g", {})]),
}
LOOSE: dict[str, tuple[str, list[tuple[str, dict[str, Any]]]]] = {
    "bare at the start": ("call:f{n:1}", [("f", {"n": 1})]),
    "bare after white space": (f"Well, call:f{{s:{Q}a}}b{Q}}}", [("f", {"s": "a}b"})]),
    "a split marker": ("<call>f{n:1}", [("f", {"n": 1})]),
    "inside a word": ("recall:f{n:1}", []),
}


def _pairs(found: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    return [(call["name"], call["arguments"]) for call in found]


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES.keys())
def test_calls(text: str, expected: list[tuple[str, dict[str, Any]]]) -> None:
    assert _pairs(parse_tool_calls(text)) == expected
    assert _pairs(parse_tool_calls(text, strict=True)) == expected


@pytest.mark.parametrize(("text", "expected"), LOOSE.values(), ids=LOOSE.keys())
def test_bare_calls(text: str, expected: list[tuple[str, dict[str, Any]]]) -> None:
    assert _pairs(parse_tool_calls(text)) == expected
    assert parse_tool_calls(text, strict=True) == []


def test_a_marked_call_ends_the_search() -> None:
    text = "call:g{n:1} <|tool_call>call:f{}<tool_call|>"
    assert _pairs(parse_tool_calls(text)) == [("f", {})]


def test_strings_on_request() -> None:
    text = f"<|tool_call>call:f{{s:{Q}x{Q},n:42,t:true,z:null}}<tool_call|>"
    assert parse_tool_calls(text, stringify=True)[0]["arguments"] == {"s": "x", "n": "42", "t": "True", "z": "None"}


@pytest.mark.parametrize(
    ("text", "expected"), [("x<|tool_response>", True), ("x<|tool_response> \n", True), ("<|tool_response>x", False)]
)
def test_response_tag(text: str, expected: bool) -> None:
    assert has_tool_response_tag(text) is expected
