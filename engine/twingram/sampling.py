"""Random walks through the masks: what a model without any knowledge would write under a constraint.

In: a session and a seeded generator. Out: the tokens of a turn that ends, its deltas and its message. Invariant: every
token was taken from the session's own mask. A uniform choice would hardly ever end (in a text region one token in a
thousand leads towards the closer), so a share of the steps, and every step after `soft_limit` tokens, goes downhill:
to a token that brings the shortest end nearer. Cost: a downhill step tries each candidate on a fork; where the mask is
wide the candidates are the special tokens and those that spell the format's own literals.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from . import resources
from .grammar.directives import unquoted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .session.deltas import Delta
    from .session.message import Message
    from .session.session import Session
    from .tokens.vocabulary import Vocabulary

__all__ = ["Sampler", "Walk", "literals", "spellings"]

_LITERAL = re.compile(r'"(?:[^"\\\n]|\\.)+"')
_WIDE = 256  # a mask with more tokens is searched through the candidates only
_ENDING = 0.5  # share of the accepting states in which the turn ends
_DOWNHILL = 0.1  # share of the steps that go towards the end
_MARKING = 0.03  # share of the steps that take a special token where one is allowed
_READABLE = 0.9  # share of the free steps that keep to printable ASCII


@dataclass(frozen=True, slots=True)
class Walk:
    """One sampled turn. `ended` is false only if the hard limit came first."""

    tokens: tuple[int, ...]
    deltas: tuple[Delta, ...]
    message: Message
    ended: bool


def spellings(name: str) -> list[str]:
    """The literals of a format (its name or its grammar file), and of the files beside it, which it may import."""
    path = Path(name) if resources.is_path(name) else resources.grammar_path(name)
    files = sorted({*path.parent.glob("*.lark"), *resources.grammar_folder().glob("*.lark")})
    return [text for file in files for text in literals(file.read_text(encoding="utf-8"))]


def literals(grammar: str) -> Iterator[str]:
    """The string literals of a grammar file's text; a few that only look like literals do no harm here."""
    for line in grammar.splitlines():
        if line.lstrip().startswith("//"):
            continue
        yield from map(unquoted, _LITERAL.findall(line))


class Sampler:
    """Draws walks over one vocabulary; `spellings` are texts that lead to an end, such as a format's literals."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        seed: int,
        spellings: Iterable[str],
        *,
        soft_limit: int = 80,
        hard_limit: int = 4000,
    ) -> None:
        self._random = Random(seed)
        self._soft_limit, self._hard_limit = soft_limit, hard_limit
        self._special = np.zeros(len(vocabulary), dtype=bool)
        self._special[[i for i in vocabulary.special_tokens.values() if i < len(vocabulary)]] = True
        self._steering = self._special.copy()
        for text in {spelling[start:] for spelling in spellings for start in range(len(spelling))}:
            self._steering[[i for i in vocabulary.encode(text) if i < len(vocabulary)]] = True
        readable = (_is_readable(vocabulary.token_bytes(i)) for i in range(len(vocabulary)))
        self._readable = np.fromiter(readable, dtype=bool, count=len(vocabulary)) & ~self._special

    def walk(self, session: Session) -> Walk:
        """Walk from the session's state to the end of the turn."""
        tokens: list[int] = []
        deltas: list[Delta] = []
        while not session.is_terminated and len(tokens) < self._hard_limit:
            token = self.step(session, len(tokens))
            session.accept_token(token)
            tokens.append(token)
            deltas.extend(session.take_deltas())
        return Walk(tuple(tokens), tuple(deltas), session.message, ended=session.is_terminated)

    def step(self, session: Session, count: int) -> int:
        """The next token after `count` of them; it is not accepted yet."""
        landing = count >= self._soft_limit
        if session.is_accepting and (landing or self._random.random() < _ENDING):
            stop = self._stop(session)
            if stop is not None:
                return stop
        return self._next(session, landing=landing)

    def seeded(self, seed: int) -> Sampler:
        """A sampler with a beginning of its own that shares this one's tables."""
        other = copy(self)
        other._random = Random(seed)
        return other

    def _next(self, session: Session, *, landing: bool) -> int:
        allowed = session.allowed_tokens()
        if landing or self._random.random() < _DOWNHILL:
            return self._downhill(session, allowed)
        marks = allowed[self._special[allowed]]
        if len(marks) and self._random.random() < _MARKING:
            return self._any(marks)
        readable = allowed[self._readable[allowed]]
        return self._any(readable if len(readable) and self._random.random() < _READABLE else allowed)

    def _downhill(self, session: Session, allowed: NDArray[np.int32]) -> int:
        """A token after which the end is nearest; any of those that are equally good."""
        if len(allowed) > _WIDE:
            steering = allowed[self._steering[allowed]]
            nearest, best = self._nearest(session, steering if len(steering) else allowed[:_WIDE])
            if best and nearest < session.min_tokens_to_end():
                return self._random.choice(best)
        _, best = self._nearest(session, allowed)  # the way on begins with no literal of the format
        return self._random.choice(best) if best else self._any(allowed)

    def _nearest(self, session: Session, candidates: NDArray[np.int32]) -> tuple[int, list[int]]:
        """The least distance from the end that a candidate leads to, and the candidates that do."""
        probe = session.fork()
        nearest = -1
        best: list[int] = []
        for token in candidates.tolist():
            probe.accept_token(token)
            distance = probe.min_tokens_to_end()
            stopped = probe.is_terminated
            probe.rollback(1)
            if stopped and len(candidates) > 1:
                continue  # where the turn may end is `_stop`'s decision
            if not best or distance < nearest:
                nearest, best = distance, [token]
            elif distance == nearest:
                best.append(token)
        return nearest, best

    def _stop(self, session: Session) -> int | None:
        """A stop token that is allowed here, if the format has any."""
        allowed = session.allowed_tokens()
        probe = session.fork()
        for token in allowed[self._special[allowed]].tolist():
            probe.accept_token(token)
            stopped = probe.is_terminated
            probe.rollback(1)
            if stopped:
                return int(token)
        return None

    def _any(self, ids: NDArray[np.int32]) -> int:
        return int(ids[self._random.randrange(len(ids))])


def _is_readable(data: bytes) -> bool:
    return bool(data) and all(0x20 <= byte < 0x7F for byte in data)
