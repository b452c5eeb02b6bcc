"""What a request to vLLM asks of a constraint.

In: a request of Chat Completions or Responses, as vLLM's own objects. Out: plain JSON values (see `wire`).
Invariant: nothing of vLLM is imported, only its objects' fields are read. Cost: a copy of the tools.
"""

from __future__ import annotations

from typing import Any

__all__ = ["ARGUMENT", "TAIL", "is_forced", "prompt_tail", "tools_of", "wanted"]

ARGUMENT = "twingram"  # in `extra_args` of the sampling parameters: the constraint of this request, as JSON text
TAIL = "twingram_prompt_tail"  # beside it: the end of the prompt, where it decides how the turn begins


def tools_of(request: Any) -> list[dict[str, Any]]:
    """The functions among the tools of a request, as plain values."""
    plain = [tool if isinstance(tool, dict) else tool.model_dump(exclude_none=True) for tool in request.tools or ()]
    return [tool for tool in plain if tool.get("type") == "function"]


def is_forced(request: Any) -> bool:
    """Whether the request insists on a call."""
    choice = _choice(request)
    if isinstance(choice, dict):
        mode = choice.get("allowed_tools", choice).get("mode")
        return bool(choice["type"] != "allowed_tools" or mode == "required")
    return bool(choice == "required")


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
