"""The promises of the mask, on a small vocabulary, token by token: one language, complete, mask = accept, no dead end.

Every token is tried at every state that walks through the masks of random requests reach, against the session itself
and against the oracle, which shares no code with the engine. What is accepted is judged by outside validators; what
must be accepted comes from outside generators.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import twingram as tg

from .oracle import OracleState, Unsupported
from .oracle.generate import NoValue, outside_arguments, random_arguments, random_tool, tools_and_arguments
from .oracle.render import render_turn, spellable
from .walks import (
    CALLS,
    FORMATS,
    MANY,
    WALKS,
    Asked,
    Walk,
    Walker,
    alternatives,
    asked,
    budgets,
    call_ids,
    loaded,
    oracle_of,
    small,
    small_symbols,
    small_trie,
    stops,
    viable_tokens,
    violations,
    walked,
)  # fmt: skip

EXAMPLES = settings.default.max_examples if settings.default else 50


_HUGE = re.compile(r"-?[0-9.]+[eE]\+?[0-9]{3,}")


# 1. One language


@pytest.mark.parametrize("walks", budgets())
@pytest.mark.parametrize("name", FORMATS)
def test_what_a_mask_allows_is_read_back_without_loss(name: str, walks: int) -> None:
    called = 0
    for walk in walked(name, walks):
        session = walk.constraint.session(call_id=call_ids())
        assert session.accept_tokens(walk.tokens) == len(walk.tokens)
        message = session.message
        assert session.is_terminated
        assert not message.errors, walk.text
        assert not message.incomplete_calls, walk.text
        from_text = loaded(name).parse(walk.text, **walk.asked.parsing)
        from_tokens = loaded(name).parse(walk.tokens, vocabulary=small(name), **walk.asked.parsing)
        assert from_tokens == message, walk.text
        assert from_text == message, walk.text
        _valid(walk, message)
        called += len(message.calls)
    assert called >= walks // 3, "the walks must reach calls"


def _valid(walk: Walk, message: tg.Message) -> None:
    question = walk.asked
    for call in message.calls:
        assert not violations(question.schema(call.name), call.value), walk.text
    count = len(message.calls)
    if question.choice == "none":
        assert not count
    if question.choice not in ("none", "auto"):
        assert count
        assert message.content is None
    if not question.options["parallel_tool_calls"]:
        assert count <= 1
    if isinstance(question.choice, dict):
        assert {call.name for call in message.calls} == {question.choice["function"]["name"]}
    if question.options["reasoning"] == "forbid" and "prompt_tail" not in question.options:
        assert message.reasoning is None


@pytest.mark.parametrize("name", FORMATS)
def test_a_request_is_refused_only_if_nothing_satisfies_it(name: str) -> None:
    rng = random.Random(f"refused {name}")
    compared = 0
    while compared < 60:
        question = asked(name, rng)
        try:
            possible = oracle_of(question) is not None
        except Unsupported:
            continue
        assert _accepted(question) == possible, question.tools
        compared += 1


def _accepted(question: Asked) -> bool:
    try:
        question.constraint(small(question.name))
    except (tg.SchemaError, tg.RequestError):
        return False
    return True


# 2. Complete


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_arguments_of_an_outside_generator_are_accepted(name: str, data: st.DataObject) -> None:
    definition, arguments = data.draw(tools_and_arguments(name))
    _check_complete(name, definition, arguments, data.draw(st.randoms(use_true_random=False)))


@pytest.mark.parametrize("count", [pytest.param(120, id="few"), pytest.param(MANY, id="many", marks=pytest.mark.heavy)])
@pytest.mark.parametrize("name", FORMATS)
def test_random_arguments_are_accepted(name: str, count: int) -> None:
    rng = random.Random(f"complete {name}")
    checked = 0
    while checked < count:
        definition = random_tool(rng, odd_keys=name != "runes")
        try:
            arguments = random_arguments(definition, name, rng)
        except NoValue:
            continue
        _check_complete(name, definition, arguments, rng)
        checked += 1


CLOSED = {"type": "object", "properties": {"k": {"type": "string"}}, "additionalProperties": False}
FOREIGN = [
    {"type": "object", "properties": {"q": {"type": "string"}, "n": {"type": "integer"}}, "required": ["q"]},
    {"type": "object", "properties": {"a": {"type": "array", "items": {"type": ["number", "null"]}, "minItems": 1}}},
    {"type": "object", "properties": {"o": CLOSED, "b": {"type": "boolean"}}, "required": ["o", "b"]},
    {
        "type": "object",
        "properties": {"s": {"type": "string", "minLength": 2, "maxLength": 5}, "u": {"type": ["string", "integer"]}},
    },
    {
        "type": "object",
        "properties": {"x": {"anyOf": [{"enum": ["a", 1, None]}, {"type": "array", "items": {"type": "string"}}]}},
    },
]


@pytest.mark.parametrize("schema", FOREIGN, ids=["strings", "numbers", "objects", "lengths", "unions"])
@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=max(EXAMPLES // 3, 10))
@given(data=st.data())
def test_arguments_of_a_foreign_generator_are_accepted(name: str, schema: dict[str, Any], data: st.DataObject) -> None:
    """`hypothesis-jsonschema` reads schemas in its own way, additional properties included."""
    fine = outside_arguments(schema).filter(lambda value: spellable(value, name, schema) and _plain(value))
    definition = {"type": "function", "function": {"name": "f", "parameters": schema}}
    rng = data.draw(st.randoms(use_true_random=False))
    _check_complete(name, definition, data.draw(fine), rng, additional_properties="schema")


def _plain(value: Any) -> bool:
    """Without numbers whose canonical text is no JSON number within the bounds that masks have."""
    if isinstance(value, float):
        return abs(value) < 1e99 and repr(value) != "-0.0" and (value == 0 or abs(value) > 1e-99)
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return all(map(_plain, items))


def _check_complete(
    name: str, definition: dict[str, Any], arguments: dict[str, Any], rng: random.Random, **options: Any
) -> None:
    if _too_large(name, arguments):
        return
    tool = definition["function"]["name"]
    other = {"type": "function", "function": {"name": "other", "parameters": {"type": "object", "properties": {}}}}
    named = {"type": "function", "function": {"name": tool}}
    text = render_turn(name, [(tool, arguments)], sort=name == "gemma4")
    vocabulary = small(name)
    for choice in ("required", named):
        constraint = Asked(name, [definition, other], choice, options).constraint(small(name))
        for tokens in _splits(name, text, rng):
            session = constraint.session(call_id=call_ids())
            accepted = session.accept_tokens(tokens)
            assert accepted == len(tokens), (text, vocabulary.decode(tokens[:accepted]), definition)
            assert session.is_accepting, text
            _same(session.message, tool, arguments)
    _same(loaded(name).parse(text, tools=[definition, other]), tool, arguments)


def _too_large(name: str, arguments: dict[str, Any]) -> bool:
    """Whether raw text is a number beyond all doubles: read as text, but a mask takes it for a number."""
    huge = (isinstance(value, str) and _HUGE.fullmatch(value.strip()) for value in arguments.values())
    return name == "atem" and any(huge)


def _same(message: tg.Message, tool: str, arguments: dict[str, Any]) -> None:
    assert [call.name for call in message.calls] == [tool]
    assert _exact(message.calls[0].value) == _exact(arguments)


def _exact(value: Any) -> str:
    """Equal text for equal values of equal types: 1, 1.0 and true differ."""
    return json.dumps(value, sort_keys=True)


def _splits(name: str, text: str, rng: random.Random) -> Iterator[list[int]]:
    """The vocabulary's own split, byte by byte, and a random one; markers are one token in all of them."""
    vocabulary = small(name)
    yield vocabulary.encode(text)
    special = set(vocabulary.special_tokens.values())
    runs: list[Any] = []  # bytes of ordinary text, or one special token
    for token in vocabulary.encode(text):
        if token in special:
            runs.append(token)
        elif runs and isinstance(runs[-1], bytes):
            runs[-1] += vocabulary.token_bytes(token)
        else:
            runs.append(vocabulary.token_bytes(token))
    yield [token for run in runs for token in (run if isinstance(run, bytes) else [run])]  # ids 0 to 255 are the bytes
    spelt = {vocabulary.token_bytes(token): token for token in range(len(vocabulary)) if token not in special}
    yield [token for run in runs for token in (alternatives(run, spelt, rng) if isinstance(run, bytes) else [run])]


# 3. Mask = accept, 4. No dead end


@pytest.mark.parametrize("walks", budgets())
@pytest.mark.parametrize("name", FORMATS)
def test_every_token_at_every_state(name: str, walks: int) -> None:
    """Bit set = accepted = viable to the oracle; never empty; the end comes nearer along some allowed token."""
    seen: dict[tuple[int, int], Any] = {}  # (state, oracle's state) -> both, kept alive
    judged = 0
    for walk in walked(name, walks):
        session, oracle = walk.constraint.session(), _oracle(walk.asked)
        called = False
        for token in (*walk.tokens, None):
            key = (id(session.state), id(oracle))
            if key not in seen and not session.is_terminated:
                seen[key] = session.state, oracle
                _check_state(name, session, oracle, called, walk.asked)
                judged += oracle is not None
            if token is None:
                break
            assert session.accept_token(token)
            steps = small_symbols(name)[token]
            oracle = oracle.run(steps) if oracle is not None and steps is not None else oracle
            called = called or CALLS[name] in session.text.decode("utf-8", "replace")
        assert session.is_terminated
        assert set(session.allowed_tokens().tolist()) == walk.constraint.binding.stops
    assert judged > len(seen) // 2, "the oracle must know most of the requests"


def _oracle(question: Asked) -> OracleState | None:
    try:
        return oracle_of(question)
    except Unsupported:
        return None


def _check_state(name: str, session: tg.Session, oracle: OracleState | None, called: bool, question: Asked) -> None:
    vocabulary = session.constraint.vocabulary
    allowed = set(session.allowed_tokens().tolist())
    accepted = {token for token in range(len(vocabulary)) if session.validate_tokens([token])}
    where = f"after {session.text!r} of {question}"
    assert allowed == accepted, _difference(allowed, accepted, vocabulary, where)
    row = np.full((2, len(session.mask())), -1, dtype=np.int32)
    session.fill_bitmask(row, 1)
    assert (row[1] == session.mask()).all(), where
    assert (row[0] == -1).all(), "another row was written to"
    assert allowed, f"no token is allowed {where}"
    _check_distance(session, allowed, where)
    if oracle is not None:
        expected = viable_tokens(oracle, small_trie(name))
        expected |= stops(name, vocabulary, called=called) if oracle.can_end else frozenset()
        assert allowed == expected, _difference(allowed, expected, vocabulary, where)
        assert session.is_accepting == oracle.can_end, where


def _check_distance(session: tg.Session, allowed: set[int], where: str) -> None:
    here, stopping = session.min_tokens_to_end(), session.constraint.binding.stops
    assert (here == 0) == session.is_accepting, where
    assert session.is_accepting == bool(allowed & stopping), where
    if here:
        probe, nearer = session.fork(), False
        for token in sorted(allowed, key=lambda token: len(session.constraint.vocabulary.token_bytes(token))):
            probe.accept_token(token)
            nearer = probe.min_tokens_to_end() < here
            probe.rollback(1)
            if nearer:
                break
        assert nearer, f"no token leads nearer than {here} {where}"


def _difference(found: set[int], wanted: set[int], vocabulary: tg.Vocabulary, where: str) -> str:
    many = [vocabulary.token_bytes(token) for token in sorted(found - wanted)][:20]
    few = [vocabulary.token_bytes(token) for token in sorted(wanted - found)][:20]
    return f"too many {many}, missing {few} {where}"


@pytest.mark.parametrize("name", FORMATS)
def test_the_end_is_within_the_promised_distance(name: str) -> None:
    rng = random.Random(f"ends {name}")
    walker = Walker(small(name), rng)
    for walk in walked(name, WALKS):
        session = walk.constraint.session()
        session.accept_tokens(walk.tokens[: rng.randrange(len(walk.tokens))])
        promised, taken = session.min_tokens_to_end(), 0
        while not session.is_accepting:
            assert session.accept_token(walker.downhill(session))
            taken += 1
        assert taken <= promised, walk.text


@pytest.mark.parametrize("name", FORMATS)
def test_tokens_outside_the_vocabulary_are_not_accepted(name: str) -> None:
    walk = walked(name, WALKS)[0]
    session = walk.constraint.session()
    for token in (-1, -(2**40), len(small(name)), 2**31, 2**70):
        assert not session.accept_token(token)
        assert session.validate_tokens([token]) == 0
    assert session.accept_tokens(walk.tokens) == len(walk.tokens)


@pytest.mark.parametrize("name", ["gemma4", "runes"])
def test_masks_end_where_the_parser_stops_reading_depth(name: str) -> None:
    """Containers nest no deeper in a mask than `Limits.depth`, whichever token opens them."""
    limits, rng = tg.Limits(depth=5), random.Random(f"depth {name}")
    schema = {"type": "object", "properties": {"b": {"type": "array"}}, "required": ["b"]}
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    constraint = Asked(name, tools, "required", {"limits": limits}).constraint(small(name))
    opener = {"gemma4": "<|tool_call>call:f{b:", "runes": "[[call]]f(b="}[name]
    opening = (b"[", b"[[", b"<", b"(", b"{")
    brackets = [token for token in range(len(small(name))) if small(name).token_bytes(token) in opening]
    for _ in range(30):
        session = constraint.session(call_id=call_ids())
        assert session.accept_tokens(small(name).encode(opener))
        for _ in range(8):
            allowed = set(session.allowed_tokens().tolist())
            assert allowed == {token for token in range(len(small(name))) if session.validate_tokens([token])}
            session.accept_token(rng.choice(brackets))
        Walker(small(name), rng, soft=10).walk(session)
        assert not session.message.errors
        parsed = loaded(name).parse(session.text.decode(), tools=tools, limits=limits, call_id=call_ids())
        assert parsed == session.message
        assert not violations(schema, parsed.calls[0].value)
