"""Masks on a device: a copy of a vocabulary's table of masks, and logits that are masked by ids.

In: a `tg.Batch`, logits. Out: the logits, with everything that is not allowed at minus infinity, in place.

    masks = DeviceMasks(vocabulary, device="cuda")
    masks.apply(logits, batch)          # logits: (n, width), a float tensor on that device, one row a session

A step sends four bytes a sequence and the rows that are new; the rest is on the device already. The copy follows the
table: it grows as the table's page grows, and begins again where the table has begun a new page.
The kernel of `xgrammar` is used where that package is installed, plain torch operations otherwise.
Invariant: the same logits as if each session's own row had been applied.
Cost: on the CPU side a step costs what `Batch.mask_ids` does, and one small copy. The table takes up to 32 MB on the
device (a page of `tg.MaskTable`).

Needs torch (the extra `twingram[torch]`). Tested on the CPU; on CUDA devices untested so far.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from twingram import Batch, MaskPage, Vocabulary

if TYPE_CHECKING:
    import torch

__all__ = ["DeviceMasks"]

_FIRST_ROWS = 64


class DeviceMasks:
    """The masks of one vocabulary on one device. Not to be shared between threads."""

    def __init__(self, vocabulary: Vocabulary, device: Any = "cpu", *, kernel: bool = True) -> None:
        """`kernel`: use the one of xgrammar if it can be imported."""
        self._torch = import_module("torch")
        self.device: torch.device = self._torch.device(device)
        self.size, self._words = len(vocabulary), (len(vocabulary) + 31) // 32
        self._epoch, self._used = -1, 0
        self._rows = self._empty(0)
        self._shifts = self._torch.arange(32, dtype=self._torch.int32, device=self.device)
        self._apply = _kernel() if kernel else None

    def _empty(self, rows: int) -> torch.Tensor:
        made: torch.Tensor = self._torch.empty((rows, self._words), dtype=self._torch.int32, device=self.device)
        return made

    def __len__(self) -> int:
        """How many rows are on the device."""
        return self._used

    def follow(self, page: MaskPage) -> None:
        """Copy the rows of the page that are not here yet."""
        if page.epoch != self._epoch:
            self._epoch, self._used = page.epoch, 0
        total = len(page)
        if total > len(self._rows):
            grown = self._empty(min(page.capacity, max(2 * len(self._rows), total, _FIRST_ROWS)))
            grown[: self._used] = self._rows[: self._used]
            self._rows = grown
        if total > self._used:
            new = self._torch.from_numpy(np.array(page.rows(self._used)[: total - self._used]))
            self._rows[self._used : total] = new.to(self.device)
            self._used = total

    def rows(self, ids: NDArray[np.int32], page: MaskPage) -> torch.Tensor:
        """The rows of these ids, on the device: int32, shape (n, words)."""
        self.follow(page)
        places = self._torch.from_numpy(ids.astype(np.int64)).to(self.device, non_blocking=True)
        found: torch.Tensor = self._rows.index_select(0, places)
        return found

    def apply(self, logits: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Mask the logits of a step in place: a float tensor on the device, shape (n, width). Columns past the
        vocabulary are never allowed."""
        if logits.ndim != 2 or logits.shape[0] != len(batch) or logits.shape[1] < self.size:
            raise ValueError(
                f"logits of shape {tuple(logits.shape)} do not fit {len(batch)} sessions over {self.size} tokens"
            )
        if not len(batch):
            return logits
        ids = batch.mask_ids()
        page = batch.mask_page
        assert page is not None
        return self.apply_rows(logits, self.rows(ids, page))

    def apply_rows(self, logits: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Mask the logits in place by rows that are on the device, one row a row."""
        logits[:, self.size :] = float("-inf")
        used = logits[:, : self.size]
        if self._apply is not None and used.is_contiguous():
            self._apply(used, rows)
            return logits
        bits = (rows.unsqueeze(-1) >> self._shifts) & 1
        used.masked_fill_(bits.view(len(rows), -1)[:, : self.size] == 0, float("-inf"))
        return logits

    def memory_usage(self) -> int:
        """Bytes on the device."""
        return int(self._rows.numel()) * 4


def _kernel() -> Callable[[Any, Any], object] | None:
    try:
        module = import_module("xgrammar")
    except ImportError:
        return None
    found: Callable[[Any, Any], object] = module.apply_token_bitmask_inplace
    return found
