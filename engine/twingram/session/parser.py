"""The streaming parser: text or tokens in, deltas out.

In: pieces of model output, as text or as token ids, cut anywhere. Out: deltas, as soon as they are certain; at the end
a message. The one-shot parse is this parser fed once.

Fed text, a marker is its letters; fed tokens, it is the special token and nothing else, and a stop token ends the turn.
Invariants: chunks do not matter; every byte up to the end of the turn is content, reasoning, a call, markup or an
error; nothing is taken back.
Cost: linear; a byte seen before at its state is one dictionary look-up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from operator import index
from typing import Any

from ..automaton.machine import State, Transition
from ..errors import RequestError
from ..limits import Limits
from ..tokens.binding import TokenBinding
from .callids import CallIds
from .deltas import Delta, ParseError, merge
from .emitter import Emitter
from .message import Message, MessageBuilder
from .reader import Reader
from .spans import Ledger, Span
from .tools import Tools

__all__ = ["Parser"]

_SURROGATE = re.compile("[\ud800-\udfff]")
_PIECE = 24  # text pieces up to this many bytes keep their transition, as tokens do
_PIECES_KEPT = 4096  # of each state


class Parser:
    """Reads one turn. Made by `Format.parser`."""

    def __init__(
        self,
        text_start: Callable[[], State],
        token_start: Callable[[], tuple[State, TokenBinding]] | None,
        *,
        tools: Tools,
        casts: str,
        call_id: Callable[[], str] | None,
        limits: Limits,
        unknown_tools: str = "pass",
    ) -> None:
        self._text_start, self._token_start = text_start, token_start
        self._emits: dict[str, Any] = {"casts": casts, "limits": limits, "unknown_tools": unknown_tools}
        self._tools, self._pending = tools, limits.pending_bytes
        self._emitter = Emitter(tools, call_id=CallIds(call_id), **self._emits)
        self._reader: Reader | None = None
        self._binding: TokenBinding | None = None
        self._builder = MessageBuilder()
        self._unfolded: list[Delta] = []  # deltas that the builder has not seen yet
        self._finished = False
        self._ended = False  # a stop token was read
        self._stuck = False  # or no reading was left: what still comes is not read any more
        self._unread = bytearray()  # what came after no reading was left
        self._reason: str | None = None  # why the turn ended

    def feed(self, text: str) -> list[Delta]:
        """The next piece of decoded text."""
        if not isinstance(text, str):
            raise TypeError(f"feed takes text, not {type(text).__name__}; feed_tokens takes token ids")
        try:
            data = text.encode()
        except UnicodeEncodeError:  # half a surrogate pair is no character
            data = _SURROGATE.sub("\ufffd", text).encode()
        return self.feed_bytes(data)

    def feed_bytes(self, data: bytes | bytearray | memoryview) -> list[Delta]:
        """The next piece as UTF-8 bytes, which may be cut inside a character."""
        if type(data) is not bytes:
            if not isinstance(data, (bytearray, memoryview)):
                raise TypeError(f"feed_bytes takes bytes, not {type(data).__name__}; feed takes text")
            data = bytes(data)
        reader = self._reader
        if reader is None or self._binding is not None or self._finished:
            reader = self._open_text()
        if self._unread:
            self._unread += data
            return []
        read = _read(reader, data) if reader.position + len(data) <= reader.due else _read_within(reader, data)
        return self._given(reader.deltas() if read == len(data) else self._dead(data[read:]))

    def _open_text(self) -> Reader:
        if self._reader is None:
            self._reader = Reader(self._text_start(), self._emitter, self._pending)
        elif self._binding is not None:
            raise RequestError("this parser has been fed tokens; text and tokens cannot be mixed")
        self._check_open()
        return self._reader

    def feed_tokens(self, ids: Iterable[int]) -> list[Delta]:
        """The next token ids. What follows a stop token is ignored."""
        reader = self._reader
        if reader is None or self._binding is None or self._finished:
            reader = self._open_tokens()
        tokens, unfolded = iter(ids), self._unfolded
        out: list[Delta] = []
        while not self._stuck:
            unknown = reader.known(tokens)
            if unknown is None:
                deltas = reader.deltas()
                if out:
                    deltas = merge(out + deltas)
                unfolded += deltas
                return deltas
            out += self._token(unknown, reader)
        for token in tokens:
            out += self._late(index(token))
        return self._given(merge(out))

    def _open_tokens(self) -> Reader:
        if self._reader is None:
            if self._token_start is None:
                raise RequestError("a parser that is fed tokens needs vocabulary=")
            start, self._binding = self._token_start()
            self._reader = Reader(start, self._emitter, self._pending)
        elif self._binding is None:
            raise RequestError("this parser has been fed text; text and tokens cannot be mixed")
        self._check_open()
        return self._reader

    def _token(self, token: int, reader: Reader) -> list[Delta]:
        """A token that is new at this state, or ends the turn."""
        binding = self._binding
        assert binding is not None
        if token in binding.stops:
            self._ended = self._stuck = True
            return self._close(None)
        data = binding.text(token)
        if not data:
            return []
        transition = binding.transition(reader.state, token)
        if transition is None:
            read = reader.read(data) if binding.symbol(token) is None else 0
            return self._dead(data[read:])
        reader.follow(transition)
        if reader.position > reader.due:
            reader.settle()
        return []

    def _late(self, token: int) -> list[Delta]:
        """A token where nothing is read any more. What follows a stop token is ignored."""
        binding = self._binding
        assert binding is not None
        if self._ended:
            return []
        if token in binding.stops:
            self._ended = True
            return self._close(None)
        self._unread += binding.text(token)
        return []

    def finish(self, reason: str | None = None) -> list[Delta]:
        """The end of generation; `reason="length"` says that it was cut. Gives what was still undecided."""
        if self._finished:
            return []
        if self._reader is None:
            self._reader = Reader(self._text_start(), self._emitter, self._pending)
        self._finished, self._reason = True, reason
        return self._given([] if self._ended else self._close(reason))

    @property
    def message(self) -> Message:
        """The message so far; complete once `finish` was called."""
        self._builder.extend(self._unfolded)
        self._unfolded.clear()
        return self._builder.message

    def spans(self) -> list[Span]:
        """What each byte of the decoded text was read as: (start, end, kind), for a finished parser.

        `kind` is content, reasoning, call, markup or error. What follows a stop marker is not covered.
        """
        if not self._finished or self._reader is None:
            raise RequestError("spans are known when the turn is over: call finish() first")
        ledger = Ledger(self._tools, **self._emits)
        reason = "unreadable" if self._unread else self._reason
        return ledger.spans(self._reader.text, self._reader.tags(), reason, len(self._unread))

    def _check_open(self) -> None:
        if self._finished:
            raise RequestError("this parser is finished; make a new one for the next turn")

    def _dead(self, rest: bytes) -> list[Delta]:
        """No reading is left and the grammar knows no way to go on: the rest of the turn is an error."""
        assert self._reader is not None
        self._unread += rest
        self._stuck = True
        return self._reader.finish("unreadable")

    def _close(self, reason: str | None) -> list[Delta]:
        assert self._reader is not None
        if self._unread:
            text = self._unread.decode("utf-8", "replace")
            return [ParseError(text, "this does not belong to the format")]
        return self._reader.finish(reason)

    def _given(self, deltas: list[Delta]) -> list[Delta]:
        self._unfolded += deltas
        return deltas


def _read(reader: Reader, data: bytes) -> int:
    """Feed bytes; how many were read before no reading was left."""
    if len(data) <= _PIECE:
        transition = _piece(reader, data)
        if transition is not None:
            reader.follow(transition)
            return len(data)
    return reader.read(data)


def _read_within(reader: Reader, data: bytes) -> int:
    """The same, with a look at each place where text may have been undecided for too long."""
    at = 0
    while at < len(data):
        if reader.position >= reader.due:
            reader.settle()
        piece = data[at : at + reader.due - reader.position]
        read = _read(reader, piece)
        at += read
        if read < len(piece):
            break
    return at


def _piece(reader: Reader, data: bytes) -> Transition | None:
    pieces = reader.state.pieces
    try:
        return pieces[data]
    except KeyError:
        found = reader.state.run(data)
        if len(pieces) < _PIECES_KEPT:
            pieces[data] = found
        return found


