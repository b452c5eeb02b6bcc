"""The limit on open containers in masks: no walk comes to a dead end there, and none gets past it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from random import Random
from typing import Any

import jsonschema
import pytest

import twingram as tg
from twingram.automaton.depth import peak
from twingram.automaton.expression import INFINITE
from twingram.limits import Limits
from twingram.tokens.distance import Distances

from .walks import FORMATS, loaded, small

TREES = {"type": "array", "items": {"$ref": "#/$defs/t"}}
TREE = {"type": "object", "required": ["kids"], "properties": {"kids": TREES}}
NEEDY = {  # a node that wants one container below it, or a long word
    "type": "object",
    "required": ["n"],
    "properties": {
        "n": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/t"}, "minItems": 1}, {"const": "abcdefghijklmno"}]}
    },
}
DOWN = {  # every step down is two containers, which have to be closed by two
    "type": "object",
    "required": ["a"],
    "properties": {
        "a": {
            "anyOf": [
                {"type": "object", "required": ["b"], "properties": {"b": {"$ref": "#/$defs/t"}}},
                {"type": "array", "prefixItems": [{"$ref": "#/$defs/t"}], "minItems": 1, "items": False},
                {"type": "integer", "minimum": 1000000},
            ]
        }
    },
}
COUNTED = {  # members that are counted, and one that asks for another
    "type": "object",
    "properties": {"p": {"$ref": "#/$defs/t"}, "q": TREES, "r": {"type": "null"}},
    "minProperties": 1,
    "dependentRequired": {"q": ["p"]},
}
HELD = {  # a row of which some item has to match
    "type": "object",
    "required": ["c"],
    "properties": {
        "c": {
            "type": "array",
            "items": {"anyOf": [{"$ref": "#/$defs/t"}, {"const": 1}]},
            "contains": {"anyOf": [{"type": "object"}, {"const": 1}]},
        }
    },
}
FREE: dict[str, Any] = {"type": "object", "additionalProperties": True}
OPENS = re.compile(rb'[\[{(<,:" ]*[\[{(<][\[{(<,:" ]*')  # a container or several, and what stands between
SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "tree": TREE, "needy": NEEDY, "down": DOWN, "counted": COUNTED, "held": HELD, "free": FREE,
}  # fmt: skip


def schema_of(name: str) -> dict[str, Any]:
    return {
        "$defs": {"t": SCHEMAS[name]}, "type": "object", "required": ["x"], "properties": {"x": {"$ref": "#/$defs/t"}},
    }  # fmt: skip


def tools(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": "f", "parameters": schema}}]


def deepest(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(deepest, value.values()), default=0)
    return 1 + max(map(deepest, value), default=0) if isinstance(value, list) else 0


def dive(session: tg.Session, rng: Random, opening: bytes) -> None:
    """A walk that opens containers wherever it may, and tends to the end where it may not."""
    spelt, stops, steps = session.constraint.vocabulary.token_bytes, session.constraint.binding.stops, 0
    while not session.is_terminated:
        allowed = session.allowed_tokens().tolist()
        assert allowed
        diving = [token for token in allowed if token not in stops and OPENS.fullmatch(spelt(token)) is not None]
        if diving and steps < 200:
            token = rng.choice([token for token in diving if opening in spelt(token)] or diving)
        elif steps < 200 and rng.random() < 0.3:
            token = rng.choice(allowed)
        else:
            token = nearer(session, allowed)
        assert session.accept_token(token)
        steps += 1


def nearer(session: tg.Session, allowed: list[int]) -> int:
    """The first token that leads nearer to the end, the short ones tried first."""
    left, probe, spelt = session.min_tokens_to_end(), session.fork(), session.constraint.vocabulary.token_bytes
    for token in sorted(allowed, key=lambda token: len(spelt(token))):
        assert probe.accept_token(token)
        if probe.is_terminated or probe.min_tokens_to_end() < left:
            return token
        probe.rollback(1)
    raise AssertionError(f"no token leads nearer to the end, which is said to be {left} tokens away")


def asked(name: str, schema: Mapping[str, Any], most: int, **options: Any) -> tg.Constraint:
    return loaded(name).constraint(
        tools(schema), "required", vocabulary=small(name), parallel_tool_calls=False, reasoning="forbid",
        limits=Limits(depth=most), **options,
    )  # fmt: skip


@pytest.mark.parametrize("which", SCHEMAS)
@pytest.mark.parametrize("name", FORMATS)
def test_walks_that_dive(name: str, which: str) -> None:
    schema, most = schema_of(which), 6
    constraint = asked(name, schema, most)
    reached = []
    for seed in range(4):
        session = constraint.session()
        dive(session, Random(seed), b"[{(<"[seed : seed + 1])
        call = session.message.calls[0]
        jsonschema.validate(call.value, schema)
        reached.append(deepest(call.value))
        read = loaded(name).parse(session.text.decode(), tools=tools(schema))
        assert [call.value for call in read.calls] == [call.value]
        assert not read.errors
    assert 2 <= max(reached) <= most


@pytest.mark.parametrize("which", SCHEMAS)
@pytest.mark.parametrize("name", FORMATS)
def test_every_state_has_a_way_to_the_end(name: str, which: str) -> None:
    """Symbol by symbol, the states that open most first."""
    most = 5
    constraint = asked(name, schema_of(which), most)
    start = constraint.machine.start
    distance = Distances(tg.Vocabulary.from_tokens([bytes((byte,)) for byte in range(256)])).of_state
    seen, todo = {start}, [start]
    while todo and len(seen) < 600:
        state = todo.pop()
        if state is not start and not any(thread.shortest for thread in state.threads):
            continue
        assert min(map(peak, state.threads)) <= most
        steps = [state.step(symbol) for symbol in range(300) if state.first >> symbol & 1]
        after = dict.fromkeys(step.state for step in steps if step is not None)
        assert after
        assert min(map(distance, after)) < distance(state) < INFINITE
        new = sorted(set(after) - seen, key=lambda state: state.threads[0].nesting)
        seen.update(new)
        todo += new
    assert max(thread.nesting for state in seen for thread in state.threads) >= most - 1


@pytest.mark.parametrize("name", FORMATS)
def test_the_mask_is_what_is_accepted_at_the_limit(name: str) -> None:
    session, rng, vocabulary = asked(name, schema_of("down"), 4).session(), Random(1), small(name)
    while not session.is_terminated:
        allowed = session.allowed_tokens().tolist()
        assert allowed == [token for token in range(len(vocabulary)) if session.validate_tokens([token])]
        diving = [token for token in allowed if OPENS.fullmatch(vocabulary.token_bytes(token))]
        assert session.accept_token(rng.choice(diving) if diving else nearer(session, allowed))


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("which", ["needy", "down"])
def test_a_budget_at_the_limit(name: str, which: str) -> None:
    """Where the short way would open too many containers, the long one has to fit into the budget."""
    least = asked(name, schema_of(which), 4).session().min_tokens_to_end()
    for budget in (least, least + 9, least + 30, least + 60):
        constraint = asked(name, schema_of(which), 4, max_tokens=budget)
        session = constraint.session()
        dive(session, Random(budget), b"[")
        assert len(session.message.calls) == 1
        jsonschema.validate(session.message.calls[0].value, schema_of(which))


@pytest.mark.parametrize("name", FORMATS)
def test_what_nests_too_deeply_in_any_case_is_refused(name: str) -> None:
    inner: dict[str, Any] = {"type": "null"}
    for _ in range(4):
        inner = {"type": "object", "required": ["a"], "properties": {"a": inner}}
    with pytest.raises(tg.SchemaError, match="nest 5 levels deep at least, and no more than 4"):
        asked(name, {"type": "object", "required": ["x"], "properties": {"x": inner}}, 4)
    session = asked(name, {"type": "object", "required": ["x"], "properties": {"x": inner}}, 5).session()
    dive(session, Random(0), b"{")
    assert deepest(session.message.calls[0].value) == 5
    optional = {"type": "object", "properties": {"x": inner, "y": {"type": "null"}}}
    session = asked(name, optional, 4).session()
    dive(session, Random(0), b"{")
    assert "x" not in session.message.calls[0].value


def test_answers_keep_to_the_limit() -> None:
    schema = schema_of("tree")
    for name in ("gemma4", "atem"):
        constraint = loaded(name).constraint(
            vocabulary=small(name), response_schema=schema, reasoning="forbid", limits=Limits(depth=6)
        )
        session = constraint.session()
        dive(session, Random(2), b"[")
        value = json.loads(session.message.content or "")
        jsonschema.validate(value, schema)
        assert 4 < deepest(value) <= 6


def test_deep_in_the_default_limit() -> None:
    """512 levels, reached in a few tokens each; then the way back."""
    vocabulary = small("gemma4")
    schema = {"$defs": {"t": {"type": "array", "items": {"$ref": "#/$defs/t"}}}, "type": "object",
              "required": ["x"], "properties": {"x": {"$ref": "#/$defs/t"}}}  # fmt: skip
    session = loaded("gemma4").constraint(tools(schema), "required", vocabulary=vocabulary).session()
    opening = vocabulary.encode("[")[0]
    assert session.accept_tokens(vocabulary.encode("<|tool_call>call:f{x:")) > 0
    count = 0
    while session.accept_token(opening):
        count += 1
    assert count == 511
    accepted = [token for token in range(len(vocabulary)) if session.validate_tokens([token])]
    assert session.allowed_tokens().tolist() == accepted
    assert session.accept_tokens(vocabulary.encode("]" * 511 + "}<tool_call|><turn|>")) > 0
    assert session.is_terminated
    assert session.message.calls[0].arguments.count("[") == 511
