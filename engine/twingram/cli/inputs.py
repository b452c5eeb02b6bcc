"""What a command is given: formats, tools, texts, choices.

In: arguments. Out: values; `RequestError` says in one line which file or argument is wrong and where. `-` is standard
input.
"""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import twingram as tg
from twingram import resources
from twingram.errors import RequestError
from twingram.grammar.rules import Grammar
from twingram.grammar.source import load as load_grammar
from twingram.grammar.source import load_file
from twingram.sampling import spellings

__all__ = [
    "grammar",
    "load",
    "read_json",
    "schemas_of",
    "special_token",
    "spellings",
    "text_of",
    "tool_choice_of",
    "tools_of",
]


def load(name: str) -> tg.Format:
    return tg.Format.from_file(name) if resources.is_path(name) else tg.load_format(name)


def grammar(name: str) -> Grammar:
    """A grammar that nothing has been checked of: of a format, from a file, or from standard input."""
    if name == "-":
        return load_grammar("".join(text_of(name)), "<standard input>")
    return load_file(name if resources.is_path(name) else resources.grammar_path(name))


def text_of(name: str) -> Iterator[str]:
    """The text of a file, in the pieces in which it comes; bytes that are no UTF-8 become U+FFFD."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    standard = name == "-"
    with open(sys.stdin.fileno() if standard else name, "rb", buffering=0, closefd=not standard) as file:
        while data := file.read(1 << 16):
            yield decoder.decode(data)
    yield decoder.decode(b"", final=True)


def tools_of(name: str | None) -> list[dict[str, Any]] | None:
    if name is None:
        return None
    where = "standard input" if name == "-" else name
    tools = read_json(sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes(), where)
    if isinstance(tools, dict) and "tools" in tools:  # a request, or an MCP server's answer to tools/list
        tools = tools["tools"]
    if not isinstance(tools, list):
        raise RequestError(f"{where}: tools are a JSON list, not {type(tools).__name__}")
    return tools


def schemas_of(name: str) -> dict[str, Any]:
    """What a request asks that brings these schemas: tools, or an answer that follows one schema."""
    where = "standard input" if name == "-" else name
    read = read_json(sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes(), where)
    if isinstance(read, dict) and isinstance(read.get("tools"), list):
        read = read["tools"]
    if isinstance(read, dict) and isinstance(read.get("name"), str) and {"parameters", "inputSchema"} & read.keys():
        read = [read]
    return {"tools": read} if isinstance(read, list) else {"response_schema": read}


def read_json(data: bytes, where: str) -> Any:
    try:
        return json.loads(data)
    except json.JSONDecodeError as error:
        raise RequestError(f"{where}: not JSON: line {error.lineno} column {error.colno}: {error.msg}") from None
    except UnicodeDecodeError as error:
        raise RequestError(f"{where}: not UTF-8: byte {error.start}") from None
    except RecursionError:
        raise RequestError(f"{where}: nested too deeply") from None


def tool_choice_of(text: str | None) -> Any:
    if text is None or text in ("auto", "none", "required"):
        return text
    if text.startswith("{"):
        return read_json(text.encode(), "--tool-choice")
    return {"type": "function", "function": {"name": text}}


def special_token(text: str) -> tuple[str, int]:
    """`TEXT=ID`: a marker of a format, and the id of the token that is it in a vocabulary."""
    marker, _, number = text.rpartition("=")
    if not marker or not number.isdigit():
        raise RequestError(f"--special-token {text!r} is not TEXT=ID")
    return marker, int(number)
