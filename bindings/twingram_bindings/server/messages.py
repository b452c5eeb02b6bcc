"""The messages of a request, checked.

In: JSON values. Out: the same messages, with the text parts of a content joined, or an `ApiError` with the JSON path of
what is wrong. What a text model cannot be given (images, audio) is refused, not dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .errors import ApiError

__all__ = ["read_messages"]

_ROLES = ("system", "developer", "user", "assistant", "tool")


def read_messages(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not value:
        raise ApiError("messages must be a list with at least one message", "messages")
    return [_message(message, f"messages[{index}]") for index, message in enumerate(value)]


def _message(message: Any, where: str) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        raise ApiError(f"{where} must be an object, not {type(message).__name__}", where)
    role = message.get("role")
    if role not in _ROLES:
        raise ApiError(f"{where}.role is {role!r}; it must be one of {', '.join(_ROLES)}", f"{where}.role")
    read = dict(message)
    if message.get("content") is not None:
        read["content"] = _content(message["content"], f"{where}.content")
    elif not (role == "assistant" and message.get("tool_calls")):
        raise ApiError(f"{where} has no content", f"{where}.content")
    if "tool_calls" in message:
        _check_calls(message["tool_calls"], role, f"{where}.tool_calls")
    if role == "tool" and not isinstance(message.get("tool_call_id"), str):
        raise ApiError(f"{where}.tool_call_id must name the call that this answers", f"{where}.tool_call_id")
    return read


def _content(content: Any, where: str) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise ApiError(f"{where} must be a text or a list of parts, not {type(content).__name__}", where)
    texts = []
    for index, part in enumerate(content):
        at = f"{where}[{index}]"
        if not isinstance(part, Mapping) or part.get("type") not in ("text", "refusal"):
            kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
            raise ApiError(f"{at} is of type {kind!r}; only text can be read", f"{at}.type")
        text = part.get(part["type"])
        if not isinstance(text, str):
            raise ApiError(f"{at}.{part['type']} must be a text", f"{at}.{part['type']}")
        texts.append(text)
    return "".join(texts)


def _check_calls(calls: Any, role: str, where: str) -> None:
    if role != "assistant" or not isinstance(calls, list):
        raise ApiError(f"{where} is a list of calls in a message of the assistant", where)
    for index, call in enumerate(calls):
        at = f"{where}[{index}]"
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            raise ApiError(f"{at}.function must have a name and arguments", f"{at}.function")
        if not isinstance(function.get("arguments"), str):
            raise ApiError(f"{at}.function.arguments must be JSON text", f"{at}.function.arguments")
