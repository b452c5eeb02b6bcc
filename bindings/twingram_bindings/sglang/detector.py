"""Detectors of tool calls with SGLang's contract, and the structural tags that force calls in a format's own syntax.

In: decoded text with the special tokens kept, whole or in pieces, and SGLang's tools. Out: its results and tags.
Invariants: a stream is read by one Twingram parser, never twice; a tag holds the grammar text that SGLang's xgrammar
backend compiles, and in its first line the constraint that the backend in `grammar` compiles instead; a constraint that
cannot be had becomes a tag that no backend compiles, so that the request fails with the reason.
Cost: the parser's; for a forced choice that of compiling. Written against SGLang 0.5.23.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from sglang.srt.function_call.base_format_detector import BaseFormatDetector
from sglang.srt.function_call.core_types import StreamingParseResult, StructureInfo, ToolCallItem
from sglang.srt.function_call.function_call_parser import FunctionCallParser
from xgrammar import StructuralTag
from xgrammar.structural_tag import GrammarFormat

import twingram as tg

from .. import wire

__all__ = ["FAULT", "HEADER", "TwingramDetector", "register"]

HEADER = "# twingram "  # then the constraint as JSON
FAULT = "# twingram-fault "  # then what is wrong with it


class TwingramDetector(BaseFormatDetector):  # type: ignore[misc]
    """Reads turns of `format_name`. Made once a request."""

    format_name = ""

    def __init__(self, tokenizer: Any = None) -> None:
        super().__init__()
        self._tokenizer = tokenizer
        self._parser: tg.Parser | None = None

    # -- reading -------------------------------------------------------------------------------------------------------

    def has_tool_call(self, text: str) -> bool:
        message = tg.load_format(self.format_name).parse(text)
        return bool(message.calls or message.incomplete_calls)

    def detect_and_parse(self, text: str, tools: Sequence[Any]) -> StreamingParseResult:
        parser = self._new(tools)
        parser.feed(text)
        parser.finish()
        message = parser.message
        calls = [ToolCallItem(tool_index=c.index, name=c.name, parameters=c.arguments) for c in message.calls]
        parts = [message.reasoning, message.content]
        if not calls:
            parts += [error.text for error in message.errors]
        return StreamingParseResult(normal_text="".join(filter(None, parts)), calls=calls)

    def parse_streaming_increment(self, new_text: str, tools: Sequence[Any]) -> StreamingParseResult:
        if self._parser is None:
            self._parser = self._new(tools)
        return self._result(self._parser.feed(new_text))

    def finish(self, tools: Sequence[Any]) -> StreamingParseResult:
        return StreamingParseResult() if self._parser is None else self._result(self._parser.finish())

    def _new(self, tools: Sequence[Any]) -> tg.Parser:
        return tg.load_format(self.format_name).parser([_plain(tool) for tool in tools] or None)

    def _result(self, deltas: Iterable[tg.Delta]) -> StreamingParseResult:
        """Thoughts that reach a detector are text: no reasoning parser has claimed them."""
        texts: list[str] = []
        calls: list[Any] = []
        for delta in deltas:
            if isinstance(delta, (tg.Content, tg.Reasoning)):
                texts.append(delta.text)
            elif isinstance(delta, tg.CallStart):
                self.current_tool_id = delta.index
                self.prev_tool_call_arr.append({"name": delta.name, "arguments": {}})
                self.streamed_args_for_tool.append("")
                calls.append(ToolCallItem(tool_index=delta.index, name=delta.name, parameters=""))
            elif isinstance(delta, tg.CallArguments):
                self.streamed_args_for_tool[delta.index] += delta.json
                calls.append(ToolCallItem(tool_index=delta.index, parameters=delta.json))
            elif isinstance(delta, tg.CallEnd) and delta.complete:
                self.prev_tool_call_arr[delta.index]["arguments"] = json.loads(self.streamed_args_for_tool[delta.index])
        return StreamingParseResult(normal_text="".join(texts), calls=calls)

    # -- forcing -------------------------------------------------------------------------------------------------------

    def supports_structural_tag(self) -> bool:
        return True

    def parses_required_natively(self) -> bool:
        return True

    def structure_info(self) -> Callable[[str], StructureInfo]:
        raise NotImplementedError("calls are forced by get_structural_tag")

    def get_structural_tag(
        self,
        tools: Sequence[Any] | None = None,
        tool_choice: Any = "auto",
        thinking_mode: bool = False,
        parallel_tool_calls: bool = True,
    ) -> StructuralTag:
        values = {
            "format": self.format_name,
            "tools": [_plain(tool) for tool in tools or ()],
            "tool_choice": tool_choice if isinstance(tool_choice, str) else tool_choice.model_dump(),
            "parallel_tool_calls": parallel_tool_calls,
            "reasoning": "allow" if thinking_mode else "forbid",
        }
        return StructuralTag(format=GrammarFormat(grammar=self._grammar(values)))

    def _grammar(self, values: dict[str, Any]) -> str:
        header = HEADER + wire.packed(values)
        if self._tokenizer is None:
            return f"{header}\n"
        try:
            compiled = wire.constraint(values, _vocabulary_of(self._tokenizer), key_order="declared")
            return f"{header}\n{compiled.export('xgrammar')}"
        except tg.TwingramError as error:
            return FAULT + str(error).replace("\n", " ") + "\n"


def _plain(tool: Any) -> dict[str, Any]:
    plain: dict[str, Any] = tool if isinstance(tool, dict) else tool.model_dump(exclude_none=True)
    return plain


@lru_cache(maxsize=8)
def _vocabulary_of(tokenizer: Any) -> tg.Vocabulary:
    return tg.Vocabulary.from_transformers(tokenizer)


def register() -> None:
    """Make a detector known for each format."""
    for name in tg.list_formats():
        body = {"format_name": name, "__module__": __name__}
        FunctionCallParser.ToolCallParserEnum[f"twingram_{name}"] = type(
            f"{name.title()}Detector", (TwingramDetector,), body
        )
