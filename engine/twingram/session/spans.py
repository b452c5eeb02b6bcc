"""Spans: what every byte of a turn was read as.

In: the decided tags of a turn and its text, as an emitter gets them. Out: `(start, end, kind)` in byte offsets; `kind`
is one of `KINDS`.

The account is kept by an emitter that notes, for each stretch of text between two tags, what the innermost scopes make
of it. So it is the account of the very reading that gave the deltas, decided by the same code, and costs nothing while
a turn is read.
Invariant: the spans cover every byte up to the end of the turn exactly once, in order, and neighbours differ in kind.
What an error reports is an error from the start of its scope on, whatever it was taken for before.
Cost: the emitter's, and for each tag the scopes that are open.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TypeAlias

from ..automaton.tags import COMMIT, Tag
from .deltas import Delta
from .emitter import Emitter
from .scopes import Scope, Sink, State

__all__ = ["KINDS", "Ledger", "Span"]

KINDS = ("markup", "content", "reasoning", "call", "error")
_MARKUP, _CONTENT, _REASONING, _CALL, _ERROR = range(len(KINDS))

Span: TypeAlias = "tuple[int, int, str]"


class Ledger(Emitter):
    """An emitter whose deltas nobody reads. It sees one turn, whole."""

    __slots__ = ("_kinds", "_noted")

    def spans(self, text: bytearray, events: Sequence[tuple[Tag, int]], reason: str | None, unread: int) -> list[Span]:
        """The account of a turn that was read to its end. `unread` bytes follow that no reading was left for."""
        self._kinds = bytearray(len(text))
        self._noted = 0
        self.advance(text, events, len(text))
        self.finish(text, len(text), reason)
        kinds = self._kinds[: self._stop] + bytes((_ERROR,)) * unread
        spans, start = [], 0
        for kind, run in groupby(kinds):
            end = start + sum(1 for _ in run)
            spans.append((start, end, KINDS[kind]))
            start = end
        return spans

    def fire(self, text: bytearray, events: Iterable[tuple[Tag, int]], base: int) -> None:
        for tag, offset in events:
            if tag is COMMIT:
                continue
            position = max(self._within(text, base + offset), self._sent)  # as the emitter itself takes it
            self._note(position)
            scope = self._scope
            super().fire(text, [(tag, position)], 0)
            if self._scope is not scope:
                self._noted = self._sent  # further back, if what was begun turns out to be text

    def finish(self, text: bytearray, upto: int, reason: str | None = None) -> list[Delta]:
        self._note(self._within(text, upto))
        return super().finish(text, upto, reason)

    def _report(self, text: bytearray, scope: Scope, position: int) -> None:
        self._paint(scope.start, position, _ERROR)
        super()._report(text, scope, position)

    def _note(self, position: int) -> None:
        """What lies between the last tag and this one belongs to the scope that is open."""
        self._paint(self._noted, position, self._kind())
        self._noted = position

    def _paint(self, start: int, end: int, kind: int) -> None:
        if end > start:
            self._kinds[start:end] = bytes((kind,)) * (end - start)

    def _kind(self) -> int:
        scopes = [] if self._scope is None else [*self._scope]
        if scopes and scopes[0].state == State.VERBATIM:
            return _CONTENT
        if any(scope.note and scope.state != State.IGNORED for scope in scopes):
            return _ERROR
        if any(scope.role == "tool_call" for scope in scopes):
            return _CALL
        return {Sink.CONTENT: _CONTENT, Sink.REASONING: _REASONING}.get(self._sink, _MARKUP)
