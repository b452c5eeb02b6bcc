"""Runs that all requests share lead where single bytes lead, whatever has been read."""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import twingram as tg
from tests.fuzz.harness import TOOLS, random_trial
from twingram.automaton import shared
from twingram.automaton.bound import Bound, Env, bound, same
from twingram.automaton.capture import Listed, listed, recorder
from twingram.automaton.dfa import literals
from twingram.automaton.expression import EMPTY, NOTHING, Expr, literal, seq
from twingram.automaton.machine import Machine, State
from twingram.automaton.moves import Moves, compose, simplified

EXAMPLES = 4 * (settings.default.max_examples if settings.default else 50)


def one_by_one(state: State, data: bytes) -> tuple[State, Moves] | None:
    threads, moves = len(state.threads), None
    for at, byte in enumerate(data):
        step = state.step(byte)
        if step is None:
            return None
        moves, state = compose(moves, step.moves, at), step.state
    return state, simplified(moves, threads)


@settings(max_examples=EXAMPLES)
@given(st.integers(0, 2**32))
@example(1017)  # a thread without a meaning recovers
def test_runs_lead_where_single_bytes_lead(seed: int) -> None:
    rng = random.Random(seed)
    trial = random_trial(rng)
    parser = tg.load_format(trial.format).parser(rng.sample(TOOLS, rng.randint(1, len(TOOLS))))
    state, at = parser._text_start(), 0
    while at < len(trial.data):
        piece = trial.data[at : at + rng.choice((1, 2, 3, 5, 8, 20, 60))]
        run, single = state.run(piece), one_by_one(state, piece)
        assert (run is None) == (single is None)
        if run is None or single is None:
            return
        assert run.state is single[0]
        assert run.moves == single[1]
        state, at = run.state, at + len(piece)


@pytest.mark.parametrize("name", ["gemma4", "atem"])
def test_another_request_takes_the_steps_of_the_first(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Some words, and more of them; so it goes. <b> [x] {y} and then the end of it."
    tools = [[{"name": f"tool_{number}", "inputSchema": {"properties": {"a": {}}}}] for number in range(2)]
    states = [tg.load_format(name).parser(each)._text_start() for each in tools]
    assert all(any(isinstance(thread, Bound) for thread in state.threads) for state in states)
    states[0].run(text.encode())
    derived = []
    machine = type(states[0].machine)
    derive = machine.derive
    monkeypatch.setattr(machine, "derive", lambda *given: derived.append(given) or derive(*given))
    states[1].run(text.encode())
    assert len(derived) < len(text) // 2


def test_nothing_is_shared_where_meanings_differ() -> None:
    state = tg.load_format("gemma4").parser(TOOLS)._text_start()
    assert state.shared is not None
    assert shared.shared_of(state.shared.base) is None  # a base has no meaning itself
    name, one, other = same("a"), Env.of({same("a"): literal(b"x")}), Env.of({same("a"): literal(b"y")})
    first, second = seq(literal(b"1"), name), seq(literal(b"2"), name)
    machine = Machine(EMPTY)
    assert machine.state((bound(first, one), bound(second, one))).shared is not None
    assert machine.state((bound(first, one), bound(second, other))).shared is None  # they contradict each other
    assert machine.state((bound(first, one), second)).shared is None  # the second would read what it does not


WORDS = [b"a", b"ab", b"b", b"abc"]


@given(st.lists(st.sampled_from([*WORDS, b"\xc3\xa9", b"x" * 600]), max_size=5), st.binary(max_size=4))
def test_listed_words_are_recorded_as_by_an_automaton(words: list[bytes], text: bytes) -> None:
    """But for words that are too long to be recorded."""
    short = [word for word in words if len(word) < 512]
    one, other = listed(words, "n"), recorder(literals(short), "n")
    assert (one is NOTHING) == (other is NOTHING) == (not short)
    if not short:
        return
    assert isinstance(one, Listed)
    for byte in text:
        assert one.first == other.first  # type: ignore[attr-defined]
        assert [leaf is None for _, leaf, _ in one.heads()] == [leaf is None for _, leaf, _ in other.heads()]
        assert one.shortest == other.shortest
        if not one.first >> byte & 1:
            return
        one, other = _after(one, byte), _after(other, byte)


def _after(expr: Expr, byte: int) -> Expr:
    (leaf,) = (leaf for _, leaf, tail in expr.heads() if leaf is not None and tail is EMPTY)
    return leaf.after(byte)
