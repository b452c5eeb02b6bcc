"""What a text without delimiters would be read as: the languages that raw strings have to keep clear of.

In: a set of JSON types. Out: a byte automaton of the texts that are read as a value of one of them rather than as a
string: JSON texts, white space around them included.

Scalars are exact: numbers are those of `finite`, as the reader has it. Arrays and objects nest, which no finite
automaton follows, so a superset stands in for them: rows of JSON lexemes in which neighbours fit. A string such as
`[draft] hello` or `{name}` is not among them; `[1}` is, although it is no JSON. It serves where strings are restricted
further; strings that are not are told from documents exactly (`notjson`).
Cost: some hundred states, built once for each set of types.

Source: RFC 8259.
"""

from __future__ import annotations

from functools import lru_cache

from ..automaton.dfa import Dfa, from_draft, union
from ..automaton.finite import FINITE
from ..automaton.regex import terminal_dfa
from ..automaton.runs import Draft, Row, merge_runs

__all__ = ["read_as"]

_SPACED = r"[ \t\n\r]*(?:{})[ \t\n\r]*"
_SCALARS = {
    "integer": r"-?(?:0|[1-9][0-9]*)",
    "number": FINITE,
    "boolean": "true|false",
    "null": "null",
}


@lru_cache(maxsize=64)
def read_as(types: frozenset[str]) -> Dfa:
    """The texts that are read as one of these types (`string` is ignored)."""
    parts = [terminal_dfa(_SPACED.format(form)) for name, form in _SCALARS.items() if name in types]
    if types & {"array", "object"}:
        parts.append(_containers("array" in types, "object" in types))
    return union(*parts)


# Where one stands between two lexemes: what came last.
_START, _OPENED, _LISTED, _COMMA, _COLON, _KEY, _EITHER, _VALUE, _CLOSED = range(1, 10)
_LEADS = {  # place -> byte -> place
    _OPENED: {"}": _CLOSED},
    _LISTED: {"[": _LISTED, "{": _OPENED, "]": _CLOSED},
    _COMMA: {"[": _LISTED, "{": _OPENED},
    _COLON: {"[": _LISTED, "{": _OPENED},
    _KEY: {":": _COLON},
    _EITHER: {":": _COLON, ",": _COMMA, "]": _CLOSED},
    _VALUE: {",": _COMMA, "]": _CLOSED, "}": _CLOSED},
    _CLOSED: {",": _COMMA, "]": _CLOSED, "}": _CLOSED},
}
_STRINGS = {_OPENED: _KEY, _LISTED: _VALUE, _COMMA: _EITHER, _COLON: _VALUE}  # place -> place after a string
_DIGITS = "0123456789"


class _Lexemes:
    """The automaton in the making: the places, then the states inside lexemes."""

    def __init__(self) -> None:
        self.moves: list[dict[int, int]] = [{} for _ in range(_CLOSED + 1)]

    def state(self, moves: dict[str, int] | None = None) -> int:
        self.moves.append({})
        self.add(len(self.moves) - 1, moves or {})
        return len(self.moves) - 1

    def add(self, state: int, moves: dict[str, int]) -> None:
        for letters, target in moves.items():
            self.moves[state].update(dict.fromkeys(map(ord, letters), target))

    def string(self, after: int) -> int:
        """The state behind a quote."""
        body = self.state({'"': after})
        digits = body
        for _ in range(4):
            digits = self.state({_DIGITS + "abcdefABCDEF": digits})
        escape = self.state({'"\\/bfnrt': body, "u": digits})
        for byte in range(0x20, 0x100):
            self.moves[body].setdefault(byte, body)
        self.moves[body][0x5C] = escape
        return body

    def word(self, letters: str) -> int:
        state = _VALUE
        for letter in reversed(letters):
            state = self.state({letter: state})
        return state

    def numbers(self) -> dict[str, int]:
        """First letters of a number. Where a number may end, what follows a value may follow."""
        ends = {" \t\n\r": _VALUE, **_LEADS[_VALUE]}
        power = self.state(ends)
        self.add(power, {_DIGITS: power})
        exponent = self.state({_DIGITS: power, "+-": self.state({_DIGITS: power})})
        fraction = self.state({**ends, "eE": exponent})
        self.add(fraction, {_DIGITS: fraction})
        tail = {**ends, "eE": exponent, ".": self.state({_DIGITS: fraction})}
        zero, whole = self.state(tail), self.state(tail)
        self.add(whole, {_DIGITS: whole})
        return {"0": zero, "123456789": whole, "-": self.state({"0": zero, "123456789": whole})}


@lru_cache(maxsize=4)
def _containers(arrays: bool, objects: bool) -> Dfa:
    made = _Lexemes()
    scalars = {**made.numbers(), "t": made.word("rue"), "f": made.word("alse"), "n": made.word("ull")}
    for place in range(_START, _CLOSED + 1):
        made.add(place, {" \t\n\r": place, **_LEADS.get(place, {})})
        if place in _STRINGS:
            made.add(place, {'"': made.string(_STRINGS[place])})
        if place in (_LISTED, _COMMA, _COLON):
            made.add(place, scalars)
    made.add(_START, {"[": _LISTED} if arrays else {})
    made.add(_START, {"{": _OPENED} if objects else {})
    rows = [_row(moves) for moves in made.moves]
    accept = [int(state == _CLOSED) for state in range(len(rows))]
    return from_draft(Draft(rows, accept, [0] + [1] * (len(rows) - 1), _START))


def _row(moves: dict[int, int]) -> Row:
    return merge_runs((byte, byte, target) for byte, target in sorted(moves.items()))
