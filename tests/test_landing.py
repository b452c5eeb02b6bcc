"""Landing inside a budget: a forced call is finished within `max_tokens`, whatever the sampling prefers."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from random import Random
from typing import Any

import jsonschema
import pytest

import twingram as tg

from .landings import Lander, least_tokens
from .walks import FORMATS, Asked, sessions, small, violations

TOOLS: list[dict[str, Any]] = [
    {
        "name": "find",
        "parameters": {
            "type": "object",
            "properties": {
                "text": {"type": "string"},
                "tags": {"type": "array", "items": {"type": "string", "maxLength": 20}},
                "limit": {"type": "integer", "minimum": 1},
            },
            "required": ["text"],
        },
    },
    {
        "name": "code",
        "parameters": {
            "type": "object",
            "properties": {"id": {"type": "string", "pattern": "^[a-z]{3}-[0-9]+$"}},
            "required": ["id"],
        },
    },
]
SCHEMAS = {tool["name"]: tool["parameters"] for tool in TOOLS}


def _least(fmt: tg.Format, vocabulary: tg.Vocabulary) -> int:
    return fmt.constraint(TOOLS, "required", vocabulary=vocabulary).session().min_tokens_to_end()


@pytest.mark.parametrize("name", tg.list_formats())
def test_every_call_lands(name: str) -> None:
    """Budgets from the least to 40 more; the walk stays inside strings wherever it may."""
    fmt, vocabulary, rng = tg.load_format(name), _vocabulary(name), Random(name)
    least = _least(fmt, vocabulary)
    lander = Lander(vocabulary, rng)
    for budget in range(least, least + 41):
        session = fmt.constraint(TOOLS, "required", vocabulary=vocabulary, max_tokens=budget).session()
        assert lander.land(session) <= budget
        message = session.message
        assert message.calls
        assert not message.incomplete_calls
        for call in message.calls:
            jsonschema.validate(call.value, SCHEMAS[call.name])
    assert lander.drafts > 41, "drafts are tried at every turn"


def _lands_whatever_is_asked(name: str, requests: int, budgets: Iterable[int]) -> None:
    rng, vocabulary = Random(f"landing {name}"), small(name)
    lander = Lander(vocabulary, rng)
    for question, free in itertools.islice(sessions(name, rng, vocabulary, 1), requests):
        least = least_tokens(free)
        for more in budgets:
            limited = Asked(name, question.tools, question.choice, {**question.options, "max_tokens": least + more})
            session = limited.constraint(vocabulary).session()
            assert lander.land(session) <= least + more
            assert not session.message.incomplete_calls
            for call in session.message.calls:
                assert not violations(question.schema(call.name), call.value)
        if least:
            under = Asked(name, question.tools, question.choice, {**question.options, "max_tokens": least - 1})
            with pytest.raises(tg.RequestError, match=f"the shortest turn has {least} tokens"):
                under.constraint(vocabulary)


@pytest.mark.parametrize("name", FORMATS)
def test_random_requests_land(name: str) -> None:
    _lands_whatever_is_asked(name, 12, (0, 1, 2, 7, 19))


@pytest.mark.heavy
@pytest.mark.parametrize("name", FORMATS)
def test_many_random_requests_land(name: str) -> None:
    _lands_whatever_is_asked(name, 200, range(41))


@pytest.mark.parametrize("name", tg.list_formats())
def test_too_little_is_refused(name: str) -> None:
    fmt, vocabulary = tg.load_format(name), _vocabulary(name)
    least = _least(fmt, vocabulary)
    with pytest.raises(tg.RequestError, match=f"the shortest turn has {least} tokens"):
        fmt.constraint(TOOLS, "required", vocabulary=vocabulary, max_tokens=least - 1)


def test_the_mask_is_what_is_accepted_near_the_end() -> None:
    """Also for drafts, and after a rollback."""
    fmt, vocabulary = tg.load_format("gemma4"), _vocabulary("gemma4")
    constraint = fmt.constraint(TOOLS, "required", vocabulary=vocabulary, max_tokens=_least(fmt, vocabulary) + 2)
    session, rng = constraint.session(), Random(3)
    while not session.is_terminated:
        allowed = set(session.allowed_tokens().tolist())
        for token in range(len(vocabulary)):
            assert (session.validate_tokens([token]) == 1) is (token in allowed), token
        token = rng.choice(sorted(allowed))
        assert session.accept_token(token)
        session.rollback(1)
        assert set(session.allowed_tokens().tolist()) == allowed
        assert session.accept_token(token)


def _vocabulary(name: str) -> tg.Vocabulary:
    """The embedded vocabulary, with the format's own markers where it lacks them."""
    return tg.Vocabulary.embedded(tg.load_format(name).grammar.markers)
