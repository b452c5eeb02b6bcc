"""What a server holds: back end, compiled requests, threads, metrics, and the limits of its work.

In: the bytes of a request. Out: a generation that is ready to run. Compiling and generating happen in threads of the
service, so that the event loop only moves bytes.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import perf_counter

import twingram as tg

from .backend import Backend
from .body import read_object
from .compiled import Compiled
from .errors import ApiError, of_twingram
from .generation import Generation
from .metrics import Metrics
from .request import ChatRequest, read_request

__all__ = ["Prepared", "Service", "Settings"]


@dataclass(frozen=True, slots=True)
class Settings:
    """`max_requests` in work or waiting, past which clients are told to come back; `threads` of them run at once."""

    max_body_bytes: int = 4 << 20
    max_tokens: int = 4096
    max_requests: int = 256
    threads: int = 64


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request that can be run."""

    request: ChatRequest
    generation: Generation


class Service:
    """Made once a server."""

    def __init__(self, backend: Backend, settings: Settings) -> None:
        self.backend, self.settings = backend, settings
        self._compiled = Compiled(backend)
        self.metrics = Metrics(self._compiled.states, self._compiled.held_bytes)
        self.threads = ThreadPoolExecutor(settings.threads, thread_name_prefix="twingram")
        self.running: set[Generation] = set()
        self._active = 0

    def enter(self) -> None:
        """A request begins (on the event loop); `leave` must follow, unless this raises."""
        if self._active >= self.settings.max_requests:
            raise ApiError("too many requests are being worked on", status=429, code="rate_limit_exceeded")
        self._active += 1
        self.metrics.running.set(self._active)

    def leave(self) -> None:
        self._active -= 1
        self.metrics.running.set(self._active)

    def prepare(self, body: bytes) -> Prepared:
        """Read and compile a request; an `ApiError` says what is wrong with it."""
        start = perf_counter()
        request = read_request(read_object(body))
        if request.model != self.backend.name:
            raise ApiError(
                f"the model {request.model!r} does not exist; this server has {self.backend.name!r}",
                "model", status=404, code="model_not_found",
            )  # fmt: skip
        most = self.settings.max_tokens
        if (request.max_tokens or 0) > most:
            raise ApiError(f"max_tokens is {request.max_tokens}; at most {most} are generated here", "max_tokens")
        try:
            prompt = self.backend.prompt(request.messages, request.tools)
        except tg.RequestError as error:
            raise of_twingram(error, request.names, "messages") from None
        constraint = self._compiled.constraint(request, prompt.tail, request.max_tokens or most)
        generation = Generation(self.backend, self.metrics, request, prompt, constraint)
        self.metrics.prompt_tokens.inc(len(prompt.ids))
        self.metrics.compile.observe(perf_counter() - start)
        return Prepared(request, generation)

    def close(self) -> None:
        """Stop what still runs."""
        for generation in list(self.running):
            generation.stop()
        self.threads.shutdown(wait=True, cancel_futures=True)
