"""Acts: tags worked out beforehand do what the same tags do one by one, whatever has happened before."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twingram.automaton.tags import COMMIT, Tag, TagKind, close_tag, open_tag, tag
from twingram.limits import Limits
from twingram.session.acts import acts_of, play
from twingram.session.deltas import Delta, merge
from twingram.session.emitter import Emitter
from twingram.session.scopes import Scope
from twingram.session.tools import Tools

TOOLS = Tools.parse(
    [
        {
            "name": "f",
            "inputSchema": {
                "properties": {
                    "a": {"type": "string"},
                    "b": {"type": "integer"},
                    "c": {"type": ["string", "number"]},
                    "d": {"type": "array", "items": {"type": "string"}},
                    "e": {"properties": {"a": {"type": "boolean"}}},
                }
            },
        }
    ]
)
OPTIONS: list[dict[str, Any]] = [
    {"casts": "quoted"},
    {"casts": "raw"},
    {"casts": "quoted", "unknown_tools": "text"},
    {"casts": "quoted", "limits": Limits(depth=2)},
    {"casts": "quoted", "limits": Limits(argument_bytes=25)},
    {"casts": "raw", "limits": Limits(calls=1)},
    {"casts": "quoted", "direct": frozenset({"reasoning"})},
]
SCALARS = [("number", "12"), ("number", "-01.50"), ("true", "true"), ("null", "null"), ("bare", "a b"), ("bare", "3")]
ODD = [
    *(open_tag(role) for role in ("silent", "dropped", "error", "key", "string", "tool_call", "object", "member")),
    *(close_tag(role) for role in ("silent", "error", "text", "string", "object", "member", "tool_call", "content")),
    *(tag(TagKind.ABORT, role) for role in ("tool_call", "member", "string", "reasoning")),
    *(tag(TagKind.STOP, "<stop>"), tag(TagKind.CUT, "")),
]


class Turn:
    """A turn at random: text and tags as a grammar fires them, and now and then a tag that does not belong."""

    def __init__(self, rng: random.Random, odd: float) -> None:
        self.rng, self.odd = rng, odd
        self.text = bytearray()
        self.events: list[tuple[Tag, int]] = []
        for _ in range(rng.randint(1, 3)):
            rng.choice((self.call, self.call, lambda: self.span("content", self.words()), self.thought))()
            if rng.random() < odd:
                self.tag(tag(TagKind.STOP, "<stop>"))

    def tag(self, *marks: Tag) -> None:
        for mark in marks:
            if self.rng.random() < self.odd:
                self.events.append((self.rng.choice(ODD), len(self.text)))
            self.events.append((mark, len(self.text)))

    def put(self, text: str | bytes) -> None:
        self.text += text if isinstance(text, bytes) else text.encode()

    def span(self, role: str, text: str | bytes) -> None:
        self.tag(open_tag(role))
        self.put(text)
        if self.rng.random() < self.odd:
            self.span("silent", " ")
            self.put(text)
        self.tag(close_tag(role))

    def words(self) -> str | bytes:
        return self.rng.choice(("", "x", "two words", ' "q" ', "\\u00e9\\", "é", b"\xc3", b"\xff", "\n", "7", "true"))

    def thought(self) -> None:
        self.put("<t>")
        self.span("reasoning", self.words())

    def call(self) -> None:
        self.tag(open_tag("tool_call"))
        self.put("<c>")
        self.span("tool_name", self.rng.choice(("f", "f", " f", "other")))
        self.tag(COMMIT)
        self.container("object", 0)
        self.put("</c>")
        self.tag(close_tag("tool_call"))

    def container(self, role: str, depth: int) -> None:
        self.tag(open_tag(role))
        self.put("{")
        for _ in range(self.rng.randint(0, 3)):
            if role == "object":
                self.tag(open_tag("member"))
                self.span("key", self.rng.choice(("a", "b", "c", "d", "e", "'k'", "x y")))
                self.put(":")
            self.value(depth + 1)
            if role == "object":
                self.tag(close_tag("member"))
            self.put(",")
        self.put("}")
        self.tag(close_tag(role))

    def value(self, depth: int) -> None:
        kind = self.rng.choice(("string", "string", "scalar", "scalar", "container"))
        if kind == "scalar":
            self.span(*self.rng.choice(SCALARS))
        elif kind == "container" and depth < 4:
            self.container(self.rng.choice(("object", "array")), depth)
        else:
            self.tag(open_tag("string"))
            self.put("«")
            if self.rng.random() < 0.8:
                self.span(self.rng.choice(("text", "text", "escaped")), self.words())
            self.put("»")
            self.tag(close_tag("string"))


def chain(scope: Scope | None) -> list[tuple[Any, ...]]:
    """All that is known of what is open."""
    scopes = [] if scope is None else [*scope]
    return [(one.role, one.state, one.sink, one.start, one.mark, one.led, one.parts, one.note) for one in scopes]


def inside(emitter: Emitter) -> tuple[Any, ...]:
    arguments = emitter._arguments
    where = None if arguments is None else (arguments.index, arguments.depth, arguments.bound, arguments.place())
    return chain(emitter._scope), emitter._sent, emitter._sink, emitter._stop, emitter._bound, emitter._calls, where


def emitter(options: dict[str, Any]) -> Emitter:
    return Emitter(TOOLS, call_id=lambda index: f"id{index}", **options)


@settings(max_examples=10 * (settings.default.max_examples if settings.default else 50))
@given(st.integers(0, 2**32), st.sampled_from(OPTIONS), st.sampled_from([0.0, 0.0, 0.05, 0.3]))
def test_acts_do_what_their_tags_do(seed: int, options: dict[str, Any], odd: float) -> None:
    rng = random.Random(seed)
    turn = Turn(rng, odd)
    one, other, at = emitter(options), emitter(options), 0
    told, heard = list[Delta](), list[Delta]()
    while at < len(turn.events):
        width = rng.choice((1, 1, 2, 3, 4, 7))
        run = turn.events[at : at + width]
        base = rng.choice((0, run[0][1]))
        tags = [(mark, position - base) for mark, position in run]
        text = turn.text[: run[-1][1]]
        one.fire(text, tags, base)
        play(other, text, acts_of(tags), tags, base)
        assert inside(one) == inside(other)
        if rng.random() < 0.5:
            told += one.more(text, run[-1][1])
            heard += other.more(text, run[-1][1])
            assert told == heard
        at += width
    told += one.finish(turn.text, len(turn.text))
    heard += other.finish(turn.text, len(turn.text))
    assert merge(told) == merge(heard)


@pytest.mark.parametrize(
    ("tags", "acts"),
    [
        ([("open", "number"), ("close", "number"), ("close", "member")], ["_scalar", "_close_plain"]),
        ([("open", "member"), ("open", "key")], ["_open_member"]),
        ([("open", "key"), ("close", "key")], ["_key"]),
        ([("open", "string"), ("open", "text")], ["_open_string"]),
        ([("close", "escaped"), ("close", "string")], ["_close_string"]),
        ([("open", "tool_name"), ("close", "tool_name"), ("open", "object")], ["_name", "_open_container"]),
        ([("abort", "member"), ("open", "key")], ["_otherwise"]),
    ],
)
def test_what_comes_together_is_one_act(tags: list[tuple[str, str]], acts: list[str]) -> None:
    run = [(tag(TagKind[kind.upper()], role), 0) for kind, role in tags]
    assert [act.do.__name__ for act in acts_of(run)] == acts
