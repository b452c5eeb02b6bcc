"""Masks of Twingram inside vLLM's sampler, as a logits processor; both of its interfaces in one class.

In: a batch of logits, and per request the argument that the tool parser (`twingram_FORMAT_masks`) or a client put into
`extra_args`. Out: the same logits, forbidden tokens at minus infinity. Requests without the argument are left alone.
Invariants: a row's mask is that of the tokens which stand before it, draft tokens included; a state that cannot be
known is an error, never an unmasked row.
Cost: a mask a row on the CPU and one copy of the packed rows to the device. Where the newer runner is in use, the
tokens of the constrained requests are copied from the device first. Written against vLLM 0.33.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from vllm.v1.sample.logits_processor.interface import LogitsProcessor as BatchProcessor
from vllm.v1.sample.logits_processor.interface import MoveDirectionality
from vllm.v1.worker.gpu.sample.logits_processor.interface import LogitsProcessor as SlotProcessor

import twingram as tg

from .. import wire
from . import requests

__all__ = ["TwingramLogitsProcessor"]

_UNKNOWN = -1  # stands for a token that has been sampled and not yet copied to the host


@dataclass
class _Turn:
    """One constrained request: its session, and how many of its output tokens the session has."""

    session: tg.Session
    output: list[int] = field(default_factory=list)
    taken: int = 0

    def follow(self, tokens: list[int]) -> None:
        for token in tokens[self.taken :]:
            if token == _UNKNOWN:
                raise RuntimeError(
                    "twingram: the sampled tokens have not arrived yet; serve with --no-async-scheduling, or name the "
                    "processor in --logits-processors, which makes vLLM wait for them"
                )
            if not self.session.is_terminated and not self.session.accept_token(token):
                raise RuntimeError(f"twingram: token {token} was sampled against its mask")
            self.taken += 1


class TwingramLogitsProcessor(BatchProcessor, SlotProcessor):  # type: ignore[misc]
    """Made once a worker. `second` is the device, or for the newer runner the state of its requests."""

    def __init__(self, vllm_config: Any, second: Any, is_pin_memory: bool = False) -> None:
        self._config = vllm_config
        self._states = second if hasattr(second, "all_token_ids") else None
        self.device = getattr(second, "device", second)
        self._turns: dict[int, _Turn] = {}
        self._vocabulary: tg.Vocabulary | None = None

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Refuse a malformed argument when the request arrives."""
        argument = (sampling_params.extra_args or {}).get(requests.ARGUMENT)
        if argument is not None:
            wire.unpacked(argument)

    def is_argmax_invariant(self) -> bool:
        return False

    # -- rows are requests ---------------------------------------------------------------------------------------------

    def update_state(self, batch_update: Any) -> None:
        if batch_update is None:
            return
        for index in batch_update.removed:
            self._turns.pop(index, None)
        for index, params, _prompt, output in batch_update.added:
            self._begin(index, params, output)
        for source, target, direction in batch_update.moved:
            moved, other = self._turns.pop(source, None), self._turns.pop(target, None)
            if moved is not None:
                self._turns[target] = moved
            if other is not None and direction == MoveDirectionality.SWAP:
                self._turns[source] = other

    # -- rows are draft tokens -----------------------------------------------------------------------------------------

    def add_request(self, req_idx: int, sampling_params: Any) -> bool:
        self._begin(req_idx, sampling_params, [])
        return req_idx in self._turns

    # -- both ----------------------------------------------------------------------------------------------------------

    def apply(self, logits: torch.Tensor, ctx: Any = None) -> torch.Tensor:
        if not self._turns:
            return logits
        rows, masks = self._batch_rows() if ctx is None else self._slot_rows(ctx)
        if not rows:
            return logits
        allowed = np.unpackbits(np.stack(masks).view(np.uint8), axis=1, bitorder="little")
        forbidden = torch.from_numpy(allowed[:, : logits.shape[1]] == 0)
        if forbidden.shape[1] < logits.shape[1]:  # logits are padded past the vocabulary
            forbidden = torch.nn.functional.pad(forbidden, (0, logits.shape[1] - forbidden.shape[1]), value=True)
        at = torch.tensor(rows, device=logits.device)
        logits[at] = logits[at].masked_fill(forbidden.to(logits.device, non_blocking=True), float("-inf"))
        return logits

    def _batch_rows(self) -> tuple[list[int], list[Any]]:
        for turn in self._turns.values():
            turn.follow(turn.output)
        return list(self._turns), [turn.session.mask() for turn in self._turns.values()]

    def _slot_rows(self, ctx: Any) -> tuple[list[int], list[Any]]:
        slots = ctx.expanded_idx_mapping.tolist()
        if not self._turns.keys() & set(slots):
            return [], []
        places, fed, positions = ctx.expanded_local_pos.tolist(), ctx.input_ids.tolist(), ctx.pos.tolist()
        rows: list[int] = []
        masks: list[Any] = []
        drafts: dict[int, list[int]] = {}
        for row, (slot, place, token, position) in enumerate(zip(slots, places, fed, positions, strict=True)):
            turn = self._turns.get(slot)
            if turn is None:
                continue
            if place == 0:
                self._catch_up(turn, slot, position + 1)
                drafts[slot] = []
            else:
                drafts[slot].append(token)
            mask = _mask_after(turn.session, drafts[slot])
            if mask is not None:
                rows.append(row)
                masks.append(mask)
        return rows, masks

    def _catch_up(self, turn: _Turn, slot: int, length: int) -> None:
        """Give the session the committed tokens of its slot, of which there are `length` with the prompt."""
        states = self._states
        assert states is not None
        begin = int(states.prompt_len.np[slot])
        turn.follow([0] * turn.taken + states.all_token_ids.gpu[slot, begin + turn.taken : length].tolist())

    def _begin(self, index: int, params: Any, output: list[int]) -> None:
        self._turns.pop(index, None)
        argument = (getattr(params, "extra_args", None) or {}).get(requests.ARGUMENT)
        if argument is not None:
            compiled = wire.constraint(wire.unpacked(argument), self._loaded())
            self._turns[index] = _Turn(compiled.session(), output)

    def _loaded(self) -> tg.Vocabulary:
        if self._vocabulary is None:
            from vllm.tokenizers import cached_tokenizer_from_config  # noqa: PLC0415 - loads the model's files

            model = self._config.model_config
            tokenizer = cached_tokenizer_from_config(model)
            self._vocabulary = tg.Vocabulary.from_transformers(tokenizer, size=model.get_vocab_size())
        return self._vocabulary


def _mask_after(session: tg.Session, drafts: list[int]) -> Any:
    """The mask after these draft tokens; None behind one that is refused anyway, for nothing is sampled there."""
    taken = session.accept_tokens(drafts)
    mask = session.mask() if taken == len(drafts) else None
    session.rollback(taken)
    return mask
