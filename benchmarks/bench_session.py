"""Sessions: tokens without masks, whole unseen calls, and what only our sessions do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from .peers import Accept, Engine, Measure
from .request import Case

ROUNDS = 300


def _accept(accept: Accept, tokens: Sequence[int]) -> None:
    for token in tokens:
        accept(token)


def _cold(engine: Engine, request: Any, tokens: Sequence[int]) -> None:
    accept, fill = engine.steps(engine.matcher(engine.compile(request)))
    for token in tokens:
        fill()
        accept(token)


def _taking(session: Any, tokens: Sequence[int]) -> None:
    for token in tokens:
        session.accept_token(token)
        session.mask()
        session.take_deltas()


def test_advance(measure: Measure, engine: Engine, fmt: str) -> None:
    case = Case(fmt)
    compiled = engine.compile(engine.request(case))

    def prepare() -> tuple[Any, ...]:
        accept, _ = engine.steps(engine.matcher(compiled))
        return accept, case.tokens

    measure("advance, whole call", engine, _accept, prepare, rounds=ROUNDS, per=len(case.tokens))


@pytest.mark.parametrize("tools", [1, 20])
def test_unseen_call(measure: Measure, engine: Engine, fmt: str, tools: int) -> None:
    """Compile, and every mask and token of one call."""

    def prepare() -> tuple[Any, ...]:
        case = Case(fmt, tools)
        return engine, engine.request(case), case.tokens

    measure(f"whole call of {tools} unseen", engine, _cold, prepare, rounds=30, unit="ms")


def test_steps_with_deltas(measure: Measure, ours: Engine, fmt: str) -> None:
    case = Case(fmt)
    compiled = ours.compile(ours.request(case))

    def prepare() -> tuple[Any, ...]:
        return ours.matcher(compiled), case.tokens

    measure("step by reference with deltas", ours, _taking, prepare, rounds=ROUNDS, per=len(case.tokens))


OPERATIONS: dict[str, Callable[[Any], object]] = {
    "roll back 8 tokens": lambda session: session.rollback(8),
    "fork": lambda session: session.fork(),
    "jump forward": lambda session: session.jump_forward(),
    "tokens to the end": lambda session: session.min_tokens_to_end(),
    "message": lambda session: session.message,
}


@pytest.mark.parametrize("name", list(OPERATIONS))
def test_operation(measure: Measure, ours: Engine, fmt: str, name: str) -> None:
    """One operation before the second key of a call."""
    case = Case(fmt)
    compiled = ours.compile(ours.request(case))
    before, _ = case.stretch("number")
    half = before[:-2]

    def prepare() -> tuple[Any, ...]:
        session = ours.matcher(compiled)
        session.accept_tokens(half)
        return (session,)

    measure(name, ours, OPERATIONS[name], prepare, rounds=ROUNDS)
