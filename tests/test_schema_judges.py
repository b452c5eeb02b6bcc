"""Schemas and outside judges.

The texts of an expression are drawn at random, read back and judged by `jsonschema`; and the expression is walked side
by side with the oracle, which knows the formats from their descriptions alone.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests import oracle
from tests.oracle import atem, matcher
from tests.oracle.generate import NoValue, plain_schema, random_arguments, random_tool
from tests.oracle.render import admitted_types
from tests.oracle.schema_oracle import Values
from tests.spelt import FORMATS, INT, NULL, SPELLINGS, STR, Format, arr, each_format, obj
from twingram.automaton.machine import State
from twingram.errors import SchemaError
from twingram.schema.report import CompiledSchema


def bits(number: int) -> Iterator[int]:
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest


CLOSING = '</atem:parameter>\n"]}),;|0'


class Walk:
    """A random text of an expression, symbol by symbol, with an end in sight."""

    def __init__(self, fmt: Format, compiled: CompiledSchema, rng: random.Random) -> None:
        self.fmt, self.rng = fmt, rng
        self.state = fmt.machine(compiled).start
        self.symbols: list[int] = []

    def choices(self) -> list[int]:
        return list(bits(self.state.first))

    def choose(self, hurry: bool) -> int:
        choices = self.choices()
        if hurry:
            sample = [symbol for symbol in choices if symbol > 255 or chr(symbol) in CLOSING]
            sample += self.rng.sample(choices, min(len(choices), 5))
            return min(sample, key=lambda symbol: self.after(symbol).shortest)
        plain = [symbol for symbol in choices if 32 <= symbol < 127 or symbol > 255]
        return self.rng.choice(plain if plain and self.rng.random() < 0.8 else choices)

    def after(self, symbol: int) -> State:
        step = self.state.step(symbol)
        assert step is not None
        return step.state

    def step(self, symbol: int) -> None:
        self.symbols.append(symbol)
        self.state = self.after(symbol)

    def text(self) -> str:
        markers = self.fmt.grammar.markers
        parts = [bytes((s,)) if s < 256 else markers[s - 256].encode() for s in self.symbols]
        return b"".join(parts).decode("utf-8", "replace")

    def finish(self, steps: int) -> str:
        while not (self.state.accepting and (len(self.symbols) > steps or not self.state.first)):
            self.step(self.choose(len(self.symbols) > steps))
            assert len(self.symbols) < 50 * steps + 5000
        return self.text()


SIGNS = {
    "gemma4": ("{", "}", ",", ":", "[", "]", ",", '<|"|>', '<|"|>'),
    "runes": ("(", ")", "; ", "=", "<", ">", " | ", "[[s]]", "[[/s]]"),
}
WORDS = {
    "gemma4": {"true": True, "false": False, "null": None},
    "runes": {"yes": True, "no": False, "nil": None},
}


class Reader:
    """Reads the values of the two bracketed formats."""

    def __init__(self, name: str, text: str) -> None:
        self.text, self.at, self.words = text, 0, WORDS[name]
        self.open, self.close, self.comma, self.colon, *rest = SIGNS[name]
        self.first, self.last, self.bar, self.quote, self.end = rest

    def take(self, sign: str) -> bool:
        if self.text.startswith(sign, self.at):
            self.at += len(sign)
            return True
        return False

    def upto(self, sign: str) -> str:
        begin, self.at = self.at, self.text.index(sign, self.at) + len(sign)
        return self.text[begin : self.at - len(sign)]

    def value(self) -> Any:
        if self.take(self.quote):
            return self.upto(self.end)
        if self.take(self.open):
            found: dict[str, Any] = {}
            while not self.take(self.close):
                assert not found or self.take(self.comma)
                key = self.upto(self.colon)
                assert key not in found or not key, key
                found[key] = self.value()
            return found
        if self.take(self.first):
            items: list[Any] = []
            while not self.take(self.last):
                assert not items or self.take(self.bar)
                items.append(self.value())
            return items
        for word, value in self.words.items():
            if self.take(word):
                return value
        number = re.compile(r"-?[0-9][0-9.eE+-]*").match(self.text, self.at)
        assert number, self.text[self.at :]
        self.at = number.end()
        return json.loads(number[0])


def read(name: str, text: str, schema: Any) -> dict[str, Any]:
    if name != "atem":
        reader = Reader(name, text)
        value = reader.value()
        assert reader.at == len(text)
        return value  # type: ignore[no-any-return]
    found = {}
    for key, body in re.findall(r'<atem:parameter name="([^"]*)">(.*?)</atem:parameter>\n', text, re.DOTALL):
        types = admitted_types(schema["properties"][key], schema)
        kind = atem.reads_as(body)
        typed = (
            kind is not None
            and kind != "string"
            and (types is None or kind in types or (kind, "number") == ("integer", *types & {"number"}))
        )
        assert key not in found
        found[key] = json.loads(body) if typed else body
        assert typed or types is None or "string" in types
    return found


MORE: list[Any] = [
    obj({"p": {"type": "number", "minimum": -1.5, "exclusiveMaximum": 2}, "q": {"type": "integer", "multipleOf": 3}}),
    obj({"p": arr(prefixItems=[NULL, STR], items={"type": "integer", "minimum": 7}, minItems=1)}),
    obj({"p": {"oneOf": [NULL, obj({"k": {"const": "v"}}, "k", additionalProperties=False)]}}, "p"),
    obj({"p": {"allOf": [{"properties": {"a": INT}}, obj({"a": {"maximum": 0}, "b": NULL}, "a")]}}, "p"),
    obj({"p": {"enum": [[1, {"a": None}], {"k": [], "l": "x"}, 2.5, "t"]}}, "p"),
    obj({"p": {"type": ["string", "null", "number"], "maxLength": 3, "minimum": 10}}, "p"),
    obj(
        {
            "p": {"type": "string", "pattern": "^(?:[a-f]{2}-?){2,3}$"},
            "q": {"type": "string", "minLength": 2, "maxLength": 3},
        },
        "p",
        "q",
    ),
    obj({"p": {"type": ["string", "integer"]}, "q": {"type": ["string", "boolean", "null"]}}, "p", "q"),
    obj(
        {
            "p": {
                "anyOf": [
                    arr(items={"$ref": "#/properties/p"}, maxItems=2),
                    {"type": "integer", "minimum": 0, "maximum": 9},
                ]
            }
        },
        "p",
    ),
]


@each_format
def test_what_is_written_validates(name: str) -> None:
    """Random texts, read back by code that knows the format only, satisfy the schema for an outside validator."""
    fmt = FORMATS[name]
    rng = random.Random(7)
    schemas = MORE + [random_tool(rng)["function"]["parameters"] for _ in range(25)]
    judged = 0
    for schema in schemas:
        if "additionalProperties" in schema and not schema["properties"]:
            continue
        validator = Draft202012Validator(plain_schema(schema))
        try:
            compiled = fmt.compile(schema)
        except SchemaError:
            continue
        if any(f.status == "relaxed" for f in compiled.findings):
            continue
        for _ in range(3):
            text = Walk(fmt, compiled, rng).finish(rng.choice((5, 40, 120)))
            validator.validate(read(name, text, schema))
            judged += 1
    assert judged > 40


def oracle_state(name: str, schema: Any, options: dict[str, Any]) -> matcher.OracleState | None:
    names = {"additional_properties": "additional"}
    chosen = {names.get(key, key): value for key, value in options.items()}
    space = "".join(char for char in map(chr, range(256)) if char.isspace())
    definition = {"name": "f", "parameters": schema}
    request = oracle.make_request([definition], "required", untyped_json_string=True, key_space=space, **chosen)
    values = Values(schema, SPELLINGS[name](request), request)
    return matcher.start((values.value(values.root, "root"),)) if values.satisfiable else None


def in_step(name: str, schema: Any, options: dict[str, Any], rng: random.Random, steps: int = 50) -> None:
    """Walk expression and oracle side by side; both allow the same symbols and end at the same places."""
    fmt, judge = FORMATS[name], oracle_state(name, schema, options)
    try:
        compiled = fmt.compile(schema, **options)
    except SchemaError:
        assert judge is None
        return
    assert judge is not None
    walk = Walk(fmt, compiled, rng)
    every = [*range(256), *(256 + k for k in range(len(fmt.grammar.markers)))]

    def judged(symbol: int) -> matcher.OracleState | None:
        return judge.advance(symbol if symbol < 256 else fmt.grammar.markers[symbol - 256])

    for count in range(steps):
        assert walk.state.accepting == judge.can_end, walk.text()
        choices = walk.choices()
        for symbol in rng.sample(choices, min(len(choices), 4)) + rng.sample(every, 10):
            allowed = walk.state.step(symbol) is not None
            assert allowed == (judged(symbol) is not None), (walk.text(), symbol, allowed)
        if not choices:
            return
        symbol = walk.choose(count > 0.6 * steps)
        judge = judged(symbol)
        walk.step(symbol)


@each_format
@pytest.mark.parametrize("seed", range(14))
def test_in_step_with_the_oracle(name: str, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(2):
        schema = random_tool(rng, odd_keys=name != "runes")["function"]["parameters"]
        if not schema["properties"]:
            continue  # whether an empty list lists anything is a choice of its own
        options = rng.choice(
            [{}, {}, {"key_order": "sorted"}, {"key_order": "declared"}, {"additional_properties": "schema"}]
        )
        try:
            in_step(name, schema, options, rng)
        except oracle.Unsupported:
            continue


@each_format
def test_valid_arguments_are_accepted(name: str) -> None:
    rng = random.Random(3)
    for _ in range(40):
        definition = random_tool(rng, odd_keys=name != "runes")
        try:
            arguments = random_arguments(definition, name, rng, tries=5)
            compiled = FORMATS[name].compile(definition["function"]["parameters"])
        except (NoValue, SchemaError):
            continue
        assert FORMATS[name].admits(compiled, arguments), arguments
