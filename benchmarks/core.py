"""The core, timed: unseen requests, warm steps, parsing, import.

In: the real vocabulary of the tests (262,144 tokens), its region tables built beforehand. Out: a table on standard
output. Nothing is asserted: a run on a busy machine says nothing.

* *Unseen request*: names of tools, keys and members are new in every repetition, so nothing that is kept for a request
  can have been kept. Timed are the constraint, a session, and for each of about 30 tokens the mask and the step.
* *Warm step*: a step and its mask at states that were met before, deltas left for later or taken at each token.
* *Parse*: tokens fed one by one or together, or the text of each; per token, warm. A whole text at once.
"""

from __future__ import annotations

import argparse
import gc
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from random import Random
from typing import Any

import numpy as np

import twingram as tg
from tests.vocabularies import gemma
from twingram.session.tools import Tools

from .inputs import need_vocabularies

REPEATS = 300
FORMAT = "gemma4"
_WORDS = """
account address amount archive author budget calendar category channel city client color comment contact country
created currency customer date depth distance document due email event field file filter folder format group host
image index invoice item label language level limit line list location message metric mode month name node note
number offset order owner page path period person phone place port price priority product profile project query
range rate reason record region report result role room route rule schedule scope score section sender service
size sort source start state status step store stream subject summary table tag target task team text time title
token topic total type unit update user value version view volume week weight window year zone
"""
WORDS = _WORDS.split()
_serial = count()

Timings = list[float]  # seconds


class Request:
    """A new request: realistic tools whose names, keys and enum members nobody has seen, and a call of the last one."""

    def __init__(self, rng: Random, tools: int) -> None:
        self.tools = [self._tool(rng) for _ in range(tools)]
        self.text = self._call(rng, self.tools[-1]["function"])

    def _name(self, rng: Random) -> str:
        return f"{rng.choice(WORDS)}_{rng.choice(WORDS)}_{next(_serial) % 9973}"

    def _tool(self, rng: Random) -> dict[str, Any]:
        kinds = ["string", "integer", "enum", "boolean", "array"]
        properties = {self._name(rng): self._property(kind, rng) for kind in rng.sample(kinds, k=rng.randint(3, 5))}
        required = rng.sample(list(properties), k=2)
        parameters = {"type": "object", "properties": properties, "required": required}
        what = f"Finds the {rng.choice(WORDS)} of a {rng.choice(WORDS)} and gives it back with its {rng.choice(WORDS)}."
        function = {"name": self._name(rng), "description": what, "parameters": parameters}
        return {"type": "function", "function": function}

    def _property(self, kind: str, rng: Random) -> dict[str, Any]:
        described: dict[str, Any] = {"description": f"The {rng.choice(WORDS)} that is asked for."}
        if kind == "enum":
            return described | {"type": "string", "enum": rng.sample(WORDS, k=4)}
        if kind == "array":
            return described | {"type": "array", "items": {"type": "string"}}
        return described | {"type": kind}

    def _call(self, rng: Random, function: dict[str, Any]) -> str:
        schema = function["parameters"]
        members = [f"{key}:{self._value(schema['properties'][key], rng)}" for key in schema["required"]]
        return f"<|tool_call>call:{function['name']}{{{','.join(members)}}}<tool_call|>"

    def _value(self, schema: dict[str, Any], rng: Random) -> str:
        if "enum" in schema:
            return f'<|"|>{rng.choice(schema["enum"])}<|"|>'
        if schema["type"] == "array":
            return f'[<|"|>{rng.choice(WORDS)}<|"|>]'
        scalars = {"integer": str(rng.randint(1, 999)), "boolean": "true"}
        return scalars.get(schema["type"], f'<|"|>the {rng.choice(WORDS)}<|"|>')


def unseen(fmt: tg.Format, vocabulary: tg.Vocabulary, tools: int, repeats: int) -> tuple[Timings, Timings, Timings]:
    """(whole calls, constraint and first mask alone, tokens a call)."""
    rng, wholes, firsts, sizes = Random(tools), Timings(), Timings(), Timings()
    for _ in range(repeats):
        request = Request(rng, tools)
        tokens = vocabulary.encode(request.text)
        gc.collect()
        begin = time.perf_counter()
        session = fmt.constraint(request.tools, "required", vocabulary=vocabulary).session()
        session.mask()
        first = time.perf_counter()
        for token in tokens:
            accepted = session.accept_token(token)
            session.mask()
        end = time.perf_counter()
        if not accepted or not session.is_accepting:
            raise RuntimeError(f"the benchmark's own call was refused: {request.text}")
        wholes.append(end - begin)
        firsts.append(first - begin)
        sizes.append(len(tokens))
    return wholes, firsts, sizes


def warm(fmt: tg.Format, vocabulary: tg.Vocabulary, repeats: int, *, taking: bool) -> Timings:
    """Per token: accept and mask by reference, deltas taken or not."""
    request, out = Request(Random(1), 1), Timings()
    tokens = vocabulary.encode(request.text)
    constraint = fmt.constraint(request.tools, "required", vocabulary=vocabulary)
    for round_ in range(repeats + 3):
        session = constraint.session()
        begin = time.perf_counter()
        for token in tokens:
            session.accept_token(token)
            session.mask()
            if taking:
                session.take_deltas()
        if round_ >= 3:
            out.append((time.perf_counter() - begin) / len(tokens))
    return out


def filled(fmt: tg.Format, vocabulary: tg.Vocabulary, repeats: int) -> Timings:
    """Per token: accept, and the mask written into a caller's row."""
    request, out = Request(Random(1), 1), Timings()
    tokens = vocabulary.encode(request.text)
    constraint = fmt.constraint(request.tools, "required", vocabulary=vocabulary)
    rows = np.zeros((1, -(-len(vocabulary) // 32)), dtype=np.int32)
    for round_ in range(repeats + 3):
        session = constraint.session()
        begin = time.perf_counter()
        for token in tokens:
            session.accept_token(token)
            session.fill_bitmask(rows)
        if round_ >= 3:
            out.append((time.perf_counter() - begin) / len(tokens))
    return out


def parsing(
    fmt: tg.Format, vocabulary: tg.Vocabulary, text: str, repeats: int, *, together: int = 1, begun: bool = True
) -> Timings:
    """Per token of a text, so many tokens fed together; the first rounds only warm. `begun`: the parser is made, and
    has been fed nothing, before the clock starts."""
    tools = Tools.parse(Request(Random(1), 1).tools)
    tokens = vocabulary.encode(text)
    pieces = [tokens[at : at + together] for at in range(0, len(tokens), together)]
    out = Timings()
    for round_ in range(repeats + 3):
        begin = time.perf_counter()
        parser = fmt.parser(tools, vocabulary)
        feed = parser.feed_tokens
        feed(())
        if begun:
            begin = time.perf_counter()
        for piece in pieces:
            feed(piece)
        if round_ >= 3:
            out.append((time.perf_counter() - begin) / len(tokens))
        parser.finish()
    return out


def streaming(fmt: tg.Format, vocabulary: tg.Vocabulary, text: str, repeats: int) -> Timings:
    """Per token of a text that is fed as the text of each token, as a server's parser gets it."""
    tools = Tools.parse(Request(Random(1), 1).tools)
    pieces = [vocabulary.token_bytes(token).decode() for token in vocabulary.encode(text)]
    out = Timings()
    for round_ in range(repeats + 3):
        feed = fmt.parser(tools).feed
        begin = time.perf_counter()
        for piece in pieces:
            feed(piece)
        if round_ >= 3:
            out.append((time.perf_counter() - begin) / len(pieces))
    return out


def at_once(fmt: tg.Format, text: str, repeats: int) -> Timings:
    """Seconds to parse a whole text."""
    out = Timings()
    for _ in range(repeats + 1):
        begin = time.perf_counter()
        fmt.parse(text)
        out.append(time.perf_counter() - begin)
    return out[1:]


def imports(repeats: int) -> Timings:
    """Seconds to import the package, each in a process of its own."""
    code = "import time; t = time.perf_counter(); import twingram; print(time.perf_counter() - t)"
    run = [sys.executable, "-c", code]
    return [float(subprocess.run(run, capture_output=True, text=True, check=True).stdout) for _ in range(repeats)]


# The table


def rows(fmt: tg.Format, vocabulary: tg.Vocabulary, repeats: int) -> Iterator[tuple[str, Timings, float, str, str]]:
    """(what, seconds, factor to the unit, unit, goal for the median)"""
    for tools, goal in ((1, "< 5"), (20, "< 15"), (100, "")):
        wholes, firsts, sizes = unseen(fmt, vocabulary, tools, repeats if tools < 100 else max(repeats // 6, 3))
        tokens = sorted(sizes)[len(sizes) // 2]
        plural = "tool" if tools == 1 else "tools"
        yield f"unseen request, {tools} {plural}: compile and first mask", firsts, 1e3, "ms", ""
        yield f"unseen request, {tools} {plural}: whole call of {tokens:.0f} tokens", wholes, 1e3, "ms", goal
    yield "warm step: accept + mask by reference", warm(fmt, vocabulary, repeats, taking=False), 1e6, "us", "< 2"
    yield "warm step: accept + mask + deltas", warm(fmt, vocabulary, repeats, taking=True), 1e6, "us", ""
    yield "warm step: accept + fill a row", filled(fmt, vocabulary, repeats), 1e6, "us", ""
    prose = "The weather in Paris is fine today, and it will stay so. "
    name = Request(Random(1), 1).tools[-1]["function"]["name"]
    call, end = f'<|tool_call>call:{name}{{note:<|"|>', '<|"|>}<tool_call|>'
    mixed = f'<|tool_call>call:{name}{{a:1,b:true,c:[<|"|>x<|"|>,3],d:{{e:null,f:-1.5}}}}<tool_call|>'
    texts = {
        "content": prose * 150,
        "a long string": call + prose * 150 + end,
        "a short call": call + "Paris" + end,
        "a call of many kinds": mixed,
    }
    for what, text in texts.items():
        times = repeats if len(text) < 200 else max(repeats // 6, 3)
        yield f"parse {what}: a token, one by one", parsing(fmt, vocabulary, text, times), 1e6, "us", "< 2"
        timed = parsing(fmt, vocabulary, text, times, together=16)
        yield f"parse {what}: a token, 16 together", timed, 1e6, "us", "< 2"
        yield f"parse {what}: a token, as text", streaming(fmt, vocabulary, text, times), 1e6, "us", "< 2"
    short = parsing(fmt, vocabulary, texts["a short call"], repeats, begun=False)
    yield "parse a short call: a token, the parser's making included", short, 1e6, "us", ""
    for what, text in {"content": prose * 18_000, "one string": call + prose * 18_000 + end}.items():
        yield f"parse 1 MB of {what} at once", at_once(fmt, text, 5), 1e3, "ms", "< 50"
    yield "import twingram", imports(5), 1e3, "ms", "< 500"


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def build_tables(fmt: tg.Format, vocabulary: tg.Vocabulary) -> float:
    """One call of every kind of value, so that what belongs to the vocabulary is there; seconds it took."""
    begin = time.perf_counter()
    rng = Random(0)
    for tools in (1, 20):
        for _ in range(5):
            request = Request(rng, tools)
            session = fmt.constraint(request.tools, "required", vocabulary=vocabulary).session()
            for token in vocabulary.encode(request.text):
                session.mask()
                session.accept_token(token)
    return time.perf_counter() - begin


def main(argv: Sequence[str] | None = None, write: Callable[[str], object] = print) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.core", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("repeats", nargs="?", type=int, default=REPEATS, help=f"repetitions ({REPEATS})")
    repeats = parser.parse_args(argv).repeats
    need_vocabularies(parser, [FORMAT])
    begin = time.perf_counter()
    vocabulary = gemma()
    loaded = time.perf_counter() - begin
    fmt = tg.load_format(FORMAT)
    built = build_tables(fmt, vocabulary)
    gc.collect()
    gc.freeze()
    write(f"{FORMAT}, {len(vocabulary)} tokens; vocabulary loaded in {loaded:.2f} s, tables built in {built:.2f} s\n")
    write(f"{'':58} {'median':>9} {'p99':>9}      goal")
    for what, seconds, factor, unit, goal in rows(fmt, vocabulary, repeats):
        median, worst = (percentile(seconds, share) * factor for share in (0.5, 0.99))
        write(f"{what:58} {median:9.2f} {worst:9.2f} {unit}   {goal}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
