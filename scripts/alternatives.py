"""Does every alternative of the grammars matter? `python scripts/alternatives.py [FORMAT ...]`

Takes out each alternative and each optional part of a grammar, one at a time, and reads the table of deviations, the
variants, the cases from bug reports and the broken turns of the tests with what is left; canonical turns and answers
are also given to masks. An alternative whose loss changes none of the right answers survives: it is printed, and the
status is 1, unless it is among `EQUAL`. A test for it is missing, or it is not needed.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import twingram as tg
from tests.deviations import ROWS, TOOLS
from tests.test_broken import READINGS
from tests.test_deviations import MARKERS, told
from tests.variants import VARIANTS
from tests.walks import call_ids, small
from twingram.grammar.rules import Branch, Choice, Grammar, Group, Loop, Node

Check = Callable[[tg.Format], object]

# What other alternatives read as well, with the reason why it stands there all the same.
EQUAL = {
    "_drift: without tool_call": "a call that lacks its end and meets the next one is complete for recovery too, but "
    "only where nothing but the end is missing",
}

_ANSWER = '{"a":[1,-2.5,true,false,null,"x",{}]}'
_VALUES = {
    "n": 1.5, "t": True, "f": False, "z": None, "l": [1, [True, False, None, {"k": "x"}]], "o": {"k": 1}, "s": "x",
}  # fmt: skip
_TYPES = {
    "n": "number", "t": "boolean", "f": "boolean", "z": "null", "l": "array", "o": "object", "s": "string",
}  # fmt: skip
_SCHEMA = {"type": "object", "properties": {key: {"type": kind} for key, kind in _TYPES.items()}}
_TOOL = {"type": "function", "function": {"name": "f", "parameters": _SCHEMA}}
_CANONICAL = {
    "gemma4": "<|channel>thought\nhm<channel|>Hi<|tool_call>call:f{n:1.5,t:true,f:false,z:null,l:[1,[true,false,null,"
    '{k:<|"|>x<|"|>}]],o:{k:1},s:<|"|>x<|"|>}<tool_call|>',
    "functiongemma": "Hi<start_function_call>call:f{n:1.5,t:true,f:false,z:null,l:[1,[true,false,null,"
    "{k:<escape>x<escape>}]],o:{k:1},s:<escape>x<escape>}<end_function_call>",
    "atem": " to=self<|message|>hm<|eom|><|start|>assistant to=f<|message|><atem:function_calls>\n"
    '<atem:invoke name="f">\n' + "".join(
        f'<atem:parameter name="{key}">{value if key == "s" else json.dumps(value, separators=(",", ":"))}'
        "</atem:parameter>\n"
        for key, value in _VALUES.items()
    )
    + "</atem:invoke>\n</atem:function_calls>",
}


def main(names: list[str]) -> int:
    status = 0
    for name in names or tg.list_formats():
        grammar = tg.load_format(name).grammar
        checks = list(checks_of(name))
        right = [check(tg.load_format(name)) for check in checks]
        tried = survivors = equal = 0
        for what, changed in without_one(grammar):
            tried += 1
            at = next((at for at, check in enumerate(checks) if not _same(check, changed, right[at])), None)
            if at is None and what in EQUAL:
                equal += 1
            elif at is None:
                survivors += 1
                print(f"{name}: nothing depends on {what}", flush=True)
            else:  # what finds one fault is likely to find the next
                checks.insert(0, checks.pop(at))
                right.insert(0, right.pop(at))
        print(f"{name}: {tried} alternatives, {equal} equal to others, {survivors} that nothing depends on", flush=True)
        status = status or int(survivors > 0)
    return status


def _same(check: Check, grammar: Grammar, right: object) -> bool:
    fmt = tg.Format.__new__(tg.Format)
    fmt.grammar = grammar  # unchecked: rules that nothing leads to any more are no fault here
    try:
        return check(fmt) == right
    except (tg.TwingramError, AssertionError, ValueError):
        return False


# -- grammars that lack something --------------------------------------------------------------------------------------


def without_one(grammar: Grammar) -> Iterator[tuple[str, Grammar]]:
    """Each alternative of the format's own file, and the grammar without it."""
    for name, rule in grammar.rules.items():
        if rule.space:
            continue
        for what, choice in _smaller(rule.choice):
            if isinstance(choice, Choice):
                rules = {**grammar.rules, name: dataclasses.replace(rule, choice=choice)}
                yield f"{name}: without {what}", dataclasses.replace(grammar, rules=rules)


def _smaller(node: Node) -> Iterator[tuple[str, Node]]:
    """The node without one alternative or optional part somewhere in it."""
    match node:
        case Choice(branches=branches):
            for at, branch in enumerate(branches):
                rest = branches[:at] + branches[at + 1 :]
                if rest:
                    yield str(branch), Choice(rest)
                for what, inner in _smaller(branch.node):
                    yield what, Choice((*branches[:at], Branch(inner, branch.role), *branches[at + 1 :]))
        case Group(parts=parts):
            for at, part in enumerate(parts):
                for what, inner in _smaller(part):
                    yield what, Group((*parts[:at], inner, *parts[at + 1 :]))
        case Loop(node=inner, low=low, high=high):
            if low == 0:
                yield str(node), Group(())
            for what, smaller in _smaller(inner):
                yield what, Loop(smaller, low, high)


# -- answers -----------------------------------------------------------------------------------------------------------


def checks_of(name: str) -> Iterator[Check]:
    outputs = [(row.format, row.text, row.options) for row in ROWS]
    outputs += [(one.format, one.text, one.options) for one in VARIANTS]
    for format_name, text, options in outputs:
        if format_name == name:
            yield _parse(text, tools=TOOLS, **options)
        elif name == "functiongemma" and format_name == "gemma4" and "prompt_tail" not in options:
            for one, other in MARKERS.items():
                text = text.replace(one, other)
            yield _parse(text, tools=TOOLS, **options)
    if name in _CANONICAL:
        yield _taken(name, _CANONICAL[name], tools=[_TOOL])
        yield _taken(name, {"atem": " to=user<|message|>"}.get(name, "") + _ANSWER, response_schema={})
    for format_name, text, _ in READINGS.values():
        if format_name == name:
            yield _parse(text, tools=TOOLS)
    path = Path(__file__).resolve().parents[1] / "tests" / "cases" / "cases.jsonl"
    for case in map(json.loads, path.read_text("utf-8").splitlines()):
        if case["area"] in ("parse", "server") and case["format"] == name:
            tail = "<|channel>thought\n" if case.get("start_state") == "reasoning" else ""
            yield _parse(case["input"], tools=case["tools"], prompt_tail=tail)


def _taken(name: str, text: str, **options: Any) -> Check:
    """How far masks let a turn come."""
    vocabulary = small(name if name != "functiongemma" else "gemma4")
    if name == "functiongemma":
        vocabulary = tg.Vocabulary.from_tokens(
            [bytes((byte,)) for byte in range(256)],
            {marker: 256 + at for at, marker in enumerate(tg.load_format(name).grammar.markers)},
        )
    tokens = vocabulary.encode(text)

    def check(fmt: tg.Format) -> object:
        session = fmt.constraint(vocabulary=vocabulary, **options).session()
        return session.accept_tokens(tokens), bool(session.min_tokens_to_end())

    return check


def _parse(text: str, **options: object) -> Check:
    return lambda fmt: told(fmt.parse(text, call_id=call_ids(), **options))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
