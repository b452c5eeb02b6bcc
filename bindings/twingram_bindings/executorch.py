"""Tool-call detectors with the contract of ExecuTorch's LLM server.

    detector = AtemToolCallDetector()
    result = detector.detect_and_parse(text, {"add": {"type": "object", "properties": {"a": {"type": "integer"}}}})
    result.normal_text, [(call.tool_index, call.name, call.arguments) for call in result.calls]

In: the whole text of a turn and the tools, name -> parameters schema. Out: the calls, and the text that is not markup.
The contract beyond the parser's own reading: a call to a tool that was not given voids all of them, and the whole text
comes back; private text (reasoning) is part of `normal_text`; a detector keeps nothing from one text to the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import twingram as tg

__all__ = ["AtemToolCallDetector", "DetectedCall", "Detection", "GemmaToolCallDetector"]


@dataclass(frozen=True)
class DetectedCall:
    """One call; `arguments` is JSON text."""

    tool_index: int
    name: str
    arguments: str


@dataclass(frozen=True)
class Detection:
    """What was found in one text."""

    normal_text: str
    calls: list[DetectedCall] = field(default_factory=list)


class _Detector:
    """The detector of the format called `format_name`."""

    format_name = ""

    def __init__(self) -> None:
        self._format = tg.load_format(self.format_name)

    def detect_and_parse(self, text: str, tools: Mapping[str, Any]) -> Detection:
        """Read one turn. `tools`: name -> JSON Schema of its parameters."""
        message = self._format.parse(text, [{"name": name, "parameters": schema} for name, schema in tools.items()])
        called = [call.name for call in (*message.calls, *message.incomplete_calls)]
        if any(name not in tools for name in called):
            return Detection(text)
        calls = [DetectedCall(call.index, call.name, call.arguments) for call in message.calls]
        if not calls and not message.errors and not message.incomplete_calls and message.reasoning is None:
            return Detection(message.content or "")
        parts = [part.strip() for part in (message.reasoning, message.content) if part]
        return Detection("\n\n".join(part for part in parts if part), calls)


class AtemToolCallDetector(_Detector):
    """For models that write ATEM blocks in addressed messages."""

    format_name = "atem"


class GemmaToolCallDetector(_Detector):
    """For Gemma 4."""

    format_name = "gemma4"
