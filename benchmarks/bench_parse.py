"""Parsing, per token: short calls, long strings, prose. Readers have seen the text before."""

from __future__ import annotations

from typing import Any

import pytest

import twingram as tg

from .peers import Engine, Measure
from .request import PROSE, Case

LENGTHS = {
    "short call": 0,
    "string of 2,000 tokens": 2000,
    "string of 8,000 tokens": 8000,
    "prose of 2,000 tokens": 2000,
}
ROUNDS = {0: 300, 2000: 30, 8000: 10}
FED = {"one by one": 1, "16 together": 16}


def _case(fmt: str, what: str) -> tuple[Case, list[int]]:
    """The request, and the tokens to parse."""
    length, plain = LENGTHS[what], Case(fmt)
    if not length:
        return plain, plain.tokens
    each = len(plain.vocabulary.encode(PROSE * 8)) / 8
    text = PROSE * round(length / each)
    if what.startswith("prose"):
        tokens = plain.vocabulary.encode(text if fmt == "gemma4" else f" to=user<|message|>{text}")
        return plain, tokens
    case = Case(fmt, note=text)
    return case, case.tokens


def _feed(feed: Any, pieces: list[Any]) -> None:
    for piece in pieces:
        feed(piece)


@pytest.mark.parametrize("fed", list(FED))
@pytest.mark.parametrize("what", list(LENGTHS))
def test_tokens(measure: Measure, ours: Engine, fmt: str, what: str, fed: str) -> None:
    case, tokens = _case(fmt, what)
    pieces = [tokens[at : at + FED[fed]] for at in range(0, len(tokens), FED[fed])]
    loaded = tg.load_format(fmt)

    def prepare() -> tuple[Any, ...]:
        return loaded.parser(case.definitions, case.vocabulary).feed_tokens, pieces

    rounds = ROUNDS[LENGTHS[what]]
    measure(f"parse tokens, {what}, {fed}", ours, _feed, prepare, rounds=rounds, per=len(tokens))


@pytest.mark.parametrize("what", list(LENGTHS))
def test_text_by_token(measure: Measure, ours: Engine, fmt: str, what: str) -> None:
    """The text of each token, fed by itself."""
    case, tokens = _case(fmt, what)
    pieces = [case.vocabulary.token_bytes(token).decode() for token in tokens]
    loaded = tg.load_format(fmt)

    def prepare() -> tuple[Any, ...]:
        return loaded.parser(case.definitions).feed, pieces

    rounds = ROUNDS[LENGTHS[what]]
    measure(f"parse text, {what}, token by token", ours, _feed, prepare, rounds=rounds, per=len(tokens))


@pytest.mark.parametrize("what", list(LENGTHS))
def test_text_at_once(measure: Measure, ours: Engine, fmt: str, what: str) -> None:
    case, tokens = _case(fmt, what)
    text = case.vocabulary.decode(tokens).decode()
    loaded = tg.load_format(fmt)

    def prepare() -> tuple[Any, ...]:
        return text, case.definitions

    rounds = ROUNDS[LENGTHS[what]]
    measure(f"parse text, {what}, at once", ours, loaded.parse, prepare, rounds=rounds, per=len(tokens))
