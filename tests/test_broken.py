"""What once broke: each input with the right answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import twingram as tg
from twingram.automaton.counted import Counted, counted, width
from twingram.automaton.expression import Expr, literal, seq
from twingram.automaton.members import KeyStep, ObjectTemplate, members
from twingram.automaton.regex import pattern_dfa
from twingram.session.deltas import merge

from .walks import call_ids, loaded, small

TEXT = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
BLOCK = '<atem:function_calls>\n<atem:invoke name="f">\n</atem:invoke>\n</atem:function_calls>'
NEXT = "<|start|>assistant to=f<|message|>" + BLOCK


def tools(schema: Any = TEXT) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": "f", "parameters": schema}}]


def read(name: str, text: str, **options: Any) -> list[tuple[str, ...]]:
    """Kinds and texts, the same from text in one piece and in characters, and from tokens."""
    vocabulary = _vocabulary(name)
    runs = []
    for pieces, feed, more in (
        ([text], "feed", {}), (text, "feed", {}),
        ([vocabulary.encode(text)], "feed_tokens", {"vocabulary": vocabulary}),
    ):  # fmt: skip
        parser = tg.load_format(name).parser(tools=tools(), call_id=call_ids(), **more, **options)
        out = [delta for piece in pieces for delta in getattr(parser, feed)(piece)]
        runs.append(merge([*out, *parser.finish()]))
        covered = parser.spans()
        assert [span[0] for span in covered[1:]] == [span[1] for span in covered[:-1]]
    assert runs[0] == runs[1] == runs[2]
    return [_short(delta) for delta in runs[0]]


def _vocabulary(name: str) -> tg.Vocabulary:
    if name != "functiongemma":
        return small(name)
    markers = tg.load_format(name).grammar.markers
    letters = [bytes((byte,)) for byte in range(256)]
    return tg.Vocabulary.from_tokens(letters, {marker: 256 + at for at, marker in enumerate(markers)})


def _short(delta: tg.Delta) -> tuple[str, ...]:
    match delta:
        case tg.Content(text=text) | tg.Reasoning(text=text) | tg.ParseError(text=text):
            return (type(delta).__name__, text)
        case tg.CallStart(name=name):
            return ("CallStart", name)
        case tg.CallArguments(json=text):
            return ("CallArguments", text)
    return ("CallEnd", str(delta.complete))


CALL = [("CallStart", "f"), ("CallArguments", "{}"), ("CallEnd", "True")]
CUT = [("CallStart", "f"), ("CallArguments", "{"), ("CallEnd", "False")]
READINGS: dict[str, tuple[str, str, list[tuple[str, ...]]]] = {
    "text between a broken call and a good one": (
        "gemma4", "<|tool_call>call:f{]<tool_call|>\nSorry.<|tool_call>call:f{}<tool_call|>",
        [*CUT, ("ParseError", "<|tool_call>call:f{]<tool_call|>"), ("Content", "\nSorry."), *CALL],
    ),
    "a new line between a broken call and a good one": (
        "gemma4", "<|tool_call>call:f{]<tool_call|>\n<|tool_call>call:f{}<tool_call|>",
        [*CUT, ("ParseError", "<|tool_call>call:f{]<tool_call|>"), *CALL],
    ),
    "the same with other markers": (
        "functiongemma",
        "<start_function_call>call:f{]<end_function_call> No. <start_function_call>call:f{}<end_function_call>",
        [*CUT, ("ParseError", "<start_function_call>call:f{]<end_function_call>"), ("Content", " No."), *CALL],
    ),
    "a channel with another label": (
        "gemma4", "<|channel>final\nhm<channel|>Hi<|tool_call>call:f{}<tool_call|>",
        [("Reasoning", "final\nhm"), ("Content", "Hi"), *CALL],
    ),
    "a label without its end": (
        "gemma4", "<|channel>final<|tool_call>call:f{}<tool_call|>", [("Reasoning", "final"), *CALL],
    ),
    "a message that begins without the end of the one before": (
        "atem", " to=self<|message|>hm" + NEXT, [("Reasoning", "hm"), *CALL],
    ),
    "loose text, then a message": ("atem", "hi" + NEXT, [("Content", "hi"), *CALL]),
    "text between two messages": (
        "atem", " to=user<|message|>hi<|eom|>junk" + NEXT, [("Content", "hi"), ("ParseError", "<|eom|>junk"), *CALL],
    ),
    "a message of another role": (
        "atem", "hi<|start|>tool f<|message|>yo<|eom|>" + NEXT,
        [("Content", "hi"), ("ParseError", "<|start|>tool f<|message|>yo<|eom|>"), *CALL],
    ),
    "a damaged closer of a block": (
        "atem", " to=f<|message|>" + BLOCK[:-22] + "</junk><|eom|>" + NEXT,
        [*CALL, ("ParseError", "</junk><|eom|>"), *CALL],
    ),
    "two blocks in one message": ("atem", " to=f<|message|>" + BLOCK + "\n" + BLOCK, [*CALL, *CALL]),
    "two blocks without a header": ("atem", BLOCK + BLOCK, [*CALL, *CALL]),
}  # fmt: skip


@pytest.mark.parametrize("case", READINGS)
def test_what_follows_something_broken_is_read(case: str) -> None:
    name, text, wanted = READINGS[case]
    assert read(name, text) == wanted


def test_a_stop_marker_that_the_vocabulary_lacks_is_its_letters() -> None:
    vocabulary = tg.Vocabulary.embedded()
    assert "<end_of_turn>" not in vocabulary.special_tokens
    tokens = vocabulary.encode("Hi<end_of_turn>ignored")
    assert tg.load_format("functiongemma").parse(tokens, vocabulary=vocabulary) == tg.Message(content="Hi")


def test_an_error_begins_at_the_same_byte_however_it_is_spelt() -> None:
    grammar = tg.load_format("gemma4").grammar.source
    grammar = "\n".join(line for line in grammar.split("\n") if not line.startswith("//@ recover"))
    fmt = tg.Format.from_text(grammar.replace("_resumed_later: [_trailing] later\n", ""))
    vocabulary = small("gemma4")
    spelt = {vocabulary.token_bytes(token): token for token in range(len(vocabulary))}
    whole = [vocabulary.special_tokens["<|channel>"], spelt[b"thought"], spelt[b"call:"]]
    letters = [whole[0], *(spelt[bytes((byte,))] for byte in b"thoughtcall:")]
    assert fmt.parse(whole, vocabulary=vocabulary) == fmt.parse(letters, vocabulary=vocabulary)


def test_deltas_after_two_rollbacks() -> None:
    vocabulary = small("gemma4")
    tokens = vocabulary.encode('<|tool_call>call:f{a:<|"|>xyz<|"|>}<tool_call|>')
    session = tg.load_format("gemma4").constraint(tools(), "required", vocabulary=vocabulary).session()
    assert session.accept_tokens(tokens[:8]) == 8
    session.take_deltas()
    session.rollback(2)
    session.rollback(3)
    assert session.accept_tokens(tokens[3:]) == len(tokens) - 3
    session.take_deltas()
    assert session.message.calls[0].value == {"a": "xyz"}


PATTERNS = (
    "^p_\\S+$", "^(?:[A-Z]{2,3}|\\w+@\\w+\\.com)$", "^(ab|cd\u00e9)*x$", "^ab[cd]+$", "^[a-z\u00e9\U0001f600]{2,}$",
)  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("name", ["gemma4", "atem"])
def test_the_end_comes_nearer_in_a_pattern_with_a_length(name: str, pattern: str) -> None:
    vocabulary = small(name)
    value = {"type": "string", "pattern": pattern, "maxLength": 8}
    schema = {"type": "object", "required": ["a"], "properties": {"a": value}}
    shortest = tg.load_format(name).constraint(
        tools(schema), "required", vocabulary=vocabulary, reasoning="forbid"
    ).session().min_tokens_to_end()  # fmt: skip
    for most in (shortest, shortest + 5, shortest + 40):
        session = tg.load_format(name).constraint(
            tools(schema), "required", vocabulary=vocabulary, reasoning="forbid", max_tokens=most
        ).session()  # fmt: skip
        steps = 0
        while not session.is_terminated:
            left = session.min_tokens_to_end()
            assert steps + left <= most
            allowed = session.allowed_tokens()
            assert len(allowed)
            nearer = []
            for token in map(int, allowed):
                fork = session.fork()
                assert fork.accept_token(token)
                assert fork.is_terminated or steps + 1 + fork.min_tokens_to_end() <= most
                if fork.is_terminated or fork.min_tokens_to_end() < left:
                    nearer.append(token)
            assert nearer
            assert session.accept_token(nearer[-1])
            steps += 1


@pytest.mark.parametrize("spelling", ["raw", "json"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_no_text_is_further_from_its_end_than_the_worst(pattern: str, spelling: str) -> None:
    dfa = pattern_dfa(pattern, spelling=spelling)
    assert 1 <= width(dfa) <= width(dfa, longest=True) <= 12
    begun = counted(dfa, 0, 9)
    assert isinstance(begun, Counted)
    seen, todo = {begun}, [begun]
    while todo and len(seen) < 3000:
        at = todo.pop()
        assert at.shortest <= begun.worst
        after = {at.after(byte) for byte in range(256) if at.first >> byte & 1}
        new = {expr for expr in after if isinstance(expr, Counted)} - seen
        assert not at.shortest or min(expr.shortest for expr in after) < at.shortest
        seen |= new
        todo += new


@pytest.mark.parametrize("least", [0, 4])
@pytest.mark.parametrize("order", [None, [3, 1, 0, 2, 4]])
def test_the_way_to_the_end_of_an_object(order: list[int] | None, least: int) -> None:
    """What a key inside costs is worked out in one go; it is what its members' own measure gives."""
    keys = [(key, literal(b":" + key), len(key) < 3) for key in (b"a", b"ab", b"abc", b"b", b"bcd")]
    template = ObjectTemplate(keys, before=literal(b" "), separator=literal(b","), order=order, least=least)
    seen, todo = set[Expr](), [members(template)]
    while todo:
        at = todo.pop()
        for _, leaf, rest in at.heads():
            for byte in range(256) if leaf is not None else ():
                if leaf.first >> byte & 1 and (after := seq(leaf.after(byte), rest)) not in seen:
                    seen.add(after)
                    todo.append(after)
    steps = {part for expr in seen for part in (expr, *expr.parts()) if isinstance(part, KeyStep)}
    for step in steps:
        open_keys = [bit for bit in range(step.low, step.high) if step.usable >> bit & 1]
        entries = [(*template.entries[bit], step._members(bit)) for bit in open_keys]
        costs = [len(key) - step.depth + tail.shortest + left.shortest for key, tail, left in entries]
        assert step.shortest == min(costs)
    assert len(steps) > 5


@pytest.mark.parametrize("name", ["gemma4", "atem"])
def test_a_stop_token_is_never_text(name: str) -> None:
    vocabulary = tg.Vocabulary.embedded()
    stop = vocabulary.encode("the")[0]
    assert not vocabulary.is_special(stop)
    session = tg.load_format(name).constraint(tools(), "auto", vocabulary=vocabulary, stop_tokens=[stop]).session()
    text = {"gemma4": "Say ", "atem": " to=user<|message|>Say "}[name]
    for token in vocabulary.encode(text):
        assert session.accept_token(token)
        bits = np.unpackbits(session.mask().view(np.uint8), bitorder="little")[: len(vocabulary)]
        allowed = [session.fork().accept_token(other) for other in range(len(vocabulary))]
        assert bits.astype(bool).tolist() == allowed
    assert session.accept_token(stop)
    assert session.is_terminated
    assert session.message.content == "Say "


def test_stop_tokens_that_the_format_needs() -> None:
    vocabulary = tg.Vocabulary.embedded()
    for name, stop in (("gemma4", "<|tool_call>"), ("atem", "<|message|>"), ("atem", "<|eom|>")):
        with pytest.raises(tg.RequestError, match="does not end a turn"):
            tg.load_format(name).constraint(tools(), "required", vocabulary=vocabulary, stop_tokens=[stop])


@pytest.mark.parametrize("name", ["gemma4", "atem", "functiongemma"])
def test_a_partial_vocabulary_that_cannot_spell_a_call(name: str) -> None:
    markers = tg.load_format(name).grammar.markers
    vocabulary = tg.Vocabulary.from_tokens([b"a"], {m: 1 + k for k, m in enumerate(markers)}, allow_partial=True)
    with pytest.raises(tg.VocabularyError, match="no tokens spell any turn"):
        tg.load_format(name).constraint(tools(), "required", vocabulary=vocabulary)


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ("a:null,c:false,n:1", {"a": None, "c": False, "n": 1}),
        ("a:5,c:[],n:1", {"a": 5, "c": [], "n": 1}),
        ("a:true,c:6", {"a": True, "c": 6}),
        ("a:5,6,n:1", {"a": "5,6", "n": 1}),  # no canonical reading, so the text is raw
        ("a:Paris, c: x,n:1", {"a": "Paris, c: x", "n": 1}),
    ],
)
@pytest.mark.parametrize(
    "call", ["<|tool_call>call:f{%s}<tool_call|>", "<start_function_call>call:f{%s}<end_function_call>"]
)
def test_a_plain_value_before_a_free_key_is_no_raw_text(call: str, arguments: str, value: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"a": {}, "n": {"type": "integer"}}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    fmt = tg.load_format("gemma4" if "tool_call" in call else "functiongemma")
    message = fmt.parse(call % arguments, tools=tools)
    assert [call.value for call in message.calls] == [value]
    assert not message.errors


@pytest.mark.parametrize(
    ("name", "opener", "end", "stop"),
    [
        ("gemma4", "<|tool_call>", "<tool_call|>", "<turn|>"),
        ("functiongemma", "<start_function_call>", "<end_function_call>", "<end_of_turn>"),
    ],
)
@pytest.mark.parametrize("value", ["raw", "raw, with {x} <", "a: b"])
def test_a_raw_value_that_a_marker_cuts(name: str, opener: str, end: str, stop: str, value: str) -> None:
    """What the marker begins is read: the next call, or the end of the turn."""
    broken = f"{opener}call:f{{a:{value}"
    cut = [("call_start", "f"), ("call_arguments", '{"a": '), ("call_end", "False"), ("parse_error", broken)]
    given = _deltas_of(name, f"{broken}{opener}call:f{{b:1}}{end}")
    assert given[:4] == cut
    assert given[4:] == [("call_start", "f"), ("call_arguments", '{"b": 1}'), ("call_end", "True")]
    assert _deltas_of(name, f"{broken}{stop}after the turn") == cut


def _deltas_of(name: str, text: str) -> list[tuple[str, str]]:
    runs = []
    for pieces in ([text], text):
        parser = tg.load_format(name).parser(tools=tools(), call_id=call_ids())
        out = merge([delta for piece in pieces for delta in parser.feed(piece)] + parser.finish())
        runs.append([(delta.kind, str(_said(delta))) for delta in out])
    assert runs[0] == runs[1]
    return runs[0]


def _said(delta: tg.Delta) -> object:
    if isinstance(delta, tg.CallStart):
        return delta.name
    if isinstance(delta, tg.CallArguments):
        return delta.json
    return delta.complete if isinstance(delta, tg.CallEnd) else delta.text


def test_what_comes_after_the_last_reading_is_one_error() -> None:
    """A format without recovery: the rest of the turn is an error, in whatever pieces it comes; what follows a stop
    token is ignored."""
    fmt, vocabulary = loaded("runes"), small("runes")
    tokens = vocabulary.encode("Hi[[/call]]and [[think]]more")
    runs = []
    for pieces in ([tokens], [[token] for token in tokens]):
        for after in ([], [*vocabulary.encode("[[end]]"), *vocabulary.encode("later")]):
            parser = fmt.parser(vocabulary=vocabulary)
            out = [delta for piece in [*pieces, after] for delta in parser.feed_tokens(piece)]
            runs.append(merge([*out, *parser.feed_tokens(after), *parser.finish(), *parser.finish()]))
            assert parser.spans() == [(0, 2, "content"), (2, 28, "error")]
    assert runs == [[tg.Content("Hi"), tg.ParseError("[[/call]]and [[think]]more", runs[0][1].reason)]] * 4
    with pytest.raises(tg.RequestError, match="make a new one"):
        parser.feed_tokens(tokens)
