"""What the report measures, one function a section. Each gives plain data: numbers, lists and dicts.

In: engines (peers.py), cases (request.py), a time to spend on each cell. Out: nanoseconds as they were clocked, and
what the sections of report.py make tables and charts of. An engine that is not installed is left out by its name.
A collection of cyclic garbage runs between cells; while the clock runs the collector is on, as it is for users.
"""

from __future__ import annotations

import gc
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import twingram as tg
from tests.oracle.render import render_turn, spellable

from .collector import collector
from .peers import ENGINES, Engine, LLGuidance, MissingPeer, Twingram, XGrammar, XGrammarOneThread, loaded
from .request import FORMATS, PROSE, Case, vocabulary_of

__all__ = ["SECTIONS", "Spread", "summary"]

Spread = dict[str, float]  # median, p99, p999, count
TOOLS = (1, 5, 20, 50, 100)
LENGTHS = (64, 512, 4096, 32768)
BATCHES = (1, 8, 64, 256)
STEPS = 12  # of a batch, in one round


def summary(values: Sequence[float] | np.ndarray[Any, Any]) -> Spread:
    found = np.asarray(values, dtype=np.float64)
    median, p99, p999 = np.percentile(found, [50, 99, 99.9])
    return {"median": float(median), "p99": float(p99), "p999": float(p999), "count": len(found)}


def engines(fmt: str, kinds: Sequence[type[Engine]] = ENGINES) -> Iterator[Engine]:
    for kind in kinds:
        try:
            yield loaded(kind, fmt)
        except MissingPeer as missing:
            print(f"left out: {missing}", file=sys.stderr)


def rounds(seconds: float, least: int, most: int) -> Iterator[int]:
    """Numbers until the time is spent."""
    gc.collect()
    end = time.monotonic() + seconds
    for number in range(most):
        if number >= least and time.monotonic() > end:
            return
        yield number


# -- steps -------------------------------------------------------------------------------------------------------------


def _pass(accept: Callable[[int], object], fill: Callable[[], object], tokens: Sequence[int]) -> list[int]:
    """Nanoseconds of each step: a token, and the mask after it."""
    clock, out = time.perf_counter_ns, []
    for token in tokens:
        begin = clock()
        accept(token)
        fill()
        out.append(clock() - begin)
    return out


def steps(seconds: float) -> dict[str, Any]:
    """Latency by position in a call, states met before and in a first pass."""
    found: dict[str, Any] = {}
    for fmt in FORMATS:
        case = Case(fmt)
        kinds = [kind or "fixed" for kind, tokens in case.segments for _ in tokens]
        of_engine: dict[str, Any] = {}
        for engine in engines(fmt):
            compiled = engine.compile(engine.request(case))
            timed = [_pass(*engine.steps(engine.matcher(compiled)), case.tokens) for _ in rounds(seconds, 20, 1500)][5:]
            of_engine[engine.name] = _by_position(timed, kinds)
            if isinstance(engine, Twingram):
                timed = [_by_reference(engine, compiled, case.tokens) for _ in rounds(seconds, 20, 1500)][5:]
                of_engine["twingram, by reference"] = _by_position(timed, kinds)
                timed = [_with_deltas(engine, compiled, case.tokens) for _ in rounds(seconds, 20, 1500)][5:]
                of_engine["twingram, by reference, with deltas"] = _by_position(timed, kinds)
        found[fmt] = {"kinds": kinds, "engines": of_engine, "first pass": dict(_first_passes(fmt, seconds))}
    return found


def _by_reference(engine: Twingram, compiled: Any, tokens: Sequence[int]) -> list[int]:
    session = engine.matcher(compiled)
    return _pass(session.accept_token, session.mask, tokens)


def _with_deltas(engine: Twingram, compiled: Any, tokens: Sequence[int]) -> list[int]:
    session = engine.matcher(compiled)
    return _pass(lambda token: (session.accept_token(token), session.take_deltas()), session.mask, tokens)


def _by_position(timed: list[list[int]], kinds: Sequence[str]) -> dict[str, Any]:
    table = np.array(timed, dtype=np.float64)
    of_kind = {
        kind: summary(table[:, [at for at, other in enumerate(kinds) if other == kind]].ravel()) for kind in set(kinds)
    }
    return {
        "median": np.median(table, axis=0).tolist(), "p99": np.percentile(table, 99, axis=0).tolist(),
        "kinds": of_kind, "all": summary(table.ravel()),
    }  # fmt: skip


def _first_passes(fmt: str, seconds: float) -> Iterator[tuple[str, Spread]]:
    """The first call of a request that is compiled."""
    for engine in engines(fmt):
        out: list[int] = []
        for _ in rounds(seconds, 5, 100):
            case = Case(fmt)
            compiled = engine.compile(engine.request(case))
            out += _pass(*engine.steps(engine.matcher(compiled)), case.tokens)
        yield engine.name, summary(out)


# -- unseen requests ---------------------------------------------------------------------------------------------------


def cold(seconds: float) -> dict[str, Any]:
    """Compile and first mask, and the whole call, by number of tools. Names are new each time."""
    found: dict[str, Any] = {}
    for fmt in FORMATS:
        cells: dict[str, Any] = {}
        for engine in engines(fmt, (*ENGINES, XGrammarOneThread)):
            cells[engine.name] = {str(tools): _cold(engine, fmt, tools, seconds) for tools in TOOLS}
        found[fmt] = cells
    return found


def _cold(engine: Engine, fmt: str, tools: int, seconds: float) -> dict[str, Any]:
    with collector() as taken:
        return _cold_rounds(engine, fmt, tools, seconds, taken)


def _cold_rounds(engine: Engine, fmt: str, tools: int, seconds: float, taken: Callable[[], int]) -> dict[str, Any]:
    firsts, wholes, masks, alone = [], [], [], []
    clock = time.perf_counter_ns
    for _ in rounds(seconds, 3, 60):
        case = Case(fmt, tools)
        request, tokens = engine.request(case), case.tokens
        begin = clock()
        accept, fill = engine.steps(engine.matcher(engine.compile(request)))
        fill()
        firsts.append(clock() - begin)
        for token in tokens:
            accept(token)
            before, collected = clock(), taken()
            fill()
            masks.append(clock() - before)
            alone.append(masks[-1] - (taken() - collected))
        wholes.append(clock() - begin)
    return {
        "first": summary(firsts), "whole": summary(wholes), "tokens": len(tokens),
        "slowest mask": float(max(masks)), "slowest mask, collector aside": float(max(alone)),
    }  # fmt: skip


# -- parsing -----------------------------------------------------------------------------------------------------------


def parsing(seconds: float) -> dict[str, Any]:
    """Nanoseconds a token, fed one by one and all at once, by length: content, and one string of a call."""
    found: dict[str, Any] = {}
    for fmt in FORMATS:
        loaded_format, plain = tg.load_format(fmt), Case(fmt)
        each = len(plain.vocabulary.encode(PROSE * 8)) / 8
        cells: dict[str, Any] = {"content": {}, "string": {}}
        for length in LENGTHS:
            text = PROSE * max(1, round(length / each))
            opener = "" if fmt == "gemma4" else " to=user<|message|>"
            call = Case(fmt, note=text)
            for what, case, tokens in (
                ("content", plain, plain.vocabulary.encode(opener + text)), ("string", call, call.tokens),
            ):  # fmt: skip
                cells[what][str(length)] = _parse(loaded_format, case, tokens, seconds)
        mib = "A line of text of some length, which says nothing.\n" * 20_561
        once = []
        for _ in rounds(seconds, 4, 20):
            begin = time.perf_counter_ns()
            loaded_format.parse(mib if fmt == "gemma4" else f" to=user<|message|>{mib}")
            once.append(time.perf_counter_ns() - begin)
        found[fmt] = {"by length": cells, "one MiB at once": summary(once[1:])}
    return found


def _parse(fmt: tg.Format, case: Case, tokens: list[int], seconds: float) -> dict[str, Spread]:
    singles, blocks = [], []
    for number in rounds(seconds, 4, 200):
        feed = fmt.parser(case.definitions, case.vocabulary).feed_tokens
        begin = time.perf_counter_ns()
        for token in tokens:
            feed((token,))
        middle = time.perf_counter_ns()
        fmt.parse(tokens, case.definitions, vocabulary=case.vocabulary)
        end = time.perf_counter_ns()
        if number:
            singles.append((middle - begin) / len(tokens))
            blocks.append((end - middle) / len(tokens))
    return {"one by one": summary(singles), "at once": summary(blocks)}


# -- batches -----------------------------------------------------------------------------------------------------------

Stepper = Callable[[Sequence[int]], object]


def batches(seconds: float) -> dict[str, Any]:
    """A decode step of n sequences at different places of a call: all masks, then all tokens. Wall and CPU time."""
    found: dict[str, Any] = {}
    for fmt in FORMATS:
        case = Case(fmt)
        of_way: dict[str, Any] = {}
        for name, kind, make in _WAYS:
            try:
                engine = loaded(kind, fmt)
            except MissingPeer as missing:
                print(f"left out: {missing}", file=sys.stderr)
                continue
            compiled = engine.compile(engine.request(case))
            of_way[name] = {str(n): _batch(engine, compiled, make, case.tokens, n, seconds) for n in BATCHES}
        found[fmt] = of_way
    return found


def _batch(
    engine: Engine, compiled: Any, make: Callable[[Any, list[Any]], Stepper], tokens: list[int], n: int, seconds: float
) -> dict[str, Spread]:
    starts = [at * 7 % (len(tokens) - STEPS) for at in range(n)]
    walls, cpus = [], []
    for _ in rounds(seconds, 4, 200):
        matchers = _matchers(engine, compiled, n)
        for matcher, start in zip(matchers, starts, strict=True):
            accept, _ = engine.steps(matcher)
            for token in tokens[:start]:
                accept(token)
        step = make(engine, matchers)
        planned = [[tokens[start + at] for start in starts] for at in range(STEPS)]
        wall, cpu = time.perf_counter_ns(), time.process_time_ns()
        for wanted in planned:
            step(wanted)
        cpus.append((time.process_time_ns() - cpu) / STEPS)
        walls.append((time.perf_counter_ns() - wall) / STEPS)
    return {"wall": summary(walls[1:]), "cpu": summary(cpus[1:])}


def _matchers(engine: Engine, compiled: Any, n: int) -> list[Any]:
    if isinstance(engine, LLGuidance):
        compiled.reset()
        return [compiled.deep_copy() for _ in range(n)]
    return [engine.matcher(compiled) for _ in range(n)]


def _by_ids(_: Twingram, sessions: list[tg.Session]) -> Stepper:
    batch = tg.Batch(sessions)

    def step(tokens: Sequence[int]) -> object:
        batch.mask_ids()
        return batch.accept_tokens(tokens)

    return step


def _by_rows(engine: Twingram, sessions: list[tg.Session]) -> Stepper:
    batch, rows = tg.Batch(sessions), np.zeros((len(sessions), engine.rows.shape[1]), dtype=np.int32)

    def step(tokens: Sequence[int]) -> object:
        batch.fill_bitmask(rows)
        return batch.accept_tokens(tokens)

    return step


def _xgrammar_batch(engine: XGrammar, matchers: list[Any]) -> Stepper:
    many = engine.module.BatchGrammarMatcher()
    rows = engine.module.allocate_token_bitmask(len(matchers), len(vocabulary_of(engine.fmt)))

    def step(tokens: Sequence[int]) -> object:
        many.batch_fill_next_token_bitmask(matchers, rows)
        return many.batch_accept_token(matchers, list(tokens))

    return step


def _llguidance_batch(engine: LLGuidance, matchers: list[Any]) -> Stepper:
    arrays = import_module("llguidance.numpy")
    executor = engine.module.LLExecutor()
    placed = [(matcher, at) for at, matcher in enumerate(matchers)]
    rows = np.zeros((len(matchers), engine.rows.shape[1]), dtype=np.int32)

    def step(tokens: Sequence[int]) -> object:
        arrays.fill_next_token_bitmask_par(executor, placed, rows)
        return arrays.consume_token_par(executor, list(zip(matchers, tokens, strict=True)))

    return step


_WAYS: tuple[tuple[str, type[Engine], Callable[[Any, list[Any]], Stepper]], ...] = (
    ("twingram, ids", Twingram, _by_ids),
    ("twingram, rows", Twingram, _by_rows),
    ("xgrammar, rows", XGrammar, _xgrammar_batch),
    ("llguidance, rows", LLGuidance, _llguidance_batch),
)


# -- processes of their own --------------------------------------------------------------------------------------------

_CHILD = "from benchmarks.measures import child; child({!r}, {!r})"


def vocabularies(_: float) -> dict[str, Any]:
    """Loading, first mask and resident memory, each in a new process; ours without a cache, filling one, from it."""
    found: dict[str, Any] = {}
    for fmt in FORMATS:
        cells: dict[str, Any] = {}
        with tempfile.TemporaryDirectory() as folder:
            for what, cache, times in (("no cache", "0", 2), ("first load", folder, 1), ("from the cache", folder, 5)):
                cells[f"twingram, {what}"] = _medians([_alone(fmt, "twingram", cache) for _ in range(times)])
            for kind in ENGINES[1:]:
                found_here = _alone(fmt, kind.name, folder)
                if found_here is not None:
                    cells[kind.name] = found_here
        found[fmt] = cells
    return found


def _medians(runs: Sequence[dict[str, float] | None]) -> dict[str, float]:
    kept = [run for run in runs if run is not None]
    return {key: float(np.median([run[key] for run in kept])) for key in kept[0]}


def _alone(fmt: str, engine: str, cache: str) -> dict[str, float] | None:
    environment = {**os.environ, "TWINGRAM_CACHE": cache}
    run = [sys.executable, "-W", "ignore", "-c", _CHILD.format(fmt, engine)]
    done = subprocess.run(run, capture_output=True, text=True, env=environment, timeout=300, check=False)
    if done.returncode:
        print(f"left out: {engine}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _resident() -> float:
    """Bytes of memory that this process holds, where the system tells."""
    statm = Path("/proc/self/statm")
    return float(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else float("nan")


def child(fmt: str, name: str) -> None:
    """Runs in a process of its own: prints seconds and bytes as JSON."""
    kind = next(kind for kind in ENGINES if kind.name == name)
    if name != "twingram":
        vocabulary_of(fmt)  # theirs are built from the byte strings of ours, which is not timed
    before, begin = _resident(), time.perf_counter()
    engine = kind(fmt)
    loaded_at, memory = time.perf_counter(), _resident()
    case = Case(fmt)
    request, tokens = engine.request(case), case.tokens
    started = time.perf_counter()
    accept, fill = engine.steps(engine.matcher(engine.compile(request)))
    fill()
    first = time.perf_counter()
    for token in tokens:
        accept(token)
        fill()
    whole = time.perf_counter()
    found = {
        "load": loaded_at - begin, "first": first - started, "call": whole - started, "bytes": memory - before,
        "used bytes": _resident() - before,
    }  # fmt: skip
    if isinstance(engine, Twingram):
        kept = [engine.compile(engine.request(Case(fmt, 20))) for _ in range(20)]
        for constraint in kept:
            constraint.session().mask()
        found["a constraint of 20 tools"] = sum(constraint.memory_usage() for constraint in kept) / len(kept)
    print(json.dumps(found))


# -- speculation -------------------------------------------------------------------------------------------------------


def forced(data: Path, most: int) -> dict[str, Any]:
    """Of the tokens of calls that others wrote: how many are forced, so that no model has to be asked for them."""
    rows = []
    with gzip.open(data / "bfcl.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if row.get("valid_calls"):
                rows.append(row)
    found: dict[str, Any] = {}
    for fmt in FORMATS:
        vocabulary, totals = vocabulary_of(fmt), {"calls": 0, "tokens": 0, "forced": 0, "steps": 0}
        loaded_format = tg.load_format(fmt)
        for row in rows[:: max(1, len(rows) // most)]:
            calls = [(call["name"], call["arguments"]) for call in row["valid_calls"][:1] if call]
            if not calls or not all(spellable(arguments, fmt) for _, arguments in calls):
                continue
            try:
                constraint = loaded_format.constraint(row["tools"], "required", vocabulary=vocabulary)
            except tg.TwingramError:
                continue
            _follow(constraint.session(), vocabulary.encode(render_turn(fmt, calls)), totals)
        found[fmt] = totals
    return found


def _follow(session: tg.Session, tokens: Sequence[int], totals: dict[str, int]) -> None:
    at, count, steps = 0, 0, 0
    while at < len(tokens):
        jump = session.jump_forward()
        if jump and list(tokens[at : at + len(jump)]) == jump:
            session.accept_tokens(jump)
            at, count = at + len(jump), count + len(jump)
            continue
        if not session.accept_token(tokens[at]):
            return
        at, steps = at + 1, steps + 1
    totals["calls"] += 1
    totals["tokens"] += len(tokens)
    totals["forced"] += count
    totals["steps"] += steps


SECTIONS: dict[str, Callable[[float], dict[str, Any]]] = {
    "steps": steps, "cold": cold, "parse": parsing, "batch": batches, "vocabulary": vocabularies,
}  # fmt: skip
