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

__all__ = ["WORD", "pack", "row_of", "unpack", "words_for"]

WORD = np.dtype(np.int32)
_LITTLE = sys.byteorder == "little"


def words_for(size: int) -> int:
    """How many int32 words a row over `size` tokens has."""
    return (size + 31) // 32


def row_of(target: Any, size: int) -> NDArray[np.int32]:
    """A caller's row, checked: words of four bytes, enough for `size` tokens. A torch tensor shares its memory."""
    if not isinstance(target, np.ndarray) and hasattr(target, "numpy"):
        target = target.numpy()
    if not isinstance(target, np.ndarray) or target.ndim != 1:
        raise TypeError("a bitmask is int32 of shape (rows, words), a numpy array or a torch tensor on the CPU")
    if target.dtype.kind not in "iu" or target.dtype.itemsize != WORD.itemsize:
        raise TypeError(f"a bitmask is int32, not {target.dtype}: other words would put tokens in the wrong places")
    if len(target) < words_for(size):
        raise ValueError(f"a row of {len(target)} words has no room for {size} tokens, which take {words_for(size)}")
    return target


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
