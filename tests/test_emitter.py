"""The emitter: tags over a growing text become deltas, however they come in."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twingram.automaton.tags import COMMIT, Tag, TagKind, close_tag, open_tag, tag
from twingram.limits import Limits
from twingram.session.deltas import CallArguments, CallEnd, CallStart, Content, Delta, ParseError, Reasoning, merge
from twingram.session.emitter import Emitter, random_call_id
from twingram.session.message import Message
from twingram.session.openai import openai_chunks
from twingram.session.tools import Tools

TOOLS = Tools.parse(
    [
        {
            "name": "f",
            "inputSchema": {
                "properties": {
                    "s": {"type": "string"},
                    "n": {"type": "integer"},
                    "u": {"type": ["string", "integer"]},
                    "l": {"type": "array", "items": {"type": "string"}},
                    "o": {"type": "object", "properties": {"s": {"type": "string"}, "n": {"type": "number"}}},
                }
            },
        }
    ]
)


class Script:
    """A text with its tags, written part by part."""

    def __init__(self) -> None:
        self.text = bytearray()
        self.events: list[tuple[Tag, int]] = []

    def put(self, text: str | bytes) -> Script:
        self.text += text if isinstance(text, bytes) else text.encode()
        return self

    def tag(self, mark: Tag) -> Script:
        self.events.append((mark, len(self.text)))
        return self

    def open(self, role: str) -> Script:
        return self.tag(open_tag(role))

    def close(self, role: str) -> Script:
        return self.tag(close_tag(role))

    def abort(self, role: str) -> Script:
        return self.tag(tag(TagKind.ABORT, role))

    def stop(self) -> Script:
        return self.put("<stop>").tag(tag(TagKind.STOP, "<stop>"))

    def span(self, role: str, text: str | bytes) -> Script:
        return self.open(role).put(text).close(role)

    def content(self, text: str | bytes) -> Script:
        return self.span("content", text)

    def thought(self, text: str | bytes) -> Script:
        return self.put("<t>").span("reasoning", text).put("</t>")

    def name(self, name: str) -> Script:
        return self.open("tool_call").put("<c>").span("tool_name", name)

    def member(self, key: str, value: Callable[[], object]) -> Script:
        self.open("member").span("key", key).put(":")
        value()
        return self.close("member")

    def quoted(self, text: str | bytes, body: str = "text") -> Script:
        self.open("string").put("«")
        if text:
            self.span(body, text)
        return self.put("»").close("string")

    def raw(self, text: str | bytes) -> Script:
        self.open("string")
        if text:
            self.span("text", text)
        return self.close("string")

    def call(self, name: str, *members: tuple[str, Callable[[], object]]) -> Script:
        self.name(name).open("object").put("{")
        for key, value in members:
            self.member(key, value).put(",")
        return self.put("}").close("object").put("</c>").close("tool_call")


def ids() -> Callable[[int], str]:
    return lambda index: f"id{index}"


def emitter(casts: Any = "quoted", tools: Tools = TOOLS, **options: Any) -> Emitter:
    return Emitter(tools, casts=casts, call_id=ids(), **options)


def run(
    script: Script, cuts: Sequence[int] = (), fresh: Emitter | None = None, reason: str | None = None
) -> list[Delta]:
    """All deltas, the text decided up to each of the cuts in turn."""
    machine = fresh or emitter()
    text, events, out = bytearray(), list(script.events), list[Delta]()
    for upto in (*sorted(cuts), len(script.text)):
        text += script.text[len(text) : upto]
        now = [event for event in events if event[1] <= upto]
        events = events[len(now) :]
        out += machine.advance(text, now, upto)
    return out + machine.finish(text, len(text), reason)


def message(script: Script, **options: Any) -> Message:
    return Message.from_deltas(run(script, fresh=emitter(**options)))


def everywhere(script: Script, **options: Any) -> list[Delta]:
    """The merged deltas, after checking that one byte at a time gives the same."""
    whole = merge(run(script, fresh=emitter(**options)))
    single = run(script, range(len(script.text)), fresh=emitter(**options))
    assert merge(single) == whole
    late = run(script, [*range(0, len(script.text), 3)], fresh=emitter(**options))
    assert merge(late) == whole
    return whole


# -- content and reasoning ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "content", "reasoning"),
    [
        ("c: \nHi  ", " \nHi  ", None),
        ("c:Hi \n|x", "Hi", None),
        ("c:Hi \n|t:a|c: you", "Hi \n you", "a"),
        ("c: \n|t:a|c: \n ", None, "a"),
        ("c: \n ", " \n ", None),
        ("t:a|c:\n\nHi", "\n\nHi", "a"),
        ("x|c: \r\n|x", None, None),
        ("x|c: \n", None, None),
        ("x|c: \nHi", " \nHi", None),
        ("c:a |c: b", "a  b", None),
        ("c:a|c: |c: |x", "a", None),
        ("c:a|d:zzz|c: b", "a b", None),
        ("t:\n\na\n b \n|t:|t:\n\n|t:\nc\n", None, "a\n b \nc"),
        ("t:\r\na\r\n", None, "a"),
        ("t: ", None, " "),
        ("c:a|e:oops|c:b", "ab", None),
        ("c:a |e:oops|c: ", "a", None),
        ("", None, None),
    ],
)
def test_trims(parts: str, content: str | None, reasoning: str | None) -> None:
    script = Script()
    for part in parts.split("|"):
        kind, _, text = part.partition(":")
        if kind == "x":
            script.call("f")
        elif kind:
            role = {"c": "content", "t": "reasoning", "d": "dropped", "e": "error"}[kind]
            script.put("<m>").span(role, text).put("</m>")
    found = Message.from_deltas(everywhere(script))
    assert (found.content, found.reasoning) == (content, reasoning)


def test_content_comes_as_it_is_decided() -> None:
    machine = emitter()
    text = bytearray(b"ab c")
    assert machine.advance(text, [(open_tag("content"), 0)], 3) == [Content("ab")]
    assert machine.advance(text, [], 4) == [Content(" c")]
    assert machine.advance(text, [], 4) == []


def test_a_character_waits_for_its_last_byte() -> None:
    machine = emitter()
    text = bytearray("é😀".encode())
    machine.advance(text, [(open_tag("content"), 0)], 0)
    assert [machine.advance(text, [], upto) for upto in range(1, 7)] == [
        [], [Content("é")], [], [], [], [Content("😀")]
    ]  # fmt: skip


@given(st.binary(max_size=12), st.sets(st.integers(0, 12)))
@settings(max_examples=300, deadline=None)
def test_invalid_bytes_are_replaced_the_same_way_however_cut(data: bytes, cuts: set[int]) -> None:
    script = Script().content(b"x" + data + b"x")
    joined = Message.from_deltas(run(script, [cut for cut in cuts if cut <= len(script.text)]))
    assert joined.content == (b"x" + data + b"x").decode("utf-8", "replace")


def test_bodies_in_roles_that_are_not_direct() -> None:
    script = Script().open("reasoning").put("<t>label\n").span("text", "\nhm\n").put("</t>").close("reasoning")
    script.open("content").put("<m>").span("text", "Hi ").put("</m>").close("content")
    assert everywhere(script, direct=frozenset()) == [Reasoning("hm"), Content("Hi ")]
    direct = Script().open("content").span("text", "Hi ").close("content").open("reasoning").span("text", "a")
    assert everywhere(direct) == [Content("Hi "), Reasoning("a")]


def test_what_is_passed_over() -> None:
    script = Script().open("content").put("a").span("padding", "  ").put("b").open("silent").put("zz")
    script.span("content", "q").close("silent").put("c").close("content")
    assert everywhere(script) == [Content("abc")]
    name = Script().open("tool_call").open("tool_name").span("silent", "f.").put("f").close("tool_name")
    name.close("tool_call")
    assert message(name).calls[0].name == "f"


# -- calls -------------------------------------------------------------------------------------------------------------


def test_a_call_streams() -> None:
    script = Script()
    script.call("f", ("s", lambda: script.quoted('a"b\n')), ("n", lambda: script.span("number", "-07")))
    assert everywhere(script) == [
        CallStart(0, "id0", "f"),
        CallArguments(0, '{"s": "a\\"b\\n", "n": -7}'),
        CallEnd(0, True),
    ]
    pieces = [delta.json for delta in run(script, range(99)) if isinstance(delta, CallArguments)]
    assert pieces == ["{", '"s": ', '"', "a", '\\"', "b", "\\n", '"', ', "n": ', "-7", "}"]


def test_containers_nest() -> None:
    script = Script()

    def value() -> None:
        script.open("array").put("[")
        script.quoted("a").put(",").span("null", "nil").put(",").span("true", "yes")
        script.open("object").member("k", lambda: script.span("bare", " x y ")).close("object")
        script.open("array").close("array").open("object").close("object")
        script.put("]").close("array")

    script.call("g", ("v", value))
    arguments = Message.from_deltas(everywhere(script)).calls[0].arguments
    assert arguments == '{"v": ["a", null, true, {"k": "x y"}, [], {}]}'


def test_calls_count_and_duplicate_keys_stay_in_the_stream() -> None:
    script = Script()
    script.call("f", ("s", lambda: script.quoted("a")), ("s", lambda: script.quoted("b"))).call("f")
    found = Message.from_deltas(everywhere(script))
    assert [call.index for call in found.calls] == [0, 1]
    assert found.calls[0].arguments == '{"s": "a", "s": "b"}'
    assert found.calls[0].value == {"s": "b"}
    assert found.calls[1].value == {}


def test_open_containers_close_with_the_call_and_a_missing_value_is_empty() -> None:
    script = Script().name("f").open("object").span("key", "l").open("array")
    script.quoted("a").close("tool_call")
    assert message(script).calls[0].value == {"l": ["a"]}
    script = Script().name("f").open("object").span("key", "s").span("key", "n").close("tool_call")
    assert message(script).calls[0].value == {"s": "", "n": ""}
    assert message(Script().name("f").close("tool_call")).calls[0].value == {}


def test_what_has_no_place_is_passed_over() -> None:
    script = Script().name("f").open("object").quoted("lost").open("array").quoted("x").close("array")
    script.member("s", lambda: script.quoted("a")).close("object")
    script.open("object").member("n", lambda: script.quoted("2")).close("object").close("tool_call")
    assert message(script).calls[0].value == {"s": "a"}
    outside = Script().quoted("x").open("object").close("object").span("tool_name", "f").close("key").content("a")
    assert everywhere(outside) == [Content("a")]


def test_keys() -> None:
    script = Script().name("g").open("object")
    for key in (" a b ", '"x\\n"', "'y'", "`z`"):
        script.member(key, lambda: script.span("number", "1"))
    script.open("key").put("«").span("text", ' "q ').put("»").close("key").span("number", "2")
    script.open("key").quoted("in").close("key").span("number", "3")
    script.open("key").put('"').span("escaped", "\\u00e9").put('"').close("key").span("number", "4")
    script.close("object").close("tool_call")
    value = Message.from_deltas(everywhere(script)).calls[0].value
    assert value == {"a b": 1, "x\n": 1, "y": 1, "z": 1, ' "q ': 2, "in": 3, "é": 4}
    raw = Script()
    raw.call("g", (" k'", lambda: raw.raw("x")))
    assert message(raw, casts="raw").calls[0].value == {" k'": "x"}


def test_types_reach_into_containers() -> None:
    script = Script()

    def nested() -> None:
        script.open("object").member("s", lambda: script.span("bare", "00750"))
        script.member("n", lambda: script.quoted("5.")).close("object")

    def listed() -> None:
        script.open("array").span("number", "7").span("null", "null").close("array")

    script.call("f", ("o", nested), ("l", listed), ("u", lambda: script.quoted("1")), ("n", lambda: script.quoted("x")))
    assert Message.from_deltas(everywhere(script)).calls[0].arguments == (
        '{"o": {"s": "00750", "n": 5.0}, "l": ["7", "null"], "u": "1", "n": "x"}'
    )


def test_raw_values_are_typed_by_the_schema() -> None:
    script = Script()
    pairs = [("s", ' {"a": 1} '), ("n", " 7 "), ("u", "42"), ("u", "x"), ("l", '["a",\n1]'), ("o", "[1"), ("z", "null")]
    script.call("f", *((key, lambda text=text: script.raw(text)) for key, text in pairs))
    expected = '{"s": " {\\"a\\": 1} ", "n": 7, "u": 42, "u": "x", "l": ["a",\n1], "o": "[1", "z": null}'
    assert [delta for delta in everywhere(script, casts="raw") if isinstance(delta, CallArguments)] == [
        CallArguments(0, expected)
    ]
    empty = Script()
    empty.call("f", ("s", lambda: empty.raw("")), ("n", lambda: empty.raw("")))
    assert message(empty, casts="raw").calls[0].value == {"s": "", "n": ""}


def test_json_strings_without_a_body_of_their_own() -> None:
    script = Script()
    pairs = [("s", '"a\\n\\u00e9"'), ("s", '""'), ("n", '"7"'), ("u", '"7"'), ('"s"', '"x"')]
    script.call("f", *((key, lambda text=text: script.span("string", text)) for key, text in pairs))
    assert Message.from_deltas(everywhere(script)).calls[0].arguments == (
        '{"s": "a\\né", "s": "", "n": 7, "u": "7", "s": "x"}'
    )


@pytest.mark.parametrize(
    "text", ["a\\n\\u0041\\ud83d\\ude00b", "\\ud83dx", "\\ud83d\\u0041", "\\\\u0041", "\\q\\", "\\u12"]
)
def test_escaped_bodies(text: str) -> None:
    script = Script()
    script.call("f", ("s", lambda: script.quoted(text, "escaped")), ("n", lambda: script.quoted(text, "escaped")))
    value = Message.from_deltas(everywhere(script)).calls[0].value
    assert value["s"] == value["n"]
    if not text.endswith(("\\", "\\u12")):
        assert value["s"].encode("utf-16", "surrogatepass") == (
            json.loads(f'"{text}"').replace("\ud83dA", "\ufffdA").replace("\ud83d", "\ufffd").encode("utf-16")
        )


def test_unknown_tools() -> None:
    script = Script().content("Hi ")
    script.call("nope", ("a", lambda: script.quoted("b"))).content(" \n").call("f")
    found = Message.from_deltas(everywhere(script))
    assert [call.name for call in found.calls] == ["nope", "f"]
    assert found.content == "Hi"
    kept = Message.from_deltas(everywhere(script, unknown_tools="text"))
    assert [call.name for call in kept.calls] == ["f"]
    assert kept.content == "Hi <c>nope{a:«b»,}</c>"
    assert [c.name for c in message(script, tools=Tools.parse(None), unknown_tools="text").calls] == ["nope", "f"]
    assert message(script, tools=Tools.parse([]), unknown_tools="text").calls == ()
    with pytest.raises(ValueError, match="unknown_tools"):
        emitter(unknown_tools="raise")


def test_unknown_tool_as_text_that_breaks() -> None:
    script = Script().name("nope").open("object").put("{oops").abort("tool_call").open("error").put("</c>")
    script.close("error").content("!")
    assert everywhere(script, unknown_tools="text") == [Content("<c>nope{oops</c>!")]


# -- what breaks -------------------------------------------------------------------------------------------------------


def test_a_call_that_breaks_before_its_name() -> None:
    script = Script().content("a ").open("tool_call").put("<c>").open("tool_name").put("run it").abort("tool_call")
    script.open("error").put(" now</c>").close("error").call("f")
    assert everywhere(script) == [
        Content("a"),
        ParseError("<c>run it now</c>", "unreadable tool call"),
        CallStart(0, "id0", "f"),
        CallArguments(0, "{}"),
        CallEnd(0, True),
    ]


@pytest.mark.parametrize("role", ["tool_call", "object", "string"])
def test_a_call_that_breaks_later(role: str) -> None:
    script = Script().name("f").open("object").put("{").open("member").span("key", "s").put(":").open("string")
    script.put("«").open("text").put("ab").abort(role).open("error").put("@@").close("error")
    if role != "tool_call":
        script.span("key", "n").span("number", "1").close("tool_call")
    deltas = everywhere(script)
    assert deltas[:3] == [CallStart(0, "id0", "f"), CallArguments(0, '{"s": "ab'), CallEnd(0, False)]
    start = {"tool_call": "<c>f{s:«ab@@", "object": "{s:«ab@@", "string": "«ab@@"}[role]
    assert deltas[3:] == [ParseError(start, f"unreadable {role.replace('_', ' ')}")]
    found = Message.from_deltas(deltas)
    assert found.calls == ()
    assert found.incomplete_calls[0].arguments == '{"s": "ab'


def test_a_call_without_a_name_and_errors_inside_others() -> None:
    assert everywhere(Script().open("tool_call").put("<c>").close("tool_call")) == [
        ParseError("<c>", "a call without a name")
    ]
    script = Script().open("tool_call").open("tool_name").put("x").abort("tool_name").open("error").close("error")
    assert everywhere(script.close("tool_call")) == [ParseError("x", "unreadable tool name")]
    dropped = Script().open("dropped").open("tool_call").put("x").abort("tool_call").open("error").put("y")
    assert everywhere(dropped.close("error").close("dropped").content("z")) == [Content("z")]
    assert everywhere(Script().abort("tool_call").content("z")) == [Content("z")]
    broken = Script().open("reasoning").put("a\n").abort("reasoning").open("error").put("y").close("error")
    assert everywhere(broken.thought("b")) == [
        Reasoning("a"),
        ParseError("y", "unreadable reasoning"),
        Reasoning("\nb"),
    ]


def test_the_end_inside_something() -> None:
    assert run(Script().open("tool_call").put("<c>").open("tool_name").put("f"), reason="length") == [
        ParseError("<c>f", "the output ended inside a call (length)")
    ]
    cut = Script().name("f").open("object").span("key", "s").open("string").open("text").put(b"a\xc3")
    assert everywhere(cut) == [
        CallStart(0, "id0", "f"),
        CallArguments(0, '{"s": "a\ufffd'),
        CallEnd(0, False),
    ]
    waiting = Script().name("f").open("object").span("key", "n").open("number").put("4")
    assert everywhere(waiting)[-2:] == [CallArguments(0, '{"n": '), CallEnd(0, False)]
    broken = Script().name("f").abort("tool_call").open("error").put("xx")
    assert everywhere(broken)[-1] == ParseError("<c>fxx", "unreadable tool call")
    assert everywhere(Script().open("content").put("a ")) == [Content("a ")]
    assert everywhere(Script().open("reasoning").put("a \n")) == [Reasoning("a ")]
    assert everywhere(Script().open("tool_call").close("tool_call").open("content").put(" ")) == [
        ParseError("", "a call without a name")
    ]
    machine = emitter()
    assert machine.finish(bytearray(), 0) == machine.finish(bytearray(), 0) == []
    assert machine.advance(bytearray(b"x"), [(open_tag("content"), 0)], 1) == []


def test_stop_ends_the_turn() -> None:
    script = Script().content("a ").stop().put("\n").content("later").call("f").span("error", "x")
    assert everywhere(script) == [Content("a ")]
    machine = emitter()
    text = bytearray(b"a <stop>")
    machine.advance(text, [(open_tag("content"), 0), (close_tag("content"), 2)], 2)
    assert machine.advance(text, [(COMMIT, 2), (tag(TagKind.STOP, "<stop>"), 8)], 8) == [Content(" ")]
    closing = Script().name("f").open("object").put("{").stop().close("object").close("tool_call").content("later")
    assert Message.from_deltas(everywhere(closing)).calls[0].value == {}
    inside = Script().open("content").put("a").tag(tag(TagKind.STOP, "<stop>")).put("zzz").close("content")
    assert everywhere(inside) == [Content("a")]


def test_limits() -> None:
    deep = Script().name("f").open("object").span("key", "l").open("array").open("array").quoted("x")
    deep.close("array").close("array").close("object").close("tool_call").call("f")
    deltas = everywhere(deep, limits=Limits(depth=2))
    assert deltas[:4] == [
        CallStart(0, "id0", "f"),
        CallArguments(0, '{"l": ['),
        CallEnd(0, False),
        ParseError(deep.text[: deep.text.index(b"<c>", 1)].decode(), "arguments nest deeper than Limits.depth = 2"),
    ]
    assert Message.from_deltas(deltas).calls[0].index == 1
    many = Script().call("f").call("f").content("x")
    found = Message.from_deltas(everywhere(many, limits=Limits(calls=1)))
    assert len(found.calls) == 1
    assert found.errors[0].text == "<c>f{}</c>"
    assert found.content == "x"
    assert found.errors[0].reason == "more calls than Limits.calls = 1"
    long = Script()
    long.call("f", ("s", lambda: long.quoted("é" * 40))).call("f")
    found = Message.from_deltas(everywhere(long, limits=Limits(argument_bytes=22)))
    assert found.incomplete_calls[0].arguments == '{"s": "éééééé'
    assert len(found.calls) == 1
    assert found.errors[0].reason == "a call longer than Limits.argument_bytes = 22"
    nested = Script()
    nested.call("f", ("l", lambda: nested.raw("[[1]]")), ("l", lambda: nested.raw("[1]")))
    assert message(nested, casts="raw", limits=Limits(depth=2)).calls[0].arguments == '{"l": "[[1]]", "l": [1]}'


def test_a_clone_goes_on_by_itself() -> None:
    script = Script().content("a ")
    script.thought("b\n").call("f", ("s", lambda: script.quoted("x\\y")), ("n", lambda: script.span("number", "1")))
    script.content(" c ")
    whole = merge(run(script))
    for cut in range(len(script.text) + 1):
        machine = emitter()
        now = [event for event in script.events if event[1] <= cut]
        first = machine.advance(script.text, now, cut)
        twin = machine.clone()
        for each in (machine, twin):
            rest = each.advance(script.text, script.events[len(now) :], len(script.text))
            rest += each.finish(script.text, len(script.text))
            assert [_anonymous(d) for d in merge(first + rest)] == [_anonymous(d) for d in whole]


def _anonymous(delta: Delta) -> Delta:
    return CallStart(delta.index, "", delta.name) if isinstance(delta, CallStart) else delta


# -- random scripts ----------------------------------------------------------------------------------------------------

PIECES = ["", " ", "\n", " \n", "a", "a b", "é", "x\n", '"', "\\", "😀", "{}", "7", "null", "<c>"]


def scripted(rng: random.Random, raw: bool) -> Script:
    """Anything a grammar might say, well nested, with aborts, and sometimes cut."""
    script = Script()

    def text() -> str:
        return "".join(rng.choices(PIECES, k=rng.randrange(4)))

    def value(depth: int) -> None:
        kind = rng.randrange(3 if raw else 7)
        if kind < 3 or depth > 3:
            (script.raw if raw else script.quoted)(text())
        elif kind == 3:
            script.span(
                rng.choice(["number", "bare", "true", "null"]), rng.choice(["7", "1.5", "+7", "x", "true", " n "])
            )
        elif kind == 4:
            script.open("array").put("[")
            for _ in range(rng.randrange(3)):
                value(depth + 1)
            script.put("]").close("array")
        else:
            script.open("object").put("{")
            for _ in range(rng.randrange(3)):
                script.member(rng.choice("snulo"), lambda: value(depth + 1))
            script.put("}").close("object")

    for _ in range(rng.randrange(6)):
        kind = rng.randrange(8)
        if kind < 2:
            script.put("<m>").content(text())
        elif kind == 2:
            script.thought(text())
        elif kind == 3:
            script.span(rng.choice(["dropped", "padding", "silent", "error"]), text())
        elif kind == 4:
            script.name("f").open("object").put("{").member("s", lambda: value(1))
            script.abort(rng.choice(["tool_call", "object"])).open("error").put(text()).close("error")
            script.close("tool_call") if rng.random() < 0.5 else None
        else:
            members = [(rng.choice("snulo"), lambda: value(1)) for _ in range(rng.randrange(4))]
            script.call(rng.choice(["f", "f", "g"]), *members)
    if rng.random() < 0.3 and script.text:
        cut = rng.randrange(len(script.text))
        script.events = [event for event in script.events if event[1] <= cut]
        del script.text[cut:]
    return script


@pytest.mark.parametrize("casts", ["quoted", "raw"])
@pytest.mark.parametrize("unknown", ["pass", "text"])
def test_random_scripts(casts: str, unknown: str) -> None:
    rng = random.Random(f"{casts} {unknown}")
    for _ in range(300):
        script = scripted(rng, casts == "raw")
        options = {"casts": casts, "unknown_tools": unknown}
        whole = everywhere(script, **options)
        cuts = [cut for cut in range(len(script.text)) if rng.random() < 0.3]
        assert merge(run(script, cuts, fresh=emitter(**options))) == whole
        check_stream(whole)


def check_stream(deltas: list[Delta]) -> None:
    """Calls start, get arguments and end in order, and what they join to is JSON or a prefix of it."""
    starts = [delta.index for delta in deltas if isinstance(delta, CallStart)]
    ends = [delta.index for delta in deltas if isinstance(delta, CallEnd)]
    assert starts == ends == list(range(len(starts)))
    found = Message.from_deltas(deltas)
    for call in found.calls:
        assert isinstance(json.loads(call.arguments), dict)
        assert call.value == json.loads(call.arguments)
        call.arguments.encode()
    for call in found.incomplete_calls:
        assert is_prefix(call.arguments)
    joined = "".join(
        piece.get("arguments", "")
        for chunk in openai_chunks(deltas)
        for entry in chunk["choices"][0]["delta"].get("tool_calls", ())
        for piece in [entry["function"]]
    )
    assert joined == "".join(delta.json for delta in deltas if isinstance(delta, CallArguments))


def is_prefix(text: str) -> bool:
    """Whether some completion of this text is a JSON object: close what is open and see."""
    closers, inside, escaped = [], False, False
    for character in text:
        if inside:
            inside = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            inside = True
        elif character in "{[":
            closers.append("}" if character == "{" else "]")
        elif character in "}]":
            assert closers.pop() == character
    closed = "".join(reversed(closers))
    endings = ['"'] if inside else ["", "0"]
    for ending in endings:
        for middle in ("", ": 0", '"k": 0'):
            try:
                return isinstance(json.loads((text or "{}") + ending + middle + closed), dict)
            except ValueError:
                continue
    return False


def test_call_ids() -> None:
    assert len({random_call_id() for _ in range(50)}) == 50
    assert random_call_id().startswith("call_")
    assert len(random_call_id()) == 29


@given(st.lists(st.sampled_from([Content("a"), Reasoning("b"), CallArguments(0, "x"), CallArguments(1, "y"),
                                 ParseError("p", "r"), CallEnd(0, True)])))  # fmt: skip
def test_merge_joins_neighbours_only(deltas: list[Delta]) -> None:
    merged = merge(deltas)
    assert merge(merged) == merged
    assert merge([*merge(deltas[:2]), *deltas[2:]]) == merged
    kinds = [delta.kind for delta in merged if delta.kind in ("content", "reasoning")]
    assert "".join(getattr(d, "text", getattr(d, "json", "")) for d in merged) == "".join(
        getattr(d, "text", getattr(d, "json", "")) for d in deltas
    )
    assert len(kinds) <= len(deltas)


def test_ids_of_calls_differ_between_processes() -> None:
    """They are drawn many at a time, and a process that forks takes none of them along."""
    make = "import os; from twingram.session.callids import random_call_id as made; made()"
    code = f"{make}; os.fork(); os.write(1, made().encode() + b' ')"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert len(set(made)) == len(made) == 2
    assert len({random_call_id() for _ in range(1000)}) == 1000
