"""`twingram serve`: the server, which is an adapter and is fetched by its name when it is asked for.

In: parsed arguments. Out: a running server; or one line that says what to install.
"""

from __future__ import annotations

import argparse
import importlib

import twingram as tg
from twingram import resources

__all__ = ["add_options", "serve"]

_COMMAND = "twingram_bindings.server.command"
_OWN = ("twingram", "twingram_bindings")
_SERVER = ("prometheus-client", "starlette", "uvicorn")  # the extras of these names, as distributions
_MODEL = ("accelerate", "gguf", "torch", "transformers")


def add_options(parser: argparse.ArgumentParser) -> None:
    known = ", ".join(resources.format_names()) or "none found"
    parser.add_argument(
        "--backend", choices=("random", "transformers"), required=True,
        help="random: a seeded sampler over the built-in vocabulary; transformers: a model on this machine",
    )  # fmt: skip
    parser.add_argument("--format", help=f"a format's name ({known}) or a grammar file (random: the first of them)")
    parser.add_argument("--model", metavar="PATH", help="for transformers: a folder or a name that it can load")
    parser.add_argument("--model-file", metavar="NAME", help="for transformers: the GGUF file inside --model")
    parser.add_argument(
        "--special-token", action="append", default=[], metavar="TEXT=ID",
        help="for transformers: this token is that marker of the format; may be given again",
    )  # fmt: skip
    parser.add_argument(
        "--chat-template", metavar="FILE", help="for transformers: a Jinja file, in the place of the tokenizer's own"
    )
    parser.add_argument("--name", help="what clients call the model (random: random; else the end of --model)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1: this machine)")
    parser.add_argument("--port", type=int, default=8000, help="0 takes a free one, which is logged (default 8000)")
    parser.add_argument("--max-tokens", type=int, default=4096, metavar="N", help="of an answer (default 4096)")
    parser.add_argument("--max-body-bytes", type=int, default=4 << 20, metavar="N", help="of a request (default 4 MiB)")
    parser.add_argument("--max-requests", type=int, default=256, metavar="N", help="at once, waiting ones too (256)")
    parser.add_argument("--threads", type=int, default=64, metavar="N", help="answers generated at once (default 64)")
    parser.add_argument("--grace", type=int, default=30, metavar="SECONDS", help="for open answers at the end (30)")
    parser.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info")


def serve(arguments: argparse.Namespace) -> None:
    try:
        command = importlib.import_module(_COMMAND)
        run = command.prepare(arguments)
    except ModuleNotFoundError as error:
        missing = (error.name or "").split(".")[0]
        if missing in _OWN:
            raise
        needed = _MODEL if missing in _MODEL else _SERVER
        raise tg.RequestError(
            f"serve needs the package {missing}: python -m pip install {' '.join(needed)}"
        ) from error
    run()
