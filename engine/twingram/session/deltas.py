"""Deltas: the pieces of parser output, in the order in which they were decided.

In: nothing, these are values. Out: six frozen classes, the union `Delta`, and `merge`, which joins neighbours of one
kind so that two streams of the same output compare equal however they were cut.
Invariant: a delta is never taken back; the `json` of a call's `CallArguments` joins to its argument object.
Cost: `merge` is linear in the text that it joins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

__all__ = [
    "CallArguments",
    "CallEnd",
    "CallStart",
    "Content",
    "Delta",
    "ParseError",
    "Reasoning",
    "merge",
]


@dataclass(frozen=True, slots=True, init=False)
class Content:
    """Text of the answer."""

    kind: ClassVar[str] = "content"
    text: str

    def __init__(self, text: str) -> None:
        _set_content(self, text)


@dataclass(frozen=True, slots=True, init=False)
class Reasoning:
    """Text of the thoughts before it."""

    kind: ClassVar[str] = "reasoning"
    text: str

    def __init__(self, text: str) -> None:
        _set_reasoning(self, text)


@dataclass(frozen=True, slots=True, init=False)
class CallStart:
    """A call is certain and its name is known. `index` counts the calls of the turn from 0."""

    kind: ClassVar[str] = "call_start"
    index: int
    id: str
    name: str

    def __init__(self, index: int, id: str, name: str) -> None:  # noqa: A002 - the field's name
        _set_start(self, index)
        _set_id(self, id)
        _set_name(self, name)


@dataclass(frozen=True, slots=True, init=False)
class CallArguments:
    """The next piece of a call's arguments, as JSON text."""

    kind: ClassVar[str] = "call_arguments"
    index: int
    json: str

    def __init__(self, index: int, json: str) -> None:
        _set_index(self, index)
        _set_json(self, json)


@dataclass(frozen=True, slots=True, init=False)
class CallEnd:
    """The call is over. With `complete` False it broke or was cut: it must not be run."""

    kind: ClassVar[str] = "call_end"
    index: int
    complete: bool

    def __init__(self, index: int, complete: bool) -> None:
        _set_end(self, index)
        _set_complete(self, complete)


@dataclass(frozen=True, slots=True)
class ParseError:
    """Text that looked like a call and could not be read as one, and why."""

    kind: ClassVar[str] = "parse_error"
    text: str
    reason: str


# All but errors are made the short way: what a frozen dataclass generates asks `object.__setattr__` for each field and
# takes 0.05 to 0.1 us a field more.
_set_content: Callable[[Content, str], None] = vars(Content)["text"].__set__
_set_reasoning: Callable[[Reasoning, str], None] = vars(Reasoning)["text"].__set__
_set_index: Callable[[CallArguments, int], None] = vars(CallArguments)["index"].__set__
_set_start: Callable[[CallStart, int], None] = vars(CallStart)["index"].__set__
_set_id: Callable[[CallStart, str], None] = vars(CallStart)["id"].__set__
_set_name: Callable[[CallStart, str], None] = vars(CallStart)["name"].__set__
_set_end: Callable[[CallEnd, int], None] = vars(CallEnd)["index"].__set__
_set_complete: Callable[[CallEnd, bool], None] = vars(CallEnd)["complete"].__set__
_set_json: Callable[[CallArguments, str], None] = vars(CallArguments)["json"].__set__

Delta = Content | Reasoning | CallStart | CallArguments | CallEnd | ParseError


def merge(deltas: Iterable[Delta]) -> list[Delta]:
    """Join neighbouring text of one kind, and neighbouring argument pieces of one call."""
    merged: list[Delta] = []
    pieces: list[str] = []
    last: Delta | None = None  # the first of a run of joinable neighbours
    for delta in deltas:
        if last is not None and _joins(last, delta):
            pieces.append(_text(delta))
            continue
        if last is not None:
            merged.append(_joined(last, pieces))
        last, pieces = delta, [_text(delta)]
    if last is not None:
        merged.append(_joined(last, pieces))
    return merged


def _joins(one: Delta, other: Delta) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, CallArguments):
        return isinstance(other, CallArguments) and one.index == other.index
    return isinstance(one, (Content, Reasoning))


def _text(delta: Delta) -> str:
    if isinstance(delta, (Content, Reasoning)):
        return delta.text
    return delta.json if isinstance(delta, CallArguments) else ""


def _joined(first: Delta, pieces: list[str]) -> Delta:
    if len(pieces) == 1:
        return first
    if isinstance(first, CallArguments):
        return CallArguments(first.index, "".join(pieces))
    return Content("".join(pieces)) if isinstance(first, Content) else Reasoning("".join(pieces))
