"""What is put off until it comes first: made for what is read, not for what is looked at, and in time for its tags."""

from __future__ import annotations

from typing import Any

import pytest

import twingram as tg
from twingram.automaton.choice import alt, maybe
from twingram.automaton.expression import EMPTY, Expr, literal, mark, seq
from twingram.automaton.hoist import PutOff, hoist, opened
from twingram.automaton.interning import intern
from twingram.automaton.machine import Machine
from twingram.automaton.members import KeyStep
from twingram.automaton.tags import open_tag
from twingram.tokens.walk import Walk
from twingram.tokens.wide import WideMasks

from .walks import loaded, small

TEXTS = {
    "gemma4": '<|tool_call>call:f{alpha:<|"|>x<|"|>,beta:[1,2],gamma:{delta:true}}<tool_call|>',
    "atem": (
        ' to=f<|message|><atem:function_calls>\n<atem:invoke name="f">\n'
        '<atem:parameter name="alpha">x</atem:parameter>\n<atem:parameter name="beta">[1,2]</atem:parameter>\n'
        '<atem:parameter name="gamma">{"delta":true}</atem:parameter>\n'
        "</atem:invoke>\n</atem:function_calls>"
    ),
}
OBJECT = {
    "type": "object",
    "properties": {
        "alpha": {"type": "string"},
        "beta": {"type": "array", "items": {"type": "integer"}},
        "gamma": {"type": "object", "properties": {"delta": {"type": "boolean"}, "deltas": {"type": "null"}}},
    },
}
WIDER = {**OBJECT, "properties": {**OBJECT["properties"], "omega": {"type": "string"}}}  # type: ignore[dict-item]


class Twice(PutOff):
    """A letter, twice, between tags."""

    __slots__ = ("letter",)

    def __init__(self, letter: bytes) -> None:
        self.letter, self._made = letter, None

    @property
    def opening(self) -> Expr:
        return literal(self.letter)

    def before(self, tail: Expr) -> Expr:
        return seq(mark(open_tag("key")), literal(self.letter), literal(self.letter), tail)


def test_what_is_put_off_takes_its_place_when_it_comes_first() -> None:
    tail = literal(b"z")
    off = intern(Twice, b"a")
    made = seq(literal(b"a"), literal(b"a"), tail)
    assert opened(seq(off, tail)) is seq(mark(open_tag("key")), made)
    assert hoist(seq(off, tail)) == ((open_tag("key"),), made)
    assert opened(seq(literal(b"b"), off)) is seq(literal(b"b"), off)
    assert off.heads() == off.before(EMPTY).heads()
    assert off.shortest == 2


def test_alternatives_are_put_together_so_that_what_they_share_is_found() -> None:
    one, other = seq(intern(Twice, b"a"), literal(b"x")), seq(intern(Twice, b"a"), literal(b"y"))
    aa = (mark(open_tag("key")), literal(b"a"), literal(b"a"))
    assert alt((one, other)) is seq(*aa, alt((literal(b"x"), literal(b"y"))))


class Perhaps(PutOff):
    """A letter, or nothing."""

    __slots__ = ()

    def __init__(self) -> None:
        self._made = None

    @property
    def opening(self) -> Expr:
        return maybe(literal(b"b"))

    def before(self, tail: Expr) -> Expr:
        return seq(self.opening, tail)


def test_a_mask_looks_past_what_may_begin_with_nothing() -> None:
    words = [*(bytes((byte,)) for byte in range(256)), b"ac", b"acx", b"ax"]
    vocabulary = tg.Vocabulary.from_tokens(words, {"<end>": len(words)})
    ids: list[int] = []
    start = seq(literal(b"a"), intern(Perhaps), literal(b"c"))
    Walk(WideMasks.of(vocabulary), ids, []).begin(Machine(start).start)
    assert sorted(words[token] for token in ids) == [b"a", b"ac"]


def deltas(name: str, schema: Any) -> list[list[Any]]:
    """What comes with each byte of the call."""
    tools = [{"name": "f", "parameters": schema}]
    vocabulary = small(name)
    session = loaded(name).constraint(tools, "required", vocabulary=vocabulary).session(call_id=lambda: "c")
    out = []
    for token in vocabulary.encode(TEXTS[name]):
        assert session.accept_token(token)
        out.append(session.take_deltas())
    return out


@pytest.mark.parametrize("name", ["gemma4", "atem"])
def test_deltas_come_as_early_where_objects_share_their_keys(name: str) -> None:
    assert deltas(name, {"anyOf": [OBJECT, WIDER]}) == deltas(name, OBJECT) == deltas(name, WIDER)


@pytest.mark.parametrize("name", ["gemma4", "atem"])
def test_a_mask_looks_at_keys_and_makes_no_members(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    rest = KeyStep.rest

    def counted(self: KeyStep, bit: int, tail: Expr = EMPTY) -> Expr:
        made.append(bit)
        return rest(self, bit, tail)

    monkeypatch.setattr(KeyStep, "rest", counted)
    properties = {f"{letter}_member_of_its_own": {"type": "string"} for letter in "abcdefghijklmnopqrstuvwxyz"}
    tools = [{"name": "f", "parameters": {"type": "object", "properties": properties}}]
    vocabulary = tg.Vocabulary.embedded()
    session = loaded(name).constraint(tools, "required", vocabulary=vocabulary).session()
    text = TEXTS[name].partition("alpha")[0]
    for token in vocabulary.encode(text):
        assert session.accept_token(token)
    session.mask()
    assert not made
    for token in vocabulary.encode("q_member_of_its_own" + {"gemma4": ":", "atem": '">'}[name]):
        session.mask()
        assert session.accept_token(token)
    assert set(made) == {16}
