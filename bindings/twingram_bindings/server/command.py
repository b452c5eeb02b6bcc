"""The arguments of `twingram serve` as a server.

In: parsed arguments. Out: a function that serves until the process is told to stop; or an error before anything is
opened. The library that runs a model is imported only for the back end that needs it.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable

import twingram as tg
from twingram.cli.inputs import special_token, text_of
from twingram.cli.outputs import note_letters

from .app import create_app
from .backend import Backend
from .randomly import RandomBackend
from .run import run
from .service import Settings

__all__ = ["prepare"]


def prepare(arguments: argparse.Namespace) -> Callable[[], None]:
    settings = Settings(
        max_body_bytes=_positive(arguments, "max_body_bytes"),
        max_tokens=_positive(arguments, "max_tokens"),
        max_requests=_positive(arguments, "max_requests"),
        threads=_positive(arguments, "threads"),
    )
    app = create_app(_backend(arguments), settings)
    level: str = arguments.log_level
    return lambda: run(app, host=arguments.host, port=arguments.port, grace=arguments.grace, level=level)


def _positive(arguments: argparse.Namespace, name: str) -> int:
    value: int = getattr(arguments, name)
    if value < 1:
        raise tg.RequestError(f"--{name.replace('_', '-')} is {value}; it must be at least 1")
    return value


def _backend(arguments: argparse.Namespace) -> Backend:
    if arguments.backend == "random":
        for option in ("model", "model_file", "special_token", "chat_template"):
            if getattr(arguments, option):
                raise tg.RequestError(f"--{option.replace('_', '-')} is for --backend transformers")
        return RandomBackend(arguments.format or tg.list_formats()[0], name=arguments.name or "random")
    if not arguments.model or not arguments.format:
        raise tg.RequestError("--backend transformers needs --model and --format")
    template = "".join(text_of(arguments.chat_template)) if arguments.chat_template else None
    hosted = importlib.import_module(".hosted", __package__)
    backend: Backend = hosted.HostedBackend.load(
        arguments.model,
        arguments.format,
        name=arguments.name,
        model_file=arguments.model_file,
        special_tokens=dict(map(special_token, arguments.special_token)),
        chat_template=template,
    )
    note_letters(backend.format, backend.vocabulary)
    return backend
