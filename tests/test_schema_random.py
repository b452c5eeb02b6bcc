"""Random schemas that mix all keywords, against an outside validator.

Each schema is compiled as an answer, so that its texts are plain JSON. Values from a small universe that knows nothing
of our masks are judged by `jsonschema`: a valid one is accepted unless the report says narrowed, an invalid one refused
unless it says relaxed. Walks through the expression validate, again unless something is relaxed. The number of schemas
comes from the environment (`TWINGRAM_SCHEMAS`).
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from twingram.automaton.machine import Machine, State
from twingram.errors import LimitExceeded, SchemaError
from twingram.grammar.alphabet import Alphabet
from twingram.grammar.answer import AnswerPlace
from twingram.grammar.compile import Compiler, Reading
from twingram.grammar.source import load_file
from twingram.limits import Limits
from twingram.resources import grammar_path
from twingram.schema.compiler import SchemaOptions, compile_value
from twingram.schema.report import CompiledSchema

FEW = int(os.environ.get("TWINGRAM_SCHEMAS", "40"))
NAMES = ("a", "b", "ab", "c")
TEXTS = ("", "a", "b", "ab", "aab", "é", "1", "null")
NUMBERS = (0, 1, 2, 3, -1, 6, 0.5, 1.5, 2.25, -0.5, 10)
TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
OPTIONS = SchemaOptions(additional_properties="schema", limits=Limits(automaton_states=4000))

GRAMMAR = load_file(grammar_path("gemma4"))
PLACE = AnswerPlace.of(Compiler(GRAMMAR, Alphabet.of(GRAMMAR.markers), Reading.MASK))
assert PLACE is not None
SPELLING = PLACE.spelling


class Schemas:
    """Draws schemas. One definition may be referred to, also from below itself, but not from its own place: a reference
    that leads back to itself says nothing, and the validator would follow it for ever."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.refers = rng, True

    def document(self) -> Any:
        schema = self.schema(3)
        if isinstance(schema, dict) and "#/$defs/d" in json.dumps(schema):
            self.refers = False
            schema["$defs"] = {"d": self.schema(2)}
        return schema

    def child(self, depth: int) -> Any:
        """A schema for a value below the one at hand."""
        before, self.refers = self.refers, True
        found = self.schema(depth)
        self.refers = before
        return found

    def schema(self, depth: int) -> Any:
        rng = self.rng
        if rng.random() < 0.07:
            return rng.random() < 0.7
        found: dict[str, Any] = {}
        kinds = rng.sample(TYPES, rng.choice((1, 1, 1, 2)))
        if rng.random() < 0.75:
            found["type"] = kinds if len(kinds) > 1 else kinds[0]
        for kind in kinds:
            if rng.random() < 0.8:
                found |= getattr(self, f"of_{kind}", dict)(*([depth] if kind in ("array", "object") else []))
        if depth and rng.random() < 0.4:
            found |= self.combined(depth - 1)
        if rng.random() < 0.12:
            found |= self.listed()
        return found

    def some(self, **ways: Any) -> dict[str, Any]:
        """One to three of the keywords."""
        names = self.rng.sample(list(ways), min(len(ways), self.rng.choice((1, 1, 2, 3))))
        return {name: ways[name]() for name in names}

    def listed(self) -> dict[str, Any]:
        rng = self.rng
        if rng.random() < 0.5:
            return {"const": value(rng, 1)}
        return {"enum": [value(rng, 1) for _ in range(rng.choice((1, 2, 4)))]}

    def of_integer(self) -> dict[str, Any]:
        rng = self.rng
        return self.some(
            minimum=lambda: rng.choice((-1, 0, 1, 1.5)), maximum=lambda: rng.choice((0, 2, 3, 10)),
            exclusiveMinimum=lambda: rng.choice((-1, 0, 1)), exclusiveMaximum=lambda: rng.choice((2, 3, 6)),
            multipleOf=lambda: rng.choice((1, 2, 3, 0.5, 1.5)),
        )  # fmt: skip

    of_number = of_integer

    def of_string(self) -> dict[str, Any]:
        rng = self.rng
        return self.some(
            minLength=lambda: rng.choice((0, 1, 2)), maxLength=lambda: rng.choice((0, 1, 2, 5)),
            pattern=lambda: rng.choice(("a", "^a", "b$", "^[ab]*$", "^a{1,9}b?$", "é|1", "^(?!a)")),
            format=lambda: rng.choice(("int32", "ipv4", "x")),
        )  # fmt: skip

    def of_array(self, depth: int) -> dict[str, Any]:
        rng, below = self.rng, max(0, depth - 1)
        found = self.some(
            items=lambda: self.child(below) if depth else rng.choice((True, False)),
            prefixItems=lambda: [self.child(below) for _ in range(rng.choice((1, 2)))],
            minItems=lambda: rng.choice((0, 1, 2)), maxItems=lambda: rng.choice((0, 1, 2, 3)),
            contains=lambda: self.child(below), uniqueItems=lambda: rng.random() < 0.8,
            unevaluatedItems=lambda: rng.choice((False, {"type": "integer"})),
        )  # fmt: skip
        if "contains" in found:
            found |= self.some(minContains=lambda: rng.choice((0, 1, 2)), maxContains=lambda: rng.choice((1, 2)))
        return found

    def of_object(self, depth: int) -> dict[str, Any]:
        rng, below = self.rng, max(0, depth - 1)

        def names() -> list[str]:
            return rng.sample(NAMES, rng.choice((1, 1, 2)))

        return self.some(
            properties=lambda: {name: self.child(below) for name in names()}, required=names,
            additionalProperties=lambda: rng.choice((False, False, True, self.child(below))),
            patternProperties=lambda: {rng.choice(("^a", "b", "^c$")): self.child(below)},
            propertyNames=lambda: rng.choice(({"maxLength": 1}, {"pattern": "^[ab]"}, {"enum": ["a", "c"]})),
            minProperties=lambda: rng.choice((0, 1, 2)), maxProperties=lambda: rng.choice((0, 1, 2)),
            dependentRequired=lambda: {rng.choice(NAMES): names()},
            dependentSchemas=lambda: {rng.choice(NAMES): self.schema(below)},
            unevaluatedProperties=lambda: rng.choice((False, {"type": "string"})),
        )  # fmt: skip

    def combined(self, depth: int) -> dict[str, Any]:
        rng = self.rng

        def several() -> list[Any]:
            return [self.schema(depth) for _ in range(rng.choice((1, 2, 2, 3)))]

        found = self.some(
            allOf=several, anyOf=several, oneOf=several, **{"not": lambda: self.schema(depth)},
            **{"if": lambda: self.schema(depth)}, **({"$ref": lambda: "#/$defs/d"} if self.refers else {}),
        )  # fmt: skip
        if "if" in found:
            found |= self.some(**{"then": lambda: self.schema(depth), "else": lambda: self.schema(depth)})
        return found


def value(rng: random.Random, depth: int) -> Any:
    """A value of the small universe."""
    kind = rng.choice(("scalar", "scalar", "list", "dict", "dict")) if depth else "scalar"
    if kind == "list":
        return [value(rng, depth - 1) for _ in range(rng.choice((0, 1, 1, 2, 3)))]
    if kind == "dict":
        return {name: value(rng, depth - 1) for name in rng.sample(NAMES, rng.choice((0, 1, 1, 2, 3)))}
    return rng.choice((None, True, False, rng.choice(NUMBERS), rng.choice(TEXTS), rng.choice(NUMBERS)))


def accepts(machine: Machine, text: str) -> bool:
    found = machine.start.run(text.encode())
    return found is not None and found.state.accepting


def walk(machine: Machine, rng: random.Random) -> str:
    """A random text of the machine, hurried to its end after a while."""
    state: State = machine.start
    out = bytearray()
    while not (state.accepting and (len(out) > 30 or not state.first or rng.random() < 0.3)):
        choices = [byte for byte in range(256) if state.first >> byte & 1]
        if len(out) > 40:
            sample = [byte for byte in choices if chr(byte) in '}]",0:abc1.']
            sample += rng.sample(choices, min(4, len(choices)))
            byte = min(sample, key=lambda each: shortest_after(state, each))
        else:
            plain = [byte for byte in choices if chr(byte) in 'ab1:,{}[]"0-.']
            byte = rng.choice(plain if plain and rng.random() < 0.9 else choices)
        step = state.step(byte)
        assert step is not None
        out.append(byte)
        state = step.state
        assert len(out) < 3000
    return out.decode()


def shortest_after(state: State, byte: int) -> int:
    step = state.step(byte)
    assert step is not None
    return step.state.shortest


def compiled(schema: Any) -> CompiledSchema | None:
    try:
        return compile_value(schema, SPELLING, options=OPTIONS)
    except (SchemaError, LimitExceeded):
        return None


def judge(seed: int, counts: Counter[str]) -> None:
    rng = random.Random(seed)
    schema = Schemas(rng).document()
    validator = Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
    made = compiled(schema)
    values = [value(rng, rng.choice((0, 1, 2, 2))) for _ in range(40)]
    valid = [validator.is_valid(each) for each in values]
    if made is None:
        counts["refused"] += 1
        assert not any(valid), (seed, schema)
        return
    statuses = {finding.status for finding in made.findings}
    counts["exact" if statuses <= {"enforced", "refused"} else "reported"] += 1
    machine = Machine(made.expr)
    for each, right in zip(values, valid, strict=True):
        accepted = accepts(machine, json.dumps(each, ensure_ascii=False))
        if right and "narrowed" not in statuses:
            assert accepted, (seed, schema, each)
        if not right and "relaxed" not in statuses:
            assert not accepted, (seed, schema, each)
        counts["valid" if right else "invalid"] += 1
    for _ in range(3):
        text = walk(machine, rng)
        read = json.loads(text)
        if "relaxed" not in statuses:
            assert validator.is_valid(read), (seed, schema, text)


@pytest.mark.parametrize(
    "many", [pytest.param(FEW, id="few"), pytest.param(1000, id="many", marks=pytest.mark.heavy)]
)
def test_random_schemas(many: int) -> None:
    counts: Counter[str] = Counter()
    for seed in range(many):
        judge(seed, counts)
    assert counts["exact"] > 3 * counts["reported"]
    assert counts["valid"] > 2 * many
