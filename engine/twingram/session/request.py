"""What a request asks for, checked: `tool_choice` and its companions.

In: the values that a client sent. Out: a `Choice`: which tools may be called, whether one must be, and the other values
as they are, or a `RequestError` that says what is wrong and what would be right.
Cost: none to speak of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import index
from typing import Any, SupportsIndex

from ..errors import RequestError
from .tools import Tools

__all__ = ["Choice", "count_or_none", "flag", "one_of", "read_choice", "stop_list"]


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


def flag(name: str, value: object) -> None:
    """Check a keyword argument that is True or False: the text "no" would count as True."""
    if not isinstance(value, bool):
        raise RequestError(f"{name}={value!r} is neither True nor False")


def count_or_none(name: str, value: object) -> int | None:
    """A keyword argument that is a number of things, or None for no bound."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, SupportsIndex) or index(value) < 0:
        raise RequestError(f"{name}={value!r} is not a whole number from 0 on; leave it out for no bound")
    return index(value)


def stop_list(stops: object) -> tuple[int | str, ...] | None:
    """`stop_tokens`: ids and names of special tokens; None for those of the format."""
    if stops is None:
        return None
    if isinstance(stops, (str, bytes)) or not isinstance(stops, Iterable):
        raise RequestError(f"stop_tokens={stops!r} is not a list of token ids and names of special tokens")
    found: list[int | str] = []
    for stop in stops:
        if isinstance(stop, bool) or not isinstance(stop, (str, SupportsIndex)):
            raise RequestError(f"stop_tokens holds {stop!r}, which is neither a token id nor a special token's name")
        found.append(stop if isinstance(stop, str) else index(stop))
    if not found:
        raise RequestError("stop_tokens is empty: nothing could end a turn; leave it out for those of the format")
    return tuple(found)


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
    names = tuple(_known(_allowed_name(tool, at), tools) for at, tool in enumerate(allowed["tools"]))
    if mode == "required" and not names:
        raise RequestError("allowed_tools.mode='required' with an empty list of tools")
    return Choice(tuple(dict.fromkeys(names)), mode == "required", False)


def _allowed_name(tool: object, at: int) -> str:
    if not isinstance(tool, Mapping) or tool.get("type", "function") != "function":
        raise RequestError(f'allowed_tools.tools[{at}] is {tool!r}; it must be {{"type": "function", "name": "..."}}')
    return _function_name(tool)
