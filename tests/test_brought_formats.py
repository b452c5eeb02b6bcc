"""Formats that users bring: a file each, written with docs/grammars.md, and all promises hold.

The files spell calls in five ways that share nothing with the formats that come with the package: JSON between tags, a
section of numbered calls, Python, elements with raw values, and messages with headers. `letters` is the first without
its markers: its tags are ordinary text.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from lark import Lark

import twingram as tg
from twingram.automaton.regions import parse_region
from twingram.cli import main
from twingram.explain.grammar import report_on
from twingram.resources import grammar_folder
from twingram.sampling import Sampler, spellings
from twingram.session.deltas import merge

from .oracle.generate import random_tools
from .walks import Walker, alternatives, call_ids, damaged, violations

FOLDER = Path(__file__).parent / "formats"
NAMES = ("tagged", "letters", "sections", "pythonic", "elements", "channels")
FILES = tuple(name for name in NAMES if name != "letters")
VOCABULARIES = ("markers", "letters", "bytes", "lacking")
WALKS = 15
LACKING = b"qZ~\x80\xf0"  # bytes for which a vocabulary has no token
WORD = "qzq7x"


# Formats and vocabularies


@cache
def loaded(name: str) -> tg.Format:
    if name != "letters":
        return tg.Format.from_file(FOLDER / f"{name}.lark")
    lines = (FOLDER / "tagged.lark").read_text(encoding="utf-8").splitlines()
    return tg.Format.from_text("\n".join(line for line in lines if not line.startswith("//@ marker")), "letters")


@cache
def vocabulary(name: str, kind: str) -> tg.Vocabulary:
    """Some 300 tokens: bytes, and pieces of what stands in the grammar's quotes, so that they straddle everything."""
    grammar = loaded(name).grammar
    texts = sorted({*(text.encode() for text in grammar.literals()), *map(str.encode, grammar.markers)})
    pieces = {text[at : at + size] for text in texts for at in range(len(text)) for size in (2, 3, 5, 9, 40)}
    chosen = random.Random(name).sample(sorted(pieces), min(len(pieces), 160))
    tokens = [bytes((byte,)) for byte in range(256) if kind != "lacking" or byte not in LACKING]
    tokens = list(dict.fromkeys([*tokens, *(chosen if kind != "bytes" else ())]))
    special = grammar.markers if kind in ("markers", "lacking") else (*grammar.stops, *grammar.stops_after_call)
    named = {marker: len(tokens) + at for at, marker in enumerate(special)}
    return tg.Vocabulary.from_tokens(tokens, named, allow_partial=kind == "lacking")


# Walks


@dataclass(frozen=True)
class Walk:
    tools: Sequence[Any]
    choice: Any
    tokens: tuple[int, ...]
    text: str  # without the stop token
    message: tg.Message


@cache
def walked(name: str, kind: str) -> tuple[Walk, ...]:
    """Turns whose every token was taken from a mask, three to a request."""
    rng = random.Random(f"{name} {kind}")
    words, found = vocabulary(name, kind), list[Walk]()
    walker = Walker(words, rng)
    while len(found) < WALKS:
        tools, choice, options = _request(name, rng)
        try:
            constraint = loaded(name).constraint(tools, choice, vocabulary=words, **options)
        except tg.SchemaError:  # a tool whose schema nothing satisfies
            continue
        for _ in range(3):
            session = constraint.session(call_id=call_ids())
            tokens = walker.walk(session)
            text = words.decode(tokens[:-1]).decode()
            found.append(Walk(tools, choice, tuple(tokens), text, session.message))
    return tuple(found)


def _request(name: str, rng: random.Random) -> tuple[list[dict[str, Any]], Any, dict[str, Any]]:
    tools = random_tools(rng, rng.choice((1, 1, 2, 3)), depth=rng.choice((1, 2)), odd_keys=False)
    named = {"type": "function", "function": {"name": rng.choice(tools)["function"]["name"]}}
    choice = rng.choice(("required", "required", named, named, "auto", "none"))
    options: dict[str, Any] = {
        "parallel_tool_calls": rng.random() < 0.6, "key_order": rng.choice(("any", "any", "declared", "sorted")),
    }  # fmt: skip
    if any(rule.role == "reasoning" for rule in loaded(name).grammar.rules.values()):
        options["reasoning"] = rng.choice(("allow", "allow", "forbid", "require"))
    return tools, choice, options


Output = tuple[list[tg.Delta], tg.Message]


def read(name: str, pieces: Iterable[Any], tools: Any, words: tg.Vocabulary | None = None, **options: Any) -> Output:
    """Text, or tokens where there is a vocabulary."""
    parser = loaded(name).parser(tools, words, call_id=call_ids(), **options)
    feed = parser.feed if words is None else parser.feed_tokens
    deltas = [delta for piece in pieces for delta in feed(piece)]
    return merge([*deltas, *parser.finish()]), parser.message


@pytest.mark.parametrize("kind", VOCABULARIES)
@pytest.mark.parametrize("name", NAMES)
def test_what_a_mask_allows_is_read_back(name: str, kind: str) -> None:
    words, called = vocabulary(name, kind), 0
    spelt = {words.token_bytes(token): token for token in range(len(words)) if not words.is_special(token)}
    rng = random.Random(name)
    for walk in walked(name, kind):
        message = walk.message
        assert not message.errors, walk.text
        assert not message.incomplete_calls, walk.text
        assert read(name, [walk.text], walk.tools)[1] == message, walk.text
        assert read(name, [walk.tokens], walk.tools, words)[1] == message, walk.text
        if kind in ("letters", "bytes"):  # everything but the stop is spelt with ordinary tokens: in any way
            again = alternatives(walk.text.encode(), spelt, rng)
            assert read(name, [[token] for token in again], walk.tools, words)[1] == message, walk.text
        _valid(walk)
        called += len(message.calls)
    assert called >= WALKS // 6


def _valid(walk: Walk) -> None:
    calls = walk.message.calls
    for call in calls:
        (schema,) = (each["function"]["parameters"] for each in walk.tools if each["function"]["name"] == call.name)
        assert not violations(schema, call.value), walk.text
    if walk.choice == "none":
        assert not calls
    elif walk.choice != "auto":
        assert calls
        assert walk.message.content is None
    if isinstance(walk.choice, dict):
        assert {call.name for call in calls} == {walk.choice["function"]["name"]}


TOOLS = [
    {"type": "function", "function": {"name": "f", "parameters": {
        "type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}, "c": {"type": "array"}},
    }}},
    {"type": "function", "function": {"name": "g", "parameters": {"type": "object", "properties": {}}}},
]  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_the_commands_take_the_file(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, tools = str(FOLDER / f"{name}.lark"), tmp_path / "tools.json"
    tools.write_text(json.dumps(TOOLS), encoding="utf-8")
    asked = ["--format", file, "--tools", str(tools), "--tool-choice", "required"]
    shown = {}
    for command in (
        ["check", file], ["sample", *asked, "-n", "3"], ["mask", *asked],
        ["export", *asked, "--to", "gbnf"], *([["export", *asked, "--to", "xgrammar"]] * (name == "tagged")),
    ):  # fmt: skip
        assert main(command) == 0
        shown[command[-1]] = capsys.readouterr()
    report, samples, mask, *exported = (found.out for found in shown.values())
    assert "ambiguity    none found" in report
    assert "warnings     none" in report
    assert "allowed" in mask
    for line in samples.splitlines():
        assert json.loads(line)["message"]["calls"]
    assert all(text.count("\n") > 3 for text in exported)
    assert not any(found.err for found in shown.values())  # the built-in vocabulary has the markers


@pytest.mark.parametrize("name", FILES)
def test_lark_reads_what_is_generated(name: str) -> None:
    """The files are grammars to Lark's own Earley parser as well."""
    parser = Lark.open(
        str(FOLDER / f"{name}.lark"), start="turn", parser="earley", maybe_placeholders=False,
        import_paths=[str(grammar_folder())],
    )  # fmt: skip
    short = sorted(walked(name, "markers"), key=lambda walk: len(walk.text))[:8]
    for walk in short:
        tree = parser.parse(walk.text)
        assert len(list(tree.find_data("tool_call"))) == len(walk.message.calls), walk.text


@pytest.mark.parametrize("name", FILES)
def test_the_built_in_vocabulary(name: str) -> None:
    fmt, path = loaded(name), str(FOLDER / f"{name}.lark")
    words = tg.Vocabulary.embedded(fmt.grammar.markers)
    sampler = Sampler(words, 1, spellings(path))
    for choice in ("required", "auto", "none", {"type": "function", "function": {"name": "f"}}):
        constraint = fmt.constraint(TOOLS, choice, vocabulary=words)
        for _ in range(3):
            walk = sampler.walk(constraint.session(call_id=call_ids()))
            assert walk.ended
            assert not walk.message.errors
            assert read(name, [walk.tokens], TOOLS, words)[1] == walk.message


# Parsing


def _wounds(name: str) -> list[str]:
    grammar = loaded(name).grammar
    return [*sorted(grammar.literals()), *grammar.markers]


def turns(name: str) -> Iterator[tuple[Walk, str, random.Random]]:
    rng = random.Random(f"turns {name}")
    for at in range(4):
        for walk in walked(name, "markers"):
            yield walk, walk.text if at == 0 else damaged(walk.text, rng, _wounds(name)), rng


def pieces(whole: Any, rng: random.Random) -> Iterator[Any]:
    at = 0
    while at < len(whole):
        size = rng.randint(0, 9)
        yield whole[at : at + size]
        at += size


@pytest.mark.parametrize("name", NAMES)
def test_chunks_do_not_matter(name: str) -> None:
    words = vocabulary(name, "markers")
    for walk, text, rng in turns(name):
        whole = read(name, [text], walk.tools)
        assert read(name, text, walk.tools) == whole, text
        assert read(name, pieces(text, rng), walk.tools) == whole, text
        tokens = words.encode(text)
        whole = read(name, [tokens], walk.tools, words)
        assert read(name, ([token] for token in tokens), walk.tools, words) == whole, text
        assert read(name, pieces(tokens, rng), walk.tools, words) == whole, text


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_lost_or_taken_back(name: str) -> None:
    grammar = loaded(name).grammar
    ends = re.compile("|".join(map(re.escape, (*grammar.stops, *grammar.stops_after_call))))
    for walk, text, rng in turns(name):
        at = rng.randint(0, len(text))
        text = ends.sub("", text[:at]) + WORD + text[at:]
        at = text.index(WORD)
        deltas, message = read(name, [text], walk.tools)
        assert any(WORD in _text(delta) for delta in deltas) or message.incomplete_calls, text
        parser = loaded(name).parser(walk.tools, call_id=call_ids())
        begun = merge(parser.feed(text[:at]))
        for rest in (text[at:], "", walk.text[rng.randint(0, len(walk.text)) :]):
            _begins(begun, read(name, [text[:at] + rest], walk.tools)[0], f"{text[:at]!r} then {rest!r}")


def _begins(begun: list[tg.Delta], whole: list[tg.Delta], where: str) -> None:
    assert begun[:-1] == whole[: max(len(begun) - 1, 0)], where
    for last, final in zip(begun[-1:], whole[len(begun) - 1 :], strict=False):
        assert type(last) is type(final), where
        assert _text(final).startswith(_text(last)), where


def _text(delta: tg.Delta) -> str:
    if isinstance(delta, tg.CallStart):
        return delta.name
    return delta.json if isinstance(delta, tg.CallArguments) else getattr(delta, "text", "")


_CALL = '<tool_call>\n{"name": "f", "arguments": {"a": "x"}}\n</tool_call>'
_NUMBERED = '<|call|>functions.f:0<|args|>{"b": 1}<|/call|>'
_ELEMENT = "<call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n</function>\n</call>"
_MESSAGE = '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"b": 1}'
_NEXT = "<|end|><|start|>assistant"
OUTPUTS = [  # format, output, what comes of it: the same from text and from tokens
    ("tagged", f"<think>\nhm\n</think>\n\nHi\n{_CALL}\n{_CALL}", 'content "Hi"; reasoning "hm"; 2 f {"a": "x"}'),
    ("tagged", f"<think>hm</think>Hi{_CALL}", 'content "Hi"; reasoning "hm"; 1 f {"a": "x"}'),
    ("tagged", f"<think>\nhm{_CALL}", 'reasoning "hm"; 1 f {"a": "x"}'),
    ("tagged", f"a{_CALL}b{_CALL}", 'content "ab"; 2 f {"a": "x"}'),
    ("tagged", '<tool_call>{ "name" : "f",\n"arguments":{ "c" : [ 1 ,{} ]\n} }</tool_call>', '1 f {"c": [1, {}]}'),
    ("tagged", _CALL[:-13], '1 f {"a": "x"}'),
    ("tagged", _CALL[:-20], 'cut f {"a": '),
    ("tagged", f"{_CALL}<|end|>more", '1 f {"a": "x"}'),
    ("tagged", f"a</tool_call>b{_CALL}", 'content "ab"; 1 f {"a": "x"}; error "</tool_call>"'),
    ("tagged", "</think>b", 'error "</think>b"'),
    ("tagged", "a < b <tool <tool_call", 'content "a < b <tool <tool_call"'),
    ("tagged", f'<tool_call>\n{{"name": "f", "arguments": {{"a":}}}}\n</tool_call>{_CALL}',
     '1 f {"a": "x"}; cut f {"a": ; error "<tool_call>\\n{"name": "f", "arguments": {"a":}}\\n</tool_call>"'),
    ("sections", f"Hi<|calls|>{_NUMBERED}{_NUMBERED}<|/calls|>", 'content "Hi"; 2 f {"b": 1}'),
    ("sections", f"<|calls|>{_NUMBERED}", '1 f {"b": 1}'),
    ("sections", f"<|calls|>{_NUMBERED.replace(':0', '')}{_NUMBERED}<|/calls|>",
     '1 f {"b": 1}; error "<|calls|><|call|>functions.f<|args|>{"b": 1}<|/call|>"'),
    ("sections", f"<|calls|>{_NUMBERED}and{_NUMBERED}<|/calls|>", '2 f {"b": 1}; error "and"'),
    ("pythonic", '[f(a="x\\n", b=1, c=[True, {"k": None}]), g()]',
     '1 f {"a": "x\\n", "b": 1, "c": [true, {"k": null}]}; 1 g {}'),
    ("pythonic", "[f(a='it',b=1)]", '1 f {"a": "it", "b": 1}'),
    ("pythonic", "[see(1)] is a note", 'content "[see(1)] is a note"'),
    ("pythonic", "[f(a=x)]", 'cut f {"a": ; error "[f(a=x)]"'),
    ("pythonic", '[f(a="x', 'cut f {"a": "x'),
    ("elements", f"<think>hm</think>Hi{_ELEMENT}\n{_ELEMENT}", 'content "Hi"; reasoning "hm"; 2 f {"a": "x"}'),
    ("elements", _ELEMENT.replace("x", "a </parameter> b"), '1 f {"a": "a </parameter> b"}'),
    ("elements", _ELEMENT.replace("x\n", "\n"), '1 f {"a": ""}'),
    ("elements", "<call><function=f><parameter=b>\n7\n</parameter></function></call>", '1 f {"b": 7}'),
    ("elements", f"{_ELEMENT.replace('=f', ' f')}{_ELEMENT}",
     '1 f {"a": "x"}; error "<call>\\n<function f>\\n<parameter=a>\\nx\\n</parameter>\\n</function>\\n</call>"'),
    ("channels", f"<|channel|>analysis<|message|>hm{_NEXT}{_MESSAGE}", 'reasoning "hm"; 1 f {"b": 1}'),
    ("channels", f"{_MESSAGE}{_NEXT}{_MESSAGE}<|call|>", '2 f {"b": 1}'),
    ("channels", f"<|channel|>commentary<|message|>Let me.{_NEXT}{_MESSAGE}", 'content "Let me."; 1 f {"b": 1}'),
    ("channels", f"<|channel|>x<|message|>Hi{_NEXT}{_MESSAGE}",
     '1 f {"b": 1}; error "<|channel|>x<|message|>Hi<|end|>"'),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "gives"), OUTPUTS, ids=[text[:40] for _, text, _ in OUTPUTS])
def test_outputs(name: str, text: str, gives: str) -> None:
    words = vocabulary(name, "markers")
    for message in (
        read(name, [text], TOOLS)[1], read(name, text, TOOLS)[1], read(name, [words.encode(text)], TOOLS, words)[1],
    ):  # fmt: skip
        assert _words(message) == gives
    if name == "tagged":  # its tags as ordinary text
        assert _words(read("letters", [text], TOOLS)[1]) == gives


def _words(message: tg.Message) -> str:
    out = [f'{kind} "{text}"' for kind, text in vars_of(message) if text is not None]
    calls = [f"{call.name} {call.arguments}" for call in message.calls]
    out += [f"{calls.count(call)} {call}" for call in dict.fromkeys(calls)]
    out += [f"cut {call.name} {call.arguments}" for call in message.incomplete_calls]
    out += ['error "' + error.text.replace("\n", "\\n") + '"' for error in message.errors if error.text]
    return "; ".join(out)


def vars_of(message: tg.Message) -> tuple[tuple[str, str | None], ...]:
    return ("content", message.content), ("reasoning", message.reasoning)


@pytest.mark.parametrize(
    ("old", "new", "call"),
    [
        ("tool_name: NAME", "_commit:\ntool_name: _commit NAME", "functions.f"),
        ('functions." tool_name', '" (tool_name "!" | "functions.") tool_name', "f!f"),
        ('functions." tool_name', '" ["<" tool_name ">"] tool_name', "<f>f"),
    ],
)
def test_a_name_may_stand_anywhere_before_the_arguments(old: str, new: str, call: str) -> None:
    source = (FOLDER / "sections.lark").read_text(encoding="utf-8")
    assert old in source
    fmt = tg.Format.from_text(source.replace(old, new), "own.lark")
    words = tg.Vocabulary.embedded(fmt.grammar.markers)
    session = fmt.constraint(TOOLS, "required", vocabulary=words).session()
    text = f'<|calls|><|call|>{call}:0<|args|>{{"b": 1}}<|/call|><|/calls|>'
    assert session.accept_tokens(words.encode(text)) == len(words.encode(text))
    assert session.is_accepting
    assert _words(session.message) == _words(fmt.parse(text, TOOLS)) == '1 f {"b": 1}'
    other = words.encode(text.replace("f:0", "g:0"))
    assert fmt.constraint(TOOLS, "required", vocabulary=words).session().accept_tokens(other) < len(other)


@pytest.mark.parametrize("name", FILES)
def test_text_is_given_as_it_comes(name: str) -> None:
    assert report_on(loaded(name).grammar).held is None


def test_a_text_that_is_held_back_is_shown() -> None:
    source = (FOLDER / "tagged.lark").read_text(encoding="utf-8")
    changed = source.replace("turn: [reasoning]", "turn: [reasoning | _other]")
    changed += '_other.-1: other\nother: "<think>" [THOUGHT] "</think>" -> reasoning\n'
    held = report_on(tg.Format.from_text(changed, "tagged.lark").grammar).held
    assert held is not None
    assert held.readings == ("<think>\n⟨reasoning:xxxx", "<think>⟨reasoning:\nxxxx")


@pytest.mark.parametrize("name", NAMES)
def test_a_stray_marker_never_leaks_in_part(name: str) -> None:
    """What ends a text is read as what it is or is an error, whole, whether there is recovery or none."""
    fmt = loaded(name)
    formats = [(fmt, False), (fmt, True)]
    if all(recover.then in ("later", "turn") for recover in fmt.grammar.recovers):  # rules that others need as well
        lines = [line for line in fmt.grammar.source.splitlines() if "@ recover" not in line]
        formats.append((tg.Format.from_text("\n".join(lines), f"{name}.lark"), False))
    texts = [terminal for terminal in fmt.grammar.terminals.values() if terminal.name in ("TEXT", "BODY")]
    ends = {end.decode() for terminal in texts for end in _ends_of(terminal.pattern)}
    ends -= {*fmt.grammar.stops, *fmt.grammar.stops_after_call}
    lead = "<|channel|>final<|message|>" if name == "channels" else ""
    for end in sorted(ends):
        for each, strict in formats:
            for before in ("a", ""):
                message = each.parse(f"{lead}{before}{end}b", TOOLS, strict=strict)
                shown = f"{message.content or ''}{message.reasoning or ''}"
                assert shown.strip("ab") == "", (end, message)
                assert end in "".join(error.text for error in message.errors) or shown.startswith(f"{before}b"), end


def _ends_of(pattern: tuple[str, str] | None) -> tuple[bytes, ...]:
    region = parse_region(*pattern) if pattern is not None else None
    return () if region is None else tuple(end for end in region.literals if end is not None)


def test_the_steps_of_the_guide(root: Path) -> None:
    """Each step of docs/grammars.md adds to the one before, or says a rule of it anew; all of them load and read."""
    guide = (root / "docs" / "grammars.md").read_text(encoding="utf-8")
    section = guide.split("## A format, step by step")[1].split("\n## ")[0]
    output = re.findall(r"```\n(<think>.*?)\n```", section, re.DOTALL)[0]
    rules: dict[str, str] = {}
    blocks = re.findall(r"```(?:lark)?\n((?://@|turn:).*?)```", section, re.DOTALL)
    assert len(blocks) == 4
    for number, block in enumerate(blocks, 1):
        for line in filter(None, block.splitlines()):
            rules[line if line[0] in "/%" else line.split(":")[0]] = line
        fmt = tg.Format.from_text("\n".join(rules.values()), "mine.lark")
        gives = 'content "Let me add."; reasoning "It asks for a sum."; 1 add {"a": 1}'
        assert _words(fmt.parse(output, TOOLS)) == gives
        report = report_on(fmt.grammar)
        assert (report.held, report.warnings) == (None, ()), number
        words = tg.Vocabulary.embedded(fmt.grammar.markers)
        session = fmt.constraint(TOOLS, "required", vocabulary=words).session()
        assert session.accept_tokens(words.encode(f"{_CALL}<|end|>"))
        assert session.is_terminated
        if number > 1:
            loose = f"<think>hm</think>a{_CALL.replace(chr(10), ' ')}b{_CALL[:-13]}"
            assert _words(fmt.parse(loose, TOOLS)) == 'content "ab"; reasoning "hm"; 2 f {"a": "x"}'
        if number > 2:
            assert _words(fmt.parse(f"<tool_call>x</tool_call>{_CALL}")).startswith('1 f {"a": "x"}; error')
    assert fmt.parse("hm\n</think>\n\nHi", prompt_tail="<think>\n").reasoning == "hm"
