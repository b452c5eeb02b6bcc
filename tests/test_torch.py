"""Masks on a device, here the CPU: logits that are masked by ids are those masked by each session's own row."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import twingram as tg
from twingram.tokens.mask_table import MaskTable

from .walks import small, walked

torch = pytest.importorskip("torch", reason="python -m pip install torch")

KERNELS = [pytest.param(False, id="torch"), pytest.param(True, id="xgrammar")]


def device_masks(vocabulary: tg.Vocabulary, kernel: bool) -> Any:
    from twingram_bindings.torch import DeviceMasks

    if kernel:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # theirs to mend
            pytest.importorskip("xgrammar", reason="python -m pip install xgrammar")
    return DeviceMasks(vocabulary, kernel=kernel)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("extra", [0, 37])
@pytest.mark.parametrize("capacity", [1, 3, 2000])
def test_logits_by_ids(kernel: bool, extra: int, capacity: int) -> None:
    vocabulary, rng = small("gemma4"), np.random.default_rng(1)
    masks = device_masks(vocabulary, kernel)
    table = MaskTable.of(vocabulary)
    before, table.capacity = table.capacity, capacity
    table.clear()
    try:
        walks = walked("gemma4", 36)[:7]
        batch = tg.Batch([*(walk.constraint.session() for walk in walks), None])
        for step in range(30):
            logits = torch.from_numpy(rng.standard_normal((len(batch), len(vocabulary) + extra), dtype=np.float32))
            given = logits.clone().numpy()
            assert masks.apply(logits, batch) is logits
            allowed = np.zeros(given.shape, dtype=np.bool_)
            for at, session in enumerate(batch.sessions):
                allowed[at, : len(vocabulary)] = True
                if session is not None:
                    allowed[at, : len(vocabulary)] = False
                    allowed[at, session.allowed_tokens()] = True
            assert (logits.numpy() == np.where(allowed, given, -np.inf)).all()
            assert len(masks) == len(batch.mask_page)
            batch.accept_tokens([walk.tokens[step] if step < len(walk.tokens) else 0 for walk in walks] + [0])
    finally:
        table.capacity = before
        table.clear()


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16"])
def test_kinds_of_logits(kernel: bool, kind: str) -> None:
    vocabulary = small("runes")
    session = walked("runes", 36)[0].constraint.session()
    logits = torch.ones((1, len(vocabulary)), dtype=getattr(torch, kind))
    device_masks(vocabulary, kernel).apply(logits, tg.Batch([session]))
    assert torch.nonzero(logits[0] == 1).flatten().tolist() == session.allowed_tokens().tolist()
    assert int(torch.isinf(logits).sum()) == len(vocabulary) - len(session.allowed_tokens())


def test_logits_that_do_not_fit() -> None:
    vocabulary = small("gemma4")
    masks = device_masks(vocabulary, kernel=False)
    batch = tg.Batch([None], vocabulary=vocabulary)
    for shape in ((2, len(vocabulary)), (1, len(vocabulary) - 1), (len(vocabulary),)):
        with pytest.raises(ValueError, match="do not fit 1 sessions"):
            masks.apply(torch.zeros(shape), batch)
    empty = torch.zeros((0, len(vocabulary)))
    assert masks.apply(empty, tg.Batch([])) is empty


def test_rows_are_copied_once() -> None:
    vocabulary = small("gemma4")
    masks = device_masks(vocabulary, kernel=False)
    session = walked("gemma4", 36)[0].constraint.session()
    batch = tg.Batch([session])
    ids = batch.mask_ids()
    assert batch.mask_page is not None
    masks.follow(batch.mask_page)
    held = masks._rows
    held[ids[0]] = 0  # would be mended if it were copied again
    masks.follow(batch.mask_page)
    assert not masks.rows(ids, batch.mask_page).any()
    assert masks.memory_usage() == held.numel() * 4


def test_a_fill_of_a_tensor() -> None:
    """A bitmask may be a torch tensor, for sessions and for batches."""
    vocabulary = small("gemma4")
    sessions = [walk.constraint.session() for walk in walked("gemma4", 36)[:3]]
    words = (len(vocabulary) + 31) // 32
    bitmask = torch.zeros((4, words), dtype=torch.int32)
    tg.Batch(sessions).fill_bitmask(bitmask, row=1)
    assert (bitmask[1:].numpy() == [session.mask() for session in sessions]).all()
    sessions[0].fill_bitmask(bitmask, 0)
    assert (bitmask[0] == bitmask[1]).all()
    sessions[0].fill_draft_bitmask(bitmask, walked("gemma4", 36)[0].tokens[:2])
    assert (bitmask[0].numpy() == sessions[0].mask()).all()


def test_the_module_is_light() -> None:
    code = "import sys, twingram_bindings.torch; assert not {'torch', 'xgrammar'} & set(sys.modules)"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)
