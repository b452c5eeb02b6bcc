"""The command `twingram`: what the library does, from a shell.

In: arguments, files, standard input. Out: JSON or plain lines on standard output. Invariant: exit status 0, or 2 with
one line on standard error that says what was wrong and where. Only argument handling and printing live here; all work
is done through the package's public surface.
"""

from __future__ import annotations

import argparse
import codecs
import io
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from time import perf_counter
from typing import Any, NoReturn

import twingram as tg
from twingram import resources, sampling
from twingram.errors import GrammarError, RequestError, TwingramError

__all__ = ["main"]

_DEMO_TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The forecast of a place.",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "days": {"type": "integer", "minimum": 1, "maximum": 14},
                    "unit": {"enum": ["celsius", "fahrenheit"]},
                },
                "required": ["city", "days"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "send_message",
            "description": "Sends a text to people.",
            "parameters": {
                "type": "object",
                "properties": {
                    "to": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3},
                    "body": {"type": "string", "minLength": 1},
                    "urgent": {"type": "boolean"},
                },
                "required": ["to", "body"],
            },
        },
    },
]


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
        return _fail(_one_line(error))
    except OSError as error:
        return _fail(f"cannot read {error.filename}: {error.strerror}" if error.filename else str(error))
    except KeyboardInterrupt:
        return 130
    return 0


# Arguments


class _Parser(argparse.ArgumentParser):
    """argparse, with errors of one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def _arguments() -> argparse.ArgumentParser:
    known = resources.format_names()
    example = known[0] if known else "NAME"
    parser = _Parser(prog="twingram", description="Forces and reads tool calls in a model's native syntax.")
    parser.add_argument("--version", action="version", version=f"twingram {tg.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)

    demo = _command(commands, "demo", "forced calls on the built-in vocabulary, no model needed", "twingram demo")
    demo.add_argument("--seed", type=int, default=0, help="of the random sampler (default 0)")
    demo.set_defaults(run=_demo)

    parse = _command(
        commands,
        "parse",
        "read model output; print the message as JSON",
        f"twingram parse --format {example} --tools tools.json output.txt",
    )
    _add_common(parse, known)
    parse.add_argument("file", nargs="?", default="-", metavar="FILE", help="the output; - is standard input (default)")
    parse.add_argument("--stream", action="store_true", help="print a delta a line, as soon as it is decided")
    parse.add_argument("--openai", action="store_true", help="print the message in the Chat Completions shape")
    parse.add_argument("--strict", action="store_true", help="accept the canonical form only")
    parse.add_argument("--salvage", action="store_true", help="also read calls that have no marker at all")
    parse.set_defaults(run=_parse)

    sample = _command(
        commands,
        "sample",
        "random turns drawn from the masks, as JSON lines",
        f"twingram sample --format {example} --tools tools.json --tool-choice required -n 20",
    )
    _add_common(sample, known)
    sample.add_argument(
        "--tool-choice", metavar="CHOICE", help="auto, none, required, a tool's name, or a JSON object (default auto)"
    )
    sample.add_argument("-n", type=_positive, default=1, metavar="N", dest="count", help="number of turns (default 1)")
    sample.add_argument("--vocabulary", metavar="FILE", help="tokenizer file (default: the built-in vocabulary)")
    sample.add_argument("--reasoning", choices=("allow", "require", "forbid"), default="allow")
    sample.add_argument("--single", action="store_true", help="at most one call a turn")
    sample.add_argument("--seed", type=int, default=0, help="of the random sampler (default 0)")
    sample.set_defaults(run=_sample)

    formats = _command(commands, "formats", "list the formats at hand", "twingram formats")
    formats.set_defaults(run=_formats)
    return parser


def _command(
    commands: argparse._SubParsersAction[_Parser], name: str, summary: str, example: str
) -> argparse.ArgumentParser:
    return commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _add_common(parser: argparse.ArgumentParser, known: Sequence[str]) -> None:
    listed = ", ".join(known) or "none found"
    parser.add_argument("--format", required=True, help=f"a format's name ({listed}) or a grammar file (*.lark)")
    parser.add_argument("--tools", metavar="FILE", help="tool definitions, a JSON list; - is standard input")
    parser.add_argument("--prompt-tail", default="", metavar="TEXT", help="the end of the prompt, where it matters")


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return value


# Commands


def _formats(_: argparse.Namespace) -> None:
    for name in tg.list_formats():
        print(name)


def _parse(arguments: argparse.Namespace) -> None:
    if arguments.file == "-" and arguments.tools == "-":
        raise RequestError("FILE and --tools cannot both be standard input")
    parser = _load(arguments.format).parser(
        tools=_tools(arguments.tools),
        strict=arguments.strict,
        salvage=arguments.salvage,
        prompt_tail=arguments.prompt_tail,
    )
    for piece in _text(arguments.file):
        _show(parser.feed(piece), arguments.stream)
    _show(parser.finish(), arguments.stream)
    if not arguments.stream:
        print(_json(parser.message.to_openai()) if arguments.openai else _message(parser.message))


def _show(deltas: Sequence[tg.Delta], stream: bool) -> None:
    if stream and deltas:
        for delta in deltas:
            print(_delta(delta))
        sys.stdout.flush()


def _sample(arguments: argparse.Namespace) -> None:
    file = arguments.vocabulary
    vocabulary = tg.Vocabulary.embedded() if file is None else tg.Vocabulary.from_file(file)
    constraint = _load(arguments.format).constraint(
        _tools(arguments.tools),
        tool_choice=_tool_choice(arguments.tool_choice),
        vocabulary=vocabulary,
        parallel_tool_calls=not arguments.single,
        reasoning=arguments.reasoning,
        prompt_tail=arguments.prompt_tail,
    )
    sampler = sampling.Sampler(vocabulary, arguments.seed, _spellings(arguments.format))
    for _ in range(arguments.count):
        walk = sampler.walk(constraint.session())
        text = _json(_decode(vocabulary, walk.tokens))
        print(f'{{"text": {text}, "tokens": {len(walk.tokens)}, "message": {_message(walk.message)}}}', flush=True)


def _demo(arguments: argparse.Namespace) -> None:
    vocabulary = tg.Vocabulary.embedded()
    print(f"{len(_DEMO_TOOLS)} tools, tool_choice=required, {len(vocabulary)} tokens, chosen at random from the masks")
    for name in tg.list_formats():
        fmt = tg.load_format(name)
        start = perf_counter()
        constraint = fmt.constraint(_DEMO_TOOLS, tool_choice="required", vocabulary=vocabulary)
        session = constraint.session()
        session.mask()
        compiled = perf_counter() - start
        walk = sampling.Sampler(vocabulary, arguments.seed, _spellings(name), soft_limit=40).walk(session)
        print(f"\n{name}\n  output   {_decode(vocabulary, walk.tokens)!r}\n  deltas")
        for delta in walk.deltas:
            print(f"    {_delta(delta)}")
        step = _time_of_a_step(constraint, walk.tokens)
        print(f"  message  {_message(walk.message)}")
        print(
            f"  time     {compiled * 1e3:.1f} ms to compile and make the first mask; "
            f"{step * 1e6:.1f} us a token (mask, advance, deltas) over {len(walk.tokens)} tokens, states known"
        )


def _time_of_a_step(constraint: tg.Constraint, tokens: Sequence[int]) -> float:
    """Seconds a token, the best of a few runs over the same turn."""
    best = float("inf")
    for _ in range(5):
        session = constraint.session()
        start = perf_counter()
        for token in tokens:
            session.mask()
            session.accept_token(token)
            session.take_deltas()
        best = min(best, (perf_counter() - start) / max(1, len(tokens)))
    return best


# Input


def _load(name: str) -> tg.Format:
    return tg.Format.from_file(name) if name.endswith(".lark") else tg.load_format(name)


def _spellings(name: str) -> list[str]:
    """The literals of a format's file and of the files beside it, which it may import."""
    path = Path(name) if name.endswith(".lark") else resources.grammar_path(name)
    files = sorted({*path.parent.glob("*.lark"), *resources.grammar_folder().glob("*.lark")})
    return [text for file in files for text in sampling.literals(file.read_text(encoding="utf-8"))]


def _text(name: str) -> Iterator[str]:
    """The text of a file, in the pieces in which it comes; bytes that are no UTF-8 become U+FFFD."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    standard = name == "-"
    with open(sys.stdin.fileno() if standard else name, "rb", buffering=0, closefd=not standard) as file:
        while data := file.read(1 << 16):
            yield decoder.decode(data)
    yield decoder.decode(b"", final=True)


def _tools(name: str | None) -> list[dict[str, Any]] | None:
    if name is None:
        return None
    where = "standard input" if name == "-" else name
    tools = _read_json(sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes(), where)
    if isinstance(tools, dict) and "tools" in tools:  # a request, or an MCP server's answer to tools/list
        tools = tools["tools"]
    if not isinstance(tools, list):
        raise RequestError(f"{where}: tools are a JSON list, not {type(tools).__name__}")
    return tools


def _read_json(data: bytes, where: str) -> Any:
    try:
        return json.loads(data)
    except json.JSONDecodeError as error:
        raise RequestError(f"{where}: not JSON: line {error.lineno} column {error.colno}: {error.msg}") from None
    except UnicodeDecodeError as error:
        raise RequestError(f"{where}: not UTF-8: byte {error.start}") from None
    except RecursionError:
        raise RequestError(f"{where}: nested too deeply") from None


def _tool_choice(text: str | None) -> Any:
    if text is None or text in ("auto", "none", "required"):
        return text
    if text.startswith("{"):
        return _read_json(text.encode(), "--tool-choice")
    return {"type": "function", "function": {"name": text}}


# Output


def _decode(vocabulary: tg.Vocabulary, tokens: Sequence[int]) -> str:
    return b"".join(map(vocabulary.token_bytes, tokens)).decode("utf-8", "replace")


def _delta(delta: tg.Delta) -> str:
    return _json({"kind": delta.kind, **{field.name: getattr(delta, field.name) for field in fields(delta)}})


def _message(message: tg.Message) -> str:
    """The message as JSON. A call's value is the text of its arguments as it stands, so numbers keep their digits."""
    calls = ", ".join(
        f'{{"index": {call.index}, "id": {_json(call.id)}, "name": {_json(call.name)}, '
        f'"arguments": {_json(call.arguments)}, "value": {call.arguments}}}'
        for call in message.calls
    )
    incomplete = [
        {"index": call.index, "id": call.id, "name": call.name, "arguments": call.arguments}
        for call in message.incomplete_calls
    ]
    errors = [{"text": error.text, "reason": error.reason} for error in message.errors]
    return (
        f'{{"content": {_json(message.content)}, "reasoning": {_json(message.reasoning)}, "calls": [{calls}], '
        f'"incomplete_calls": {_json(incomplete)}, "errors": {_json(errors)}}}'
    )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _fail(message: str) -> int:
    print(f"twingram: error: {message}", file=sys.stderr)
    return 2


def _one_line(error: TwingramError) -> str:
    text = str(error)
    if isinstance(error, GrammarError) and error.caret:
        text = text.replace(f"{error.caret}\n", "").replace(error.caret, "")
    return "; ".join(line.strip() for line in text.splitlines() if line.strip())


if __name__ == "__main__":
    sys.exit(main())
