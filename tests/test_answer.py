"""Answers that follow a schema: JSON in the place of content, alone, after thoughts, or beside tools."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import twingram as tg
from twingram.sampling import Sampler, Walk, literals

FORMATS = ("gemma4", "atem", "functiongemma")
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "maxItems": 3},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
SCHEMAS: list[Any] = [
    PERSON,
    {"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 4},
    {"enum": ["yes", "no", None, 3]},
    {"type": "string", "pattern": "^[<|>a-z]{1,12}$"},
    {"anyOf": [{"type": "integer", "minimum": 10, "maximum": 99}, {"type": "null"}]},
]
FIND = {"type": "function", "function": {"name": "find", "parameters": {"type": "object", "properties": {}}}}
# How content begins in a turn without a thought.
HEADS = {"gemma4": "", "atem": " to=user<|message|>", "functiongemma": ""}


def tokens_of(vocabulary: tg.Vocabulary, text: str) -> list[int]:
    """Markers as tokens, the rest in single bytes."""
    single = {vocabulary.token_bytes(i): i for i in reversed(range(len(vocabulary)))}
    out: list[int] = []
    while text:
        marker = next((m for m in vocabulary.special_tokens if m and text.startswith(m)), "")
        if marker:
            out.append(vocabulary.special_tokens[marker])
        else:
            out += [single[bytes((byte,))] for byte in text[0].encode()]
        text = text[len(marker) or 1 :]
    return out


def ids() -> Any:
    numbers: Iterator[int] = count()
    return lambda: f"call_{next(numbers)}"


def constraint(name: str, schema: Any, tools: Any = None, choice: Any = None, **options: Any) -> tg.Constraint:
    vocabulary = tg.Vocabulary.embedded()
    return tg.load_format(name).constraint(
        tools, choice, vocabulary=vocabulary, response_schema=schema, **options
    )  # fmt: skip


def walked(made: tg.Constraint, seed: int) -> Walk:
    return Sampler(made.vocabulary, seed, [*literals(made.grammar.source), "{", "}", '"', "]"], soft_limit=40).walk(
        made.session(call_id=ids())
    )  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("schema", SCHEMAS, ids=range(len(SCHEMAS)))
def test_walks_answer_with_valid_json(name: str, schema: Any) -> None:
    made = constraint(name, schema)
    validator = Draft202012Validator(schema)
    for seed in range(6):
        walk = walked(made, seed)
        assert walk.ended
        message = walk.message
        assert not message.calls
        assert not message.errors
        assert message.content is not None
        validator.validate(json.loads(message.content))
        text = b"".join(made.binding.text(token) for token in walk.tokens if token not in made.binding.stops).decode()
        assert tg.load_format(name).parse(text, call_id=ids()) == message


@pytest.mark.parametrize("name", FORMATS)
def test_valid_answers_are_accepted(name: str) -> None:
    made = constraint(name, PERSON)
    value = {"age": 36, "tags": ["a", "c"], "name": 'Ada "L" \n é 漢 😀 \\'}
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, separators=(",", ":"))):
        session = made.session()
        ids = tokens_of(made.vocabulary, HEADS[name] + text)
        assert session.accept_tokens(ids) == len(ids)
        assert session.is_accepting
        assert session.message.content == text


@pytest.mark.parametrize("name", FORMATS)
def test_content_comes_as_it_is_written(name: str) -> None:
    session = constraint(name, PERSON).session()
    session.accept_tokens(tokens_of(session.constraint.vocabulary, HEADS[name] + '{"age": 1'))
    assert "".join(d.text for d in session.take_deltas() if isinstance(d, tg.Content)) == '{"age": 1'


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("wrong", ["S", "[", " ", "`", "{ ", '{"age":  ', '{"age":1 ', '{"age":1}'])
def test_nothing_else_is_content(name: str, wrong: str) -> None:
    """All but the last byte are accepted."""
    session = constraint(name, PERSON).session()
    ids = tokens_of(session.constraint.vocabulary, HEADS[name] + wrong)
    assert session.accept_tokens(ids) == len(ids) - 1


@pytest.mark.parametrize("name", FORMATS)
def test_an_answer_or_calls(name: str) -> None:
    """Under `auto` a turn is one of both; forced calls leave no answer, and `none` no calls."""
    found = set()
    for choice in ("auto", "required", "none"):
        made = constraint(name, SCHEMAS[1], [FIND], choice)
        for seed in range(12):
            message = walked(made, seed).message
            assert bool(message.calls) != bool(message.content)
            found.add((choice, bool(message.calls)))
    assert found >= {("auto", True), ("auto", False), ("required", True), ("none", False)}
    assert ("required", False) not in found
    assert ("none", True) not in found


@pytest.mark.parametrize("name", ["gemma4", "atem"])
def test_thoughts_come_first(name: str) -> None:
    made = constraint(name, SCHEMAS[2], reasoning="require")
    for seed in range(5):
        message = walked(made, seed).message
        assert json.loads(message.content or "") in ("yes", "no", None, 3)
    assert not constraint(name, SCHEMAS[2], reasoning="require").session().is_accepting


def test_a_prompt_that_ends_in_a_thought() -> None:
    made = constraint("gemma4", SCHEMAS[1], prompt_tail="<|channel>thought\n")
    session = made.session()
    ids = tokens_of(made.vocabulary, "so<channel|>[true]")
    assert session.accept_tokens(ids) == len(ids)
    assert session.message == tg.Message(content="[true]", reasoning="so")


def test_the_report_speaks_of_the_answer() -> None:
    made = constraint("gemma4", {"type": "string", "not": {"enum": ["x"]}, "minLength": 2}, [FIND])
    assert {(f.path, f.keyword) for f in made.report() if not f.tool} >= {("$", "type"), ("$", "minLength")}


def test_what_cannot_be_answered_is_refused() -> None:
    with pytest.raises(tg.SchemaError, match="unsatisfiable"):
        constraint("gemma4", {"type": "integer", "minimum": 3, "maximum": 2})
    with pytest.raises(tg.RequestError, match="response_schema is a JSON Schema"):
        constraint("gemma4", '{"type": "object"}')
    silent = tg.Format.from_text(
        '//@ format silent 1\n//@ start turn\n//@ stop "[e]"\n//@ marker "[c]" "[/c]"\nturn: [content] tool_call*\n'
        'content: TEXT\ntool_call: "[c]" tool_name object "[/c]"\ntool_name: NAME\n'
        'object: "(" [member ("," member)*] ")"\n'
        'member: key "=" value\nkey: NAME\n?value: number | object\nnumber: NUMBER\nTEXT: /((?!\\[c\\]|\\[e\\]).)+/s\n'
        "NAME: /[a-z]+/\nNUMBER: /[0-9]+/\n"
    )
    vocabulary = tg.Vocabulary.from_tokens([bytes((b,)) for b in range(256)], {"[e]": 256, "[c]": 257, "[/c]": 258})
    with pytest.raises(tg.RequestError, match="//@ answer"):
        silent.constraint(vocabulary=vocabulary, response_schema=True)
