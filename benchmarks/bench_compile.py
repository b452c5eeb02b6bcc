"""An unseen request: compile, and compile with its first mask. Names are new in every round."""

from __future__ import annotations

from typing import Any

import pytest

from .peers import Engine, Measure, MissingPeer, XGrammarOneThread, loaded
from .request import Case

SIZES = pytest.mark.parametrize("tools", [1, 20])


def _first_mask(engine: Engine, request: Any) -> None:
    _, fill = engine.steps(engine.matcher(engine.compile(request)))
    fill()


@SIZES
def test_compile(measure: Measure, engine: Engine, fmt: str, tools: int) -> None:
    def prepare() -> tuple[Any, ...]:
        return (engine.request(Case(fmt, tools)),)

    measure(f"compile {tools} unseen", engine, engine.compile, prepare, rounds=40, unit="ms")


@SIZES
def test_compile_and_first_mask(measure: Measure, engine: Engine, fmt: str, tools: int) -> None:
    def prepare() -> tuple[Any, ...]:
        return engine, engine.request(Case(fmt, tools))

    measure(f"compile {tools} unseen, first mask", engine, _first_mask, prepare, rounds=40, unit="ms")


@SIZES
def test_compile_and_first_mask_on_one_thread(measure: Measure, fmt: str, tools: int) -> None:
    """Only for the engine that compiles on many."""
    try:
        engine = loaded(XGrammarOneThread, fmt)
    except MissingPeer as missing:
        pytest.skip(str(missing))
    test_compile_and_first_mask(measure, engine, fmt, tools)
