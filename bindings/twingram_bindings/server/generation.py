"""One turn: the back end's tokens through a session, as deltas.

In: a back end, a prompt, a compiled request. Out: deltas as they are decided; afterwards the finish reason and counts.
Invariants: at most `max_tokens` tokens, the stop token not counted; nothing follows a stop sequence; a generation that
is told to stop does so at its next token. Runs in one thread, `stop` may come from another.
Cost: the back end's, and 2 to 3 us a token for the clocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from threading import Event
from time import perf_counter
from typing import Any

import twingram as tg

from .backend import Backend, Prompt
from .metrics import Metrics
from .request import ChatRequest
from .stops import StopText

__all__ = ["Generation"]


class Generation:
    """Made once a request; `deltas` is to be iterated once."""

    def __init__(
        self, backend: Backend, metrics: Metrics, request: ChatRequest, prompt: Prompt, constraint: tg.Constraint
    ) -> None:
        self._backend, self._metrics, self._request, self._prompt = backend, metrics, request, prompt
        self._most = constraint.max_tokens or 0
        self._session = constraint.session()
        self._stop_text = StopText(request.stops)
        self._stopped = Event()
        self._complete = 0
        self._broken = self._cut = False
        self.tokens = 0

    def stop(self) -> None:
        """The client is gone: generate no more."""
        self._stopped.set()

    @property
    def stopped(self) -> bool:
        return self._stopped.is_set()

    def deltas(self) -> Iterator[tg.Delta]:
        for delta in self._stop_text.filter(self._raw()):
            if isinstance(delta, tg.CallEnd):
                self._complete += delta.complete
                self._broken = self._broken or not delta.complete
            yield delta
        yield from self._stop_text.flush()
        self._metrics.generated_tokens.inc(self.tokens)
        self._metrics.calls.inc(self._complete)

    def _raw(self) -> Iterator[tg.Delta]:
        session, metrics, clock = self._session, self._metrics, perf_counter
        with closing(self._tokens()) as tokens:
            while not (session.is_terminated or self._stopped.is_set() or self._is_full()):
                start = clock()
                session.mask()
                masked = clock()
                token = next(tokens)
                chosen = clock()
                if not session.accept_token(token):
                    raise ValueError(f"back end {self._backend.name!r} chose token {token}, which the mask forbids")
                deltas = session.take_deltas()
                self.tokens += not session.is_terminated
                metrics.mask.observe(masked - start)
                metrics.parse.observe(clock() - chosen)
                yield from deltas
        if not (session.is_terminated or self._stopped.is_set()):
            self._cut = True
            next(filter(session.accept_token, session.binding.stops))
            yield from session.take_deltas()

    def _tokens(self) -> Any:
        return self._backend.tokens(self._prompt, self._session, self._request.sampling)

    def _is_full(self) -> bool:
        return self.tokens >= self._most and self._session.is_accepting

    @property
    def finish_reason(self) -> str:
        if self._broken:
            return "length"
        if self._complete:
            return "tool_calls"
        return "length" if self._cut and self._request.response_schema is None else "stop"

    @property
    def usage(self) -> dict[str, int]:
        read = len(self._prompt.ids)
        return {"prompt_tokens": read, "completion_tokens": self.tokens, "total_tokens": read + self.tokens}
