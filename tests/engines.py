"""Other engines that run grammar text, behind one surface, for comparing their masks with ours.

In: a vocabulary, stop tokens. Out: `Engine`s: `matcher(grammar)` gives accept and mask. Special tokens are loaded as
such: their letters are no text to either engine.
"""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable, Sequence
from random import Random
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import twingram as tg

__all__ = [
    "ENGINES",
    "Difference",
    "LLGuidance",
    "LlamaCpp",
    "XGrammar",
    "differences",
    "engine_or_skip",
    "walk_tokens",
]

Bits = np.ndarray[Any, np.dtype[np.bool_]]


def _bits(row: Any, size: int) -> Bits:
    return np.unpackbits(np.asarray(row, dtype=np.int32).view(np.uint8), bitorder="little")[:size].astype(np.bool_)


def _module(name: str) -> ModuleType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs to mend
        return __import__(name, fromlist=["_"])


class XGrammar:
    """It takes special tokens for their letters, and refuses those that spell nothing: here they begin with a byte that
    stands in no text."""

    notation = "xgrammar"

    def __init__(self, vocabulary: tg.Vocabulary, stops: Sequence[int]) -> None:
        self.module, self.size = _module("xgrammar"), len(vocabulary)
        tokens = [vocabulary.token_bytes(at) for at in range(self.size)]
        tokens = [b"\xff" + data if vocabulary.is_special(at) else data for at, data in enumerate(tokens)]
        raw = self.module.VocabType.RAW
        self.info = self.module.TokenizerInfo(tokens, raw, vocab_size=self.size, stop_token_ids=list(stops))
        self.compiler = self.module.GrammarCompiler(self.info, max_threads=2, cache_enabled=False)

    def matcher(self, grammar: str) -> tuple[Callable[[int], bool], Callable[[], Bits]]:
        made = self.module.GrammarMatcher(self.compiler.compile_grammar(self.module.Grammar.from_ebnf(grammar)))
        row = self.module.allocate_token_bitmask(1, self.size)

        def mask() -> Bits:
            row.fill_(-1)
            made.fill_next_token_bitmask(row)
            return _bits(row[0].numpy(), self.size)

        return made.accept_token, mask


class Tokens:
    """A vocabulary as llguidance asks for it."""

    def __init__(self, vocabulary: tg.Vocabulary, stops: Sequence[int]) -> None:
        self.eos_token_id, self.bos_token_id = stops[0], None
        self.tokens = [vocabulary.token_bytes(token) for token in range(len(vocabulary))]
        self.special_token_ids = [token for token in range(len(vocabulary)) if vocabulary.is_special(token)]
        self.encode = vocabulary.encode

    def __call__(self, text: bytes | str) -> list[int]:
        return self.encode(text if isinstance(text, str) else text.decode("utf-8", "replace"))


class LLGuidance:
    """Limits are raised: a text that is told character by character takes many steps of its parser."""

    notation = "llguidance"

    def __init__(self, vocabulary: tg.Vocabulary, stops: Sequence[int]) -> None:
        self.module, self.size = _module("llguidance"), len(vocabulary)
        self.fill = _module("llguidance.numpy").fill_next_token_bitmask
        wrapped = self.module.TokenizerWrapper(Tokens(vocabulary, stops))
        self.tokenizer = self.module.LLTokenizer(wrapped, n_vocab=self.size, eos_token=list(stops))
        big = 10_000_000
        self.limits = self.module.LLParserLimits(
            max_items_in_row=big, initial_lexer_fuel=100 * big, step_lexer_fuel=100 * big, step_max_items=big,
            max_lexer_states=big, max_grammar_size=big,
        )  # fmt: skip

    def matcher(self, grammar: str) -> tuple[Callable[[int], bool], Callable[[], Bits]]:
        made = self.module.LLMatcher(
            self.tokenizer, self.module.LLMatcher.grammar_from_lark(grammar), limits=self.limits
        )
        if made.is_error():
            raise ValueError(made.get_error())
        rows = np.zeros((1, -(-self.size // 32)), dtype=np.int32)

        def mask() -> Bits:
            self.fill(made, rows)
            if made.is_error():
                raise ValueError(made.get_error())
            return _bits(rows[0], self.size)

        return made.consume_token, mask


ENGINES = {"xgrammar": XGrammar, "llguidance": LLGuidance}


def engine_or_skip(name: str, vocabulary: tg.Vocabulary, stops: Sequence[int]) -> Any:
    for module in ("torch", name):
        pytest.importorskip(module, reason=f"{module} is not installed")
    return ENGINES[name](vocabulary, stops)


class Difference(AssertionError):
    """The masks of two engines differ."""


def walk_tokens(session: tg.Session, rng: Random, most: int) -> list[int]:
    """A random walk: special tokens, short ways to the end and anything, in turn; stop tokens are not taken."""
    out: list[int] = []
    constraint = session.constraint
    while len(out) < most:
        allowed = session.allowed_tokens()
        allowed = allowed[~np.isin(allowed, list(constraint.binding.stops))]
        if not len(allowed):
            break
        way = rng.random()
        if way < 0.5 or len(out) > most // 2:
            left = constraint.distances.of_state(session.state)
            near = constraint.masks.within(session.state, constraint.distances, max(1, left - 1)).allowed()
            near = near[~np.isin(near, list(constraint.binding.stops))]
            allowed = near if len(near) else allowed
        token = int(allowed[rng.randrange(len(allowed))])
        assert session.accept_token(token)
        out.append(token)
    return out


def differences(
    engine: Any, constraint: tg.Constraint, grammar: str, tokens: Sequence[int]
) -> list[tuple[int, list[int], list[int]]]:
    """(place, tokens that it allows and we do not, the other way round) where the masks differ along a walk."""
    accept, mask = engine.matcher(grammar)
    session, out = constraint.session(), []
    for at, token in enumerate([*tokens, None]):
        ours, theirs = _bits(session.mask(), engine.size), mask()
        if (ours != theirs).any():
            out.append((at, np.flatnonzero(theirs & ~ours).tolist(), np.flatnonzero(ours & ~theirs).tolist()))
        if token is not None:
            if not session.accept_token(token):
                raise Difference(f"token {at} of the walk is not ours")
            if not accept(token):
                out.append((at, [], [token]))
                break
    return out


class LlamaCpp:
    """The grammar sampler of llama.cpp over the vocabulary of a model file."""

    notation = "gbnf"

    def __init__(self, path: str) -> None:
        self.module = _module("llama_cpp")
        self.model = self.module.Llama(model_path=path, vocab_only=True, verbose=False)
        self.size = self.model.n_vocab()
        self.vocab = self.module.llama_model_get_vocab(self.model._model.model)

    def ends(self, token: int) -> bool:
        """Whether it takes a token for the end of a turn."""
        return bool(self.module.llama_vocab_is_eog(self.vocab, token))

    def matcher(self, grammar: str) -> tuple[Callable[[int], bool], Callable[[], Bits]]:
        module = self.module
        sampler = module.llama_sampler_init_grammar(self.vocab, grammar.encode(), b"root")
        if not sampler:
            raise ValueError("llama.cpp does not read this grammar")
        kind = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)], align=True)
        rows = np.zeros(self.size, dtype=kind)

        def mask() -> Bits:
            rows["id"], rows["logit"] = np.arange(self.size), 0
            data = rows.ctypes.data_as(ctypes.POINTER(module.llama_token_data))
            array = module.llama_token_data_array(data=data, size=self.size, selected=-1, sorted=False)
            module.llama_sampler_apply(sampler, ctypes.byref(array))
            out = np.zeros(self.size, dtype=np.bool_)
            out[rows["id"]] = np.isfinite(rows["logit"])
            return out

        def accept(token: int) -> bool:
            if not mask()[token]:
                return False
            module.llama_sampler_accept(sampler, token)
            return True

        return accept, mask
