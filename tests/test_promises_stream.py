"""The promises of the stream: chunks do not matter, never taken back, linear, rollback and fork, no loss and no crash.

Inputs are turns that were walked through the masks, the same with damage done to them, and bytes, tokens and schemas
that have nothing to do with any format.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import twingram as tg
from twingram.grammar.alphabet import Alphabet
from twingram.grammar.reading import Reading, parser_machine
from twingram.limits import DEFAULT_LIMITS
from twingram.session.deltas import merge

from .counting import calls_of
from .oracle import FORMATS as SPOKEN
from .oracle.generate import random_tool
from .walks import (
    CALLS,
    FORMATS,
    WALKS,
    Walk,
    Walker,
    alternatives,
    budgets,
    call_ids,
    damaged,
    json_prefix,
    loaded,
    small,
    walked,
)  # fmt: skip

Output = tuple[list[tg.Delta], tg.Message]
WORD = "qzq"  # a word that no format, schema or token of the tests has


# Inputs


@cache
def _wounds(name: str) -> list[str]:
    vocabulary = small(name)
    spelt = [vocabulary.token_bytes(token) for token in range(len(vocabulary))]
    readable = [data.decode() for data in spelt if _is_text(data)]
    return [*readable, *list(SPOKEN[name].MARKERS) * 8]


def _is_text(data: bytes) -> bool:
    try:
        return bool(data.decode())
    except UnicodeDecodeError:
        return False


def turns(name: str, count: int, seed: str) -> Iterator[tuple[Walk, str, random.Random]]:
    """Walks with a text to read: their own, or a damaged one."""
    rng = random.Random(f"{seed} {name}")
    walks = walked(name, min(count, WALKS))
    for at in range(count):
        walk = walks[at % len(walks)]
        yield walk, walk.text if at % 3 == 0 else damaged(walk.text, rng, _wounds(name)), rng


# Feeding


def parser_for(walk: Walk, vocabulary: tg.Vocabulary | None = None, **options: Any) -> tg.Parser:
    return loaded(walk.asked.name).parser(vocabulary=vocabulary, **{**walk.asked.parsing, **options})


def fed(parser: tg.Parser, pieces: Iterable[Any], feed: Callable[[Any], list[tg.Delta]]) -> Output:
    deltas: list[tg.Delta] = []
    for piece in pieces:
        deltas += feed(piece)
    deltas += parser.finish()
    return merge(deltas), parser.message


def fed_text(walk: Walk, pieces: Iterable[str]) -> Output:
    parser = parser_for(walk)
    return fed(parser, pieces, parser.feed)


def fed_bytes(walk: Walk, pieces: Iterable[bytes]) -> Output:
    parser = parser_for(walk)
    return fed(parser, pieces, parser.feed_bytes)


def fed_tokens(walk: Walk, pieces: Iterable[list[int]]) -> Output:
    parser = parser_for(walk, small(walk.asked.name))
    return fed(parser, pieces, parser.feed_tokens)


def pieces(whole: Any, rng: random.Random, longest: int = 12) -> Iterator[Any]:
    """The whole in pieces of random length, some of them empty."""
    at = 0
    while at < len(whole):
        size = rng.randint(0, longest)
        yield whole[at : at + size]
        at += size


# 5. Chunks do not matter


@pytest.mark.parametrize("count", budgets())
@pytest.mark.parametrize("name", FORMATS)
def test_chunks_do_not_matter(name: str, count: int) -> None:
    for walk, text, rng in turns(name, count * 3, "chunks"):
        data, tokens = text.encode(), small(name).encode(text)
        whole = fed_text(walk, [text])
        assert fed_text(walk, text) == whole, text
        assert fed_text(walk, pieces(text, rng)) == whole, text
        assert fed_bytes(walk, (bytes((byte,)) for byte in data)) == whole, text
        assert fed_bytes(walk, pieces(data, rng)) == whole, text
        assert loaded(name).parse(text, **walk.asked.parsing) == whole[1], text
        assert tg.Message.from_deltas(whole[0]) == whole[1], text
        read = fed_tokens(walk, [tokens])
        assert fed_tokens(walk, ([token] for token in tokens)) == read, text
        assert fed_tokens(walk, pieces(tokens, rng, 5)) == read, text


@pytest.mark.parametrize("name", FORMATS)
def test_text_tokens_and_session_agree_on_what_was_generated(name: str) -> None:
    rng = random.Random(name)
    vocabulary = small(name)
    spelt = {vocabulary.token_bytes(token): token for token in range(len(vocabulary) - 1, -1, -1)}
    for walk in walked(name, WALKS):
        whole = fed_text(walk, [walk.text])
        assert fed_tokens(walk, [list(walk.tokens)]) == whole, walk.text
        respelt = [
            token for run in _runs(walk)
            for token in ([run] if isinstance(run, int) else alternatives(run, spelt, rng))
        ]  # fmt: skip
        assert fed_tokens(walk, ([token] for token in respelt)) == whole, walk.text
        assert _generated(walk, walk.tokens, lambda: True) == whole, walk.text
        assert _generated(walk, walk.tokens, lambda: rng.random() < 0.3) == whole, walk.text
        assert _generated(walk, [*respelt, walk.tokens[-1]], lambda: False) == whole, walk.text


@pytest.mark.parametrize("name", FORMATS)
def test_vocabularies_do_not_mix(name: str) -> None:
    """Parsers of one format that are fed the tokens of two vocabularies, by turns."""
    one = small(name)
    tokens = [one.token_bytes(token) for token in range(len(one)) if not one.is_special(token)]
    special = {text: len(one) - 1 - at for at, text in enumerate(one.special_tokens)}
    other = tg.Vocabulary.from_tokens(tokens[::-1], special)
    for walk in walked(name, WALKS)[:12]:
        whole = fed_text(walk, [walk.text])
        for vocabulary in (one, other, one):
            parser = parser_for(walk, vocabulary)
            assert fed(parser, ([token] for token in vocabulary.encode(walk.text)), parser.feed_tokens) == whole


def _runs(walk: Walk) -> list[Any]:
    """Special tokens, and the bytes of what stands between them; the stop token is left out."""
    vocabulary, runs = walk.constraint.vocabulary, list[Any]()
    for token in walk.tokens[:-1]:
        if vocabulary.is_special(token):
            runs.append(token)
        elif runs and isinstance(runs[-1], bytes):
            runs[-1] += vocabulary.token_bytes(token)
        else:
            runs.append(vocabulary.token_bytes(token))
    return runs


def _generated(walk: Walk, tokens: Iterable[int], look: Callable[[], bool]) -> Output:
    """What a session gives, looked at now and then."""
    session = walk.constraint.session(call_id=call_ids())
    deltas: list[tg.Delta] = []
    for token in tokens:
        assert session.accept_token(token)
        if look():
            deltas += session.take_deltas()
    deltas += session.take_deltas()
    assert session.is_terminated
    return merge(deltas), session.message


# 6. Never taken back


@pytest.mark.parametrize("count", budgets())
@pytest.mark.parametrize("name", FORMATS)
def test_nothing_is_taken_back(name: str, count: int) -> None:
    """What has been given after a prefix begins the output of every continuation."""
    rests = [text for _, text, _ in turns(name, 60, "rests")]
    for walk, text, rng in turns(name, count * 2, "taken back"):
        at, other = rng.randint(0, len(text)), rng.choice(rests)
        begun = merge(parser_for(walk).feed(text[:at]))
        for rest in (text[at:], other[rng.randint(0, len(other)) :], ""):
            _begins(begun, fed_text(walk, [text[:at] + rest])[0], f"{text[:at]!r} then {rest!r}")


def _begins(begun: list[tg.Delta], whole: list[tg.Delta], where: str) -> None:
    assert len(begun) <= len(whole), where
    for one, final in zip(begun[:-1], whole, strict=False):
        assert one == final, where
    if begun:
        last, final = begun[-1], whole[len(begun) - 1]
        assert type(last) is type(final), where
        if isinstance(last, (tg.Content, tg.Reasoning)):
            assert isinstance(final, (tg.Content, tg.Reasoning))
            assert final.text.startswith(last.text), where
        elif isinstance(last, tg.CallArguments):
            assert isinstance(final, tg.CallArguments)
            assert final.index == last.index, where
            assert final.json.startswith(last.json), where
        else:
            assert last == final, where


@pytest.mark.parametrize("name", FORMATS)
def test_argument_deltas_join_to_json(name: str) -> None:
    complete = cut = 0
    for walk, text, rng in turns(name, WALKS * 4, "json"):
        text = text if rng.random() < 0.5 else text[: rng.randint(0, len(text))]
        deltas, message = fed_text(walk, text)
        _check_order(deltas)
        for call in message.calls:
            assert isinstance(json.loads(call.arguments), dict), text
            complete += 1
        for call in message.incomplete_calls:
            assert json_prefix(call.arguments), (text, call.arguments)
            cut += 1
    assert complete
    assert cut


def _check_order(deltas: list[tg.Delta]) -> None:
    """Calls start and end once, in order, and have their arguments between."""
    open_call, seen = None, 0
    for delta in deltas:
        if isinstance(delta, tg.CallStart):
            assert open_call is None
            assert delta.index == seen
            open_call, seen = delta.index, seen + 1
        elif isinstance(delta, tg.CallArguments):
            assert open_call == delta.index
        elif isinstance(delta, tg.CallEnd):
            assert open_call == delta.index
            open_call = None
        else:
            assert open_call is None or isinstance(delta, tg.ParseError)
    assert open_call is None


# 7. Linear


_INVOKE = ' to=f<|message|><atem:function_calls>\n<atem:invoke name="f">\n<atem:parameter name="a">'
LONG = {
    "gemma4": {
        "content": ("", "word and wörd\n"),
        "reasoning": ("<|channel>thought\n", "because of this, "),
        "string": ('<|tool_call>call:f{a:<|"|>', "some text, <b> [x] "),
    },
    "atem": {
        "content": (" to=user<|message|>", "word and wörd\n"),
        "reasoning": (" to=self<|message|>", "because of this, "),
        "string": (_INVOKE, "text </b> "),
    },
    "runes": {
        "content": ("", "word and wörd\n"),
        "reasoning": ("[[think]]", "because of this, "),
        "string": ("[[call]]f(a=[[s]]", "some text; [x] "),
    },
}
STRING_TOOL = random_tool(random.Random(0), "f")
STRING_TOOL["function"]["parameters"] = {
    "type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a"],
}  # fmt: skip


@pytest.mark.parametrize("place", ["content", "reasoning", "string"])
@pytest.mark.parametrize("name", FORMATS)
def test_long_text_meets_no_new_states(name: str, place: str) -> None:
    """A token late in a text costs what an early one did: the automaton has seen all the states it will meet."""
    opening, unit = LONG[name][place]
    fmt, vocabulary = loaded(name), small(name)
    constraint = fmt.constraint([STRING_TOOL], "auto", vocabulary=vocabulary)
    session = constraint.session()
    start = vocabulary.encode(opening)
    assert session.accept_tokens(start) == len(start)
    unit_tokens = vocabulary.encode(unit)
    for _ in range(-(-100 // len(unit_tokens))):
        session.accept_tokens(unit_tokens)
        session.mask()
    known, state = len(session.machine), session.state
    for _ in range(2000):
        assert session.accept_tokens(unit_tokens) == len(unit_tokens)
    assert session.state is state
    assert len(session.machine) == known

    grammar = fmt.grammar
    alphabet = Alphabet.of(grammar.markers)
    machine = parser_machine(grammar, grammar.starts[0].rule, alphabet, Reading.LENIENT, DEFAULT_LIMITS)
    parser = fmt.parser([STRING_TOOL])
    parser.feed(opening + unit * 20)
    known = len(machine)
    given = parser.feed(unit * 3000)
    assert len(machine) == known
    assert sum(len(_text(delta)) for delta in given) > 2900 * len(unit), "text flows, it is not held back"


def _text(delta: tg.Delta) -> str:
    if isinstance(delta, tg.CallArguments):
        return delta.json
    return delta.text if isinstance(delta, (tg.Content, tg.Reasoning, tg.ParseError)) else ""


@pytest.mark.parametrize("place", ["content", "reasoning", "string"])
@pytest.mark.parametrize("name", FORMATS)
def test_time_grows_no_faster_than_the_input(name: str, place: str) -> None:
    """Counted in calls of Python functions, which do not depend on how busy the machine is."""
    opening, unit = LONG[name][place]
    costs = []
    for count in (500, 500, 1000, 2000):
        parser = loaded(name).parser([STRING_TOOL])
        parser.feed(opening)
        calls = calls_of(lambda parser=parser, count=count: [parser.feed(unit) for _ in range(count)])
        costs.append(calls + calls_of(parser.finish))
    assert costs[2] < 2.2 * costs[1] + 200, costs
    assert costs[3] < 2.2 * costs[2] + 200, costs


AWKWARD = {
    "gemma4": [("", "<"), ("", "<|"), ("", " "), ('<|tool_call>call:f{a:', "<"), ('<|tool_call>call:f{a:<|"|>', "<|")],
    "atem": [("", "<"), (" to=user<|message|>", "<|"), *((_INVOKE, unit) for unit in ("<", "</", "</atem:p"))],
    "runes": [("", "["), ("[[think]]", "["), ("[[call]]f(a=[[s]]", "["), ("", "[[/[["), ("[[think]]", "[[/thi[")],
    "functiongemma": [("", "<"), *(("<start_function_call>call:f{a:" + begun, "<") for begun in ("", "<escape>"))],
}  # fmt: skip


@pytest.mark.parametrize(("name", "opening", "unit"), [(name, *pair) for name in AWKWARD for pair in AWKWARD[name]])
def test_readings_that_begin_and_die_cost_little(name: str, opening: str, unit: str) -> None:
    """What has been met before is looked up, however often readings begin, and overlap as with the two brackets of
    `runes`: a few calls a byte, counted."""
    for _ in range(2):  # the first one meets new states
        parser, text = loaded(name).parser([STRING_TOOL]), unit * 3000
        parser.feed(opening)
        calls = calls_of(lambda parser=parser, text=text: parser.feed(text))
        parser.finish()
    assert calls < 8 * len(text)


# 8. Rollback and fork


@pytest.mark.parametrize("count", budgets())
@pytest.mark.parametrize("name", FORMATS)
def test_rollback_and_the_same_tokens_change_nothing(name: str, count: int) -> None:
    rng = random.Random(f"rollback {name}")
    for walk in walked(name, count):
        plain = walk.constraint.session(call_id=call_ids())
        session = walk.constraint.session(call_id=call_ids())
        taken: list[list[tg.Delta]] = []  # deltas by token
        trail = [_standing(session)]
        for token in walk.tokens:
            assert session.accept_token(token)
            taken.append(session.take_deltas())
            trail.append(_standing(session))
            if rng.random() < 0.15:
                _go_back(session, walk, taken, trail, rng)
        plain.accept_tokens(walk.tokens)
        assert _standing(plain) == trail[-1], walk.text
        assert plain.message == session.message, walk.text
        assert merge(plain.take_deltas()) == merge(delta for step in taken for delta in step), walk.text
        with pytest.raises(ValueError, match="roll back"):
            session.rollback(len(walk.tokens) + 1)


def _standing(session: tg.Session) -> tuple[Any, ...]:
    """Where a session stands, as far as a caller can see, and its state itself."""
    at_end = session.is_accepting, session.is_terminated, session.min_tokens_to_end()
    return session.mask().tobytes(), at_end, session.text, id(session.state)


def _go_back(
    session: tg.Session, walk: Walk, taken: list[list[tg.Delta]], trail: list[tuple[Any, ...]], rng: random.Random
) -> None:
    """Some tokens back, perhaps astray, and forth again."""
    at = len(taken)
    back = rng.randint(0, at)
    session.rollback(back)
    assert _standing(session) == trail[at - back], walk.text
    if rng.random() < 0.5:
        astray = Walker(small(walk.asked.name), rng, soft=5)
        steps = 0
        while steps < 8 and not session.is_terminated:
            assert session.accept_token(astray.next(session, landing=False))
            steps += 1
            if rng.random() < 0.5:
                session.take_deltas()
        session.rollback(steps)
        assert _standing(session) == trail[at - back], walk.text
    again = []
    for token in walk.tokens[at - back : at]:
        assert session.accept_token(token)
        again.append(session.take_deltas())
    assert _standing(session) == trail[at], walk.text
    assert again == taken[at - back :], walk.text


@pytest.mark.parametrize("name", FORMATS)
def test_rollback_loses_no_delta_that_was_not_taken(name: str) -> None:
    rng = random.Random(f"untaken {name}")
    for walk in walked(name, WALKS):
        session = walk.constraint.session(call_id=call_ids())
        given: list[tg.Delta] = []
        taken = at = 0  # up to which token deltas have been taken, and where the session stands
        while at < len(walk.tokens):
            at += session.accept_tokens(walk.tokens[at : at + rng.randint(1, 6)])
            if rng.random() < 0.3:
                given += session.take_deltas()
                taken = at
            back = rng.randint(0, at - taken)
            session.rollback(back)
            at -= back
        given += session.take_deltas()
        plain = walk.constraint.session(call_id=call_ids())
        plain.accept_tokens(walk.tokens)
        assert merge(given) == merge(plain.take_deltas()), walk.text


@pytest.mark.parametrize("name", FORMATS)
def test_forks_go_their_own_way(name: str) -> None:
    rng = random.Random(f"fork {name}")
    for walk in walked(name, WALKS):
        session = walk.constraint.session(call_id=call_ids())
        at = rng.randrange(len(walk.tokens))
        session.accept_tokens(walk.tokens[:at])
        before, message = _standing(session), session.message
        fork = session.fork()
        assert _standing(fork) == before
        Walker(small(name), rng).walk(fork)
        fork.take_deltas()
        assert _standing(session) == before, walk.text
        assert session.message == message, walk.text
        session.accept_tokens(walk.tokens[at:])
        assert session.is_terminated, walk.text
        session.reset()
        assert _standing(session) == _standing(walk.constraint.session()), walk.text
        assert session.accept_tokens(walk.tokens) == len(walk.tokens)


# 9. No crash, no hang, no silent loss


@pytest.mark.parametrize("count", budgets())
@pytest.mark.parametrize("name", FORMATS)
def test_every_word_of_the_input_comes_back(name: str, count: int) -> None:
    """Words put into turns, damaged or not, are in the content, the reasoning, a call or an error."""
    for walk, text, rng in turns(name, count * 4, "loss"):
        text = text.replace(WORD, "")
        for stop in _ends(name):  # what follows a stop marker is not the model's
            text = text.replace(stop, "")
        places = sorted(rng.randint(0, len(text)) for _ in range(rng.randint(1, 4)))
        words = [f"{WORD}{number}x" for number in range(len(places))]
        for at, word in reversed(list(zip(places, words, strict=True))):
            text = text[:at] + word + text[at:]
        deltas, message = fed_text(walk, [text])
        shown = _shown(deltas)
        for word in words:
            lost = word not in shown and not _silent(name, word, text)
            assert not lost or _undecided(name, word, text, message), (word, text, deltas)


def _undecided(name: str, word: str, text: str, message: tg.Message) -> bool:
    """Whether a word stands in the key or value at which a call was cut: of that, only what was certain is given."""
    return bool(message.incomplete_calls) and CALLS[name] in text[: text.index(word)]


def _ends(name: str) -> list[str]:
    grammar = loaded(name).grammar
    return [*grammar.stops, *grammar.stops_after_call]


def _shown(deltas: list[tg.Delta]) -> str:
    return "\0".join(delta.name if isinstance(delta, tg.CallStart) else _text(delta) for delta in deltas)


def _silent(name: str, word: str, text: str) -> bool:
    """Whether a word stands in the header of a message, or in the namespace of a name, which is markup: the call's own
    name is what counts."""
    if name == "gemma4":
        return re.search(rf"<\|tool_call>[\s:-]*call:[^{{(\s]*{word}[^{{(\s]*[:.]", text) is not None
    if name != "atem":
        return False
    before = text[: text.index(word)]
    return "<|message|>" not in before[before.rfind(" to=") :] and " to=" in before


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.binary(max_size=200))
def test_any_bytes_have_a_reading(name: str, data: bytes) -> None:
    walk = walked(name, WALKS)[0]
    whole = fed_bytes(walk, [data])
    assert fed_bytes(walk, (bytes((byte,)) for byte in data)) == whole
    _check_order(whole[0])


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
def test_any_text_of_the_formats_pieces_has_a_reading(name: str, data: st.DataObject) -> None:
    walk = data.draw(st.sampled_from(walked(name, WALKS)))
    text = "".join(data.draw(st.lists(st.sampled_from(_wounds(name)), max_size=30)))
    whole = fed_text(walk, [text])
    assert fed_text(walk, text) == whole
    _check_order(whole[0])


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
def test_any_tokens_have_a_reading(name: str, data: st.DataObject) -> None:
    walk = data.draw(st.sampled_from(walked(name, WALKS)))
    tokens = data.draw(st.lists(st.integers(0, len(small(name)) - 1), max_size=60))
    whole = fed_tokens(walk, [tokens])
    assert fed_tokens(walk, ([token] for token in tokens)) == whole
    _check_order(whole[0])
    session = walk.constraint.session()
    accepted = session.accept_tokens(tokens)
    assert session.accept_tokens(tokens[accepted:][:1]) == 0


def _check_place(error: tg.TwingramError) -> None:
    if isinstance(error, tg.SchemaError):
        assert error.tool == "f"
        assert error.path.startswith("$")
    else:
        assert "tools[0]" in str(error) or isinstance(error, tg.LimitExceeded)


KEYWORDS = (
    "type", "properties", "required", "enum", "const", "items", "prefixItems", "minItems", "maxItems", "minLength",
    "maxLength", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "anyOf",
    "oneOf", "allOf", "not", "additionalProperties", "patternProperties", "nullable", "$ref", "$defs", "format",
    "uniqueItems", "if", "dependentRequired", "propertyNames", "contains", "minProperties", "description",
)  # fmt: skip
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 40),
    st.floats(allow_nan=True),
    st.sampled_from([
        "string", "integer", "object", "array", "number", "null", "any", "", "^a+$", "(", "#", "#/$defs/a",
        "#/properties/a", "\ud800", "a", "date-time", 10**30, 1e308,
    ]),
    st.text(max_size=3),
)  # fmt: skip
SCHEMAS = st.recursive(
    VALUES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from((*KEYWORDS, "a", "b")), inner, max_size=4),
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("name", FORMATS)
@given(schema=SCHEMAS, seed=st.integers(0, 100))
def test_any_schema_has_an_answer(name: str, schema: Any, seed: int) -> None:
    """A constraint that can be walked, or an error of ours that names the place."""
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
    vocabulary = small(name)
    try:
        constraint = loaded(name).constraint([tool], "required", vocabulary=vocabulary)
    except (tg.SchemaError, tg.RequestError, tg.LimitExceeded) as error:
        _check_place(error)
        return
    constraint.report()
    session = constraint.session(call_id=call_ids())
    Walker(vocabulary, random.Random(seed), soft=30).walk(session)
    assert not session.message.errors
    assert [call.name for call in session.message.calls][:1] == ["f"]
    assert loaded(name).parse(session.text.decode(), tools=[tool], call_id=call_ids()) == session.message
