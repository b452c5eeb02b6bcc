"""An independent oracle: a slow matcher of what a constrained turn may be, written from the formats' descriptions.

It shares no code with the engine. `initial(format, request)` gives the state before the first symbol; a symbol is a
byte or a marker. `viable` and `complete` answer for whole sequences.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from . import atem, gemma4, runes
from .matcher import OracleState, Symbol
from .request import Request, Tool, Unsupported, make_request, tool

__all__ = [
    "FORMATS", "OracleState", "Request", "Symbol", "Tool", "Unsupported", "complete", "initial", "make_request",
    "markers", "symbols", "tool", "viable",
]  # fmt: skip

FORMATS = {"gemma4": gemma4, "atem": atem, "runes": runes}


def markers(name: str) -> tuple[str, ...]:
    """The markers of a format, those that a completion never holds included."""
    found: tuple[str, ...] = FORMATS[name].MARKERS
    return found


def initial(name: str, request: Request) -> OracleState | None:
    """The state before the first symbol; None if nothing can be written (no tool is left, or none was chosen)."""
    return _initial(name, request, (str(request.response), *(str(t.schema) for t in request.tools)))


@lru_cache(maxsize=64)
def _initial(name: str, request: Request, _schemas: tuple[str, ...]) -> OracleState | None:
    state: OracleState | None = FORMATS[name].initial(request)
    return state


def symbols(text: str, whole: Iterable[str]) -> list[Symbol]:
    """Text as symbols: every marker in it is one, the rest are bytes."""
    found: list[Symbol] = []
    at, data = 0, text
    ordered = sorted(whole, key=len, reverse=True)
    while at < len(data):
        marker = next((m for m in ordered if data.startswith(m, at)), None)
        if marker is None:
            found += data[at].encode()
        else:
            found.append(marker)
        at += len(marker or " ")
    return found


def viable(name: str, request: Request, sequence: Iterable[Symbol]) -> bool:
    """Whether the sequence is a prefix of some complete canonical output."""
    state = initial(name, request)
    return state is not None and state.run(sequence) is not None


def complete(name: str, request: Request, sequence: Iterable[Symbol]) -> bool:
    """Whether the output may end after the sequence (stop tokens are not part of it)."""
    state = initial(name, request)
    last = state.run(sequence) if state is not None else None
    return last is not None and last.can_end
