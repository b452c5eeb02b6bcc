"""Shared by tests and benchmarks: turns under a budget, by a sampler that stays inside strings as long as it may.

In: sessions with `max_tokens`. Out: how many tokens a turn took, and how many drafts were tried on the way. Invariant
that is checked at every token: what is left of the budget is enough for the nearest end. Near the end of the budget
speculative drafts are validated, accepted and rolled back, which must change nothing.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import twingram as tg

__all__ = ["Lander", "least_tokens"]

_NEAR = 12  # tokens before the end of the budget where drafts begin
_OFTEN = 0.3
_LONGEST = 6  # tokens of a draft


def least_tokens(constraint: tg.Constraint) -> int:
    """The smallest budget that a request of its own kind is not refused for."""
    return constraint.session().min_tokens_to_end()


class Lander:
    """Draws turns over one vocabulary."""

    def __init__(self, vocabulary: tg.Vocabulary, rng: random.Random) -> None:
        self.size, self.rng, self.drafts = len(vocabulary), rng, 0
        spelt = [b"<" if vocabulary.is_special(i) else vocabulary.token_bytes(i) for i in range(self.size)]
        self.inside = np.array([b"<" not in data and b'"' not in data for data in spelt])  # these close no string

    def land(self, session: tg.Session) -> int:
        """Go on to the end of the turn; how many tokens it took, the stop token not counted."""
        budget, taken = session.constraint.max_tokens, 0
        assert budget is not None
        while True:
            assert session.min_tokens_to_end() <= budget - taken, "the end is further away than the budget reaches"
            if budget - taken <= _NEAR and self.rng.random() < _OFTEN:
                self._draft(session)
            token = self.next(session)
            assert session.accept_token(token), f"token {token} is in the mask and not accepted"
            if session.is_terminated:
                return taken
            taken += 1

    def next(self, session: tg.Session) -> int:
        """Text that closes no string if there is any, else what goes on, else the end."""
        allowed = session.allowed_tokens()
        for _ in range(8):  # where text may follow, nearly all of it stays inside
            token = int(allowed[self.rng.randrange(len(allowed))])
            if self.inside[token]:
                return token
        staying = allowed[self.inside[allowed]]
        if not len(staying):
            stops = session.constraint.binding.stops
            staying = np.array([token for token in allowed.tolist() if token not in stops], dtype=allowed.dtype)
        some = staying if len(staying) else allowed
        return int(some[self.rng.randrange(len(some))])

    def _draft(self, session: tg.Session) -> None:
        """Most drafts are good, some hold a token that may be wrong."""
        before, probe, draft, good = _seen(session), session.fork(), list[int](), 0
        for _ in range(self.rng.randint(1, _LONGEST)):
            if probe.is_terminated:
                break
            draft.append(self.next(probe) if self.rng.random() < 0.8 else self.rng.randrange(self.size))
            if not probe.accept_token(draft[-1]):
                break
            good += 1
        assert session.validate_tokens(draft) == good, draft
        assert _seen(session) == before, "validating changed the session"
        assert session.accept_tokens(draft) == good, draft
        assert session.text == probe.text
        session.rollback(good)
        assert _seen(session) == before, "rolling back did not restore the session"
        self.drafts += 1


def _seen(session: tg.Session) -> Any:
    return session.mask().tobytes(), session.min_tokens_to_end(), session.text, session.is_terminated
