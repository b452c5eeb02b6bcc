"""The vLLM plugin against the classes of vLLM's own package, on the CPU: managers, requests, the parser that its server
composes, its structured-output check, and both interfaces for logits processors. Its engine, which needs a GPU, is not
run here."""

from __future__ import annotations

import importlib.metadata
import inspect
import json
import random
import types
from typing import Any

import jsonschema
import numpy as np
import pytest

import twingram as tg

from . import engine_sources
from .engine_sources import or_skip, quietly
from .interfaces import interface_faults, signature_faults
from .plugins import ARGUMENTS, CALL, WEATHER, byte_tokenizer

or_skip("vllm")
torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

pytestmark = pytest.mark.filterwarnings("default")

parsers = quietly("twingram_bindings.vllm.parsers")
masks = quietly("twingram_bindings.vllm.masks")
requests = quietly("twingram_bindings.vllm.requests")
protocol = quietly("vllm.entrypoints.openai.chat_completion.protocol")
responses = quietly("vllm.entrypoints.openai.responses.protocol")
SamplingParams = quietly("vllm.sampling_params").SamplingParams
ParserManager = quietly("vllm.parser.parser_manager").ParserManager
VLLMValidationError = quietly("vllm.exceptions").VLLMValidationError
interface = quietly("vllm.v1.sample.logits_processor.interface")
slots = quietly("vllm.v1.worker.gpu.sample.logits_processor")

TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}}]
NAMED = {"type": "function", "function": {"name": "get_weather"}}
TURN = f"<|channel>thought\nhm\n<channel|>Let me look.{CALL}"


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return byte_tokenizer("gemma4")


def request_of(**fields: Any) -> Any:
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": TOOLS, **fields}
    return protocol.ChatCompletionRequest.model_validate(body)


def parser_of(tokenizer: Any, reasoning: str | None = "twingram_gemma4", tool: str = "twingram_gemma4") -> Any:
    """What vLLM's server makes of the command line, for one request."""
    made = ParserManager.get_parser(
        tool_parser_name=tool, reasoning_parser_name=reasoning, enable_auto_tools=True, tokenizer=tokenizer
    )
    return made(tokenizer, TOOLS and [protocol.ChatCompletionToolsParam.model_validate(tool) for tool in TOOLS])


def test_written_against_this_release() -> None:
    assert importlib.metadata.version("vllm") == engine_sources.VLLM


def test_the_interfaces_are_whole() -> None:
    """Both sides: what vLLM's bases ask for is here, with the arguments that they have, and nothing here is unknown to
    them, but for a hook that its parser looks up by name."""
    abstract = quietly("vllm.tool_parsers.abstract_tool_parser").ToolParser
    thinking = quietly("vllm.reasoning.abs_reasoning_parsers").ReasoningParser
    more = ("finish_streaming", "format_name")
    assert interface_faults(parsers.TwingramToolParser, abstract, more=("masks", *more)) == []
    assert interface_faults(parsers.TwingramReasoningParser, thinking, more=more) == []
    both = (interface.LogitsProcessor, slots.LogitsProcessor)
    assert interface_faults(masks.TwingramLogitsProcessor, *both) == []
    assert all(issubclass(masks.TwingramLogitsProcessor, one) for one in both)
    source = inspect.getsource(quietly("vllm.parser.abstract_parser"))
    assert ".finish_streaming()" in source
    assert '"finish_streaming"' in source


def test_the_flags_are_those_that_vllm_reads() -> None:
    abstract = quietly("vllm.tool_parsers.abstract_tool_parser").ToolParser
    thinking = quietly("vllm.reasoning.abs_reasoning_parsers").ReasoningParser
    assert abstract.supports_required_and_named is True
    assert (abstract.engine_based_streaming, thinking.engine_based_streaming) == (False, False)
    assert "skip_reasoning_parsing" in inspect.getsource(quietly("vllm.parser.abstract_parser"))


def test_a_field_of_its_parameters_carries_the_argument(tokenizer: Any) -> None:
    """What a client sends as `vllm_xargs`, and what the tool parser adds to it, are `extra_args` for the masks."""
    request = request_of(tool_choice="required", vllm_xargs={"other": 1})
    params = parser_of(tokenizer, tool="twingram_gemma4_masks").adjust_request(request).to_sampling_params(100, {})
    assert params.extra_args["other"] == 1
    assert json.loads(params.extra_args[requests.ARGUMENT])["tool_choice"] == "required"
    masks.TwingramLogitsProcessor.validate_params(params)


@pytest.mark.parametrize("strict", [False, True])
def test_offline_helpers_give_the_same(strict: bool) -> None:
    """Beside vLLM's module of the same name; its values are strings."""
    own, other = (quietly(f"{package}.gemma4_utils") for package in ("twingram_bindings", "vllm.tool_parsers"))
    for name in own.__all__:
        assert not [*signature_faults(getattr(own, name), getattr(other, name))]
    for text in ("", "no call", CALL, f"{CALL} {CALL}", "call:f{n:1}", "<call>f{n:1}", "recall:f{n:1}", f"x{CALL}y"):
        found = own.parse_tool_calls(text, strict=strict, stringify=True)
        assert found == other.parse_tool_calls(text, strict=strict)
    for text in ("x<|tool_response>", "x<|tool_response> \n", "<|tool_response>x"):
        assert own.has_tool_response_tag(text) == other.has_tool_response_tag(text)


def test_every_format_is_registered() -> None:
    for name in tg.list_formats():
        assert ParserManager.get_reasoning_parser(f"twingram_{name}").format_name == name
        for suffix in ("", "_masks"):
            made = ParserManager.get_tool_parser(f"twingram_{name}{suffix}", enable_auto_tools=True)
            assert (made.format_name, made.supports_required_and_named) == (name, False)


def test_the_plugin_option_imports_the_module() -> None:
    manager = quietly("vllm.tool_parsers.abstract_tool_parser").ToolParserManager
    manager.tool_parsers.pop("twingram_gemma4")
    import sys

    sys.modules.pop("twingram_bindings.vllm.parsers")
    manager.import_tool_parser("twingram_bindings.vllm.parsers")
    assert "twingram_gemma4" in manager.list_registered()


# -- reading -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", ["auto", "required", NAMED], ids=str)
def test_a_whole_turn(tokenizer: Any, choice: Any) -> None:
    reasoning, content, calls = parser_of(tokenizer).parse(TURN, request_of(tool_choice=choice), enable_auto_tools=True)
    assert (reasoning, content) == ("hm", "Let me look.")
    assert [(call.name, json.loads(call.arguments)) for call in calls] == [("get_weather", ARGUMENTS)]


@pytest.mark.parametrize("choice", ["auto", "required", NAMED], ids=str)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_stream_in_pieces(tokenizer: Any, choice: Any, size: int) -> None:
    parser, request = parser_of(tokenizer), request_of(tool_choice=choice, stream=True)
    pieces = [TURN[at : at + size] for at in range(0, len(TURN), size)]
    out = {"reasoning": "", "content": "", "arguments": ""}
    names, ids = [], []
    for n, piece in enumerate(pieces):
        delta = parser.parse_delta(
            piece, tokenizer.encode(piece), request, prompt_token_ids=[1, 2], finished=n == len(pieces) - 1
        )
        if delta is None:
            continue
        out["reasoning"] += delta.reasoning or ""
        out["content"] += delta.content or ""
        for call in delta.tool_calls:
            assert call.index == 0
            names += [call.function.name] if call.function.name else []
            ids += [call.id] if call.id else []
            out["arguments"] += call.function.arguments or ""
    assert (out["reasoning"], out["content"], names) == ("hm", "Let me look.", ["get_weather"])
    assert json.loads(out["arguments"]) == ARGUMENTS
    assert len(ids) == 1


def test_text_that_waited_comes_at_the_end(tokenizer: Any) -> None:
    parser, request = parser_of(tokenizer), request_of(tool_choice="auto", stream=True)
    deltas = [
        parser.parse_delta(piece, [], request, prompt_token_ids=[1], finished=last)
        for piece, last in (("a <|tool", False), ("_cal", True))
    ]
    assert "".join(delta.content or "" for delta in deltas if delta) == "a <|tool_cal"


@pytest.mark.parametrize("stream", [True, False])
def test_no_calls_where_none_are_wanted(tokenizer: Any, stream: bool) -> None:
    parser, request = parser_of(tokenizer), request_of(tool_choice="none", stream=stream)
    if stream:
        delta = parser.parse_delta(TURN, [], request, prompt_token_ids=[1], finished=True)
        assert (delta.reasoning, delta.content, delta.tool_calls) == ("hm", "Let me look.", [])
    else:
        assert parser.parse(TURN, request, enable_auto_tools=True) == ("hm", "Let me look.", [])


def test_thoughts_are_text_without_a_reasoning_parser(tokenizer: Any) -> None:
    _, content, calls = parser_of(tokenizer, None).parse(TURN, request_of(tool_choice="auto"), enable_auto_tools=True)
    assert (content, len(calls)) == ("hmLet me look.", 1)


def test_a_prompt_inside_an_open_thought(tokenizer: Any) -> None:
    prompt = tokenizer.encode("x<|channel>thought\n", add_special_tokens=False)
    parser, request = parser_of(tokenizer), request_of(tool_choice="auto")
    parser.set_prompt_token_ids(prompt)
    request = parser.adjust_request(request)
    reasoning, content, calls = parser.parse("so\n<channel|>Hi", request, enable_auto_tools=True)
    assert (reasoning, content, calls) == ("so", "Hi", None)
    streamed = parser_of(tokenizer).parse_delta("so\n<channel|>Hi", [], request, prompt_token_ids=prompt, finished=True)
    assert (streamed.reasoning, streamed.content) == ("so", "Hi")


# -- forcing -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", ["auto", "none", "required", NAMED], ids=str)
@pytest.mark.parametrize("tool", ["twingram_gemma4", "twingram_gemma4_masks"])
def test_markers_stay_in_the_text(tokenizer: Any, choice: Any, tool: str) -> None:
    if choice in ("required", NAMED) and not hasattr(tg.Constraint, "export") and tool == "twingram_gemma4":
        pytest.skip("Constraint.export is not in this version")
    request = parser_of(tokenizer, tool=tool).adjust_request(request_of(tool_choice=choice))
    params = request.to_sampling_params(100, {})
    assert (params.skip_special_tokens, params.spaces_between_special_tokens) == (False, False)


@pytest.mark.skipif(not hasattr(tg.Constraint, "export"), reason="Constraint.export is not in this version")
@pytest.mark.parametrize("choice", ["required", NAMED], ids=str)
@pytest.mark.parametrize("kind", ["chat", "responses"])
def test_a_forced_choice_becomes_a_grammar(tokenizer: Any, choice: Any, kind: str) -> None:
    """vLLM's own check takes it, and its matcher takes a turn of the format and nothing else."""
    xgrammar = pytest.importorskip("xgrammar")
    if kind == "chat":
        request = request_of(tool_choice=choice, response_format={"type": "json_object"})
    else:
        tools = [{"type": "function", "name": "get_weather", "parameters": WEATHER}]
        named = {"type": "function", "name": "get_weather"}
        body = {"input": "x", "tools": tools, "tool_choice": choice if choice == "required" else named}
        request = responses.ResponsesRequest.model_validate(body)
    request = parser_of(tokenizer).adjust_request(request)
    params = request.to_sampling_params(100, {})
    quietly("vllm.v1.structured_output.backend_xgrammar").validate_xgrammar_grammar(params)
    grammar = params.structured_outputs.grammar
    stops = tokenizer.convert_tokens_to_ids(["<turn|>"])
    info = xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=len(tokenizer), stop_token_ids=stops)
    matcher = xgrammar.GrammarMatcher(xgrammar.GrammarCompiler(info).compile_grammar(grammar))
    for token in tokenizer.encode(CALL, add_special_tokens=False):
        assert matcher.accept_token(token)
    assert matcher.accept_token(stops[0])
    matcher.reset()
    assert not matcher.accept_token(tokenizer.encode("H", add_special_tokens=False)[0])


@pytest.mark.parametrize("tool", ["twingram_gemma4_masks"])
def test_what_cannot_be_had_is_the_client_s_error(tokenizer: Any, tool: str) -> None:
    never = {"type": "object", "properties": {"a": {"enum": []}}, "required": ["a"]}
    tools = [{"type": "function", "function": {"name": "f", "parameters": never}}]
    with pytest.raises(VLLMValidationError, match="'f'"):
        parser_of(tokenizer, tool=tool).adjust_request(request_of(tools=tools, tool_choice="required"))


def test_the_argument_is_checked_at_admission() -> None:
    for argument in (5, "{", "[]", '{"format": "gemma4", "more": 1}'):
        with pytest.raises(ValueError, match="twingram"):
            masks.TwingramLogitsProcessor.validate_params(SamplingParams(extra_args={"twingram": argument}))
    masks.TwingramLogitsProcessor.validate_params(SamplingParams(extra_args={"twingram": '{"format": "gemma4"}'}))
    masks.TwingramLogitsProcessor.validate_params(SamplingParams())


@pytest.fixture
def config(tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """As much of a configuration as the processor reads; the width of the logits is padded."""
    monkeypatch.setattr("vllm.tokenizers.cached_tokenizer_from_config", lambda model: tokenizer)
    return types.SimpleNamespace(model_config=types.SimpleNamespace(get_vocab_size=lambda: len(tokenizer) + 3))


def params_of(tokenizer: Any, choice: Any = "required") -> Any:
    parser = parser_of(tokenizer, tool="twingram_gemma4_masks")
    return parser.adjust_request(request_of(tool_choice=choice)).to_sampling_params(100, {})


def draw(rows: Any, chance: random.Random) -> list[int]:
    """A token for each row, among those that are left; towards the end where there are many."""
    out = []
    for row in rows:
        left = torch.nonzero(row > -np.inf).flatten().tolist()
        out.append(left[-1] if chance.random() < 0.5 else chance.choice(left))
    return out


def check(tokenizer: Any, tokens: list[int]) -> None:
    message = tg.load_format("gemma4").parse(tokenizer.decode(tokens), tools=TOOLS)
    assert not message.errors
    for call in message.calls:
        jsonschema.validate(call.value, WEATHER)


def test_masks_row_by_row(tokenizer: Any, config: Any) -> None:
    """Constrained requests and others in one batch, which come, move, swap and go."""
    processor, chance = masks.TwingramLogitsProcessor(config, torch.device("cpu"), False), random.Random(1)
    assert not processor.is_argmax_invariant()
    plain, forced = SamplingParams(), params_of(tokenizer)
    outputs: list[list[int]] = [[], [], []]
    place = {0: 0, 1: 1, 2: 2}  # request -> row
    added = [(0, plain, [1], outputs[0]), (1, forced, [1], outputs[1]), (2, forced, [1], outputs[2])]
    processor.update_state(interface.BatchUpdate(batch_size=3, removed=[], added=added, moved=[]))
    width = len(tokenizer) + 3
    sessions = [None, *(tg.load_format("gemma4").constraint(
        TOOLS, tool_choice="required", vocabulary=tg.Vocabulary.from_transformers(tokenizer, size=width)
    ).session() for _ in range(2))]  # fmt: skip
    for step in range(90):
        if step == 20:  # the two change places
            place[1], place[2] = 2, 1
            swap = (1, 2, interface.MoveDirectionality.SWAP)
            processor.update_state(interface.BatchUpdate(batch_size=3, removed=[], added=[], moved=[swap]))
        elif step == 30:  # the plain one goes, the last row moves to its place
            place = {2: 1, 1: 0}
            move = (2, 0, interface.MoveDirectionality.UNIDIRECTIONAL)
            processor.update_state(interface.BatchUpdate(batch_size=2, removed=[0], added=[], moved=[move]))
        else:
            processor.update_state(None)
        logits = processor.apply(torch.zeros(len(place), width))
        chosen = draw(logits, chance)
        for request, row in place.items():
            if request == 0:
                assert (logits[row] == 0).all()
                continue
            allowed = torch.nonzero(logits[row] == 0).flatten().tolist()
            assert allowed == sessions[request].allowed_tokens().tolist()
            sessions[request].accept_token(chosen[row])
            outputs[request].append(chosen[row])
    ended = [output for output, session in zip(outputs, sessions, strict=True) if session and session.is_terminated]
    assert ended
    for output in ended:
        check(tokenizer, output)


def test_a_token_that_has_not_arrived_is_an_error(tokenizer: Any, config: Any) -> None:
    processor = masks.TwingramLogitsProcessor(config, torch.device("cpu"), False)
    added = [(0, params_of(tokenizer), [1], [-1])]
    processor.update_state(interface.BatchUpdate(batch_size=1, removed=[], added=added, moved=[]))
    with pytest.raises(RuntimeError, match="--no-async-scheduling"):
        processor.apply(torch.zeros(1, 300))


def test_masks_of_draft_tokens(tokenizer: Any, config: Any) -> None:
    """The newer runner: slots, committed tokens on the device, a row for each draft token."""
    width, prompt = len(tokenizer) + 3, [1, 2, 3]
    tokens = tokenizer.encode(CALL, add_special_tokens=False)
    committed = torch.zeros(4, 200, dtype=torch.int32)
    lengths = np.zeros(4, dtype=np.int32)
    lengths[2] = len(prompt)
    state = slots.LogitsProcRequestState(
        device=torch.device("cpu"), max_num_reqs=4, vocab_size=width,
        all_token_ids=types.SimpleNamespace(gpu=committed), prompt_len=types.SimpleNamespace(np=lengths),
        prefill_len=None, total_len=None,
    )  # fmt: skip
    processor = masks.TwingramLogitsProcessor(config, state)
    assert processor.add_request(2, params_of(tokenizer)) is True
    assert processor.add_request(1, SamplingParams()) is False
    vocabulary = tg.Vocabulary.from_transformers(tokenizer, size=width)
    made = tg.load_format("gemma4").constraint(TOOLS, tool_choice="required", vocabulary=vocabulary)
    done = 0
    while done < len(tokens):
        drafts = tokens[done : done + 2]
        wrong = [5, 5] if done % 3 == 1 else []  # drafts that the mask refuses
        fed = [*([9] if not done else [tokens[done - 1]]), *drafts, *wrong]
        history = [*prompt, *tokens[:done]]
        committed[2, : len(history)] = torch.tensor(history)
        rows = [1, *[2] * len(fed)]
        context = slots.LogitsContext(
            expanded_idx_mapping=torch.tensor(rows), idx_mapping=torch.tensor([1, 2]),
            idx_mapping_np=np.array([1, 2]), expanded_local_pos=torch.tensor([0, *range(len(fed))]),
            input_ids=torch.tensor([7, *fed]), pos=torch.tensor([0, *[len(history) - 1 + n for n in range(len(fed))]]),
            seq_lens_upper_bound_np=np.array([1, 200]),
        )  # fmt: skip
        logits = processor.apply(torch.zeros(len(rows), width), context)
        assert (logits[0] == 0).all()
        for n in range(len(drafts) + 1):
            session = made.session()
            assert session.accept_tokens(tokens[: done + n]) == done + n
            assert torch.nonzero(logits[1 + n] == 0).flatten().tolist() == session.allowed_tokens().tolist()
        done += max(1, len(drafts) - (done % 2))
    assert processor.add_request(2, SamplingParams()) is False  # the slot has another occupant


def test_the_entry_point_is_found_by_both_runners() -> None:
    points = importlib.metadata.entry_points(group="vllm.logits_processors")
    found = [point for point in points if point.name == "twingram"]
    if not found:
        pytest.skip("the package is not installed with its entry points")
    assert found[0].load() is masks.TwingramLogitsProcessor
    older = quietly("vllm.v1.sample.logits_processor")._load_logitsprocs_plugins()
    newer = quietly("vllm.v1.worker.gpu.sample.logits_processor.loader")._load_v2_logitsprocs_plugins()
    assert masks.TwingramLogitsProcessor in older
    assert masks.TwingramLogitsProcessor in newer
