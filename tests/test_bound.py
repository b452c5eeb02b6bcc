"""Placeholders that have a meaning read what the expression with the meaning in their places reads."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twingram import load_format
from twingram.automaton.bound import Bound, Env, bound, same
from twingram.automaton.capture import recorder, replaced
from twingram.automaton.choice import alt
from twingram.automaton.derivative import derive
from twingram.automaton.dfa import literals
from twingram.automaton.expression import NOTHING, Expr, literal, mark, repeat, seq
from twingram.automaton.machine import Machine
from twingram.automaton.tags import close_tag, open_tag

_A, _B = same("a"), same("b")
_LEAVES = st.sampled_from(
    [literal(b"x"), literal(b"xy"), literal(b"y"), _A, _B, mark(open_tag("key")), mark(close_tag("key"))]
)
_EXPRESSIONS = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map(lambda parts: seq(*parts)),
        st.lists(inner, min_size=1, max_size=4).map(alt),
        inner.map(lambda body: repeat(seq(literal(b"z"), body))),
    ),
    max_leaves=12,
)
_MEANINGS = st.sampled_from(
    [
        literal(b"x"), literal(b"xyz"), NOTHING, alt((literal(b"xa"), literal(b"y"))),
        seq(mark(open_tag("value")), literal(b"y")),
    ]
)


def _read(expr: Expr, text: bytes) -> list[tuple[list[tuple[object, int]], bool]]:
    """Readings of a text: what they fired, and whether they may end."""
    threads: list[tuple[list[tuple[object, int]], Expr]] = [([], expr)]
    for place, sym in enumerate(text):
        threads = [
            ([*fired, *((each, place) for each in early), *((each, place + 1) for each in late)], rest)
            for fired, at in threads
            for early, late, rest in derive(at, sym)
        ]
    out = []
    for fired, rest in threads:
        for tags, leaf, _ in rest.heads():
            if leaf is None:
                out.append(([*fired, *((each, len(text)) for each in tags)], True))
    return [item for at, item in enumerate(out) if item not in out[:at]]


@given(_EXPRESSIONS, _MEANINGS, _MEANINGS, st.text("xyza", max_size=8))
def test_reads_what_is_put_in_its_place(expr: Expr, first: Expr, second: Expr, text: str) -> None:
    places = {_A: first, _B: second}
    assert _read(bound(expr, Env.of(places)), text.encode()) == _read(replaced(expr, places), text.encode())


@given(_EXPRESSIONS, _MEANINGS, _MEANINGS, _MEANINGS, st.text("xyza", max_size=8))
def test_an_inner_meaning_goes_first(expr: Expr, inner: Expr, outer: Expr, second: Expr, text: str) -> None:
    nested = bound(alt((literal(b"q"), bound(expr, Env.of({_A: inner})))), Env.of({_A: outer, _B: second}))
    assert _read(nested, text.encode()) == _read(replaced(expr, {_A: inner, _B: second}), text.encode())


def test_the_latest_recorder_decides() -> None:
    names = recorder(literals([b"x", b"y"]), "a")
    expr = seq(names, _A, names, _A)
    assert [bool(_read(expr, text)) for text in (b"xxyy", b"xxyx", b"xyyy")] == [True, False, False]


def test_equal_meanings_are_one() -> None:
    assert Env.of({_A: literal(b"x")}) is Env.of({_A: literal(b"x")})
    assert isinstance(bound(_A, Env.of({_A: NOTHING})), Bound)


def test_what_is_not_asked_for_is_left_away() -> None:
    names, env = recorder(literals([b"x", b"y"]), "a"), Env.of({_A: literal(b"x"), _B: literal(b"y")})
    for expr in (literal(b"x"), seq(names, _A), alt((seq(names, literal(b"y"), _A), literal(b"q")))):
        assert bound(expr, env) is expr
    assert bound(seq(_A, names, _A), env) is bound(seq(_A, names, _A), Env.of({_A: literal(b"x")}))


def test_readings_that_part_at_a_name_and_meet_again_are_one() -> None:
    call = load_format("gemma4").parser([{"name": "one", "parameters": {"properties": {"key": {}}}}])
    call.feed('<|tool_call>call:one{key:<|"|>x<|"|>}<tool_call|>')
    free = load_format("gemma4").parser([{"name": "one"}])
    free.feed('<|tool_call>call:two{key:<|"|>x<|"|>}<tool_call|>')
    assert call._reader is not None
    assert free._reader is not None
    assert len(call._reader.state.threads) == len(free._reader.state.threads)


def test_a_key_that_was_read_is_text_from_then_on() -> None:
    tools = [{"name": "f", "parameters": {"properties": {"a": {"type": "string"}, "b": {"type": "string"}}}}]
    for body, told in (
        ("a:x,a:y", '{"a": "x,a:y"}'),
        ("a:x,b:y", '{"a": "x", "b": "y"}'),
        ("a:x,b:y,a:z,b:q", '{"a": "x", "b": "y,a:z,b:q"}'),
    ):
        (call,) = load_format("gemma4").parse(f"<|tool_call>call:f{{{body}}}<tool_call|>", tools).calls
        assert call.arguments == told


def test_tool_sets_share_an_automaton() -> None:
    machines: set[Machine] = set()
    for name in ("one", "two", "three"):
        parser = load_format("gemma4").parser([{"name": name, "parameters": {"properties": {name: {}}}}])
        parser.feed("<|tool_call>call:" + name)
        assert parser._reader is not None
        machines.add(parser._reader.state.machine)
    assert len(machines) == 1
