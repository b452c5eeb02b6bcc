"""The plugin: a tool parser and a reasoning parser for each format, registered with vLLM under `twingram_FORMAT`.

In: vLLM's requests and the text it decodes, special tokens kept. Out: its delta messages and tool calls.
Invariants: one Twingram parser a stream reads the whole turn, thoughts included; the reasoning parser only tells the
engine that a grammar applies from the first token on (the grammar itself allows the thought), so the two are to be used
together. A forced choice becomes grammar text or an argument for the masks, never the generic JSON list.
Cost: the parser's. Written against vLLM 0.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from vllm.entrypoints.generate.base.protocol import (
    DeltaFunctionCall,
    DeltaMessage,
    DeltaToolCall,
    ExtractedToolCallInformation,
    FunctionCall,
    ToolCall,
)
from vllm.exceptions import VLLMValidationError
from vllm.reasoning.abs_reasoning_parsers import ReasoningParser, ReasoningParserManager
from vllm.renderers.chat_utils import make_tool_call_id
from vllm.sampling_params import StructuredOutputsParams
from vllm.tool_parsers.abstract_tool_parser import ToolParser, ToolParserManager

import twingram as tg

from .. import wire
from . import requests

__all__ = ["TwingramReasoningParser", "TwingramToolParser", "register"]

_TAIL_TOKENS = 32


class TwingramToolParser(ToolParser):  # type: ignore[misc]
    """Reads turns of `format_name`. Made once a request."""

    format_name = ""
    supports_required_and_named = False
    engine_based_streaming = True
    masks = False

    def __init__(self, tokenizer: Any, tools: list[Any] | None = None) -> None:
        super().__init__(tokenizer, tools)
        self.skip_reasoning_parsing = False  # set by vLLM where no reasoning parser is in use
        self._parser: tg.Parser | None = None

    def adjust_request(self, request: Any) -> Any:
        """Markers stay in the text; a forced choice is turned into what forces it."""
        _keep_markers(request)
        if not request.tools or request.tool_choice == "none":
            return request
        values = requests.wanted(request, self.format_name)
        try:
            if self.masks:
                wire.constraint(values, vocabulary_of(self.model_tokenizer))  # an error is the client's, and now
                _pass_on(request, requests.ARGUMENT, wire.packed(values))
            elif requests.is_forced(request):
                compiled = wire.constraint(values, vocabulary_of(self.model_tokenizer), key_order="declared")
                request.structured_outputs = StructuredOutputsParams(grammar=compiled.export("xgrammar"))
            else:
                return request
        except tg.TwingramError as error:
            raise VLLMValidationError(str(error), parameter="tools") from error
        if hasattr(request, "response_format"):
            request.response_format = None
        return request

    def extract_tool_calls(self, model_output: str, request: Any) -> ExtractedToolCallInformation:
        message = self._new(request).parse(model_output)
        calls = [
            ToolCall(id=call.id, function=FunctionCall(id=call.id, name=call.name, arguments=call.arguments))
            for call in message.calls
        ]
        content = message.content
        if content is None and not calls and message.errors:
            content = "".join(error.text for error in message.errors) or None
        if self.skip_reasoning_parsing and message.reasoning:
            content = message.reasoning + (content or "")
        return ExtractedToolCallInformation(tools_called=bool(calls), tool_calls=calls, content=content)

    def extract_tool_calls_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
        request: Any,
    ) -> DeltaMessage | None:
        if self._parser is None:
            self._parser = self._new(request).parser
        return self._message(self._parser.feed(delta_text))

    def finish_streaming(self) -> DeltaMessage | None:
        """What was held back, at the end of the stream."""
        return None if self._parser is None else self._message(self._parser.finish())

    def _new(self, request: Any) -> _Reading:
        return _Reading(self.format_name, requests.tools_of(request), requests.prompt_tail(request))

    def _message(self, deltas: Iterable[tg.Delta]) -> DeltaMessage | None:
        out = DeltaMessage()
        for delta in deltas:
            if isinstance(delta, tg.Reasoning) and not self.skip_reasoning_parsing:
                out.reasoning = (out.reasoning or "") + delta.text
            elif isinstance(delta, (tg.Content, tg.Reasoning)):
                out.content = (out.content or "") + delta.text
            elif isinstance(delta, tg.CallStart):
                out.tool_calls.append(self._begun(delta))
            elif isinstance(delta, tg.CallArguments):
                self._go_on(out.tool_calls, delta)
        return out if out.content or out.reasoning or out.tool_calls else None

    def _begun(self, delta: tg.CallStart) -> DeltaToolCall:
        self.current_tool_id = delta.index
        self.prev_tool_call_arr.append({"name": delta.name, "arguments": ""})
        self.streamed_args_for_tool.append("")
        function = DeltaFunctionCall(name=delta.name, arguments="")
        return DeltaToolCall(id=delta.id, type="function", index=delta.index, function=function)

    def _go_on(self, calls: list[Any], delta: tg.CallArguments) -> None:
        self.streamed_args_for_tool[delta.index] += delta.json
        self.prev_tool_call_arr[delta.index]["arguments"] += delta.json
        if not calls or calls[-1].index != delta.index:
            calls.append(DeltaToolCall(index=delta.index, function=DeltaFunctionCall(arguments="")))
        calls[-1].function.arguments += delta.json


class _Reading:
    """A parser for one turn."""

    def __init__(self, format_name: str, tools: list[dict[str, Any]], tail: str) -> None:
        fmt = tg.load_format(format_name)
        self.parser = fmt.parser(tools or None, prompt_tail=tail, call_id=make_tool_call_id)

    def parse(self, text: str) -> tg.Message:
        self.parser.feed(text)
        self.parser.finish()
        return self.parser.message


class TwingramReasoningParser(ReasoningParser):  # type: ignore[misc]
    """The reasoning of a whole turn; while it streams, the tool parser has it all."""

    format_name = ""
    engine_based_streaming = True

    def __init__(self, tokenizer: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(tokenizer, *args, **kwargs)
        self._tail = ""

    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool:
        """A grammar of ours holds from the first token on, and the tool parser reads thoughts as well."""
        return True

    def extract_content_ids(self, input_ids: list[int]) -> list[int]:
        return input_ids

    def set_prompt_token_ids(self, prompt_token_ids: Sequence[int]) -> None:
        self._tail = self.model_tokenizer.decode(list(prompt_token_ids[-_TAIL_TOKENS:]), skip_special_tokens=False)

    def adjust_request(self, request: Any) -> Any:
        _keep_markers(request)
        starts = tg.load_format(self.format_name).grammar.starts
        if any(start.after and self._tail.endswith(start.after) for start in starts):
            _pass_on(request, requests.TAIL, self._tail)
        return request

    def extract_reasoning(self, model_output: str, request: Any) -> tuple[str | None, str | None]:
        """The reasoning, and the whole output, from which the tool parser takes the rest."""
        reading = _Reading(self.format_name, requests.tools_of(request), requests.prompt_tail(request))
        return reading.parse(model_output).reasoning, model_output

    def extract_reasoning_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
    ) -> DeltaMessage | None:
        return None

    def has_engine_confirmed_reasoning_end(self) -> bool:
        return True

    def finish_streaming(self) -> DeltaMessage | None:
        return None


def _keep_markers(request: Any) -> None:
    """Special tokens are the markers of a format: they must be in the text, with nothing between them."""
    request.skip_special_tokens = False
    if hasattr(request, "spaces_between_special_tokens"):
        request.spaces_between_special_tokens = False


def _pass_on(request: Any, name: str, value: str) -> None:
    request.vllm_xargs = {**(request.vllm_xargs or {}), name: value}


@lru_cache(maxsize=8)
def vocabulary_of(tokenizer: Any) -> tg.Vocabulary:
    return tg.Vocabulary.from_transformers(tokenizer)


def register() -> None:
    """Make the parsers of every format known to vLLM."""
    for name in tg.list_formats():
        for suffix, masks in (("", False), ("_masks", True)):
            body = {"format_name": name, "masks": masks, "__module__": __name__}
            tool_parser = type(f"{name.title()}{suffix.title()}ToolParser", (TwingramToolParser,), body)
            ToolParserManager.register_module(f"twingram_{name}{suffix}", module=tool_parser)
        body = {"format_name": name, "__module__": __name__}
        reasoning_parser = type(f"{name.title()}ReasoningParser", (TwingramReasoningParser,), body)
        ReasoningParserManager.register_module(f"twingram_{name}", module=reasoning_parser)


register()
