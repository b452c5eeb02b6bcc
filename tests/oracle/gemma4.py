"""The brace format with marked strings: `<|tool_call>call:NAME{key:value}<tool_call|>`.

In: a request. Out: the state before the first symbol of a completion:
`[thought] [prose] call*` under a free choice, `[thought] call+` under a forced one.
Nothing is escaped; white space never stands between the parts of a call; strings stand between `<|"|>` markers.
"""

from __future__ import annotations

from collections.abc import Sequence

from .atem import json_answer
from .matcher import Choice, Later, OracleState, Piece, Word, choice, literal, optional, start
from .patterns import Machine, pattern, pattern_of_literals
from .request import Request
from .schema_oracle import Spelling, Values
from .text import Text, TextRule

__all__ = ["MARKERS", "Braces", "initial"]

MARKERS = (
    "<|tool_call>", "<tool_call|>", "<|tool_response>", "<tool_response|>", '<|"|>', "<|channel>", "<channel|>",
    "<|turn>", "<turn|>", "<|tool>", "<tool|>", "<|think|>", "<eos>",
)  # fmt: skip
NOT_IN_KEYS = "{}[],:<\"'"


def needles(markers: Sequence[str]) -> tuple[bytes, ...]:
    return tuple(marker.encode() for marker in markers)


def free_text(markers: Sequence[str]) -> Text:
    return Text(TextRule(needles=needles(markers)))


def key_shape(space: str) -> Machine:
    """A bare key: none of the letters that structure a call, no space at its ends."""
    letters = "".join(f"\\{char}" for char in NOT_IN_KEYS)
    ends = f"[^{letters}" + "".join(f"\\u{ord(char):04x}" for char in space) + "]"
    return pattern(f"^{ends}([^{letters}]*{ends})?$")


class Braces(Spelling):
    def __init__(self, request: Request, markers: Sequence[str] = MARKERS) -> None:
        self.request, self.markers = request, markers
        self.key_machine = key_shape(request.key_space)

    def marker(self, text: str) -> Word:
        return Word(tuple(text.encode())) if text in self.request.letters else Word((text,))

    def text(self, level: str, rule: TextRule, others: frozenset[str]) -> Sequence[Piece] | None:
        body = Text(TextRule(needles=needles(self.markers), least=rule.least, most=rule.most, machines=rule.machines))
        return (self.marker('<|"|>'), body, self.marker('<|"|>')) if body.satisfiable() else None

    def string(self, level: str, value: str, others: frozenset[str]) -> Sequence[Piece] | None:
        if any(marker in value for marker in self.markers) or not _encodable(value):
            return None
        return (self.marker('<|"|>'), literal(value), self.marker('<|"|>'))

    def word(self, value: bool | None) -> str:
        return {None: "null", True: "true", False: "false"}[value]

    def array(self, level: str) -> tuple[Sequence[Piece], Sequence[Piece], Sequence[Piece]]:
        return (literal("["),), (literal(","),), (literal("]"),)

    def object(self, level: str) -> tuple[Sequence[Piece], Sequence[Piece], Sequence[Piece]]:
        return (literal("{"),), (literal(","),), (literal("}"),)

    def key(self, level: str, name: str) -> Sequence[Piece] | None:
        fine = _encodable(name) and self.key_machine.matches(name) and not any(m in name for m in self.markers)
        return (literal(name, ":"),) if fine else None

    def free_key(self, level: str, others: frozenset[str]) -> Sequence[Piece]:
        machines = ((self.key_machine, True), (pattern_of_literals(others), False))
        return (Text(TextRule(needles=needles(self.markers), machines=machines)), literal(":"))

    def member_end(self, level: str) -> Sequence[Piece]:
        return ()


def _encodable(text: str) -> bool:
    return not any(0xD800 <= ord(char) <= 0xDFFF for char in text)


def nameable(name: str, markers: Sequence[str]) -> bool:
    """Whether a tool's name can be written."""
    plain = bool(name) and not any(char.isspace() or char in "{(" for char in name)
    return plain and _encodable(name) and not any(marker in name for marker in markers)


def _call(request: Request, spelling: Braces) -> Piece | None:
    options = []
    for each in request.tools:
        values = Values(each.schema, spelling, request)
        if values.satisfiable and nameable(each.name, MARKERS):
            options.append((literal(each.name), values.whole()))
    if not options:
        return None
    opener, closer = spelling.marker("<|tool_call>"), spelling.marker("<tool_call|>")
    return choice((opener, literal("call:"), choice(*options), closer))


def initial(request: Request) -> OracleState | None:
    spelling = Braces(request)
    call = _call(request, spelling) if request.choice != "none" else None
    if request.choice == "required" and call is None:
        return None
    opener = () if request.resumed else (spelling.marker("<|channel>"), literal("thought\n"))
    thought = (*opener, free_text(MARKERS), spelling.marker("<channel|>"))
    pieces: list[Piece] = []
    if request.resumed or request.reasoning == "require":
        pieces += thought
    elif request.reasoning == "allow":
        pieces.append(optional(*thought))
    calls = (call, *_more(call, request)) if call is not None else ()
    if request.choice == "required":
        pieces += calls
    elif request.response is None:
        pieces += [free_text(MARKERS), optional(*calls)]
    else:  # the answer is whole, or there are calls
        pieces.append(Choice([(json_answer(request, MARKERS),), *([calls] if calls else [])]))
    return start(pieces)


def _more(call: Piece, request: Request) -> tuple[Piece, ...]:
    """Further calls, side by side."""
    if not request.parallel:
        return ()
    again: Later
    again = Later(lambda: (optional(call, again),))
    return (again,)
