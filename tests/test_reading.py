"""Outputs that are cut, odd bytes, numbers, what is too large, conditions: tables of right answers."""

from __future__ import annotations

import json
import random
import unicodedata
from typing import Any

import pytest

import twingram as tg

from .deviations import TOOLS as DECLARED
from .deviations import tool
from .fuzz.harness import Trial, random_trial
from .test_deviations import MARKERS, told
from .variants import VARIANTS, Variant
from .walks import call_ids, small

TEXT, INTEGER, NUMBER, LIST = ({"type": name} for name in ("string", "integer", "number", "array"))
TOOLS = [tool("f", a=TEXT, b=INTEGER, n=NUMBER, l=LIST, u={})]
OPENER, END, QUOTE = "<|tool_call>", "<tool_call|>", '<|"|>'
NEXT = "<|eom|><|start|>assistant"
BLOCK = ' to=f<|message|><atem:function_calls>\n<atem:invoke name="f">\n'
PARAMETER, CLOSER = '<atem:parameter name="', "</atem:parameter>\n"
BLOCK_END = "</atem:invoke>\n</atem:function_calls>"
BETWEEN = {"gemma4": "", "atem": NEXT}
USER = {"gemma4": "", "atem": " to=user<|message|>"}
BOTH = pytest.mark.parametrize("name", ["gemma4", "atem"])


def call(name: str, key: str, value: str, quoted: bool = False) -> str:
    """A call of `f` in the format's spelling."""
    if name == "atem":
        return f'{BLOCK}{PARAMETER}{key}">{value}{CLOSER}{BLOCK_END}'
    return f"{OPENER}call:f{{{key}:{QUOTE * quoted}{value}{QUOTE * quoted}}}{END}"


def read(name: str, data: bytes, reason: str | None = None, **options: Any) -> tg.Message:
    """The message, the same from one piece, from single bytes, from some other pieces and from tokens."""
    vocabulary, chance = small(name), random.Random(len(data))
    cuts = sorted(chance.choices(range(len(data) + 1), k=4))
    pieces = [data[one:two] for one, two in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    found = []
    for fed in ([data], [data[at : at + 1] for at in range(len(data))], pieces, None):
        more = {"vocabulary": vocabulary} if fed is None else {}
        parser = tg.load_format(name).parser(TOOLS, call_id=call_ids(), **more, **options)
        if fed is None:
            for token in tokens(name, data):
                parser.feed_tokens([token])
        for piece in fed or ():
            parser.feed_bytes(piece)
        parser.finish(reason)
        found.append(parser.message)
    assert all(message == found[0] for message in found)
    return found[0]


def tokens(name: str, data: bytes) -> list[int]:
    """Markers as special tokens, any other byte as the token of that byte."""
    vocabulary = small(name)
    letters = {vocabulary.token_bytes(token): token for token in range(len(vocabulary))}
    markers = sorted(tg.load_format(name).grammar.markers, key=len, reverse=True)
    out, at = [], 0
    while at < len(data):
        marker = next((marker for marker in markers if data.startswith(marker.encode(), at)), None)
        out.append(letters[data[at : at + 1]] if marker is None else vocabulary.special_tokens[marker])
        at += 1 if marker is None else len(marker.encode())
    return out


# An output that was cut.

_INVOKE = f"{BLOCK}{PARAMETER}"
CUT = [
    ("gemma4", "", ""),
    ("gemma4", "Hi", 'content "Hi"'),
    ("gemma4", "Hi <", 'content "Hi <"'),
    ("gemma4", "<|channel>thought\nhm", 'reasoning "hm"'),
    ("gemma4", "<|channel>thou", 'error "<|channel>thou"'),
    ("gemma4", "Hi<|channel>", 'content "Hi"; error "<|channel>"'),
    ("gemma4", f"Hi{OPENER}", f'content "Hi{OPENER}"'),
    ("gemma4", f"{OPENER}call:f", f'error "{OPENER}call:f"'),
    ("gemma4", f"{OPENER}call:f{{", "cut f {"),
    ("gemma4", f"{OPENER}call:f{{a", "cut f {"),
    ("gemma4", f"{OPENER}call:f{{a:", 'cut f {"a": '),
    ("gemma4", f"{OPENER}call:f{{a:{QUOTE}", 'cut f {"a": "'),
    ("gemma4", f"{OPENER}call:f{{a:{QUOTE}x", 'cut f {"a": "x'),
    ("gemma4", f"{OPENER}call:f{{b:1", 'cut f {"b": '),
    ("gemma4", f"{OPENER}call:f{{l:[1,tr", 'cut f {"l": [1'),
    ("gemma4", f"{OPENER}call:f{{b:1}}", 'call f {"b": 1}'),
    ("gemma4", f"{OPENER}call:f{{b:1}}{END}{OPENER}call:f{{a:{QUOTE}x", 'call f {"b": 1}; cut f {"a": "x'),
    ("atem", "", ""),
    ("atem", " to=", 'error " to="'),
    ("atem", " to=f", 'error " to=f"'),
    ("atem", " to=f<|message|>", 'error " to=f<|message|>"'),
    ("atem", " to=self<|message|>hm", 'reasoning "hm"'),
    ("atem", " to=self<|message|>hm<|eom|>", 'reasoning "hm"'),
    ("atem", f" to=self<|message|>hm{NEXT}", 'reasoning "hm"'),
    ("atem", " to=user<|message|>Hi", 'content "Hi"'),
    ("atem", " to=user<|message|>Hi <", 'content "Hi <"'),
    ("atem", f"{_INVOKE}", "cut f {"),
    ("atem", f"{_INVOKE}a", "cut f {"),
    ("atem", f'{_INVOKE}a">', 'cut f {"a": "'),
    ("atem", f'{_INVOKE}a">x', 'cut f {"a": "x'),
    ("atem", f'{_INVOKE}b">1{CLOSER}', 'cut f {"b": 1'),
    ("atem", f'{_INVOKE}l">[1,', 'cut f {"l": '),
]  # fmt: skip
# Half a marker that is letters to a parser of text. As tokens, its letters are text in any case.
HALF = [
    ("gemma4", "Hi <|tool_", 'content "Hi <|tool_"'),
    ("gemma4", f"{OPENER}call:f{{a:{QUOTE}x<|", 'cut f {"a": "x; error ""'),
    ("atem", " to=user<|message|>Hi <|eo", 'content "Hi <|eo"'),
    ("atem", f'{_INVOKE}a">x</atem:par', 'cut f {"a": "x"; error ""'),
]


@pytest.mark.parametrize(("name", "text", "gives"), CUT, ids=[f"{name}-{text!r}" for name, text, _ in CUT])
def test_an_output_that_is_cut(name: str, text: str, gives: str) -> None:
    assert told(read(name, text.encode(), "length")) == gives
    assert told(read(name, text.encode())) == gives, "why it ended changes no reading"


STREAMED = [
    ("gemma4", "Hi", 'content "Hi\ufffd"'), ("gemma4", "<|channel>thought\nhm", 'reasoning "hm\ufffd"'),
    ("gemma4", f"{OPENER}call:f{{a:{QUOTE}x", 'cut f {"a": "x\ufffd'),
    ("gemma4", f"{OPENER}call:f", f'error "{OPENER}call:f\ufffd"'),
    ("atem", " to=user<|message|>Hi", 'content "Hi\ufffd"'), ("atem", " to=self<|message|>hm", 'reasoning "hm\ufffd"'),
    ("atem", f'{_INVOKE}a">x', 'cut f {"a": "x\ufffd'),
]  # fmt: skip


@pytest.mark.parametrize("half", [b"\xc3", b"\xe6\xbc", b"\xf0\x9f\x98"])
@pytest.mark.parametrize(("name", "text", "gives"), STREAMED)
def test_half_a_character(name: str, text: str, gives: str, half: bytes) -> None:
    assert told(read(name, text.encode() + half, "length")) == gives


@pytest.mark.parametrize(("name", "text", "gives"), HALF)
def test_half_a_marker(name: str, text: str, gives: str) -> None:
    for pieces in ([text], text):
        parser = tg.load_format(name).parser(TOOLS, call_id=call_ids())
        for piece in pieces:
            parser.feed(piece)
        parser.finish("length")
        assert told(parser.message) == gives


# Calls with the markup that may be cut between @, its first letter outside: before that the call is only incomplete.
MARKUP = {
    "gemma4": [f"{OPENER}call:f{{a:{QUOTE}x<@|\"|>@,l:[{QUOTE}y<@|\"|>@,1],b:2}}<@tool_call|>@"],
    "atem": [
        f'{BLOCK}<@atem:parameter name="@a">x<@/atem:parameter@>\n<@atem:parameter name="@l">[1]<@/atem:parameter@>\n',
        f'{BLOCK}<@atem:parameter name="@b">1<@/atem:parameter@>\n</@atem:invoke@>\n',
    ],
}


@pytest.mark.parametrize(("name", "marked"), [(name, text) for name in MARKUP for text in MARKUP[name]])
def test_markup_of_a_call_that_is_cut_is_told(name: str, marked: str) -> None:
    """Wherever the output ends inside of it; nothing of it is shown as an answer."""
    parts = marked.split("@")
    for at in range(1, len(parts), 2):
        before, start = "".join(parts[:at]), max("".join(parts[:at]).rfind("<"), 0)
        for width in range(len(parts[at])):
            text = before + parts[at][:width]
            message = tg.load_format(name).parse(text, tools=TOOLS)
            told_of = [(error.text, error.reason) for error in message.errors]
            assert told_of == [("", f"the output ended inside markup: {text[start:]}")], text
            assert (message.content, len(message.incomplete_calls)) == (None, 1)
            assert message.to_openai()["content"] is None
            assert not any("content" in chunk["choices"][0]["delta"] for chunk in _chunks(name, text))
        message = tg.load_format(name).parse(before[:start], tools=TOOLS)
        assert not message.errors, before[:start]


def _chunks(name: str, text: str) -> list[Any]:
    parser = tg.load_format(name).parser(TOOLS)
    return list(tg.openai_chunks(parser.feed(text) + parser.finish()))


def test_the_reason_is_told() -> None:
    message = read("gemma4", f"{OPENER}call:f".encode(), "length")
    assert [error.reason for error in message.errors] == ["the output ended inside a call (length)"]


# One output for each alternative of the grammars.


@pytest.mark.parametrize("variant", VARIANTS, ids=[f"{one.format}-{one.text[:40]!r}" for one in VARIANTS])
def test_variants(variant: Variant) -> None:
    names, text, gives = [variant.format], variant.text, variant.gives
    if variant.format == "gemma4" and "channel" not in text and "prompt_tail" not in variant.options:
        names.append("functiongemma")
    for name in names:
        for one, other in MARKERS.items() if name == "functiongemma" else ():
            text, gives = text.replace(one, other), gives.replace(one, other)
        for pieces in ([text], text):
            parser = tg.load_format(name).parser(DECLARED, call_id=call_ids(), **variant.options)
            for piece in pieces:
                parser.feed(piece)
            parser.finish()
            assert told(parser.message) == gives


# Bytes.

CHARACTERS = {
    "NUL": "a\0b", "CRLF": "a\r\nb\rc\n.", "right to left": "שלום עולם, مرحبا",
    "direction marks": "\u202ea\u200f\u2066b",
    "combining": "e\u0301 and \u00e9, \u1100\u1161 and \uac00", "byte order mark": "\ufeffa\ufeff",
    "controls": "\x01\x1b[0m\x7f\x85", "separators": "a\u2028b\u2029c",
    "astral": "\U0001d54f\U0001f600\U00020000",
    "last of each plane": "".join(chr((plane << 16) | 0xFFFD) for plane in range(17)),
    "joined": "👩\u200d👩\u200d👧\ufe0f", "compatibility": "\ufb01 \u212b \uff21",
}  # fmt: skip


@pytest.mark.parametrize("what", CHARACTERS)
@BOTH
def test_nothing_is_normalised(name: str, what: str) -> None:
    text = CHARACTERS[what]
    assert read(name, (USER[name] + text).encode()).content == text
    message = read(name, call(name, "a", text, quoted=True).encode())
    assert [one.value for one in message.calls] == [{"a": text}]
    assert json.loads(message.calls[0].arguments) == {"a": text}
    key = {"gemma4": f"{QUOTE}{text}{QUOTE}", "atem": text}[name]
    assert read(name, call(name, key, "1").encode()).calls[0].value == {text: 1}


def test_some_of_them_have_another_normal_form() -> None:
    changed = {what for what, text in CHARACTERS.items() if unicodedata.normalize("NFKC", text) != text}
    assert {"combining", "compatibility"} <= changed


INVALID = [
    (b"a\xffb", "a\ufffdb"), (b"a\xc3(", "a\ufffd("), (b"\xe2\x82", "\ufffd"), (b"\xf0\x9f\x98x", "\ufffdx"),
    (b"\xc0\xaf", "\ufffd\ufffd"), (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd"), (b"\xf4\x90\x80\x80", "\ufffd" * 4),
    (b"\x80\x80", "\ufffd\ufffd"), (b"\xf5", "\ufffd"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "text"), INVALID)
@BOTH
def test_what_is_no_text_is_replaced_visibly(name: str, data: bytes, text: str) -> None:
    assert data.decode("utf-8", "replace") == text
    assert read(name, USER[name].encode() + data).content == text
    one = call(name, "a", "@", quoted=True).encode().replace(b"@", data)
    assert [made.value for made in read(name, one).calls] == [{"a": text}]


# Numbers.

BIG, LONG = "12345678901234567890123456789", "3.141592653589793238462643383279502884197"
NUMBERS = [
    ("b", BIG, BIG), ("b", f"-{BIG}", f"-{BIG}"), ("n", BIG, BIG), ("u", BIG, BIG), ("b", "9" * 5000, "9" * 5000),
    ("n", LONG, LONG), ("u", LONG, LONG), ("n", "0.10", "0.10"), ("n", "1.0", "1.0"), ("n", "1E5", "1E5"),
    ("n", "1e-7", "1e-7"), ("b", "-0", "-0"), ("b", "007", "7"), ("b", "+5", "5"), ("n", ".5", "0.5"),
    ("n", "5.", "5.0"),
    ("n", "1e400", '"1e400"'), ("n", "-1e400", '"-1e400"'), ("u", "1e400", '"1e400"'), ("n", "NaN", '"NaN"'),
    ("n", "Infinity", '"Infinity"'), ("u", "-Infinity", '"-Infinity"'), ("n", "inf", '"inf"'), ("b", "0x10", '"0x10"'),
    ("b", "1_000", '"1_000"'),
    ("l", f"[{BIG}, {LONG}, 1E5, -0]", f"[{BIG}, {LONG}, 1E5, -0]"),
]  # fmt: skip


@pytest.mark.parametrize(("key", "text", "json_text"), NUMBERS, ids=[f"{key}-{text[:12]}" for key, text, _ in NUMBERS])
@BOTH
def test_numbers_as_written(name: str, key: str, text: str, json_text: str) -> None:
    (made,) = read(name, call(name, key, text).encode()).calls
    assert made.arguments == f'{{"{key}": {json_text}}}'
    json.loads(made.arguments, parse_constant=_refused, parse_int=str)
    if json_text.lstrip("-").isdigit() and len(json_text) < 100:
        assert made.value == {key: int(json_text)}


def _refused(word: str) -> None:
    raise AssertionError(f"{word} stands bare")


def test_integers_of_any_length_are_exact_as_values() -> None:
    (made,) = read("gemma4", call("gemma4", "b", "9" * 5000).encode()).calls
    assert made.value == {"b": 10**5000 - 1}


def test_a_list_with_what_is_no_number() -> None:
    """Where a list is markup each item is read by itself; where it is JSON in text, it is no JSON."""
    (made,) = read("gemma4", call("gemma4", "l", "[1e400,NaN,1]").encode()).calls
    assert made.arguments == '{"l": ["1e400", "NaN", 1]}'
    (made,) = read("atem", call("atem", "l", "[1e400,NaN,1]").encode()).calls
    assert made.arguments == '{"l": "[1e400,NaN,1]"}'


# Limits.

_ERRORS = {
    "depth": (tg.Limits(depth=3), "l", "[[[1]]]", "arguments nest deeper than Limits.depth = 3"),
    "size": (tg.Limits(argument_bytes=150), "a", "x" * 200, "a call longer than Limits.argument_bytes = 150"),
}


@pytest.mark.parametrize("what", _ERRORS)
@BOTH
def test_limits_of_a_call_say_which(name: str, what: str) -> None:
    limits, key, value, reason = _ERRORS[what]
    text = call(name, key, value, quoted=key == "a") + BETWEEN[name] + call(name, "b", "1")
    message = read(name, text.encode(), limits=limits)
    assert message.calls[-1].value == {"b": 1}, "what follows is read"
    if (name, what) == ("atem", "depth"):  # a list that is text is handed on as text
        assert [made.value for made in message.calls] == [{"l": value}, {"b": 1}]
        assert not message.errors
    else:
        assert [error.reason for error in message.errors] == [reason]
        assert [made.name for made in message.incomplete_calls] == ["f"]
        assert message.errors[0].text.endswith({"gemma4": END, "atem": "</atem:invoke>\n"}[name])
    assert not read(name, text.encode()).errors, "no limit is met by default"


@BOTH
def test_the_number_of_calls_is_limited(name: str) -> None:
    one = call(name, "b", "1")
    text = BETWEEN[name].join([one] * 3) + BETWEEN[name] + USER[name] + "ok"
    message = read(name, text.encode(), limits=tg.Limits(calls=2))
    assert [error.reason for error in message.errors] == ["more calls than Limits.calls = 2"]
    assert (len(message.calls), message.content) == (2, "ok")
    assert len(read(name, text.encode()).calls) == 3


@pytest.mark.parametrize("name", ["gemma4", "atem", "functiongemma"])
def test_no_reading_is_dropped_in_silence(name: str) -> None:
    """Where there are more readings than the limit admits an error says so, once; elsewhere nothing changes."""
    rng, changed = random.Random(f"threads {name}"), 0
    for _ in range(120):
        trial = random_trial(rng, name)
        whole, readings = _read_with(trial, tg.Limits())
        for most in (1, 2, 3):
            few, _ = _read_with(trial, tg.Limits(threads=most))
            notes = [error for error in few.errors if "Limits.threads" in error.reason]
            if readings > most:
                assert notes == [tg.ParseError("", f"more readings than Limits.threads = {most}")], trial
                changed += len(few.errors) > len(notes) + len(whole.errors)
            else:
                assert few == whole, trial
    assert changed > 3


def _read_with(trial: Trial, limits: tg.Limits) -> tuple[tg.Message, int]:
    """The message, from one piece and from single bytes; and how many readings there were at once."""
    found, most = [], 1
    for pieces in ([trial.data], [bytes((byte,)) for byte in trial.data]):
        parser = tg.load_format(trial.format).parser(DECLARED, call_id=call_ids(), limits=limits)
        for piece in pieces:
            parser.feed_bytes(piece)
            most = max(most, len(parser._reader.state.threads))  # type: ignore[union-attr]
        parser.finish()
        found.append(parser.message)
    assert found[0] == found[1]
    return found[0], most


# What may be a call without markers is text where no delimiter comes; a closer is data where no other tag follows.
PENDING = {
    "gemma4": "call:f{a:" + "z" * 500 + "} and more",
    "atem": f'{BLOCK}{PARAMETER}a">x{CLOSER}{" " * 500}y{CLOSER}{BLOCK_END}',
}


@BOTH
def test_text_that_stays_undecided_is_limited(name: str) -> None:
    text = PENDING[name]
    assert not read(name, text.encode()).errors
    found = []
    for size in (1, 7, 30, 64, 1000):
        parser = tg.load_format(name).parser(TOOLS, call_id=call_ids(), limits=tg.Limits(pending_bytes=100))
        for at in range(0, len(text), size):
            parser.feed(text[at : at + size])
        parser.finish()
        found.append(parser.message)
        covered = parser.spans()
        assert [span[0] for span in covered] == [0, *(span[1] for span in covered[:-1])]
    assert all(message == found[0] for message in found)
    assert name == "atem" or found[0].content == text
    assert found[0].errors[0] == tg.ParseError("", "text undecided for more than Limits.pending_bytes = 100")
    parser = tg.load_format(name).parser(TOOLS, small(name), limits=tg.Limits(pending_bytes=100))
    deltas = parser.feed_tokens(tokens(name, text.encode())) + parser.finish()
    assert any(isinstance(delta, tg.ParseError) and "pending_bytes" in delta.reason for delta in deltas)


# The conditions and early ends of the grammar language, in the samples of docs/grammars.md.

OWN = r"""
//@ format own 1
//@ start turn
//@ stop "[[end]]"
//@ marker "<|call>" "<call|>"
//@ recover tool_call until "<call|>" consumed, "<|call>" kept then turn
turn: ([content] (tool_call | _raw_call))* [content]
content: TEXT
tool_call: "<|call>" _commit (tool_name object | _glued) ("<call|>" | _unclosed)
_glued.-1: _declared{tool_name} "." glued_object
glued_object: glued_member -> object
glued_member: _declared{key} "=" value -> member
_unclosed.-1: _end
tool_name: NAME
object: "{" [member ("," member)*] ("}" | _torn)
_torn.-1: "<call|>" _closed
member: key ":" value
key: KEY
?value: number | object
number: NUMBER
_raw_call.-1: raw_call
raw_call: "call(" _commit _declared{tool_name} raw_object ")" -> tool_call
raw_object: (";" raw_member)+ -> object
raw_member: _declared_text{key} "=" raw -> member
raw: RAW -> bare
TEXT: /((?!<\|call>|call\(|\[\[end\]\]).)+/s
RAW: /((?!\)|\[\[end\]\]).)+/s
NAME: /[a-z_.]+/
KEY: /[a-z_]+/
NUMBER: /-?(?:0|[1-9][0-9]*)/
_declared{x}: x
_declared_text{x}: x
_commit:
_end:
_closed:
"""
SAMPLES = [
    ("call(f;a=one;two;u=c;a=d)", 'call f {"a": "one;two", "u": "c;a=d"}'),
    ("call(f;b=1)", 'error "call(f;b=1)"'),  # no text
    ("call(g;a=x)", 'error "call(g;a=x)"'),
    ("<|call>f{b:1}", 'call f {"b": 1}'),
    ("<|call>f{b:1}[[end]]", 'call f {"b": 1}'),
    ("<|call>f{u:{b:1<call|>ok<|call>f{b:2}<call|>", 'content "ok"; call f {"u": {"b": 1}}; call f {"b": 2}'),
    ("<|call>f.b=1<call|>", 'call f {"b": 1}'),
    ("<|call>f.b{b:1}<call|>", 'call f.b {"b": 1}'),
    ("<|call>f.z=1<call|>", 'error "<|call>f.z=1<call|>"'),
    ("<|call>g.b=1<call|>", 'error "<|call>g.b=1<call|>"'),
]


@pytest.mark.parametrize(("text", "gives"), SAMPLES)
def test_conditions_and_early_ends(text: str, gives: str) -> None:
    fmt = tg.Format.from_text(OWN, "own.lark")
    for pieces in ([text], text):
        parser = fmt.parser(TOOLS, call_id=call_ids())
        for piece in pieces:
            parser.feed(piece)
        parser.finish()
        assert told(parser.message).replace("cut f {; ", "") == gives


def test_without_tools_any_name_is_declared_and_no_key() -> None:
    fmt = tg.Format.from_text(OWN, "own.lark")
    assert fmt.parse("call(g;a=x)").incomplete_calls[0].name == "g"
    assert not fmt.parse("call(g;a=x)", tools=[]).incomplete_calls
    assert fmt.parse("<|call>f.b=1<call|>").errors


CHOICES = {
    '"<b" two | "<" one': 'reasoning "c"', '"<" one | "<b" two': 'content "bc"',
    '"<" ("b" two | _one)': 'reasoning "c"',
    '"<bc" _none | "<" one | "<b" two': 'content "bc"', '"<bd" two | "<b" two | "<" one | "<a" one': 'reasoning "c"',
    '"<b" two | "<" one | "<bc" _none': 'reasoning "c"', '"<x" one | "<" one | "<b" two': 'content "bc"',
}  # fmt: skip


@pytest.mark.parametrize("choice", CHOICES)
def test_the_order_of_literals_that_begin_alike(choice: str) -> None:
    """Literals that begin alike are one trie, and keep the order of the file."""
    source = f"//@ format x 1\n//@ start turn\nturn: _either | call\n_either.-1: {choice}\n"
    source += "one: TEXT -> content\ntwo: TEXT -> reasoning\n" + "_one: one\n" * ("_one" in choice)
    source += '_none: "z"\n' * ("_none" in choice)
    source += 'call: "@" tool_call\ntool_call: tool_name object\ntool_name: TEXT\nobject: "{}"\nTEXT: /[a-z]+/\n'
    assert told(tg.Format.from_text(source, "x.lark").parse("<bc")) == CHOICES[choice]
