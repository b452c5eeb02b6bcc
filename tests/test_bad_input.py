"""Bad input: every kind has its own clear error or answer, in linear time, without a recursion error."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import Any

import pytest

import twingram as tg

from .walks import FORMATS, RUNES, loaded, small

SOURCE = RUNES.read_text(encoding="utf-8")


# Broken grammars


def _broken(old: str, new: str) -> str:
    assert old in SOURCE
    return SOURCE.replace(old, new, 1)


GRAMMARS: dict[str, tuple[str, str]] = {
    "unknown rule": (
        _broken("[content] tool_call*", "[content] tool_cal*"),
        """
own.lark:14:29: Rule 'tool_cal' used but not defined (in rule turn)
  turn: [reasoning] [content] tool_cal*
                              ^
""",
    ),
    "undefined terminal": (
        _broken("number: NUMBER", "number: NUMMER"),
        """
own.lark:28:9: Rule 'NUMMER' used but not defined (in rule number)
  number: NUMMER
          ^
""",
    ),
    "syntax": (
        _broken("content: PROSE", "content: PROSE ]"),
        """
own.lark:17:16: this is not grammar notation here
  content: PROSE ]
                 ^
""",
    ),
    "left recursion": (
        _broken("?value: string |", "?value: value string | string |"),
        """
own.lark:22:1: rule 'value' can begin with itself
  ?value: value string | string | number | true | false | null | object | array
  ^
hint: write a repetition (x* or x ("," x)*) instead of left recursion
""",
    ),
    "left recursion over two rules": (
        _broken("member: key", "member: [sign] key") + 'sign: [mark] member\nmark: "!"\n',
        """
own.lark:24:20: rule 'member' can begin with itself
  member: [sign] key "=" value
                     ^
hint: write a repetition (x* or x ("," x)*) instead of left recursion
""",
    ),
    "unreachable rule": (
        SOURCE + 'lonely: "x"\n',
        """
own.lark:39:9: no start rule leads to rule 'lonely'
  lonely: "x"
          ^
hint: use it somewhere, or take it out; is its name spelt alike in both places?
""",
    ),
    "unknown directive": (
        _broken("//@ casts quoted", "//@ kasts quoted"),
        """
own.lark:12:5: cannot understand the directive 'kasts': there is no directive 'kasts'
  //@ kasts quoted
      ^
hint: docs/grammars.md lists the directives
""",
    ),
    "directive with a wrong word": (
        _broken("//@ casts quoted", "//@ casts loud"),
        """
own.lark:12:5: cannot understand the directive 'casts': 'loud' is not one of: quoted, raw
  //@ casts loud
      ^
hint: docs/grammars.md lists the directives
""",
    ),
    "unknown start": (
        _broken("//@ start turn", "//@ start turm"),
        """
own.lark:9:11: unknown rule 'turm'
  //@ start turm
            ^
hint: the rules are: array, content, false, key, member, null, number, object, reasoning, string, tool_call, \
tool_name, true, turn, value
""",
    ),
    "call without a name": (
        _broken('"[[call]]" tool_name object', '"[[call]]" object').replace("tool_name: NAME\n", ""),
        """
own.lark:19:12: a tool_call holds no tool_name
  tool_call: "[[call]]" object "[[/call]]"
             ^
hint: see docs/grammars.md for the roles of a call
""",
    ),
    "call without arguments": (
        _broken("tool_name object", "tool_name"),
        """
own.lark:19:12: a tool_call holds no object
  tool_call: "[[call]]" tool_name "[[/call]]"
             ^
hint: see docs/grammars.md for the roles of a call
""",
    ),
    "pattern without an end": (
        _broken(r"KEY: /[A-Za-z_][A-Za-z0-9_\-]*/", "KEY: /[A-Za-z_/"),
        """
own.lark:37:6: terminal KEY: class without an end, at position 0 of its pattern
  KEY: /[A-Za-z_/
       ^
hint: docs/grammars.md says which patterns there are
""",
    ),
    "region that nothing fits": (
        _broken(r"THOUGHT: /((?!\[\[\/think\]\]|\[\[call\]\]).)+/s", "THOUGHT: /((?!).)+/s"),
        """
own.lark:33:10: terminal THOUGHT: no text fits, since the empty text ends it
  THOUGHT: /((?!).)+/s
           ^
hint: write what ends the text after (?!
""",
    ),
    "two readings": (
        _broken("turn: [reasoning] [content] tool_call*", "turn: [reasoning] [content] tool_call* | thought")
        + "thought: PROSE -> reasoning\n",
        """
own.lark: two canonical readings of one text give different output: '\\n'
hint: give one alternative a negative priority, or let a terminal exclude what begins the other
""",
    ),
    "nothing": (
        "",
        """
own.lark: no start rule
hint: add a line such as: //@ start turn
""",
    ),
}


@pytest.mark.parametrize("case", GRAMMARS)
def test_broken_grammars_say_where_and_what_to_do(case: str) -> None:
    source, wanted = GRAMMARS[case]
    with pytest.raises(tg.GrammarError) as caught:
        tg.Format.from_text(source, "own.lark")
    assert str(caught.value) == wanted.strip("\n")
    assert caught.value.file == "own.lark"


def test_files_that_are_no_grammar(tmp_path: Any) -> None:
    with pytest.raises(tg.GrammarError, match="cannot read"):
        tg.Format.from_file(tmp_path / "nowhere.lark")
    (tmp_path / "bytes.lark").write_bytes(b"\xff\x00\xfe")
    with pytest.raises(tg.GrammarError, match="cannot read"):
        tg.Format.from_file(tmp_path / "bytes.lark")
    for name in ("gema4", "", "../gemma4", "json"):
        with pytest.raises(tg.GrammarError, match="there is no format named"):
            tg.load_format(name)


# Requests


TEXT = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "array"}}, "required": ["a"]}
NEVER = {
    "type": "object", "properties": {"n": {"type": "integer", "minimum": 3, "maximum": 2}}, "required": ["n"],
}  # fmt: skip


def tool(schema: Any, name: str = "f") -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": schema}}


def constrain(name: str, tools: Any, choice: Any = "required", **options: Any) -> tg.Constraint:
    return loaded(name).constraint(tools, choice, vocabulary=small(name), **options)


NAMED_G = {"type": "function", "function": {"name": "g"}}
REQUESTS: dict[str, tuple[Any, Any, str]] = {
    "unknown tool in a named choice": ([tool(TEXT)], NAMED_G, "names 'g', which is not among the tools: f"),
    "named choice without tools": (None, NAMED_G, "names 'g', which is not among the tools: none"),
    "required without tools": (None, "required", "'required' needs tools, but none were given"),
    "required with an empty list": ([], "required", "'required' needs tools, but none were given"),
    "unknown choice": ([tool(TEXT)], "any", "'any' is not one of 'auto', 'none', 'required'"),
    "choice of another type": ([tool(TEXT)], 7, "a word or an object, not int"),
    "choice without a name": ([tool(TEXT)], {"type": "function"}, 'a named tool_choice is {"type": "function"'),
    "two tools of one name": ([tool(TEXT), tool(TEXT)], "auto", "'f' is defined twice"),
    "tool without a name": ([{"type": "function", "function": {}}], "auto", r"tools[0].function.name must be a text"),
    "parameters as text": ([tool("{}")], "auto", "must be a JSON Schema, not str; decode the JSON text first"),
}


@pytest.mark.parametrize("case", REQUESTS)
@pytest.mark.parametrize("name", FORMATS)
def test_requests_that_contradict_themselves(name: str, case: str) -> None:
    tools, choice, wanted = REQUESTS[case]
    with pytest.raises(tg.RequestError) as caught:
        constrain(name, tools, choice)
    assert wanted in str(caught.value)


@pytest.mark.parametrize("name", FORMATS)
def test_a_schema_that_nothing_satisfies(name: str) -> None:
    for choice in ("required", {"type": "function", "function": {"name": "f"}}):
        with pytest.raises(tg.SchemaError) as caught:
            constrain(name, [tool(NEVER)], choice)
        assert (caught.value.tool, caught.value.path) == ("f", "$.properties.n")
        assert "no integer is within the bounds" in str(caught.value)
    with pytest.raises(tg.SchemaError):
        constrain(name, [tool(NEVER), tool(TEXT, "g")], on_refused="error")
    left = constrain(name, [tool(NEVER), tool(TEXT, "g")])
    assert [f.path for f in left.report() if f.status == "refused"] == ["$.properties.n"]
    auto = constrain(name, [tool(NEVER)], "auto").session()
    assert len(auto.allowed_tokens())
    with pytest.raises(tg.SchemaError):
        constrain(name, [tool(False)])


@pytest.mark.parametrize("name", FORMATS)
def test_what_no_format_can_write_is_refused(name: str) -> None:
    marker = {"gemma4": '<|"|>', "atem": "<|eom|>", "runes": "[[/s]]"}[name]
    for value in (f"a{marker}b", "\ud800"):
        with pytest.raises(tg.SchemaError) as caught:
            constrain(name, [tool({"type": "object", "properties": {"a": {"enum": [value]}}, "required": ["a"]})])
        assert caught.value.path == "$.properties.a"
        kept = constrain(name, [tool({"type": "object", "properties": {"a": {"enum": [value, "x"]}}})])
        assert any(f.status == "refused" and f.path.startswith("$.properties.a") for f in kept.report())
    for bad in ("", "a b", "f\ud800", f"f{marker}"):
        with pytest.raises((tg.SchemaError, tg.RequestError)):
            constrain(name, [tool(TEXT, bad)])


@pytest.mark.parametrize("name", FORMATS)
def test_stop_tokens_that_do_not_exist(name: str) -> None:
    for stop in (-1, len(small(name)), "<nowhere>"):
        with pytest.raises(tg.VocabularyError):
            constrain(name, [tool(TEXT)], stop_tokens=[stop])


def test_a_vocabulary_without_every_byte() -> None:
    with pytest.raises(tg.VocabularyError, match="allow_partial=True"):
        tg.Vocabulary.from_tokens([b"a", b"b"])


@pytest.mark.parametrize("name", FORMATS)
def test_token_ids_out_of_range(name: str) -> None:
    vocabulary, session = small(name), constrain(name, [tool(TEXT)]).session()
    before = session.mask().copy()
    for token in (-1, len(vocabulary), 2**40):
        assert not session.accept_token(token)
        assert session.accept_tokens([token]) == 0
        assert session.validate_tokens([token]) == 0
        with pytest.raises(tg.VocabularyError, match="is not between 0 and"):
            loaded(name).parse([token], vocabulary=vocabulary)
        with pytest.raises(tg.VocabularyError):
            vocabulary.token_bytes(token)
    assert (session.mask() == before).all()


@pytest.mark.parametrize("name", FORMATS)
def test_a_parser_fed_in_the_wrong_way(name: str) -> None:
    fmt, vocabulary = loaded(name), small(name)
    with pytest.raises(tg.RequestError, match="needs vocabulary="):
        fmt.parse([1, 2])
    parser = fmt.parser(vocabulary=vocabulary)
    parser.feed("a")
    with pytest.raises(tg.RequestError, match="cannot be mixed"):
        parser.feed_tokens([97])
    parser.finish()
    with pytest.raises(tg.RequestError, match="is finished"):
        parser.feed("b")
    with pytest.raises(TypeError, match="feed takes text"):
        fmt.parser().feed(b"a")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", FORMATS)
def test_lone_surrogates_become_replacement_characters(name: str) -> None:
    assert loaded(name).parse("a\ud800b\udc00c").content == "a\ufffdb\ufffdc"
    parser = loaded(name).parser()
    deltas = [*parser.feed("a\ud83d"), *parser.feed("\ude00b"), *parser.finish()]
    assert "".join(delta.text for delta in deltas if isinstance(delta, tg.Content)) == "a\ufffd\ufffdb"
    found = small(name).encode("x\udc00")
    assert small(name).decode(found) == "x\ufffd".encode()


# Size


OPENINGS = {
    "gemma4": ("<|tool_call>call:f{", ":", '<|"|>', '<|"|>', "}<tool_call|>"),
    "atem": (
        ' to=f<|message|><atem:function_calls>\n<atem:invoke name="f">\n<atem:parameter name="', '">', "", "",
        "</atem:parameter>\n</atem:invoke>\n</atem:function_calls>",
    ),
    "runes": ("[[call]]f(", "=", "[[s]]", "[[/s]]", ")[[/call]]"),
}  # fmt: skip
BRACKETS = {"gemma4": ("[", "]"), "atem": ("[", "]"), "runes": ("<", ">")}
BIG = 10_000_000


@pytest.mark.parametrize("name", FORMATS)
def test_ten_megabytes_of_one_letter(name: str) -> None:
    letters = "a" * BIG
    assert loaded(name).parse(letters).content == letters
    start, between, quote, unquote, end = OPENINGS[name]
    message = loaded(name).parse(start + "a" + between + quote + letters + unquote + end, tools=[tool(TEXT)])
    assert message.calls[0].value == {"a": letters}
    cut = loaded(name).parse(start + letters, tools=[tool(TEXT)])
    assert [call.name for call in cut.incomplete_calls] == ["f"]


@pytest.mark.parametrize("letter", ["<", "[", "{", "\n", " ", '"', "\\", "é"])
@pytest.mark.parametrize("name", FORMATS)
def test_much_of_an_awkward_letter_takes_linear_time(name: str, letter: str) -> None:
    """Four times the input takes four times as long, give or take; one good try in five, for a machine may be busy."""
    small_one, large_one = letter * 100_000, letter * 400_000

    def took(text: str) -> float:
        begin = time.perf_counter()
        message = loaded(name).parse(text)
        assert (message.content or "").strip() == text.strip()
        return time.perf_counter() - begin

    assert any(took(large_one) < 8 * took(small_one) + 0.05 for _ in range(5))


@pytest.mark.parametrize("name", FORMATS)
def test_an_integer_of_a_million_digits(name: str) -> None:
    start, between, _, _, end = OPENINGS[name]
    digits = "7" * 1_000_000
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    message = loaded(name).parse(f"{start}n{between}{digits}{end}", tools=[tool(schema)])
    assert message.calls[0].arguments == f'{{"n": {digits}}}'


DEEP = 100_000


@pytest.mark.parametrize("name", FORMATS)
def test_a_hundred_thousand_nested_brackets_fed(name: str) -> None:
    start, between, quote, unquote, end = OPENINGS[name]
    opener, closer = BRACKETS[name]
    good = f"{start}a{between}{quote}x{unquote}{end}"
    next_call = "<|eom|><|start|>assistant" if name == "atem" else ""
    for body in (opener * DEEP, opener * DEEP + closer * DEEP):
        text = f"{start}b{between}{body}"
        cut = loaded(name).parse(text, tools=[tool(TEXT)])
        assert [call.name for call in cut.incomplete_calls] == ["f"]
        whole = loaded(name).parse(f"{text}{end}{next_call}{good}", tools=[tool(TEXT)])
        json.dumps([call.arguments for call in (*whole.calls, *whole.incomplete_calls)])
        assert whole.calls or whole.errors
        if name != "runes":  # it declares no way to recover
            assert whole.calls[-1].value == {"a": "x"}, "a later good call is not lost"
    fine = f"{start}b{between}{opener * 400}{closer * 400}{end}"
    (call,) = loaded(name).parse(fine, tools=[tool(TEXT)]).calls
    assert call.arguments == '{"b": ' + "[" * 400 + "]" * 400 + "}"


@pytest.mark.parametrize("name", FORMATS)
def test_a_hundred_thousand_nested_brackets_in_a_session(name: str) -> None:
    """A mask lets arrays nest no deeper than the parser reads them, or reads them back at any depth."""
    vocabulary, session = small(name), constrain(name, [tool(TEXT)]).session()
    start, between, *_ = OPENINGS[name]
    assert session.accept_tokens(vocabulary.encode(f"{start}b{between}"))
    (bracket,) = vocabulary.encode(BRACKETS[name][0])
    depth = 0
    while depth < 2000 and session.accept_token(bracket):
        depth += 1
    assert depth > 100
    assert len(session.allowed_tokens())
    assert session.min_tokens_to_end() < 10_000


def _nested(wrap: Callable[[Any], Any], depth: int) -> Any:
    schema: Any = {"type": "string"}
    for _ in range(depth):
        schema = wrap(schema)
    return schema


WRAPPERS: dict[str, Callable[[Any], Any]] = {
    "items": lambda inner: {"type": "array", "items": inner},
    "properties": lambda inner: {"type": "object", "properties": {"a": inner}},
    "additionalProperties": lambda inner: {"type": "object", "additionalProperties": inner},
    "anyOf": lambda inner: {"anyOf": [inner]},
    "allOf": lambda inner: {"allOf": [inner]},
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("name", FORMATS)
def test_schemas_nested_too_deeply(name: str, wrapper: str) -> None:
    for depth in (300, 1500, DEEP):
        schema = {"type": "object", "properties": {"a": _nested(WRAPPERS[wrapper], depth)}, "required": ["a"]}
        with pytest.raises(tg.LimitExceeded, match=r"schema_depth = (?:200|120)"):
            constrain(name, [tool(schema)])
        assert loaded(name).parse("hello", tools=[tool(schema)]).content == "hello"
    constrain(name, [tool({"type": "object", "properties": {"a": _nested(WRAPPERS[wrapper], 50)}})])


def test_errors_of_depth_name_a_way_out_that_works() -> None:
    """A larger limit is advised where it helps, and only there."""
    value: Any = 1
    for _ in range(150):
        value = [value]
    for inner in (_nested(WRAPPERS["anyOf"], 150), {"const": value}):
        tools = [tool({"type": "object", "properties": {"a": inner}, "required": ["a"]})]
        for limits in (tg.Limits(), tg.Limits(schema_depth=1000)):
            with pytest.raises(tg.LimitExceeded, match=r"1[02]0 at most, and no larger Limits allows more: nest less"):
                tg.load_format("gemma4").constraint(tools, vocabulary=tg.Vocabulary.embedded(), limits=limits)
    for wrapper, most in (("anyOf", 100), ("properties", 200)):
        inner = _nested(WRAPPERS[wrapper], most + 10)
        tools = [tool({"type": "object", "properties": {"a": inner}, "required": ["a"]})]
        with pytest.raises(tg.LimitExceeded, match=f"schema_depth = {most}; pass a larger Limits"):
            tg.load_format("gemma4").constraint(
                tools, vocabulary=tg.Vocabulary.embedded(), limits=tg.Limits(schema_depth=most)
            )
        tg.load_format("gemma4").constraint(
            tools, vocabulary=tg.Vocabulary.embedded(), limits=tg.Limits(schema_depth=most + 40)
        )


@pytest.mark.parametrize("name", FORMATS)
def test_a_schema_that_holds_itself(name: str) -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    schema["properties"]["a"] = schema
    session = constrain(name, [tool(schema)]).session()
    assert len(session.allowed_tokens())
    assert session.min_tokens_to_end() < 500


PATTERNS = {
    "brackets": "(" * 5000 + ")" * 5000,
    "powers": "^(a{1,1000}){1,1000}$",
    "look back": "(?<=a)b",
    "many states": "(.*a.{30}b|.*c.{30})",
    "malformed": "a(",
    "no text": 7,
}


@pytest.mark.parametrize("case", PATTERNS)
@pytest.mark.parametrize("name", FORMATS)
def test_patterns_that_are_too_much(name: str, case: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": PATTERNS[case]}}, "required": ["a"]}
    constraint = constrain(name, [tool(schema)])
    relaxed = [found.path for found in constraint.report() if (found.keyword, found.status) == ("pattern", "relaxed")]
    assert relaxed == ["$.properties.a"]
    assert len(constraint.session().allowed_tokens())
    with pytest.raises(tg.SchemaError) as caught:
        constrain(name, [tool(schema)], on_unsupported="error")
    assert (caught.value.path, caught.value.keyword) == ("$.properties.a", "pattern")


@pytest.mark.parametrize("name", FORMATS)
def test_large_requests_stay_quick(name: str) -> None:
    """Sizes at which anything quadratic would show."""
    begin = time.perf_counter()
    many = [tool(TEXT, f"tool_{number}") for number in range(100)]
    enum = {"type": "object", "properties": {"a": {"enum": [f"v{n}" for n in range(5000)]}}, "required": ["a"]}
    wide = {"type": "object", "properties": {f"p{n}": {"type": "integer"} for n in range(500)}}
    wide["required"] = [f"p{n}" for n in range(0, 500, 2)]
    long = {"type": "object", "properties": {"a": {"type": "string", "minLength": 1000, "maxLength": 10**6}}}
    for tools in (many, [tool(enum)], [tool(wide)], [tool(long)]):
        session = constrain(name, tools).session()
        assert len(session.allowed_tokens())
        assert session.min_tokens_to_end() > 0
    assert time.perf_counter() - begin < 20


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes_of_any_kind_can_be_fed(kind: Any) -> None:
    parser = tg.load_format("gemma4").parser()
    text = "Grüße<|tool_call>call:f{}<tool_call|>!".encode()
    pieces = [text[at : at + 3] for at in range(0, len(text), 3)]
    deltas = [delta for piece in pieces for delta in parser.feed_bytes(kind(piece))]
    assert [*deltas, *parser.finish()]
    assert parser.message.calls[0].name == "f"
    assert parser.message.content == "Grüße!"


@pytest.mark.parametrize("data", ["text", 5, None, [1, 2]])
def test_what_is_no_bytes_is_refused(data: Any) -> None:
    with pytest.raises(TypeError, match="feed_bytes takes bytes, not"):
        tg.load_format("gemma4").parser().feed_bytes(data)


def test_errors_name_no_roles() -> None:
    """What is said of broken output uses words of its readers."""
    for name in tg.list_formats():
        fmt = tg.load_format(name)
        for text in (" to=f \x00", " to=", "<|start|>assistant to=f \x00<|eom|>", "<|tool_call>call:f \x00"):
            for strict in (True, False):
                for error in fmt.parse(text, strict=strict).errors:
                    assert not re.search("silent|padding|dropped|bare|_", error.reason)


def test_what_is_said_can_be_printed() -> None:
    """Half a surrogate pair in a name comes back in an error and in a report, as text that can be encoded."""
    half = {"type": "object", "properties": {"a\ud800'": {"type": "string"}}, "required": ["a\ud800'"]}
    with pytest.raises(tg.SchemaError) as caught:
        constrain("gemma4", [tool(half)])
    assert "\\ud800" in str(caught.value)
    str(caught.value).encode()
    optional = {"type": "object", "properties": {"a\ud800": {"type": "string"}, "b": {}}}
    for found in constrain("gemma4", [tool(optional)]).report():
        f"{found.path} {found.keyword} {found.reason}".encode()
