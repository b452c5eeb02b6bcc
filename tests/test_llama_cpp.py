"""The adapter for `llama-cpp-python`. Its arrays need no model; the rest is heavy and runs the real one."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import jsonschema
import numpy as np
import pytest

import twingram as tg
from twingram_bindings.llama_cpp import TwingramLogitsProcessor, grammar_of

from .engines import LlamaCpp, differences, walk_tokens
from .vocabularies import GEMMA_MARKERS, gemma, gemma_path, or_skip

WEATHER = {
    "type": "object",
    "required": ["city", "days"],
    "properties": {"city": {"type": "string", "maxLength": 12}, "days": {"type": "integer", "minimum": 1, "maximum": 9},
                   "unit": {"enum": ["C", "F"]}, "tags": {"type": "array", "items": {"type": "string"}}},
}  # fmt: skip
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}}]
MARKERS = ("<|tool_call>", "<tool_call|>", '<|"|>')
PROMPT = "<|turn>user\nHow is the weather in Paris?<turn|>\n<|turn>model\n"


def constraint(vocabulary: tg.Vocabulary, **options: Any) -> tg.Constraint:
    return tg.load_format("gemma4").constraint(TOOLS, "required", vocabulary=vocabulary, **options)


def test_scores_are_masked_as_ids_come_and_go() -> None:
    vocabulary = tg.Vocabulary.embedded()
    made = constraint(vocabulary)
    processor = TwingramLogitsProcessor(made)
    call = vocabulary.encode('<|tool_call>call:get_weather{city:<|"|>Paris<|"|>,days:3}<tool_call|>')
    for prompt, sizes in (([5, 6, 7], (0, 1, 4, 2, len(call))), ([8, 9], (0, 3))):
        for size in sizes:
            ids = np.array(prompt + call[:size], dtype=np.intc)
            scores = np.arange(len(vocabulary) + 5, dtype=np.single)
            out = processor(ids, scores)
            session = made.session()
            assert session.accept_tokens(call[:size]) == size
            allowed = session.allowed_tokens()
            assert np.flatnonzero(np.isfinite(out)).tolist() == allowed.tolist()
            assert (out[allowed] == scores[allowed]).all()
            assert processor.session.text == session.text
    with pytest.raises(ValueError, match="forbidden"):
        processor(np.array([8, 9, *call[:3], 5], dtype=np.intc), scores)


@pytest.fixture(scope="module")
def llm() -> Any:
    module = pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
    or_skip(gemma)
    return module.Llama(model_path=str(gemma_path()), n_ctx=512, n_threads=2, verbose=False, seed=1)


@pytest.mark.heavy
@pytest.mark.parametrize("how", ["processor", "grammar"])
@pytest.mark.parametrize("temperature", [0.7, 1.5])
def test_the_real_model_writes_valid_calls(how: str, temperature: float, llm: Any) -> None:
    from llama_cpp import LogitsProcessorList

    vocabulary = gemma()
    bounded = {"parallel_tool_calls": False, "reasoning": "forbid", "max_tokens": 60 if how == "processor" else None}
    made = constraint(vocabulary, **bounded)
    processor = TwingramLogitsProcessor(made)
    options: dict[str, Any] = {"temp": temperature, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
    if how == "processor":
        options["logits_processor"] = LogitsProcessorList([processor])
    else:
        options["grammar"] = grammar_of(made)
    llm.reset()
    tokens: list[int] = []
    for token in llm.generate(vocabulary.encode(PROMPT), **options):
        tokens.append(token)
        if token in made.binding.stops or len(tokens) > 60:  # the grammar knows no budget: what it wrote so far
            break
    markers = {token for token in tokens if vocabulary.is_special(token)}
    if how == "processor" or markers <= {*made.binding.stops, *map(vocabulary.special_tokens.get, MARKERS)}:
        assert made.session().accept_tokens(tokens) == len(tokens)
    message = tg.load_format("gemma4").parse(tokens, TOOLS, vocabulary=vocabulary)
    if how == "processor" or tokens[-1] in made.binding.stops:
        (call,) = message.calls
        jsonschema.validate(call.value, WEATHER)


def named(folder: Path) -> Path:
    """The vocabulary of the model file, its slots under the markers' names: with another name a marker's token is also
    read as the letters of that name."""
    gguf = pytest.importorskip("gguf", reason="gguf is not installed")
    reader = gguf.GGUFReader(str(gemma_path()))
    file = folder / "named.gguf"
    writer = gguf.GGUFWriter(file, "gemma3")
    names = {token: name for name, token in GEMMA_MARKERS.items()}
    for field in reader.fields.values():
        value, array = field.contents(), field.types[0] == gguf.GGUFValueType.ARRAY
        if field.name == "tokenizer.ggml.tokens":
            value = [names.get(token, text) for token, text in enumerate(value)]
        if not field.name.startswith("GGUF.") and field.name != "general.architecture":
            writer.add_key_value(field.name, value, field.types[0], sub_type=field.types[-1] if array else None)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


@pytest.mark.heavy
def test_the_grammar_allows_the_tokens_of_the_mask(tmp_path: Path) -> None:
    """But for control tokens that are no markers, which that engine reads as their letters, and for what it keeps out
    of any text: the character 0, and ordinary tokens that it takes for an end, such as `</s>`."""
    pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
    vocabulary = or_skip(gemma)
    engine = LlamaCpp(str(named(tmp_path)))
    made = constraint(vocabulary, key_order="declared")
    grammar = made.export("gbnf")
    for seed in range(4):
        tokens = walk_tokens(made.session(), Random(seed), 40)
        for at, more, less in differences(engine, made, grammar, tokens):
            kept = [token for token in less if b"\0" not in vocabulary.token_bytes(token) and not engine.ends(token)]
            assert not kept, (vocabulary.decode(tokens[:at]), kept[:9])
            assert all(vocabulary.is_special(token) for token in more), (
                vocabulary.decode(tokens[:at]), [vocabulary.token_bytes(token) for token in more[:9]]
            )  # fmt: skip
