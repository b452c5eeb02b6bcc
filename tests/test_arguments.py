"""Wrong arguments of the public surface: each is refused with a message that names it and says what would be right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import twingram as tg

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}, "n": {"type": "integer"}}, "required": ["a"]}
CHAT = {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}}
RESPONSES = {"type": "function", "name": "g", "parameters": SCHEMA, "strict": True}
MCP = {"name": "h", "description": "d", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}}
TOOLS = [CHAT, RESPONSES, MCP]  # the three shapes in one request
FORMATS = ("atem", "gemma4")


def constrain(choice: Any = "required", name: str = "gemma4", **options: Any) -> tg.Constraint:
    fmt = tg.load_format(name)
    return fmt.constraint(TOOLS, choice, **{"vocabulary": tg.Vocabulary.embedded(), **options})


# The options of a constraint

OPTIONS: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "reasoning": ({"reasoning": "maybe"}, tg.RequestError, "reasoning='maybe' is not one of 'allow', 'require'"),
    "reasoning None": ({"reasoning": None}, tg.RequestError, "reasoning=None is not one of"),
    "key_order": ({"key_order": "x"}, tg.RequestError, "key_order='x' is not one of 'any', 'declared', 'sorted'"),
    "key_order list": ({"key_order": ["a"]}, tg.RequestError, "key_order"),
    "additional": ({"additional_properties": True}, tg.RequestError, "is not one of 'declared', 'schema'"),
    "unsupported": ({"on_unsupported": "x"}, tg.RequestError, "on_unsupported='x' is not one of 'relax', 'error'"),
    "refused": ({"on_refused": "x"}, tg.RequestError, "on_refused='x' is not one of 'exclude', 'error'"),
    "parallel": ({"parallel_tool_calls": "no"}, tg.RequestError, "parallel_tool_calls='no' is neither True nor False"),
    "parallel None": ({"parallel_tool_calls": None}, tg.RequestError, "parallel_tool_calls=None is neither"),
    "check_formats": ({"check_formats": 1}, tg.RequestError, "check_formats=1 is neither True nor False"),
    "max_tokens text": ({"max_tokens": "50"}, tg.RequestError, "max_tokens='50' is not a whole number"),
    "max_tokens float": ({"max_tokens": 50.5}, tg.RequestError, "max_tokens=50.5 is not a whole number"),
    "max_tokens bool": ({"max_tokens": True}, tg.RequestError, "max_tokens=True is not a whole number"),
    "max_tokens below": ({"max_tokens": -1}, tg.RequestError, "max_tokens=-1 is not a whole number from 0 on"),
    "max_tokens little": ({"max_tokens": 0}, tg.RequestError, "max_tokens=0 is too little: the shortest turn has"),
    "stops text": ({"stop_tokens": "<turn|>"}, tg.RequestError, "stop_tokens='<turn|>' is not a list"),
    "stops number": ({"stop_tokens": 5}, tg.RequestError, "stop_tokens=5 is not a list"),
    "stops none": ({"stop_tokens": []}, tg.RequestError, "stop_tokens is empty"),
    "stops float": ({"stop_tokens": [1.5]}, tg.RequestError, "stop_tokens holds 1.5"),
    "stops bool": ({"stop_tokens": [True]}, tg.RequestError, "stop_tokens holds True"),
    "stops unknown": ({"stop_tokens": ["<no>"]}, tg.VocabularyError, "'<no>', which is no special token"),
    "stops outside": ({"stop_tokens": [10**9]}, tg.VocabularyError, "stop token 1000000000 is outside"),
    "response_schema": ({"response_schema": "{}"}, tg.RequestError, "response_schema is a JSON Schema, not str"),
    "prompt_tail": ({"prompt_tail": b"x"}, TypeError, "the end of the prompt, text or tokens, not bytes"),
    "limits": ({"limits": 5}, TypeError, "limits is a twingram.Limits, not int"),
    "vocabulary": ({"vocabulary": "v"}, TypeError, "vocabulary is a twingram.Vocabulary, not str"),
    "no such option": ({"temperature": 1}, TypeError, "temperature"),
}


@pytest.mark.parametrize("case", OPTIONS)
@pytest.mark.parametrize("name", FORMATS)
def test_options_of_a_constraint(name: str, case: str) -> None:
    options, kind, wanted = OPTIONS[case]
    with pytest.raises(kind) as caught:
        constrain(name=name, **options)
    assert wanted in str(caught.value)
    assert "\n" not in str(caught.value)


def test_numbers_of_other_libraries_are_numbers() -> None:
    stop = tg.Vocabulary.embedded().special_tokens["<turn|>"]
    constraint = constrain(max_tokens=np.int64(40), stop_tokens=np.array([stop]))
    assert constraint.max_tokens == 40
    assert constraint.binding.stops == {stop}


# tool_choice


def allowed(tools: Any, mode: Any = "required", *, nested: bool = True) -> dict[str, Any]:
    body = {"mode": mode, "tools": tools}
    return {"type": "allowed_tools", "allowed_tools": body} if nested else {"type": "allowed_tools", **body}


CHAT_F, RESPONSES_G = {"type": "function", "function": {"name": "f"}}, {"type": "function", "name": "g"}
CHOICES: dict[str, tuple[Any, set[str], bool]] = {  # choice, the tools that may be called, whether one must be
    "named, Chat": (CHAT_F, {"f"}, True),
    "named, Responses": (RESPONSES_G, {"g"}, True),
    "named, more keys": ({**CHAT_F, "strict": True}, {"f"}, True),
    "allowed, Chat": (allowed([CHAT_F]), {"f"}, True),
    "allowed, Responses": (allowed([RESPONSES_G, {"type": "function", "name": "h"}], nested=False), {"g", "h"}, True),
    "allowed, shapes mixed": (allowed([CHAT_F, RESPONSES_G], nested=False), {"f", "g"}, True),
    "allowed twice": (allowed([CHAT_F, CHAT_F]), {"f"}, True),
    "allowed, auto": (allowed([CHAT_F], "auto"), {"f"}, False),
    "allowed, nothing": (allowed([], "auto"), set(), False),
    "allowed, no mode": ({"type": "allowed_tools", "tools": [CHAT_F]}, {"f"}, False),
    "required": ("required", {"f", "g", "h"}, True),
    "auto": ("auto", {"f", "g", "h"}, False),
    "default": (None, {"f", "g", "h"}, False),
    "none": ("none", set(), False),
}
CALLS = {
    "gemma4": '<|tool_call>call:NAME{a:<|"|>x<|"|>}<tool_call|>',
    "atem": ' to=NAME<|message|><atem:function_calls>\n<atem:invoke name="NAME">\n<atem:parameter name="a">x'
    "</atem:parameter>\n</atem:invoke>\n</atem:function_calls>",
}


@pytest.mark.parametrize("case", CHOICES)
@pytest.mark.parametrize("name", FORMATS)
def test_shapes_of_tool_choice(name: str, case: str) -> None:
    choice, callable_names, required = CHOICES[case]
    constraint = constrain(choice, name)
    found = set()
    for tool in "fgh":
        session, tokens = constraint.session(), constraint.vocabulary.encode(CALLS[name].replace("NAME", tool))
        if session.accept_tokens(tokens) == len(tokens) and session.is_accepting:
            found.add(tool)
    assert found == callable_names
    answer = constraint.vocabulary.encode("hi" if name == "gemma4" else " to=user<|message|>hi")
    assert (constraint.session().validate_tokens(answer) == len(answer)) is not required


BAD_CHOICES: dict[str, tuple[Any, str]] = {
    "word": ("any", "tool_choice='any' is not one of 'auto', 'none', 'required'"),
    "capitals": ("AUTO", "tool_choice='AUTO' is not one of"),
    "number": (5, "tool_choice is a word or an object, not int"),
    "list": ([], "tool_choice is a word or an object, not list"),
    "no type": ({}, "tool_choice.type is None; it must be 'function' or 'allowed_tools'"),
    "other type": ({"type": "mcp", "name": "h"}, "tool_choice.type is 'mcp'"),
    "no name": ({"type": "function"}, 'a named tool_choice is {"type": "function"'),
    "function is text": ({"type": "function", "function": "f"}, 'a named tool_choice is {"type": "function"'),
    "unknown": ({"type": "function", "name": "z"}, "tool_choice names 'z', which is not among the tools: f, g, h"),
    "allowed unknown": (allowed([{"type": "function", "name": "z"}]), "tool_choice names 'z'"),
    "allowed mode": (allowed([CHAT_F], "must"), "allowed_tools.mode='must' is not one of 'auto', 'required'"),
    "allowed and required nothing": (allowed([]), "allowed_tools.mode='required' with an empty list"),
    "allowed is no list": (allowed("f"), 'allowed_tools is {"mode": "auto" or "required", "tools": ['),
    "allowed without tools": ({"type": "allowed_tools"}, "allowed_tools is"),
    "allowed names": (allowed(["f"]), "allowed_tools.tools[0] is 'f'; it must be"),
    "allowed of another type": (allowed([CHAT_F, {"type": "mcp", "server_label": "s"}]), "allowed_tools.tools[1] is"),
}


@pytest.mark.parametrize("case", BAD_CHOICES)
def test_wrong_shapes_of_tool_choice(case: str) -> None:
    choice, wanted = BAD_CHOICES[case]
    with pytest.raises(tg.RequestError) as caught:
        constrain(choice)
    assert wanted in str(caught.value)


# Parsers

PARSER: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "strict": ({"strict": "yes"}, tg.RequestError, "strict='yes' is neither True nor False"),
    "salvage": ({"salvage": 1}, tg.RequestError, "salvage=1 is neither True nor False"),
    "both": ({"strict": True, "salvage": True}, tg.RequestError, "contradict each other"),
    "unknown_tools": ({"unknown_tools": "drop"}, tg.RequestError, "unknown_tools='drop' is not one of 'pass', 'text'"),
    "prompt_tail": ({"prompt_tail": None}, TypeError, "the end of the prompt, text or tokens, not NoneType"),
    "call_id": ({"call_id": "c1"}, TypeError, "call_id is a function that gives ids, not str"),
    "vocabulary": ({"vocabulary": "v"}, TypeError, "vocabulary is a twingram.Vocabulary, not str"),
    "limits": ({"limits": {}}, TypeError, "limits is a twingram.Limits, not dict"),
    "no such option": ({"reason": "stop"}, TypeError, "reason"),
}


@pytest.mark.parametrize("case", PARSER)
def test_options_of_a_parser(case: str) -> None:
    options, kind, wanted = PARSER[case]
    for make in (tg.load_format("gemma4").parser, lambda **some: tg.load_format("gemma4").parse("x", **some)):
        with pytest.raises(kind) as caught:
            make(tools=TOOLS, **options)
        assert wanted in str(caught.value)


@pytest.mark.parametrize("output", [b"text", bytearray(b"text"), None, 5])
def test_what_cannot_be_parsed(output: Any) -> None:
    """Bytes above all: they would count as token ids."""
    with pytest.raises(TypeError, match="parse takes text or a list of token ids, not"):
        tg.load_format("gemma4").parse(output, vocabulary=tg.Vocabulary.embedded())


@pytest.mark.parametrize("ids", [[1.5], ["a"], [None]])
def test_tokens_that_are_no_ids(ids: Any) -> None:
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        tg.load_format("gemma4").parse(ids, vocabulary=tg.Vocabulary.embedded())


def test_a_call_id_that_is_no_function() -> None:
    with pytest.raises(TypeError, match="call_id is a function that gives ids, not int"):
        constrain().session(call_id=5)  # type: ignore[arg-type]


# Bitmasks

WORDS = -(-len(tg.Vocabulary.embedded()) // 32)
BITMASKS: dict[str, tuple[Any, type[Exception], str]] = {
    "int64": (np.zeros((1, WORDS), np.int64), TypeError, "int32, not int64"),
    "bool": (np.zeros((1, WORDS * 32), np.bool_), TypeError, "int32, not bool"),
    "float32": (np.zeros((1, WORDS), np.float32), TypeError, "int32, not float32"),
    "a word short": (np.zeros((1, WORDS - 1), np.int32), ValueError, f"a row of {WORDS - 1} words has no room for"),
    "one row alone": (np.zeros(WORDS, np.int32), TypeError, "a bitmask is int32 of shape (rows, words)"),
    "lists": ([[0] * WORDS], TypeError, "a bitmask is int32 of shape (rows, words)"),
    "no such row": (np.zeros((0, WORDS), np.int32), IndexError, ""),
}


@pytest.mark.parametrize("case", BITMASKS)
def test_bitmasks_of_a_wrong_shape_are_left_alone(case: str) -> None:
    bitmask, kind, wanted = BITMASKS[case]
    before = np.array(bitmask)
    with pytest.raises(kind) as caught:
        constrain().session().fill_bitmask(bitmask)
    assert wanted in str(caught.value)
    assert (np.array(bitmask) == before).all()


def test_bitmasks_that_fit() -> None:
    session = constrain().session()
    wide, other, spread = (np.full(shape, 7, kind) for shape, kind in (
        ((2, WORDS + 3), np.int32), ((1, WORDS), np.uint32), ((1, 2 * WORDS), np.int32)))  # fmt: skip
    session.fill_bitmask(wide, 1)
    assert (wide[1, :WORDS] == session.mask()).all()
    assert not wide[1, WORDS:].any(), "logits past the vocabulary are not allowed"
    assert (wide[0] == 7).all()
    session.fill_bitmask(other)
    assert (other.view(np.int32)[0] == session.mask()).all()
    session.fill_bitmask(spread[:, ::2])
    assert (spread[0, ::2] == session.mask()).all()
    assert (spread[0, 1::2] == 7).all()


# Vocabularies

BYTES = [bytes((byte,)) for byte in range(256)]
VOCABULARIES: dict[str, tuple[dict[str, Any], str]] = {
    "texts": ({"tokens": ["a", "b"]}, "token 0 is str, not bytes"),
    "ids as text": ({"special_tokens": {"<x>": "5"}}, "it maps '<x>' to '5'"),
    "ids as floats": ({"special_tokens": {"<x>": 5.0}}, "it maps '<x>' to 5.0"),
    "turned round": ({"special_tokens": {5: "<x>"}}, "it maps 5 to '<x>'"),
    "a list": ({"special_tokens": ["<x>"]}, "special_tokens maps texts to ids; it is list"),
    "below": ({"special_tokens": {"<x>": -1}}, "the id -1 of '<x>' is not between 0 and 255"),
    "size as text": ({"size": "300"}, "size='300' is not a number of ids"),
    "size of nothing": ({"size": 0}, "a vocabulary of 0 ids cannot be used"),
}


@pytest.mark.parametrize("case", VOCABULARIES)
def test_wrong_vocabularies(case: str) -> None:
    options, wanted = VOCABULARIES[case]
    with pytest.raises(tg.VocabularyError) as caught:
        tg.Vocabulary.from_tokens(**{"tokens": BYTES, **options})
    assert wanted in str(caught.value)


def test_only_text_is_encoded() -> None:
    with pytest.raises(TypeError, match="encode takes text, not bytes"):
        tg.Vocabulary.embedded().encode(b"a")  # type: ignore[arg-type]
