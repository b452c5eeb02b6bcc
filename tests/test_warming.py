"""Warming: what a first call would have to make is there, and nothing comes out differently."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import twingram as tg
from twingram.resources import grammar_path
from twingram.session import warming
from twingram.tokens import wide
from twingram.tokens.wide import WideMasks

from .test_guard import CALLS, TOOLS, fresh

NAMES = list(CALLS)


def spoken(name: str) -> tg.Vocabulary:
    """A vocabulary that has the special tokens of a format."""
    grammar = tg.load_format(name).grammar
    known = tg.Vocabulary.embedded()
    missing = [m for m in (*grammar.markers, *grammar.stops) if m not in known.special_tokens]
    spelt = [known.token_bytes(token) for token in range(len(known))]
    special = {**known.special_tokens, **{marker: len(known) + at for at, marker in enumerate(dict.fromkeys(missing))}}
    return tg.Vocabulary.from_tokens([*spelt, *(b"" for _ in missing)], special)


def results(fmt: tg.Format, vocabulary: tg.Vocabulary, name: str) -> Any:
    tokens = vocabulary.encode(CALLS[name]["nested"])
    session = fmt.constraint(TOOLS["nested"], "required", vocabulary=vocabulary).session(call_id=lambda: "id")
    masks = []
    for token in tokens:
        masks.append(session.mask().tobytes())
        assert session.accept_token(token)
    options = {"tools": TOOLS["nested"], "call_id": lambda: "id"}
    parsed = [fmt.parse(CALLS[name]["nested"], **options), fmt.parse(tokens, vocabulary=vocabulary, **options)]
    return masks, session.message, parsed


@pytest.mark.parametrize("name", NAMES)
def test_a_warm_format_says_the_same(name: str) -> None:
    cold, warm = (tg.Format.from_file(grammar_path(name)) for _ in range(2))
    vocabulary = fresh()
    assert warm.warm(vocabulary) is warm
    assert results(warm, vocabulary, name) == results(cold, fresh(), name)


@pytest.mark.parametrize("name", NAMES)
def test_a_first_call_sweeps_no_text(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary, fmt = fresh(), tg.Format.from_file(grammar_path(name))
    fmt.warm(vocabulary)
    rows = len(WideMasks.of(vocabulary)._rows)
    assert rows
    swept: list[Any] = []
    monkeypatch.setattr(wide, "sweep", lambda *args, old=wide.sweep: swept.append(old(*args)) or swept[-1])
    session = fmt.constraint(TOOLS["one"], "required", vocabulary=vocabulary).session()
    for token in vocabulary.encode(CALLS[name]["weather"]):
        session.mask()
        assert session.accept_token(token)
    assert all(len(found.nodes) < 100 for found in swept)  # numbers between the request's own bounds


@pytest.mark.parametrize("name", tg.list_formats())
def test_every_format_can_be_warmed(name: str) -> None:
    tg.load_format(name).warm(spoken(name))


@pytest.mark.parametrize("name", tg.list_formats())
def test_turns_are_calls_and_end(name: str) -> None:
    fmt, vocabulary = tg.load_format(name), spoken(name)
    constraint = fmt.constraint(warming.TOOLS, "required", vocabulary=vocabulary)
    for turn in range(4):
        session = constraint.session()
        tokens = warming.write(constraint, turn)
        assert session.accept_tokens(tokens) == len(tokens)
        assert session.is_accepting
        assert session.message.calls


def test_a_small_vocabulary_leaves_no_rows_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are as quick to make as to read, and tests and demos have many small vocabularies."""
    monkeypatch.setenv("TWINGRAM_CACHE", str(tmp_path))
    tg.Format.from_file(grammar_path("gemma4")).warm(fresh())
    assert not list(tmp_path.rglob("*.bin"))


def test_rows_of_text_are_kept_on_disk_for_a_large_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWINGRAM_CACHE", str(tmp_path))
    monkeypatch.setattr(wide, "WORTH_KEEPING", 100)
    fmt = tg.Format.from_file(grammar_path("gemma4"))
    first = results(fmt, fresh(), "gemma4")
    kept = [path for path in tmp_path.rglob("*.bin") if path.parent.name == "row"]
    assert 0 < len(kept) < 20
    assert results(fmt, fresh(), "gemma4") == first
    assert [path for path in tmp_path.rglob("*.bin") if path.parent.name == "row"] == kept
