"""What runs the model: a prompt and a session give token ids.

In: the messages of a request. Out: a `Prompt`, and one token id after the other.
Invariant: each token is chosen from the session's mask as it stands; whoever iterates accepts it into the session
before the next one is asked for, and closes the iterator when the client is gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import twingram as tg

__all__ = ["Backend", "Prompt", "Sampling"]


@dataclass(frozen=True, slots=True)
class Prompt:
    """`ids`: what the model reads. `tail`: the end of its text, which decides where the turn begins."""

    ids: Sequence[int]
    tail: str = ""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a token is chosen among those that are allowed. `seed` None: another choice each time."""

    temperature: float = 1.0
    top_p: float = 1.0
    seed: int | None = None


class Backend(Protocol):
    """A model, the format it writes and the vocabulary it writes it in."""

    @property
    def name(self) -> str:
        """What clients call the model."""

    @property
    def format(self) -> tg.Format: ...

    @property
    def vocabulary(self) -> tg.Vocabulary: ...

    def prompt(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None) -> Prompt:
        """The messages as the model reads them. `RequestError` for what it cannot be given."""

    def tokens(self, prompt: Prompt, session: tg.Session, sampling: Sampling) -> Iterator[int]:
        """Token ids without end, each from `session.mask()`. Runs in a thread of its own for each request."""
