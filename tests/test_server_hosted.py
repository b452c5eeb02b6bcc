"""The back end that runs a model with `transformers`: random weights and a byte vocabulary, saved and loaded."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
pytest.importorskip("starlette", reason="the extra 'server' is not installed")

import twingram as tg  # noqa: E402
from twingram.cli import main  # noqa: E402
from twingram_bindings.server import Sampling, Settings  # noqa: E402
from twingram_bindings.server.answers import completion  # noqa: E402
from twingram_bindings.server.hosted import HostedBackend, _choose  # noqa: E402
from twingram_bindings.server.service import Service  # noqa: E402

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}]
TEMPLATE = (
    "{% for m in messages %}{{ m.role }}:{{ m.content or '' }}"
    "{% for c in m.tool_calls or [] %}{{ c.function.arguments.n }}{% endfor %};{% endfor %}"
    "{% if tools %}{{ tools | length }} tools{% endif %}"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved model; the opener of a call is called <unused0>."""
    path = tmp_path_factory.mktemp("model")
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: i for i, letter in enumerate(letters)}, []))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    markers = [m for m in tg.load_format("gemma4").grammar.markers if m != "<|tool_call>"]
    tokenizer.add_special_tokens([AddedToken(m, normalized=False) for m in ["<unused0>", *markers]])
    wrapped = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer)
    wrapped.chat_template = TEMPLATE
    wrapped.save_pretrained(path)
    config = transformers.LlamaConfig(
        vocab_size=300, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
        bos_token_id=None, eos_token_id=None, pad_token_id=None,
    )  # fmt: skip
    torch.manual_seed(0)
    transformers.LlamaForCausalLM(config).save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def backend(folder: Path) -> HostedBackend:
    return HostedBackend.load(str(folder), "gemma4", name="tiny", special_tokens={"<|tool_call>": 256})


def answer(backend: HostedBackend, **fields: Any) -> dict[str, Any]:
    body = {"model": "tiny", "messages": [{"role": "user", "content": "x"}], "max_tokens": 60, **fields}
    prepared = Service(backend, Settings()).prepare(json.dumps(body).encode())
    return completion(prepared.generation, "tiny")


@pytest.mark.parametrize("temperature", [0, 1, 1.5])
def test_forced_calls_validate(backend: HostedBackend, temperature: float) -> None:
    made = answer(backend, tools=TOOLS, tool_choice="required", temperature=temperature, seed=1)
    assert made == {**answer(backend, tools=TOOLS, tool_choice="required", temperature=temperature, seed=1),
                    "id": made["id"], "choices": made["choices"], "created": made["created"]}  # fmt: skip
    (choice,) = made["choices"]
    assert choice["finish_reason"] == "tool_calls"
    for call in choice["message"]["tool_calls"]:
        jsonschema.validate(json.loads(call["function"]["arguments"]), SCHEMA)


def test_the_prompt_is_the_template_s(backend: HostedBackend) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"n": 7}'}}
    prompt = backend.prompt([{"role": "assistant", "content": None, "tool_calls": [call]}], TOOLS)
    assert prompt.tail == "assistant:7;1 tools"
    assert bytes(b for i in prompt.ids for b in backend.vocabulary.token_bytes(i)).decode() == prompt.tail
    call["function"]["arguments"] = "{"
    with pytest.raises(tg.RequestError, match="not JSON"):
        backend.prompt([{"role": "assistant", "tool_calls": [call]}], TOOLS)


def test_a_chat_template_of_one_s_own(folder: Path) -> None:
    backend = HostedBackend.load(str(folder), "gemma4", chat_template="{{ messages[0].content }}!")
    assert backend.prompt([{"role": "user", "content": "x"}], None).tail == "x!"


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What `twingram serve` says and its status, without serving."""
    monkeypatch.setattr("twingram_bindings.server.command.run", lambda *_, **__: None)

    def told(*options: object, status: int) -> str:
        assert main(["serve", "--backend", "transformers", "--format", "gemma4", *map(str, options)]) == status
        text = capsys.readouterr().err
        return "\n".join(line for line in text.splitlines() if line.startswith("twingram"))

    return told


def test_the_command_reads_a_template_and_notes_what_is_written_in_letters(
    serve: Callable[..., str], folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "bare").mkdir()
    for path in folder.iterdir():
        if path.name != "chat_template.jinja":
            (tmp_path / "bare" / path.name).write_bytes(path.read_bytes())
    assert "has no chat template: name one with --chat-template FILE" in serve(
        "--model", tmp_path / "bare", status=2
    )
    (tmp_path / "chat.jinja").write_text(TEMPLATE, encoding="utf-8")
    options = ("--model", tmp_path / "bare", "--chat-template", tmp_path / "chat.jinja")
    assert "is <|tool_call>: written in letters" in serve(*options, status=0)
    assert not serve(*options, "--special-token", "<|tool_call>=256", status=0)
    assert "no.jinja" in serve("--model", folder, "--chat-template", tmp_path / "no.jinja", status=2)


def test_a_model_that_cannot_be_loaded(serve: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "weights.gguf").touch()
    for options in (["--model", tmp_path / "nowhere"], ["--model", tmp_path / "m"],
                    ["--model", tmp_path / "m", "--model-file", "other.gguf"]):  # fmt: skip
        told = serve(*options, status=2)
        assert told.count("\n") == 0
        assert f"cannot load {options[1]}" in told
    assert "--model-file names the GGUF file: weights.gguf" in serve("--model", tmp_path / "m", status=2)
    assert "--model-file names" not in told


def test_only_likely_tokens_within_top_p() -> None:
    logits = torch.log(torch.tensor([0.5, 0.3, 0.15, 0.05]))
    generator = torch.Generator().manual_seed(0)

    def drawn(top_p: float, allowed: list[int]) -> set[int]:
        return {_choose(logits, allowed, Sampling(top_p=top_p), generator) for _ in range(200)}

    assert drawn(1, [0, 1, 2, 3]) == {0, 1, 2, 3}
    assert drawn(0.79, [0, 1, 2, 3]) == {0, 1}
    assert drawn(0, [1, 2, 3]) == {1}
    assert _choose(logits, [2, 3], Sampling(temperature=0), generator) == 2
