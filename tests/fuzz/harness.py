"""What is tried, and what must hold for it: the promises of the stream on inputs that nobody wrote.

In: a source of choices (hypothesis, or a seeded random generator). Out: `Trial`s, and `check`, which raises
`AssertionError` for an input that breaks a promise:

    5  pieces do not matter: whole, by character, by byte, in random pieces, tokens one by one or many at once
    6  what was given is a prefix of what comes; arguments join to JSON, or to a prefix of JSON
    7  the work is linear: twice the text costs about twice the calls of functions (counted, not timed)
    9  every byte is content, reasoning, a call, markup or an error, and something written never gives nothing

Invariant: a trial is a plain value that can be written into `corpus.jsonl` and read back.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import twingram as tg
from tests.counting import calls_of
from twingram.session.deltas import merge

from ..walks import call_ids, json_prefix

__all__ = ["CORPUS", "FORMATS", "Trial", "check", "corpus", "random_trial", "vocabulary"]

CORPUS = Path(__file__).parent / "corpus.jsonl"
FORMATS = ("gemma4", "atem", "functiongemma")
SPACE = str.maketrans("", "", " \t\n\r\f\v")
_FREE = (
    *({},) * 3, {"strict": True}, {"salvage": True}, {"unknown_tools": "text"}, {"tools": None}, {"tools": "other"},
)  # fmt: skip
_LIMITS = {
    "depth": (1, 2), "calls": (0, 1), "argument_bytes": (1, 12, 45), "pending_bytes": (1, 5, 17), "threads": (1, 2, 3),
}  # fmt: skip
_TAILS = {"gemma4": "<|channel>thought\n"}


def _tool(name: str, **properties: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}}


TOOLS = (
    _tool("f", a={"type": "string"}, b={"type": "integer"}, c={"type": ["string", "null"]}, o={"type": "object"},
          l={"type": "array"}, t={}),
    _tool("get_weather", city={"type": "string"}, days={"type": "integer"}, units={"enum": ["c", "f"]}),
    _tool("fs.read", filePath={"type": "string"}, limit={"type": "number"}, call={"type": "boolean"}),
)  # fmt: skip
_TOOL_SETS: dict[str, Any] = {"all": TOOLS, "other": (_tool("call", a={"type": "integer"}),), "none": None}


@dataclass(frozen=True)
class Trial:
    """One input. `text` is latin-1 for bytes, so that any bytes can be written down; `seed` draws the pieces."""

    format: str
    text: str
    options: dict[str, Any] = field(default_factory=dict)
    seed: int = 0

    @property
    def data(self) -> bytes:
        return self.text.encode("latin-1")

    def line(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=True)


def corpus() -> list[Trial]:
    lines = CORPUS.read_text("utf-8").splitlines() if CORPUS.exists() else []
    return [Trial(**json.loads(line)) for line in lines if line]


# -- inputs ------------------------------------------------------------------------------------------------------------

_Q = '<|"|>'
_BLOCK = (
    '<atem:function_calls>\n<atem:invoke name="f">\n<atem:parameter name="a">x y</atem:parameter>\n'
    '<atem:parameter name="b">4</atem:parameter>\n</atem:invoke>\n</atem:function_calls>'
)
VALID = {
    "gemma4": (
        f"<|channel>thought\nhm {{x}}\n<channel|>Let me.<|tool_call>call:f{{a:{_Q}x, y: {{z}}{_Q},b:-4}}<tool_call|>",
        f"<|tool_call>call:f{{l:[1,{_Q}é漢😀{_Q},[true,null]],o:{{k:{{}}}}}}<tool_call|><turn|>\n",
        f"Hi.<|tool_call>call:get_weather{{city:{_Q}Paris{_Q},days:3}}<tool_call|><|tool_response>",
        f"<|tool_call>call:fs.read{{filePath:{_Q}<tool_call|>{_Q}}}<tool_call|><|tool_call>call:f{{}}<tool_call|>",
        "Just text, with call:f{a:1} and <b> [x].<turn|>",
        "<|tool_call>call:f{a:raw, text: {x},b:1}<tool_call|>",
    ),
    "atem": (
        f" to=self<|message|>hm <x>\n<|eom|><|start|>assistant to=f<|message|>{_BLOCK}<|eom|>",
        f" to=f<|message|>{_BLOCK}<|eom|><|start|>assistant to=f<|message|>{_BLOCK}<|eot|>",
        " to=user<|message|>Hello é漢😀 to=you<|eot|>",
        f"Well.\n to=f constrain=json<|message|>{_BLOCK}",
        _BLOCK + "\n" + _BLOCK,
        f'<|start|>assistant to=fs.read<|message|>{_BLOCK.replace(chr(34) + "f", chr(34) + "fs.read")}<|eom|>',
    ),
    "functiongemma": (
        "Hi.<start_function_call>call:f{a:<escape>x, y<escape>,b:4}<end_function_call><start_function_response>",
        "<start_function_call>call:f{l:[1,[<escape>a<escape>]],o:{k:null}}<end_function_call><end_of_turn>",
        "Only text.<end_of_turn>",
    ),
}
PIECES = {
    "gemma4": ["<|tool_call>", "<tool_call|>", _Q, "<|channel>", "<|channel>thought\n", "thought\n", "<channel|>",
               "<|tool_response>", "<turn|>", "<eos>", "call:", "call:f{", ":f{", "f{", "<call>f{", "f(", "a:", ",b:",
               "{", "}", "[", "]", "(", ")", ",", ":", "=", "'", '"', "`", "null", "None", "-1.5e3", "007", "true"],
    "atem": ["<|start|>", "<|start|>assistant", "<|message|>", "<|eom|>", "<|eot|>", "<|end_of_text|>", " to=f", " to=",
             " to=self", " to=user", " to=developer", " constrain=json", "<atem:function_calls>\n",
             "</atem:function_calls>", '<atem:invoke name="f">\n', '<atem:invoke name="', '">\n', "</atem:invoke>\n",
             '<atem:parameter name="a">', '<atem:parameter name="b">', "</atem:parameter>\n", "f.a", _BLOCK],
    "functiongemma": ["<start_function_call>", "<end_function_call>", "<escape>", "<end_of_turn>", "call:", "call:f{",
                      "<start_function_response>", "{", "}", "[", "]", ",", ":", "a:", "1"],
}  # fmt: skip
_ODD = ["\n", " ", "\t", "\r\n", "\x00", "é", "漢", "😀", "\u202e", "e\u0301", "<", "<|", "|>", "<t", "</", "x",
        "word ", "\ufffd", "&lt;", "\\", '\\"'] + ["<" * 9, "<|" * 5, " " * 12]  # fmt: skip


def random_trial(rng: random.Random, name: str | None = None) -> Trial:
    """A valid turn with damage, or pieces in a row, or bytes."""
    name = name or rng.choice(FORMATS)
    kind = rng.random()
    if kind < 0.65:
        text = rng.choice(VALID[name]) + (rng.choice(VALID[name]) if rng.random() < 0.2 else "")
        data = _damaged(text, name, rng)
    elif kind < 0.93:
        data = "".join(_piece(name, rng) for _ in range(rng.randint(1, 14))).encode()
    else:
        data = bytes(rng.randrange(256) for _ in range(rng.randint(0, 30))) + _piece(name, rng).encode()
    options = dict(rng.choice(_FREE))
    if name in _TAILS and rng.random() < 0.1:
        options["prompt_tail"] = _TAILS[name]
    if rng.random() < 0.15:
        limits = rng.sample(sorted(_LIMITS), rng.choice((1, 1, 2)))
        options["limits"] = {limit: rng.choice(_LIMITS[limit]) for limit in limits}
    return Trial(name, data.decode("latin-1"), options, rng.randrange(1 << 16))


def _piece(name: str, rng: random.Random) -> str:
    return rng.choice(PIECES[name] if rng.random() < 0.75 else _ODD)


def _damaged(text: str, name: str, rng: random.Random) -> bytes:
    for _ in range(rng.randint(0, 4)):
        low = rng.randint(0, len(text))
        high = min(len(text), low + rng.choice((1, 1, 2, 5, 20, 60)))
        kind = rng.random()
        if kind < 0.3:
            text = text[:low] + text[high:]
        elif kind < 0.4:
            text = text[:high] + text[low:]
        elif kind < 0.5:
            text = text[:low] + text[high:] + text[low:high]
        elif kind < 0.9:
            text = text[:low] + _piece(name, rng) + text[low:]
        else:
            text = text[:low]
    data = text.encode()
    if rng.random() < 0.1:
        at = rng.randint(0, len(data))
        data = data[:at] + bytes((rng.randrange(256),)) + data[at + rng.randint(0, 1) :]
    return data


@cache
def vocabulary(name: str) -> tg.Vocabulary:
    """Bytes, the format's pieces in many cuts, and its markers."""
    grammar = tg.load_format(name).grammar
    words = [text for text in (*PIECES[name], *_ODD) if text not in grammar.markers]
    cuts = {word.encode()[low:high] for word in words for low in range(4) for high in range(low + 2, low + 9)}
    tokens = dict.fromkeys([*(bytes((byte,)) for byte in range(256)), *sorted(cut for cut in cuts if len(cut) > 1)])
    return tg.Vocabulary.from_tokens(list(tokens), {mark: len(tokens) + at for at, mark in enumerate(grammar.markers)})


# -- what must hold ----------------------------------------------------------------------------------------------------

_Output = tuple[list[tg.Delta], tg.Message]


def check(trial: Trial, *, work: bool = False) -> None:
    """Raise `AssertionError` if a promise is broken. `work`: promise 7 as well, which is slow."""
    rng, data = random.Random(trial.seed), trial.data
    whole = _fed(trial, [data])
    _check_deltas(whole)
    assert _fed(trial, [data[at : at + 1] for at in range(len(data))]) == whole, "5: byte by byte"
    assert _fed(trial, _pieces(data, rng)) == whole, "5: in pieces"
    tokens = vocabulary(trial.format).encode(data.decode("utf-8", "replace"))
    if rng.random() < 0.3:
        tokens = [rng.randrange(len(vocabulary(trial.format))) if rng.random() < 0.1 else token for token in tokens]
    read = _fed(trial, [tokens], tokens=True)
    _check_deltas(read)
    assert _fed(trial, [[token] for token in tokens], tokens=True) == read, "5: token by token"
    assert _fed(trial, _pieces(tokens, rng), tokens=True) == read, "5: some tokens at a time"
    _check_prefix(trial, data, whole, rng)
    _check_account(trial, data)
    if work:
        _check_work(trial, data)


def _parser(trial: Trial, *, tokens: bool = False) -> tg.Parser:
    options = {"tools": "all", **trial.options}
    options["tools"] = _TOOL_SETS[options["tools"] or "none"]
    options["vocabulary"] = vocabulary(trial.format) if tokens else None
    options["limits"] = tg.Limits(**options.get("limits", {}))
    return tg.load_format(trial.format).parser(call_id=call_ids(), **options)


def _fed(trial: Trial, pieces: Iterable[Any], *, tokens: bool = False) -> _Output:
    parser = _parser(trial, tokens=tokens)
    deltas: list[tg.Delta] = []
    for piece in pieces:
        deltas += parser.feed_tokens(piece) if tokens else parser.feed_bytes(piece)
    deltas += parser.finish()
    assert tg.Message.from_deltas(deltas) == parser.message
    return merge(deltas), parser.message


def _pieces(whole: Sequence[Any], rng: random.Random) -> list[Any]:
    out, at = [], 0
    while at < len(whole):
        size = rng.randint(0, 11)
        out.append(whole[at : at + size])
        at += size
    return out


def _check_deltas(output: _Output) -> None:
    deltas, message = output
    open_call, seen = None, 0
    for delta in deltas:
        if isinstance(delta, tg.CallStart):
            assert open_call is None
            assert delta.index == seen, "9: calls are counted"
            open_call, seen = delta.index, seen + 1
        elif isinstance(delta, (tg.CallArguments, tg.CallEnd)):
            assert open_call == delta.index
            open_call = None if isinstance(delta, tg.CallEnd) else open_call
        else:
            assert open_call is None or isinstance(delta, tg.ParseError)
    assert open_call is None, "9: a call that began has an end"
    for call in message.calls:
        assert isinstance(call.value, dict), "6: arguments are a JSON object"
    for call in message.incomplete_calls:
        assert json_prefix(call.arguments), f"6: {call.arguments!r} begins no JSON"


def _check_prefix(trial: Trial, data: bytes, whole: _Output, rng: random.Random) -> None:
    """What is given after a prefix begins the output of the whole."""
    begun = merge(_parser(trial).feed_bytes(data[: rng.randint(0, len(data))]))
    final = whole[0]
    assert len(begun) <= len(final), "6: taken back"
    for at, delta in enumerate(begun):
        if at < len(begun) - 1:
            assert delta == final[at], "6: taken back"
        elif isinstance(delta, tg.CallArguments):
            assert isinstance(final[at], tg.CallArguments)
            assert final[at].json.startswith(delta.json), "6: taken back"
        elif isinstance(delta, (tg.Content, tg.Reasoning)):
            assert type(final[at]) is type(delta)
            assert final[at].text.startswith(delta.text), "6: taken back"
        else:
            assert delta == final[at], "6: taken back"


def _check_account(trial: Trial, data: bytes) -> None:
    parser = _parser(trial)
    parser.feed_bytes(data)
    parser.finish()
    spans, message = parser.spans(), parser.message
    assert [start for start, _, _ in spans] == [0, *(end for _, end, _ in spans)][: len(spans)], "9: spans adjoin"
    assert all(one[2] != other[2] for one, other in pairwise(spans))
    covered = spans[-1][1] if spans else 0
    grammar = tg.load_format(trial.format).grammar
    if covered < len(data):
        ends = tuple(stop.encode() for stop in (*grammar.stops, *grammar.stops_after_call))
        assert data[:covered].endswith(ends), "9: lost after the end of what was read"

    def joined(kind: str) -> str:
        return "".join(data[start:end].decode("utf-8", "replace") for start, end, found in spans if found == kind)

    for kind, told in (("content", message.content), ("reasoning", message.reasoning)):
        assert joined(kind).translate(SPACE) == (told or "").translate(SPACE), f"9: {kind} and its spans"
    assert joined("error") == "".join(error.text for error in message.errors), "9: errors and their spans"
    assert any(kind == "call" for *_, kind in spans) or not message.calls
    marks = "".join(data[start:end].decode("utf-8", "replace") for start, end, found in spans if found == "markup")
    for mark in (*grammar.markers, "thought", "assistant", "constrain", "</atem:function_calls>"):
        marks = marks.replace(mark, "")
    assert len(marks) < 400 or marks.isspace(), f"9: {marks!r} is passed over as markup"


def _check_work(trial: Trial, data: bytes) -> None:
    if not data:
        return
    for _ in range(3):  # what is kept may be forgotten in the midst of a count, which then begins anew
        costs = []
        for count in (80, 40, 80):  # the first one meets new states
            parser = _parser(trial)
            costs.append(calls_of(lambda parser=parser, count=count: [parser.feed_bytes(data) for _ in range(count)]))
            costs[-1] += calls_of(parser.finish)
        if costs[2] < 2.5 * costs[1] + 400:
            return
    raise AssertionError(f"7: {costs}")
