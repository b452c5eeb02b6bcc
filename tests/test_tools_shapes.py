"""Tool definitions in, messages and chunks out: the shapes that servers speak."""

from __future__ import annotations

import json
from typing import Any

import pytest

from twingram.errors import RequestError
from twingram.session.deltas import CallArguments, CallEnd, CallStart, Content, Delta, ParseError, Reasoning
from twingram.session.message import Call, Message, MessageBuilder
from twingram.session.openai import openai_chunks
from twingram.session.tools import Tools

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


@pytest.mark.parametrize(
    "definition",
    [
        {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}},
        {"type": "function", "name": "f", "description": "d", "parameters": SCHEMA, "strict": True},
        {"name": "f", "description": "d", "inputSchema": SCHEMA},
        {"name": "f", "description": "d", "input_schema": SCHEMA},
        {"function": {"name": "f", "description": "d", "parameters": SCHEMA}},
    ],
)
def test_shapes(definition: dict[str, Any]) -> None:
    tools = Tools.parse([definition])
    assert tools.names == ("f",)
    assert tools.schema("f") is SCHEMA
    assert tools.definitions[0].definition is definition
    assert tools.definitions[0].description == "d"
    assert Tools.parse(tools) is tools


def test_without_parameters() -> None:
    for definition in ({"name": "f"}, {"type": "function", "function": {"name": "f", "parameters": None}}):
        assert Tools.parse([definition]).schema("f") == {"type": "object", "properties": {}}
    assert Tools.parse([{"name": "f", "parameters": True}]).schema("f") is True


def test_none_is_not_empty() -> None:
    nothing, empty = Tools.parse(None), Tools.parse([])
    assert nothing.declared is None
    assert empty.declared == frozenset()
    assert nothing.knows("f")
    assert not empty.knows("f")
    assert nothing.schema("f") is None
    assert len(nothing) == len(empty) == 0
    some = Tools.parse(iter([{"name": "f"}, {"name": "g"}]))
    assert some.declared == {"f", "g"}
    assert "f" in some
    assert "h" not in some
    assert len(some) == 2


@pytest.mark.parametrize(
    ("tools", "says"),
    [
        ("f", "must be a list"),
        ({"name": "f"}, "must be a list"),
        (5, "must be a list"),
        (["f"], r"tools\[0\] must be an object"),
        ([{"name": "f"}, {"type": "web_search"}], r"tools\[1\]\.type is 'web_search'"),
        ([{"type": "function"}], r"tools\[0\]\.name"),
        ([{"type": "function", "function": "f"}], r"tools\[0\]\.function must be an object"),
        ([{"type": "function", "function": {"name": ""}}], r"tools\[0\]\.function\.name"),
        ([{"name": "f", "parameters": "{}"}], r"tools\[0\]\.parameters must be a JSON Schema, not str; decode"),
        ([{"name": "f", "inputSchema": []}], r"tools\[0\]\.inputSchema"),
        ([{"name": "f"}, {"name": "f"}], "'f' is defined twice"),
    ],
)
def test_malformed(tools: Any, says: str) -> None:
    with pytest.raises(RequestError, match=says):
        Tools.parse(tools)


TURN: list[Delta] = [
    Reasoning("hm"),
    Content("a"),
    CallStart(0, "x", "f"),
    Content("b"),
    CallArguments(0, '{"n": 1234567890'),
    CallArguments(0, '123456789012, "n2": 1.0}'),
    CallEnd(0, True),
    CallStart(1, "y", "g"),
    CallArguments(1, '{"s": "'),
    CallEnd(1, False),
    ParseError("<c>g", "broken"),
]


def test_message() -> None:
    message = Message.from_deltas(TURN)
    assert (message.content, message.reasoning) == ("ab", "hm")
    assert message.calls[0].value == {"n": 1234567890123456789012, "n2": 1.0}
    assert message.calls[0].value is message.calls[0].value
    assert message.incomplete_calls == (Call(1, "y", "g", '{"s": "', complete=False),)
    assert message.errors == (ParseError("<c>g", "broken"),)
    assert message == Message.from_deltas(TURN)
    assert message.to_openai() == {
        "role": "assistant",
        "content": "ab",
        "reasoning_content": "hm",
        "tool_calls": [
            {
                "id": "x",
                "type": "function",
                "function": {"name": "f", "arguments": '{"n": 1234567890123456789012, "n2": 1.0}'},
            }
        ],
    }
    with pytest.raises(RequestError, match="call 1"):
        message.incomplete_calls[0].value  # noqa: B018
    assert Message() == Message.from_deltas([])
    assert Message().to_openai() == {"role": "assistant", "content": None}


def test_errors_are_the_content_only_where_nothing_else_is() -> None:
    error = ParseError("raw", "r")
    call: list[Delta] = [CallStart(0, "x", "f"), CallArguments(0, "{}"), CallEnd(0, True)]
    assert Message.from_deltas([error, error]).to_openai()["content"] == "rawraw"
    assert Message.from_deltas([error, *call]).to_openai()["content"] is None
    assert Message.from_deltas([error, Content("c")]).to_openai()["content"] == "c"


def test_builder_shows_open_calls_and_can_be_cloned() -> None:
    builder = MessageBuilder()
    builder.extend(TURN[:5])
    assert builder.message.incomplete_calls[0].arguments == '{"n": 1234567890'
    twin = builder.clone()
    builder.extend(TURN[5:])
    assert builder.message == Message.from_deltas(TURN)
    twin.extend(TURN[5:])
    assert twin.message == builder.message


def test_very_long_integers_and_deep_values() -> None:
    digits = "-" + "7" * 9000
    call = Call(0, "x", "f", f'{{"n": {digits}}}')
    assert call.value["n"] % 10**20 == (-(7 * (10**9000 - 1) // 9)) % 10**20
    deep = Call(0, "x", "f", '{"a":' * 500 + "1" + "}" * 500)
    assert list(deep.value) == ["a"]


def fold(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """What a client makes of a stream."""
    message: dict[str, Any] = {}
    calls: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        json.dumps(chunk)
        delta = chunk["choices"][0]["delta"]
        for key in ("role", "content", "reasoning_content"):
            if key in delta:
                message[key] = message.get(key, "") + delta[key]
        for piece in delta.get("tool_calls", ()):
            call = calls.setdefault(piece["index"], {"id": piece.get("id"), "name": "", "arguments": ""})
            call["name"] += piece["function"].get("name", "")
            call["arguments"] += piece["function"]["arguments"]
    return {**message, "calls": list(calls.values()), "finish": chunks[-1]["choices"][0]["finish_reason"]}


def test_chunks() -> None:
    chunks = list(openai_chunks(TURN[:7], id="i", model="m", created=5, usage={"total_tokens": 3}))
    assert chunks[0] == {
        "id": "i",
        "object": "chat.completion.chunk",
        "created": 5,
        "model": "m",
        "choices": [{"index": 0, "delta": {"role": "assistant"}, "finish_reason": None}],
    }
    assert chunks[-1]["usage"] == {"total_tokens": 3}
    assert "usage" not in chunks[0]
    assert fold(chunks) == {
        "role": "assistant",
        "content": "ab",
        "reasoning_content": "hm",
        "calls": [{"id": "x", "name": "f", "arguments": '{"n": 1234567890123456789012, "n2": 1.0}'}],
        "finish": "tool_calls",
    }


def test_finish_reasons_and_errors_in_chunks() -> None:
    def last(*deltas: Delta, **options: Any) -> tuple[Any, Any]:
        folded = fold(list(openai_chunks(deltas, **options)))
        return folded["finish"], folded.get("content")

    assert last() == ("stop", None)
    assert last(Content("a")) == ("stop", "a")
    assert last(Content("a"), finish_reason="length") == ("length", "a")
    assert last(CallStart(0, "x", "f"), CallEnd(0, False)) == ("length", None)
    assert last(ParseError("raw", "r")) == ("stop", "raw")
    assert last(ParseError("raw", "r"), Content("a")) == ("stop", "a")
    head = next(iter(openai_chunks([])))
    assert head["id"].startswith("chatcmpl-")
    assert head["created"] > 0
