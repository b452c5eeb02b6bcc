"""The emitter: from decided tags over a growing text to deltas.

In: `(tag, position)` pairs in order, the text (UTF-8 bytes, perhaps invalid), and up to where it is decided. Out:
deltas, each as early as it can never be taken back: content, reasoning and the bodies of strings as they come, keys
and scalars when they are complete, values that only the schema can type when they close.

Invariants: merged deltas are a function of tags and text, never of how they were cut; a call that has started ends with
exactly one CallEnd; the text of what broke comes back in a ParseError, from the start of its scope.
Cost: constant a tag (0.5 us; `acts` are faster), linear in the text; a clone copies what is open.

Source: what text belongs to is read off the chain in `scopes.py`; a byte sequence is replaced as soon as it cannot
become a character any more, as `codecs` decodes incrementally.
"""

from __future__ import annotations

from codecs import utf_8_decode
from collections.abc import Callable, Iterable
from sys import maxsize
from typing import Literal, NamedTuple

from ..automaton.tags import Tag, TagKind
from ..limits import DEFAULT_LIMITS, Limits
from ..schema.declared import Place
from .arguments import Arguments
from .callids import random_call_id
from .casts import SPACE, cast_bare, cast_raw, cast_string, quote, unescape, unquote
from .deltas import CallArguments, CallEnd, CallStart, Content, Delta, ParseError, Reasoning
from .output import Output
from .scopes import BODIES, CLOSERS, LEADS, LEAVES, PASSED_OVER, SINKS, Scope, copied, find, leaf_text, unreadable
from .tools import Tools
from .trims import Prose

__all__ = ["DIRECT", "Emitter", "random_call_id"]

DIRECT = frozenset({"content", "reasoning"})

# Names of a module are found several times as fast as members of a class.
_OPEN, _CLOSE, _ABORT, _COMMIT, _CUT, _DROPPED = (TagKind(kind) for kind in (0, 1, 2, 4, 5, 6))
_NOWHERE, _CONTENT, _REASONING, _STRING, _ESCAPED, _VERBATIM_TEXT = range(6)
_PLAIN, _STREAMED, _BODIED, _SETTLED, _BROKEN, _IGNORED, _VERBATIM = range(7)


class _Request(NamedTuple):
    """What stays the same during a turn."""

    tools: Tools
    raw: bool
    call_id: Callable[[int], str]
    limits: Limits
    unknown_as_text: bool
    direct: frozenset[str]


class Emitter(Output):
    """The output side of one turn.

    `call_id` gives the id of the call with this index; `unknown_tools` passes calls of undeclared tools on ("pass")
    or gives their markup back as content ("text"); `direct` are the roles whose whole span is text, not only a body in
    it.
    """

    __slots__ = ("_arguments", "_bound", "_prose", "_request", "_scope", "_sent", "_sink", "_stop")

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
        super().__init__()
        self._request = _Request(tools, casts == "raw", call_id, limits, unknown_tools == "text", direct)
        self._prose = Prose()
        self._arguments: Arguments | None = None  # of the call that is open and whole so far
        self._scope: Scope | None = None
        self._sink = _NOWHERE  # where text goes now
        self._sent = 0  # up to where the sink has been fed
        self._stop = -1  # where the turn ended
        self._bound = maxsize  # up to where nothing ends what is open: the end of the turn, or the bound of the call

    def clone(self) -> Emitter:
        """A copy that goes on by itself."""
        copy = Emitter.__new__(Emitter)
        Output.__init__(copy)
        copy._request, copy._sink, copy._sent = self._request, self._sink, self._sent
        copy._calls, copy._stop, copy._bound, copy._said = self._calls, self._stop, self._bound, self._said
        copy._scope = copied(self._scope)
        copy._prose = self._prose.clone()
        copy._arguments = None if self._arguments is None else self._arguments.clone()
        return copy

    def advance(self, text: bytearray, events: Iterable[tuple[Tag, int]], upto: int) -> list[Delta]:
        """The tags fired since the last step; then text up to `upto` belongs to what is open now."""
        self.fire(text, events, 0)
        if upto > self._bound:
            upto = self._within(text, upto)
        if self._sink and upto > self._sent and self._sink != _VERBATIM_TEXT:
            self._feed(text, upto, False)
        return self._taken()

    def fire(self, text: bytearray, events: Iterable[tuple[Tag, int]], base: int) -> None:
        """Tags, with their places counted from `base`; what comes of them is kept for the next `advance` or `more`."""
        for tag, offset in events:
            kind, position = tag.kind, base + offset
            if kind is _COMMIT:
                continue
            if position > self._bound:
                position = self._within(text, position)
            if position < self._sent:  # noqa: PLR1730 - an error that begins with what was half read is never taken back
                position = self._sent
            if self._sink and position > self._sent:
                self._feed(text, position, kind is not _DROPPED)  # which may stand inside a character
            if kind is _OPEN:
                self._open(tag.role, position)
            elif kind is _CLOSE:
                self._close(text, tag.role, position)
            elif kind is _ABORT:
                self._abort(tag.role, position)
            elif kind is _CUT:
                self._cut_off(position)
            elif kind is _DROPPED:
                self.once(f"more readings than Limits.threads = {self._request.limits.threads}")
            else:
                self._end_turn(position)

    def more(self, text: bytearray, upto: int) -> list[Delta]:
        """What was fired, and text up to `upto`. Where there is only plain text it takes a short way: 0.4 us less."""
        sent, sink = self._sent, self._sink
        if not sink or upto <= sent:
            return self._taken() if self._pieces or self._out else []
        if upto > self._bound or sink >= _ESCAPED or self._pieces or self._out:
            return self.advance(text, (), upto)
        try:
            piece, self._sent = text[sent:upto].decode(), upto
        except UnicodeDecodeError:  # half a character, or no character at all
            return self.advance(text, (), upto)
        if sink == _CONTENT:
            piece = self._prose.content(piece)
            return [Content(piece)] if piece else []
        if sink == _REASONING:
            piece = self._prose.reasoning(piece)
            return [Reasoning(piece)] if piece else []
        return [] if self._arguments is None else [CallArguments(self._arguments.index, quote(piece)[1:-1])]

    def finish(self, text: bytearray, upto: int, reason: str | None = None) -> list[Delta]:
        """The end of generation: what is open is incomplete. `reason` is the server's word for why it ended."""
        upto = self._within(text, upto)
        if self._sink and upto > self._sent:
            self._feed(text, upto, True)
        while self._scope is not None:
            scope, self._scope = self._scope, self._scope.parent
            self._cut(text, scope, upto, reason)
        self._sink = _NOWHERE
        if self._stop < 0:
            self._stop = self._bound = upto
        self._put(_CONTENT, self._prose.end())
        return self._taken()

    # -- tags ----------------------------------------------------------------------------------------------------------

    def _open(self, role: str, position: int) -> None:
        top, state, sink, start, note = self._scope, _PLAIN, _NOWHERE, position, ""
        if top is not None and top.state >= _BROKEN:
            if top.mark < 0 and role == "error":
                top.mark = position
                return
            state, sink = (_VERBATIM, _VERBATIM_TEXT) if top.state == _VERBATIM else (_IGNORED, _NOWHERE)
        elif self._stop >= 0 or role in PASSED_OVER:
            state = _IGNORED
            if top is not None:
                top.paused(position)
        elif role in LEAVES:
            if role != "tool_name" and (top is None or top.role not in LEAVES):
                state = self._open_leaf(role)
        elif role in BODIES:
            sink = _NOWHERE if top is None else top.sink_of(role)
        elif role in CLOSERS:
            state = self._open_container(CLOSERS[role])
            top = self._scope
        elif role == "error":
            self._prose.before_call()
            state, note = _BROKEN, "unreadable text"
            start = self._sent if top is None else position  # with the markup that led to what cannot be read
        elif role in SINKS:
            if role == "reasoning":
                self._put(_CONTENT, self._prose.before_thought())
            sink = SINKS[role] if role in self._request.direct else _NOWHERE
        self._scope = scope = Scope(top, role, state, start, sink)
        if top is None:
            scope.led = self._sent
        if note:
            scope.note, scope.mark = note, position
        self._sent, self._sink = position, sink

    def _open_container(self, closer: str) -> int:
        arguments, most = self._arguments, self._request.limits.depth
        if arguments is None:
            return _IGNORED
        if arguments.depth >= most:
            self._give_up(f"arguments nest deeper than Limits.depth = {most}")
            return _IGNORED
        return self._write(arguments.open(closer))

    def _open_leaf(self, role: str) -> int:
        """A key or value: ignored where it has no place, streamed if it is a string whatever its text."""
        arguments = self._arguments
        if arguments is None:
            return _IGNORED
        if role == "key":
            return _PLAIN
        place = arguments.place()
        if place is None:
            return _IGNORED
        if role == "string" and self._is_string(place):
            return self._write(arguments.value('"')) or _STREAMED
        return _PLAIN

    def _is_string(self, place: Place) -> bool:
        types = place.types
        return types == frozenset({"string"}) if self._request.raw else types is None or "string" in types

    def _close(self, text: bytearray, role: str, position: int) -> None:
        scope = self._scope
        if scope is None or scope.role != role:
            scope = find(scope, role)  # a checked grammar closes what it opened last
            if scope is None:
                return
        parent = scope.parent
        if scope.state >= _IGNORED:
            if parent is not None:
                parent.resumed(role, position)
            elif role in LEADS:
                position = scope.led
        elif role == "tool_name":
            parent, position = self._start_call(parent, leaf_text(text, scope, position), position)
        elif parent is not None and parent.role in LEAVES and scope.state < _BROKEN and role not in CLOSERS:
            parent.bodied(scope, position)
        elif role in _ENDINGS:
            _ENDINGS[role](self, text, scope, position)
        self._scope, self._sent = parent, position
        self._sink = _NOWHERE if parent is None else parent.sink

    def _end_container(self, _text: bytearray, _scope: Scope, _position: int) -> None:
        if self._arguments is not None:
            self._put(_STRING, self._arguments.close())

    def _end_leaf(self, text: bytearray, scope: Scope, position: int) -> None:
        role, arguments = scope.role, self._arguments
        if arguments is None:
            return
        if scope.state == _STREAMED:
            self._put(_STRING, '"' if scope.parts else quote(leaf_text(text, scope, position))[1:])
            return
        value = leaf_text(text, scope, position)
        if role == "key":
            self._write(arguments.key(self._key(value, scope.state)))
        elif (place := arguments.place()) is not None:
            depth = max(self._request.limits.depth - arguments.depth, 0)
            self._write(arguments.value(self._cast(role, value, place, depth)))

    def _key(self, text: str, state: int) -> str:
        if self._request.raw or state == _BODIED:
            return text
        if text.isidentifier():  # as most keys are
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

    def _end_turn(self, position: int) -> None:
        if self._stop < 0:
            self._stop = position
            self._bound = min(self._bound, position)
            if self._scope is None:
                self._put(_CONTENT, self._prose.end())

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _start_call(self, parent: Scope | None, name: str, position: int) -> tuple[Scope | None, int]:
        """The name is complete. Gives back what is open now, and from where on its text counts."""
        request = self._request
        call = find(parent, "tool_call")
        if call is None or call.state != _PLAIN:
            return parent, position
        name = name.strip(SPACE)
        if request.unknown_as_text and not request.tools.knows(name):
            call.state, call.sink = _VERBATIM, _VERBATIM_TEXT
            return call, call.start
        self._prose.before_call()
        index, limits = self._calls, request.limits
        if index >= limits.calls:
            call.broken(f"more calls than Limits.calls = {limits.calls}")
            return parent, position
        bound = call.start + limits.argument_bytes
        self._arguments = Arguments(index, request.tools.place(name), bound)
        self._bound = bound if self._stop < 0 else min(bound, self._stop)
        self._add(CallStart(index, request.call_id(index), name))
        self._calls = index + 1
        call.state = _SETTLED
        return parent, position

    def _end_call(self, text: bytearray, scope: Scope, position: int) -> None:
        if scope.state == _BROKEN:
            self._report(text, scope, position)
        elif scope.state == _PLAIN:
            self._prose.before_call()
            scope.note = "a call without a name"
            self._report(text, scope, position)
        else:
            self._end(True)

    def _end(self, complete: bool) -> None:
        arguments = self._arguments
        if arguments is not None:
            if complete:
                self._put(_STRING, arguments.finish())
            self._add(CallEnd(arguments.index, complete))
            self._arguments = None
            self._bound = maxsize if self._stop < 0 else self._stop

    def _give_up(self, note: str) -> None:
        """A limit is passed: the call is over, the rest of its scope is only error text."""
        self._end(False)
        scope = find(self._scope, "tool_call")
        if scope is not None:
            scope.broken(note)

    def _within(self, text: bytearray, position: int) -> int:
        """No position lies behind the end of the turn, and a call that runs past its bound ends at the bound."""
        if 0 <= self._stop < position:
            position = self._stop
        arguments = self._arguments
        if arguments is not None and position > arguments.bound:
            if self._sink and arguments.bound > self._sent:
                self._feed(text, arguments.bound, False)
            self._give_up(f"a call longer than Limits.argument_bytes = {self._request.limits.argument_bytes}")
        return position

    # -- what breaks ---------------------------------------------------------------------------------------------------

    def _abort(self, role: str, position: int) -> None:
        scope = find(self._scope, role)
        if scope is None:
            return
        outer, state, note = scope.parent, _BROKEN, scope.note or unreadable(role)
        if scope.state == _VERBATIM:
            state = _VERBATIM
        elif outer is not None and outer.state == _IGNORED:
            state = _IGNORED
        else:
            self._prose.after_thought()
            self._prose.before_call()
        call = find(scope, "tool_call")
        if call is not None and state == _BROKEN:
            self._end(False)
            if call is not scope and call.state == _PLAIN:
                call.state = _SETTLED
        start = position if role in DIRECT else scope.led if outer is None else scope.start
        self._sink = _VERBATIM_TEXT if state == _VERBATIM else _NOWHERE
        self._scope = broken = Scope(outer, "error", state, start, self._sink)
        broken.note, broken.mark = note, -1
        self._sent = position

    def _cut(self, text: bytearray, scope: Scope, upto: int, reason: str | None) -> None:
        """The output ended in this scope."""
        if scope.state >= _IGNORED:
            return
        if scope.role == "reasoning":
            self._prose.after_thought()
        elif scope.state == _BROKEN:
            self._end(False)
            self._report(text, scope, upto)
        elif scope.role == "tool_call":
            self._end(False)
            if scope.state == _PLAIN:
                self._prose.before_call()
                scope.note = "the output ended inside a call" + (f" ({reason})" if reason else "")
                self._report(text, scope, upto)

    def _cut_off(self, position: int) -> None:
        """The output ended where no reading may end. Markup that nothing has come of yet is an error."""
        scope, start = self._scope, self._sent
        if scope is not None and scope.parent is None and (scope.role in LEADS or scope.start == position):
            start, scope = scope.led, None
        if scope is None and start < position and self._stop < 0:
            self._prose.before_call()
            self._scope = Scope(None, "error", _BROKEN, start, _NOWHERE)
            self._scope.broken("the output ended inside markup")
            self._sent, self._sink = position, _NOWHERE

    def cut_in(self, half: bytes) -> None:
        """The output ended in the middle of markup of a call that has begun: it is said, but it is no answer."""
        top = self._scope if half and self._arguments is not None else None
        if top is not None and (top.role not in LEAVES or top.state in (_STREAMED, _BODIED)):
            self.once(f"the output ended inside markup: {half.decode('utf-8', 'replace')}")

    def _report(self, text: bytearray, scope: Scope, position: int) -> None:
        broken = text[scope.start : position].decode("utf-8", "replace")
        if broken or scope.role != "error":
            self._add(ParseError(broken, scope.note))

    # -- text ----------------------------------------------------------------------------------------------------------

    def _feed(self, text: bytearray, position: int, final: bool) -> None:
        """Text up to here is of the present sink. `final`: its last character is over."""
        sent, sink = self._sent, self._sink
        piece, used = utf_8_decode(text[sent:position], "replace", final)
        if sink == _ESCAPED:
            piece, waiting = unescape(piece, final=final)
            used -= waiting
        self._sent = sent + used
        if sink in (_CONTENT, _VERBATIM_TEXT):
            self._put(_CONTENT, self._prose.content(piece))
        elif sink == _REASONING:
            self._put(_REASONING, self._prose.reasoning(piece))
        elif self._arguments is not None:
            self._put(_STRING, quote(piece)[1:-1])

    def _write(self, json: str | None) -> int:
        """Emit what the writer gave; what it refused is ignored."""
        if json is None:
            return _IGNORED
        self._put(_STRING, json)
        return _PLAIN


_ENDINGS: dict[str, Callable[[Emitter, bytearray, Scope, int], None]] = {
    **dict.fromkeys(LEAVES, Emitter._end_leaf),
    **dict.fromkeys(CLOSERS, Emitter._end_container),
    "tool_call": Emitter._end_call,
    "reasoning": lambda emitter, _text, _scope, _position: emitter._prose.after_thought(),
    "error": lambda emitter, text, scope, position: emitter._report(text, scope, position),
}
"""What the end of a role does, where it is not a part of a leaf."""
