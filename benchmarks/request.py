"""One request in the words of three engines: tools, a call of one, and the language as grammar text.

In: a format, a number of tools. Out: a `Case`: unseen tools, a call in pieces (keys, numbers, strings), and the text of
a grammar of the language: one call of one of the tools, members in the declared order, the first two required. The
text is written by hand, for each grammar language with its own means: a marker is a token id, and a string is any text
that does not spell its own closer.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any

import twingram as tg
from tests.vocabularies import gemma, llama4

__all__ = ["EBNF", "FORMATS", "LARK", "PROSE", "STOPS", "Case", "grammar_text", "vocabulary_of"]

FORMATS = ("gemma4", "atem")
STOPS = {"gemma4": ("<turn|>", "<eos>"), "atem": ("<|eot|>", "<|end_of_text|>")}
PROSE = "The quarterly report of the northern region is due on Friday, so please file it soon. "
NUMBER = 20250131
LEVELS = ("low", "normal", "high")
_serial = count(1)


def vocabulary_of(name: str) -> tg.Vocabulary:
    return gemma() if name == "gemma4" else llama4()


# -- the request -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tool:
    """`text` and `number` are required; `level` is an enumeration, `rows` an array of strings, `flag` a boolean."""

    name: str
    text: str
    number: str
    level: str
    rows: str
    flag: str

    @classmethod
    def new(cls) -> Tool:
        """A tool that nobody has seen."""
        serial = next(_serial)
        members = ("note", "invoice_number", "priority", "row_labels", "is_draft")
        return cls(f"file_report_{serial}", *(f"{member}_{serial}" for member in members))

    @property
    def definition(self) -> dict[str, Any]:
        properties = {
            self.text: {"type": "string"},
            self.number: {"type": "integer"},
            self.level: {"type": "string", "enum": list(LEVELS)},
            self.rows: {"type": "array", "items": {"type": "string"}},
            self.flag: {"type": "boolean"},
        }
        parameters = {"type": "object", "properties": properties, "required": [self.text, self.number]}
        return {"type": "function", "function": {"name": self.name, "parameters": parameters}}


class Case:
    """A request of so many unseen tools in a format, and a call of the last one."""

    def __init__(self, name: str, tools: int = 1, *, note: str = PROSE) -> None:
        self.format, self.vocabulary, self.note = name, vocabulary_of(name), note
        self.tools = [Tool.new() for _ in range(tools)]

    @property
    def definitions(self) -> list[dict[str, Any]]:
        return [tool.definition for tool in self.tools]

    @cached_property
    def pieces(self) -> list[tuple[str, str]]:
        """The call as (kind, text): key, number, string, or fixed."""
        tool, quote = self.tools[-1], '<|"|>'
        if self.format == "gemma4":
            return [
                ("", f"<|tool_call>call:{tool.name}{{"), ("key", f"{tool.text}:"), ("", quote), ("string", self.note),
                ("", quote + ","), ("key", f"{tool.number}:"), ("number", str(NUMBER)), ("", ","),
                ("key", f"{tool.level}:"), ("", f"{quote}high{quote}}}<tool_call|>"),
            ]  # fmt: skip
        after = '">'
        opener, closer = '<atem:parameter name="', "</atem:parameter>\n"
        start = f'<atem:function_calls>\n<atem:invoke name="{tool.name}">\n'
        return [
            ("", f" to={tool.name}<|message|>{start}{opener}"), ("key", tool.text + after), ("string", self.note),
            ("", closer + opener), ("key", tool.number + after), ("number", str(NUMBER)), ("", closer + opener),
            ("key", tool.level + after), ("", f"high{closer}</atem:invoke>\n</atem:function_calls>"),
        ]  # fmt: skip

    @cached_property
    def segments(self) -> list[tuple[str, list[int]]]:
        """The call as (kind, tokens); each piece is split by itself, so that a token belongs to one kind."""
        return [(kind, self.vocabulary.encode(text)) for kind, text in self.pieces]

    @property
    def tokens(self) -> list[int]:
        return [token for _, tokens in self.segments for token in tokens]

    @property
    def text(self) -> str:
        return "".join(text for _, text in self.pieces)

    def stretch(self, kind: str) -> tuple[list[int], list[int]]:
        """The tokens before the first piece of a kind, and those of the piece."""
        before: list[int] = []
        for found, tokens in self.segments:
            if found == kind:
                return before, tokens
            before += tokens
        raise ValueError(f"no piece is a {kind!r}")

    @property
    def stops(self) -> list[int]:
        return [self.vocabulary.special_tokens[stop] for stop in STOPS[self.format]]

    def marker(self, text: str) -> int:
        return self.vocabulary.special_tokens[text]


# -- grammar text ------------------------------------------------------------------------------------------------------


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


@dataclass(frozen=True)
class Notation:
    """What two grammar languages write differently."""

    token: Callable[[int], str]
    body: Callable[[str, str], str]  # (name, closer) -> the rule of a text that does not spell the closer, a token
    closed: Callable[[str, str], str]  # the same, up to a closer of letters, and the closer
    rule: str
    start: str
    digits: str
    json_text: str


def _xgrammar_body(name: str, closer: str) -> str:
    return f"{name} ::= TagDispatch(loop_after_dispatch=false, excludes=({_quoted(closer)}))"


def _xgrammar_closed(name: str, closer: str) -> str:
    return f"{name} ::= inside {_quoted(closer)}\n{_xgrammar_body('inside', closer)}"


def _llguidance_closed(name: str, closer: str) -> str:
    return f"{name}: /{_avoiding(closer)}{''.join(map(_in_pattern, closer))}/"


def _llguidance_body(name: str, closer: str) -> str:
    return f"{name}: /{_avoiding(closer)}/"


def _avoiding(closer: str) -> str:
    """A pattern of the texts that do not spell a closer whose first character, `<`, is not in the rest of it.

    Written without `&` and `~`, so that the slices of the vocabulary, `[^<]+`, are seen to be a part of it.
    """
    begun, left = "", f"[^<{closer[-1]}]"
    for char in map(_in_pattern, reversed(closer[1:-1])):
        begun, left = f"({char}{begun})?", f"([^<{char}]|{char}{left})"
    return f"([^<]|(<+{begun})*<+{left})*(<+{begun})*"


def _in_pattern(char: str) -> str:
    return "\\" + char if char in "|/" else char


EBNF = Notation(
    "Token({})".format, _xgrammar_body, _xgrammar_closed, "::=", "root",
    'digits ::= "-"? ("0" | [1-9] [0-9]*)',
    'json_text ::= "\\"" ([^"\\\\\\x00-\\x1f] | "\\\\" (["\\\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\\""',
)  # fmt: skip
LARK = Notation(
    "<[{}]>".format, _llguidance_body, _llguidance_closed, ":", "start",
    "digits: /-?(0|[1-9][0-9]*)/",
    'json_text: /"([^"\\\\\\x00-\\x1f]|\\\\(["\\\\\\/bfnrt]|u[0-9a-fA-F]{4}))*"/',
)  # fmt: skip


def grammar_text(case: Case, notation: Notation) -> str:
    """The language of a case."""
    rules = [notation.digits]
    write = _gemma4_rules if case.format == "gemma4" else _atem_rules
    calls = write(case, notation, rules)
    root = f"{notation.start} {notation.rule} " + " | ".join(f"call_{at}" for at in range(len(calls)))
    rules += [f"call_{at} {notation.rule} {call}" for at, call in enumerate(calls)]
    return "\n".join([root, *rules]) + "\n"


def _gemma4_rules(case: Case, notation: Notation, rules: list[str]) -> list[str]:
    quote = notation.token(case.marker('<|"|>'))
    begin, end = notation.token(case.marker("<|tool_call>")), notation.token(case.marker("<tool_call|>"))
    levels = " | ".join(map(_quoted, LEVELS))
    rules += [
        notation.body("body", '<|"|>'),
        f"text {notation.rule} {quote} body {quote}",
        f"level {notation.rule} {quote} ({levels}) {quote}",
        f'rows {notation.rule} "[" (text ("," text)*)? "]"',
        f'flag {notation.rule} "true" | "false"',
    ]
    return [
        f"{begin} {_quoted(f'call:{tool.name}{{{tool.text}:')} text {_quoted(f',{tool.number}:')} digits "
        f"({_quoted(f',{tool.level}:')} level)? ({_quoted(f',{tool.rows}:')} rows)? "
        f'({_quoted(f",{tool.flag}:")} flag)? "}}" {end}'
        for tool in case.tools
    ]


def _atem_rules(case: Case, notation: Notation, rules: list[str]) -> list[str]:
    message = notation.token(case.marker("<|message|>"))
    levels = " | ".join(map(_quoted, LEVELS))
    rules += [
        notation.closed("body", "</atem:parameter>"),
        notation.json_text,
        f"level {notation.rule} {levels}",
        f'rows {notation.rule} "[" (json_text ("," " "? json_text)*)? "]"',
        f'flag {notation.rule} "true" | "false"',
    ]

    def member(key: str, value: str) -> str:
        closer = chr(10) if value == "body" else "</atem:parameter>\n"
        return f"""{_quoted(f'<atem:parameter name="{key}">')} {value} {_quoted(closer)}"""

    calls = []
    for tool in case.tools:
        opener = f'<atem:function_calls>\n<atem:invoke name="{tool.name}">\n'
        calls.append(
            f"{_quoted(f' to={tool.name}')} {message} {_quoted(opener)} "
            f"{member(tool.text, 'body')} {member(tool.number, 'digits')} ({member(tool.level, 'level')})? "
            f"({member(tool.rows, 'rows')})? ({member(tool.flag, 'flag')})? "
            + _quoted("</atem:invoke>\n</atem:function_calls>")
        )
    return calls
