"""Threads: what is compiled is shared, and sixty-four threads at once get what one alone gets.

Everything is cold when the threads start together, and the interpreter switches between them far more often than it
would by itself. One thread's results, from formats of its own, are what all are compared with.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import blake2b
from typing import Any

import pytest

import twingram as tg
from twingram.automaton import expression, interning
from twingram.automaton.dfa import literal as literal_dfa
from twingram.automaton.expression import literal, seq, text
from twingram.automaton.machine import State
from twingram.limits import Limits
from twingram.resources import grammar_path
from twingram.tokens.distance import Distances

THREADS = 64
TREE = {
    "type": "object",
    "properties": {
        "label": {"type": "string", "maxLength": 12},
        "children": {"type": "array", "items": {"$ref": "#"}, "maxItems": 3},
        "extra": {},
    },
    "required": ["label"],
}
WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "unit": {"enum": ["celsius", "fahrenheit"]},
    },
    "required": ["city", "days"],
}
TOOLS = [
    {"type": "function", "function": {"name": "plant", "parameters": TREE}},
    {"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}},
]
OUTPUT = {
    "gemma4": (
        '<|channel>thought\nSo.\n<channel|>Here:<|tool_call>call:plant{label:<|"|>a<|"|>,children:[{label:<|"|>é<|"|>}],'
        'extra:{k:[1,null]}}<tool_call|><|tool_call>call:get_weather{city:<|"|>Köln<|"|>,days:3}<tool_call|><turn|>'
    ),
    "atem": (
        " to=self<|message|>So.<|eom|><|start|>assistant to=plant<|message|><atem:function_calls>\n"
        '<atem:invoke name="plant">\n<atem:parameter name="label">a</atem:parameter>\n'
        '<atem:parameter name="children">[{"label": "é"}]</atem:parameter>\n'
        "</atem:invoke>\n</atem:function_calls><|eot|>"
    ),
}
NAMES = sorted(OUTPUT)
PAGES = Limits(machine_states=40)  # states are forgotten all the time


@pytest.fixture(autouse=True)
def _restless() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def together(work: Callable[[int], Any], threads: int = THREADS) -> list[Any]:
    """What each thread returned; all begin at once. An exception in any of them is raised here."""
    gate = threading.Barrier(threads)

    def run(number: int) -> Any:
        gate.wait(timeout=30)
        return work(number)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(run, range(threads)))


def numbered() -> Callable[[], str]:
    ids = iter(range(1000))
    return lambda: f"call_{next(ids)}"


def fresh(name: str) -> tg.Format:
    """A format that nothing is compiled of yet."""
    return tg.Format.from_file(grammar_path(name))


def parsed(fmt: tg.Format, **options: Any) -> Any:
    parser = fmt.parser(TOOLS, call_id=numbered(), **options)
    output = OUTPUT[fmt.name]
    deltas = [delta for at in range(0, len(output), 5) for delta in parser.feed(output[at : at + 5])]
    return deltas + parser.finish(), parser.message, parser.spans()


def constraint_of(fmt: tg.Format, vocabulary: tg.Vocabulary, **options: Any) -> tg.Constraint:
    return fmt.constraint(TOOLS, "required" if fmt.name == "atem" else "auto", vocabulary=vocabulary, **options)


def generated(constraint: tg.Constraint, tokens: list[int]) -> Any:
    session = constraint.session(call_id=numbered())
    seen = blake2b()
    distances, deltas = [], []
    for token in tokens:
        seen.update(session.mask().tobytes())
        distances.append(session.min_tokens_to_end())
        assert session.accept_token(token)
        deltas += session.take_deltas()
        if token % 7 == 0:
            session.rollback(1)
            assert session.accept_token(token)
    return seen.digest(), distances, deltas, session.message, session.is_terminated


def output_tokens(name: str, vocabulary: tg.Vocabulary) -> list[int]:
    return vocabulary.encode(OUTPUT[name])


@pytest.mark.parametrize("name", NAMES)
def test_one_constraint_shared_by_all(name: str) -> None:
    vocabulary = tg.Vocabulary.embedded()
    tokens = output_tokens(name, vocabulary)
    expected = generated(constraint_of(fresh(name), vocabulary), tokens)
    constraint = constraint_of(fresh(name), vocabulary)
    assert together(lambda _: generated(constraint, tokens)) == [expected] * THREADS


@pytest.mark.parametrize("name", NAMES)
def test_all_compile_the_same_request(name: str) -> None:
    vocabulary = tg.Vocabulary.embedded()
    tokens = output_tokens(name, vocabulary)
    first = constraint_of(fresh(name), vocabulary)
    expected, report = generated(first, tokens), first.report()
    fmt = fresh(name)

    def work(_: int) -> Any:
        constraint = constraint_of(fmt, vocabulary)
        return generated(constraint, tokens), constraint.report()

    assert together(work) == [(expected, report)] * THREADS


@pytest.mark.parametrize("name", NAMES)
def test_a_vocabulary_that_is_new_to_all(name: str) -> None:
    known = tg.Vocabulary.embedded()
    tokens = output_tokens(name, known)
    expected = generated(constraint_of(fresh(name), known), tokens)
    spelt = [known.token_bytes(token) for token in range(len(known))]
    vocabulary, fmt = tg.Vocabulary.from_tokens(spelt, dict(known.special_tokens)), fresh(name)
    found = together(lambda _: generated(constraint_of(fmt, vocabulary), tokens))
    assert found == [expected] * THREADS
    assert constraint_of(fmt, vocabulary).memory_usage() > 0


@pytest.mark.parametrize("name", NAMES)
def test_parsers(name: str) -> None:
    expected = parsed(fresh(name))
    fmt = fresh(name)
    assert together(lambda _: parsed(fmt)) == [expected] * THREADS


@pytest.mark.parametrize("name", NAMES)
def test_states_that_are_forgotten_meanwhile(name: str) -> None:
    vocabulary = tg.Vocabulary.embedded()
    tokens = output_tokens(name, vocabulary)
    whole, expected = parsed(fresh(name)), generated(constraint_of(fresh(name), vocabulary), tokens)
    fmt = fresh(name)
    constraint = constraint_of(fmt, vocabulary, limits=PAGES)

    def work(number: int) -> Any:
        return parsed(fmt, limits=PAGES) if number % 2 else generated(constraint, tokens)

    for _ in range(2):
        assert together(work, 16) == [expected, whole] * 8
    assert constraint.machine.epoch > 0


@pytest.mark.parametrize("name", NAMES)
def test_grammars_that_are_loaded_at_once(name: str) -> None:
    whole = parsed(fresh(name))
    assert together(lambda _: parsed(fresh(name)), 8) == [whole] * 8


def test_an_expression_is_one_object() -> None:
    """The table is emptied as it is filled: nothing else refers to these expressions."""

    def work(words: list[bytes], _: int) -> list[expression.Expr]:
        return [seq(literal(word), text(literal_dfa(b"x"))) for word in words for _ in range(3)]

    words: list[bytes] = []
    for turn in range(20):
        words = [f"{turn} {word}".encode() for word in range(30)]
        found = together(partial(work, words), 16)
        assert all(other[at] is one for other in found for at, one in enumerate(found[0]))
        del found
    gc.collect()
    assert not any(key[1] in words for key in list(interning._TABLE) if key[0] is expression.Literal)


def test_distances_are_never_seen_half_done() -> None:
    vocabulary = tg.Vocabulary.embedded()
    for name in NAMES:
        start = constraint_of(fresh(name), vocabulary).machine.start
        expected = Distances(vocabulary).of_state(start)
        for _ in range(4):
            distances = Distances(vocabulary)
            assert together(partial(_distance, distances, start), 16) == [expected] * 16


def _distance(distances: Distances, state: State, _: int) -> int:
    return distances.of_state(state)
