"""A request for a chat completion, checked field by field.

In: the JSON object of the body. Out: a frozen `ChatRequest`, or an `ApiError` with the JSON path of what is wrong.
Invariant: a field either has its effect, or cannot change the answer, or is refused; none is dropped in silence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from twingram.errors import TwingramError
from twingram.session.request import read_choice
from twingram.session.tools import Tools

from .backend import Sampling
from .errors import ApiError, of_twingram
from .messages import read_messages

__all__ = ["ChatRequest", "read_request"]

_EFFECTIVE = {
    "messages", "model", "tools", "tool_choice", "parallel_tool_calls", "response_format", "reasoning_effort", "stream",
    "stream_options", "stop", "max_tokens", "max_completion_tokens", "seed", "temperature", "top_p",
}  # fmt: skip
# These say who asks and how the answer is booked.
_WITHOUT_EFFECT = {
    "user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention",
}  # fmt: skip
# Fields that this server does not have, with the values that ask for nothing.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "n": (1,), "logprobs": (False,), "top_logprobs": (0,), "presence_penalty": (0,), "frequency_penalty": (0,),
    "logit_bias": ({},), "modalities": (["text"],),
}  # fmt: skip
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_MOST_STOPS = 4


@dataclass(frozen=True)
class ChatRequest:
    """`strict`: names of the tools whose schemas must be enforced to the letter; '' stands for the answer's schema."""

    messages: list[dict[str, Any]]
    model: str
    tools: list[Mapping[str, Any]] | None
    names: list[str]
    strict: frozenset[str]
    tool_choice: Any
    parallel_tool_calls: bool
    response_schema: Mapping[str, Any] | bool | None
    reasoning: str
    stream: bool
    include_usage: bool
    stops: tuple[str, ...]
    max_tokens: int | None
    sampling: Sampling


def read_request(body: Mapping[str, Any]) -> ChatRequest:
    _check_fields(body)
    tools, names, strict = _tools(body)
    schema, strict_answer = _response_format(body.get("response_format"))
    stream, include_usage = _stream(body)
    return ChatRequest(
        messages=read_messages(body.get("messages")),
        model=_text(body, "model"),
        tools=tools,
        names=names,
        strict=frozenset(strict) | (frozenset({""}) if strict_answer else frozenset()),
        tool_choice=body.get("tool_choice"),
        parallel_tool_calls=_flag(body, "parallel_tool_calls", True),
        response_schema=schema,
        reasoning=_reasoning(body.get("reasoning_effort")),
        stream=stream,
        include_usage=include_usage,
        stops=_stops(body.get("stop")),
        max_tokens=_max_tokens(body),
        sampling=Sampling(
            temperature=_number(body, "temperature", 0, 2, 1.0),
            top_p=_number(body, "top_p", 0, 1, 1.0),
            seed=_integer(body, "seed", -(2**63)),
        ),
    )


def _check_fields(body: Mapping[str, Any]) -> None:
    for name, value in body.items():
        if name in _EFFECTIVE or name in _WITHOUT_EFFECT or value is None:
            continue
        if name in ("functions", "function_call"):
            raise ApiError(f"{name} is the old form; use tools and tool_choice", name, code="unsupported_parameter")
        if name not in _NEUTRAL:
            raise ApiError(f"{name} is not a field that this server knows", name, code="unknown_parameter")
        if value not in _NEUTRAL[name]:
            only = " or ".join(map(repr, _NEUTRAL[name]))
            raise ApiError(f"{name} is not supported other than {only}", name, code="unsupported_value")


def _tools(body: Mapping[str, Any]) -> tuple[list[Mapping[str, Any]] | None, list[str], set[str]]:
    tools = body.get("tools")
    if tools is not None and not isinstance(tools, list):
        raise ApiError(f"tools must be a list, not {type(tools).__name__}", "tools")
    try:
        read = Tools.parse(tools)
    except TwingramError as error:
        raise of_twingram(error, [], "tools") from None
    try:
        read_choice(body.get("tool_choice"), read)
    except TwingramError as error:
        raise of_twingram(error, [], "tool_choice") from None
    strict = {tool.name for tool in read.definitions if _is_strict(tool.definition)}
    return tools, list(read.names), strict


def _is_strict(definition: Mapping[str, Any]) -> bool:
    function = definition.get("function", definition)
    return function.get("strict") is True


def _response_format(value: Any) -> tuple[Mapping[str, Any] | bool | None, bool]:
    if value is None:
        return None, False
    if not isinstance(value, Mapping):
        raise ApiError(f"response_format must be an object, not {type(value).__name__}", "response_format")
    kind = value.get("type")
    if kind == "text":
        return None, False
    if kind == "json_object":
        return {"type": "object"}, False
    if kind != "json_schema":
        raise ApiError(
            f"response_format.type is {kind!r}; it must be text, json_object or json_schema", "response_format.type"
        )
    described = value.get("json_schema")
    schema = described.get("schema") if isinstance(described, Mapping) else None
    if not isinstance(described, Mapping) or not isinstance(schema, (Mapping, bool)):
        raise ApiError("response_format.json_schema.schema must be a JSON Schema", "response_format.json_schema.schema")
    return schema, described.get("strict") is True


def _stream(body: Mapping[str, Any]) -> tuple[bool, bool]:
    stream, options = _flag(body, "stream", False), body.get("stream_options")
    if options is None:
        return stream, False
    if not isinstance(options, Mapping):
        raise ApiError("stream_options must be an object", "stream_options")
    if not stream:
        raise ApiError("stream_options is for stream: true", "stream_options")
    return stream, bool(options.get("include_usage"))


def _reasoning(effort: Any) -> str:
    if effort is None:
        return "allow"
    if effort not in _EFFORTS:
        raise ApiError(f"reasoning_effort is {effort!r}; it must be one of {', '.join(_EFFORTS)}", "reasoning_effort")
    return "forbid" if effort == "none" else "allow"


def _stops(value: Any) -> tuple[str, ...]:
    stops = [value] if isinstance(value, str) else [] if value is None else value
    if not isinstance(stops, list) or len(stops) > _MOST_STOPS:
        raise ApiError(f"stop must be a text, or a list of at most {_MOST_STOPS}", "stop")
    for index, stop in enumerate(stops):
        if not isinstance(stop, str) or not stop:
            raise ApiError(f"stop[{index}] must be a text that is not empty", f"stop[{index}]")
    return tuple(stops)


def _max_tokens(body: Mapping[str, Any]) -> int | None:
    found = {name: _integer(body, name, 1) for name in ("max_completion_tokens", "max_tokens")}
    given = {value for value in found.values() if value is not None}
    if len(given) > 1:
        raise ApiError("max_tokens and max_completion_tokens contradict each other", "max_tokens")
    return next(iter(given), None)


def _text(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str):
        raise ApiError(f"{name} must be a text", name)
    return value


def _flag(body: Mapping[str, Any], name: str, default: bool) -> bool:
    value = body.get(name)
    if value is not None and not isinstance(value, bool):
        raise ApiError(f"{name} must be true or false", name)
    return default if value is None else value


def _integer(body: Mapping[str, Any], name: str, least: int) -> int | None:
    value = body.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**63):
        raise ApiError(f"{name} must be an integer of at least {least}", name)
    return value


def _number(body: Mapping[str, Any], name: str, least: float, most: float, default: float) -> float:
    value = body.get(name)
    if value is None:
        return default
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if not number or not least <= value <= most:
        raise ApiError(f"{name} must be a number from {least} to {most}", name)
    return float(value)
