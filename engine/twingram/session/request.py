"""What a request asks for, checked: `tool_choice` and its companions.

In: the values that a client sent. Out: a `Choice`: which tools may be called, whether one must be, or a `RequestError`
that says what is wrong and what would be right.
Cost: none to speak of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import RequestError
from .tools import Tools

__all__ = ["Choice", "one_of", "read_choice"]


@dataclass(frozen=True)
class Choice:
    """`names`: the tools that may be called. `required`: one must be. `named`: the client named them one by one."""

    names: tuple[str, ...]
    required: bool
    named: bool


def one_of(name: str, value: object, known: Iterable[str]) -> None:
    """Check a keyword argument that takes one of a few words."""
    known = tuple(known)
    if value not in known:
        raise RequestError(f"{name}={value!r} is not one of {', '.join(map(repr, known))}")


def read_choice(choice: Any, tools: Tools) -> Choice:
    """`tool_choice` in the shapes of Chat Completions and Responses."""
    if choice is None:
        choice = "auto" if tools.given and len(tools) else "none"
    if isinstance(choice, str):
        one_of("tool_choice", choice, ("auto", "none", "required"))
        if choice == "required" and not len(tools):
            raise RequestError("tool_choice='required' needs tools, but none were given")
        return Choice(() if choice == "none" else tools.names, choice == "required", False)
    if not isinstance(choice, Mapping):
        raise RequestError(f"tool_choice is a word or an object, not {type(choice).__name__}")
    kind = choice.get("type")
    if kind == "function":
        return Choice((_known(_function_name(choice), tools),), True, True)
    if kind == "allowed_tools":
        return _allowed(choice.get("allowed_tools", choice), tools)
    raise RequestError(f"tool_choice.type is {kind!r}; it must be 'function' or 'allowed_tools'")


def _function_name(choice: Mapping[str, Any]) -> str:
    function = choice.get("function", choice)
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(name, str):
        raise RequestError('a named tool_choice is {"type": "function", "function": {"name": "..."}}')
    return name


def _known(name: str, tools: Tools) -> str:
    if name not in tools.names:
        known = ", ".join(tools.names) or "none"
        raise RequestError(f"tool_choice names {name!r}, which is not among the tools: {known}")
    return name


def _allowed(allowed: Any, tools: Tools) -> Choice:
    if not isinstance(allowed, Mapping) or not isinstance(allowed.get("tools"), (list, tuple)):
        raise RequestError('allowed_tools is {"mode": "auto" or "required", "tools": [{"type": "function", ...}, ...]}')
    mode = allowed.get("mode", "auto")
    one_of("allowed_tools.mode", mode, ("auto", "required"))
    names = tuple(_known(_function_name(tool), tools) for tool in allowed["tools"])
    if mode == "required" and not names:
        raise RequestError("allowed_tools.mode='required' with an empty list of tools")
    return Choice(tuple(dict.fromkeys(names)), mode == "required", False)
