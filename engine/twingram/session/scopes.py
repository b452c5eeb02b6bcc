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

Invariants: scopes are immutable, so a chain is shared by all copies of an emitter; a leaf with a body is that body, one
without is its span (a string without is empty, or in double quotes with JSON's escapes); what is passed over inside a
leaf is no part of it.
Cost: constant, but for `leaf_text` (linear in the text) and `replaced` (linear in the scopes above the changed one).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .casts import SPACE, unescape, unquote

__all__ = [
    "BODIES",
    "CLOSERS",
    "LEAVES",
    "PASSED_OVER",
    "Scope",
    "Sink",
    "State",
    "chain",
    "find",
    "leaf_text",
    "paused",
    "replaced",
    "resumed",
    "sink_of",
    "with_body",
]  # fmt: skip

PASSED_OVER = frozenset({"dropped", "silent", "padding"})
LEAVES = frozenset({"tool_name", "key", "string", "number", "true", "false", "null", "bare"})
BODIES = frozenset({"text", "escaped"})
CLOSERS = {"object": "}", "array": "]"}


class State:
    """What a scope is to the emitter, beyond its role."""

    PLAIN = 0
    IGNORED = 1  # nothing of it is emitted
    VERBATIM = 2  # all of it is content, marks included
    STREAMED = 3  # a string whose body is emitted as it comes
    BODIED = 4  # a leaf that has a body
    SETTLED = 5  # a call that has its name, or needs none any more


class Sink:
    """Where text goes; 0 is nowhere."""

    NOWHERE = 0
    CONTENT = 1
    REASONING = 2
    STRING = 3
    ESCAPED = 4


_SINKS = {"content": Sink.CONTENT, "reasoning": Sink.REASONING}
_Span = tuple[int, int, bool]  # start, end, escaped


class Scope(NamedTuple):
    """One open role. `mark` is where its current part starts (-1: an error that an abort announced), `parts` are those
    before; `note` says what broke it."""

    parent: Scope | None
    role: str
    state: int
    start: int
    mark: int
    parts: tuple[_Span, ...] = ()
    note: str = ""


def chain(scope: Scope | None) -> Iterator[Scope]:
    """From the inside out."""
    while scope is not None:
        yield scope
        scope = scope.parent


def find(scope: Scope | None, role: str) -> Scope | None:
    """The innermost scope of a role."""
    return next((found for found in chain(scope) if found.role == role), None)


def replaced(top: Scope | None, old: Scope, new: Scope) -> Scope:
    """The chain with one scope changed."""
    above: list[Scope] = []
    while top is not None and top is not old:
        above.append(top)
        top = top.parent
    for scope in reversed(above):
        new = scope._replace(parent=new)
    return new


def sink_of(scope: Scope | None, direct: frozenset[str]) -> int:
    """Where text goes while this is the innermost scope."""
    if scope is None or scope.state == State.IGNORED:
        return Sink.NOWHERE
    if scope.state == State.VERBATIM:
        return Sink.CONTENT
    role, parent = scope.role, scope.parent
    if role not in BODIES:
        return _SINKS.get(role, Sink.NOWHERE) if role in direct else Sink.NOWHERE
    if parent is None:
        return Sink.NOWHERE
    if parent.state == State.STREAMED:
        return Sink.STRING if role == "text" else Sink.ESCAPED
    return _SINKS.get(parent.role, Sink.NOWHERE)


def paused(scope: Scope, position: int) -> Scope:
    """A leaf or body in which something that is passed over begins."""
    if scope.role not in LEAVES and scope.role not in BODIES:
        return scope
    return scope._replace(parts=_parts(scope, position), mark=position)


def resumed(scope: Scope | None, role: str, position: int) -> Scope | None:
    """The same when that ends."""
    if scope is None or role not in PASSED_OVER or (scope.role not in LEAVES and scope.role not in BODIES):
        return scope
    return scope._replace(mark=position)


def with_body(parent: Scope | None, body: Scope, position: int) -> Scope | None:
    """The leaf `parent` after a body in it has closed."""
    if parent is None or parent.role not in LEAVES:
        return parent
    if parent.state == State.STREAMED:
        return parent if parent.parts else parent._replace(parts=((position, position, False),))
    before = parent.parts if parent.state == State.BODIED else ()
    return parent._replace(state=State.BODIED, parts=before + _parts(body, position))


def leaf_text(text: bytearray, scope: Scope, position: int) -> str:
    """The decoded text of a leaf that closes here."""
    if scope.role == "string" and scope.state != State.BODIED:
        span = text[scope.start : position].decode("utf-8", "replace").strip(SPACE)
        return (unquote(span) or "") if span.startswith('"') else ""
    pieces: list[str] = []
    for start, end, escaped in _parts(scope, position):
        piece = text[start:end].decode("utf-8", "replace")
        pieces.append(unescape(piece)[0] if escaped else piece)
    return "".join(pieces)


def _parts(scope: Scope, position: int) -> tuple[_Span, ...]:
    if scope.state == State.BODIED or scope.mark >= position:
        return scope.parts
    return (*scope.parts, (scope.mark, position, scope.role == "escaped"))
