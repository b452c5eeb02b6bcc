"""Landing inside a budget: a forced call is finished within `max_tokens`, whatever the sampling prefers."""

from __future__ import annotations

from random import Random
from typing import Any

import jsonschema
import pytest

import twingram as tg

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
    marks = set(vocabulary.special_tokens.values())
    for budget in range(least, least + 41):
        constraint = fmt.constraint(TOOLS, "required", vocabulary=vocabulary, max_tokens=budget)
        session, taken = constraint.session(), 0
        while not session.is_terminated:
            allowed = session.allowed_tokens().tolist()
            ordinary = [token for token in allowed if token not in marks]
            going = [token for token in allowed if token not in constraint.binding.stops]
            assert session.accept_token(rng.choice(ordinary or going or allowed))
            taken += 1
        assert taken - 1 <= budget
        message = session.message
        assert message.calls
        assert not message.incomplete_calls
        for call in message.calls:
            jsonschema.validate(call.value, SCHEMAS[call.name])


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
    vocabulary = tg.Vocabulary.embedded()
    missing = [marker for marker in tg.load_format(name).grammar.markers if marker not in vocabulary.special_tokens]
    if not missing:
        return vocabulary
    tokens = [vocabulary.token_bytes(i) for i in range(len(vocabulary))]
    special = dict(vocabulary.special_tokens) | {marker: len(tokens) + i for i, marker in enumerate(missing)}
    return tg.Vocabulary.from_tokens(tokens, special_tokens=special, size=len(tokens) + len(missing))
