"""Trims: which white space of content and reasoning is text, and which only stood between things.

In: decoded pieces of text, and what comes between them. Out: the text to emit, as early as it cannot be taken back.

    content     as it is, pieces joined; but a run that is white space only is dropped next to a call or a thought,
                and white space right before a call is dropped
    reasoning   outer newlines of each block off, blocks joined by one newline, empty blocks count for nothing

A run of content lasts from one call or thought to the next.
Invariant: the joined output depends on the joined input only, not on how it was cut.
Cost: linear; white space that is held back is a chain of the pieces that came, so a copy of this state is four values.
"""

from __future__ import annotations

__all__ = ["Prose"]

SPACE = " \t\n\r\f\v"
NEWLINES = "\r\n"

_Held = tuple["_Held", str] | None  # (what was held before, the last piece)


class Prose:
    """The state of both rules between two pieces."""

    __slots__ = ("_block", "_held", "_neighbour", "_shown", "_thought")

    def __init__(self) -> None:
        self._held: _Held = None  # white space of content, or newlines of reasoning, whose fate is open
        self._neighbour = False  # a call or thought stands before this run of content
        self._shown = False  # this run has text that is no white space
        self._thought = False  # some reasoning has been emitted
        self._block = False  # the open block of reasoning has text

    def clone(self) -> Prose:
        copy = Prose.__new__(Prose)
        copy._held, copy._neighbour, copy._shown = self._held, self._neighbour, self._shown
        copy._thought, copy._block = self._thought, self._block
        return copy

    def content(self, text: str) -> str:
        if self._held is None and text and text[-1] not in SPACE:
            self._shown = True
            return text
        solid = text.rstrip(SPACE)
        if not solid:
            if text:
                self._held = (self._held, text)
            return ""
        self._shown = True
        trail = text[len(solid) :]
        if self._held is not None:
            solid = self._flush() + solid
        if trail:
            self._held = (None, trail)
        return solid

    def before_thought(self) -> str:
        """A thought starts here: white space of a run with text in it stays."""
        kept = self._flush() if self._shown else ""
        self.before_call()
        return kept

    def before_call(self) -> None:
        """A call (or the wreck of one) starts here."""
        self._held, self._neighbour, self._shown = None, True, False

    def end(self) -> str:
        """The turn is over."""
        kept = self._flush() if self._shown or not self._neighbour else ""
        self._held = None
        return kept

    def reasoning(self, text: str) -> str:
        if self._block and self._held is None and text and text[-1] not in NEWLINES:
            return text
        opening = ""
        if not self._block:
            text = text.lstrip(NEWLINES)
            if not text:
                return ""
            opening = "\n" if self._thought else ""
            self._block = self._thought = True
        solid = text.rstrip(NEWLINES)
        if not solid:
            if text:
                self._held = (self._held, text)
            return ""
        trail = text[len(solid) :]
        solid = opening + self._flush() + solid
        if trail:
            self._held = (None, trail)
        return solid

    def after_thought(self) -> None:
        self._held, self._block = None, False

    def _flush(self) -> str:
        if self._held is None:
            return ""
        held, self._held = self._held, None
        return _joined(held)


def _joined(held: _Held) -> str:
    pieces: list[str] = []
    while held is not None:
        held, piece = held
        pieces.append(piece)
    return "".join(reversed(pieces))
