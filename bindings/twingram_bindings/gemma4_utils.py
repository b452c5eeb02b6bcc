"""Offline helpers for decoded Gemma 4 text: find the calls, tell whether a tool response was announced.

    parse_tool_calls('<|tool_call>call:f{n:42}<tool_call|>')   # [{"name": "f", "arguments": {"n": 42}}]

In: text decoded with the special tokens kept. Out: plain lists and dictionaries. Values are those of the real parser,
typed; `stringify=True` gives them as strings, as older helpers of this name did.
"""

from __future__ import annotations

import re
from typing import Any

import twingram as tg

__all__ = ["has_tool_response_tag", "parse_tool_calls"]

_RESPONSE = "<|tool_response>"
_OPENER = "<|tool_call>"
_BARE = re.compile(r"(?:<call>|(?:(?<=\s)|^)call:)(?=\w+\{)")


def parse_tool_calls(text: str, *, strict: bool = False, stringify: bool = False) -> list[dict[str, Any]]:
    """The calls in a text, in order: `name`, and `arguments` by key.

    Calls in their markers come first: if there is one, nothing else is looked for. Otherwise, unless `strict`, a bare
    `call:NAME{...}` at the start or after white space, or `<call>NAME{...}`, is read as a call.
    """
    calls = list(_calls(text))
    if not calls and not strict:
        calls = _bare_calls(text)
    return [{"name": call.name, "arguments": _arguments(call, stringify)} for call in calls]


def has_tool_response_tag(text: str) -> bool:
    """Whether the text, trailing white space aside, ends by announcing a tool's response."""
    return text.rstrip().endswith(_RESPONSE)


def _calls(text: str) -> tuple[tg.Call, ...]:
    return tg.load_format("gemma4").parse(text).calls


def _bare_calls(text: str) -> list[tg.Call]:
    """Each bare opening, read as if its marker stood before it."""
    found: list[tg.Call] = []
    at = 0
    while (match := _BARE.search(text, at)) is not None:
        calls = _calls(_OPENER + "call:" + _one_call(text[match.end() :]))
        found += calls[:1]
        at = match.end()
    return found


def _one_call(text: str) -> str:
    """`text` up to the brace that closes its first one, and a closing marker."""
    depth, quoted, at = 0, False, 0
    while at < len(text):
        if text.startswith('<|"|>', at):
            quoted, at = not quoted, at + 5
            continue
        if not quoted and text[at] in "{}":
            depth += 1 if text[at] == "{" else -1
            if not depth:
                return text[: at + 1] + "<tool_call|>"
        at += 1
    return text


def _arguments(call: tg.Call, stringify: bool) -> dict[str, Any]:
    if not stringify:
        return dict(call.value)
    return {key: value if isinstance(value, str) else str(value) for key, value in call.value.items()}
