"""Deltas as Chat Completions stream chunks.

In: deltas in order, and what the server knows of the answer. Out: chunk objects, ready for `json.dumps`: the role
first, then content, `reasoning_content` and tool call pieces as they come, at last the finish reason.
Invariants: what the chunks of a stream join to is `Message.to_openai()` of the same deltas, with one difference that
streaming cannot avoid: a call that broke after it had started has been seen. The finish reason is then `length`, so
that a client does not run it.
Cost: constant a delta.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator
from typing import Any

from .deltas import CallArguments, CallEnd, CallStart, Content, Delta, Reasoning

__all__ = ["openai_chunks"]


def openai_chunks(
    deltas: Iterable[Delta],
    *,
    id: str | None = None,  # noqa: A002 - the name on the wire
    model: str = "",
    created: int | None = None,
    choice: int = 0,
    finish_reason: str | None = None,
    usage: dict[str, Any] | None = None,
) -> Iterator[dict[str, Any]]:
    """Chunks of one choice. `finish_reason` is the server's; by default it follows from the deltas."""
    head = {
        "id": id or f"chatcmpl-{secrets.token_hex(12)}",
        "object": "chat.completion.chunk",
        "created": int(time.time()) if created is None else created,
        "model": model,
    }

    def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        return {**head, "choices": [{"index": choice, "delta": delta, "finish_reason": reason}]}

    yield chunk({"role": "assistant"})
    errors: list[str] = []
    answered = called = broken = False
    for delta in deltas:
        if isinstance(delta, Content):
            answered = True
            yield chunk({"content": delta.text})
        elif isinstance(delta, Reasoning):
            yield chunk({"reasoning_content": delta.text})
        elif isinstance(delta, (CallStart, CallArguments)):
            yield chunk({"tool_calls": [_piece(delta)]})
        elif isinstance(delta, CallEnd):
            called, broken = called or delta.complete, broken or not delta.complete
        else:
            errors.append(delta.text)
    if any(errors) and not (answered or called):
        yield chunk({"content": "".join(errors)})
    last = chunk({}, finish_reason or ("length" if broken else "tool_calls" if called else "stop"))
    yield last if usage is None else {**last, "usage": usage}


def _piece(delta: CallStart | CallArguments) -> dict[str, Any]:
    if isinstance(delta, CallArguments):
        return {"index": delta.index, "function": {"arguments": delta.json}}
    function = {"name": delta.name, "arguments": ""}
    return {"index": delta.index, "id": delta.id, "type": "function", "function": function}
