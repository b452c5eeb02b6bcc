"""Packed rows of allowed tokens, the only place that knows their bit layout.

In: token ids or one flag a token. Out: int32 words, token i in word i // 32 at bit i % 32, the lowest bit first, 1 =
allowed: the layout that grammar engines and servers share.
Invariant: bits at and past the size are 0.
Cost: one pass of numpy, about 60 us to pack 262,144 flags.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["pack", "unpack", "words_for"]

_LITTLE = sys.byteorder == "little"


def words_for(size: int) -> int:
    """How many int32 words a row over `size` tokens has."""
    return (size + 31) // 32


def pack(allowed: NDArray[Any], size: int) -> NDArray[np.int32]:
    """One row. `allowed` holds ids (integers, in any order, repeats welcome) or `size` flags (booleans)."""
    flags = allowed
    if allowed.dtype != np.bool_:
        flags = np.zeros(size, dtype=np.bool_)
        flags[allowed] = True
    elif len(allowed) != size:
        raise ValueError(f"{len(allowed)} flags were given for a row over {size} tokens")
    row = np.zeros(words_for(size) * 4, dtype=np.uint8)
    packed = np.packbits(flags, bitorder="little")
    row[: len(packed)] = packed
    words = row.view(np.int32)
    return words if _LITTLE else words.byteswap()


def unpack(row: NDArray[np.int32], size: int) -> NDArray[np.int32]:
    """The allowed ids of one row, rising."""
    words = row if _LITTLE else row.byteswap()
    flags = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), bitorder="little", count=size)
    return np.flatnonzero(flags).astype(np.int32)
