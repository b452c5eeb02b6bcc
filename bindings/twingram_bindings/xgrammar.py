"""Sessions with the surface of `xgrammar`, for engines that were written for it: swap the import.

    compiler = GrammarCompiler(vocabulary)
    compiled = compiler.compile_grammar({"format": "gemma4", "tools": tools, "tool_choice": "required"})
    matcher = GrammarMatcher(compiled)
    bitmask = allocate_token_bitmask(1, len(vocabulary))
    matcher.fill_next_token_bitmask(bitmask)
    apply_token_bitmask_inplace(logits, bitmask)

In: a request in the place of grammar text: a mapping (or its JSON text) of `format` and the arguments of
`Format.constraint`; or a `Constraint`. Out: the names, arguments and results that engines rely on. `matcher.session` is
the session behind a matcher, which is the parser as well.
Differences: after a stop token only stop tokens are allowed, and masks may still be asked for; forced text ends where a
token begins that is no text; a text is accepted by its tokens, and counts as one step of a rollback, as there.
Nothing of `xgrammar` is imported; tensors need `torch`, masks may also be numpy arrays.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import twingram as tg

__all__ = [
    "BatchGrammarMatcher",
    "CompiledGrammar",
    "GrammarCompiler",
    "GrammarMatcher",
    "allocate_token_bitmask",
    "apply_token_bitmask_inplace",
    "get_bitmask_shape",
    "reset_token_bitmask",
]


class CompiledGrammar:
    """A constraint under the name that engines know."""

    def __init__(self, constraint: tg.Constraint) -> None:
        self.constraint = constraint

    @property
    def memory_size_bytes(self) -> int:
        return self.constraint.memory_usage()

    @property
    def grammar(self) -> str:
        """The same language as text; `ExportError` if it has none."""
        return self.constraint.export("xgrammar")


class GrammarCompiler:
    """Compiles requests over one vocabulary. What is kept for later requests is shared by the whole process."""

    def __init__(self, vocabulary: tg.Vocabulary) -> None:
        self.vocabulary = vocabulary

    def compile_grammar(self, grammar: str | Mapping[str, Any]) -> CompiledGrammar:
        """`grammar`: `{"format": NAME, "tools": [...], "tool_choice": ...}` and other options of a constraint."""
        request = json.loads(grammar) if isinstance(grammar, str) else dict(grammar)
        if not isinstance(request, dict) or not isinstance(request.get("format"), str):
            raise tg.RequestError('a request is an object with "format", and the options of a constraint')
        fmt = tg.load_format(request.pop("format"))
        return CompiledGrammar(fmt.constraint(vocabulary=self.vocabulary, **request))


class GrammarMatcher:
    """One generation."""

    def __init__(
        self,
        compiled_grammar: CompiledGrammar | tg.Constraint,
        *,
        override_stop_tokens: int | list[int] | None = None,
        terminate_without_stop_token: bool = False,
        max_rollback_tokens: int = -1,
        default_temperature: float | None = None,
    ) -> None:
        compiled = compiled_grammar
        constraint = compiled.constraint if isinstance(compiled, CompiledGrammar) else compiled
        stops = [override_stop_tokens] if isinstance(override_stop_tokens, int) else override_stop_tokens
        if stops is not None and set(stops) != constraint.binding.stops:
            raise tg.RequestError("stop tokens are compiled in: pass stop_tokens= with the request instead")
        self.session = constraint.session()
        self._early = terminate_without_stop_token
        self._temperature = default_temperature
        self._steps: list[int] = []  # tokens of each step

    # -- forward and back ----------------------------------------------------------------------------------------------

    def accept_token(self, token_id: int, *, debug_print: bool = False) -> bool:
        accepted = self.session.accept_token(token_id)
        if accepted:
            self._steps.append(1)
        return accepted

    def accept_string(self, input_str: str | bytes, *, debug_print: bool = False) -> bool:
        """The markers in it count as their tokens. All of it, or nothing changes."""
        try:
            text = input_str if isinstance(input_str, str) else input_str.decode()
        except UnicodeDecodeError:
            return False
        tokens = self.session.constraint.vocabulary.encode(text)
        count = self.session.accept_tokens(tokens)
        if count < len(tokens):
            self.session.rollback(count)
            return False
        self._steps.append(count)
        return True

    def rollback(self, num_tokens: int = 1) -> None:
        if not 0 <= num_tokens <= len(self._steps):
            raise ValueError(f"cannot roll back {num_tokens} steps: {len(self._steps)} have been taken")
        if num_tokens:
            self.session.rollback(sum(self._steps[-num_tokens:]))
            del self._steps[-num_tokens:]

    def reset(self) -> None:
        self.session.reset()
        self._steps.clear()

    def fork(self) -> GrammarMatcher:
        copy = GrammarMatcher.__new__(GrammarMatcher)
        copy.session, copy._early, copy._temperature = self.session.fork(), self._early, self._temperature
        copy._steps = self._steps[:]
        return copy

    # -- masks ---------------------------------------------------------------------------------------------------------

    def fill_next_token_bitmask(self, bitmask: Any, index: int = 0, *, debug_print: bool = False) -> bool:
        """Whether the mask has to be applied: always, since no state allows every token."""
        self.session.fill_bitmask(bitmask, index)
        return True

    def find_jump_forward_string(self) -> str:
        if self.session.is_terminated:
            return ""
        state, run = self.session.state, bytearray()
        while 0 < state.first < 1 << 256 and not state.first & (state.first - 1):
            byte = state.first.bit_length() - 1
            step = state.step(byte)
            if step is None:
                break
            run.append(byte)
            state = step.state
        return run.decode("utf-8", "ignore")  # a character that is not whole is left for the next time

    def traverse_draft_tree(
        self,
        retrieve_next_token: Any,
        retrieve_next_sibling: Any,
        draft_tokens: Any,
        token_bitmask: Any,
        time_threshold: float = -1.0,
        temperatures: Any = None,
    ) -> bool:
        """The masks of all nodes of a tree of drafts; node 0 is the last token, which has been accepted. Nothing else
        changes. False if it took longer than `time_threshold` seconds (none, if that is not positive)."""
        children, siblings = retrieve_next_token.tolist(), retrieve_next_sibling.tolist()
        tokens = draft_tokens.tolist()
        if temperatures is not None:
            temperatures.fill_(-1.0)
        begin = time.monotonic()
        todo = [(0, self.session)]
        while todo:
            if 0 < time_threshold < time.monotonic() - begin:
                return False
            node, session = todo.pop()
            session.fill_bitmask(token_bitmask, node)
            if temperatures is not None and self._temperature is not None:
                temperatures[node] = self._temperature
            child = children[node]
            while child != -1:
                onward = session.fork()
                if onward.accept_token(tokens[child]):
                    todo.append((child, onward))
                child = siblings[child]
        return True

    # -- where it stands -----------------------------------------------------------------------------------------------

    def is_terminated(self) -> bool:
        return self.session.is_terminated or (self._early and self.session.is_accepting)

    def is_completed(self) -> bool:
        """Whether the turn may end here."""
        return self.session.is_accepting

    def get_captures(self, *, deduplicate: bool = True) -> list[tuple[str, bytes]]:
        """None: what was generated is read by the session, `matcher.session.message`."""
        return []

    @property
    def max_rollback_tokens(self) -> int:
        return -1

    @property
    def stop_token_ids(self) -> list[int]:
        return sorted(self.session.binding.stops)

    @property
    def temperature(self) -> float | None:
        return self._temperature


class BatchGrammarMatcher:
    """Steps for several matchers, one after the other: a mask here is a row that is copied."""

    def __init__(self, max_threads: int | str = "auto") -> None:
        """`max_threads` is not needed."""

    def batch_fill_next_token_bitmask(
        self,
        matchers: Sequence[GrammarMatcher],
        bitmask: Any,
        indices: Sequence[int] | None = None,
        debug_print: bool = False,
    ) -> None:
        for index, matcher in zip(indices or range(len(matchers)), matchers, strict=True):
            matcher.fill_next_token_bitmask(bitmask, index)

    @staticmethod
    def batch_accept_token(
        matchers: Sequence[GrammarMatcher], tokens: Sequence[int], debug_print: bool = False  # noqa: ARG004 - as there
    ) -> list[bool]:
        return [matcher.accept_token(token) for matcher, token in zip(matchers, tokens, strict=True)]

    @staticmethod
    def batch_accept_string(
        matchers: Sequence[GrammarMatcher], strings: Sequence[str | bytes], debug_print: bool = False  # noqa: ARG004
    ) -> list[bool]:
        return [matcher.accept_string(text) for matcher, text in zip(matchers, strings, strict=True)]

    @staticmethod
    def batch_rollback(matchers: Sequence[GrammarMatcher], num_tokens: int | Sequence[int] = 1) -> None:
        counts = [num_tokens] * len(matchers) if isinstance(num_tokens, int) else num_tokens
        for matcher, count in zip(matchers, counts, strict=True):
            matcher.rollback(count)

    @staticmethod
    def batch_fill_temperature(
        matchers: Sequence[GrammarMatcher], temperatures: Any, indices: Sequence[int] | None = None
    ) -> None:
        for index, matcher in zip(indices or range(len(matchers)), matchers, strict=True):
            temperatures[index] = -1.0 if matcher.temperature is None else matcher.temperature


# -- masks as tensors --------------------------------------------------------------------------------------------------


def get_bitmask_shape(batch_size: int, vocab_size: int) -> tuple[int, int]:
    return batch_size, -(-vocab_size // 32)


def allocate_token_bitmask(batch_size: int, vocab_size: int) -> Any:
    """A tensor of int32 on the CPU, all bits set."""
    torch: Any = import_module("torch")
    return torch.full(get_bitmask_shape(batch_size, vocab_size), -1, dtype=torch.int32)


def reset_token_bitmask(bitmask: Any) -> None:
    bitmask.fill_(-1)


def apply_token_bitmask_inplace(
    logits: Any,
    bitmask: Any,
    *,
    vocab_size: int | None = None,
    indices: Sequence[int] | None = None,
    backend: str = "auto",  # noqa: ARG001 - one way suffices
) -> None:
    """Minus infinity where a bit is 0, on the device of both. Scores past the mask, or past `vocab_size`, are left."""
    torch: Any = import_module("torch")
    if bitmask.device != logits.device:
        raise ValueError(f"logits are on {logits.device}, the bitmask is on {bitmask.device}")
    size = min(logits.shape[-1], bitmask.shape[-1] * 32) if vocab_size is None else vocab_size
    rows, masks = (logits, bitmask) if logits.ndim > 1 else (logits[None], bitmask.reshape(1, -1))
    for row in range(len(masks)) if indices is None else indices:
        bits = masks[row, :, None] >> torch.arange(32, dtype=torch.int32, device=logits.device) & 1
        rows[row, :size].masked_fill_(bits.reshape(-1)[:size] == 0, -float("inf"))
