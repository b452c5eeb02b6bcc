"""What is put off until it is reached: it never fails there, and a request that cannot be kept is refused at once."""

from __future__ import annotations

import random
from typing import Any

import pytest

import twingram as tg
from twingram.automaton.later import Later
from twingram.grammar.holes import row_of
from twingram.sampling import Sampler, spellings
from twingram.schema.compiler import compile_arguments
from twingram.schema.options import SchemaOptions
from twingram.schema.surely import surely_written
from twingram.session.constraint import Constraint

FORMATS = ("gemma4", "atem", "functiongemma")
VOCABULARY = tg.Vocabulary.embedded()
STRING = {"type": "string", "description": "a text"}
WORDS = {"type": "string", "enum": ["x", "y z", "7"]}
TEXTS = {"type": "array", "items": STRING}
PLAIN: list[dict[str, Any]] = [
    {"type": "object", "properties": {"a": STRING}},
    {"type": "object", "properties": {"a": STRING, "b": {"type": "integer"}}, "required": ["b"]},
    {"type": "object", "properties": {"a": WORDS}, "additionalProperties": False},
    {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "number"}}}, "required": ["a"]},
    {
        "type": "object",
        "properties": {"o": {"type": "object", "properties": {"p": TEXTS}}, "n": {"type": "null"}},
        "required": ["o"],
    },
]  # fmt: skip
NOT_PLAIN: list[Any] = [
    None,
    True,
    {},
    {"type": "object"},
    {"type": ["object", "null"], "properties": {"a": STRING}},
    {"type": "object", "properties": {}},
    {"type": "object", "properties": {"a": {"type": "string", "pattern": "x"}}},
    {"type": "object", "properties": {"a": {"type": "string", "enum": []}}},
    {"type": "object", "properties": {"a": {"type": "string", "enum": ["x", 1]}}},
    {"type": "object", "properties": {"a": {"type": "text"}}},
    {"type": "object", "properties": {"a": {"type": "array"}}},
    {"type": "object", "properties": {"a": {"$ref": "#"}}},
    {"type": "object", "properties": {"a": True}},
    {"type": "object", "properties": {"a": STRING}, "required": ["b"]},
    {"type": "object", "properties": {"a": STRING}, "required": "a"},
    {"type": "object", "properties": {"a": STRING}, "additionalProperties": STRING},
    {"type": "object", "properties": {"a": STRING}, "maxProperties": 1},
]


def request(name: str, schemas: list[Any], choice: Any = "required", **options: Any) -> Constraint:
    tools = [{"name": f"{chr(97 + index)}_tool", "inputSchema": schema} for index, schema in enumerate(schemas)]
    return tg.load_format(name).constraint(tools, choice, vocabulary=VOCABULARY, **options)


def containers(name: str, schema: Any, options: SchemaOptions) -> int | None:
    return surely_written(schema, request(name, [PLAIN[0]])._format.arguments, options)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("schema", PLAIN, ids=str)
def test_plain_schemas_compile_without_a_word(name: str, schema: dict[str, Any]) -> None:
    found = containers(name, schema, SchemaOptions())
    assert found is not None
    shape = request(name, [schema])._format.arguments
    made = compile_arguments(schema, shape, options=SchemaOptions(on_unsupported="error"))
    assert made.containers <= found
    rest = [each for each in made.findings if each.status != "enforced"]
    assert all((each.status, each.keyword) == ("narrowed", "additionalProperties") for each in rest)


@pytest.mark.parametrize("schema", NOT_PLAIN, ids=str)
def test_others_are_compiled_at_once(schema: Any) -> None:
    assert containers("gemma4", schema, SchemaOptions()) is None


def test_free_keys_and_limits_count() -> None:
    closed, free = PLAIN[2], PLAIN[0]
    assert containers("gemma4", closed, SchemaOptions(additional_properties="schema")) == 1
    assert containers("gemma4", free, SchemaOptions(additional_properties="schema")) is None
    assert containers("gemma4", PLAIN[4], SchemaOptions()) == 3
    assert containers("gemma4", PLAIN[4], SchemaOptions(limits=tg.Limits(schema_depth=2))) is None
    assert containers("gemma4", PLAIN[4], SchemaOptions(limits=tg.Limits(depth=2))) is None
    deep: dict[str, Any] = STRING
    for _ in range(12):
        deep = {"type": "object", "properties": {"a": deep}}
    assert containers("gemma4", deep, SchemaOptions()) is None


@pytest.mark.parametrize("name", FORMATS)
def test_what_the_format_cannot_spell_is_not_put_off(name: str) -> None:
    key = {"type": "object", "properties": {"a<|\"|>b\x00<escape>\">": STRING, "a": STRING}}
    made = request(name, [key])
    shape = made._format.arguments
    spelt = all(shape.key.spell(each) is not None for each in key["properties"])
    assert (containers(name, key, SchemaOptions()) is not None) == spelt


@pytest.mark.parametrize("name", FORMATS)
def test_only_what_is_reached_is_compiled(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []

    def noted(schema: Any, shape: Any, *, tool: str, options: SchemaOptions) -> Any:
        compiled.append(tool)
        return compile_arguments(schema, shape, tool=tool, options=options)

    keys = [f"key_{name}_{index}" for index in range(20)]
    schemas = [{"type": "object", "properties": {key: STRING}, "required": [key]} for key in keys]
    before = request(name, schemas)
    tokens = Sampler(VOCABULARY, 3, spellings(name)).walk(before.session()).tokens
    before._format.clear()
    monkeypatch.setattr("twingram.session.constraint.compile_arguments", noted)
    constraint = request(name, schemas)
    session = constraint.session()
    for token in tokens:
        session.mask()
        assert session.accept_token(token)
    called = {call.name for call in session.message.calls}
    assert called
    assert set(compiled) == called
    assert len(called) < len(schemas)
    assert {finding.tool for finding in constraint.report()} == {f"{chr(97 + index)}_tool" for index in range(20)}
    assert len(compiled) == len(set(compiled)) == 20


@pytest.mark.parametrize("name", FORMATS)
def test_the_same_masks_whether_put_off_or_not(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    late = request(name, PLAIN)
    monkeypatch.setattr("twingram.session.constraint.surely_written", lambda *_: None)
    late._format.clear()
    soon = request(name, PLAIN)
    assert all(isinstance(row_of(each.expr)[-1], Later) for each in late._compiled.values())
    assert not any(isinstance(row_of(each.expr)[-1], Later) for each in soon._compiled.values())
    for seed in range(10):
        one, other, rng = late.session(), soon.session(), random.Random(seed)
        assert one.min_tokens_to_end() == other.min_tokens_to_end()
        while not one.is_terminated:
            allowed = one.allowed_tokens()
            assert (allowed == other.allowed_tokens()).all()
            stops = [token for token in allowed if token in one.binding.stops]
            token = int(stops[0] if stops and rng.random() < 0.5 else rng.choice(allowed))
            if len(one.text) > 300:
                token = min(map(int, allowed), key=lambda each: _left(one, each))
            assert one.accept_token(token)
            assert other.accept_token(token)


def _left(session: tg.Session, token: int) -> int:
    probe = session.fork()
    probe.accept_token(token)
    return probe.min_tokens_to_end()


@pytest.mark.parametrize("name", FORMATS)
def test_what_cannot_be_kept_is_refused_at_once(name: str) -> None:
    never = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 2, "maximum": 1}}, "required": ["a"]}
    with pytest.raises(tg.SchemaError):
        request(name, [PLAIN[0], never], on_refused="error")
    assert request(name, [PLAIN[0], never]).report()[0].status == "refused"


def test_what_was_given_may_change_afterwards() -> None:
    schema = {"type": "object", "properties": {"before": {"type": "integer"}}, "required": ["before"]}
    constraint = request("gemma4", [schema])
    schema["properties"] = {"after": STRING}
    schema["required"] = ["after"]
    session = constraint.session()
    for token in VOCABULARY.encode("<|tool_call>call:a_tool{before:7}<tool_call|>"):
        assert session.accept_token(token)
    assert session.is_accepting
