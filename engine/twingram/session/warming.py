"""Warming: the states of a format that no request changes, met before the first request comes.

In: an automaton; how masks are made, where there are masks. Out: nothing; what was met is kept where it always is: rows
of text at the vocabulary, states and transitions at the automaton.
States are followed breadth first, a symbol at a time. Where text may stand, a few characters stand for all.
Invariant: nothing that is read or masked later is any different.
Cost: `most` states, 20 to 100 us each, and the rows of the text that is met (3 to 8 ms each, from the disk cache 0.1).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from ..automaton.machine import Machine, State

__all__ = ["TOOLS", "explore"]

_SOME = b'a0 \n"{}[]<>(),:=-|'
_FEW = 16
_BYTES = (1 << 256) - 1

# A tool with a value of every kind: what its states need of text is what most tools need.
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "a",
            "parameters": {
                "type": "object",
                "properties": {
                    "a": {"type": "string"},
                    "b": {"type": "integer"},
                    "c": {"type": "number"},
                    "d": {"type": "boolean"},
                    "e": {"type": "array", "items": {"type": "string"}},
                    "f": {"type": "object"},
                },
                "required": ["a"],
            },
        },
    }
]


def explore(machine: Machine, most: int, meet: Callable[[State], object] | None = None) -> int:
    """Follow the automaton from its start; `meet` is called with each state. How many were met."""
    met = {machine.start}
    waiting = deque(met)
    while waiting:
        state = waiting.popleft()
        if meet is not None:
            meet(state)
        for symbol in _symbols(state.first):
            step = state.step(symbol)
            if step is not None and step.state not in met and len(met) < most:
                met.add(step.state)
                waiting.append(step.state)
    return len(met)


def _symbols(first: int) -> Iterator[int]:
    """All markers, and all bytes where they are few, else some."""
    markers, letters = first >> 256, first & _BYTES
    while markers:
        lowest = markers & -markers
        yield 255 + lowest.bit_length()
        markers ^= lowest
    if letters.bit_count() > _FEW:
        yield from (byte for byte in _SOME if letters >> byte & 1)
        return
    while letters:
        lowest = letters & -letters
        yield lowest.bit_length() - 1
        letters ^= lowest
