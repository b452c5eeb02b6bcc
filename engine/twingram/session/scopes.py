"""Scopes: the chain of roles that are open, and what it means for the text at hand.

In: roles as their tags open and close. Out: where text goes now (`sink_of`), and the text of a role that waited for its
end (`leaf_text`).

    tool_call            raw text of the call; its end ends the call
      tool_name          its end starts the call
      object, array      containers; the outermost object is the arguments
      key, string, number, true, false, null, bare        leaves
        text, escaped    a leaf's body between its delimiters: as it is, or with JSON escapes
    content, reasoning   the whole span is text if the role is in `direct`, else only a body inside
    dropped, silent, padding   passed over with everything inside
    error                announced by an abort, or alone

Invariants: a chain belongs to one emitter, which changes it as tags come (to replace an immutable one at each change
took 0.6 us a tag more); a leaf with a body is that body, one without is its span (a string without is empty, or in
double quotes with JSON's escapes); what is passed over inside a leaf is no part of it.
Cost: constant, but for `leaf_text` (linear in the text) and `copied` (linear in the open scopes).
"""

from __future__ import annotations

from collections.abc import Iterator

from .casts import SPACE, unescape, unquote

__all__ = [
    "BODIES", "CLOSERS", "LEADS", "LEAVES", "PASSED_OVER", "SINKS", "Scope", "Sink", "State", "copied", "find",
    "leaf_text", "unreadable",
]  # fmt: skip

LEADS = frozenset({"silent", "padding"})  # text that leads to something: what breaks then begins with it
PASSED_OVER = frozenset({"dropped", "silent", "padding"})
LEAVES = frozenset({"tool_name", "key", "string", "number", "true", "false", "null", "bare"})
BODIES = frozenset({"text", "escaped"})
CLOSERS = {"object": "}", "array": "]"}
_PLAIN_WORDS = {"silent": "markup", "dropped": "text", "padding": "white space", "bare": "value"}


def unreadable(role: str) -> str:
    """What is wrong where a scope breaks, in words for readers who do not know what roles there are."""
    return f"unreadable {_PLAIN_WORDS.get(role) or role.replace('_', ' ')}"


class State:
    """What a scope is to the emitter, beyond its role. From `BROKEN` on nothing inside counts as what it says."""

    PLAIN = 0
    STREAMED = 1  # a string whose body is emitted as it comes
    BODIED = 2  # a leaf that has a body
    SETTLED = 3  # a call that has its name, or needs none any more
    BROKEN = 4  # an error; `note` says why
    IGNORED = 5  # nothing of it is emitted
    VERBATIM = 6  # all of it is content, marks included


class Sink:
    """Where text goes; 0 is nowhere."""

    NOWHERE = 0
    CONTENT = 1
    REASONING = 2
    STRING = 3
    ESCAPED = 4
    VERBATIM = 5  # content, given from tag to tag: what has begun there may yet be found to end it


SINKS = {"content": Sink.CONTENT, "reasoning": Sink.REASONING}
_BODIED = State.BODIED
_Span = tuple[int, int, bool]  # start, end, escaped


class Scope:
    """One open role. `sink` is where its own text goes, `mark` where its current part starts (-1: an error that an
    abort announced), `parts` are those before; `note` says what broke it."""

    __slots__ = ("led", "mark", "note", "parent", "parts", "role", "sink", "start", "state")

    def __init__(self, parent: Scope | None, role: str, state: int, start: int, sink: int) -> None:
        self.parent = parent
        self.role = role
        self.state = state
        self.sink = sink
        self.start = self.mark = self.led = start  # `led`: where the markup begins that led to it
        self.parts: tuple[_Span, ...] = ()
        self.note = ""

    def sink_of(self, body: str) -> int:
        """Where the text of a body in this leaf goes."""
        if self.state == State.STREAMED:
            return Sink.STRING if body == "text" else Sink.ESCAPED
        return SINKS.get(self.role, Sink.NOWHERE)

    def broken(self, note: str) -> None:
        """From here on it is only the text of an error."""
        self.state, self.note = State.BROKEN, note

    def paused(self, position: int) -> None:
        """Something that is passed over begins inside; a leaf and a body go on after it."""
        if self.role in LEAVES or self.role in BODIES:
            self.parts, self.mark = self.pieces(position), position

    def resumed(self, role: str, position: int) -> None:
        """What was passed over ends."""
        if role in PASSED_OVER and (self.role in LEAVES or self.role in BODIES):
            self.mark = position

    def bodied(self, body: Scope, position: int) -> None:
        """A body in this leaf has closed."""
        if self.state == State.STREAMED:
            self.parts = self.parts or ((position, position, False),)
        else:
            before = self.parts if self.state == _BODIED else ()
            self.state, self.parts = _BODIED, before + body.pieces(position)

    def pieces(self, position: int) -> tuple[_Span, ...]:
        """What of the text up to here it consists of."""
        if self.state == _BODIED or self.mark >= position:
            return self.parts
        return (*self.parts, (self.mark, position, self.role == "escaped"))

    def __iter__(self) -> Iterator[Scope]:
        """The chain, from the inside out."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent


def find(scope: Scope | None, role: str) -> Scope | None:
    """The innermost scope of a role."""
    while scope is not None and scope.role != role:
        scope = scope.parent
    return scope


def copied(top: Scope | None) -> Scope | None:
    """The same chain, to go on by itself."""
    copy: Scope | None = None
    for scope in reversed([*top] if top is not None else []):
        copy = Scope(copy, scope.role, scope.state, scope.start, scope.sink)
        copy.mark, copy.led, copy.parts, copy.note = scope.mark, scope.led, scope.parts, scope.note
    return copy


def leaf_text(text: bytearray, scope: Scope, position: int) -> str:
    """The decoded text of a leaf that closes here."""
    if scope.role == "string" and scope.state != _BODIED:
        span = text[scope.start : position].decode("utf-8", "replace").strip(SPACE)
        return (unquote(span) or "") if span.startswith('"') else ""
    if not scope.parts and scope.state != _BODIED:  # the common case: one piece, nothing passed over
        piece = text[scope.mark : position].decode("utf-8", "replace")
        return unescape(piece)[0] if scope.role == "escaped" else piece
    pieces: list[str] = []
    for start, end, escaped in scope.pieces(position):
        piece = text[start:end].decode("utf-8", "replace")
        pieces.append(unescape(piece)[0] if escaped else piece)
    return "".join(pieces)
