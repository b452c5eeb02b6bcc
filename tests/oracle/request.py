"""What is asked of a turn: the input of the oracle.

In: tool definitions and the options of a constraint, in the shapes that servers use. Out: one frozen `Request`.
Where the written rules leave a choice open, the choice is a field here, so that a test can state the one it means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

__all__ = ["NO_PARAMETERS", "Request", "Tool", "Unsupported", "make_request", "tool"]

NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}
SPACE = " \t\n\r\f\v"


class Unsupported(Exception):
    """The oracle does not know this keyword or this combination: the test must skip it, not guess."""


@dataclass(frozen=True)
class Tool:
    name: str
    schema: Mapping[str, Any] = field(hash=False)


@dataclass(frozen=True)
class Request:
    tools: tuple[Tool, ...] = ()
    response: Any = field(default=None, hash=False)  # a JSON Schema for the answer itself
    choice: str = "auto"  # auto | none | required
    parallel: bool = True
    reasoning: str = "allow"  # allow | require | forbid
    key_order: str = "any"  # any | sorted | declared
    additional: str = "declared"  # declared | schema
    resumed: bool = False  # the prompt ends inside an open thought
    letters: frozenset[str] = frozenset()  # markers that the vocabulary lacks: spelt with bytes
    max_integer_digits: int = 200  # of a number with a fraction or an exponent
    bounded_exponent: bool = True  # numbers with bounds may be written with an exponent
    any_escape: bool = True  # JSON-spelt strings: every valid escape of a character, not only the shortest
    literal_escape: bool = False  # enum members and keys in JSON may be written with needless escapes
    untyped_json_string: bool = False  # raw text: a quoted JSON string is no text where the type is open
    strict_union: bool = True  # raw text: JSON of another branch is no text even if the branch's bounds refuse it
    key_space: str = SPACE  # what may not stand at either end of a free key


def tool(name: str, schema: Mapping[str, Any] | None = None, **properties: Any) -> dict[str, Any]:
    """A definition in the Chat Completions shape; `tool("f", x={"type": "integer"})` requires no member."""
    if schema is None:
        schema = {"type": "object", "properties": properties}
    return {"type": "function", "function": {"name": name, "parameters": dict(schema)}}


def _tool(definition: Mapping[str, Any]) -> Tool:
    body = definition.get("function", definition)
    schema = body.get("parameters", body.get("inputSchema"))
    return Tool(body["name"], NO_PARAMETERS if schema is None else schema)


def _choice(tools: tuple[Tool, ...], choice: Any) -> tuple[tuple[Tool, ...], str]:
    if isinstance(choice, str):
        return tools, choice
    if choice["type"] == "function":
        name = choice.get("function", choice)["name"]
        return tuple(t for t in tools if t.name == name), "required"
    body = choice.get("allowed_tools", choice)
    names = {_tool_name(item) for item in body["tools"]}
    return tuple(t for t in tools if t.name in names), body.get("mode", "auto")


def _tool_name(item: Mapping[str, Any]) -> str:
    name = item.get("function", item)["name"]
    assert isinstance(name, str)
    return name


def make_request(tools: Sequence[Mapping[str, Any]] = (), tool_choice: Any = None, **options: Any) -> Request:
    """The request that a constraint with these arguments stands for."""
    known = tuple(_tool(definition) for definition in tools)
    left, choice = _choice(known, tool_choice if tool_choice is not None else ("auto" if known else "none"))
    return replace(Request(tools=left, choice=choice), **options)
