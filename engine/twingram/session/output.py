"""Output: pieces of text put together to deltas.

In: pieces of the answer, of a thought, of a call's JSON; other deltas. Out: deltas in order, neighbours of one kind as
one delta (what `deltas.merge` would make of them, for a third of its time).
Invariant: nothing is held between two steps: `_taken` gives all there is.
Cost: an append a piece, and what joining takes.
"""

from __future__ import annotations

from .deltas import CallArguments, Content, Delta, ParseError, Reasoning
from .scopes import Sink

__all__ = ["Output"]

_CONTENT, _STRING = Sink.CONTENT, Sink.STRING


class Output:
    """What an emitter writes to. It is the emitter's own base: a call through a second object took 0.1 us a piece."""

    __slots__ = ("_calls", "_out", "_pieces", "_said", "_what")

    def __init__(self) -> None:
        self._calls = 0  # begun so far; text of a call is the last one's
        self._out: list[Delta] = []
        self._pieces: list[str] = []  # of the delta that is being put together
        self._what = Sink.NOWHERE  # and its kind, as the sink of its text
        self._said: tuple[str, ...] = ()  # the errors that are told once

    def _put(self, what: int, piece: str) -> None:
        """More text: of the answer (`Sink.CONTENT`), of a thought (`REASONING`), of the open call's JSON (`STRING`)."""
        if piece:
            if what != self._what:
                self._join()
                self._what = what
            self._pieces.append(piece)

    def add(self, delta: Delta) -> None:
        """One from outside."""
        self._add(delta)

    def once(self, reason: str) -> None:
        """An error that has no text of its own, the first time in a turn."""
        if reason not in self._said:
            self._said += (reason,)
            self._add(ParseError("", reason))

    def _add(self, delta: Delta) -> None:
        self._join()
        self._out.append(delta)

    def _join(self) -> None:
        pieces = self._pieces
        if pieces:
            piece = pieces[0] if len(pieces) == 1 else "".join(pieces)
            pieces.clear()
            self._out.append(_delta(self._what, self._calls - 1, piece))

    def _taken(self) -> list[Delta]:
        """All deltas since the last time."""
        pieces, out = self._pieces, self._out
        if not out:
            if not pieces:
                return []
            piece = pieces[0] if len(pieces) == 1 else "".join(pieces)
            pieces.clear()
            return [_delta(self._what, self._calls - 1, piece)]
        self._join()
        self._out = []
        return out


def _delta(what: int, call: int, piece: str) -> Delta:
    if what == _STRING:
        return CallArguments(call, piece)
    return Content(piece) if what == _CONTENT else Reasoning(piece)
