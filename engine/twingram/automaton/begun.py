"""Begun literals: what a reading was in the middle of.

In: an expression, the literals that count. Out: the beginning of one that has been read, as far as that can be told.
A literal that is read in part is the literal of what is left, so it is told from its end; of a trie it is known.
Cost: the heads of the expression, and for each the literals.
"""

from __future__ import annotations

from collections.abc import Iterable

from .bound import Under
from .choice import Words
from .expression import Expr, Literal

__all__ = ["begun"]


def begun(thread: Expr, literals: Iterable[bytes], text: bytes | bytearray | None = None) -> bytes:
    """Empty if the reading is in the middle of nothing that is known. `text`: what it has read, if that is there."""
    for _, first, _ in thread.heads():
        leaf = first.leaf if isinstance(first, Under) else first
        if isinstance(leaf, Words) and leaf.depth:
            return leaf.entries[leaf.low][0][: leaf.depth]
        if isinstance(leaf, Literal):
            ways = (whole[: -len(leaf.data)] for whole in literals if whole.endswith(leaf.data) and whole != leaf.data)
            return next((way for way in ways if text is None or text.endswith(way)), b"")
    return b""
