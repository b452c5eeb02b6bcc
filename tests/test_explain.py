"""Explanations: what may follow and why, and an author's report on a grammar."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree as ET

import pytest

import twingram as tg
from twingram.explain import diagram, explain, mask_lines, read_prefix, report_lines, report_on
from twingram.explain.leaves import byte_class
from twingram.explain.places import places
from twingram.grammar.check import check_rules
from twingram.grammar.regions import region_warnings
from twingram.grammar.rules import Grammar
from twingram.grammar.source import load
from twingram.resources import grammar_path

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 5},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "tree": {"$ref": "#/$defs/tree"},
        "list": {"type": "array", "items": {"anyOf": [{"type": "object", "properties": {"k": {"type": "boolean"}}}]}},
        "name": {"type": "string"},
    },
    "required": ["city"],
    "$defs": {"tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
}
TOOLS = [{"name": "find", "inputSchema": SCHEMA}, {"name": "fetch", "inputSchema": {"type": "object"}}]
CALL = "<|tool_call>call:find{"
ATEM = ' to=find<|message|><atem:function_calls>\n<atem:invoke name="find">\n'


def at(prefix: str, name: str = "gemma4", choice: Any = "auto") -> tg.Session:
    constraint = tg.load_format(name).constraint(TOOLS, choice, vocabulary=tg.Vocabulary.embedded())
    session = constraint.session()
    read_prefix(session, prefix)
    return session


PLACES = [
    ("", (), None, None),
    ("Hello", ("content",), None, None),
    ("<|channel>thought\nhm", ("reasoning",), None, None),
    ("<|tool_call>call:f", ("tool_call", "tool_name"), None, None),
    (CALL, ("tool_call", "object"), "find", "$"),
    (CALL + "da", ("tool_call", "object", "member", "key"), "find", "$"),
    (CALL + "days:1", ("tool_call", "object", "member", "number"), "find", "$.days"),
    (CALL + 'city:<|"|>Ro', ("tool_call", "object", "member", "string", "text"), "find", "$.city"),
    (CALL + 'city:<|"|>Rome<|"|>,list:[', ("tool_call", "object", "member", "array"), "find", "$.list"),
    (CALL + "tree:[[],[[", (*("tool_call", "object", "member"), *["array"] * 3), "find", "$.tree[1][0]"),
    (CALL + "list:[{k:true},{k:", None, "find", "$.list[1].k"),
    (CALL + 'city:<|"|>Rome<|"|>}<tool_call|>', (), None, None),
]


@pytest.mark.parametrize(("prefix", "roles", "tool", "path"), PLACES)
def test_where_a_prefix_stands(prefix: str, roles: tuple[str, ...] | None, tool: str | None, path: str | None) -> None:
    session = at(prefix)
    (reading,) = explain(session).readings
    assert roles is None or reading.roles == roles
    assert (reading.tool, reading.path) == (tool, path)
    assert reading.rules
    assert reading.ways


def test_the_numbers_are_those_of_the_session() -> None:
    for prefix, *_ in PLACES:
        session = at(prefix)
        found = explain(session, 7)
        allowed = session.allowed_tokens().tolist()
        assert (found.allowed, found.tokens) == (len(allowed), len(session.constraint.vocabulary))
        assert len(found.sample) == min(7, len(allowed))
        assert all(token in allowed for token, _ in found.sample)
        assert found.forced == tuple(session.jump_forward())
        assert (found.to_end, found.may_end) == (session.min_tokens_to_end(), session.is_accepting)
        assert found.text == session.text == prefix.encode()


def test_every_way_is_possible_and_none_is_missing() -> None:
    """The first bytes of the tokens allowed are those of the ways."""
    (reading,) = explain(at(CALL + "days:1")).readings
    assert [way.what for way in reading.ways] == ["','", "text that goes on with [0-4]"]
    (reading,) = explain(at(CALL)).readings
    (way,) = reading.ways
    assert way.what == "one of the keys 'city', 'days', 'list', 'name', 'tree' (required: 'city')"
    (reading,) = explain(at("<|tool_call>call:f")).readings
    assert [way.what for way in reading.ways] == ["one of 'fetch', 'find', of which 1 bytes are written"]
    (reading,) = explain(at(CALL + 'city:<|"|>Ro')).readings
    assert [way.what for way in reading.ways] == ['the token <|"|>', "text, 0 to 3 characters"]
    (reading,) = explain(at("Hi")).readings
    assert "the end of the turn: <turn|>, <eos>" in {way.what for way in reading.ways}
    (reading,) = explain(at(CALL + 'city:<|"|>a<|"|>}<tool_call|>')).readings
    assert "the end of the turn after a call: <|tool_response>" in {way.what for way in reading.ways}


def test_schemas_that_speak_of_the_value() -> None:
    (reading,) = explain(at(CALL + "days:")).readings
    assert [(place.path, place.keywords) for place in reading.schemas] == [
        ("$.properties.days", 'type "integer", minimum 1, maximum 14')
    ]
    (reading,) = explain(at(CALL)).readings
    (place,) = reading.schemas
    assert any(note.startswith("additionalProperties: narrowed, ") for note in place.notes)
    (reading,) = explain(at("<|tool_call>call:fetch{a:1")).readings
    assert reading.schemas == ()
    assert reading.path == "$.a"


def test_raw_values_are_named_by_their_parameter() -> None:
    (reading,) = explain(at(ATEM + '<atem:parameter name="city">Ro', "atem", "required")).readings
    assert (reading.tool, reading.path) == ("find", "$.city")
    assert [place.path for place in reading.schemas] == ["$.properties.city"]


def test_markers_are_tokens_and_the_rest_is_split_as_it_may_be() -> None:
    session = at(CALL + 'city:<|"|>Rome<|"|>}<tool_call|><turn|>')
    assert session.is_terminated
    assert explain(session).ended
    assert "turn is over" in "\n".join(mask_lines(explain(session)))
    # "12" is one token that is not allowed as a whole; the tokenizer's split is, byte by byte
    assert at(CALL + "days:12").text.endswith(b"days:12")
    assert at("<|tool_cal").text == b"<|tool_cal"  # no marker: text


@pytest.mark.parametrize(
    ("prefix", "message"),
    [
        (CALL + "days:20", "at byte 28: '0' cannot follow"),
        (CALL + "}", "at byte 22: '}' cannot follow"),
        ("<tool_call|>", "at byte 0: '<tool_call|>' cannot follow ''"),
        ("<|tool_call>call:find", None),
        ("<|tool_call>call:nobody{", "at byte 17: 'nobody{' cannot follow"),
        ("é" + "<|tool_call>é", "at byte 14: 'é' cannot follow"),
    ],
)
def test_a_prefix_that_is_not_allowed(prefix: str, message: str | None) -> None:
    if message is None:
        assert at(prefix).text == prefix.encode()
        return
    with pytest.raises(tg.RequestError, match=re.escape(message)):
        at(prefix)


def test_lines_say_it_all() -> None:
    text = "\n".join(mask_lines(explain(at(CALL + "days:"))))
    for part in ("path       $.days", "tool       find", "number: NUMBER", "minimum 1", "allowed    ", "[1-9]"):
        assert part in text
    assert "may end here" in "\n".join(mask_lines(explain(at("Hi"))))


def test_places_follow_references_and_items() -> None:
    def paths(*steps: str | int) -> list[str]:
        return [path for _, path in places(schema, steps)]

    schema = {
        "properties": {"a": {"$ref": "#/$defs/a b"}, "p": {"prefixItems": [{"const": 1}], "items": {"const": 2}}},
        "patternProperties": {"^x": {"type": "null"}, "(": {}},
        "additionalProperties": {"oneOf": [{"type": "string"}, {"$ref": "https://elsewhere"}]},
        "$defs": {"a b": {"allOf": [{"$ref": "#"}, True]}},
    }
    assert paths() == ["$"]
    assert paths("a") == ["$.properties.a", "$.$defs['a b']", "$.$defs['a b'].allOf[0]", "$"]
    assert paths("xy") == ["$.patternProperties['^x']"]
    assert paths("q") == [f"$.additionalProperties{rest}" for rest in ("", ".oneOf[0]", ".oneOf[1]")]
    assert paths("p", 0) == ["$.properties.p.prefixItems[0]"]
    assert paths("p", 7) == ["$.properties.p.items"]
    assert paths("p", "no") == []
    assert places(True, ["a"]) == []


def test_byte_classes() -> None:
    bits = sum(1 << byte for byte in b"0123456789-]a\n\x80")
    assert byte_class(bits) == "[\\n\\-0-9\\]a\\x80]"
    assert byte_class(1 << 97 | 1 << 300) == "[a] or a marker"


# Grammars

BRACKETS = """//@ format brackets 1
//@ start turn
//@ stop "[[end]]"
//@ marker "[[call]]" "[[/call]]" "[[s]]" "[[/s]]"
//@ recover tool_call until "[[/call]]" consumed then turn
turn: [content] tool_call*
content: TEXT
tool_call: "[[call]]" tool_name object "[[/call]]"
tool_name: NAME
object: "(" [member (";" member)*] ")"
member: key ("=" | _colon) value
_colon.-1: ":"
key: NAME
?value: string | number
string: "[[s]]" [BODY] "[[/s]]"
number: NUMBER
TEXT: /((?!\\[\\[call\\]\\]|\\[\\[end\\]\\]).)+/s
BODY: /((?!\\[\\[\\/s\\]\\]).)+/s
NAME: /[a-z_]+/
NUMBER: /-?(?:0|[1-9][0-9]*)/
"""


def grammars() -> Iterator[Grammar]:
    for name in tg.list_formats():
        yield load(grammar_path(name).read_text("utf-8"), str(grammar_path(name)))
    yield load(BRACKETS)


def test_the_formats_at_hand_have_no_faults() -> None:
    for grammar in grammars():
        check_rules(grammar)
        report = report_on(grammar)
        assert report.warnings == ()
        assert report.ambiguity is None
        assert all(search.states > 20 for search in report.searches)
        text = "\n".join(report_lines(report))
        for part in (grammar.name, grammar.starts[0].rule, *grammar.stops, "role         tool_call: "):
            assert part in text


def test_what_is_only_parsed() -> None:
    report = report_on(load(BRACKETS))
    assert report.parsed_only == ("_colon",)
    assert report.on_request == ()
    assert dict(report.roles)["string"] == ("string",)
    salvaged = report_on(load(grammar_path("gemma4").read_text("utf-8")))
    assert salvaged.on_request
    assert {search.reading for search in salvaged.searches} == {"strict", "lenient", "salvage"}


def test_readings_that_differ_are_shown() -> None:
    grammar = load(
        '//@ format both 1\n//@ start turn\n//@ stop "#"\nturn: a | b\na: "<x>" content\nb: "<x>" reasoning\n'
        "content: TEXT\nreasoning: TEXT\nTEXT: /((?!#).)+/s\n"
    )
    found = report_on(grammar).ambiguity
    assert found is not None
    assert found.text.startswith("<x>")
    rest = found.text[3:]
    assert found.readings == (f"<x>⟨content:{rest}⟩", f"<x>⟨reasoning:{rest}⟩")
    with pytest.raises(tg.GrammarError, match="two canonical readings"):
        tg.Format(grammar)


WARNED = [
    ("turn: [content] tool_call*", "turn: (content | tool_call)*", "TEXT (content) can be followed by itself"),
    ("turn: [content] tool_call*", "turn: [content] (tool_call [_more])*\n_more.-1: content+", "TEXT (content) can"),
    ("turn: [content]", "reasoning: BODY\nturn: [reasoning] [content]", "BODY (reasoning) can be followed by TEXT"),
    ('"[[/s]]"\n', '"[[s]]"\n', "BODY (string) can be followed by '[[s]]', which does not end it"),
    (r"|\[\[end\]\]", "", "TEXT (content) is not ended by the stop marker '[[end]]'"),
]


@pytest.mark.parametrize(("old", "new", "warning"), WARNED)
def test_regions_that_meet(old: str, new: str, warning: str) -> None:
    assert old in BRACKETS
    grammar = load(BRACKETS.replace(old, new))
    assert any(line.startswith(warning) for line in region_warnings(grammar)), region_warnings(grammar)
    assert f"warning      {warning}" in "\n".join(report_lines(report_on(grammar)))


def test_two_regions_in_a_row_lose_a_terminator() -> None:
    """What the warning is about: the marker's letters, cut in two, are text in both halves."""
    grammar = BRACKETS.replace("turn: [content] tool_call*", "turn: content* tool_call*")
    assert region_warnings(load(grammar))


def test_diagrams() -> None:
    for grammar in grammars():
        root = ET.fromstring(diagram(grammar))
        space = "{http://www.w3.org/2000/svg}"
        titles = [title.text.strip() for title in root.findall(f"{space}text[@class='title']") if title.text]
        assert titles == list(grammar.rules)
        assert len(root.findall(f"{space}svg")) == len(grammar.rules)
        assert diagram(grammar) == diagram(grammar)


def test_diagrams_name_conditions() -> None:
    drawn = diagram(tg.load_format("gemma4").grammar)
    for label in ("declared tool_name", "declared key", "declared key of text"):
        assert f">{label}<" in drawn


def test_diagrams_say_what_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "railroad", None)
    with pytest.raises(tg.RequestError, match=r"pip install railroad-diagrams"):
        diagram(load(BRACKETS))
