"""The command `twingram`: what the library does, from a shell.

In: arguments, files, standard input. Out: JSON or plain lines on standard output. Invariant: exit status 0, or 2 with
one line on standard error that says what was wrong and where. Only argument handling and printing live here; all work
is done by the library.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import twingram as tg
from twingram import resources
from twingram.errors import TwingramError
from twingram.export import NOTATIONS

from . import commands
from .demo import demo
from .outputs import one_line
from .serve import add_options, serve

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    arguments = _arguments().parse_args(argv)
    try:
        arguments.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough; keep the interpreter from flushing into the closed pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except TwingramError as error:
        return _fail(one_line(error))
    except OSError as error:
        return _fail(f"cannot read {error.filename}: {error.strerror}" if error.filename else str(error))
    except KeyboardInterrupt:
        return 130
    return 0


def _fail(message: str) -> int:
    print(f"twingram: error: {message}", file=sys.stderr)
    return 2


class _Parser(argparse.ArgumentParser):
    """argparse, with errors of one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def _arguments() -> argparse.ArgumentParser:
    known = resources.format_names()
    example = known[0] if known else "NAME"
    parser = _Parser(prog="twingram", description="Forces and reads tool calls in a model's native syntax.")
    parser.add_argument("--version", action="version", version=f"twingram {tg.__version__}")
    group = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)

    shown = _command(group, "demo", "forced calls on the built-in vocabulary, no model needed", "demo")
    shown.add_argument("--seed", type=int, default=0, help="of the random sampler (default 0)")
    shown.set_defaults(run=demo)

    example = f"--format {example} --tools tools.json"
    parse = _command(group, "parse", "read model output; print the message as JSON", f"parse {example} output.txt")
    _add_common(parse, known)
    parse.add_argument("file", nargs="?", default="-", metavar="FILE", help="the output; - is standard input (default)")
    parse.add_argument("--stream", action="store_true", help="print a delta a line, as soon as it is decided")
    parse.add_argument("--openai", action="store_true", help="print the message in the Chat Completions shape")
    parse.add_argument("--strict", action="store_true", help="accept the canonical form only")
    parse.add_argument("--salvage", action="store_true", help="also read calls that have no marker at all")
    parse.set_defaults(run=commands.parse)

    sample = _command(
        group, "sample", "random turns drawn from the masks, as JSON lines",
        f"sample {example} --tool-choice required -n 20",
    )  # fmt: skip
    _add_request(sample, known)
    sample.add_argument("-n", type=_positive, default=1, metavar="N", dest="count", help="number of turns (default 1)")
    sample.add_argument("--seed", type=int, default=0, help="of the random sampler (default 0)")
    sample.set_defaults(run=commands.sample)

    mask = _command(
        group, "mask", "what may follow a piece of output, and why", f"mask {example} --prefix 'TEXT'"
    )
    _add_request(mask, known)
    mask.add_argument(
        "--prefix", default="", metavar="TEXT",
        help="the output so far, markers written out; - is standard input (default: nothing yet)",
    )  # fmt: skip
    mask.add_argument("-n", type=_positive, default=20, metavar="N", dest="count", help="tokens to show (default 20)")
    mask.set_defaults(run=commands.mask)

    export = _command(
        group, "export", "what a mask allows, as grammar text for another engine",
        f"export {example} --tool-choice required --to {NOTATIONS[0]} --vocabulary tokenizer.json",
    )  # fmt: skip
    _add_request(export, known)
    export.add_argument("--to", required=True, choices=NOTATIONS, help="the engine whose notation it is")
    export.add_argument(
        "--key-order", choices=("declared", "sorted"), default="declared", help="of the keys of objects"
    )
    export.set_defaults(run=commands.export)

    check = _command(group, "check", "a report on a grammar, for its author", "check grammar.lark --svg grammar.svg")
    check.add_argument("file", metavar="FILE", help="a grammar file (*.lark), a format's name, or - for standard input")
    check.add_argument("--svg", metavar="FILE", help="also draw the rules as railroad diagrams")
    check.set_defaults(run=commands.check)

    schema = _command(group, "schema", "what a mask holds of a schema, keyword by keyword", "schema check tools.json")
    schema.add_argument("action", choices=("check",), help="compile the schemas and report on each of their keywords")
    schema.add_argument(
        "file", metavar="FILE", help="tool definitions, or the JSON Schema of an answer; - is standard input"
    )
    schema.add_argument("--format", help="a format's name or a grammar file (default: each format at hand)")
    schema.add_argument(
        "--additional-properties", choices=("declared", "schema"), default="declared",
        help="only declared members are written, or what the schema says (default declared)",
    )  # fmt: skip
    schema.add_argument("--problems", action="store_true", help="leave out what is enforced")
    schema.set_defaults(run=commands.schema)

    served = _command(
        group, "serve", "a server with the Chat Completions interface (extra: server)", "serve --backend random"
    )
    add_options(served)
    served.set_defaults(run=serve)

    formats = _command(group, "formats", "list the formats at hand", "formats")
    formats.set_defaults(run=commands.formats)
    return parser


def _command(
    group: argparse._SubParsersAction[_Parser], name: str, summary: str, example: str
) -> argparse.ArgumentParser:
    return group.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"example:\n  twingram {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _add_request(parser: argparse.ArgumentParser, known: Sequence[str]) -> None:
    _add_common(parser, known)
    parser.add_argument(
        "--tool-choice", metavar="CHOICE", help="auto, none, required, a tool's name, or a JSON object (default auto)"
    )
    parser.add_argument("--vocabulary", metavar="FILE", help="tokenizer file (default: the built-in vocabulary)")
    parser.add_argument(
        "--special-token", action="append", default=[], metavar="TEXT=ID",
        help="this token of the file is that marker of the format; may be given again",
    )  # fmt: skip
    parser.add_argument("--reasoning", choices=("allow", "require", "forbid"), default="allow")
    parser.add_argument("--single", action="store_true", help="at most one call a turn")


def _add_common(parser: argparse.ArgumentParser, known: Sequence[str]) -> None:
    listed = ", ".join(known) or "none found"
    parser.add_argument("--format", required=True, help=f"a format's name ({listed}) or a grammar file (*.lark)")
    parser.add_argument("--tools", metavar="FILE", help="tool definitions, a JSON list; - is standard input")
    parser.add_argument("--prompt-tail", default="", metavar="TEXT", help="the end of the prompt, where it matters")


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of at least 1")
    return int(text)
