"""Every byte up to the end of a turn is exactly one of content, reasoning, a call, markup, an error.

The inputs are the cases from bug reports and turns that walked through the masks, whole and damaged.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import twingram as tg
from twingram.limits import Limits
from twingram.session.spans import KINDS

CASES = [json.loads(line) for line in (Path(__file__).parent / "cases" / "cases.jsonl").read_text("utf-8").splitlines()]
PARSE = [case for case in CASES if case["area"] in ("parse", "server")]
STOPS = {"gemma4": ("<turn|>", "<eos>", "<|tool_response>"), "atem": ("<|eot|>", "<|end_of_text|>")}
PIECES = {
    "gemma4": ["<|tool_call>", "<tool_call|>", '<|"|>', "<|channel>thought\n", "<channel|>", "{", "}", "call:", ","],
    "atem": ["<|start|>", "<|message|>", "<|eom|>", "</atem:parameter>", "</atem:invoke>\n", "<atem:invoke", " to="],
}
SPACE = str.maketrans("", "", " \t\n\r\f\v")
MUTANTS = 6


def read(name: str, text: str, tools: Any = None, *, step: int = 0, **options: Any) -> tg.Parser:
    parser = tg.load_format(name).parser(tools, **options)
    data = text.encode()
    for at in range(0, len(data), step or max(1, len(data))):
        parser.feed_bytes(data[at : at + (step or len(data))])
    parser.finish()
    return parser


def joined(parser: tg.Parser, text: str, kind: str) -> str:
    data = text.encode()
    return "".join(data[start:end].decode("utf-8", "replace") for start, end, found in parser.spans() if found == kind)


def check(name: str, parser: tg.Parser, text: str) -> None:
    spans, message, data = parser.spans(), parser.message, text.encode()
    covered = spans[-1][1] if spans else 0
    assert [start for start, _, _ in spans] == [0, *(end for _, end, _ in spans)][: len(spans)]
    assert all(start < end and kind in KINDS for start, end, kind in spans)
    assert all(one[2] != other[2] for one, other in pairwise(spans))
    if covered < len(data):  # only what follows the end of the turn is left out
        assert data[:covered].endswith(tuple(stop.encode() for stop in STOPS[name])), (text, spans)
    for kind, told in (("content", message.content), ("reasoning", message.reasoning)):
        assert joined(parser, text, kind).translate(SPACE) == (told or "").translate(SPACE), (kind, text, spans)
    assert joined(parser, text, "error") == "".join(error.text for error in message.errors), (text, spans)
    calls = sum(kind == "call" for _, _, kind in spans)
    assert calls <= len(message.calls) + len(message.incomplete_calls)
    assert not message.calls or calls


def mutants(case: dict[str, Any]) -> Iterator[str]:
    rng, text = random.Random(case["id"]), case["input"]
    for _ in range(MUTANTS):
        low = rng.randint(0, len(text))
        high = min(len(text), low + rng.choice((1, 2, 5, 20)))
        put = rng.choice(("", *PIECES[case["format"]]))
        yield text[:low] + put + text[high if rng.random() < 0.6 else low :]


@pytest.mark.parametrize("case", PARSE, ids=[case["id"] for case in PARSE])
def test_each_byte_is_one_thing(case: dict[str, Any]) -> None:
    name = case["format"]
    tail = "<|channel>thought\n" if case.get("start_state") == "reasoning" else ""
    for text in (case["input"], *mutants(case)):
        whole = read(name, text, case["tools"], prompt_tail=tail)
        check(name, whole, text)
        assert read(name, text, case["tools"], prompt_tail=tail, step=3).spans() == whole.spans()
        check(name, read(name, text, case["tools"], prompt_tail=tail, strict=True), text)


CALL = '<|tool_call>call:f{a:<|"|>x<|"|>}<tool_call|>'
BROKEN = "<|tool_call>call:f{a:]<tool_call|>"


def test_a_turn_in_its_parts() -> None:
    text = f"<|channel>thought\nhm<channel|>Well.{CALL}{BROKEN}<turn|>more"
    parser = read("gemma4", text)
    data = text.encode()
    assert [(kind, data[start:end].decode()) for start, end, kind in parser.spans()] == [
        ("markup", "<|channel>thought\n"),
        ("reasoning", "hm"),
        ("markup", "<channel|>"),
        ("content", "Well."),
        ("call", CALL),
        ("error", BROKEN),
        ("markup", "<turn|>"),
    ]


@pytest.mark.parametrize(
    ("options", "kinds"),
    [
        ({}, ["content", "call"]),
        ({"unknown_tools": "text"}, ["content"]),
        ({"limits": Limits(calls=0)}, ["content", "error"]),
        ({"limits": Limits(argument_bytes=20)}, ["content", "error"]),
        ({"limits": Limits(depth=0)}, ["content", "error"]),
    ],
)
def test_what_a_call_can_turn_into(options: dict[str, Any], kinds: list[str]) -> None:
    text = f"So: {CALL}"
    parser = read("gemma4", text, [], **options)
    check("gemma4", parser, text)
    assert [kind for _, _, kind in parser.spans()] == kinds


def test_calls_that_are_cut() -> None:
    assert read("gemma4", CALL[:-8]).spans() == [(0, len(CALL) - 8, "call")]
    assert read("gemma4", "<|tool_call>call:f").spans() == [(0, 18, "error")]


def test_text_that_no_reading_is_left_for() -> None:
    grammar = '//@ format tiny 1\n//@ start turn\n//@ stop "#"\nturn: content\ncontent: "a" TEXT\nTEXT: /[b]+/'
    parser = tg.Format.from_text(grammar).parser()
    parser.feed("abb")
    parser.feed("xé")
    parser.finish()
    assert parser.spans()[-1] == (3, 6, "error")
    assert parser.spans()[0][0] == 0


def test_tokens() -> None:
    vocabulary = tg.Vocabulary.embedded()
    parser = tg.load_format("gemma4").parser(vocabulary=vocabulary)
    parser.feed_tokens(vocabulary.encode(f"Hi {CALL}<turn|>more"))
    parser.finish()
    assert parser.spans() == [(0, 3, "content"), (3, 3 + len(CALL), "call")]


def test_spans_want_a_finished_parser() -> None:
    parser = tg.load_format("gemma4").parser()
    with pytest.raises(tg.RequestError, match="finish"):
        parser.spans()
    parser.finish()
    assert parser.spans() == []
