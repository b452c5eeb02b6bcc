"""The grammar files mean to Lark's Earley parser what they mean to the engine.

Lark knows nothing of tokens, bytes, streams or masks; it reads whole texts, slowly, so these are short: turns walked
through the masks, and turns written by an outside generator.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import twingram as tg

from .oracle.generate import NoValue, random_arguments, random_tools
from .oracle.lark_reader import Reading, read
from .oracle.render import render_turn
from .walks import FORMATS, RUNES, Asked, Walker, loaded, sessions, small

LONGEST = 400  # characters: Earley takes cubic time
PROSE = ("", "Let me look.", "a < b, [x] {y}\n\nz é漢😀", " two\nlines ", '"quoted" call:it')
THOUGHTS = (None, "hm", "first\n\nthen {x} | <y>", "call:f{}")


@pytest.mark.parametrize("count", [150, pytest.param(1500, marks=pytest.mark.heavy)])
@pytest.mark.parametrize("name", FORMATS)
def test_generated_turns_are_read_alike(name: str, count: int) -> None:
    rng = random.Random(f"earley {name}")
    walker = Walker(small(name), rng, soft=20)
    for _, (question, constraint) in zip(range(count), _short(name, rng), strict=False):
        session = constraint.session()
        tokens = walker.walk(session)
        text = session.text.decode()
        if len(text) <= LONGEST:
            _check(name, text, question, session.message)
            assert tokens


def _short(name: str, rng: random.Random) -> Iterator[tuple[Asked, tg.Constraint]]:
    for question, constraint in sessions(name, rng, small(name), 2):
        if "prompt_tail" not in question.options:
            yield question, constraint


@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.heavy)])
@pytest.mark.parametrize("name", FORMATS)
def test_written_turns_are_read_alike(name: str, count: int) -> None:
    rng = random.Random(f"written {name}")
    for question, text in islice(_written(name, rng), count):
        _check(name, text, question, loaded(name).parse(text, tools=question.tools))


def _written(name: str, rng: random.Random) -> Iterator[tuple[Asked, str]]:
    """Turns with thoughts, prose and calls, where the format has a place for them."""
    while True:
        tools = random_tools(rng, 2, depth=1, odd_keys=name != "runes")
        try:
            chosen = [rng.choice(tools) for _ in range(rng.randint(0, 2))]
            calls = [(each["function"]["name"], random_arguments(each, name, rng)) for each in chosen]
        except NoValue:
            continue
        content = rng.choice(PROSE) if name != "atem" or not calls else None
        text = render_turn(name, calls, reasoning=rng.choice(THOUGHTS), content=content, sort=name == "gemma4")
        if len(text) <= LONGEST:
            yield Asked(name, tools, "auto"), text


def _check(name: str, text: str, question: Asked, message: tg.Message) -> None:
    reading = read(_path(name), text, start=loaded(name).grammar.starts[0].rule, tools=question.tools)
    assert reading is not None, f"Lark cannot read {text!r}"
    assert not message.errors, text
    assert _plain(reading.content) == _plain(message.content), text
    assert _plain(reading.reasoning) == _plain(message.reasoning), text
    assert _calls(reading) == [(call.name, _exact(call.value)) for call in message.calls], text


def _path(name: str) -> Path:
    return RUNES if name == "runes" else Path(loaded(name).grammar.file)


def _plain(text: str | None) -> str:
    """Lark keeps the white space that the engine's trims take off."""
    return "\n".join(line for line in (text or "").strip().splitlines() if line.strip())


def _calls(reading: Reading) -> list[tuple[str, str]]:
    return [(name, _exact(arguments)) for name, arguments in reading.calls]


def _exact(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
