"""Text that is no JSON document: beside the reader that types raw text, and through masks to the last token."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import twingram as tg
from tests.spelt import ATEM, of_x
from twingram.automaton.machine import Machine
from twingram.automaton.notjson import NotJson, is_document, not_json
from twingram.automaton.regions import any_text
from twingram.session.casts import document

PIECES = ["[", "]", "{", "}", ",", ":", '"a"', '"', "\\", "\\u00e9", "1", "-0.5e+3", "01", "true", "nul", " ", "é"]
TEXTS = [
    "", "[]", "{}", " [ ] ", "[1}", '{"a":1]', "[1,]", '{"a"}', '{"a":1,}', "[[]", "[[]]", "[]]", "[]x", "{} {}", '["]',
    '["\\"]', '["\\u12"]', '["\\u12ab"]', "[1.]", "[1.5]", "[-]", "[01]", "[true]", "[tru]", "[truex]", "[1 2]",
    '["\n"]', '[{"a":[{}]},null]', "[é]", '["é"]', "[draft] text", "{name}", "1", '"a"', "null", "x[]",
]  # fmt: skip


def agrees(text: str) -> None:
    read = document(text, 500)
    kind = None if read is None else read[0]
    for arrays, objects in ((True, True), (True, False), (False, True)):
        wanted = (arrays and kind == "array") or (objects and kind == "object")
        assert is_document(text.encode(), arrays=arrays, objects=objects) is wanted, text
        machine = Machine(not_json(any_text("raw"), arrays=arrays, objects=objects))
        found = machine.start.run(text.encode())
        assert found is not None, "whatever has been read, the text can go on"
        assert found.state.accepting is not wanted
        assert found.state.shortest == wanted


@pytest.mark.parametrize("text", TEXTS)
def test_it_is_what_is_not_read_as_json(text: str) -> None:
    agrees(text)


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_random_texts(text: str) -> None:
    agrees(text)


@given(st.recursive(st.none() | st.integers() | st.text(), lambda s: st.lists(s) | st.dictionaries(st.text(), s)))
def test_documents_and_their_damage(value: Any) -> None:
    text = json.dumps([value], ensure_ascii=False)
    agrees(text)
    at = len(text) // 2
    agrees(text[:at] + text[at + 1 :])


def test_without_containers_it_is_plain_text() -> None:
    assert not isinstance(not_json(any_text("raw"), arrays=False, objects=False), NotJson)


UNTYPED: list[Any] = [
    {}, {"type": ["string", "array"]}, {"type": ["string", "object", "null"]}, {"minLength": 2},
    {"not": {"enum": ["[1}", [], 3]}},
]  # fmt: skip
CLEAR: list[Any] = [
    {"pattern": "^[a-z]"}, {"format": "date"}, {"type": ["string", "array"], "pattern": "^\\w+@x$", "maxLength": 9},
]  # fmt: skip


@pytest.mark.parametrize("schema", CLEAR)
def test_texts_that_cannot_be_documents_are_exact(schema: Any) -> None:
    made = ATEM.compile(of_x(schema))
    assert {finding.status for finding in made.findings if finding.path == "$.properties.x"} == {"enforced"}


@pytest.mark.parametrize("schema", UNTYPED)
def test_strings_beside_containers_are_exact(schema: Any) -> None:
    made = ATEM.compile(of_x(schema))
    assert {finding.status for finding in made.findings if finding.keyword == "type"} <= {"enforced"}
    types = schema.get("type", ["string", "array", "object"])
    wanted = Draft202012Validator(schema)
    for text in TEXTS:
        read = document(text, 500)
        if read is None or (read[0] in ("array", "object") and read[0] not in types):
            assert ATEM.admits(made, {"x": text}) is wanted.is_valid(text), text


def test_listed_texts_beside_lists() -> None:
    made = ATEM.compile(of_x({"enum": ["[1}", "[1]", ["a"]]}))
    assert ATEM.admits(made, {"x": "[1}"})
    assert [f.reason for f in made.findings if f.status == "refused"] == [
        "'[1]' would be read as another type that is admitted here"
    ]


@pytest.mark.parametrize("budget", [None, 48, 64])
def test_masks_know_where_it_may_end(budget: int | None) -> None:
    """Random walks, hurried or not, end in calls that are read as they were masked."""
    tools = [{"name": "f", "inputSchema": of_x({"type": ["string", "array"], "items": {"type": "string"}})}]
    fmt, vocabulary = tg.load_format("atem"), tg.Vocabulary.embedded()
    constraint = fmt.constraint(
        tools, "required", vocabulary=vocabulary, parallel_tool_calls=False, reasoning="forbid", max_tokens=budget
    )
    rng = random.Random(5)
    likely = [vocabulary.encode(text)[0] for text in ("[", "]", '"', ",", "1", " ", "</", "a")]
    for _ in range(10):
        session = constraint.session()
        count = 0
        while not session.is_terminated:
            allowed = session.allowed_tokens().tolist()
            assert allowed, "a dead end"
            if budget is None and count % 8 == 7:
                assert allowed == [token for token in range(len(vocabulary)) if session.validate_tokens([token])]
            near = [token for token in likely if token in allowed]
            hurry = budget is None and count > 40
            if hurry:
                allowed = sorted(allowed, key=lambda t: _after(session, t))[:1]
            assert session.accept_token(rng.choice(near if near and rng.random() < 0.7 and not hurry else allowed))
            count += 1
        (call,) = session.message.calls
        assert isinstance(call.value["x"], str) or all(isinstance(item, str) for item in call.value["x"])


def _after(session: tg.Session, token: int) -> int:
    fork = session.fork()
    assert fork.accept_token(token)
    return fork.min_tokens_to_end()
