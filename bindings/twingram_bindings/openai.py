"""Messages and deltas as objects of the official `openai` package, for Chat Completions and for Responses.

    chat_message(message)          a ChatCompletionMessage      chat_chunks(deltas)       its ChatCompletionChunks
    response(message)              a Response                   response_events(deltas)   its stream events

In: what the parser gives. Out: typed objects, checked by the package as they are made; `.model_dump_json()` is what
goes over the wire. Invariants: the chunks join to the message, and the events to the response (where text stands before
calls, as a message has it); a call that broke or was cut is an item with status `incomplete`, and so is the response.
Cost: constant a delta, and the text of an item once more when it is done.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from openai.types.chat import ChatCompletionChunk, ChatCompletionMessage
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseContentPartAddedEvent,
    ResponseContentPartDoneEvent,
    ResponseCreatedEvent,
    ResponseFunctionCallArgumentsDeltaEvent,
    ResponseFunctionCallArgumentsDoneEvent,
    ResponseFunctionToolCall,
    ResponseIncompleteEvent,
    ResponseInProgressEvent,
    ResponseOutputItemAddedEvent,
    ResponseOutputItemDoneEvent,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseReasoningItem,
    ResponseReasoningTextDeltaEvent,
    ResponseReasoningTextDoneEvent,
    ResponseStreamEvent,
    ResponseTextDeltaEvent,
    ResponseTextDoneEvent,
)
from openai.types.responses.response import IncompleteDetails
from openai.types.responses.response_reasoning_item import Content as ReasoningContent

import twingram as tg

__all__ = ["chat_chunks", "chat_message", "response", "response_events"]

_Item = ResponseReasoningItem | ResponseOutputMessage | ResponseFunctionToolCall
_Status = Literal["in_progress", "completed", "incomplete"]


def chat_message(message: tg.Message) -> ChatCompletionMessage:
    """`reasoning_content` is a field of it, as servers have it."""
    return ChatCompletionMessage.model_validate(message.to_openai())


def chat_chunks(deltas: Iterable[tg.Delta], **options: Any) -> Iterator[ChatCompletionChunk]:
    """Options as for `twingram.openai_chunks`."""
    return map(ChatCompletionChunk.model_validate, tg.openai_chunks(deltas, **options))


def response(message: tg.Message, *, model: str = "", id: str | None = None, **fields: Any) -> Response:  # noqa: A002
    """A whole response; `fields` are more of it, such as `tools`, `tool_choice` or `usage`."""
    items: list[_Item] = []
    if message.reasoning is not None:
        items.append(_reasoning(_id("rs"), message.reasoning, "completed"))
    if message.content is not None:
        items.append(_text(_id("msg"), message.content, "completed"))
    for call in sorted((*message.calls, *message.incomplete_calls), key=lambda call: call.index):
        status: _Status = "completed" if call.complete else "incomplete"
        items.append(_call(_id("fc"), call.id, call.name, call.arguments, status))
    raw = message.to_openai()["content"]
    if message.content is None and raw is not None:  # the text of what could not be read, where there is nothing else
        items.append(_text(_id("msg"), raw, "completed"))
    return _response(id or _id("resp"), model, items, fields, done=True)


def response_events(
    deltas: Iterable[tg.Delta],
    *,
    model: str = "",
    id: str | None = None,  # noqa: A002 - the name on the wire
    **fields: Any,
) -> Iterator[ResponseStreamEvent]:
    """The events of one response, from its creation to its completion."""
    return _Stream(id or _id("resp"), model, fields).events(deltas)


class _Stream:
    """One stream: the items that are done, and the one that is open."""

    def __init__(self, response_id: str, model: str, fields: dict[str, Any]) -> None:
        self._id, self._model, self._fields = response_id, model, fields
        self._done: list[_Item] = []
        self._number = -1
        self._open: tg.Delta | None = None  # the delta that began the open item
        self._item_id = ""
        self._pieces: list[str] = []

    def events(self, deltas: Iterable[tg.Delta]) -> Iterator[ResponseStreamEvent]:
        yield ResponseCreatedEvent(**self._whole("response.created"))
        yield ResponseInProgressEvent(**self._whole("response.in_progress"))
        errors: list[str] = []
        for delta in deltas:
            if isinstance(delta, tg.ParseError):
                errors.append(delta.text)
            else:
                yield from self._delta(delta)
        yield from self._close("incomplete" if isinstance(self._open, tg.CallStart) else "completed")
        answers = [item for item in self._done if not isinstance(item, ResponseReasoningItem)]
        if any(errors) and not any(item.status == "completed" for item in answers):
            yield from self._delta(tg.Content("".join(errors)))
            yield from self._close("completed")
        whole = self._response(done=True)
        if whole.status == "incomplete":
            yield ResponseIncompleteEvent(response=whole, sequence_number=self._next(), type="response.incomplete")
        else:
            yield ResponseCompletedEvent(response=whole, sequence_number=self._next(), type="response.completed")

    def _delta(self, delta: tg.Delta) -> Iterator[ResponseStreamEvent]:
        if isinstance(delta, tg.CallEnd):
            yield from self._close("completed" if delta.complete else "incomplete")
            return
        if isinstance(delta, tg.CallStart) or (not isinstance(delta, tg.CallArguments) and not self._continues(delta)):
            yield from self._close("completed")
            yield from self._begin(delta)
        if isinstance(delta, tg.CallArguments):
            self._pieces.append(delta.json)
            yield ResponseFunctionCallArgumentsDeltaEvent(
                delta=delta.json, type="response.function_call_arguments.delta", **self._place()
            )
        elif isinstance(delta, tg.Reasoning):
            self._pieces.append(delta.text)
            yield ResponseReasoningTextDeltaEvent(
                delta=delta.text, content_index=0, type="response.reasoning_text.delta", **self._place()
            )
        elif isinstance(delta, tg.Content):
            self._pieces.append(delta.text)
            yield ResponseTextDeltaEvent(
                delta=delta.text, content_index=0, logprobs=[], type="response.output_text.delta", **self._place()
            )

    def _continues(self, delta: tg.Delta) -> bool:
        return type(self._open) is type(delta)

    def _begin(self, delta: tg.Delta) -> Iterator[ResponseStreamEvent]:
        self._open, self._pieces = delta, []
        prefix = {tg.Content: "msg", tg.Reasoning: "rs"}.get(type(delta), "fc")
        self._item_id = _id(prefix)
        yield ResponseOutputItemAddedEvent(
            item=self._item("in_progress"), type="response.output_item.added", **self._at()
        )
        if isinstance(delta, tg.Content):
            yield ResponseContentPartAddedEvent(
                part=_part(""), content_index=0, type="response.content_part.added", **self._place()
            )

    def _close(self, status: _Status) -> Iterator[ResponseStreamEvent]:
        if self._open is None:
            return
        text = "".join(self._pieces)
        if isinstance(self._open, tg.CallStart):
            place = {**self._place(), "name": self._open.name}  # not in every release of the package
            yield ResponseFunctionCallArgumentsDoneEvent(
                arguments=text, type="response.function_call_arguments.done", **place
            )
        elif isinstance(self._open, tg.Reasoning):
            yield ResponseReasoningTextDoneEvent(
                text=text, content_index=0, type="response.reasoning_text.done", **self._place()
            )
        else:
            yield ResponseTextDoneEvent(
                text=text, content_index=0, logprobs=[], type="response.output_text.done", **self._place()
            )
            yield ResponseContentPartDoneEvent(
                part=_part(text), content_index=0, type="response.content_part.done", **self._place()
            )
        item = self._item(status)
        yield ResponseOutputItemDoneEvent(item=item, type="response.output_item.done", **self._at())
        self._done.append(item)
        self._open = None

    def _item(self, status: _Status) -> _Item:
        text = "".join(self._pieces)
        if isinstance(self._open, tg.CallStart):
            return _call(self._item_id, self._open.id, self._open.name, text, status)
        if isinstance(self._open, tg.Reasoning):
            return _reasoning(self._item_id, text, status)
        return _text(self._item_id, text, status)

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _at(self) -> dict[str, Any]:
        return {"output_index": len(self._done), "sequence_number": self._next()}

    def _place(self) -> dict[str, Any]:
        return {"item_id": self._item_id, **self._at()}

    def _whole(self, kind: str) -> dict[str, Any]:
        return {"response": self._response(done=False), "sequence_number": self._next(), "type": kind}

    def _response(self, *, done: bool) -> Response:
        return _response(self._id, self._model, self._done, self._fields, done=done)


def _id(prefix: str) -> str:
    return f"{prefix}_{secrets.token_hex(16)}"


def _response(response_id: str, model: str, items: list[_Item], fields: dict[str, Any], *, done: bool) -> Response:
    cut = any(isinstance(item, ResponseFunctionToolCall) and item.status == "incomplete" for item in items)
    status = "in_progress" if not done else "incomplete" if cut else "completed"
    given: dict[str, Any] = {
        "status": status, "created_at": time.time(), "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
        "incomplete_details": IncompleteDetails(reason="max_output_tokens") if done and cut else None, **fields,
    }  # fmt: skip
    return Response(id=response_id, model=model, object="response", output=list(items), **given)


def _part(text: str) -> ResponseOutputText:
    return ResponseOutputText(annotations=[], text=text, type="output_text")


def _text(item_id: str, text: str, status: _Status) -> ResponseOutputMessage:
    content = [_part(text)] if text else []
    return ResponseOutputMessage(id=item_id, content=[*content], role="assistant", status=status, type="message")


def _reasoning(item_id: str, text: str, status: _Status) -> ResponseReasoningItem:
    content = [ReasoningContent(text=text, type="reasoning_text")] if text else []
    return ResponseReasoningItem(id=item_id, summary=[], content=content, status=status, type="reasoning")


def _call(item_id: str, call_id: str, name: str, arguments: str, status: _Status) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(
        id=item_id, call_id=call_id, name=name, arguments=arguments, status=status, type="function_call"
    )
