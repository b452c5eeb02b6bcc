"""Masks along a call: at keys, in numbers, in strings; states met before, and a first pass.

A step is a token and the mask after it, written into a row. Matchers are new in every round, from one compiled request;
the first rounds, which are not counted, have met all its states.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from .peers import Accept, Engine, Fill, Measure
from .request import Case

ROUNDS = 300


def _steps(accept: Accept, fill: Fill, tokens: Sequence[int]) -> None:
    for token in tokens:
        accept(token)
        fill()


def _fills(_: Accept, fill: Fill, times: Sequence[int]) -> None:
    for _number in times:
        fill()


@pytest.mark.parametrize("kind", ["key", "number", "string"])
def test_step(measure: Measure, engine: Engine, fmt: str, kind: str) -> None:
    case = Case(fmt)
    compiled = engine.compile(engine.request(case))
    before, tokens = case.stretch(kind)

    def prepare() -> tuple[Any, ...]:
        accept, fill = engine.steps(engine.matcher(compiled))
        _steps(accept, fill, before)
        return accept, fill, tokens

    measure(f"step in a {kind}", engine, _steps, prepare, rounds=ROUNDS, per=len(tokens))


@pytest.mark.parametrize("kind", ["key", "number", "string"])
def test_fill(measure: Measure, engine: Engine, fmt: str, kind: str) -> None:
    """The mask alone, ten times over, in the middle of a key, a number, a string."""
    case = Case(fmt)
    compiled = engine.compile(engine.request(case))
    before, tokens = case.stretch(kind)

    def prepare() -> tuple[Any, ...]:
        accept, fill = engine.steps(engine.matcher(compiled))
        _steps(accept, fill, before + tokens[: len(tokens) // 2])
        return accept, fill, range(10)

    measure(f"fill in a {kind}", engine, _fills, prepare, rounds=ROUNDS, per=10)


def test_steps_of_a_call(measure: Measure, engine: Engine, fmt: str) -> None:
    case = Case(fmt)
    compiled = engine.compile(engine.request(case))

    def prepare() -> tuple[Any, ...]:
        return *engine.steps(engine.matcher(compiled)), case.tokens

    measure("step, whole call", engine, _steps, prepare, rounds=ROUNDS, per=len(case.tokens))


def test_steps_by_reference(measure: Measure, ours: Engine, fmt: str) -> None:
    """The shared row itself, not a copy of it."""
    case = Case(fmt)
    compiled = ours.compile(ours.request(case))

    def prepare() -> tuple[Any, ...]:
        session = ours.matcher(compiled)
        return session.accept_token, session.mask, case.tokens

    measure("step by reference, whole call", ours, _steps, prepare, rounds=ROUNDS, per=len(case.tokens))


def test_first_pass(measure: Measure, engine: Engine, fmt: str) -> None:
    """The first call of a request that is compiled: no state was met before."""
    kept: list[Any] = []

    def prepare() -> tuple[Any, ...]:
        case = Case(fmt)
        kept[:] = [engine.matcher(engine.compile(engine.request(case)))]
        return *engine.steps(kept[0]), case.tokens

    measure("step, first pass", engine, _steps, prepare, rounds=30, per=len(Case(fmt).tokens))
