"""The promises on real vocabularies, by sampling: whole calls, and tokens of every kind at states of every kind.

Gemma's vocabulary has 262,144 tokens, Llama 4's 202,048. The made-up format runs on Gemma's, its markers put on ids
that no text needs. The default run looks at 2,000 tokens a state, drawn by stratum; the heavy one at all of them.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
import pytest

import twingram as tg

from .oracle import FORMATS as SPOKEN
from .oracle import OracleState, Symbol, Unsupported
from .oracle.generate import NoValue, random_arguments, random_tool
from .oracle.render import render_turn
from .vocabularies import GEMMA_MARKERS, NEEDS_GEMMA, NEEDS_LLAMA4, gemma, gemma_path, llama4
from .walks import (
    CALLS,
    FORMATS,
    STOPS,
    Asked,
    Walker,
    call_ids,
    loaded,
    oracle_of,
    sessions,
    stops,
    symbols_of,
    violations,
)

WALKED = 150  # calls walked through the masks of each format, and as many written by an outside generator
STATES = 50
SAMPLE = 2000
EACH = [
    pytest.param("gemma4", marks=NEEDS_GEMMA),
    pytest.param("atem", marks=NEEDS_LLAMA4),
    pytest.param("runes", marks=NEEDS_GEMMA),
]
BUDGETS = [pytest.param(SAMPLE, id="sample"), pytest.param(None, id="all", marks=pytest.mark.heavy)]
assert {param.values[0] for param in EACH} == set(FORMATS)


@cache
def vocabulary_of(name: str) -> tg.Vocabulary:
    return {"gemma4": gemma, "atem": llama4, "runes": _with_runes}[name]()


def _with_runes() -> tg.Vocabulary:
    """Gemma's vocabulary with the made-up format's markers on ids that its own format does not use."""
    free = iter(range(6, 46))
    names = {marker: next(free) for marker in (*SPOKEN["runes"].MARKERS, *STOPS["runes"])}
    kept = {text: token for text, token in GEMMA_MARKERS.items() if text in ("<pad>", "<bos>", "<unk>")}
    return tg.Vocabulary.from_file(gemma_path(), special_tokens={**names, **kept})


# Whole calls


@pytest.mark.parametrize("name", EACH)
def test_walks_end_in_calls_that_read_back(name: str) -> None:
    vocabulary, rng = vocabulary_of(name), random.Random(f"real {name}")
    walker = Walker(vocabulary, rng, soft=40)
    called = 0
    for question, constraint in sessions(name, rng, vocabulary, 3):
        session = constraint.session(call_id=call_ids())
        tokens = walker.walk(session)
        message = session.message
        where = f"{session.text!r} of {question}"
        assert not message.errors, where
        assert not message.incomplete_calls, where
        for call in message.calls:
            assert not violations(question.schema(call.name), call.value), where
        assert loaded(name).parse(tokens, vocabulary=vocabulary, **question.parsing) == message, where
        assert loaded(name).parse(session.text.decode(), **question.parsing) == message, where
        called += len(message.calls)
        if called >= WALKED:
            break


@pytest.mark.parametrize("name", EACH)
def test_calls_of_an_outside_generator_are_accepted(name: str) -> None:
    vocabulary, rng = vocabulary_of(name), random.Random(f"outside {name}")
    for definition, arguments in islice(_calls(name, rng), WALKED):
        tool = definition["function"]["name"]
        text = render_turn(name, [(tool, arguments)], sort=name == "gemma4")
        choice = rng.choice(("required", {"type": "function", "function": {"name": tool}}))
        constraint = Asked(name, [definition], choice).constraint(vocabulary)
        for tokens in (_encoded(name, text), _byte_by_byte(name, text)):
            session = constraint.session()
            accepted = session.accept_tokens(tokens)
            assert accepted == len(tokens), (text, vocabulary.decode(tokens[:accepted]), definition)
            assert session.is_accepting, text
            (call,) = session.message.calls
            assert call.name == tool
            assert json.dumps(call.value, sort_keys=True) == json.dumps(arguments, sort_keys=True)


def _calls(name: str, rng: random.Random) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    while True:
        definition = random_tool(rng, odd_keys=name != "runes")
        try:
            arguments = random_arguments(definition, name, rng)
        except NoValue:
            continue
        yield definition, arguments


def _encoded(name: str, text: str) -> list[int]:
    """The tokenizer's own split; special tokens that mean nothing to the format are spelt with ordinary ones."""
    vocabulary, known = vocabulary_of(name), SPOKEN[name].MARKERS
    out: list[int] = []
    for token in vocabulary.encode(text):
        data = vocabulary.token_bytes(token)
        if vocabulary.is_special(token) and data.decode() not in known:
            out += [_bytes(name)[byte] for byte in data]
        else:
            out.append(token)
    return out


def _byte_by_byte(name: str, text: str) -> list[int]:
    vocabulary, out = vocabulary_of(name), list[int]()
    for token in _encoded(name, text):
        data = vocabulary.token_bytes(token)
        out += [token] if vocabulary.is_special(token) else [_bytes(name)[byte] for byte in data]
    return out


@cache
def _bytes(name: str) -> dict[int, int]:
    vocabulary = vocabulary_of(name)
    tokens = range(len(vocabulary) - 1, -1, -1)
    single = ((vocabulary.token_bytes(token), token) for token in tokens if not vocabulary.is_special(token))
    return {data[0]: token for data, token in single if len(data) == 1}


# Tokens at states


@pytest.mark.parametrize("sample", BUDGETS)
@pytest.mark.parametrize("name", EACH)
def test_mask_is_accept_is_oracle(name: str, sample: int | None) -> None:
    rng, judged = random.Random(f"states {name}"), 0
    for session, oracle, called, question in islice(_states(name, rng), STATES):
        where = f"after {session.text!r} of {question}"
        row = session.mask()
        bits = np.unpackbits(row.view(np.uint8), bitorder="little")[: len(vocabulary_of(name))]
        assert not np.unpackbits(row.view(np.uint8), bitorder="little")[len(vocabulary_of(name)) :].any(), where
        assert bits.any(), where
        assert (np.flatnonzero(bits) == session.allowed_tokens()).all(), where
        ending = stops(name, vocabulary_of(name), called=called) if oracle is not None and oracle.can_end else ()
        for token in _tokens(name, bits, sample, rng):
            allowed = bool(bits[token])
            spelt = vocabulary_of(name).token_bytes(token)
            assert allowed == bool(session.validate_tokens([token])), (token, spelt, where)
            if oracle is not None:
                steps = _symbols(name)[token]
                viable = token in ending or (steps is not None and oracle.run(steps) is not None)
                assert allowed == viable, (token, spelt, where)
        assert session.is_accepting == (session.min_tokens_to_end() == 0), where
        judged += oracle is not None
    assert judged > STATES // 2, "the oracle must know most of the requests"


def _states(
    name: str, rng: random.Random
) -> Iterator[tuple[tg.Session, OracleState | None, bool, Asked]]:
    """Sessions that stand at states not seen before, with the oracle's view; one or two of each walk."""
    vocabulary = vocabulary_of(name)
    walker = Walker(vocabulary, rng, soft=30)
    seen: set[Any] = set()
    for question, constraint in sessions(name, rng, vocabulary, 2):
        tokens = walker.walk(constraint.session())
        for at in sorted(rng.sample(range(len(tokens)), k=min(2, len(tokens)))):
            session = constraint.session()
            session.accept_tokens(tokens[:at])
            if session.state in seen:
                continue
            seen.add(session.state)
            oracle = _oracle(question, [_symbols(name)[token] for token in tokens[:at]])
            yield session, oracle, CALLS[name].encode() in session.text, question


def _oracle(question: Asked, steps: list[tuple[Symbol, ...] | None]) -> OracleState | None:
    try:
        state = oracle_of(question)
    except Unsupported:
        return None
    for step in steps:
        assert state is not None
        assert step is not None
        state = state.run(step)
    assert state is not None, "the oracle cannot follow a walk through the masks"
    return state


@cache
def _symbols(name: str) -> tuple[tuple[Symbol, ...] | None, ...]:
    return symbols_of(name, vocabulary_of(name))


def _tokens(name: str, bits: np.ndarray[Any, Any], sample: int | None, rng: random.Random) -> list[int]:
    """All tokens, or as many as wanted in equal shares of: allowed, not allowed, and each stratum."""
    if sample is None:
        return list(range(len(bits)))
    groups = [np.flatnonzero(bits).tolist(), np.flatnonzero(bits == 0).tolist(), *_strata(name)]
    share = sample // len(groups)
    return [token for group in groups for token in rng.sample(group, k=min(share, len(group)))]


@cache
def _strata(name: str) -> list[list[int]]:
    """Special tokens, single bytes, broken characters, pieces of markup, white space, digits, long tokens."""
    vocabulary = vocabulary_of(name)
    spelt = [vocabulary.token_bytes(token) for token in range(len(vocabulary))]
    special = [token for token in range(len(spelt)) if vocabulary.is_special(token)]
    ordinary = [token for token in range(len(spelt)) if not vocabulary.is_special(token)]
    markup = frozenset(b"<>|[]{}()\"=:;,/\\")
    return [
        special,
        [token for token in ordinary if len(spelt[token]) == 1],
        [token for token in ordinary if spelt[token] and not _is_text(spelt[token])],
        [token for token in ordinary if not markup.isdisjoint(spelt[token])],
        [token for token in ordinary if spelt[token] and not spelt[token].strip()],
        [token for token in ordinary if spelt[token][-1:].isdigit()],
        [token for token in ordinary if len(spelt[token]) > 12],
    ]


def _is_text(data: bytes) -> bool:
    try:
        return bool(data.decode())
    except UnicodeDecodeError:
        return False
