"""Generation with `llama-cpp-python`: a logits processor, and the same constraint as a grammar of its own.

    processor = TwingramLogitsProcessor(constraint)
    llm.create_completion(prompt, logits_processor=LogitsProcessorList([processor]))
    processor.session.message

    llm.create_completion(prompt, grammar=grammar_of(constraint))

In: the ids so far and the scores of the next one, as arrays. Out: scores in which tokens that may not follow are minus
infinity. The processor knows more than the grammar: keys in any order, token budgets, what a control token is; and it
is the parser as well. The vocabulary of a model is read from the model's own file: `twingram.Vocabulary.from_file`.
Nothing of the program is imported but by `grammar_of`.
Cost: a mask and a comparison of ids a token.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

import twingram as tg

__all__ = ["TwingramLogitsProcessor", "grammar_of"]


class TwingramLogitsProcessor:
    """Masks the scores of one generation after the other: a prompt that does not go on from the last ids begins anew.

    `session` is that of the generation at hand; it has accepted all ids up to the last one that was asked about.
    """

    def __init__(self, constraint: tg.Constraint) -> None:
        self.constraint = constraint
        self.reset()

    def reset(self) -> None:
        """Begin anew: the next ids are a prompt."""
        self.session = self.constraint.session()
        self._ids: NDArray[np.intc] | None = None
        self._prompt = 0  # ids of the prompt

    def __call__(self, input_ids: NDArray[np.intc], scores: NDArray[np.single]) -> NDArray[np.single]:
        self.follow(input_ids)
        bits = np.unpackbits(self.session.mask().view(np.uint8), bitorder="little")[: len(scores)]
        return np.where(np.pad(bits, (0, len(scores) - len(bits))), scores, np.single(-np.inf))

    def follow(self, input_ids: NDArray[np.intc]) -> tg.Session:
        """Bring the session to these ids, the prompt's included."""
        known = self._ids
        if known is not None:
            size = min(len(known), len(input_ids))
            differ = np.flatnonzero(known[:size] != input_ids[:size])
            common = int(differ[0]) if len(differ) else size
            if common < self._prompt:
                self.reset()
            else:
                self.session.rollback(max(0, len(known) - common))
                for token in input_ids[common:].tolist():
                    if not self.session.accept_token(token):
                        raise ValueError(f"token {token} was generated, which the mask had forbidden")
        if self._ids is None:
            self._prompt = len(input_ids)
        self._ids = input_ids.copy()
        return self.session


def grammar_of(constraint: tg.Constraint) -> Any:
    """The constraint as a `LlamaGrammar`. Control tokens that are no markers may then stand in texts as their letters,
    which is how that engine reads them."""
    return import_module("llama_cpp").LlamaGrammar.from_string(constraint.export("gbnf"), verbose=False)
