"""`twingram serve`: tool calls with the Chat Completions interface, forced and parsed by Twingram.

    backend = RandomBackend("gemma4")
    app = create_app(backend, Settings())     # any ASGI server can run it
    run(app, host="127.0.0.1", port=8000)     # or uvicorn, with graceful shutdown

Three routes: POST /v1/chat/completions, GET /v1/models, GET /metrics. Needs the extra `twingram[server]`.
"""

from __future__ import annotations

from .app import create_app
from .backend import Backend, Prompt, Sampling
from .randomly import RandomBackend
from .run import run
from .service import Service, Settings

__all__ = ["Backend", "Prompt", "RandomBackend", "Sampling", "Service", "Settings", "create_app", "run"]
