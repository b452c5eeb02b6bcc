"""Objects of the official package: its own validation, its own accumulation of streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import twingram as tg
from twingram import CallArguments, CallEnd, CallStart, Content, ParseError, Reasoning

pytest.importorskip("openai", reason="the openai package is not installed")

from openai._types import omit
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from twingram_bindings.openai import chat_chunks, chat_message, response, response_events

CALLS = [
    CallStart(0, "call_1", "f"), CallArguments(0, '{"a": '), CallArguments(0, "1}"), CallEnd(0, True),
    CallStart(1, "call_2", "g"), CallArguments(1, "{}"), CallEnd(1, True),
]  # fmt: skip
TURNS: dict[str, Sequence[tg.Delta]] = {
    "nothing": [],
    "text": [Content("Hel"), Content("lo")],
    "thought and text": [Reasoning("h"), Reasoning("m"), Content("Hi")],
    "calls": CALLS,
    "all": [Reasoning("hm"), Content("Look: "), *CALLS],
    "cut": [Content("x"), *CALLS[:2]],
    "broken": [*CALLS[:2], CallEnd(0, False), ParseError("<raw>", "why")],
    "error alone": [ParseError("<raw>", "why")],
    "error and text": [Content("x"), ParseError("<raw>", "why")],
}
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
by_turn = pytest.mark.parametrize("deltas", list(TURNS.values()), ids=list(TURNS))


def without_ids(whole: Response) -> dict[str, Any]:
    data = whole.model_dump(exclude={"id", "created_at"})
    for item in data["output"]:
        item.pop("id")
    return data


@by_turn
def test_chunks_join_to_the_message(deltas: Sequence[tg.Delta]) -> None:
    message = chat_message(tg.Message.from_deltas(deltas))
    state = ChatCompletionStreamState()
    for chunk in chat_chunks(deltas, model="m"):
        type(chunk).model_validate(chunk.model_dump(), strict=True)
        state.handle_chunk(chunk)
    choice = state.current_completion_snapshot.choices[0]
    assert (choice.message.content or None) == message.content
    assert getattr(choice.message, "reasoning_content", None) == getattr(message, "reasoning_content", None)
    calls = {call.id: call.function for call in choice.message.tool_calls or ()}
    for call in message.tool_calls or ():
        assert (calls[call.id].name, calls[call.id].arguments) == (call.function.name, call.function.arguments)


@by_turn
def test_events_join_to_the_response(deltas: Sequence[tg.Delta]) -> None:
    whole = response(tg.Message.from_deltas(deltas), model="m")
    Response.model_validate(whole.model_dump(), strict=True)
    state: Any = ResponseStreamState(input_tools=[], text_format=omit)
    events = list(response_events(deltas, model="m"))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    for event in events:
        EVENT.validate_python(event.model_dump(), strict=True)
        state.handle_event(event)
    last = events[-1]
    assert last.type == f"response.{last.response.status}"
    assert without_ids(last.response) == without_ids(whole)
    assert whole.output_text == last.response.output_text


@by_turn
def test_items_keep_their_ids(deltas: Sequence[tg.Delta]) -> None:
    """Each item begins, gets its pieces and is done, one after the other."""
    open_item, done = None, []
    events = list(response_events(deltas))
    for event in events[2:-1]:
        if event.type == "response.output_item.added":
            assert open_item is None
            open_item = event.item
            assert (event.output_index, open_item.status) == (len(done), "in_progress")
        elif event.type == "response.output_item.done":
            assert (event.item.id, event.item.type) == (open_item.id, open_item.type)
            done.append(event.item)
            open_item = None
        else:
            assert (event.item_id, event.output_index) == (open_item.id, len(done))
    assert open_item is None
    assert events[-1].response.output == done


def test_fields_of_the_request_are_in_the_response() -> None:
    tools = [{"type": "function", "name": "f", "parameters": {}, "strict": False}]
    whole = response(tg.Message(content="x"), model="m", id="resp_1", tools=tools, tool_choice="required")
    assert (whole.id, whole.tools[0].name, whole.tool_choice) == ("resp_1", "f", "required")


def test_a_call_that_was_cut_is_marked() -> None:
    whole = response(tg.Message.from_deltas(TURNS["cut"]))
    assert (whole.status, whole.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert [item.status for item in whole.output] == ["completed", "incomplete"]
