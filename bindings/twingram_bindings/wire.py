"""Constraints as JSON text, for the way from the process that reads requests to the one that samples.

In: the JSON values of a request. Out: text, the values again, the constraint. Invariant: what arrives is checked as if
a client had written it, for a client may. Cost: compiling; equal texts share one constraint, the newest 64 are kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import twingram as tg

__all__ = ["constraint", "packed", "unpacked"]

_FIELDS = {"format", "tools", "tool_choice", "parallel_tool_calls", "prompt_tail", "reasoning"}


def packed(values: Mapping[str, Any]) -> str:
    """One line of JSON."""
    return json.dumps(values, separators=(",", ":"))


def unpacked(text: object) -> dict[str, Any]:
    """The values again; `ValueError` says what is wrong with them, in words for a client."""
    if not isinstance(text, str):
        raise ValueError(f"twingram: not JSON text but {type(text).__name__}")  # noqa: TRY004 - engines catch these
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"twingram: not JSON: {error}") from None
    if not isinstance(values, dict) or set(values) - _FIELDS or not isinstance(values.get("format"), str):
        raise ValueError(f"twingram: not an object with the fields {', '.join(sorted(_FIELDS))}")
    return values


def constraint(values: Mapping[str, Any], vocabulary: tg.Vocabulary, *, key_order: str = "any") -> tg.Constraint:
    """Compile the values; a `TwingramError` says what cannot be had."""
    return _constraint(packed(values), vocabulary, key_order)


@lru_cache(maxsize=64)
def _constraint(text: str, vocabulary: tg.Vocabulary, key_order: str) -> tg.Constraint:
    values = unpacked(text)
    fmt = tg.load_format(values.pop("format"))
    return fmt.constraint(vocabulary=vocabulary, key_order=key_order, **values)
