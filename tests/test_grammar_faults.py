"""Grammar files with faults: each kind is refused with its place and a way out, and nothing else ever comes of one."""

from __future__ import annotations

import re
from random import Random

import pytest

import twingram as tg
from twingram.grammar.rules import ROLES

from .walks import RUNES, loaded, small

SOURCE = RUNES.read_text(encoding="utf-8")
TOOLS = [
    {"name": "find", "parameters": {
        "type": "object", "required": ["o"], "properties": {
            "text": {"type": "string"}, "n": {"type": "number"},
            "o": {"type": "object", "properties": {"a": {"type": "array", "items": {"enum": ["x", 1, {"b": [1]}]}}}},
        },
    }},
]  # fmt: skip


def broken(old: str, new: str) -> str:
    assert SOURCE.count(old) == 1, old
    return SOURCE.replace(old, new)


KEY = r"KEY: /[A-Za-z_][A-Za-z0-9_\-]*/"
FAULTS: dict[str, tuple[str, str, str]] = {  # what was changed, what is said, a word of the hint
    "a pattern that can be empty": (broken(KEY, "KEY: /[a-z]*/"), "terminal KEY can be the empty text", "[KEY]"),
    "a region that can be empty": (
        broken(r"\[\[\/think\]\]|\[\[call\]\]).)+/s", r"\[\[\/think\]\]|\[\[call\]\]).)*/s"),
        "terminal THOUGHT can be the empty text", "[THOUGHT]",
    ),
    "a text that can be empty": (broken(KEY, 'KEY: "" | /[a-z]+/'), "terminal KEY can be the empty text", "[KEY]"),
    "parts that can all be empty": (
        broken(KEY, "KEY: PART PART\nPART: /a?/"), "terminal KEY can be the empty text", "[KEY]",
    ),
    "a pattern in a rule": (broken("key: KEY", "key: /[a-z]+/"), "the pattern /[a-z]+/ stands in a rule", "a name"),
    "letters of either case": (broken('true: "yes"', 'true: "yes"i'), '"yes"i: strings that ignore case', "terminal"),
    "either case in a terminal": (broken(KEY, 'KEY: "a"i'), '"a"i: strings that ignore case', "terminal"),
    "a region that ends at no fixed text": (
        broken(r"(?!\[\[\/think\]\]|\[\[call\]\])", r"(?!\[\[\/think\]\]|\s*\[)"),
        "terminal THOUGHT: what ends it does not begin with a fixed text", "plain letters",
    ),
    "a stop without quotes": (broken('//@ stop "[[end]]"', "//@ stop [[end]]"), "directive 'stop'", "directives"),
    "an empty stop": (broken('//@ stop "[[end]]"', '//@ stop ""'), "directive 'stop'", "directives"),
    "a start without a rule": (broken("//@ start turn", "//@ start"), "'start': a word is missing", "directives"),
    "recovery without an end": (SOURCE + "//@ recover tool_call\n", "write: recover ROLE until", "directives"),
    "recovery from no role": (
        SOURCE + '//@ recover nothing until "x" kept then turn\n', "'nothing' is no role", "directives",
    ),
    "recovery in no way": (
        SOURCE + '//@ recover tool_call until "x" eaten then turn\n', "write: recover ROLE until", "directives",
    ),
    "calls that repeat themselves": (
        broken("[content] tool_call*", "[content] calls\ncalls: (tool_call calls)?"),
        "rule 'calls' leads back to itself in the rules of a turn", "repetition",
    ),
    "a call within a call": (
        broken('tool_call: "[[call]]" tool_name', 'tool_call: "[[call]]" more tool_name\nmore: "!" tool_call | "?"'),
        "rule 'tool_call' leads back to itself in a call, outside its arguments", "repetition",
    ),
    "half a surrogate pair": (SOURCE + "// \ud800\n", "half a surrogate pair", "UTF-8"),
    "groups in groups": (
        broken('null: "nil"', "null: " + "(" * 3000 + '"nil"' + ")" * 3000), "nest too deeply", "a rule each",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FAULTS)
def test_a_fault_is_named(case: str) -> None:
    source, said, hint = FAULTS[case]
    with pytest.raises(tg.GrammarError) as caught:
        tg.Format.from_text(source, "own.lark")
    assert said in caught.value.message
    assert hint in caught.value.hint
    if caught.value.caret:
        line = source.splitlines()[(caught.value.line or 0) - 1]
        assert caught.value.caret.startswith(f"  {line}\n")


CONSTRAINED = {
    "a key of two parts": (broken(KEY, 'KEY: "a" /[a-z]*/'), "KEY, so that it has to be one pattern"),
    "a number of two terminals": (broken("number: NUMBER", "number: NUMBER [KEY]"), "a number is one terminal"),
    "members that are none": (broken("member: key", "pair: key").replace("member", "pair"), "no member with a value"),
}


@pytest.mark.parametrize("case", CONSTRAINED)
def test_a_fault_that_matters_to_masks(case: str) -> None:
    source, said = CONSTRAINED[case]
    with pytest.raises(tg.GrammarError, match=re.escape(said)):
        tg.Format.from_text(source).constraint(TOOLS, "required", vocabulary=small("runes"))


def test_a_format_without_stop_tokens() -> None:
    fmt = tg.Format.from_text(broken('//@ stop "[[end]]"\n', ""))
    with pytest.raises(tg.VocabularyError, match="the format has no stop tokens; give stop_tokens="):
        fmt.constraint(TOOLS, "required", vocabulary=small("runes"))


WORD = re.compile(r'"(?:[^"\\]|\\.)*"|//@|\w+|\n|[^\w\n]')
OTHERS = ["*", "?", "~2..3", "_commit", "_end", '""', '"x"', "\n", "NAME", *sorted(ROLES)]


def changed(source: str, rng: Random) -> str:
    """The grammar with a few words left out, doubled, or replaced."""
    words = WORD.findall(source)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at, kind = rng.randrange(len(words)), rng.random()
        if kind < 0.5:
            del words[at]
        elif kind < 0.7:
            words.insert(at, rng.choice(words))
        else:
            words[at] = rng.choice(words if kind < 0.9 else OTHERS)
    return "".join(words)


@pytest.mark.parametrize("count", [60, pytest.param(4000, marks=pytest.mark.heavy)])
def test_whatever_is_changed_nothing_else_comes_of_it(count: int) -> None:
    for seed in range(count):
        rng = Random(seed)
        source = changed(rng.choice([SOURCE, loaded("gemma4").grammar.source, loaded("atem").grammar.source]), rng)
        try:
            fmt = tg.Format.from_text(source, str(RUNES))
            fmt.parse("[[call]]find(text=[[s]]a; b[[/s]];n=3)[[/call]]", tools=TOOLS)
            session = fmt.constraint(TOOLS, "required", vocabulary=small("runes")).session()
        except tg.TwingramError:
            continue
        for _ in range(20):
            if session.is_terminated:
                break
            assert session.accept_token(rng.choice(session.allowed_tokens().tolist()))
        session.take_deltas()
