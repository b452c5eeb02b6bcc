"""The tagged format: messages with headers, parameters between tags, raw text typed by the schema.

In: a request. Out: the state before the first symbol after the prompt's `<|start|>assistant`. Any number of messages to
`self` first, then calls (one a message, the name in header and invoke alike) or one message to `user`.
A parameter is raw text if its schema admits a string and the text is no JSON of another admitted type; everything
else is JSON with at most one space after a comma or a colon.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NoReturn

from .matcher import Later, OracleState, Piece, Word, choice, literal, optional, start
from .patterns import Machine, pattern, pattern_of_literals
from .request import Request, Unsupported
from .schema_oracle import Spelling, Values
from .text import Text, TextRule

__all__ = ["CLOSERS", "MARKERS", "Tags", "initial", "json_answer", "reads_as"]

MARKERS = ("<|start|>", "<|message|>", "<|eom|>", "<|eot|>", "<|end_of_text|>", "<|begin_of_text|>")
CLOSERS = ("</atem:parameter>", "</atem:invoke>")
RESERVED = ("self", "user", "commentary", "developer")

_SPACED = r"^[ \t\n\r]*({})[ \t\n\r]*$"
_INTEGER = r"-?(0|[1-9][0-9]*)"
_SCALARS = {
    "integer": _INTEGER,
    "number": _INTEGER + r"(\.[0-9]+)?([eE][+-]?[0-9]+)?",
    "boolean": "true|false",
    "null": "null",
}


class _NotJson(Exception):
    pass


def _refused(_: str) -> NoReturn:
    raise _NotJson


def _float(text: str) -> float:
    """Numbers count if they are surely finite, going by how many digits stand before the point and by the exponent."""
    mantissa, _, exponent = text.lower().lstrip("-").partition("e")
    digits, power = len(mantissa.partition(".")[0]), Decimal(exponent or 0)
    large = 0 if power < 100 else 1 if power < 300 else 2
    value = float(text)
    if digits > (200, 8, 1)[large] or power > 308 or abs(value) == float("inf"):
        raise _NotJson
    if power == 308 and not mantissa.startswith("0") and Decimal(mantissa) > Decimal("1.7976931348623157"):
        raise _NotJson
    return value


_DECODER = json.JSONDecoder(parse_constant=_refused, parse_float=_float, parse_int=lambda _: 0)


def reads_as(text: str) -> str | None:
    """The JSON type of a text, or None if it is not JSON. Numbers that may be too large are text."""
    try:
        value: Any = _DECODER.decode(text)
    except (ValueError, _NotJson, RecursionError):
        return None
    names = {type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
    return names.get(type(value), "object")


class _Claimed:
    """Whether a text belongs to one of these types rather than to string."""

    def __init__(self, types: frozenset[str]) -> None:
        self.types = (
            types | ({"integer"} if "number" in types else set()) | ({"string"} if "untyped" in types else set())
        )

    def __call__(self, text: str) -> bool:
        return reads_as(text) in self.types


class Tags(Spelling):
    def __init__(self, request: Request, needles: Sequence[str] = (*MARKERS, *CLOSERS)) -> None:
        self.request = request
        self.raw_needles = tuple(needle.encode() for needle in needles)
        self.key_machine = pattern(r'^[^"<>]+$')

    def marker(self, text: str) -> Word:
        return Word(tuple(text.encode())) if text in self.request.letters else Word((text,))

    def text(self, level: str, rule: TextRule, others: frozenset[str]) -> Sequence[Piece] | None:
        if level == "inner":
            body = Text(_rule(rule, self.raw_needles, "json"))
            return (literal('"'), body, literal('"')) if body.satisfiable() else None
        others = others if not self.request.untyped_json_string else others - {"untyped"}
        claimed = _Claimed(others) if others else None
        if rule.machines and others:
            if others & {"array", "object"}:
                raise Unsupported("a pattern beside containers in raw text")
            scalars: tuple[tuple[Machine, bool], ...]
            scalars = tuple((pattern(_SPACED.format(_SCALARS[kind])), False) for kind in sorted(others))
            rule = TextRule(least=rule.least, most=rule.most, machines=(*rule.machines, *scalars))
            claimed = None
        body = Text(_rule(rule, self.raw_needles, "raw", claimed))
        return (body,) if body.satisfiable() else None

    def string(self, level: str, value: str, others: frozenset[str]) -> Sequence[Piece] | None:
        if any(0xD800 <= ord(char) <= 0xDFFF for char in value):
            return None
        spelt = json.dumps(value, ensure_ascii=False) if level == "inner" else value
        if any(needle in spelt.encode() for needle in self.raw_needles):
            return None
        if level != "inner":
            return None if others and _Claimed(others)(value) else (literal(value),)
        if not self.request.literal_escape:
            return (literal(spelt),)
        rule = TextRule(machines=((pattern_of_literals(frozenset({value})), True),))
        return (literal('"'), Text(_rule(rule, self.raw_needles, "json")), literal('"'))

    def word(self, value: bool | None) -> str:
        return json.dumps(value)

    def array(self, level: str) -> tuple[Sequence[Piece], Sequence[Piece], Sequence[Piece]]:
        return (literal("["),), _separated(","), (literal("]"),)

    def object(self, level: str) -> tuple[Sequence[Piece], Sequence[Piece], Sequence[Piece]]:
        return ((), (), ()) if level == "root" else ((literal("{"),), _separated(","), (literal("}"),))

    def key(self, level: str, name: str) -> Sequence[Piece] | None:
        if level != "root":
            spelt = self.string("inner", name, frozenset())
            return None if spelt is None else (*spelt, *_separated(":"))
        if not self.key_machine.matches(name) or any(0xD800 <= ord(char) <= 0xDFFF for char in name):
            return None
        return (literal('<atem:parameter name="', name, '">'),)

    def free_key(self, level: str, others: frozenset[str]) -> Sequence[Piece]:
        declared = (pattern_of_literals(others), False)
        if level != "root":
            rule = TextRule(machines=(declared,) if others else ())
            return (literal('"'), Text(_rule(rule, self.raw_needles, "json")), literal('"'), *_separated(":"))
        body = Text(TextRule(needles=self.raw_needles, machines=((self.key_machine, True), declared)))
        return (literal('<atem:parameter name="'), body, literal('">'))

    def member_end(self, level: str) -> Sequence[Piece]:
        return (literal("</atem:parameter>\n"),) if level == "root" else ()


def _rule(rule: TextRule, needles: tuple[bytes, ...], spelling: str, refuse: _Claimed | None = None) -> TextRule:
    return TextRule(
        needles=needles,
        spelling=spelling,
        least=rule.least,
        most=rule.most,
        machines=rule.machines,
        refuse=refuse,
        escapes=rule.escapes,
    )


def _separated(mark: str) -> tuple[Piece, ...]:
    return (literal(mark), optional(literal(" ")))


def nameable(name: str) -> bool:
    plain = bool(name) and not any(char.isspace() or char in '"<' or 0xD800 <= ord(char) <= 0xDFFF for char in name)
    return plain and name not in RESERVED


def json_answer(request: Request, markers: Sequence[str]) -> Piece:
    """The answer itself as JSON under `request.response`, without the letters of the format's markers."""
    values = Values(request.response, Tags(request, markers), request, "inner")
    if not values.satisfiable:
        raise Unsupported("an answer that nothing satisfies")
    return values.whole()


def _calls(request: Request, spelling: Tags) -> list[tuple[Piece, ...]]:
    found: list[tuple[Piece, ...]] = []
    for each in request.tools:
        values = Values(each.schema, spelling, request)
        if values.satisfiable and nameable(each.name):
            head = (literal(" to=", each.name), spelling.marker("<|message|>"))
            opener = literal(f'<atem:function_calls>\n<atem:invoke name="{each.name}">\n')
            closer = literal("</atem:invoke>\n</atem:function_calls>")
            found.append((*head, opener, values.whole(), closer))
    return found


def initial(request: Request) -> OracleState | None:
    spelling = Tags(request)
    if request.resumed:
        raise Unsupported("this format has no open thought")
    calls = _calls(request, spelling) if request.choice != "none" else []
    if request.choice == "required" and not calls:
        return None
    turn: list[tuple[Piece, ...]] = []
    between = (spelling.marker("<|eom|>"), spelling.marker("<|start|>"), literal("assistant"))
    if calls:
        call = choice(*calls)
        more: Later = Later(lambda: (optional(*between, call, more),))
        turn.append((call, more) if request.parallel else (call,))
    message = spelling.marker("<|message|>")
    body = Text(TextRule(needles=tuple(marker.encode() for marker in MARKERS)))
    if request.choice != "required":
        answer = body if request.response is None else json_answer(request, MARKERS)
        turn.append((literal(" to=user"), message, answer))
    thought = (literal(" to=self"), message, body, *between)
    thoughts: Later = Later(lambda: (optional(*thought, thoughts),))
    first = {"allow": (thoughts,), "require": (*thought, thoughts), "forbid": ()}[request.reasoning]
    return start((*first, choice(*turn)))
