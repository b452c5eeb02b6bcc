"""Turns that need one alternative of a grammar each, beside those in the table of deviations.

`scripts/alternatives.py` takes each alternative out and asks whether one of these answers, or one of the table, changes.
"""

from __future__ import annotations

from typing import Any

import pytest

import twingram as tg

from .deviations import TOOLS
from .test_deviations import told
from .walks import call_ids

_Turn = tuple[str, str, dict[str, Any]]
GIVES: tuple[tuple[_Turn, str], ...] = ()
TURNS: tuple[_Turn, ...] = tuple(turn for turn, _ in GIVES)


@pytest.mark.parametrize(("turn", "gives"), GIVES, ids=[f"{turn[0]}-{turn[1]}" for turn, _ in GIVES])
def test_turn(turn: _Turn, gives: str) -> None:
    name, text, options = turn
    for pieces in ([text], list(text)):
        parser = tg.load_format(name).parser(**{"tools": TOOLS, "call_id": call_ids(), **options})
        for piece in pieces:
            parser.feed(piece)
        parser.finish()
        assert told(parser.message) == gives
