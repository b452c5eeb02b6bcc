"""The adapter for `transformers`, in the real `generate` of a tiny model with random weights."""

from __future__ import annotations

from threading import Thread
from typing import Any

import jsonschema
import pytest

import twingram as tg

from .interfaces import interface_faults

pytest.importorskip("torch")
pytest.importorskip("transformers")

# Their modules warn about things of their own while they are imported.
pytestmark = [pytest.mark.filterwarnings("default")]

WEATHER = {
    "type": "object",
    "required": ["city", "days"],
    "properties": {"city": {"enum": ["Paris", "Rome"]}, "days": {"type": "integer", "minimum": 1, "maximum": 30}},
}
TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}},
    {"type": "function", "function": {"name": "get_time", "parameters": {"type": "object", "properties": {}}}},
]
SCHEMAS = {tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS}
BUDGET = 60
PROMPT = 5


@pytest.fixture(scope="module")
def vocabulary() -> tg.Vocabulary:
    return tg.Vocabulary.embedded()


@pytest.fixture(scope="module")
def model(vocabulary: tg.Vocabulary) -> Any:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(vocabulary) + 3, hidden_size=32, intermediate_size=32, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=512, initializer_range=0.5,
        bos_token_id=None, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


def constraint(vocabulary: tg.Vocabulary, choice: Any = "required", fmt: str = "gemma4") -> tg.Constraint:
    return tg.load_format(fmt).constraint(
        TOOLS, choice, vocabulary=vocabulary, parallel_tool_calls=False, reasoning="forbid", max_tokens=BUDGET
    )


def generate(model: Any, processor: Any, rows: int = 1, **options: Any) -> Any:
    import torch

    torch.manual_seed(options.pop("seed", 0))
    ids = torch.randint(5, 100, (rows, PROMPT))
    if "eos_token_id" not in options:
        options["eos_token_id"] = processor.stop_token_ids
    return model.generate(
        ids, attention_mask=torch.ones_like(ids), logits_processor=[processor], max_new_tokens=BUDGET + 1,
        pad_token_id=0, **options,
    )  # fmt: skip


def check(message: tg.Message | None) -> tg.Message:
    assert message is not None
    assert message.calls, message
    assert not message.errors
    assert not message.incomplete_calls
    for call in message.calls:
        jsonschema.validate(call.value, SCHEMAS[call.name])
    return message


def test_the_interfaces_are_whole() -> None:
    """`generate` takes them for its own: the same calls, with the same arguments."""
    from transformers import LogitsProcessor, StoppingCriteria
    from transformers.generation.streamers import BaseStreamer

    from twingram_bindings import transformers as ours

    more = ("messages", "reset", "sessions", "stop_token_ids")
    assert interface_faults(ours.TwingramLogitsProcessor, LogitsProcessor, calls=["__call__"], more=more) == []
    assert interface_faults(ours.TwingramStoppingCriteria, StoppingCriteria, calls=["__call__"]) == []
    assert interface_faults(ours.TwingramStreamer, BaseStreamer) == []


@pytest.mark.parametrize(
    ("fmt", "options"),
    [
        ("gemma4", {"do_sample": False}),
        ("gemma4", {"do_sample": True, "temperature": 1.5, "top_k": 0}),
        ("atem", {"do_sample": True, "temperature": 1.5, "top_k": 0}),
        ("functiongemma", {"do_sample": True, "num_return_sequences": 3}),
        ("gemma4", {"do_sample": False, "num_beams": 4, "num_return_sequences": 4}),
        ("atem", {"do_sample": False, "num_beams": 4, "num_return_sequences": 4}),
        ("gemma4", {"do_sample": True, "num_beams": 3}),
    ],
)
def test_batches_end_in_valid_calls(
    fmt: str, options: dict[str, Any], model: Any, vocabulary: tg.Vocabulary
) -> None:
    from twingram_bindings.transformers import TwingramLogitsProcessor

    processor = TwingramLogitsProcessor(constraint(vocabulary, fmt=fmt))
    sequences = generate(model, processor, rows=3, **options)
    messages = processor.messages(sequences)
    assert len(messages) == len(sequences) == 3 * options.get("num_return_sequences", 1)
    for sequence, message in zip(sequences.tolist(), messages, strict=True):
        found = check(message)
        ids = sequence[PROMPT:]
        stop = next(at for at, token in enumerate(ids) if token in processor.stop_token_ids)
        read = tg.load_format(fmt).parse(ids[: stop + 1], TOOLS, vocabulary=vocabulary)
        assert [call.arguments for call in read.calls] == [call.arguments for call in found.calls]


def test_each_prompt_has_its_own_constraint(model: Any, vocabulary: tg.Vocabulary) -> None:
    from twingram_bindings.transformers import TwingramLogitsProcessor

    named = [{"type": "function", "function": {"name": name}} for name in SCHEMAS]
    made = [constraint(vocabulary, choice) for choice in named]
    processor = TwingramLogitsProcessor([made[0], None, made[1]])
    sequences = generate(model, processor, rows=3, do_sample=True, num_return_sequences=2)
    names = [None if each is None else check(each).calls[0].name for each in processor.messages(sequences)]
    assert names == ["get_weather", "get_weather", None, None, "get_time", "get_time"]


def test_scores_are_the_masks_of_sessions(model: Any, vocabulary: tg.Vocabulary) -> None:
    """Every step's scores are finite exactly where a session of its own, fed the beam's tokens, allows a token."""
    from twingram_bindings.transformers import TwingramLogitsProcessor

    made = constraint(vocabulary)
    seen = []

    class Watching(TwingramLogitsProcessor):
        def __call__(self, input_ids: Any, scores: Any) -> Any:
            out = super().__call__(input_ids, scores)
            for ids, row in zip(input_ids[:, PROMPT:].tolist(), out, strict=True):
                session = made.session()
                if session.accept_tokens(ids) == len(ids):
                    assert row.isfinite().nonzero().flatten().tolist() == session.allowed_tokens().tolist()
                    seen.append(len(ids))
            return out

    generate(model, Watching(made), rows=2, num_beams=4, do_sample=False)
    assert max(seen) > 5


def test_ids_may_be_cut_back_and_rows_may_change_places(vocabulary: tg.Vocabulary) -> None:
    """Drafts that are refused, beams that are dropped: the scores depend on the ids alone."""
    import torch

    from twingram_bindings.transformers import TwingramLogitsProcessor

    made = constraint(vocabulary)
    one = vocabulary.encode('<|tool_call>call:get_weather{city:<|"|>Paris<|"|>,days:3}<tool_call|>')
    two = vocabulary.encode('<|tool_call>call:get_time{}<tool_call|>')
    wrong = vocabulary.encode("no call")
    scores = torch.zeros(2, len(vocabulary))
    processor = TwingramLogitsProcessor(made)
    prompt = [7, 8]
    processor(torch.tensor([prompt, prompt]), scores)  # two prompts, alike: rows stay with their own
    for first, second in [(one[:2], two[:2]), (one[:8], one[:8]), (two[:4], one[:4]), (one[:3], wrong[:3]), (one, one)]:
        size = min(len(first), len(second))
        out = processor(torch.tensor([prompt + first[:size], prompt + second[:size]]), scores)
        for ids, row in zip((first[:size], second[:size]), out, strict=True):
            session = made.session()
            accepted = session.accept_tokens(ids)
            allowed = session.allowed_tokens().tolist() if accepted == len(ids) else sorted(session.binding.stops)
            assert row.isfinite().nonzero().flatten().tolist() == allowed
    with pytest.raises(ValueError, match="reset"):
        processor(torch.tensor([[9, 9], [9, 9]]), scores)
    processor.reset()
    processor(torch.tensor([[9, 9]]), scores[:1])


def test_the_criterion_stops_at_stop_tokens(model: Any, vocabulary: tg.Vocabulary) -> None:
    from twingram_bindings.transformers import TwingramLogitsProcessor, TwingramStoppingCriteria

    processor = TwingramLogitsProcessor(constraint(vocabulary))
    criteria = [TwingramStoppingCriteria(processor)]
    sequences = generate(model, processor, eos_token_id=None, stopping_criteria=criteria)
    assert sequences[0, -1].item() in processor.stop_token_ids
    check(processor.messages(sequences)[0])


@pytest.mark.parametrize("threaded", [False, True])
def test_the_streamer_yields_the_deltas(threaded: bool, model: Any, vocabulary: tg.Vocabulary) -> None:
    import torch

    from twingram_bindings.transformers import TwingramLogitsProcessor, TwingramStreamer

    processor = TwingramLogitsProcessor(constraint(vocabulary))
    parser = tg.load_format("gemma4").parser(TOOLS, vocabulary=vocabulary, call_id=lambda: "call_0")
    deltas: list[tg.Delta] = []
    streamer = TwingramStreamer(parser, timeout=60) if threaded else TwingramStreamer(parser, deltas.append)
    if threaded:
        thread = Thread(target=generate, args=(model, processor), kwargs={"streamer": streamer, "do_sample": True})
        thread.start()
        deltas += streamer
        thread.join()
    else:
        generate(model, processor, streamer=streamer, do_sample=True)
    again = tg.load_format("gemma4").parser(TOOLS, vocabulary=vocabulary, call_id=lambda: "call_0")
    sequences = generate(model, TwingramLogitsProcessor(constraint(vocabulary)), do_sample=True)
    expected = [delta for token in sequences[0, PROMPT:].tolist() for delta in again.feed_tokens([token])]
    assert deltas == expected + again.finish()
    check(parser.message)
    with pytest.raises(ValueError, match="one sequence"):
        streamer.put(torch.zeros(2, 3))


def test_a_model_with_fewer_scores_is_refused(vocabulary: tg.Vocabulary) -> None:
    import torch

    from twingram_bindings.transformers import TwingramLogitsProcessor

    with pytest.raises(ValueError, match="the vocabulary has more"):
        TwingramLogitsProcessor(constraint(vocabulary))(torch.tensor([[1]]), torch.zeros(1, 2))
