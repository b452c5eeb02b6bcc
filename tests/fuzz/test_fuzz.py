"""The fuzz harness as tests: the corpus, and as many random inputs as the budget in the environment allows.

`TWINGRAM_FUZZ` is the number of random inputs for each format (60). `python -m tests.fuzz` runs as long as you like.
"""

from __future__ import annotations

import itertools
import os
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import twingram as tg

from .harness import FORMATS, PIECES, Trial, check, corpus, random_trial

INPUTS = int(os.environ.get("TWINGRAM_FUZZ", "60"))


@pytest.mark.parametrize("trial", corpus(), ids=lambda trial: f"{trial.format}-{trial.seed}")
def test_corpus(trial: Trial) -> None:
    check(trial)


@pytest.mark.parametrize("name", FORMATS)
def test_random_inputs(name: str) -> None:
    rng = random.Random(f"fuzz {name}")
    for _ in range(INPUTS):
        trial = random_trial(rng, name)
        try:
            check(trial)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{trial.line()}") from error


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
def test_pieces_in_any_order(name: str, data: st.DataObject) -> None:
    """The same through hypothesis, which shrinks what it finds."""
    text = "".join(data.draw(st.lists(st.sampled_from(PIECES[name]), max_size=12)))
    options = data.draw(st.sampled_from([{}, {"strict": True}, {"salvage": True}, {"tools": None}]))
    check(Trial(name, text.encode().decode("latin-1"), options, data.draw(st.integers(0, 99))))


_OPEN = {
    "gemma4": "<|tool_call>call:f{b:4", "functiongemma": "<start_function_call>call:f{b:4",
    "atem": ' to=f<|message|><atem:function_calls>\n<atem:invoke name="f">\n<atem:parameter name="b">4',
}  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_half_a_marker_is_not_taken_for_another(name: str) -> None:
    """A marker that breaks off where its rest would also end another one, and goes on as that one might."""
    grammar, texts = tg.load_format(name).grammar, set[str]()
    marks = (*grammar.markers, *grammar.stops, *grammar.stops_after_call)
    for mark, other in itertools.permutations(dict.fromkeys(marks), 2):
        for width in range(1, len(mark)):
            begun = other[: len(other) - len(mark) + width]
            if begun and other.endswith(mark[width:]):
                texts |= {mark[:width] + third[len(begun) :] for third in marks if third.startswith(begun)}
    assert len(texts) > 5
    for text in sorted(texts):
        check(Trial(name, _OPEN[name] + text + "t"))


@pytest.mark.parametrize("name", FORMATS)
def test_the_work_is_linear(name: str) -> None:
    rng = random.Random(f"work {name}")
    for _ in range(2):
        check(random_trial(rng, name), work=True)
