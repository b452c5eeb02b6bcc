"""Markers spelt in letters: literals that remember how much of them has been read.

In: the text of a marker. Out: `spelt`, a literal. What is left of any other literal is a literal like any other, so
that readings which go on alike are one; a marker that breaks off may have been the beginning of another one, and what
is left of two that end alike does not say which one it was.
Cost: as a literal's; a state more where two markers end alike.
"""

from __future__ import annotations

from .expression import EMPTY, Expr, Literal
from .interning import intern

__all__ = ["Spelt", "spelt"]


class Spelt(Literal):
    """`read` is what stood before `data`."""

    __slots__ = ("read",)

    def __init__(self, data: bytes, read: bytes) -> None:
        super().__init__(data)
        self.read = read

    def rest(self, width: int) -> Expr:
        return spelt(self.data[width:], self.read + self.data[:width])


def spelt(data: bytes, read: bytes = b"") -> Expr:
    found: Expr = intern(Spelt, data, read) if data else EMPTY
    return found
