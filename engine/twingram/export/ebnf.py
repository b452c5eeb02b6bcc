"""Grammars in the notations that descend from EBNF: `root ::= "text" [a-z] rule (a | b)? x{1,3}`.

In: a `Grammar`, and how a token is written. Out: text. Characters other than printable ASCII are escapes.
Cost: linear.
"""

from __future__ import annotations

from collections.abc import Callable

from ..automaton.expression import INFINITE
from .lowering import Grammar
from .terms import Chars, Either, Name, Row, Term, Text, Times, Token, row, times

__all__ = ["ebnf", "escaped"]


def ebnf(grammar: Grammar, token: Callable[[int], str], *, most_times: int = INFINITE) -> str:
    """The rules, a line each; the first is `root`. `most_times`: repetitions beyond that are written as several."""
    names = {name: "root" if name == grammar.start else name for name in grammar.rules}
    write = _Writer(names, token, most_times)
    return "".join(f"{names[name]} ::= {write.ways(term)}\n" for name, term in grammar.rules.items())


class _Writer:
    def __init__(self, names: dict[str, str], token: Callable[[int], str], most_times: int) -> None:
        self.names, self.token, self.most_times = names, token, most_times

    def ways(self, term: Term) -> str:
        """The body of a rule or of a group."""
        parts = term.parts if isinstance(term, Either) else (term,)
        return " | ".join(map(self.row, parts))

    def row(self, term: Term) -> str:
        parts = term.parts if isinstance(term, Row) else (term,)
        return " ".join(map(self.one, parts)) or '""'

    def one(self, term: Term) -> str:
        if isinstance(term, Text):
            return '"' + "".join(escaped(ord(char), '"\\') for char in term.text) + '"'
        if isinstance(term, Chars):
            return "[" + "".join(map(_span, term.spans)) + "]"
        if isinstance(term, Token):
            return self.token(term.id)
        if isinstance(term, Name):
            return self.names[term.name]
        if isinstance(term, Times):
            return self.times(term)
        return f"({self.ways(term)})"

    def times(self, term: Times) -> str:
        body = term.body
        shown = f"({self.ways(body)})" if isinstance(body, (Row, Either, Times)) else self.one(body)
        if isinstance(body, Text) and len(body.text) > 1:
            shown = f"({shown})"
        low, high = term.low, term.high
        if high >= INFINITE and low <= 1:
            return shown + "*+"[low]
        if (low, high) == (0, 1):
            return shown + "?"
        if high >= INFINITE:
            if low > self.most_times:
                return self.row(row(times(body, self.most_times, self.most_times), times(body, low - self.most_times)))
            return f"{shown}{{{low},}}"
        if high > self.most_times:
            most = self.most_times
            first = times(body, min(low, most), most)
            return self.one(Row((first, times(body, max(0, low - most), high - most))))
        return f"{shown}{{{low}}}" if low == high else f"{shown}{{{low},{high}}}"


def _span(span: tuple[int, int]) -> str:
    low, high = (escaped(code, "\\]-^[\"") for code in span)
    return low if span[0] == span[1] else f"{low}-{high}"


def escaped(code: int, special: str) -> str:
    """A character as it stands between quotes or brackets."""
    if 0x20 <= code < 0x7F and chr(code) not in special:
        return chr(code)
    if chr(code) in '"\\':
        return "\\" + chr(code)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
