"""The emitter: from decided tags over a growing text to deltas.

In: `(tag, position)` pairs in order, the text (UTF-8 bytes, perhaps invalid), and up to where it is decided. Out:
deltas, each as early as it can never be taken back: content, reasoning and the bodies of strings as they come, keys
and scalars when they are complete, values that only the schema can type when they close.

Invariants: merged deltas are a function of tags and text, never of how they were cut; a call that has started ends with
exactly one CallEnd; the text of what broke comes back in a ParseError, from the start of its scope.
Cost: constant a tag, linear in the text; a clone copies ten references.

Source: what text belongs to is read off the chain in `scopes.py`; a byte sequence is replaced as soon as it cannot
become a character any more, as `codecs` decodes incrementally.
"""

from __future__ import annotations

from codecs import utf_8_decode
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple
from uuid import uuid4

from ..automaton.tags import Tag, TagKind
from ..limits import DEFAULT_LIMITS, Limits
from ..schema.declared import Place
from .arguments import Arguments
from .casts import SPACE, cast_bare, cast_raw, cast_string, quote, unescape, unquote
from .deltas import CallArguments, CallEnd, CallStart, Content, Delta, ParseError, Reasoning, merge
from .scopes import (
    BODIES,
    CLOSERS,
    LEAVES,
    PASSED_OVER,
    Scope,
    Sink,
    State,
    find,
    leaf_text,
    paused,
    replaced,
    resumed,
    sink_of,
    with_body,
)
from .tools import Tools
from .trims import Prose

__all__ = ["DIRECT", "Emitter", "random_call_id"]

DIRECT = frozenset({"content", "reasoning"})
_OPEN, _CLOSE, _ABORT, _COMMIT = TagKind.OPEN, TagKind.CLOSE, TagKind.ABORT, TagKind.COMMIT  # an enum is slow to ask
_CONTENT, _REASONING, _ESCAPED = Sink.CONTENT, Sink.REASONING, Sink.ESCAPED


class _Request(NamedTuple):
    """What stays the same during a turn."""

    tools: Tools
    raw: bool
    call_id: Callable[[int], str]
    limits: Limits
    unknown_as_text: bool
    direct: frozenset[str]


def random_call_id() -> str:
    return "call_" + uuid4().hex[:24]


class Emitter:
    """The output side of one turn.

    `call_id` gives the id of the call with this index; `unknown_tools` passes calls of undeclared tools on ("pass")
    or gives their markup back as content ("text"); `direct` are the roles whose whole span is text, not only a body in
    it.
    """

    __slots__ = ("_arguments", "_calls", "_prose", "_request", "_scope", "_sent", "_sink", "_stop")

    def __init__(
        self,
        tools: Tools,
        *,
        casts: Literal["quoted", "raw"],
        call_id: Callable[[int], str] = lambda _: random_call_id(),
        limits: Limits = DEFAULT_LIMITS,
        unknown_tools: str = "pass",
        direct: frozenset[str] = DIRECT,
    ) -> None:
        if unknown_tools not in ("pass", "text"):
            raise ValueError(f"unknown_tools is 'pass' or 'text', not {unknown_tools!r}")
        self._request = _Request(tools, casts == "raw", call_id, limits, unknown_tools == "text", direct)
        self._prose = Prose()
        self._arguments: Arguments | None = None  # of the call that is open and whole so far
        self._scope: Scope | None = None
        self._sink = Sink.NOWHERE  # always sink_of(self._scope)
        self._sent = 0  # up to where the sink has been fed
        self._calls = 0
        self._stop = -1  # where the turn ended

    def clone(self) -> Emitter:
        """A copy that goes on by itself."""
        copy = Emitter.__new__(Emitter)
        copy._request, copy._scope, copy._sink, copy._sent = self._request, self._scope, self._sink, self._sent
        copy._calls, copy._stop = self._calls, self._stop
        copy._prose = self._prose.clone()
        copy._arguments = None if self._arguments is None else self._arguments.clone()
        return copy

    def advance(self, text: bytearray, events: Sequence[tuple[Tag, int]], upto: int) -> list[Delta]:
        """The tags fired since the last step; then text up to `upto` belongs to what is open now."""
        out: list[Delta] = []
        for tag, position in events:
            self._fire(text, tag, position, out)
        if self._arguments is not None or self._stop >= 0:
            upto = self._within(text, upto, out)
        if self._sink and upto > self._sent:
            self._feed(text, upto, False, out)
        return out if len(out) < 2 else merge(out)

    def finish(self, text: bytearray, upto: int, reason: str | None = None) -> list[Delta]:
        """The end of generation: what is open is incomplete. `reason` is the server's word for why it ended."""
        out: list[Delta] = []
        upto = self._within(text, upto, out)
        if self._sink and upto > self._sent:
            self._feed(text, upto, True, out)
        while self._scope is not None:
            scope, self._scope = self._scope, self._scope.parent
            self._cut(text, scope, upto, reason, out)
        self._sink = Sink.NOWHERE
        if self._stop < 0:
            self._stop = upto
        self._content(self._prose.end(), out)
        return merge(out)

    # -- tags ----------------------------------------------------------------------------------------------------------

    def _fire(self, text: bytearray, tag: Tag, position: int, out: list[Delta]) -> None:
        kind = tag.kind
        if kind is _COMMIT:
            return
        if self._arguments is not None or self._stop >= 0:
            position = self._within(text, position, out)
        if self._sink and position > self._sent:
            self._feed(text, position, True, out)
        if kind is _OPEN:
            self._open(tag.role, position, out)
        elif kind is _CLOSE:
            self._close(text, tag.role, position, out)
        elif kind is _ABORT:
            self._abort(tag.role, position, out)
        elif self._stop < 0:
            self._stop = position
            if self._scope is None:
                self._content(self._prose.end(), out)

    def _open(self, role: str, position: int, out: list[Delta]) -> None:
        top, state, note, start = self._scope, State.PLAIN, "", position
        if top is not None and top.note and top.mark < 0 and role == "error":
            self._move(top._replace(mark=position), position)
            return
        if top is not None and (top.note or top.state in (State.IGNORED, State.VERBATIM)):
            state = State.VERBATIM if top.state == State.VERBATIM else State.IGNORED
        elif role in PASSED_OVER or self._stop >= 0:
            state, top = State.IGNORED, top and paused(top, position)
        elif role == "reasoning":
            self._content(self._prose.before_thought(), out)
        elif role == "error":
            self._prose.before_call()
            note = "unreadable text"
            start = self._sent if top is None else position  # with the markup that led to what cannot be read
        elif role in CLOSERS:
            state = self._open_container(CLOSERS[role], out)
            top = self._scope  # a limit may have ended the call
        elif role in LEAVES and role != "tool_name" and not (top is not None and top.role in LEAVES):
            state = self._open_leaf(role, out)
        self._move(Scope(top, role, state, start, position, (), note), position)

    def _open_container(self, closer: str, out: list[Delta]) -> int:
        arguments, most = self._arguments, self._request.limits.depth
        if arguments is None:
            return State.IGNORED
        if arguments.depth >= most:
            self._give_up(f"arguments nest deeper than Limits.depth = {most}", out)
            return State.IGNORED
        return self._write(arguments.open(closer), out)

    def _open_leaf(self, role: str, out: list[Delta]) -> int:
        """A key or value: ignored where it has no place, streamed if it is a string whatever its text."""
        place = None if self._arguments is None else self._arguments.place()
        if self._arguments is None or (place is None and role != "key"):
            return State.IGNORED
        if role == "string" and place is not None and self._is_string(place):
            return self._write(self._arguments.value('"'), out) or State.STREAMED
        return State.PLAIN

    def _is_string(self, place: Place) -> bool:
        if self._request.raw:
            return place.types is not None and place.types == {"string"}
        return place.types is None or "string" in place.types

    def _close(self, text: bytearray, role: str, position: int, out: list[Delta]) -> None:
        scope = self._scope
        if scope is None or scope.role != role:
            scope = find(scope, role)  # a checked grammar closes what it opened last
            if scope is None:
                return
        parent = scope.parent
        if scope.state in (State.IGNORED, State.VERBATIM):
            parent = resumed(parent, role, position)
        elif role == "error" or (role == "tool_call" and scope.note):
            self._report(text, scope, position, out)
        elif role == "reasoning":
            self._prose.after_thought()
        elif role == "tool_call":
            self._end_call(text, scope, position, out)
        elif role in CLOSERS:
            if self._arguments is not None:
                self._emit(self._arguments.close(), out)
        elif role == "tool_name":
            parent = self._start_call(leaf_text(text, scope, position).strip(SPACE), parent, out)
            if parent is not None and parent.state == State.VERBATIM:
                position = parent.start
        elif role in BODIES or (parent is not None and parent.role in LEAVES):
            parent = with_body(parent, scope, position)
        elif role in LEAVES:
            self._end_leaf(text, scope, position, out)
        self._move(parent, position)

    def _end_leaf(self, text: bytearray, scope: Scope, position: int, out: list[Delta]) -> None:
        role, arguments = scope.role, self._arguments
        if arguments is None:
            return
        if scope.state == State.STREAMED:
            rest = "" if scope.parts else leaf_text(text, scope, position)
            self._emit(quote(rest)[1:], out)
            return
        value = leaf_text(text, scope, position)
        if role == "key":
            self._write(arguments.key(self._key(value, scope)), out)
        elif (place := arguments.place()) is not None:
            depth = max(self._request.limits.depth - arguments.depth, 0)
            self._write(arguments.value(self._cast(role, value, place, depth)), out)

    def _key(self, text: str, scope: Scope) -> str:
        if self._request.raw or scope.state == State.BODIED:
            return text
        text = text.strip(SPACE)
        inner = unquote(text)
        return text if inner is None else inner

    def _cast(self, role: str, text: str, place: Place, depth: int) -> str:
        if role != "string":
            return cast_bare(text, role, place.types, depth)
        if self._request.raw:
            return cast_raw(text, place.types, depth, declared=place.declared)
        return cast_string(text, place.types, depth)

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _start_call(self, name: str, parent: Scope | None, out: list[Delta]) -> Scope | None:
        """The name is complete. Gives back the chain with its tool_call marked."""
        scope, request = find(parent, "tool_call"), self._request
        if parent is None or scope is None or scope.state != State.PLAIN or scope.note:
            return parent
        if request.unknown_as_text and not request.tools.knows(name):
            return scope._replace(state=State.VERBATIM)
        self._prose.before_call()
        if self._calls >= request.limits.calls:
            note = f"more calls than Limits.calls = {request.limits.calls}"
            return replaced(parent, scope, scope._replace(note=note))
        bound = scope.start + request.limits.argument_bytes
        self._arguments = Arguments(self._calls, request.tools.place(name), bound)
        out.append(CallStart(self._calls, request.call_id(self._calls), name))
        self._calls += 1
        return replaced(parent, scope, scope._replace(state=State.SETTLED))

    def _end_call(self, text: bytearray, scope: Scope, position: int, out: list[Delta]) -> None:
        if scope.state == State.PLAIN:
            self._prose.before_call()
            self._report(text, scope._replace(note="a call without a name"), position, out)
        elif self._arguments is not None:
            self._emit(self._arguments.finish(), out)
            self._end(True, out)

    def _end(self, complete: bool, out: list[Delta]) -> None:
        if self._arguments is not None:
            out.append(CallEnd(self._arguments.index, complete))
            self._arguments = None

    def _give_up(self, note: str, out: list[Delta]) -> None:
        """A limit is passed: the call is over, the rest of its scope is only error text."""
        self._end(False, out)
        scope = find(self._scope, "tool_call")
        if scope is not None:
            self._scope = replaced(self._scope, scope, scope._replace(note=note))

    def _within(self, text: bytearray, position: int, out: list[Delta]) -> int:
        """No position lies behind the end of the turn, and a call that runs past its bound ends at the bound."""
        if 0 <= self._stop < position:
            position = self._stop
        arguments = self._arguments
        if arguments is not None and position > arguments.bound:
            if self._sink and arguments.bound > self._sent:
                self._feed(text, arguments.bound, False, out)
            self._give_up(f"a call longer than Limits.argument_bytes = {self._request.limits.argument_bytes}", out)
        return position

    # -- what breaks ---------------------------------------------------------------------------------------------------

    def _abort(self, role: str, position: int, out: list[Delta]) -> None:
        scope = find(self._scope, role)
        if scope is None:
            return
        outer, state, note = scope.parent, State.PLAIN, scope.note or f"unreadable {role.replace('_', ' ')}"
        if scope.state == State.VERBATIM or (outer is not None and outer.state == State.IGNORED):
            state = State.VERBATIM if scope.state == State.VERBATIM else State.IGNORED
        else:
            self._prose.after_thought()
            self._prose.before_call()
        call = find(scope, "tool_call")
        if call is not None and state == State.PLAIN:
            self._end(False, out)
            if outer is not None and call is not scope:
                outer = replaced(outer, call, call._replace(state=State.SETTLED))
        start = position if role in DIRECT else scope.start
        self._move(Scope(outer, "error", state, start, -1, (), note), position)

    def _cut(self, text: bytearray, scope: Scope, upto: int, reason: str | None, out: list[Delta]) -> None:
        """The output ended in this scope."""
        if scope.state in (State.IGNORED, State.VERBATIM):
            return
        if scope.role == "reasoning":
            self._prose.after_thought()
        elif scope.note:
            self._end(False, out)
            self._report(text, scope, upto, out)
        elif scope.role == "tool_call":
            self._end(False, out)
            if scope.state == State.PLAIN:
                self._prose.before_call()
                note = "the output ended inside a call" + (f" ({reason})" if reason else "")
                self._report(text, scope._replace(note=note), upto, out)

    def _report(self, text: bytearray, scope: Scope, position: int, out: list[Delta]) -> None:
        broken = text[scope.start : position].decode("utf-8", "replace")
        if broken or scope.role != "error":
            out.append(ParseError(broken, scope.note))

    # -- text ----------------------------------------------------------------------------------------------------------

    def _move(self, scope: Scope | None, position: int) -> None:
        """The innermost scope changes; text before `position` has been dealt with."""
        self._scope, self._sent = scope, position
        self._sink = sink_of(scope, self._request.direct)

    def _feed(self, text: bytearray, position: int, final: bool, out: list[Delta]) -> None:
        """Text up to here is of the present sink. `final`: its last character is over."""
        piece, used = utf_8_decode(text[self._sent : position], "replace", final)
        sink = self._sink
        if sink == _ESCAPED:
            piece, waiting = unescape(piece, final=final)
            used -= waiting
        self._sent += used
        if sink == _CONTENT:
            piece = self._prose.content(piece)
            if piece:
                out.append(Content(piece))
        elif sink == _REASONING:
            piece = self._prose.reasoning(piece)
            if piece:
                out.append(Reasoning(piece))
        else:
            self._emit(quote(piece)[1:-1], out)

    def _content(self, piece: str, out: list[Delta]) -> None:
        if piece:
            out.append(Content(piece))

    def _emit(self, json: str, out: list[Delta]) -> None:
        if json and self._arguments is not None:
            out.append(CallArguments(self._arguments.index, json))

    def _write(self, json: str | None, out: list[Delta]) -> int:
        """Emit what the writer gave; what it refused is ignored."""
        if json is None:
            return State.IGNORED
        self._emit(json, out)
        return State.PLAIN
