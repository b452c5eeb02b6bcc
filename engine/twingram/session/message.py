"""Messages: deltas folded into what a caller of a one-shot parse wants.

In: deltas in order. Out: a frozen `Message`: content, reasoning, complete calls, incomplete calls, errors.
Invariants: folding depends on the merged deltas only; `arguments` of a complete call is valid JSON and `value` is read
from it, big integers exactly, the last of two equal keys winning.
Cost: linear; `value` is read once, when it is first asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from ..errors import LimitExceeded, RequestError
from ..limits import DEFAULT_LIMITS
from .deltas import CallArguments, CallEnd, CallStart, Content, Delta, ParseError, Reasoning

__all__ = ["Call", "Message", "MessageBuilder"]

_LONG = 4000  # digits; Python's own reader of integers refuses more than about this many


@dataclass(frozen=True, slots=True)
class Call:
    """One call. That of `Message.incomplete_calls` has a prefix of its arguments and no value."""

    index: int
    id: str
    name: str
    arguments: str
    complete: bool = True
    _value: list[dict[str, Any]] = field(default_factory=list, init=False, compare=False, repr=False)

    @property
    def value(self) -> dict[str, Any]:
        """The arguments as Python values."""
        if not self.complete:
            raise RequestError(
                f"call {self.index} ({self.name!r}) was cut or broke off, so its arguments have no value; "
                f"what came of them is in `arguments`"
            )
        if not self._value:
            self._value.append(_loads(self.arguments))
        return self._value[0]

    def to_openai(self) -> dict[str, Any]:
        function = {"name": self.name, "arguments": self.arguments}
        return {"id": self.id, "type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class Message:
    """One turn. `content` and `reasoning` are None when there was none."""

    content: str | None = None
    reasoning: str | None = None
    calls: tuple[Call, ...] = ()
    incomplete_calls: tuple[Call, ...] = ()
    errors: tuple[ParseError, ...] = ()

    @classmethod
    def from_deltas(cls, deltas: Iterable[Delta]) -> Message:
        builder = MessageBuilder()
        builder.extend(deltas)
        return builder.message

    def to_openai(self) -> dict[str, Any]:
        """A Chat Completions message. Text of errors becomes the content where there is no other answer."""
        content = self.content
        if content is None and not self.calls and self.errors:
            content = "".join(error.text for error in self.errors) or None
        message: dict[str, Any] = {"role": "assistant", "content": content}
        if self.reasoning is not None:
            message["reasoning_content"] = self.reasoning
        if self.calls:
            message["tool_calls"] = [call.to_openai() for call in self.calls]
        return message


class MessageBuilder:
    """Folds deltas one by one."""

    __slots__ = ("_content", "_done", "_errors", "_open", "_reasoning")

    def __init__(self) -> None:
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._open: dict[int, tuple[CallStart, list[str]]] = {}
        self._done: list[Call] = []
        self._errors: list[ParseError] = []

    def clone(self) -> MessageBuilder:
        """A copy that goes on by itself; the cost is that of the pieces so far."""
        copy = MessageBuilder()
        copy._content, copy._reasoning = self._content[:], self._reasoning[:]
        copy._open = {index: (start, pieces[:]) for index, (start, pieces) in self._open.items()}
        copy._done, copy._errors = self._done[:], self._errors[:]
        return copy

    def extend(self, deltas: Iterable[Delta]) -> None:
        for delta in deltas:
            self.add(delta)

    def add(self, delta: Delta) -> None:
        if isinstance(delta, Content):
            self._content.append(delta.text)
        elif isinstance(delta, CallArguments):
            self._open[delta.index][1].append(delta.json)
        elif isinstance(delta, Reasoning):
            self._reasoning.append(delta.text)
        elif isinstance(delta, CallStart):
            self._open[delta.index] = (delta, [])
        elif isinstance(delta, CallEnd):
            self._done.append(_call(*self._open.pop(delta.index), delta.complete))
        else:
            self._errors.append(delta)

    @property
    def message(self) -> Message:
        """The message so far; a call that is still open is among the incomplete ones."""
        still_open = [_call(start, pieces, False) for start, pieces in self._open.values()]
        return Message(
            "".join(self._content) or None,
            "".join(self._reasoning) or None,
            tuple(call for call in self._done if call.complete),
            tuple(call for call in self._done if not call.complete) + tuple(still_open),
            tuple(self._errors),
        )


def _call(start: CallStart, pieces: list[str], complete: bool) -> Call:
    return Call(start.index, start.id, start.name, "".join(pieces), complete)


def _loads(arguments: str) -> dict[str, Any]:
    try:
        value: dict[str, Any] = json.loads(arguments, parse_int=_integer)
    except RecursionError:
        limit = DEFAULT_LIMITS.depth
        raise LimitExceeded("depth", limit, "arguments nest too deep for Python's JSON reader") from None
    return value


def _integer(digits: str) -> int:
    return int(digits) if len(digits) < _LONG else int(Decimal(digits))
