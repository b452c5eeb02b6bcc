"""Tool definitions of a request, in any of the shapes that servers are given, read into one.

In: a list of mappings in the Chat Completions shape (`type`, `function: {name, parameters}`), the Responses shape
(`type`, `name`, `parameters`) or MCP's (`name`, `inputSchema`). Out: `Tools`: names, schemas, and the definitions as
they came.
Invariants: names are unique; schemas are shared with the caller, not copied, and must not change afterwards.
`None` is not `[]`: with no tools given every name passes and none has a schema; an empty list declares nothing.
Cost: linear in the number of tools; schemas are looked into when a call arrives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import RequestError
from ..grammar.declared import Declared
from ..schema.declared import UNDECLARED, Place, admitted_types

__all__ = ["Tool", "Tools"]

_NO_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `definition` is the mapping it was read from."""

    name: str
    schema: Any
    description: str
    definition: Mapping[str, Any]


class Tools:
    """The tools of a request, by name, in their order."""

    __slots__ = ("_by_name", "_conditions", "_places", "given")

    def __init__(self, tools: Iterable[Tool] | None) -> None:
        self.given = tools is not None
        self._by_name: dict[str, Tool] = {}
        self._places: dict[str, Place] = {}
        self._conditions: Declared | None = None
        for tool in tools or ():
            if tool.name in self._by_name:
                raise RequestError(f"tools: {tool.name!r} is defined twice; give every tool a name of its own")
            self._by_name[tool.name] = tool

    @classmethod
    def parse(cls, tools: Tools | Iterable[Mapping[str, Any]] | None) -> Tools:
        """Read the definitions; `RequestError` names the one that is malformed and what it should be."""
        if isinstance(tools, Tools):
            return tools
        if tools is None:
            return cls(None)
        if isinstance(tools, (str, bytes, Mapping)) or not isinstance(tools, Iterable):
            raise RequestError(f"tools must be a list of tool definitions, not {type(tools).__name__}")
        return cls([_tool(definition, f"tools[{index}]") for index, definition in enumerate(tools)])

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._by_name)

    @property
    def declared(self) -> frozenset[str] | None:
        """The declared names; None when no tools were given, so that any name passes."""
        return frozenset(self._by_name) if self.given else None

    @property
    def definitions(self) -> tuple[Tool, ...]:
        return tuple(self._by_name.values())

    def knows(self, name: str) -> bool:
        """Whether this name counts as declared."""
        return not self.given or name in self._by_name

    def schema(self, name: str) -> Any:
        """The schema of this tool's arguments; None if the tool is not known."""
        tool = self._by_name.get(name)
        return None if tool is None else tool.schema

    def place(self, name: str) -> Place:
        """The root of this tool's arguments, for typing their values."""
        tool = self._by_name.get(name)
        if tool is None:
            return UNDECLARED
        found = self._places.get(name)
        if found is None:
            found = self._places[name] = Place.of(tool.schema)
        return found

    def conditions(self) -> Declared:
        """What a grammar's conditions ask for: the names, and the keys that each schema lists at its root."""
        if self._conditions is None:
            self._conditions = Declared(tuple((tool.name, *_keys(tool.schema)) for tool in self._by_name.values()))
        return self._conditions

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name


def _tool(definition: object, where: str) -> Tool:
    if not isinstance(definition, Mapping):
        raise RequestError(f"{where} must be an object with a name and parameters, not {type(definition).__name__}")
    kind = definition.get("type", "function")
    if kind != "function":
        raise RequestError(f"{where}.type is {kind!r}; only functions can be called, leave other tools out")
    body, at = definition, where
    if "function" in definition:
        body, at = definition["function"], f"{where}.function"
        if not isinstance(body, Mapping):
            raise RequestError(f"{at} must be an object with a name and parameters, not {type(body).__name__}")
    name = body.get("name")
    if not isinstance(name, str) or not name:
        raise RequestError(f"{at}.name must be a text that is not empty, not {name!r}")
    description = body.get("description")
    return Tool(name, _schema(body, at), description if isinstance(description, str) else "", definition)


def _schema(body: Mapping[str, Any], where: str) -> Any:
    for keyword in ("parameters", "inputSchema", "input_schema"):
        schema = body.get(keyword)
        if schema is not None:
            if not isinstance(schema, (Mapping, bool)):
                hint = "; decode the JSON text first" if isinstance(schema, str) else ""
                raise RequestError(f"{where}.{keyword} must be a JSON Schema, not {type(schema).__name__}{hint}")
            return schema
    return _NO_PARAMETERS


def _keys(schema: Any) -> tuple[tuple[str, ...], frozenset[str]]:
    """The keys that a schema lists, and those of them whose value may be a string."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping):
        return (), frozenset()
    keys = tuple(key for key in properties if isinstance(key, str))
    return keys, frozenset(key for key in keys if _may_be_string(properties[key], schema))


def _may_be_string(schema: object, root: object) -> bool:
    stated = schema.get("type") if isinstance(schema, Mapping) else None
    if isinstance(stated, str):  # most say so plainly
        return stated == "string"
    types = admitted_types(schema, root)
    return types is None or "string" in types
