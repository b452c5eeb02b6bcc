"""The back end that runs a model with the library `transformers`, on whatever device the model lies.

In: the messages through the model's own chat template. Out: tokens drawn from its logits, those outside the mask left
out. Invariants: one forward pass at a time, whichever request it is for; each request has a cache of its own.
Cost: the model's; requests are not batched, so this is for one user or a few, not for many.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from inspect import signature
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import torch
import transformers

import twingram as tg

from .backend import Prompt, Sampling

__all__ = ["HostedBackend"]


class HostedBackend:
    """`vocabulary`: that of the tokenizer, as wide as the model's logits."""

    def __init__(self, name: str, fmt: tg.Format, vocabulary: tg.Vocabulary, model: Any, tokenizer: Any) -> None:
        self.name, self.format, self.vocabulary = name, fmt, vocabulary
        self._model, self._tokenizer = model.eval(), tokenizer
        self._cache = "cache" if "cache" in signature(model.forward).parameters else "past_key_values"
        self._lock = Lock()

    @classmethod
    def load(
        cls,
        model: str,
        format_name: str,
        *,
        name: str | None = None,
        model_file: str | None = None,
        special_tokens: Mapping[str, int] | None = None,
        chat_template: str | None = None,
    ) -> HostedBackend:
        """`special_tokens`: marker -> id, for models that have the format's markers under other names. `chat_template`:
        in the place of the tokenizer's own, or where it has none."""
        more = {"gguf_file": model_file} if model_file else {}
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(model, **more)
            tokenizer.chat_template = chat_template or getattr(tokenizer, "chat_template", None)
            if not tokenizer.chat_template:
                raise tg.RequestError(f"{model} has no chat template: name one with --chat-template FILE")
            loaded: Any = transformers.AutoModelForCausalLM.from_pretrained(model, **more)
        except (OSError, ValueError) as error:
            raise tg.RequestError(_not_loaded(model, model_file, error)) from error
        width = loaded.get_output_embeddings().weight.shape[0]
        vocabulary = tg.Vocabulary.from_transformers(tokenizer, size=width, special_tokens=special_tokens or None)
        fmt = tg.Format.from_file(format_name) if format_name.endswith(".lark") else tg.load_format(format_name)
        return cls(name or Path(model).name, fmt, vocabulary, loaded, tokenizer)

    def prompt(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None) -> Prompt:
        if not getattr(self._tokenizer, "chat_template", None):
            raise tg.RequestError("messages: the model's tokenizer has no chat template")
        conversation = [_with_objects(message) for message in messages]
        text = self._tokenizer.apply_chat_template(
            conversation, tools=list(tools) if tools else None, add_generation_prompt=True, tokenize=False
        )
        return Prompt(self._tokenizer.encode(text, add_special_tokens=False), text[-200:])

    def tokens(self, prompt: Prompt, session: tg.Session, sampling: Sampling) -> Iterator[int]:
        generator = torch.Generator()
        generator.seed() if sampling.seed is None else generator.manual_seed(sampling.seed)
        ids, known = list(prompt.ids), None
        while True:
            with self._lock, torch.inference_mode():
                given = torch.tensor([ids], device=self._model.device)
                out = self._model(input_ids=given, use_cache=True, **{self._cache: known})
            known = getattr(out, self._cache)
            token = _choose(out.logits[0, -1].float().cpu(), session.allowed_tokens(), sampling, generator)
            ids = [token]
            yield token


def _not_loaded(model: str, model_file: str | None, error: Exception) -> str:
    folder = Path(model)
    files = sorted(path.name for path in folder.glob("*.gguf")) if folder.is_dir() else []
    said = f"transformers cannot load {model}: {' '.join(str(error).split())}"
    return f"{said} (--model-file names the GGUF file: {', '.join(files)})" if files and not model_file else said


def _choose(logits: torch.Tensor, allowed: Any, sampling: Sampling, generator: torch.Generator) -> int:
    """A token among the allowed ones."""
    ids = torch.from_numpy(np.asarray(allowed, dtype=np.int64))
    scores = logits[ids]
    if sampling.temperature == 0:
        return int(ids[scores.argmax()])
    chances = torch.softmax(scores / sampling.temperature, dim=-1)
    if sampling.top_p < 1:
        ranked, order = chances.sort(descending=True)
        ranked[1:][ranked.cumsum(0)[:-1] >= sampling.top_p] = 0
        chances = torch.zeros_like(chances).scatter(0, order, ranked)
    return int(ids[torch.multinomial(chances, 1, generator=generator)])


def _with_objects(message: Mapping[str, Any]) -> dict[str, Any]:
    """Templates want a call's arguments as an object, clients send them as text."""
    read = dict(message)
    if message.get("tool_calls"):
        read["tool_calls"] = [
            {**call, "function": {**call["function"], "arguments": _loads(call["function"]["arguments"])}}
            for call in message["tool_calls"]
        ]
    return read


def _loads(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        raise tg.RequestError(f"messages: arguments of a call are not JSON: {arguments[:80]!r}") from None
