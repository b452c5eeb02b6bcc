"""Arguments: one call's argument object as JSON text, written from the marks of its parts as they come.

In: containers that open and close, keys, complete values, pieces of strings. Out: text to append.
Invariants: what has been written is always a prefix of a valid JSON object, and `finish()` completes it; separators are
`, ` and `: `; a key is written when it is complete, and a key that gets no value gets the empty string. What has no
place (a second root, a value without a key in an object) is refused with None and must be passed over whole.
Cost: constant a mark; a copy is linear in the open containers.
"""

from __future__ import annotations

from ..schema.declared import Place
from .casts import quote

__all__ = ["Arguments"]


class _Frame:
    """An open container: how many parts it has, and in an object the place of the value that the last key lacks."""

    __slots__ = ("keyed", "parent", "place", "size", "waiting")

    def __init__(self, parent: _Frame | None, keyed: bool, place: Place) -> None:
        self.parent, self.keyed, self.place = parent, keyed, place
        self.size = 0
        self.waiting: Place | None = None


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
        copy = Arguments(self.index, self._root, self.bound)
        copy.depth, copy._started = self.depth, self._started
        frames, frame = [], self._frame
        while frame is not None:
            frames.append(frame)
            frame = frame.parent
        for frame in reversed(frames):
            copy._frame = twin = _Frame(copy._frame, frame.keyed, frame.place)
            twin.size, twin.waiting = frame.size, frame.waiting
        return copy

    def place(self) -> Place | None:
        """Where the next value would stand; None if none may come here."""
        frame = self._frame
        if frame is None:
            return None if self._started else self._root
        return frame.waiting if frame.keyed else frame.place.item(frame.size)

    def open(self, closer: str) -> str | None:
        """An object or array starts, the arguments themselves included; `closer` is its last character."""
        place = self.place()
        if place is None or (not self._started and closer == "]"):
            return None
        before = self._before() if self._started else ""
        self._started = True
        self._frame = _Frame(self._frame, closer == "}", place)
        self.depth += 1
        return before + ("{" if closer == "}" else "[")

    def close(self) -> str:
        frame = self._frame
        if frame is None:
            return ""
        self._frame = frame.parent
        self.depth -= 1
        return ('""' if frame.waiting else "") + ("}" if frame.keyed else "]")

    def key(self, text: str) -> str | None:
        frame = self._frame
        if frame is None or not frame.keyed:
            return None
        before = '""' if frame.waiting else ""
        if frame.size:
            before += ", "
        frame.size += 1
        frame.waiting = frame.place.member(text)
        return f"{before}{quote(text)}: "

    def value(self, json: str) -> str | None:
        """A complete value, or the first piece of one that is written in pieces."""
        frame = self._frame
        if frame is None or (frame.keyed and frame.waiting is None):
            return None
        return self._before() + json

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
        if frame is None:
            return ""
        if frame.keyed:
            frame.waiting = None
            return ""
        frame.size += 1
        return ", " if frame.size > 1 else ""
