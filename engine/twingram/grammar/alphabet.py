"""The symbols of one automaton: 256 bytes, the markers that are whole tokens, and two ways to end.

In: a grammar's markers and, if tokens are fed, the special tokens of a vocabulary. Out: an `Alphabet`: which marker is
which symbol. A marker that the vocabulary has as a special token is a symbol; the same letters spelt with ordinary
tokens are text. Without a vocabulary every marker is its letters.

The two end symbols stand for "a stop token may follow": one kind of stop is allowed at any end, the other (a server's
cue to run the tools) after a call only. They are in the expressions of constraints alone.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

__all__ = ["Alphabet"]


@dataclass(frozen=True)
class Alphabet:
    """`markers[k]` is symbol 256+k; those in `symbolic` are read as one symbol, the others as letters."""

    markers: tuple[str, ...]
    symbolic: frozenset[str]

    @classmethod
    def of(cls, markers: Sequence[str], special: Container[str] = ()) -> Alphabet:
        return cls(tuple(markers), frozenset(marker for marker in markers if marker in special))

    def number(self, marker: str) -> int | None:
        """The symbol of a marker; None if it is read as letters (or is no marker)."""
        return 256 + self.markers.index(marker) if marker in self.symbolic else None

    @property
    def end(self) -> int:
        """The symbol of a stop at any end of the turn."""
        return 256 + len(self.markers)

    @property
    def end_after_call(self) -> int:
        """The symbol of a stop after at least one call."""
        return 257 + len(self.markers)

    @property
    def symbols(self) -> int:
        """All marker symbols, as bits."""
        return sum(1 << (256 + k) for k, marker in enumerate(self.markers) if marker in self.symbolic)

    @property
    def widths(self) -> tuple[int, ...]:
        """Bytes that each symbol from 256 on takes in the decoded text."""
        return (*(len(marker.encode()) for marker in self.markers), 0, 0)
