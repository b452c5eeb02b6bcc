"""Outside generators: tool schemas, and arguments that satisfy them.

In: a source of chance (`random.Random`, or hypothesis through the strategies at the end). Out: tool definitions over
the keywords that the oracle knows, and argument objects that `jsonschema` accepts. Nothing here looks at masks.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from .render import spellable
from .request import tool

__all__ = [
    "NoValue", "arguments_for", "outside_arguments", "plain_schema", "random_arguments", "random_schema", "random_text",
    "random_tool", "random_tools", "tool_definitions", "tools_and_arguments",
]  # fmt: skip

KEYS = ("a", "b", "city", "filePath", "x_1", "limit", "Name", "n", "units", "a-b")
ODD_KEYS = (*KEYS, "c d", "ключ", "k.v", "$x")
NAMES = ("f", "get_weather", "search", "fs.read", "add-item", "F2")
LETTERS = "abcXYZ 012-_.,:;{}[]()<>|/\\\"'`\n\té漢😀=&%"
PIECES = (
    "<", "<|", "<b>", "</", "</atem:", "</atem:parameter", "<tool_call", "<|tool", '<|"', "|>", "[[", "]]", "[[s]",
    "call:", "null", "true", "42", "-1.5", '"q"', "[1]", '{"a": 1}', "thought\n", " to=user", "\r\n", "\u2028", "\x00",
    "\x7f", "ﬃ",
)  # fmt: skip
WHOLE = (
    "42", "null", " true ", '"q"', "[1, 2]", '{"a": null}', "1e5", "-0", "1e999", "a</atem:parameter>b",
    "</atem:invoke>", 'x<|"|>', "<tool_call|>", "<|eot|>", "[[/s]]", "<|channel>",
    "[[call]]f()[[/call]]", "thought\n<channel|>", "<eos>",
)  # fmt: skip
PATTERNS: tuple[tuple[str, Callable[[random.Random], str]], ...] = (
    (r"^[a-z]+$", lambda r: "".join(r.choices("abcxyz", k=r.randint(1, 6)))),
    (r"^\d{4}-\d{2}-\d{2}$", lambda r: f"{r.randint(1000, 9999)}-{r.randint(10, 12)}-{r.randint(10, 28)}"),
    (r"^on$|^off$", lambda r: r.choice(("on", "off"))),
    (r"\S", lambda r: random_text(r) + "x" + random_text(r)),
    (r"^p_\S+$", lambda r: "p_" + "".join(r.choices("ab<|é\\", k=r.randint(1, 4)))),
    (r"^(?:[A-Z]{2,3}|\w+@\w+\.com)$", lambda r: r.choice(("AB", "XYZ", "me@b1.com"))),
    (r"^.{1,4}$", lambda r: "".join(r.choices("aé漢😀<|", k=r.randint(1, 4)))),
    (r"[^a-c]$", lambda r: random_text(r) + r.choice("dé\n<")),
    (r"^$", lambda r: ""),
)
_MAKERS = dict(PATTERNS)


class NoValue(Exception):
    """No value was found: the schema may accept none."""


def random_text(rng: random.Random, least: int = 0, most: int | None = None) -> str:
    """Text that is unkind to formats: parts of markers, quotes, escapes, wide characters."""
    if most is None and least == 0 and rng.random() < 0.35:
        return rng.choice(WHOLE)
    text = ""
    size = rng.choice((0, 1, 2, 5, 12)) if most is None else rng.randint(least, most)
    while len(text) < max(size, least):
        text += rng.choice(PIECES) if rng.random() < 0.2 else rng.choice(LETTERS)
    return text[: max(size, least)]


# Schemas


def random_schema(rng: random.Random, depth: int = 2, references: tuple[str, ...] = ()) -> dict[str, Any]:
    """One value's schema; containers and unions only while `depth` lasts."""
    kinds = ["string", "string", "integer", "number", "boolean", "null", "enum", "const"]
    kinds += ["array", "object", "anyOf", "types", "free"] if depth > 0 else []
    kinds += ["$ref"] if references and depth > 0 else []
    return _schema_of(rng.choice(kinds), rng, depth, references)


def _schema_of(kind: str, rng: random.Random, depth: int, references: tuple[str, ...]) -> dict[str, Any]:
    if kind == "string":
        return _string_schema(rng)
    if kind in ("integer", "number"):
        return _number_schema(kind, rng)
    if kind == "enum":
        return {
            "enum": rng.sample(
                [None, True, 1, -7, 2.5, "x", "y z", 'say "hi"\\n', "é😀", "", "x1"], k=rng.randint(1, 5)
            )
        }
    if kind == "const":
        return {"const": rng.choice(["only", 3, False, None, "a<b"])}
    if kind == "array":
        return _array_schema(rng, depth, references)
    if kind == "object":
        return _object_schema(rng, depth - 1, references)
    if kind == "anyOf":
        return {"anyOf": [random_schema(rng, depth - 1, references) for _ in range(rng.randint(2, 3))]}
    if kind == "types":
        return {"type": rng.sample(["string", "integer", "boolean", "null", "number"], k=rng.randint(1, 3))}
    if kind == "free":
        return rng.choice(({"type": "object"}, {"type": "array"}))
    return {"$ref": rng.choice(references)} if kind == "$ref" else {"type": kind}


def _string_schema(rng: random.Random) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    form = rng.random()
    if form < 0.3:
        low = rng.randint(0, 3)
        schema |= {"minLength": low} if rng.random() < 0.5 else {}
        schema |= {"maxLength": low + rng.randint(0, 4)} if rng.random() < 0.7 else {}
    elif form < 0.5:
        schema["pattern"] = rng.choice(PATTERNS)[0]
        schema |= {"maxLength": rng.randint(4, 12)} if rng.random() < 0.3 else {}
    elif form < 0.7:
        schema["enum"] = rng.sample(["c", "celsius", "f", "a b", "null", "42", "<b>", "漢"], k=rng.randint(1, 4))
    if rng.random() < 0.05:
        schema["nullable"] = "enum" not in schema
    return schema


def _number_schema(kind: str, rng: random.Random) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": kind}
    if kind == "integer" and rng.random() < 0.5:
        low = rng.randint(-200, 200)
        schema |= {rng.choice(("minimum", "exclusiveMinimum")): low} if rng.random() < 0.7 else {}
        schema |= (
            {rng.choice(("maximum", "exclusiveMaximum")): low + rng.randint(2, 3000)} if rng.random() < 0.7 else {}
        )
    return schema


def _array_schema(rng: random.Random, depth: int, references: tuple[str, ...]) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "array", "items": random_schema(rng, depth - 1, references)}
    low = rng.randint(0, 2)
    schema |= {"minItems": low} if rng.random() < 0.4 else {}
    schema |= {"maxItems": low + rng.randint(0, 2)} if rng.random() < 0.4 else {}
    return schema


def _object_schema(
    rng: random.Random, depth: int, references: tuple[str, ...] = (), keys: tuple[str, ...] = KEYS, most: int = 4
) -> dict[str, Any]:
    chosen = rng.sample(keys, k=rng.randint(0 if depth >= 2 else 1, most))
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {key: random_schema(rng, depth, references) for key in chosen},
    }
    required = [key for key in chosen if rng.random() < 0.5]
    schema |= {"required": required} if required else {}
    schema |= {"additionalProperties": rng.random() < 0.5} if rng.random() < 0.4 else {}
    return schema


def random_tool(
    rng: random.Random, name: str | None = None, *, depth: int = 2, odd_keys: bool = False
) -> dict[str, Any]:
    """A tool definition in the Chat Completions shape, sometimes with recursive definitions."""
    recursive = rng.random() < 0.25
    references = ("#/$defs/node", "#/$defs/list") if recursive else ()
    schema = _object_schema(rng, depth, references, ODD_KEYS if odd_keys else KEYS)
    if recursive:
        node = {
            "type": "object",
            "properties": {"v": _string_schema(rng), "next": {"$ref": "#/$defs/list"}},
            "required": ["v"],
        }
        schema["$defs"] = {"node": node, "list": {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 2}}
    return tool(name or rng.choice(NAMES), schema)


def random_tools(rng: random.Random, count: int, *, depth: int = 2, odd_keys: bool = False) -> list[dict[str, Any]]:
    names = rng.sample(NAMES, k=count)
    return [random_tool(rng, name, depth=depth, odd_keys=odd_keys) for name in names]


# Values


def plain_schema(schema: Any) -> Any:
    """The schema with `nullable`, which validators do not know, said in their words."""
    if isinstance(schema, list):
        return [plain_schema(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    plain = {key: plain_schema(value) for key, value in schema.items()}
    if plain.pop("nullable", None) is True and isinstance(plain.get("type"), str):
        plain["type"] = [plain["type"], "null"]
    return plain


def arguments_for(schema: Mapping[str, Any], rng: random.Random, tries: int = 30) -> dict[str, Any]:
    """An object that the schema accepts, judged by `jsonschema`."""
    validator = Draft202012Validator(plain_schema(schema))
    for attempt in range(tries):
        try:
            value = _value(schema, schema, rng, 4 if attempt < tries // 2 else 1)
        except NoValue:
            continue
        if isinstance(value, dict) and validator.is_valid(value):
            return value
    raise NoValue


def random_arguments(definition: Mapping[str, Any], name: str, rng: random.Random, tries: int = 30) -> dict[str, Any]:
    """Arguments of a tool that a format can write."""
    schema = definition["function"]["parameters"]
    for _ in range(tries):
        arguments = arguments_for(schema, rng)
        if spellable(arguments, name, schema):
            return arguments
    raise NoValue


def _value(schema: Mapping[str, Any], document: Mapping[str, Any], rng: random.Random, depth: int) -> Any:
    if "$ref" in schema:
        place: Any = document
        for step in schema["$ref"].split("/")[1:]:
            place = place[step]
        return _value(place, document, rng, depth - 1)
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return _value(rng.choice(schema[key]), document, rng, depth)
    if "enum" in schema or "const" in schema:
        return rng.choice(schema["enum"]) if "enum" in schema else schema["const"]
    declared = schema.get("type", ["string", "integer", "boolean", "null", "number", "array", "object"])
    kind = declared if isinstance(declared, str) else rng.choice(declared)
    if schema.get("nullable") and rng.random() < 0.3:
        kind = "null"
    return _value_of(kind, schema, document, rng, depth)


def _value_of(kind: str, schema: Mapping[str, Any], document: Mapping[str, Any], rng: random.Random, depth: int) -> Any:
    if kind == "null":
        return None
    if kind == "boolean":
        return rng.random() < 0.5
    if kind == "string":
        if "pattern" in schema:
            return _MAKERS[schema["pattern"]](rng)
        low = schema.get("minLength", 0)
        return random_text(rng, low, schema.get("maxLength", low + 9 if low else None))
    if kind in ("integer", "number"):
        return _number(kind, schema, rng)
    if depth <= 0:
        raise NoValue
    return _array(schema, document, rng, depth) if kind == "array" else _object(schema, document, rng, depth)


def _number(kind: str, schema: Mapping[str, Any], rng: random.Random) -> int | float:
    bounds = any(key in schema for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"))
    if kind == "number" and not bounds and rng.random() < 0.7:
        return rng.choice((0.5, -1.25, 1.0, 1e-07, 1e22, 2.5e-10, rng.random() * 10 ** rng.randint(-5, 5)))
    if not bounds and rng.random() < 0.3:
        return rng.choice((0, 7, -1, 10**25, -(2**63)))
    low = schema.get(
        "minimum", schema.get("exclusiveMinimum", schema.get("maximum", schema.get("exclusiveMaximum", 50)) - 100)
    )
    high = schema.get("maximum", schema.get("exclusiveMaximum", low + 5000))
    return rng.randint(low, max(low, high))


def _array(schema: Mapping[str, Any], document: Mapping[str, Any], rng: random.Random, depth: int) -> list[Any]:
    low = schema.get("minItems", 0)
    size = rng.randint(low, schema.get("maxItems", low + 3))
    items = schema.get("items", {})
    found: list[Any] = []
    for _ in range(size):
        try:
            found.append(_value(items, document, rng, depth - 1))
        except NoValue:
            if len(found) < low:
                raise
            break
    return found


def _object(schema: Mapping[str, Any], document: Mapping[str, Any], rng: random.Random, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "properties" not in schema:
        for key in rng.sample(KEYS, k=rng.randint(0, 3)):
            found[key] = _value(schema.get("additionalProperties", {}), document, rng, depth - 1)
        return found
    keys = list(schema["properties"])
    rng.shuffle(keys)
    for key in keys:
        needed = key in schema.get("required", ())
        if needed or rng.random() < 0.6:
            try:
                found[key] = _value(schema["properties"][key], document, rng, depth - 1)
            except NoValue:
                if needed:
                    raise
    return found


# Strategies


@st.composite
def tool_definitions(draw: st.DrawFn, *, depth: int = 2, odd_keys: bool = False) -> dict[str, Any]:
    """A random tool; shrinks through the choices of its generator."""
    return random_tool(draw(st.randoms(use_true_random=False)), depth=depth, odd_keys=odd_keys)


@st.composite
def tools_and_arguments(draw: st.DrawFn, name: str, *, depth: int = 2) -> tuple[dict[str, Any], dict[str, Any]]:
    """A tool, and arguments for it that the format can write."""
    rng = draw(st.randoms(use_true_random=False))
    definition = random_tool(rng, depth=depth, odd_keys=name != "runes")
    try:
        return definition, random_arguments(definition, name, rng, tries=5)
    except NoValue:
        assume(False)
        raise


def outside_arguments(schema: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    """Values drawn by `hypothesis-jsonschema`, someone else's reading of the schema: its scalars, our containers."""
    from hypothesis_jsonschema import from_schema

    if "anyOf" in schema:
        return st.one_of([outside_arguments(branch) for branch in schema["anyOf"]])
    if schema.get("type") == "object" and "properties" in schema:
        drawn = {key: outside_arguments(child) for key, child in schema["properties"].items()}
        needed = {key: drawn.pop(key) for key in schema.get("required", ())}
        return st.fixed_dictionaries(needed, optional=drawn)
    if schema.get("type") == "array" and "items" in schema:
        items = outside_arguments(schema["items"])
        return st.lists(items, min_size=schema.get("minItems", 0), max_size=schema.get("maxItems"))
    found: st.SearchStrategy[Any] = from_schema(plain_schema(schema))
    return found
