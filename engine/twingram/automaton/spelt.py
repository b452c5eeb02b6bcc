"""Markers spelt in letters: literals that remember how much of them has been read.

In: the text of a marker. Out: `spelt`, a literal; `astray`, the same where nothing goes on with it. What is left of any
other literal is a literal like any other, so that readings which go on alike are one; a marker that breaks off may have
been the beginning of another one, and what is left of two that end alike does not say which one it was.
Cost: as a literal's; a state more where two markers end alike.
"""

from __future__ import annotations

from collections.abc import Callable

from .expression import EMPTY, NOTHING, Expr, Leaf, Literal, seq
from .interning import intern

__all__ = ["Passed", "Spelt", "astray", "spelt"]


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


class Passed(Leaf):
    """A marker has been read, and there is no way on."""

    __slots__ = ("first", "read")

    def __init__(self, read: bytes) -> None:
        self.read, self.first = read, 0

    def after(self, sym: int) -> Expr:
        return NOTHING

    def measure(self, of: Callable[[Expr], int], spell: Callable[[bytes], int]) -> int:
        return 1

    def __repr__(self) -> str:
        return "nothing"


def astray(data: bytes) -> Expr:
    """A marker that ends a text where nothing goes on with it. Read whole, it is known for what it is."""
    passed: Expr = intern(Passed, data)
    return seq(spelt(data), passed)
