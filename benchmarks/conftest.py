"""What the suites share: engines, or a skip that says what is missing; and how something is timed."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.vocabularies import MissingVocabulary

from .peers import ENGINES, Engine, Measure, MissingPeer, loaded
from .request import FORMATS, vocabulary_of


@pytest.fixture(params=FORMATS)
def fmt(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    try:
        vocabulary_of(name)
    except MissingVocabulary as missing:
        pytest.skip(f"no vocabulary; run: {missing}")
    return name


@pytest.fixture(params=ENGINES, ids=lambda kind: kind.name)
def engine(request: pytest.FixtureRequest, fmt: str) -> Engine:
    try:
        return loaded(request.param, fmt)
    except MissingPeer as missing:
        pytest.skip(str(missing))


@pytest.fixture
def ours(fmt: str) -> Engine:
    return loaded(ENGINES[0], fmt)


@pytest.fixture
def measure(benchmark: Any, fmt: str) -> Measure:
    """Time `target(*prepare())`, so many rounds. `per` is how many steps a round has: ratios.py divides by it."""

    def run(
        what: str, engine: Engine, target: Callable[..., object], prepare: Callable[[], tuple[Any, ...]], *,
        rounds: int, per: int = 1, unit: str = "us",
    ) -> None:  # fmt: skip
        benchmark.group = f"{fmt}: {what}"
        benchmark.extra_info.update(engine=engine.name, per=per, unit=unit)
        gc.collect()
        benchmark.pedantic(target, setup=partial(_prepared, prepare), rounds=rounds, warmup_rounds=min(3, rounds // 3))

    return run


def _prepared(prepare: Callable[[], tuple[Any, ...]]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return prepare(), {}
