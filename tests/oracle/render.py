"""Canonical texts: what each format's own template writes for calls and turns, and what it cannot write.

In: Python values. Out: text, markers spelt out. Written from the formats' descriptions, apart from the matcher and the
engine, so that the three can be compared.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import atem, gemma4, runes
from .patterns import Machine, pattern

__all__ = ["admitted_types", "render_call", "render_turn", "render_value", "spellable"]

Call = tuple[str, Mapping[str, Any]]
_FIRST_KEYS: dict[str, Machine] = {
    "gemma4": gemma4.key_shape(" \t\n\r\f\v"),
    "runes": runes.KEY,
    "atem": pattern('^[^"<>]+$'),
}


def _words(words: Sequence[str], string: Callable[[str], str], value: Any) -> str | None:
    """Scalars, which differ only in the words for null, true and false."""
    if value is None or isinstance(value, bool):
        return words[0 if value is None else 1 if value else 2]
    if isinstance(value, str):
        return string(value)
    return repr(value) if isinstance(value, int | float) else None


def _gemma4_value(value: Any, sort: bool) -> str:
    text = _words(("null", "true", "false"), lambda body: f'<|"|>{body}<|"|>', value)
    if text is not None:
        return text
    if isinstance(value, Mapping):
        keys = sorted(value, key=lambda key: key.lower()) if sort else list(value)
        return "{" + ",".join(f"{key}:{_gemma4_value(value[key], sort)}" for key in keys) + "}"
    return "[" + ",".join(_gemma4_value(item, sort) for item in value) + "]"


def _runes_value(value: Any) -> str:
    text = _words(("nil", "yes", "no"), lambda body: f"[[s]]{body}[[/s]]", value)
    if text is not None:
        return text
    if isinstance(value, Mapping):
        return "(" + "; ".join(f"{key}={_runes_value(item)}" for key, item in value.items()) + ")"
    return "<" + " | ".join(map(_runes_value, value)) + ">"


def render_value(name: str, value: Any, *, sort: bool = True) -> str:
    """One value as it stands directly in the arguments. `sort` orders keys where the format's template does."""
    if name == "gemma4":
        return _gemma4_value(value, sort)
    if name == "runes":
        return _runes_value(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def render_call(name: str, tool: str, arguments: Mapping[str, Any], *, sort: bool = True) -> str:
    """One call, without the header that a message of the tagged format has."""
    if name == "gemma4":
        return f"<|tool_call>call:{tool}{render_value(name, arguments, sort=sort)}<tool_call|>"
    if name == "runes":
        return f"[[call]]{tool}{render_value(name, arguments)}[[/call]]"
    members = [f'<atem:parameter name="{k}">{render_value(name, v)}</atem:parameter>\n' for k, v in arguments.items()]
    invoke = f'<atem:invoke name="{tool}">\n{"".join(members)}</atem:invoke>\n'
    return f"<atem:function_calls>\n{invoke}</atem:function_calls>"


def render_turn(
    name: str,
    calls: Sequence[Call] = (),
    *,
    reasoning: str | None = None,
    content: str | None = None,
    sort: bool = True,
) -> str:
    """What a model writes from the end of its prompt to its stop token, which is left out."""
    spelt = [render_call(name, tool, arguments, sort=sort) for tool, arguments in calls]
    if name != "atem":
        opener, closer = {"gemma4": ("<|channel>thought\n", "<channel|>"), "runes": ("[[think]]", "[[/think]]")}[name]
        thought = "" if reasoning is None else opener + reasoning + closer
        return thought + (content or "") + "".join(spelt)
    messages = [] if reasoning is None else [("self", reasoning)]
    messages += [(tool, text) for (tool, _), text in zip(calls, spelt, strict=True)]
    if content is not None:
        messages.append(("user", content))
    return "<|eom|><|start|>assistant".join(f" to={to}<|message|>{body}" for to, body in messages)


def _plain(text: str, needles: Sequence[str]) -> bool:
    return not any(0xD800 <= ord(char) <= 0xDFFF for char in text) and not any(needle in text for needle in needles)


def _number(value: float) -> bool:
    return math.isfinite(value) and len(repr(value).rpartition("e")[2].lstrip("+-")) <= (
        2 if "e" in repr(value) else 999
    )


def _fits(name: str, value: Any) -> bool:
    """Whether a value can stand below the arguments (for the tagged format: inside JSON)."""
    if value is None or isinstance(value, bool | int):
        return True
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, str):
        text = json.dumps(value, ensure_ascii=False) if name == "atem" else value
        return _plain(text, _needles(name))
    if isinstance(value, Mapping):
        return all((_fits(name, k) if name == "atem" else _key(name, k)) and _fits(name, v) for k, v in value.items())
    return all(_fits(name, item) for item in value)


def _needles(name: str) -> tuple[str, ...]:
    return {"gemma4": gemma4.MARKERS, "runes": runes.MARKERS, "atem": (*atem.MARKERS, *atem.CLOSERS)}[name]


def _key(name: str, key: str) -> bool:
    return _FIRST_KEYS[name].matches(key) and _plain(key, _needles(name))


def admitted_types(schema: Any, document: Any) -> frozenset[str] | None:
    """The JSON types that a schema names; None if it leaves the type open. References are followed once."""
    if not isinstance(schema, Mapping):
        return None
    if "$ref" in schema:
        place = document
        for step in schema["$ref"].split("/")[1:]:
            place = place[step]
        return admitted_types(place, document)
    for key in ("anyOf", "oneOf"):
        if key in schema:
            parts = [admitted_types(branch, document) for branch in schema[key]]
            return None if None in parts else frozenset().union(*(part for part in parts if part))
    if "enum" in schema or "const" in schema:
        members = schema["enum"] if "enum" in schema else [schema["const"]]
        return frozenset(atem.reads_as(json.dumps(member)) or "string" for member in members)
    declared = schema.get("type")
    if declared is None:
        return None
    null = ["null"] if schema.get("nullable") else []
    return frozenset([declared] if isinstance(declared, str) else declared) | frozenset(null)


def _reads_back(text: str, schema: Any, document: Any) -> bool:
    """Whether raw text under a schema is read as the string it is."""
    types = admitted_types(schema, document)
    kind = atem.reads_as(text)
    if kind is None or types == frozenset({"string"}):
        return True
    if types is None:
        return False
    return kind == "string" or (kind not in types and not (kind == "integer" and "number" in types))


def spellable(arguments: Mapping[str, Any], name: str, schema: Any = None) -> bool:
    """Whether a format can write these arguments so that they read back the same under the tool's schema."""
    if name != "atem":
        return _fits(name, arguments)
    properties = schema.get("properties", {}) if isinstance(schema, Mapping) else {}
    for key, value in arguments.items():
        if not _key(name, key):
            return False
        if isinstance(value, str):
            if not _plain(value, _needles(name)) or not _reads_back(value, properties.get(key), schema):
                return False
        elif not _fits(name, value):
            return False
    return True
