"""Vocabularies without a token for some bytes: refused when a request cannot be spelt, else no walk gets stuck."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import twingram as tg
from twingram.automaton.counted import Counted, counted
from twingram.automaton.expression import INFINITE
from twingram.automaton.regex import pattern_dfa
from twingram.tokens.partial import PartialTexts

from .walks import FORMATS, asked, loaded, small


def without(name: str, dropped: set[bytes]) -> tg.Vocabulary:
    """The small vocabulary, some of its tokens left blank."""
    vocabulary = small(name)
    spelt = [vocabulary.token_bytes(token) for token in range(len(vocabulary)) if not vocabulary.is_special(token)]
    tokens = [b"" if token in dropped else token for token in spelt]
    return tg.Vocabulary.from_tokens(tokens, dict(vocabulary.special_tokens), allow_partial=True)


def lacking(name: str, rng: Random) -> tg.Vocabulary:
    share = rng.choice((0.01, 0.03, 0.08))
    return without(name, {bytes((byte,)) for byte in range(256) if rng.random() < share})


def step(session: tg.Session, rng: Random) -> None:
    """One token, and the promises of a mask before it."""
    allowed, left = session.allowed_tokens().tolist(), session.min_tokens_to_end()
    assert allowed
    assert left < INFINITE - 1
    if rng.random() < 0.2:
        size = len(session.constraint.vocabulary)
        assert allowed == [token for token in range(size) if session.validate_tokens([token])]
        probe, nearest = session.fork(), left
        for token in allowed:
            assert probe.accept_token(token)
            assert probe.is_terminated or probe.min_tokens_to_end() < INFINITE - 1
            nearest = min(nearest, -1 if probe.is_terminated else probe.min_tokens_to_end())
            probe.rollback(1)
        assert nearest < left
    assert session.accept_token(rng.choice(allowed))


@pytest.mark.parametrize("seed", range(24))
def test_no_walk_gets_stuck(seed: int) -> None:
    rng = Random(seed)
    name = rng.choice(FORMATS)
    question = asked(name, rng)
    try:
        session = question.constraint(lacking(name, rng)).session()
    except (tg.SchemaError, tg.RequestError, tg.VocabularyError):
        return
    for _ in range(60):
        if session.is_terminated:
            break
        step(session, rng)


STRINGS: list[dict[str, Any]] = [
    {}, {"minLength": 2, "maxLength": 3}, {"pattern": "^[\u00e9\u6f22]+$"},
    {"pattern": "^[a-c\u00e9]{2,4}$", "maxLength": 3}, {"pattern": "^a", "minLength": 3},
    {"enum": ["caf\u00e9", "tea"]}, {"format": "date"},
]  # fmt: skip


@pytest.mark.parametrize("string", STRINGS, ids=str)
@pytest.mark.parametrize("name", FORMATS)
def test_texts_of_characters_that_are_only_tokens_as_a_whole(name: str, string: dict[str, Any]) -> None:
    """No byte past ASCII has a token, but some characters have."""
    rng, vocabulary = Random(name), without(name, {bytes((byte,)) for byte in range(128, 256)})
    schema = {"type": "object", "required": ["s"], "properties": {"s": {"type": "string", **string}}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    try:
        constraint = loaded(name).constraint(tools, "required", vocabulary=vocabulary, reasoning="forbid")
    except tg.VocabularyError:
        assert "\u6f22" in string.get("pattern", "")
        return
    session = constraint.session()
    for _ in range(60):
        if session.is_terminated:
            break
        step(session, rng)


def test_ways_lead_on() -> None:
    """From each state with a way there is a token that shortens it; a text with a count ends by bytes alone."""
    tokens = [b"a", b"b", b"\xc3\xa9", b"\xe6", b"\xbc", b"xy", b"\xa2z"]
    vocabulary = tg.Vocabulary.from_tokens(tokens, allow_partial=True)
    texts = PartialTexts(vocabulary)
    dfa = pattern_dfa("^(?:[ab\u00e9]|\u6f22z|xy|xc)*$")
    ways = texts.ways(dfa)
    assert ways[dfa.start] == 0
    for token, stands in ((b"\xe6\xbc", True), (b"x", False), (b"\xc3", False), (b"\xe6", True)):
        state = dfa.start
        for byte in token:
            state = dfa.rows[state][byte]
        assert (ways[state] < INFINITE) is stands
    ab = counted(pattern_dfa("^[ab\u00e9]*$"), 2, 5)
    assert isinstance(ab, Counted)
    assert texts.counted(ab) == 2
    only = counted(pattern_dfa("^\u00e9*$"), 2, 5)
    assert isinstance(only, Counted)
    assert texts.counted(only) == INFINITE


def test_a_vocabulary_that_lacks_nothing_is_not_looked_at() -> None:
    vocabulary = small("gemma4")
    assert vocabulary.missing_bytes == ()
    assert loaded("gemma4").constraint([], "none", vocabulary=vocabulary).most is None
    assert loaded("gemma4").constraint([], "none", vocabulary=without("gemma4", {b"q"})).most is not None
