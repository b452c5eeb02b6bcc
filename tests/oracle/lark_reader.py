"""A second oracle: Lark reads a grammar file and a text; the tree becomes a neutral reading by its role names.

In: the path of a `.lark` file and a whole output (markers spelt out). Out: content, reasoning and calls. Lark knows
nothing of tokens, bytes or streams; it judges whole texts of up to about a thousand characters, canonical or with few
deviations. Roles that an imported file brings are named `file__role`. Directives say what Lark cannot see: whether
values are raw text typed by the schema (`casts raw`) and whose strings have escapes (`escapes json`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput

from .atem import reads_as
from .render import admitted_types

__all__ = ["Reading", "read"]

_TEXT_ROLES = ("reasoning", "content")


@dataclass(frozen=True)
class Reading:
    content: str | None
    reasoning: str | None
    calls: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class _Source:
    parser: Lark
    raw: bool
    escaped: frozenset[str]  # prefixes of the imported roles whose strings have JSON's escapes


@lru_cache(maxsize=8)
def _source(path: Path, start: str) -> _Source:
    directives = _directives(path)
    escaped = frozenset(
        f.stem + "__" for f in path.parent.glob("*.lark") if f != path and "escapes json" in _directives(f)
    )
    parser = Lark.open(
        str(path), start=start, parser="earley", ambiguity="resolve", propagate_positions=True, maybe_placeholders=False
    )
    return _Source(parser, "casts raw" in directives, escaped)


def _directives(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line[3:].strip() for line in lines if line.startswith("//@")]


def read(path: Path, text: str, *, start: str, tools: Sequence[Mapping[str, Any]] | None = None) -> Reading | None:
    """The grammar's reading of a text, or None if it has none."""
    source = _source(path, start)
    try:
        tree = source.parser.parse(text)
    except UnexpectedInput:
        return None
    return _Reader(source, text, tools or ()).reading(tree)


def _role(node: Tree[Token]) -> str:
    return str(node.data).rpartition("__")[2]


class _Reader:
    def __init__(self, source: _Source, text: str, tools: Sequence[Mapping[str, Any]]) -> None:
        self.source, self.text = source, text
        self.schemas = {t["function"]["name"]: t["function"].get("parameters", {}) for t in tools}

    def reading(self, tree: Tree[Token]) -> Reading:
        found: dict[str, list[str]] = {role: [] for role in _TEXT_ROLES}
        calls = []
        for node in self._outer(tree):
            if _role(node) == "tool_call":
                calls.append(self._call(node))
            else:
                found[_role(node)].append(_text_of(node))
        content, reasoning = "".join(found["content"]), "\n".join(found["reasoning"])
        return Reading(content or None, reasoning or None, tuple(calls))

    def _outer(self, node: Tree[Token]) -> Iterator[Tree[Token]]:
        """The outermost nodes with a role of the turn, in order."""
        if _role(node) in (*_TEXT_ROLES, "tool_call"):
            yield node
            return
        for child in node.children:
            if isinstance(child, Tree):
                yield from self._outer(child)

    def _call(self, node: Tree[Token]) -> tuple[str, Any]:
        name = _text_of(next(node.find_pred(lambda each: _role(each) == "tool_name")))
        body = next(each for each in node.children if isinstance(each, Tree) and _role(each) in ("object", "arguments"))
        schema = self.schemas.get(name)
        return name, self._members(body, schema, schema, top=self.source.raw)

    def _members(self, node: Tree[Token], schema: Any, document: Any, *, top: bool) -> dict[str, Any]:
        found = {}
        for member in node.children:
            assert isinstance(member, Tree)
            key, *rest = member.children
            assert isinstance(key, Tree)
            name = _text_of(key)
            if any(str(key.data).startswith(prefix) for prefix in self.source.escaped):
                name = json.loads(f'"{name}"')
            parts = [part for part in rest if isinstance(part, Tree)]
            if top:
                properties = schema.get("properties", {}) if isinstance(schema, Mapping) else {}
                found[name] = self._typed(parts, properties.get(name), document)
            else:
                found[name] = self._value(parts[0])
        return found

    def _typed(self, parts: list[Tree[Token]], schema: Any, document: Any) -> Any:
        """A value that stands as raw text: JSON of a type that the schema admits is that, all else is a string."""
        raw = ""
        if parts and not parts[0].meta.empty:
            raw = self.text[parts[0].meta.start_pos : parts[0].meta.end_pos]
        types, kind = admitted_types(schema, document), reads_as(raw)
        admitted = types is None or kind in types or (kind == "integer" and "number" in types)
        return json.loads(raw) if kind is not None and admitted and types != frozenset({"string"}) else raw

    def _value(self, node: Tree[Token]) -> Any:
        role = _role(node)
        if role == "string":
            text = _text_of(node)
            escaped = any(str(node.data).startswith(prefix) for prefix in self.source.escaped)
            return json.loads(f'"{text}"', strict=False) if escaped else text
        if role in ("true", "false", "null"):
            return {"true": True, "false": False, "null": None}[role]
        if role in ("number", "bare"):
            text = _text_of(node)
            return json.loads(text) if reads_as(text) else text
        if role == "array":
            return [self._value(child) for child in node.children if isinstance(child, Tree)]
        return self._members(node, None, None, top=False)


def _text_of(node: Tree[Token]) -> str:
    return "".join(str(token) for token in node.scan_values(lambda _: True))
