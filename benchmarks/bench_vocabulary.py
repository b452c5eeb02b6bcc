"""Loading a vocabulary: ours from its file, with and without the disk cache; the peers' from byte strings in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import twingram as tg
from tests.vocabularies import GEMMA_MARKERS, LLAMA4_MARKERS, LLAMA4_SIZE, gemma_path, llama4_path

from .peers import Engine, Measure
from .request import vocabulary_of


def _load(fmt: str) -> Callable[[], tg.Vocabulary]:
    if fmt == "gemma4":
        path = gemma_path()
        return lambda: tg.Vocabulary.from_file(path, special_tokens=GEMMA_MARKERS)
    ranks = llama4_path()
    return lambda: tg.Vocabulary.from_file(ranks, special_tokens=LLAMA4_MARKERS, size=LLAMA4_SIZE)


def _ready(load: Callable[[], tg.Vocabulary], fmt: str) -> None:
    """The vocabulary, and a first constraint with its mask: what is put off until it is needed."""
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
    tg.load_format(fmt).constraint(tools, "required", vocabulary=load()).session().mask()


@pytest.mark.parametrize("cached", [True, False], ids=["cached", "uncached"])
def test_load(measure: Measure, ours: Engine, fmt: str, cached: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not cached:
        monkeypatch.setenv("TWINGRAM_CACHE", "0")

    def prepare() -> tuple[Any, ...]:
        return _load(fmt), fmt

    what = "load a vocabulary" if cached else "load a vocabulary, no disk cache"
    measure(what, ours, _ready, prepare, rounds=6 if cached else 2, unit="ms")


def test_load_of_a_peer(measure: Measure, engine: Engine, fmt: str) -> None:
    """From the bytes of each token; reading the tokenizer's file is not in it."""
    if engine.name == "twingram":
        pytest.skip("see test_load")

    def prepare() -> tuple[Any, ...]:
        return type(engine).load, engine, vocabulary_of(fmt)

    measure("load a vocabulary", engine, _again, prepare, rounds=3, unit="ms")


def _again(load: Callable[[Engine, tg.Vocabulary], None], engine: Engine, vocabulary: tg.Vocabulary) -> None:
    load(engine, vocabulary)
