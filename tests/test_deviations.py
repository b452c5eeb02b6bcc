"""Every row of the table of deviations gives what it says, at once, in pieces, as tokens; docs/reading.md shows it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import twingram as tg

from .deviations import ROWS, TOOLS, Row
from .reading_table import PAGE, page
from .walks import call_ids, small


def told(message: tg.Message) -> str:
    """A message in words."""
    parts = [("content", message.content), ("reasoning", message.reasoning)]
    out = [f"{name} {_quoted(text)}" for name, text in parts if text is not None]
    out += [f"call {call.name} {call.arguments}" for call in message.calls]
    out += [f"cut {call.name} {call.arguments}" for call in message.incomplete_calls]
    out += [f"error {_quoted(error.text)}" for error in message.errors]
    return "; ".join(out)


def _quoted(text: str) -> str:
    plain = text if '"' not in text or '<|"|>' in text else text.replace('"', '\\"')
    return '"' + plain.replace("\n", "\\n") + '"'


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.format}-{row.number}-{row.what}" for row in ROWS])
def test_row(row: Row) -> None:
    assert told(_read(row, [row.text])) == row.gives
    assert told(_read(row, list(row.text))) == row.gives
    vocabulary = small(row.format)
    parser = tg.load_format(row.format).parser(TOOLS, vocabulary, call_id=call_ids(), **row.options)
    for token in vocabulary.encode(row.text):
        parser.feed_tokens([token])
    parser.finish()
    assert told(parser.message) == row.gives


# Canonical after all, or canonical up to what deviates: read as calls even by a strict parser.
CANONICAL = {
    "a namespace", "a namespace with a dot", "names with - or .", "keys with spaces", "a closer too many",
    "invented response", "`<eos>` for `<|tool_response>`", "a good call after a broken one", "doubled name",
    "another namespace", "second call cut", "a damaged closer",
    "name and parameter glued, tag there",
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.format}-{row.number}-{row.what}" for row in ROWS])
def test_strict_reads_none_of_it(row: Row) -> None:
    """What deviates is an error, or text, when only the canonical form is read."""
    options = {key: value for key, value in row.options.items() if key != "salvage"}
    message = tg.load_format(row.format).parse(row.text, tools=TOOLS, strict=True, **options)
    if row.what in CANONICAL:
        assert message.calls
    else:
        assert not message.calls
    assert message.calls or message.errors or message.content or message.reasoning or message.incomplete_calls


def _read(row: Row, pieces: list[str]) -> tg.Message:
    parser = tg.load_format(row.format).parser(TOOLS, call_id=call_ids(), **row.options)
    for piece in pieces:
        parser.feed(piece)
    parser.finish()
    return parser.message


MARKERS = {
    "<|tool_call>": "<start_function_call>", "<tool_call|>": "<end_function_call>", '<|"|>': "<escape>",
    "<|tool_response>": "<start_function_response>", "<tool_response|>": "<end_function_response>",
    "<turn|>": "<end_of_turn>",
}  # fmt: skip


@pytest.mark.parametrize("row", [row for row in ROWS if row.format == "gemma4"], ids=lambda row: row.what)
def test_formats_of_one_shape_read_alike(row: Row) -> None:
    """The same output with the other format's markers."""
    if "channel" in row.text or "thought" in row.text:
        return
    text, gives = row.text, row.gives
    for one, other in MARKERS.items():
        text, gives = text.replace(one, other), gives.replace(one, other)
    message = tg.load_format("functiongemma").parse(text, tools=TOOLS, call_id=call_ids(), **row.options)
    assert told(message) == gives


def test_the_page_shows_the_table(root: Path) -> None:
    """`python -m tests.reading_table` writes the page anew."""
    assert (root / PAGE).read_text(encoding="utf-8") == page()


def test_arguments_are_json() -> None:
    for row in ROWS:
        for call in _read(row, [row.text]).calls:
            assert isinstance(json.loads(call.arguments), dict)
