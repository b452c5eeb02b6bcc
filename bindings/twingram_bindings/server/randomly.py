"""The back end without a model: a seeded sampler walks through the masks over the built-in vocabulary.

In: anything. Out: turns that are valid and mean nothing, at once and anywhere. The same seed (or temperature 0) and the
same request give the same answer; apart from that the prompt and the temperature make no difference.
Cost: the tables of the sampler, once; about 0.1 ms a token.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from random import SystemRandom
from typing import Any

import twingram as tg
from twingram import sampling

from .backend import Prompt, Sampling

__all__ = ["RandomBackend"]

_SOFT_LIMIT = 80  # tokens after which a turn is led to its end


class RandomBackend:
    """`format_name`: a format that comes with the package, or a grammar file."""

    def __init__(self, format_name: str, vocabulary: tg.Vocabulary | None = None, *, name: str = "random") -> None:
        self.name = name
        self.format = tg.Format.from_file(format_name) if format_name.endswith(".lark") else tg.load_format(format_name)
        own = tg.Vocabulary.embedded(self.format.grammar.markers)
        self.vocabulary = own if vocabulary is None else vocabulary
        self._sampler = sampling.Sampler(self.vocabulary, 0, sampling.spellings(format_name), soft_limit=_SOFT_LIMIT)

    def prompt(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None) -> Prompt:
        text = json.dumps([*messages, *(tools or ())], ensure_ascii=False)
        return Prompt(self.vocabulary.encode(text))

    def tokens(self, prompt: Prompt, session: tg.Session, sampling: Sampling) -> Iterator[int]:
        seed = sampling.seed
        if seed is None:
            seed = 0 if sampling.temperature == 0 else SystemRandom().getrandbits(63)
        sampler = self._sampler.seeded(seed)
        count = 0
        while True:
            yield sampler.step(session, count)
            count += 1
