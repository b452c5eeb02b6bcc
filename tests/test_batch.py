"""Batches and mask ids: what is done for all at once is what each session alone does, however small the table is."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import twingram as tg
from twingram.tokens.bitmask import words_for
from twingram.tokens.mask_table import MaskTable
from twingram.tokens.masks import Mask

from .walks import FORMATS, call_ids, small, walked

TINY = (1, 2, 3, 2000)  # rows of a page


@pytest.fixture(params=TINY)
def capacity(request: pytest.FixtureRequest) -> Iterator[int]:
    """All tables of the small vocabularies begin again, with pages of so many rows."""
    tables = [MaskTable.of(small(name)) for name in FORMATS]
    before = [table.capacity for table in tables]
    for table in tables:
        table.capacity = request.param
        table.clear()
    yield request.param
    for table, rows in zip(tables, before, strict=True):
        table.capacity = rows
        table.clear()


def rows_of(batch: tg.Batch, ids: np.ndarray) -> np.ndarray:
    assert ids.dtype == np.int32
    assert batch.mask_page is not None
    return batch.mask_page.rows()[ids]


@pytest.mark.parametrize("name", FORMATS)
def test_a_batch_does_what_its_sessions_do(name: str, capacity: int) -> None:
    walks = walked(name, 36)[:12]
    vocabulary, rng = small(name), random.Random(7)
    together = [walk.constraint.session(call_id=call_ids()) for walk in walks]
    alone = [walk.constraint.session(call_id=call_ids()) for walk in walks]
    batch = tg.Batch([*together, None])
    everything = np.full(len(vocabulary), True)
    for step in range(40):
        ids = batch.mask_ids()
        wanted = [session.mask() for session in alone]
        assert (rows_of(batch, ids)[:-1] == wanted).all()
        bitmask = np.full((len(batch) + 3, words_for(len(vocabulary))), 0x5555, dtype=np.int32)
        batch.fill_bitmask(bitmask, row=2)
        assert (bitmask[2:-2] == wanted).all()
        assert (bitmask[:2] == 0x5555).all()
        assert (bitmask[-1] == 0x5555).all()
        last = np.unpackbits(bitmask[-2].view(np.uint8), bitorder="little")
        assert (last[: len(vocabulary)] == everything).all()
        assert not last[len(vocabulary) :].any()
        tokens = [walk.tokens[step] if step < len(walk.tokens) else rng.randrange(len(vocabulary)) for walk in walks]
        tokens = [rng.choice((token, token, rng.randrange(len(vocabulary)))) for token in tokens]
        accepted = batch.accept_tokens(np.array([*tokens, 0]) if step % 2 else [*tokens, 0])
        assert accepted.dtype == np.bool_
        assert accepted.tolist() == [s.accept_token(token) for s, token in zip(alone, tokens, strict=True)] + [True]
        assert batch.is_terminated.tolist() == [session.is_terminated for session in alone] + [False]
        if step % 5 == 4:
            back = [rng.randint(0, min(2, session._reader.steps)) for session in alone]
            batch.rollback([*back, 0])
            for session, count in zip(alone, back, strict=True):
                session.rollback(count)
        if step % 3 == 2:
            found = batch.take_deltas()
            wanted_deltas = [session.take_deltas() for session in alone]
            assert found == [*wanted_deltas, []]
    assert [session.text for session in together] == [session.text for session in alone]


@pytest.mark.parametrize("name", FORMATS)
def test_an_id_alone(name: str, capacity: int) -> None:
    for walk in walked(name, 36)[:6]:
        session = walk.constraint.session()
        for token in walk.tokens:
            found = session.mask_id()
            assert (session.mask_page.rows()[found] == session.mask()).all()
            assert session.accept_token(token)
        found = session.mask_id()
        assert (session.mask_page.rows()[found] == session.mask()).all()


def test_pages_only_grow(capacity: int) -> None:
    """Rows that were seen are never changed: a mirror that copies what is new each time is the table."""
    table = MaskTable.of(small("gemma4"))
    pages: dict[int, np.ndarray] = {}
    for walk in walked("gemma4", 36)[:8]:
        session = walk.constraint.session()
        for token in walk.tokens:
            found = session.mask_id()
            page = session.mask_page
            mirror = pages.get(page.epoch, np.empty((0, words_for(table.size)), dtype=np.int32))
            mirror = pages[page.epoch] = np.concatenate((mirror, page.rows(len(mirror))))
            assert len(mirror) == len(page) <= max(capacity, 1)
            assert (mirror[found] == session.mask()).all()
            assert session.accept_token(token)
    assert (len(pages) > 1) == (capacity < 2000)
    assert table.memory_usage() <= capacity * words_for(table.size) * 4


def test_a_page_that_is_held_stays_as_it_is() -> None:
    table = MaskTable(100, page_bytes=2 * 4 * 4)
    masks = [Mask(100, ids=np.array([at], dtype=np.int32)) for at in range(5)]
    page, ids = table.number(masks[:2])
    seen = page.rows().copy()
    later, _ = table.number(masks[2:])  # three masks in pages of two: a page has room for one call
    assert later is not page
    assert later.epoch > page.epoch
    assert (page.rows() == seen).all()
    assert [later.rows()[i].tolist() for i in range(3)] == [mask.row.tolist() for mask in masks[2:]]
    again, new_ids = table.number(masks[:2])
    assert [again.rows()[i].tolist() for i in new_ids] == [page.rows()[i].tolist() for i in ids]


def test_equal_masks_of_several_constraints_share_an_id() -> None:
    vocabulary = tg.Vocabulary.embedded()
    fmt = tg.load_format("gemma4")
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
    one, two = (fmt.constraint(tools, "required", vocabulary=vocabulary).session() for _ in range(2))
    assert one.current_mask() is not two.current_mask()
    assert len(set(tg.Batch([one, two]).mask_ids().tolist())) == 1


def test_rows_cannot_be_written() -> None:
    session = walked("gemma4", 36)[0].constraint.session()
    row = session.mask_id()
    with pytest.raises(ValueError, match="read-only"):
        session.mask_page.rows()[row, 0] = 0


def test_threads_that_share_a_table(capacity: int) -> None:
    """Each thread has a batch; pages are replaced under all of them."""
    walks = walked("gemma4", 36)[:8]

    def work(_: int) -> int:
        batch = tg.Batch([walk.constraint.session() for walk in walks])
        checked = 0
        for step in range(25):
            ids = batch.mask_ids()
            wanted = [session.mask() for session in batch.sessions if session is not None]
            assert (rows_of(batch, ids) == wanted).all()
            batch.accept_tokens([walk.tokens[step] if step < len(walk.tokens) else 0 for walk in walks])
            checked += 1
        return checked

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [25] * 8


def test_what_a_batch_refuses() -> None:
    vocabulary = small("gemma4")
    session = walked("gemma4", 36)[0].constraint.session()
    batch = tg.Batch([session, None])
    for tokens in ([1], [1, 2, 3]):
        with pytest.raises(ValueError, match="tokens were given for 2 sessions"):
            batch.accept_tokens(tokens)
    with pytest.raises(ValueError, match="counts were given"):
        batch.rollback([0])
    words = words_for(len(vocabulary))
    for shape, row in (((1, words), 0), ((2, words - 1), 0), ((3, words), 2), ((3, words), -1)):
        with pytest.raises(ValueError, match="no room for 2 rows"):
            batch.fill_bitmask(np.zeros(shape, dtype=np.int32), row)
    with pytest.raises(ValueError, match="share one Vocabulary"):
        tg.Batch([session, walked("runes", 36)[0].constraint.session()])
    with pytest.raises(ValueError, match="give vocabulary="):
        tg.Batch([None]).mask_ids()
    assert len(tg.Batch([None, None], vocabulary=vocabulary).mask_ids()) == 2
    assert tg.Batch([]).mask_ids().shape == (0,)


# Drafts


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("most", [None, 80])
def test_masks_along_a_draft(name: str, most: int | None, capacity: int) -> None:
    rng, vocabulary = random.Random(3), small(name)
    for walk in walked(name, 36)[:6]:
        constraint = walk.constraint
        if most is not None and len(walk.tokens) <= most:
            constraint = replace(walk.asked, options={**walk.asked.options, "max_tokens": most}).constraint(vocabulary)
        session, tokens = constraint.session(), walk.tokens
        for at in range(0, len(tokens), 3):
            draft = tokens[at : at + 5]
            if rng.random() < 0.5:
                draft = [*draft[:2], rng.randrange(len(vocabulary)), *draft[2:]]
            before = session.mask().copy(), len(session.text)
            bitmask = np.zeros((len(draft) + 2, words_for(len(vocabulary))), dtype=np.int32)
            session.fill_draft_bitmask(bitmask, draft, row=1)
            ids = session.draft_mask_ids(draft)
            by_id = session.mask_page.rows()[ids]
            assert (bitmask[1:] == by_id).all()
            assert (session.mask() == before[0]).all()
            assert len(session.text) == before[1]
            other, alive = session.fork(), True
            for k, token in enumerate([*draft, None]):
                if alive:
                    assert (bitmask[1 + k] == other.mask()).all()
                else:
                    assert np.unpackbits(bitmask[1 + k].view(np.uint8)).sum() == len(vocabulary)
                alive = alive and token is not None and other.accept_token(token)
            if session.accept_tokens(tokens[at : at + 3]) < len(tokens[at : at + 3]):
                assert most is not None, "only a budget, whose distances are upper bounds, refuses a token of the walk"
                break


def test_a_budget_of_tokens_is_kept_in_a_batch() -> None:
    """What was met far from the end of the budget may be refused near it."""
    vocabulary = tg.Vocabulary.embedded()
    tools = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}]
    constraint = tg.load_format("gemma4").constraint(tools, "required", vocabulary=vocabulary, max_tokens=60)
    alone, together = constraint.session(), constraint.session()
    batch = tg.Batch([together, None])
    for token in vocabulary.encode('<|tool_call>call:f{a:<|"|>'):
        assert alone.accept_token(token)
        assert batch.accept_tokens([token, token]).all()
    (letter,) = vocabulary.encode("x")
    accepted = True
    while accepted:
        ids = batch.mask_ids()
        assert batch.mask_page is not None
        assert (batch.mask_page.rows()[ids[0]][: len(alone.mask())] == alone.mask()).all()
        accepted = alone.accept_token(letter)
        assert batch.accept_tokens([letter, letter]).tolist() == [accepted, True]
    assert 20 < len(together.text) < 120
    assert letter not in together.allowed_tokens()
