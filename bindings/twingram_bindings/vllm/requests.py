"""What a request to vLLM asks of a constraint.

In: a request of Chat Completions or Responses, as vLLM's own objects. Out: plain JSON values, which can also travel to
the process that samples, and from them the constraint.
Invariant: nothing of vLLM is imported, only its objects' fields are read. Cost: that of compiling, once a request.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import twingram as tg

__all__ = ["ARGUMENT", "TAIL", "constraint", "is_forced", "packed", "prompt_tail", "tools_of", "unpacked", "wanted"]

ARGUMENT = "twingram"  # in `extra_args` of the sampling parameters: the constraint of this request, as JSON text
TAIL = "twingram_prompt_tail"  # beside it: the end of the prompt, where it decides how the turn begins
_FIELDS = {"format", "tools", "tool_choice", "parallel_tool_calls", "prompt_tail", "reasoning"}


def tools_of(request: Any) -> list[dict[str, Any]]:
    """The functions among the tools of a request, as plain values."""
    plain = [tool if isinstance(tool, dict) else tool.model_dump(exclude_none=True) for tool in request.tools or ()]
    return [tool for tool in plain if tool.get("type") == "function"]


def is_forced(request: Any) -> bool:
    """Whether the request insists on a call."""
    choice = _choice(request)
    if isinstance(choice, dict):
        mode = choice.get("allowed_tools", choice).get("mode")
        return choice["type"] != "allowed_tools" or mode == "required"
    return choice == "required"


def _choice(request: Any) -> Any:
    choice = request.tool_choice
    return choice.model_dump() if hasattr(choice, "model_dump") else choice


def prompt_tail(request: Any) -> str:
    return str((getattr(request, "vllm_xargs", None) or {}).get(TAIL, ""))


def wanted(request: Any, format_name: str) -> dict[str, Any]:
    """The constraint that this request asks for, as JSON values."""
    parallel = getattr(request, "parallel_tool_calls", None)
    return {
        "format": format_name,
        "tools": tools_of(request),
        "tool_choice": _choice(request),
        "parallel_tool_calls": parallel is not False,
        "prompt_tail": prompt_tail(request),
        "reasoning": "allow",
    }


def packed(values: Mapping[str, Any]) -> str:
    return json.dumps(values, separators=(",", ":"))


def unpacked(text: object) -> dict[str, Any]:
    """The values again; `ValueError` says what is wrong with them, in words for a client."""
    if not isinstance(text, str):
        raise ValueError(f"{ARGUMENT} must be JSON text, not {type(text).__name__}")  # noqa: TRY004 - vLLM wants these
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{ARGUMENT} is not JSON: {error}") from None
    if not isinstance(values, dict) or set(values) - _FIELDS or not isinstance(values.get("format"), str):
        raise ValueError(f"{ARGUMENT} must be an object with the fields {', '.join(sorted(_FIELDS))}")
    return values


def constraint(values: Mapping[str, Any], vocabulary: tg.Vocabulary, *, key_order: str = "any") -> tg.Constraint:
    """Compile the values of `wanted`; equal requests share one constraint."""
    return _constraint(packed(values), vocabulary, key_order)


@lru_cache(maxsize=64)
def _constraint(text: str, vocabulary: tg.Vocabulary, key_order: str) -> tg.Constraint:
    values = unpacked(text)
    fmt = tg.load_format(values.pop("format"))
    return fmt.constraint(vocabulary=vocabulary, key_order=key_order, **values)
