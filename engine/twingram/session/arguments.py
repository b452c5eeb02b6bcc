"""Arguments: one call's argument object as JSON text, written from the marks of its parts as they come.

In: containers that open and close, keys, complete values, pieces of strings. Out: text to append.
Invariants: what has been written is always a prefix of a valid JSON object, and `finish()` completes it; separators are
`, ` and `: `; a key is written when it is complete, and a key that gets no value gets the empty string. What has no
place (a second root, a value without a key in an object) is refused with None and must be passed over whole.
Cost: constant a mark; open containers are a chain of tuples, so a copy is a few values at any depth.
"""

from __future__ import annotations

from typing import NamedTuple

from ..schema.declared import Place
from .casts import quote

__all__ = ["Arguments"]


class _Frame(NamedTuple):
    parent: _Frame | None
    closer: str
    size: int
    place: Place
    waiting: Place | None  # in an object: the place of the value that the last key still lacks


class Arguments:
    """The writer of one call. `start` is where its text begins, `bound` the last position that it may reach."""

    __slots__ = ("_frame", "_root", "_started", "bound", "depth", "index")

    def __init__(self, index: int, root: Place, bound: int) -> None:
        self.index, self.bound = index, bound
        self.depth = 0
        self._root = root
        self._started = False
        self._frame: _Frame | None = None

    def clone(self) -> Arguments:
        copy = Arguments.__new__(Arguments)
        copy.index, copy.bound, copy.depth = self.index, self.bound, self.depth
        copy._root, copy._started, copy._frame = self._root, self._started, self._frame
        return copy

    def place(self) -> Place | None:
        """Where the next value would stand; None if none may come here."""
        frame = self._frame
        if frame is None:
            return None if self._started else self._root
        return frame.waiting if frame.closer == "}" else frame.place.item(frame.size)

    def open(self, closer: str) -> str | None:
        """An object or array starts, the arguments themselves included; `closer` is its last character."""
        place = self.place()
        if place is None or (not self._started and closer == "]"):
            return None
        before = self._before() if self._started else ""
        self._started = True
        self._frame = _Frame(self._frame, closer, 0, place, None)
        self.depth += 1
        return before + ("{" if closer == "}" else "[")

    def close(self) -> str:
        frame = self._frame
        if frame is None:
            return ""
        self._frame = frame.parent
        self.depth -= 1
        return ('""' if frame.waiting else "") + frame.closer

    def key(self, text: str) -> str | None:
        frame = self._frame
        if frame is None or frame.closer != "}":
            return None
        before = '""' if frame.waiting else ""
        before += ", " if frame.size else ""
        self._frame = frame._replace(size=frame.size + 1, waiting=frame.place.member(text))
        return before + quote(text) + ": "

    def value(self, json: str) -> str | None:
        """A complete value, or the first piece of one that is written in pieces."""
        return None if self._frame is None or self.place() is None else self._before() + json

    def finish(self) -> str:
        """Whatever completes the object."""
        if not self._started:
            self._started = True
            return "{}"
        closers: list[str] = []
        while self._frame is not None:
            closers.append(self.close())
        return "".join(closers)

    def _before(self) -> str:
        """Count a value in its container; the separator that it needs."""
        frame = self._frame
        if frame is None or frame.closer == "}":
            self._frame = frame and frame._replace(waiting=None)
            return ""
        self._frame = frame._replace(size=frame.size + 1)
        return ", " if frame.size else ""
