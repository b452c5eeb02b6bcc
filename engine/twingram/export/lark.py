"""Grammars in a dialect of Lark's notation whose engine reads characters through a lexer.

In: a `Grammar`. Out: text. That lexer takes as much as it can and looks one character ahead, which is not what a
grammar means where a text may be followed by what it could go on with. So every character is a terminal of its own,
and the parser decides. The first line asks the engine to allow every spelling in tokens of what is forced, as masks do;
without it it writes what is forced in one way, at once.
Cost: linear in the characters.
"""

from __future__ import annotations

from ..automaton.expression import INFINITE
from .lowering import Grammar
from .terms import NULL, Chars, Either, Name, Row, Term, Text, Times, Token

__all__ = ["lark"]


_EXACT = '%llguidance {"no_forcing": true}'


def lark(grammar: Grammar) -> str:
    names = {name: "start" if name == grammar.start else name for name in grammar.rules}
    write = _Writer(names)
    rules = "".join(f"{names[name]}: {write.ways(term)}\n" for name, term in grammar.rules.items())
    return f"{_EXACT}\n{rules}"


class _Writer:
    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def ways(self, term: Term) -> str:
        parts = term.parts if isinstance(term, Either) else (term,)
        return " | ".join(self.row(part) for part in parts if part != NULL) + (" | " if NULL in parts else "")

    def row(self, term: Term) -> str:
        parts = term.parts if isinstance(term, Row) else (term,)
        return " ".join(map(self.one, parts)) or '""'

    def one(self, term: Term) -> str:
        if isinstance(term, Text):
            return " ".join('"' + _escaped(ord(char)) + '"' for char in term.text)
        if isinstance(term, Chars):
            return "/[" + "".join(map(_span, term.spans)) + "]/"
        if isinstance(term, Token):
            return f"<[{term.id}]>"
        if isinstance(term, Name):
            return self.names[term.name]
        if isinstance(term, Times):
            return self.times(term)
        return f"({self.ways(term)})"

    def times(self, term: Times) -> str:
        low, high = term.low, term.high
        shown = f"({self.ways(term.body)})"
        if high >= INFINITE and low <= 1:
            return shown + "*+"[low]
        if (low, high) == (0, 1):
            return shown + "?"
        return f"{shown}{{{low},{'' if high >= INFINITE else high}}}"


def _escaped(code: int) -> str:
    if 0x20 <= code < 0x7F and chr(code) not in '"\\':
        return chr(code)
    if code < 0x10000:
        return f"\\u{code:04x}"
    return chr(code)


def _span(span: tuple[int, int]) -> str:
    low, high = (chr(code) if chr(code).isascii() and chr(code).isalnum() else f"\\u{{{code:x}}}" for code in span)
    return low if span[0] == span[1] else f"{low}-{high}"
