"""Warming: what a format's first calls would have to make, made before the first request comes.

In: constraints of a tool that has a value of every kind. Out: turns that were written under them, for parsers to read.
What was met on the way is kept where it always is: rows of text at the vocabulary, states at the parsers' automata.
Invariant: nothing that is read or masked later is any different. A turn ends.
Cost: about 60 us a token, and the rows of the text that is met (3 to 8 ms each, from the disk cache 0.1).
"""

from __future__ import annotations

from typing import Any

from .constraint import Constraint

__all__ = ["TOOLS", "write"]

_FREE = 60  # tokens after which a turn makes straight for its end
_LONGEST = 1000

_PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "a": {"type": "string"},
        "b": {"type": "integer"},
        "c": {"type": "number"},
        "d": {"type": "boolean"},
        "e": {"type": "array", "items": {"type": "string"}},
        "f": {"type": "object", "properties": {"g": {"type": "string"}}},
    },
    "required": ["a", "b", "c", "d", "e", "f"],
}
TOOLS = [{"type": "function", "function": {"name": "a", "parameters": _PARAMETERS}}]


def write(constraint: Constraint, turn: int) -> list[int]:
    """The tokens of a turn, without its stop token: mostly the way to the end, with some tokens of other ways, which
    differ from turn to turn."""
    session, tokens = constraint.session(), list[int]()
    while len(tokens) < _LONGEST and not (session.is_accepting and len(tokens) > turn):
        free = len(tokens) < _FREE and (len(tokens) + turn) % 3 == 0
        allowed = session.allowed_tokens()
        if not free:
            nearer = session.min_tokens_to_end()  # one less than the distance, which counts the stop token
            ahead = constraint.masks.within(session.state, constraint.distances, nearer).allowed()
            allowed = ahead if len(ahead) else allowed
        token = int(allowed[len(allowed) * (turn + 1) // 8 % len(allowed)])
        if token in constraint.binding.stops or not session.accept_token(token):
            break
        session.take_deltas()
        tokens.append(token)
    return tokens
