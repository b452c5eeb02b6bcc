"""The collector of cyclic garbage rests while something is compiled, and is then as it was."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

import twingram as tg
from twingram.uncollected import UNCOLLECTED

from .walks import small

WIDE = {"type": "object", "properties": {f"k{n}": {"type": "string", "pattern": f"^a{n}[bc]*$"} for n in range(300)}}


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    yield
    assert gc.isenabled()
    assert not UNCOLLECTED._inside


def test_it_rests_inside_and_works_afterwards() -> None:
    with UNCOLLECTED:
        assert not gc.isenabled()
        with UNCOLLECTED:
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_errors_leave_it_on() -> None:
    with pytest.raises(KeyError), UNCOLLECTED:
        raise KeyError
    assert gc.isenabled()


def test_whoever_has_turned_it_off_finds_it_off() -> None:
    gc.disable()
    try:
        with UNCOLLECTED:
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_last_thread_turns_it_on() -> None:
    barrier = Barrier(4, timeout=20)

    def stay() -> bool:
        with UNCOLLECTED:
            barrier.wait()  # all are inside
            off = not gc.isenabled()
            barrier.wait()
        return off

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(lambda _: stay(), range(4)))
    assert gc.isenabled()


def test_many_threads_in_and_out() -> None:
    def some(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(300):
            with UNCOLLECTED:
                if rng.random() < 0.3:
                    with UNCOLLECTED:
                        assert not gc.isenabled()
            assert UNCOLLECTED._inside >= 0

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(some, range(8)))


def collections_of(act: Callable[[], Any]) -> int:
    """How often the collector has walked anything meanwhile."""
    gc.collect()
    before = sum(generation["collections"] for generation in gc.get_stats())
    kept = act()  # what it returns lives until all is counted
    after = sum(generation["collections"] for generation in gc.get_stats())
    assert kept is not None
    return after - before


def test_a_request_is_compiled_without_it() -> None:
    tools = [{"name": "f", "parameters": WIDE}]
    fmt, vocabulary = tg.load_format("gemma4"), small("gemma4")
    tg.set_cache_budget(0)
    tg.set_cache_budget(256 << 20)
    assert collections_of(lambda: fmt.constraint(tools, "required", vocabulary=vocabulary)) <= 2
    assert gc.isenabled()


def test_a_request_that_is_refused_leaves_it_on() -> None:
    tools = [{"name": "f", "parameters": {"type": "object", "properties": {"a": False}, "required": ["a"]}}]
    with pytest.raises(tg.SchemaError):
        tg.load_format("gemma4").constraint(
            tools, {"type": "function", "function": {"name": "f"}}, vocabulary=small("gemma4")
        )
    assert gc.isenabled()
