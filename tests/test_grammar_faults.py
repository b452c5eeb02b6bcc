"""Grammar files with faults: each kind is refused with its place and a way out, and nothing else ever comes of one."""

from __future__ import annotations

import itertools
import re
from random import Random

import lark
import pytest

import twingram as tg
from twingram.automaton.machine import Machine
from twingram.grammar.alphabet import Alphabet
from twingram.grammar.compile import Compiler, Reading
from twingram.grammar.rules import ROLES
from twingram.grammar.source import load

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
    "a text that ends at a marker and more": (
        broken(r"(?!\[\[\/think\]\]|\[\[call\]\])", r"(?!\n\[\[\/think\]\]|\[\[call\]\])"),
        "terminal THOUGHT: an end that holds a marker and more", "alone",
    ),
    "a text that ends at a marker with something behind": (
        broken(r"(?!\[\[\/s\]\])", r"(?!\[\[\/s\]\]\s*[;)])"), "terminal BODY: an end that holds a marker", "alone",
    ),
    "a sync point that is a marker and more": (
        SOURCE + '//@ recover tool_call until "[[call]]f" kept then turn\n',
        "a sync point that holds a marker", "alone",
    ),
    "a region without its flag": (
        broken(r"(?!\[\[\/s\]\]).)+/s", r"(?!\[\[\/s\]\]).)+/"), "terminal BODY is nearly a text region", "flag s",
    ),
    "a region of alternatives": (
        broken(r"((?!\[\[\/s\]\]).)+", r"((?!\[\[\/s\]\])(?:.|\n))+"), "terminal BODY is nearly a text region", "END",
    ),
    "a region that may not begin with anything": (
        broken(r"((?!\[\[\/s\]\]).)+", r"(?!x?)((?!\[\[\/s\]\]).)+"), "terminal BODY: no text fits", "(?!",
    ),
    "arguments before the name": (
        broken('"[[call]]" tool_name object "[[/call]]"', '"[[call]]" object tool_name "[[/call]]"'),
        "the arguments of a call stand before its name", "begin",
    ),
    "arguments twice": (
        broken('tool_name object "[[/call]]"', 'tool_name object object "[[/call]]"'), "arguments twice", "rule",
    ),
    "arguments that may be left out": (
        broken("tool_name object", "tool_name [object]"), "may leave out its object", "negative",
    ),
    "calls without arguments": (
        broken('tool_name object "[[/call]]"', 'tool_name _pair "[[/call]]"') + '_pair: "(" ")"\n', "holds no object",
        "roles of a call",
    ),
    "a name with something around it": (
        broken("tool_name: NAME", 'tool_name: "fn_" NAME'), "a tool's name is one terminal", "around the name",
    ),
    "an object that is no list": (
        broken('"(" [member ("; " member)*] ")"', '"(" (member ";")* ")"'), "array holds one list", "member*",
    ),
    "a member without a rule of values": (
        broken('member: key "=" value', 'member: key "=" (string | value)'), "one key and one value", "value",
    ),
    "an array that is no list": (
        broken('"<" [value (" | " value)*] ">"', '"<" value ">"'), "an object or array holds one list", "member*",
    ),
    "a number of two": (broken("number: NUMBER", "number: NUMBER NUMBER"), "a number is one terminal", "NUMBER"),
    "rules without a role that lead round": (
        broken('object: "("', 'object: _a "("') + "_a: [_b]\n_b: [_a]\n", "can begin with itself", "repetition",
    ),
    "a body where none is read": (
        broken("member: key", "member: _commit key") + '_commit: "x"\n', "rule '_commit' has a body", "_commit:",
    ),
    "a string in itself": (
        broken('"[[s]]" [BODY] "[[/s]]"', '"[[s]]" [BODY [string]] "[[/s]]"'), "a string or key has one", "TEXT",
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
    "a part of a terminal that repeats": (
        broken(KEY, 'KEY: "a" ("b" "c")~2'), "terminal KEY repeats or leaves out a part", "/pattern/",
    ),
    "a part of a terminal that may be left out": (
        broken(KEY, 'KEY: "a" ["b"]'), "terminal KEY repeats or leaves out a part", "/pattern/",
    ),
    "a terminal of many ways": (
        broken(KEY, "KEY: " + '("a"|"b"|"c") ' * 6), "terminal KEY has too many alternatives", "one /pattern/",
    ),
    "text that is ignored": (SOURCE + "%ignore KEY\n", "%ignore has no meaning here", "all text counts"),
    "a terminal that is declared": (
        broken("key: KEY", "key: FOO") + "%declare FOO\n", "%declare has no meaning here", "NAME: /pattern/",
    ),
    "a terminal of one that is declared": (
        broken(KEY, "KEY: FOO") + "%declare FOO\n", "%declare has no meaning here", "NAME: /pattern/",
    ),
    "a terminal that is nowhere": (broken(KEY, "KEY: PART"), "Terminal used but not defined: PART", ""),
    "an import of nothing": (SOURCE + "%import .nothing (x)\n", "nothing.lark", ""),
    "a directive of nothing": (SOURCE + "//@ \n", "an empty directive", ""),
    "half a string in a directive": (
        SOURCE + '//@ reserved "abc\n', "cannot read this directive", "a string is written",
    ),
    "two syncs in one": (
        SOURCE + '//@ recover tool_call until "x" kept "y" then turn\n', "each text is followed by", "directives",
    ),
    "escapes of an unknown kind": (
        broken("//@ casts quoted", "//@ escapes loud"), "'loud' is not one of: raw, json", "directives",
    ),
    "a wrapper of one's own": (
        broken("member: key", "member: _twice{key}") + "_twice{x}: x x\n", "_twice{...} has no meaning here",
        "_same{rule}",
    ),
    "a letter said again": (
        broken("member: key", 'member: _same{"a"} key') + "_same{x}: x\n", "_same{...} has no meaning here",
        "_same{rule}",
    ),
    "a value said again": (
        broken("member: key", "member: key _same{value}") + "_same{x}: x\n",
        "_same{value} needs a rule that is one terminal", "value: NAME",
    ),
    "a value that is declared": (
        broken("member: key", "member: _declared{value} key") + "_declared{x}: x\n",
        "_declared{value}: there is no list of what is declared", "tool_name or key",
    ),
    "a file that is imported in two ways": (
        SOURCE + "\n%import json.value -> again\n%import .json.value -> once_more\n", "json", "",
    ),
    "a condition without what it stands around": (
        broken("member: key", "member: _declared key") + "_declared{x}: x\n",
        "_declared stands alone", "_declared{rule}",
    ),
    "a condition round a terminal": (
        broken("member: key", "member: _declared{KEY} key") + "_declared{x}: x\n",
        "_declared{KEY}: there is no list of what is declared", "tool_name or key",
    ),
    "an answer that is no value": (
        broken("//@ casts quoted", "//@ casts quoted\n//@ answer content"),
        "the rule of answers is to list rules of values", "answer_value",
    ),
    "an answer that has no place": (
        broken("//@ casts quoted", "//@ casts quoted\n//@ answer value").replace("content: PROSE", 'content: "!"'),
        "answers need a text region", "content: TEXT",
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
    "a member of two keys": (broken("member: key", "member: key key"), "a member has one key and one value"),
    "a key that may be left out": (broken("member: key", "member: [key]"), "do not stand in a plain row"),
    "an array of no list": (
        broken('array: "<" [value (" | " value)*] ">"', 'array: "<" value ">"'), "an object or array holds one list",
    ),
    "a key of two texts": (broken("key: KEY", "key: KEY NAME"), "one terminal for its text"),
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


def notation(rng: Random, depth: int = 2) -> str:
    """What may stand behind the name of a terminal, or nearly."""
    kind = rng.random()
    if depth == 0 or kind < 0.35:
        return rng.choice(['"a"', '"b"', '"ab"', "/[ab]/", "/b+/", "PART"])
    inner = [notation(rng, depth - 1) for _ in range(rng.randint(1, 3))]
    if kind < 0.9:
        return f"({' '.join(inner)})" if kind < 0.6 else f"({'|'.join(inner)})"
    return f"({inner[0]})" + rng.choice(["~2", "?", "+", "~1..2"]) if kind < 0.97 else f"[{inner[0]}]"


def test_terminals_read_what_larks_do_or_are_refused() -> None:
    rng, refused, read = Random(4), 0, 0
    texts = ["".join(letters) for size in range(6) for letters in itertools.product("abc", repeat=size)]
    for _ in range(150):
        source = f"start: KEY\nKEY: {' '.join(notation(rng) for _ in range(2))}\nPART: \"c\" | \"a\" \"c\"\n"
        pattern = next(each.pattern for each in lark.Lark(source).terminals if each.name == "KEY")
        try:
            grammar = load("//@ start start\n" + source)
        except tg.GrammarError:
            assert re.search(r"\)[~?+]|\[[^ab]", source), source
            refused += 1
            continue
        machine = Machine(Compiler(grammar, Alphabet.of(()), Reading.STRICT).terminal("KEY", None))
        for text in texts:
            step = machine.start.run(text.encode())
            assert (step is not None and step.state.accepting) == bool(re.fullmatch(pattern.to_regexp(), text)), source
            read += 1
    assert refused > 10
    assert read > 10000


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
