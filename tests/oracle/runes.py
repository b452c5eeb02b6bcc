"""A made-up format: other markers, another spelling of JSON. It shows that nothing is tied to the formats in use.

`[[think]]...[[/think]] prose [[call]]NAME(key=value; key=value)[[/call]]`; strings stand between `[[s]]` and `[[/s]]`,
arrays are `<1 | 2>`, objects `(a=1; b=2)`, the words `yes`, `no` and `nil`, numbers as in JSON. Nothing is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence

from .gemma4 import _encodable, needles
from .matcher import Later, OracleState, Piece, Word, choice, literal, optional, start
from .patterns import pattern, pattern_of_literals
from .request import Request
from .schema_oracle import Spelling, Values
from .text import Text, TextRule

__all__ = ["MARKERS", "Runes", "initial"]

MARKERS = ("[[call]]", "[[/call]]", "[[think]]", "[[/think]]", "[[s]]", "[[/s]]", "[[end]]")
NAME = pattern(r"^[A-Za-z_][A-Za-z0-9_.\-]*$")
KEY = pattern(r"^[A-Za-z_][A-Za-z0-9_\-]*$")


class Runes(Spelling):
    def __init__(self, request: Request) -> None:
        self.request = request

    def marker(self, text: str) -> Word:
        return Word(tuple(text.encode())) if text in self.request.letters else Word((text,))

    def text(self, level: str, rule: TextRule, others: frozenset[str]) -> Sequence[Piece] | None:
        body = Text(TextRule(needles=needles(MARKERS), least=rule.least, most=rule.most, machines=rule.machines))
        return (self.marker("[[s]]"), body, self.marker("[[/s]]")) if body.satisfiable() else None

    def string(self, level: str, value: str, others: frozenset[str]) -> Sequence[Piece] | None:
        if any(marker in value for marker in MARKERS) or not _encodable(value):
            return None
        return (self.marker("[[s]]"), literal(value), self.marker("[[/s]]"))

    def word(self, value: bool | None) -> str:
        return {None: "nil", True: "yes", False: "no"}[value]

    def array(self, level: str) -> tuple[Sequence[Piece], Sequence[Piece], Sequence[Piece]]:
        return (literal("<"),), (literal(" | "),), (literal(">"),)

    def object(self, level: str) -> tuple[Sequence[Piece], Sequence[Piece], Sequence[Piece]]:
        return (literal("("),), (literal("; "),), (literal(")"),)

    def key(self, level: str, name: str) -> Sequence[Piece] | None:
        return (literal(name, "="),) if KEY.matches(name) else None

    def free_key(self, level: str, others: frozenset[str]) -> Sequence[Piece]:
        return (Text(TextRule(machines=((KEY, True), (pattern_of_literals(others), False)))), literal("="))

    def member_end(self, level: str) -> Sequence[Piece]:
        return ()


def initial(request: Request) -> OracleState | None:
    spelling = Runes(request)
    options = []
    for each in request.tools if request.choice != "none" else ():
        values = Values(each.schema, spelling, request)
        if values.satisfiable and NAME.matches(each.name):
            options.append((literal(each.name), values.whole()))
    if request.choice == "required" and not options:
        return None
    prose = Text(TextRule(needles=needles(MARKERS)))
    thought = (spelling.marker("[[think]]"), prose, spelling.marker("[[/think]]"))
    pieces: list[Piece] = []
    if request.reasoning != "forbid":
        pieces += thought if request.reasoning == "require" else [optional(*thought)]
    if request.choice != "required":
        pieces.append(prose)
    if options:
        call = choice((spelling.marker("[[call]]"), choice(*options), spelling.marker("[[/call]]")))
        more: Later = Later(lambda: (optional(call, more),))
        calls = (call, more) if request.parallel else (call,)
        pieces += calls if request.choice == "required" else [optional(*calls)]
    return start(pieces)
