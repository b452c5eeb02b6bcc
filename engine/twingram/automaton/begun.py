"""Begun literals: what a reading was in the middle of.

In: an expression. Out: the beginning of a marker in letters that has been read (`begun`); the same for any literal of
a grammar, as far as it can be told (`half`).
A literal that is read in part is the literal of what is left. A marker remembers what was read of it, since that may be
the beginning of another one; any other is told from its end and from the text.
Cost: the heads of the expression, and for each the literals.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .bound import Under
from .choice import Words
from .expression import Expr, Leaf, Literal
from .spelt import Passed, Spelt

__all__ = ["begun", "half", "strayed"]


def begun(thread: Expr) -> bytes:
    """Empty if the reading is in the middle of no marker, nor of one of several words."""
    leaves = list(_leaves(thread))
    for leaf in leaves:
        if isinstance(leaf, Words) and leaf.begun:
            return leaf.begun
        if isinstance(leaf, Spelt):
            return leaf.read
    return leaves[0].read if leaves and isinstance(leaves[0], Passed) and strayed(thread) else b""


def strayed(thread: Expr) -> bool:
    """Whether the reading has read a marker that nothing goes on with, and is nothing else."""
    leaves = list(_leaves(thread))
    return bool(leaves) and all(isinstance(leaf, Passed) for leaf in leaves)


def half(thread: Expr, literals: Iterable[bytes], text: bytes | bytearray) -> bytes:
    """What of a literal the reading has read at the end of the text."""
    for leaf in _leaves(thread):
        if isinstance(leaf, Literal) and not isinstance(leaf, Spelt):
            ways = (whole[: -len(leaf.data)] for whole in literals if whole.endswith(leaf.data) and whole != leaf.data)
            return next((way for way in ways if text.endswith(way)), b"")
    return begun(thread)


def _leaves(thread: Expr) -> Iterator[Leaf | None]:
    for _, first, _ in thread.heads():
        yield first.leaf if isinstance(first, Under) else first
