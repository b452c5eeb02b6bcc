"""Exported grammars: run by other engines, they allow exactly the tokens of our masks, at each step of random walks."""

from __future__ import annotations

import json
from functools import cache
from random import Random
from typing import Any

import pytest

import twingram as tg
from twingram.automaton.dfa import Dfa
from twingram.automaton.expression import INFINITE
from twingram.automaton.regex import pattern_dfa
from twingram.cli import main
from twingram.export import NOTATIONS
from twingram.export.letters import letters
from twingram.export.regular import _Graph, regular
from twingram.export.terms import NONE, NULL, Chars, Either, Name, Row, Term, Text, Times, either, row, times

from .engines import ENGINES, differences, engine_or_skip, walk_tokens
from .vocabularies import gemma, llama4, or_skip

STRING = {"type": "string"}
SCHEMAS: dict[str, Any] = {
    "none": {"type": "object", "properties": {}},
    "scalars": {
        "type": "object",
        "properties": {"s": STRING, "i": {"type": "integer", "minimum": -3, "maximum": 120}, "n": {"type": "number"},
                       "b": {"type": "boolean"}, "z": {"type": "null"}},
        "required": ["i", "b"],
    },
    "words": {
        "type": "object",
        "properties": {"e": {"enum": ["a", "ab", "é", "ê", "日本", '"', "\\", 3, None, True, [1], {"k": "v"}]},
                       "c": {"const": "only"}},
        "required": ["e"],
    },
    "texts": {
        "type": "object",
        "properties": {"p": {"type": "string", "pattern": "^[a-z][a-z0-9_]*$", "maxLength": 9},
                       "l": {"type": "string", "minLength": 2, "maxLength": 4},
                       "u": {"type": "string", "pattern": "^[α-ω]{1,3}$"}, "d": {"type": "string", "format": "date"}},
        "required": ["p", "l"],
    },
    "nested": {
        "type": "object",
        "properties": {"o": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
                       "a": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3},
                       "t": {"type": "array", "prefixItems": [STRING, {"type": "boolean"}], "minItems": 2}},
        "required": ["a"],
    },
    "open": {"type": "object", "additionalProperties": {"type": "integer"}},
    "anything": {"type": "object", "properties": {"any": {}, "obj": {"type": "object"}}, "required": ["any"]},
    "counted": {"type": "object", "properties": {key: {"type": "integer"} for key in "abcd"}, "minProperties": 2,
                "maxProperties": 3},
    "asking": {"type": "object", "properties": {key: {"type": "integer"} for key in "abc"},
               "dependentRequired": {"a": ["c"]}},
    "tree": {
        "type": "object", "properties": {"root": {"$ref": "#/$defs/node"}}, "required": ["root"],
        "$defs": {"node": {"type": "object", "properties": {"v": {"type": "integer"}, "kids": {
            "type": "array", "items": {"$ref": "#/$defs/node"}}}, "required": ["v"]}},
    },
    "branches": {"type": "object", "properties": {"x": {"anyOf": [{"type": "integer"}, STRING, {"type": "array",
                 "items": {"type": "boolean"}}]}}, "required": ["x"]},
    "multiples": {"type": "object", "properties": {"m": {"type": "integer", "multipleOf": 7, "minimum": 0}},
                  "required": ["m"]},
    "contains": {"type": "object", "properties": {"l": {"type": "array", "items": {"type": "integer"}, "contains": {
                 "const": 7}, "minContains": 1, "maxItems": 4}}, "required": ["l"]},
}  # fmt: skip


def tool(name: str, schema: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": schema}}


def constraint(fmt: str, tools: list[Any], choice: Any, vocabulary: tg.Vocabulary, **options: Any) -> tg.Constraint:
    return tg.load_format(fmt).constraint(
        tools, choice, vocabulary=vocabulary, key_order=options.pop("key_order", "declared"), **options
    )


@cache
def engine(name: str, fmt: str) -> Any:
    vocabulary = tg.Vocabulary.embedded()
    return engine_or_skip(name, vocabulary, stops(constraint(fmt, [tool("f", {})], "auto", vocabulary)))


def stops(made: tg.Constraint) -> tuple[int, ...]:
    return made.binding.ids(made.binding.alphabet.end)


def compare(made: tg.Constraint, runner: Any, rng: Random, walks: int, most: int = 40) -> None:
    grammar = made.export(runner.notation)
    for _ in range(walks):
        tokens = walk_tokens(made.session(), rng, most)
        for at, more, less in differences(runner, made, grammar, tokens):
            names = [[made.vocabulary.token_bytes(token) for token in ids[:9]] for ids in (more, less)]
            pytest.fail(f"after {made.vocabulary.decode(tokens[:at])!r} it allows {names[0]}, and not {names[1]}")


@pytest.mark.parametrize("kind", SCHEMAS)
@pytest.mark.parametrize("fmt", tg.list_formats())
@pytest.mark.parametrize("name", ENGINES)
def test_masks_are_the_same(name: str, fmt: str, kind: str) -> None:
    runner = engine(name, fmt)
    tools = [tool("get_it", SCHEMAS[kind]), tool("get_item", SCHEMAS["none"])]
    made = constraint(fmt, tools, "required", tg.Vocabulary.embedded())
    compare(made, runner, Random(f"{name} {fmt} {kind}"), 1)


@pytest.mark.parametrize("fmt", tg.list_formats())
@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize(
    ("choice", "options"),
    [
        ("auto", {}),
        ("none", {}),
        ("required", {"parallel_tool_calls": False}),
        ("required", {"reasoning": "forbid"}),
        ("auto", {"reasoning": "require"} ),
        ({"type": "function", "function": {"name": "b"}}, {"key_order": "sorted"}),
        ("auto", {"response_schema": SCHEMAS["nested"]}),
        ("required", {"additional_properties": "schema"}),
    ],
    ids=["auto", "none", "single", "no thought", "thought", "named, sorted", "answer", "open"],
)  # fmt: skip
def test_masks_are_the_same_for_other_requests(name: str, fmt: str, choice: Any, options: dict[str, Any]) -> None:
    if options.get("reasoning") == "require" and fmt == "functiongemma":
        pytest.skip("this format has no thoughts")
    runner = engine(name, fmt)
    tools = [tool("a", SCHEMAS["scalars"]), tool("b", SCHEMAS["nested"])]
    made = constraint(fmt, tools, choice, tg.Vocabulary.embedded(), **options)
    compare(made, runner, Random(f"{name} {fmt} {choice} {options}"), 1)


@pytest.mark.heavy
@pytest.mark.parametrize("fmt", ["gemma4", "atem"])
@pytest.mark.parametrize("name", ENGINES)
def test_masks_are_the_same_on_a_real_vocabulary(name: str, fmt: str) -> None:
    vocabulary = or_skip(gemma if fmt == "gemma4" else llama4)
    tools = [tool(kind, schema) for kind, schema in SCHEMAS.items()]
    made = constraint(fmt, tools, "required", vocabulary)
    compare(made, engine_or_skip(name, vocabulary, stops(made)), Random(f"{name} {fmt}"), 8, 60)


@pytest.mark.parametrize("to", NOTATIONS)
def test_markers_are_tokens(to: str) -> None:
    vocabulary = tg.Vocabulary.embedded()
    made = constraint("gemma4", [tool("f", SCHEMAS["scalars"])], "required", vocabulary)
    text = made.export(to)
    written = {"xgrammar": "Token({})", "gbnf": "<[{}]>", "llguidance": "<[{}]>"}[to]
    for marker in ("<|tool_call>", "<tool_call|>", '<|"|>', "<|tool_response>"):
        assert written.format(vocabulary.special_tokens[marker]) in text
    assert "<turn|>" not in text
    assert made.export(to) == text


@pytest.mark.parametrize("to", NOTATIONS)
def test_any_order_is_written_as_declared(to: str) -> None:
    vocabulary = tg.Vocabulary.embedded()
    tools = [tool("f", {"type": "object", "properties": dict.fromkeys(("b", "a", "c"), STRING), "required": ["a"]})]
    texts = {order: constraint("gemma4", tools, "required", vocabulary, key_order=order).export(to)
             for order in ("any", "declared", "sorted")}  # fmt: skip
    assert texts["any"] == texts["declared"] != texts["sorted"]


def test_what_cannot_be_said_is_an_error() -> None:
    """A count over a pattern of many states; another engine's name."""
    schema = {"type": "object", "required": ["x"], "properties": {"x": {
        "type": "string", "pattern": "^(ab|ba|cc)*$", "maxLength": 1_000_000}}}  # fmt: skip
    made = constraint("gemma4", [tool("f", schema)], "required", tg.Vocabulary.embedded())
    with pytest.raises(tg.ExportError, match="cannot export"):
        made.export("xgrammar")
    with pytest.raises(tg.RequestError, match="'gbnf'"):
        made.export("yacc")


def test_a_bound_on_the_characters_costs_few_rules() -> None:
    """A text that must not spell a marker has a state for each of its letters; a count does not take a rule for each.
    Texts with other bounds share them."""
    tools = [tool(name, {"type": "object", "required": ["x", "y"], "properties": {
        "x": {"type": "string", "maxLength": 250}, "y": {"type": "string", "minLength": 1, "maxLength": 250}}})
        for name in ("f", "g")]  # fmt: skip
    made = constraint("gemma4", tools, "required", tg.Vocabulary.embedded())
    assert made.export("xgrammar").count("\n") < 5 * 250


def test_an_error_names_its_place() -> None:
    text = {"type": "string", "pattern": "^(ab|ba|cc)*$", "maxLength": 1_000_000}
    inner = {"type": "object", "properties": {"b": STRING, "x": text}}
    bad = {"type": "object", "properties": {"a": STRING, "in": inner}}
    tools = [tool("fine", SCHEMAS["none"]), tool("get_it", bad), tool("other", SCHEMAS["none"])]
    made = constraint("gemma4", tools, "required", tg.Vocabulary.embedded())
    with pytest.raises(tg.ExportError) as caught:
        made.export("xgrammar")
    assert caught.value.place == "get_it > in > x"
    assert "get_it > in > x: a text" in str(caught.value)
    assert "allow fewer characters" in str(caught.value)


def test_states_are_taken_out_without_looking_at_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the states of a pattern take about twice the work."""
    counts: list[int] = []
    plain = _Graph._cost

    def counted(graph: _Graph, state: int, widest: int) -> int:
        counts[-1] += 1
        return plain(graph, state, widest)

    monkeypatch.setattr(_Graph, "_cost", counted)
    for times_ in (100, 200):
        counts.append(0)
        regular(pattern_dfa(f"^(a[bc]){{{times_}}}d?$"), 0, INFINITE, lambda _: (Name("x"), lambda _: None), most=10)
    assert 0 < counts[1] < 3 * counts[0]


CHAINS = {
    "characters": {"type": "string", "maxLength": 3000},
    "characters of a pattern": {"type": "string", "pattern": "^(ab|ba|c)*$", "maxLength": 3000},
    "items": {"type": "array", "items": {"type": "integer"}, "contains": {"const": 7}, "maxItems": 3000},
    "members": {"type": "object", "maxProperties": 3000, "additionalProperties": {"type": "integer"}},
}


@pytest.mark.parametrize("kind", [kind for kind in CHAINS if kind != "characters"])
def test_no_chain_is_too_long_for_an_engine(kind: str) -> None:
    """Where rules refer to each other in a row by the thousand, llguidance does not fail: its stack overflows."""
    schema = {"type": "object", "properties": {"x": CHAINS[kind]}}
    tools = [tool("f", schema), tool("other", SCHEMAS["none"])]
    made = constraint("gemma4", tools, "required", tg.Vocabulary.embedded())
    with pytest.raises(tg.ExportError) as caught:
        made.export("llguidance")
    assert caught.value.place == "f > x"
    assert "allow fewer" in str(caught.value)
    made.export("xgrammar")


@pytest.mark.parametrize("kind", CHAINS)
def test_chains_that_are_exported_are_run(kind: str) -> None:
    """Near the greatest depth."""
    runner = engine("llguidance", "gemma4")
    schema = {"type": "object", "properties": {"x": {key: 500 if value == 3000 else value
                                                     for key, value in CHAINS[kind].items()}}}  # fmt: skip
    made = constraint("gemma4", [tool("f", schema)], "required", tg.Vocabulary.embedded())
    compare(made, runner, Random(kind), 1, most=8)


def test_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    file = tmp_path / "tools.json"
    file.write_text(json.dumps([tool("f", SCHEMAS["scalars"])]), encoding="utf-8")
    common = ["export", "--format", "gemma4", "--tools", str(file), "--tool-choice", "required"]
    for to in NOTATIONS:
        assert main([*common, "--to", to]) == 0
        expected = constraint("gemma4", [tool("f", SCHEMAS["scalars"])], "required", tg.Vocabulary.embedded())
        assert capsys.readouterr().out == expected.export(to)


# -- the parts ---------------------------------------------------------------------------------------------------------


def language(term: Term, rules: dict[str, Term], most: int) -> set[str]:
    """The texts of up to `most` characters that a term derives."""
    if isinstance(term, Text):
        return {term.text} if len(term.text) <= most else set()
    if isinstance(term, Chars):
        return {chr(code) for low, high in term.spans for code in range(low, min(high, low + 3) + 1)} if most else set()
    if isinstance(term, Name):
        return language(rules[term.name], rules, most) if most >= 0 else set()
    if isinstance(term, Either):
        return {text for part in term.parts for text in language(part, rules, most)}
    if isinstance(term, Row):
        found = {""}
        for part in term.parts:
            found = {text + more for text in found for more in language(part, rules, most - len(text))}
        return found
    assert isinstance(term, Times)
    found, last = set(), {""}
    for count in range(min(term.high, term.low + most) + 1):
        if count >= term.low:
            found |= last
        last = {text + more for text in last for more in language(term.body, rules, most - len(text))}
    return found


@pytest.mark.parametrize(
    ("pattern", "low", "high"),
    [
        ("^a*$", 0, INFINITE), ("^(ab|ba|c)*$", 0, INFINITE), ("^(a|b)*abb$", 0, INFINITE), ("^a{2,5}b?$", 0, INFINITE),
        ("^(ab|ba|c)*$", 2, 4), ("^[ab]+$", 3, INFINITE), ("^[ab][a-c]*$", 0, 3), ("^(a(b(c)?)?)?$", 1, 2),
        ("^é[ab]*$", 2, 3), ("^(aa|bbb)*$", 3, 5), ("^([ab]*a[ab][ab])$", 0, INFINITE),
        *(("^(?!.*(abc|acb))[abc]*$", low, high) for low, high in ((0, 5), (2, 4), (4, INFINITE), (5, 5))),
        *(("^((aab|aba)*b|c(ab?c)*)*$", low, high) for low, high in ((0, 5), (3, 3), (2, INFINITE))),
    ],
)  # fmt: skip
def test_terms_have_the_texts_of_the_automaton(pattern: str, low: int, high: int) -> None:
    dfa: Dfa = pattern_dfa(pattern)
    rules: dict[str, Term] = {}

    def new(_: object) -> tuple[Name, Any]:
        name = Name(f"r{len(rules)}")
        rules[name.name] = NONE
        return name, lambda term: rules.__setitem__(name.name, term)

    term = regular(dfa, low, high, new, most=1000)
    alphabet = ["a", "b", "c", "é"]
    words, found = [""], set()
    for _ in range(6):
        found |= {word for word in words if dfa.matches(word.encode()) and low <= len(word) <= high}
        words = [word + char for word in words for char in alphabet]
    assert {text for text in language(term, rules, 5) if set(text) <= set(alphabet)} == found


def test_characters_are_whole() -> None:
    spans = {0x0, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF}
    pattern = "^[" + "".join(f"\\u{{{code:x}}}" for code in sorted(spans)) + "]$"
    found = letters(pattern_dfa(pattern))
    (chars,) = found.arcs[found.start].values()
    covered = {code for low, high in chars.spans for code in range(low, high + 1)}
    assert covered == spans


def test_terms_are_put_together_in_one_way() -> None:
    a, b = Chars(((97, 97),)), Chars(((98, 98),))
    assert either([a, b]) == Chars(((97, 98),))
    assert row(Text("x"), NULL, Text("y")) == Text("xy")
    assert row(a, NONE) == NONE
    assert either([NULL, a]) == times(a, 0, 1)
    assert either([NULL, row(a, times(a, 0, 3))]) == times(a, 0, 4)
    assert either([row(a, Text("z")), row(b, Text("z"))]) == row(Chars(((97, 98),)), Text("z"))

