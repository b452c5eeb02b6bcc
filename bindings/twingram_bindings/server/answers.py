"""A generation as the JSON of an answer, whole or in chunks.

In: a running generation. Out: the object of a chat completion, or the bytes of its server-sent events.
Invariant: the chunks join to the message. Cost: linear in the answer.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from typing import Any

import twingram as tg

from .generation import Generation

__all__ = ["DONE", "completion", "event", "events"]

DONE = b"data: [DONE]\n\n"


def completion(generation: Generation, model: str) -> dict[str, Any]:
    """The whole answer."""
    message = tg.Message.from_deltas(generation.deltas()).to_openai()
    message.setdefault("refusal", None)
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": generation.finish_reason}
    return {
        "id": f"chatcmpl-{secrets.token_hex(12)}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [choice],
        "usage": generation.usage,
    }


def events(generation: Generation, model: str, include_usage: bool) -> Iterator[bytes]:
    """The answer as it is made, an event a chunk."""
    last: dict[str, Any] = {}
    for chunk in tg.openai_chunks(generation.deltas(), model=model):
        (choice,) = chunk["choices"]
        if choice["finish_reason"]:
            choice["finish_reason"] = generation.finish_reason
        if include_usage:
            chunk["usage"] = None
        last = chunk
        yield event(chunk)
    if include_usage:
        yield event({**last, "choices": [], "usage": generation.usage})


def event(data: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"
