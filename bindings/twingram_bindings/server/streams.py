"""From a thread to the event loop, and to a client that may leave.

In: an iterator that runs in a thread. Out: an ASGI response of server-sent events; or a value, or the news that the
client has gone. Invariant: when the client leaves or the server stops, the generation is told so, and its thread ends
at the next token.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

__all__ = ["GONE", "EventStream", "unless_gone"]

GONE = 499  # in logs and metrics only: nobody is there to read it

_T = TypeVar("_T")
_HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]


async def unless_gone(
    request: Request, executor: Executor, work: Callable[[], _T], stop: Callable[[], None]
) -> _T | None:
    """What `work` returns; None if the client left before, and `stop` has been called."""
    job = asyncio.get_running_loop().run_in_executor(executor, work)
    gone = asyncio.ensure_future(_left(request.receive))
    waiting: set[asyncio.Future[Any]] = {job, gone}
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        return await job if job.done() else None
    finally:
        gone.cancel()
        if not job.done():
            stop()
            job.cancel()


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class EventStream(Response):
    """Sends what `make` yields in a thread, and `last`; or `failed` in its place, where it raises.

    `done` is called at the end, with the status that the answer would have had: 200, 500, or 499 if the client left
    before all was made.
    """

    def __init__(
        self,
        executor: Executor,
        make: Callable[[], Iterator[bytes]],
        *,
        stop: Callable[[], None],
        done: Callable[[int], None],
        last: bytes,
        failed: bytes,
    ) -> None:
        super().__init__(status_code=200)
        self._executor, self._make, self._stop, self._done = executor, make, stop, done
        self._last, self._failed = last, failed
        self._complete = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        sending = asyncio.ensure_future(self._send(send))
        gone = asyncio.ensure_future(_left(receive))
        try:
            await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                await sending
        finally:
            gone.cancel()
            if not sending.done():
                sending.cancel()
            if self._complete:
                self._done(200)
            elif sending.done():
                self._done(500)
            else:
                self._stop()
                self._done(GONE)

    async def _send(self, send: Send) -> None:
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()

        def work() -> None:
            try:
                for piece in self._make():
                    loop.call_soon_threadsafe(queue.put_nowait, piece)
            finally:
                loop.call_soon_threadsafe(queue.put_nowait, None)

        job = loop.run_in_executor(self._executor, work)
        while (piece := await queue.get()) is not None:
            pieces = [piece]
            while not queue.empty():
                following = queue.get_nowait()
                if following is None:
                    queue.put_nowait(None)
                    break
                pieces.append(following)
            await send({"type": "http.response.body", "body": b"".join(pieces), "more_body": True})
        await asyncio.wait({job})
        self._complete = job.exception() is None
        last = self._last if self._complete else self._failed
        await send({"type": "http.response.body", "body": last, "more_body": False})
        await job
