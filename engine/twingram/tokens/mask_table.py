"""The mask table: each distinct mask of a vocabulary under a small number, in rows that only grow.

In: masks. Out: for each an int32 id, and a `MaskPage`, the table of rows that the ids point into. A copy of the rows
may live on a device: a step then needs four bytes a sequence, and the rows that are new.

A page is one epoch of a table. Rows are added to it and never changed, so an id means the same as long as its page is
the table's; a page that is full is replaced by an empty one, with the next epoch. Whoever holds a page may go on with
it and its ids. Ids that were asked for together belong to one page, however small pages are: a page has room for the
masks of one call at least.
Invariants: `page.rows()[id]` is the mask that got the id; equal masks written the same way get the same id.
Cost: a mask that is in the page costs a comparison; a new one its row (about 5 us for 262,144 tokens). A page takes
memory as it fills: 32 MB when it is full.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ..caches import charge, watch
from .bitmask import pack, words_for
from .masks import Mask

if TYPE_CHECKING:
    from .vocabulary import Vocabulary

__all__ = ["MaskPage", "MaskTable"]

PAGE_BYTES = 32 << 20
_epochs = count(1)  # of all tables, so that a mask that moves between tables is never taken for another


class MaskPage:
    """The rows of one epoch: they are added, never changed."""

    __slots__ = ("__weakref__", "_known", "_rows", "_used", "epoch")

    def __init__(self, capacity: int, words: int) -> None:
        self.epoch = next(_epochs)
        """A number that no other page of this process has."""
        self._rows = np.empty((capacity, words), dtype=np.int32)  # the system gives memory where it is written to
        self._known: dict[bytes, int] = {}
        self._used = 0

    def __len__(self) -> int:
        """How many rows there are: ids run from 0 to one less."""
        return self._used

    @property
    def capacity(self) -> int:
        """How many rows there may be."""
        return len(self._rows)

    def rows(self, since: int = 0) -> NDArray[np.int32]:
        """The rows from id `since` on: int32, shape (rows, words), read-only, no copy."""
        found = self._rows[since : self._used]
        found.flags.writeable = False
        return found

    def memory_usage(self) -> int:
        """Bytes of the rows in use."""
        return self._used * self._rows.shape[1] * 4

    def find(self, key: bytes) -> int:
        """The id of the mask with this key, -1 if it is not here."""
        return self._known.get(key, -1)

    def add(self, key: bytes, mask: Mask) -> int:
        """One row more. Under the table's lock; readers see the row before they see its id."""
        at = self._used
        mask.fill(self._rows[at])
        self._used = at + 1
        self._known[key] = at
        return at


_TABLES: WeakKeyDictionary[Vocabulary, MaskTable] = WeakKeyDictionary()


class MaskTable:
    """The masks of one vocabulary. Shared by all its constraints, in any number of threads."""

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> MaskTable:
        """The one table of a vocabulary."""
        found = _TABLES.get(vocabulary)
        if found is None:
            found = _TABLES.setdefault(vocabulary, cls(len(vocabulary)))
        return found

    def __init__(self, size: int, page_bytes: int = PAGE_BYTES) -> None:
        self.size, self._words = size, words_for(size)
        self.capacity = max(1, page_bytes // (4 * self._words))
        """Rows of the pages to come. A page that is in use stays as it is."""
        self.page = MaskPage(self.capacity, self._words)
        """The page that new ids belong to."""
        self.everything = Mask(size, row=pack(np.ones(size, dtype=np.bool_), size))
        """The mask that allows every id, for sequences without a constraint."""
        self._lock = Lock()
        watch(self)

    def number(self, masks: Sequence[Mask]) -> tuple[MaskPage, list[int]]:
        """One id a mask, and the page that all of them belong to."""
        page = self.page
        epoch = page.epoch
        ids = [mask.place[1] if mask.place[0] == epoch else -1 for mask in masks]
        if -1 not in ids:
            return page, ids
        with self._lock:
            before = page
            used = len(before)
            page, ids = self._add(masks)
        charge(page.memory_usage() - (used * 4 * self._words if page is before else 0))
        return page, ids

    def _add(self, masks: Sequence[Mask]) -> tuple[MaskPage, list[int]]:
        keys = [_key(mask) for mask in masks]
        page = self.page
        new = {key for key in keys if page.find(key) < 0}
        if len(page) + len(new) > page.capacity:
            page = MaskPage(max(self.capacity, len(set(keys))), self._words)
        ids = []
        for key, mask in zip(keys, masks, strict=True):
            found = page.find(key)
            if found < 0:
                found = page.add(key, mask)
            mask.place = (page.epoch, found)
            ids.append(found)
        self.page = page
        return page, ids

    def clear(self) -> None:
        """Begin a new page."""
        with self._lock:
            self.page = MaskPage(self.capacity, self._words)

    def memory_usage(self) -> int:
        """Bytes of the page in use."""
        return self.page.memory_usage()


def _key(mask: Mask) -> bytes:
    """Equal for equal masks that are held in the same way: as ids, or as a row."""
    if mask.ids is not None:
        return mask.ids.tobytes()
    return b"row" + blake2b(mask.row.data, digest_size=24).digest()
