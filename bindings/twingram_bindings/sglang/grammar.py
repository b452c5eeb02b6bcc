"""A grammar backend for SGLang: masks of Twingram for tool calls and for answers that follow a schema.

In: what SGLang asks for: a structural tag made by the detector, or a JSON Schema. Out: grammar objects around sessions.
Invariants: a mask is int32, packed, a set bit allows, as SGLang's own backends have it; a copy and its original go on
by themselves; what cannot be had is an `InvalidGrammarObject`, which fails the request with the reason. SGLang does
not wrap a registered backend for reasoning, so the thought is part of the grammar and allowed.
Cost: a session's. Written against SGLang 0.5.23.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import torch
from sglang.srt.arg_groups.choices import add_grammar_backend_choices
from sglang.srt.constrained.base_grammar_backend import (
    BaseGrammarBackend,
    BaseGrammarObject,
    InvalidGrammarObject,
    register_grammar_backend,
    register_vocab_mask_buffer,
)

import twingram as tg

from .. import wire
from .detector import FAULT, HEADER

__all__ = ["TwingramGrammar", "TwingramGrammarBackend", "register"]


def _rows(count: int, vocabulary: tg.Vocabulary) -> torch.Tensor:
    """Rows that allow everything."""
    pinned = torch.cuda.is_available()
    return torch.full((count, (len(vocabulary) + 31) // 32), -1, dtype=torch.int32, pin_memory=pinned)


class TwingramGrammar(BaseGrammarObject):  # type: ignore[misc]
    """One generation."""

    def __init__(self, session: tg.Session) -> None:
        super().__init__()
        self.session = session

    def accept_token(self, token: int) -> None:
        if not self.session.accept_token(token):
            raise ValueError(f"twingram: token {token} is not allowed after {self.session.text[-80:]!r}")

    def rollback(self, k: int) -> None:
        self.session.rollback(k)

    def is_terminated(self) -> bool:
        return self.session.is_terminated

    def copy(self) -> TwingramGrammar:
        return TwingramGrammar(self.session.fork())

    # -- masks ---------------------------------------------------------------------------------------------------------

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        return _rows(batch_size, self.session.constraint.vocabulary)

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        self.session.fill_bitmask(vocab_mask, idx)

    @staticmethod
    def reset_vocab_mask(vocab_mask: torch.Tensor) -> None:
        vocab_mask.fill_(-1)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        return vocab_mask.to(device, non_blocking=True)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        """Logits past the vocabulary are padding and forbidden too, unless the row allows everything."""
        shifts = torch.arange(32, dtype=torch.int32, device=vocab_mask.device)
        allowed = ((vocab_mask.unsqueeze(-1) >> shifts) & 1).bool().flatten(1)
        width = min(logits.shape[1], allowed.shape[1])
        logits[:, :width].masked_fill_(~allowed[:, :width], float("-inf"))
        if logits.shape[1] > width:
            free = (vocab_mask == -1).all(dim=1, keepdim=True)
            logits[:, width:].masked_fill_(~free, float("-inf"))

    # -- forced tokens -------------------------------------------------------------------------------------------------

    def try_jump_forward(self, tokenizer: Any) -> tuple[list[int], str] | None:
        forced = self.session.jump_forward()
        return (forced, "") if forced else None

    def jump_forward_str_state(self, helper: tuple[list[int], str]) -> tuple[str, int]:
        return b"".join(map(self.session.constraint.vocabulary.token_bytes, helper[0])).decode("utf-8", "replace"), -1

    def jump_and_retokenize(self, old_output_ids: list[int], new_output_ids: list[int], next_state: int) -> None:
        """From the old tokens to the new ones: back to where they part, then on."""
        same = next(
            (n for n, (old, new) in enumerate(zip(old_output_ids, new_output_ids, strict=False)) if old != new),
            min(len(old_output_ids), len(new_output_ids)),
        )
        self.session.rollback(len(old_output_ids) - same)
        for token in new_output_ids[same:]:
            self.accept_token(token)


class TwingramGrammarBackend(BaseGrammarBackend):  # type: ignore[misc]
    """Made once a server. `format_name`: the format in which answers that follow a schema are written."""

    def __init__(self, format_name: str, tokenizer: Any, vocab_size: int) -> None:
        super().__init__()
        self._format = tg.load_format(format_name)
        self._vocabulary = tg.Vocabulary.from_transformers(tokenizer, size=vocab_size)

    def initialize_vocab_mask_buffer(self, name: str, vocab_size: int, max_rows: int, device: Any) -> torch.Tensor:
        buffer: torch.Tensor = register_vocab_mask_buffer(name, _rows(max_rows, self._vocabulary), max_rows)
        return buffer

    def dispatch_structural_tag(self, key_string: str) -> BaseGrammarObject:
        try:
            grammar = json.loads(key_string)["format"]["grammar"]
            first = grammar.split("\n", 1)[0]
            if first.startswith(FAULT):
                return InvalidGrammarObject(first.removeprefix(FAULT))
            values = wire.unpacked(first.removeprefix(HEADER))
            return TwingramGrammar(wire.constraint({**values, "reasoning": "allow"}, self._vocabulary).session())
        except (KeyError, TypeError, ValueError) as error:
            return InvalidGrammarObject(f"the structural tag is none of twingram's detectors: {error}")
        except tg.TwingramError as error:
            return InvalidGrammarObject(str(error))

    def dispatch_json(self, key_string: str) -> BaseGrammarObject:
        try:
            schema = {"type": "object"} if key_string == "$$ANY$$" else json.loads(key_string)
            made = self._format.constraint(response_schema=schema, vocabulary=self._vocabulary)
            return TwingramGrammar(made.session())
        except (ValueError, RecursionError, tg.TwingramError) as error:
            return InvalidGrammarObject(str(error))

    def dispatch_regex(self, key_string: str) -> BaseGrammarObject:
        return InvalidGrammarObject("twingram's grammar backend takes tool calls and JSON Schemas, no regex")

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        return InvalidGrammarObject("twingram's grammar backend takes tool calls and JSON Schemas, no EBNF")


def register() -> None:
    """Make a backend known for each format."""
    add_grammar_backend_choices([f"twingram_{name}" for name in tg.list_formats()])
    for name in tg.list_formats():
        register_grammar_backend(f"twingram_{name}", partial(_made, name))


def _made(name: str, _args: Any, tokenizer: Any, vocab_size: int, _eos_token_ids: Any) -> TwingramGrammarBackend:
    """What SGLang calls to make a backend; the tokens that end a turn are those of the format."""
    return TwingramGrammarBackend(name, tokenizer, vocab_size)
