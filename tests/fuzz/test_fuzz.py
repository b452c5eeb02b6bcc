"""The fuzz harness as tests: the corpus, and as many random inputs as the budget in the environment allows.

`TWINGRAM_FUZZ` is the number of random inputs for each format (60). `python -m tests.fuzz` runs as long as you like.
"""

from __future__ import annotations

import os
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


@pytest.mark.parametrize("name", FORMATS)
def test_the_work_is_linear(name: str) -> None:
    rng = random.Random(f"work {name}")
    for _ in range(2):
        check(random_trial(rng, name), work=True)
