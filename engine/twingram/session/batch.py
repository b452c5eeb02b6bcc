"""A batch: many sessions, a call a step.

In: sessions over one vocabulary, in the order of the rows of the logits; None where a sequence has no constraint. Out:
for all of them at once, whether their next tokens were accepted, and their masks: as rows of a bitmask, or as ids into
the vocabulary's table of masks, four bytes a sequence.

    batch = tg.Batch(sessions)
    ids = batch.mask_ids()              # int32, one a session; rows: batch.mask_page.rows()
    accepted = batch.accept_tokens(sampled)

A batch holds no state but the list, so sessions may be used by themselves in between, and a new batch for each step,
with other sessions, costs next to nothing.
Invariant: each row and id is what the session alone would give.
Cost: a session costs about 0.3 us to advance and 0.1 us for the id of its mask; a row costs its 32 KB.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..tokens.bitmask import row_of, words_for
from ..tokens.mask_table import MaskPage, MaskTable
from ..tokens.masks import Mask
from ..tokens.vocabulary import Vocabulary
from .deltas import Delta
from .session import Session, accept_each, masks_of

__all__ = ["Batch"]


class Batch:
    """Sessions that are advanced together. `len(batch)` is their number, n below."""

    __slots__ = ("_table", "mask_page", "sessions")

    def __init__(self, sessions: Iterable[Session | None], vocabulary: Vocabulary | None = None) -> None:
        """`None` stands for a sequence without a constraint: all is allowed, any token is accepted. `vocabulary` is
        needed only where every sequence is one of those."""
        self.sessions: tuple[Session | None, ...] = tuple(sessions)
        tables = {session.constraint.mask_table for session in self.sessions if session is not None}
        if vocabulary is not None:
            tables.add(MaskTable.of(vocabulary))
        if len(tables) > 1:
            raise ValueError(
                "the sessions of a batch must share one Vocabulary object: load it once, and give it to all constraints"
            )
        self._table = tables.pop() if tables else None
        self.mask_page: MaskPage | None = None if self._table is None else self._table.page
        """The page of the mask table that the ids of the last `mask_ids` point into."""

    def __len__(self) -> int:
        return len(self.sessions)

    # -- masks ---------------------------------------------------------------------------------------------------------

    def mask_ids(self) -> NDArray[np.int32]:
        """The masks as ids: int32, shape (n,). Row i of the bitmask is `batch.mask_page.rows()[ids[i]]`.

        Ids hold within that page, which only grows. See `tokens.mask_table`.
        """
        if not self.sessions:
            return np.empty(0, dtype=np.int32)
        self.mask_page, ids = self._known().number(self._masks())
        return np.array(ids, dtype=np.int32)

    def fill_bitmask(self, bitmask: Any, row: int = 0) -> None:
        """Write the masks into `bitmask[row : row + n]`: int32, shape (rows, words), where words is the number of
        tokens divided by 32, rounded up; a numpy array, or a torch tensor on the CPU."""
        if not self.sessions:
            return
        target = bitmask if isinstance(bitmask, np.ndarray) else bitmask.numpy()  # which shares its memory
        words = words_for(self._known().size)
        if target.ndim != 2 or target.shape[1] < words or target.shape[0] < row + len(self.sessions) or row < 0:
            raise ValueError(
                f"a bitmask of shape {target.shape} has no room for {len(self.sessions)} rows of {words} words from "
                f"row {row} on"
            )
        row_of(target[row], self._known().size)
        for at, mask in enumerate(self._masks(), row):
            mask.fill(target[at])

    def _masks(self) -> list[Mask]:
        return masks_of(self.sessions, self._known().everything)

    def _known(self) -> MaskTable:
        if self._table is None:
            raise ValueError("no session of the batch has a constraint to know its vocabulary by: give vocabulary=")
        return self._table

    # -- tokens --------------------------------------------------------------------------------------------------------

    def accept_tokens(self, tokens: Sequence[int] | NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
        """Go on with one token each: bool, shape (n,). False where the token was not allowed; that session is as it
        was, the others have gone on."""
        given: Sequence[int] = tokens.tolist() if isinstance(tokens, np.ndarray) else tokens
        if len(given) != len(self.sessions):
            raise ValueError(f"{len(given)} tokens were given for {len(self.sessions)} sessions")
        return np.array(accept_each(self.sessions, given), dtype=np.bool_)

    def rollback(self, counts: int | Sequence[int]) -> None:
        """Undo the last `counts` accepted tokens, one number for all sessions or one for each."""
        given = [counts] * len(self.sessions) if isinstance(counts, int) else counts
        if len(given) != len(self.sessions):
            raise ValueError(f"{len(given)} counts were given for {len(self.sessions)} sessions")
        for session, number in zip(self.sessions, given, strict=True):
            if session is not None:
                session.rollback(number)

    @property
    def is_terminated(self) -> NDArray[np.bool_]:
        """Which sessions have accepted a stop token: bool, shape (n,). False where there is no constraint."""
        return np.array([s is not None and s.is_terminated for s in self.sessions], dtype=np.bool_)

    def take_deltas(self) -> list[list[Delta]]:
        """For each session its parser output since the last call; nothing where there is no constraint."""
        return [[] if session is None else session.take_deltas() for session in self.sessions]
