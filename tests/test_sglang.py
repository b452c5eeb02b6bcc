"""The SGLang plugin against the classes of SGLang's own package, on the CPU: its registries, its function-call parser,
its grammar manager's calls, and its xgrammar backend on the exported grammar. Its engine, which needs a GPU, is not run
here."""

from __future__ import annotations

import importlib.metadata
import json
import random
from typing import Any

import jsonschema
import pytest

import twingram as tg

from . import engine_sources
from .engine_sources import or_skip, quietly
from .interfaces import interface_faults
from .plugins import ARGUMENTS, CALL, WEATHER, byte_tokenizer

or_skip("sglang")
torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

pytestmark = pytest.mark.filterwarnings("default")

plugin = quietly("twingram_bindings.sglang")
base = quietly("sglang.srt.constrained.base_grammar_backend")
FunctionCallParser = quietly("sglang.srt.function_call.function_call_parser").FunctionCallParser
protocol = quietly("sglang.srt.entrypoints.openai.protocol")

TURN = f"Let me look.{CALL}"
NAMED = protocol.ToolChoice(function={"name": "get_weather"})


def tool_of(schema: Any, name: str = "get_weather") -> Any:
    return protocol.Tool.model_validate({"type": "function", "function": {"name": name, "parameters": schema}})


TOOLS = [tool_of(WEATHER)]


@pytest.fixture(scope="module", autouse=True)
def registered() -> None:
    plugin.register()


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return byte_tokenizer("gemma4", eos_token="<turn|>")


@pytest.fixture
def backend(tokenizer: Any) -> Any:
    """As SGLang's `create_grammar_backend` makes one that is registered."""
    make = base.GRAMMAR_BACKEND_REGISTRY["twingram_gemma4"]
    return make(None, tokenizer, len(tokenizer) + 3, {tokenizer.eos_token_id})


def parser_of(tokenizer: Any, tools: Any = None, choice: Any = "auto") -> Any:
    return FunctionCallParser(tools or TOOLS, "twingram_gemma4", tokenizer=tokenizer, tool_choice=choice)


def grammar_of(backend: Any, constraint: Any) -> Any:
    """As SGLang's grammar manager asks for it."""
    kind, value = constraint
    request = protocol.ChatCompletionRequest(model="m", messages=[{"role": "user", "content": "x"}])
    params = request.to_sampling_params([], {}, tool_call_constraint=(kind, value))
    value, hit = backend.get_cached_or_future_value((kind, params[kind]), False)
    assert not hit
    return value.result(30)


def test_written_against_this_release() -> None:
    assert importlib.metadata.version("sglang") == engine_sources.SGLANG


def test_every_format_is_registered() -> None:
    choices = quietly("sglang.srt.arg_groups.choices").GRAMMAR_BACKEND_CHOICES
    for name in tg.list_formats():
        assert f"twingram_{name}" in FunctionCallParser.ToolCallParserEnum
        assert f"twingram_{name}" in base.GRAMMAR_BACKEND_REGISTRY
        assert f"twingram_{name}" in choices


def test_the_plugin_is_found() -> None:
    found = [p for p in importlib.metadata.entry_points(group="sglang.srt.plugins") if p.name == "twingram"]
    if not found:
        pytest.skip("the package is not installed with its entry points")
    loaded = quietly("sglang.srt.plugins").load_plugins_by_group("sglang.srt.plugins")
    assert loaded["twingram"][0] is plugin.register


# -- reading -----------------------------------------------------------------------------------------------------------


def test_a_whole_turn(tokenizer: Any) -> None:
    parser = parser_of(tokenizer)
    assert parser.has_tool_call(TURN)
    assert not parser.has_tool_call("Just text about call:get_weather{}.")
    text, calls = parser.parse_non_stream(TURN)
    assert text == "Let me look."
    assert [(call.name, json.loads(call.parameters)) for call in calls] == [("get_weather", ARGUMENTS)]


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_a_stream_in_pieces(tokenizer: Any, size: int) -> None:
    parser, turn = parser_of(tokenizer), TURN + CALL
    texts, names, arguments = "", [], ["", ""]
    for at in range(0, len(turn), size):
        text, calls = parser.parse_stream_chunk(turn[at : at + size])
        texts += text
        for call in calls:
            names += [call.name] if call.name else []
            arguments[call.tool_index] += call.parameters
    assert (texts, names) == ("Let me look.", ["get_weather"] * 2)
    assert [*map(json.loads, arguments)] == [ARGUMENTS] * 2
    assert [call["arguments"] for call in parser.detector.prev_tool_call_arr] == [ARGUMENTS] * 2
    assert parser.detector.streamed_args_for_tool == arguments


def test_text_that_waited_comes_at_the_end(tokenizer: Any) -> None:
    parser = parser_of(tokenizer)
    (first, _), (last, calls) = parser.parse_stream_chunk("a <|tool_cal"), parser.parse_stream_end()
    assert (first + last, calls) == ("a <|tool_cal", [])


# -- forcing -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", ["required", NAMED], ids=str)
def test_the_tag_runs_in_sglang_s_own_backend(tokenizer: Any, choice: Any) -> None:
    xgrammar_backend = quietly("sglang.srt.constrained.xgrammar_backend")
    own = xgrammar_backend.XGrammarGrammarBackend(
        tokenizer, vocab_size=len(tokenizer), model_eos_token_ids=[tokenizer.eos_token_id], any_whitespace=True
    )
    made = grammar_of(own, parser_of(tokenizer, choice=choice).get_structure_constraint(choice))
    assert not isinstance(made, base.InvalidGrammarObject), made
    for token in tokenizer.encode(CALL, add_special_tokens=False):
        made.accept_token(token)
    made.accept_token(tokenizer.eos_token_id)
    assert made.is_terminated()
    with pytest.raises(ValueError, match="not accepted"):
        made.copy().accept_token(tokenizer.encode("H", add_special_tokens=False)[0])


@pytest.mark.parametrize("choice", ["required", NAMED], ids=str)
@pytest.mark.parametrize("parallel", [True, False])
def test_walks_through_the_masks(tokenizer: Any, backend: Any, choice: Any, parallel: bool) -> None:
    made = grammar_of(backend, parser_of(tokenizer).get_structure_constraint(choice, parallel_tool_calls=parallel))
    chance, width = random.Random(1), len(tokenizer) + 8  # the logits are padded
    for _ in range(4):
        grammar, tokens = made.copy(), []
        while not grammar.is_terminated() and len(tokens) < 300:
            forced = grammar.try_jump_forward(tokenizer)
            mask = grammar.allocate_vocab_mask(width, 2, "cpu")
            grammar.fill_vocab_mask(mask, 1)
            logits = torch.zeros(2, width)
            grammar.apply_vocab_mask(logits, grammar.move_vocab_mask(mask, "cpu"))
            assert (logits[0] == 0).all()
            allowed = torch.nonzero(logits[1] == 0).flatten().tolist()
            assert allowed == grammar.session.allowed_tokens().tolist()
            if forced:
                assert allowed == forced[0][:1]
            token = allowed[-1] if chance.random() < 0.5 else chance.choice(allowed)
            branch = grammar.copy()
            grammar.accept_token(token)
            branch.accept_token(token)
            branch.rollback(1)
            assert branch.session.allowed_tokens().tolist() == allowed
            tokens.append(token)
        assert grammar.is_terminated()
        _, calls = parser_of(tokenizer).parse_non_stream(tokenizer.decode(tokens))
        assert len(calls) >= 1
        assert parallel or len(calls) == 1
        for call in calls:
            jsonschema.validate(json.loads(call.parameters), WEATHER)


def test_the_interfaces_are_whole() -> None:
    """What SGLang's bases leave open has an answer here, with the arguments that they have, and nothing here is unknown
    to them."""
    from twingram_bindings.sglang.detector import TwingramDetector
    from twingram_bindings.sglang.grammar import TwingramGrammar, TwingramGrammarBackend

    detector = quietly("sglang.srt.function_call.base_format_detector").BaseFormatDetector
    assert interface_faults(TwingramDetector, detector, more=["format_name"]) == []
    assert interface_faults(TwingramGrammar, base.BaseGrammarObject) == []
    assert interface_faults(TwingramGrammarBackend, base.BaseGrammarBackend) == []


def test_retokenizing_goes_back_to_where_the_tokens_part(tokenizer: Any, backend: Any) -> None:
    made = grammar_of(backend, parser_of(tokenizer).get_structure_constraint("required"))
    old = tokenizer.encode('<|tool_call>call:get_weather{city:<|"|>Pa', add_special_tokens=False)
    new = tokenizer.encode('<|tool_call>call:get_weather{city:<|"|>Rome', add_special_tokens=False)
    for token in old:
        made.accept_token(token)
    made.jump_and_retokenize(old, new, -1)
    assert made.session.text.endswith(b"Rome")
    text, _ = made.jump_forward_str_state((old[:2], ""))
    assert text == "<|tool_call>c"


def test_answers_that_follow_a_schema(tokenizer: Any, backend: Any) -> None:
    made = backend.dispatch_json(json.dumps(WEATHER))
    for token in tokenizer.encode('{"city": "Rome", "days": 2}<turn|>', add_special_tokens=False):
        made.accept_token(token)
    assert made.is_terminated()


def test_what_cannot_be_had_fails_the_request_with_the_reason(tokenizer: Any, backend: Any) -> None:
    never = tool_of({"type": "object", "properties": {"a": {"enum": []}}, "required": ["a"]}, "odd")
    constraint = parser_of(tokenizer, [never]).get_structure_constraint("required")
    made = grammar_of(backend, constraint)
    assert isinstance(made, base.InvalidGrammarObject)
    assert "odd" in made.error_message
    for bad in (
        backend.dispatch_regex("a"), backend.dispatch_ebnf("root ::= 'a'"), backend.dispatch_json("{"),
        backend.dispatch_structural_tag("{}"), backend.dispatch_structural_tag('{"format": {"grammar": "# x"}}'),
        backend.dispatch_json('{"not": {}}'),
    ):  # fmt: skip
        assert isinstance(bad, base.InvalidGrammarObject)
        assert bad.error_message
