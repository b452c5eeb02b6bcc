"""The routes: POST /v1/chat/completions, GET /v1/models, GET /metrics, and no other.

In: HTTP requests. Out: JSON, server-sent events, or an error in the shape of `errors`. One log line an answer.
Invariant: the event loop reads and writes bytes only; whatever takes time runs in the threads of the service.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from .answers import DONE, completion, event, events
from .backend import Backend
from .body import read_body
from .errors import ApiError
from .generation import Generation
from .logs import logger
from .service import Prepared, Service, Settings
from .streams import GONE, EventStream, unless_gone

__all__ = ["create_app"]

_CHAT = "/v1/chat/completions"
_FAILED = ApiError("the server failed; its log says why", status=500, kind="server_error")


def create_app(backend: Backend, settings: Settings | None = None) -> Starlette:
    """The application for one model."""
    service = Service(backend, settings or Settings())
    routes = _Routes(service)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(service.close)

    app = Starlette(
        routes=[
            Route(_CHAT, routes.chat, methods=["POST"]),
            Route("/v1/models", routes.models, methods=["GET"]),
            Route("/metrics", routes.metrics, methods=["GET"]),
        ],
        exception_handlers={ApiError: routes.refused, HTTPException: routes.no_route, 500: routes.failed},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    app.state.service = service
    return app


@dataclass
class _Record:
    """What is told of one answer, to log and metrics."""

    route: str
    start: float = field(default_factory=perf_counter)
    fields: dict[str, Any] = field(default_factory=dict)


class _Routes:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._started = int(time.time())

    async def models(self, request: Request) -> Response:
        model = {"id": self._service.backend.name, "object": "model", "created": self._started, "owned_by": "twingram"}
        return self._answer(_Record("/v1/models"), {"object": "list", "data": [model]})

    async def metrics(self, request: Request) -> Response:
        return Response(self._service.metrics.text(), media_type=None, headers={"content-type": CONTENT_TYPE_LATEST})

    async def chat(self, request: Request) -> Response:
        service, record = self._service, _Record(_CHAT)
        request.state.record = record
        body = await read_body(request, service.settings.max_body_bytes)
        with ExitStack() as work:
            service.enter()
            work.callback(service.leave)
            loop = asyncio.get_running_loop()
            prepared = await loop.run_in_executor(service.threads, service.prepare, body)
            record.fields.update(_described(prepared))
            generation, name = prepared.generation, service.backend.name
            service.running.add(generation)
            work.callback(self._over, generation, record)
            if prepared.request.stream:
                return self._streamed(prepared, record, work.pop_all())
            made = await unless_gone(request, service.threads, lambda: completion(generation, name), generation.stop)
        if made is not None:
            return self._answer(record, made)
        self._tell(record, GONE)
        return Response(status_code=GONE)

    def _streamed(self, prepared: Prepared, record: _Record, work: ExitStack) -> Response:
        """`work` is what is to be undone when the stream ends."""
        service, generation = self._service, prepared.generation
        pieces = events(generation, service.backend.name, prepared.request.include_usage)

        def done(status: int) -> None:
            work.close()
            self._tell(record, status)

        failed = event(_FAILED.body())
        return EventStream(service.threads, lambda: pieces, stop=generation.stop, done=done, last=DONE, failed=failed)

    def _over(self, generation: Generation, record: _Record) -> None:
        self._service.running.discard(generation)
        record.fields["completion_tokens"] = generation.tokens
        if generation.stopped:
            self._service.metrics.disconnects.inc()
        else:
            record.fields["finish_reason"] = generation.finish_reason

    # -- answers -------------------------------------------------------------------------------------------------------

    def _answer(self, record: _Record, content: dict[str, Any], status: int = 200) -> Response:
        self._tell(record, status)
        data = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
        return Response(data, status_code=status, media_type="application/json")

    def _tell(self, record: _Record, status: int) -> None:
        seconds = perf_counter() - record.start
        self._service.metrics.requests.labels(record.route, str(status)).inc()
        if record.route == _CHAT:
            self._service.metrics.total.observe(seconds)
        fields = {"route": record.route, "status": status, "ms": round(seconds * 1e3, 2), **record.fields}
        logger.log(logging.INFO if status < 500 else logging.ERROR, "request", extra={"fields": fields})

    async def refused(self, request: Request, error: Any) -> Response:
        record = getattr(request.state, "record", None) or _Record(request.url.path)
        record.fields.update({"error": error.message, "param": error.param})
        response = self._answer(record, error.body(), error.status)
        if error.status == 429:
            response.headers["retry-after"] = "1"
        return response

    async def no_route(self, request: Request, error: Any) -> Response:
        what = "is not a route of this server" if error.status_code == 404 else f"does not know {request.method}"
        refusal = ApiError(f"{request.url.path} {what}", status=error.status_code, code="unknown_route")
        response = self._answer(_Record("other"), refusal.body(), error.status_code)
        response.headers.update(error.headers or {})
        return response

    async def failed(self, request: Request, error: Any) -> Response:
        logger.error("failed", exc_info=error)
        record = getattr(request.state, "record", None) or _Record("other")
        return self._answer(record, _FAILED.body(), 500)


def _described(prepared: Prepared) -> dict[str, Any]:
    request = prepared.request
    choice = request.tool_choice
    return {
        "stream": request.stream,
        "tools": len(request.names),
        "tool_choice": choice if choice is None or isinstance(choice, str) else choice.get("type"),
        "prompt_tokens": prepared.generation.usage["prompt_tokens"],
    }
