"""The server process: uvicorn, logs as JSON lines, an orderly end.

In: an application and an address. Out: nothing; returns when the process is told to stop. On SIGTERM or SIGINT no new
connection is taken, answers under way have `grace` seconds, then their generations are stopped.
"""

from __future__ import annotations

import logging
import sys

import uvicorn
from starlette.applications import Starlette

from .logs import JsonLines, logger

__all__ = ["run"]


def run(app: Starlette, *, host: str = "127.0.0.1", port: int = 8000, grace: int = 30, level: str = "info") -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for log in (logger, logging.getLogger("uvicorn")):
        log.handlers, log.propagate = [handler], False
        log.setLevel(level.upper())
    config = uvicorn.Config(
        app, host=host, port=port, log_config=None, access_log=False, server_header=False, lifespan="on",
        timeout_graceful_shutdown=grace,
    )  # fmt: skip
    uvicorn.Server(config).run()
