"""`twingram demo`: forced calls with no model, no network and no arguments.

In: a seed. Out: for each format a turn that was drawn from the masks, its deltas, its message and what it cost.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import twingram as tg
from twingram import sampling

from .inputs import spellings
from .outputs import decoded, delta_text, message_text

__all__ = ["demo"]

_TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The forecast of a place.",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "days": {"type": "integer", "minimum": 1, "maximum": 14},
                    "unit": {"enum": ["celsius", "fahrenheit"]},
                },
                "required": ["city", "days"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "send_message",
            "description": "Sends a text to people.",
            "parameters": {
                "type": "object",
                "properties": {
                    "to": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3},
                    "body": {"type": "string", "minLength": 1},
                    "urgent": {"type": "boolean"},
                },
                "required": ["to", "body"],
            },
        },
    },
]


def demo(arguments: argparse.Namespace) -> None:
    size = len(tg.Vocabulary.embedded())
    print(f"{len(_TOOLS)} tools, tool_choice=required, {size} tokens, chosen at random from the masks")
    for name in tg.list_formats():
        fmt = tg.load_format(name)
        vocabulary = tg.Vocabulary.embedded(fmt.grammar.markers)
        start = perf_counter()
        constraint = fmt.constraint(_TOOLS, tool_choice="required", vocabulary=vocabulary)
        session = constraint.session()
        session.mask()
        compiled = perf_counter() - start
        walk = sampling.Sampler(vocabulary, arguments.seed, spellings(name), soft_limit=40).walk(session)
        print(f"\n{name}\n  output   {decoded(vocabulary, walk.tokens)!r}\n  deltas")
        for delta in walk.deltas:
            print(f"    {delta_text(delta)}")
        step = _time_of_a_step(constraint, walk.tokens)
        print(f"  message  {message_text(walk.message)}")
        print(
            f"  time     {compiled * 1e3:.1f} ms to compile and make the first mask; "
            f"{step * 1e6:.1f} us a token (mask, advance, deltas) over {len(walk.tokens)} tokens, states known"
        )


def _time_of_a_step(constraint: tg.Constraint, tokens: Sequence[int]) -> float:
    """Seconds a token, the best of a few runs over the same turn."""
    best = float("inf")
    for _ in range(5):
        session = constraint.session()
        start = perf_counter()
        for token in tokens:
            session.mask()
            session.accept_token(token)
            session.take_deltas()
        best = min(best, (perf_counter() - start) / max(1, len(tokens)))
    return best
