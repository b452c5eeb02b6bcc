"""A guard of the work done, not of the time it takes: counts for fixed inputs, beside those in `guard.json`.

Counted are the states of the automaton, the derivatives asked for, the nodes of the token trie that were visited one by
one, and those that were swept with numpy, for requests that nothing is kept of. The counts do not depend on the
machine. More than 5 percent above the stored number fails; so does less than three quarters of it, for a guard that
has become loose guards nothing.

After a change that is meant to cost or save work:

    TWINGRAM_RENEW=1 python -m pytest tests/test_guard.py

writes the file anew; the differences are part of the change, and its message says why they are right.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

import twingram as tg
from twingram.automaton import machine
from twingram.resources import grammar_path
from twingram.tokens import sweep, walk, wide
from twingram.tokens.trie import TokenTrie

STORED = Path(__file__).with_name("guard.json")
RENEW = os.environ.get("TWINGRAM_RENEW") == "1"
SPARE = 3  # counts this small may differ by so much

WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "unit": {"enum": ["celsius", "fahrenheit"]},
    },
    "required": ["city", "days"],
}
NESTED = {
    "type": "object",
    "properties": {
        "rows": {
            "type": "array",
            "items": {"type": "object", "properties": {"label": {"type": "string"}, "on": {"type": "boolean"}}},
        },
        "code": {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"},
        "note": {"type": "string", "maxLength": 40},
        "ratio": {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
    },
}


def tool(name: str, parameters: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def many(count: int) -> list[dict[str, Any]]:
    out = []
    for at in range(count - 1):
        properties = {f"key_{at}_{kind}": {"type": kind} for kind in ("string", "integer", "boolean", "array")}
        out.append(tool(f"tool_{at}", {"type": "object", "properties": properties, "required": list(properties)[:2]}))
    return [*out, tool("get_weather", WEATHER)]


CALLS = {
    "gemma4": {
        "weather": '<|tool_call>call:get_weather{city:<|"|>Köln<|"|>,days:13}<tool_call|>',
        "nested": (
            '<|tool_call>call:put{rows:[{label:<|"|>a<|"|>,on:true},{}],code:<|"|>ABC-1234<|"|>,'
            'note:<|"|>two words<|"|>,ratio:0.25}<tool_call|>'
        ),
    },
    "atem": {
        "weather": (
            ' to=get_weather<|message|><atem:function_calls>\n<atem:invoke name="get_weather">\n'
            '<atem:parameter name="city">Köln</atem:parameter>\n<atem:parameter name="days">13</atem:parameter>\n'
            "</atem:invoke>\n</atem:function_calls>"
        ),
        "nested": (
            ' to=put<|message|><atem:function_calls>\n<atem:invoke name="put">\n'
            '<atem:parameter name="rows">[{"label": "a", "on": true}, {}]</atem:parameter>\n'
            '<atem:parameter name="code">ABC-1234</atem:parameter>\n'
            '<atem:parameter name="note">two words</atem:parameter>\n'
            '<atem:parameter name="ratio">0.25</atem:parameter>\n</atem:invoke>\n</atem:function_calls>'
        ),
    },
}
TOOLS = {
    "one": [tool("get_weather", WEATHER)],
    "twenty": many(20),
    "hundred": many(100),
    "nested": [tool("put", NESTED)],
}


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """What is counted while the test runs."""
    found: Counter[str] = Counter()
    monkeypatch.setenv("TWINGRAM_CACHE", "0")
    for module in (machine, walk):
        monkeypatch.setattr(module, "derive", counting(module.derive, found, "derivatives"))
    monkeypatch.setattr(walk, "_children_in", counting_items(walk._children_in, found, "nodes walked"))
    monkeypatch.setattr(TokenTrie, "child", counting(TokenTrie.child, found, "nodes looked up"))
    for module in (walk, wide):
        monkeypatch.setattr(module, "sweep", counting_nodes(sweep.sweep, found))
    return found


def counting(function: Callable[..., Any], found: Counter[str], what: str) -> Callable[..., Any]:
    @wraps(function)
    def counted(*args: Any) -> Any:
        found[what] += 1
        return function(*args)

    return counted


def counting_items(function: Callable[..., Any], found: Counter[str], what: str) -> Callable[..., Any]:
    @wraps(function)
    def counted(*args: Any) -> Any:
        for item in function(*args):
            found[what] += 1
            yield item

    return counted


def counting_nodes(function: Callable[..., Any], found: Counter[str]) -> Callable[..., Any]:
    @wraps(function)
    def counted(*args: Any) -> Any:
        made = function(*args)
        found["sweeps"] += 1
        found["nodes swept"] += len(made.nodes)
        return made

    return counted


def fresh() -> tg.Vocabulary:
    """A vocabulary that nothing is kept of."""
    known = tg.Vocabulary.embedded()
    spelt = [known.token_bytes(token) for token in range(len(known))]
    return tg.Vocabulary.from_tokens(spelt, dict(known.special_tokens))


def check(case: str, found: Counter[str]) -> None:
    if RENEW:
        stored = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}
        stored[case] = dict(sorted(found.items()))
        STORED.write_text(json.dumps(dict(sorted(stored.items())), indent=1) + "\n", encoding="utf-8")
        return
    stored = json.loads(STORED.read_text(encoding="utf-8")).get(case, {})
    assert set(found) == set(stored), f"{case}: the guard counts other things; renew {STORED.name}"
    for what, now in found.items():
        before = stored[what]
        assert now <= before * 1.05 + SPARE, f"{case}: {what} has risen from {before} to {now}"
        assert now >= before * 0.75 - SPARE, f"{case}: {what} has fallen from {before} to {now}; renew {STORED.name}"


@pytest.mark.parametrize("tools", list(TOOLS))
@pytest.mark.parametrize("name", list(CALLS))
def test_an_unseen_call(name: str, tools: str, counts: Counter[str]) -> None:
    """Compile, and every mask and token of a call."""
    vocabulary, fmt = fresh(), tg.Format.from_file(grammar_path(name))
    tokens = vocabulary.encode(CALLS[name]["nested" if tools == "nested" else "weather"])
    counts.clear()
    constraint = fmt.constraint(TOOLS[tools], "required", vocabulary=vocabulary)
    session = constraint.session()
    for token in tokens:
        session.mask()
        assert session.accept_token(token)
    session.mask()
    assert session.is_accepting
    counts["states"] = len(constraint.machine)
    check(f"{name}: call of {tools}", counts)


@pytest.mark.parametrize("name", list(CALLS))
def test_a_parse(name: str, counts: Counter[str]) -> None:
    """The parser of text, a character at a time and at once."""
    fmt = tg.Format.from_file(grammar_path(name))
    text = CALLS[name]["nested"]
    counts.clear()
    parser = fmt.parser(TOOLS["nested"])
    for char in text:
        parser.feed(char)
    parser.finish()
    assert fmt.parse(text, TOOLS["nested"]).calls[0].value == parser.message.calls[0].value
    check(f"{name}: parse", counts)


def test_more_work_is_noticed(counts: Counter[str]) -> None:
    if RENEW:
        pytest.skip("the file is being written")
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    case, numbers = next(iter(stored.items()))
    for what, factor in ((what, factor) for what in numbers for factor in (1.2, 0.5)):
        with pytest.raises(AssertionError, match=r"has (risen|fallen)"):
            check(case, Counter({**numbers, what: round(numbers[what] * factor + (8 if factor > 1 else -8))}))
