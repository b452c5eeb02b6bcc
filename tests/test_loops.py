"""Long texts: what is skipped whole is read as if it had been read byte by byte."""

from __future__ import annotations

import random

import pytest

import twingram as tg
from twingram.automaton.loops import loop_of
from twingram.automaton.machine import State
from twingram.schema.declared import Place
from twingram.session.deltas import merge

TOOLS = [{"name": "f", "inputSchema": {"properties": {"note": {"type": "string"}, "a": {}}}}]
HEADS = {
    "gemma4": ["", '<|tool_call>call:f{note:<|"|>', "<|channel>thought\n", "<|tool_call>call:f{note:"],
    "atem": [
        *("", " to=self<|message|>"),
        ' to=f<|message|><atem:function_calls>\n<atem:invoke name="f">\n<atem:parameter name="a">',
    ],
    "functiongemma": ["", "<start_function_call>call:f{a:<escape>"],
}
OFTEN = ["the ", "word, ", " \n", "é", "漢字", "😀", "a", "b c"]
SELDOM = ["<", "<|", "|>", "}", "{", "\n\n", '"', "</", "<a", ": ", "<tool", '<|"|>', "<escape>", "\r\n", "\t"]
CASES = [(name, head) for name, heads in HEADS.items() for head in heads]


@pytest.mark.parametrize(("name", "head"), CASES)
def test_pieces_do_not_matter_in_long_texts(name: str, head: str) -> None:
    rng, fmt = random.Random(f"{name} {head}"), tg.load_format(name)
    for weight in (2, 10, 60):
        parts = [*OFTEN, *SELDOM]
        body = rng.choices(parts, [weight] * len(OFTEN) + [1] * len(SELDOM), k=600)
        data = (head + "".join(body)).encode()
        whole = fmt.parser(TOOLS, call_id=lambda: "x")
        wanted = merge(whole.feed_bytes(data) + whole.finish())
        pieces = fmt.parser(TOOLS, call_id=lambda: "x")
        found, at = [], 0
        while at < len(data):
            size = rng.choice([1, 1, 2, 5, 30, 200])
            found += pieces.feed_bytes(data[at : at + size])
            at += size
        assert merge(found + pieces.finish()) == wanted, data
        assert pieces.spans() == whole.spans(), data


@pytest.mark.parametrize(("name", "head"), CASES)
def test_a_loop_leads_back_with_nothing_fired(name: str, head: str) -> None:
    """Each run that the expression of a state matches, followed step by step."""
    fmt, text = tg.load_format(name), "The words, 漢字 and é.\n" * 40
    parser = fmt.parser(TOOLS)
    parser.feed(head + text)
    assert parser._reader is not None
    states = {id(state): state for state in _met(parser._reader.state, 3)}
    looping = 0
    for state in states.values():
        loop = loop_of(state)
        found = None if loop is None else loop.search(text.encode())
        if found is not None:
            looping += 1
            transition = state.run(found[0])
            assert transition is not None
            assert transition.state is state
            assert transition.moves is None
    assert looping, "a text region without a loop"


def _met(state: State, depth: int) -> list[State]:
    """The state and those that are known to follow it."""
    after = [step.state for symbol, step in state.next.items() if step is not None and symbol < 256]
    return [state, *(far for near in after if depth for far in _met(near, depth - 1) if near is not state)]


def test_a_place_says_the_same_however_often_it_is_asked() -> None:
    schema = {
        "properties": {"a": {"type": "string"}, "l": {"prefixItems": [{"type": "null"}], "items": {"type": "number"}}},
        "patternProperties": {"^x": {"type": "boolean"}},
        "additionalProperties": {"type": "integer"},
    }
    plain = {key: value for key, value in schema.items() if key != "patternProperties"}
    wanted = {"a": "string", "xa": "boolean", "other": "integer", "": "integer"}
    for described, expected in ((schema, wanted), (plain, wanted | {"xa": "integer"})):
        place = Place.of(described)
        for _ in range(3):
            assert {key: min(place.member(key).types or ()) for key in expected} == expected
            items = [place.member("l").item(index).types for index in (0, 1, 2, 100)]
            assert items == [{"null"}, *[{"number", "integer"}] * 3]
