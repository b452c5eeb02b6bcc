"""JSON Schemas that are in use: how many compile, how exactly, how fast.

    python -m benchmarks.schemas --data FOLDER [--sample N] [--sets NAME ...] [--details FILE]

`FOLDER` (or the environment variable TWINGRAM_DATA) holds `*.jsonl.gz` files. A row is a schema with instances
(`schema`, `tests: [{data, valid}]`), or a request with tools (`tools`, and `valid_calls` if there are any).

Each schema is compiled as the arguments of one tool, forced, under `additional_properties="schema"`, in each format.
What the report says of it is counted; then each instance is rendered in the format, by code that shares nothing with
the engine, and run through the constraint. The label of the data and the verdict of `jsonschema` (with its format
checks) are kept apart: an instance counts where both agree, and where they do not, both are counted.

A schema counts unless it is refused and no instance of it is a valid object: arguments are objects. It is *exact* if
nothing is narrowed or relaxed. *Wrong* is a valid instance that is refused although nothing is narrowed, or an invalid
one that is let through although nothing is relaxed; instances that the format cannot write are left out. Times are of
compiling and of the first mask together, in seconds of the processor, each schema once, in a process that has compiled
others before.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import json
import multiprocessing
import resource
import statistics
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import jsonschema
from tqdm import tqdm

import twingram as tg
from benchmarks.collector import collector
from benchmarks.inputs import SUFFIX, add_folder, folder, need_vocabularies
from benchmarks.schema_peers import PEERS, judge_peer
from tests.oracle.render import render_call, spellable
from tests.vocabularies import gemma, llama4
from twingram.schema.report import Finding

__all__ = ["main"]

FORMATS = ("gemma4", "atem")
HEADS = {"gemma4": "", "atem": " to=f<|message|>"}
_PATIENCE = 20.0  # seconds for one validator's verdict


@dataclass
class Row:
    """A schema, and instances with the label of the data."""

    set: str
    id: str
    schema: Any
    tests: list[tuple[Any, bool]]
    formats: bool = True  # whether `format` restricts


@dataclass
class Outcome:
    """What became of one row in one format."""

    set: str
    id: str
    format: str
    refused: str = ""
    narrowed: list[str] = field(default_factory=list)
    relaxed: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0
    collected: float = 0.0  # seconds of these that the collector of cyclic garbage took
    judging: float = 0.0  # seconds of all instances together
    memory: int = 0
    size: int = 0  # of the schema as JSON
    tested: bool = False  # whether there are instances
    hollow: bool = False  # no instance is a valid object, so that nothing is lost if it is refused

    @property
    def note(self) -> str:
        """What may explain its time."""
        if self.refused:
            return f"refused ({self.refused[:60]})"
        return f"{self.size / 1024:.0f} KiB of schema" + (", not exact" if not self.exact else "")

    @property
    def exact(self) -> bool:
        return not (self.refused or self.narrowed or self.relaxed)


# -- rows --------------------------------------------------------------------------------------------------------------


def rows_of(path: Path) -> Iterator[Row]:
    name = path.name.partition(".")[0]
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            row = json.loads(line)
            if "schema" in row:
                tests = [(test["data"], bool(test["valid"])) for test in row.get("tests", ())]
                yield Row(name, str(row.get("id", number)), row["schema"], tests, row.get("format_assertion", True))
            else:
                yield from _tools(name, str(row.get("id", number)), row)


def _tools(name: str, row_id: str, row: Mapping[str, Any]) -> Iterator[Row]:
    calls = [call for call in row.get("valid_calls") or () if call is not None]
    for tool in row["tools"]:
        body = tool.get("function", tool)
        schema = body.get("parameters", body.get("inputSchema", {"type": "object", "properties": {}}))
        tests = [(arguments, True) for called, arguments in map(_call, calls) if called == body["name"]]
        yield Row(name, f"{row_id}/{body['name']}", schema, tests)


def _call(call: Any) -> tuple[str, Any]:
    return call["name"], call["arguments"]


# -- one row -----------------------------------------------------------------------------------------------------------


@cache
def vocabulary_of(name: str) -> tg.Vocabulary:
    return gemma() if name == "gemma4" else llama4()


def judge(row: Row, name: str) -> Outcome:
    """Compile a row and run its instances."""
    out = Outcome(row.set, row.id, name, size=len(json.dumps(row.schema)), tested=bool(row.tests))
    out.hollow = not any(label and isinstance(data, dict) for data, label in row.tests)
    tools = [{"type": "function", "function": {"name": "f", "parameters": row.schema}}]
    constraint, findings = None, list[Finding]()
    begin = time.process_time()
    with collector() as taken:
        try:
            constraint = tg.load_format(name).constraint(
                tools, "required", vocabulary=vocabulary_of(name), additional_properties="schema",
                parallel_tool_calls=False, reasoning="forbid", check_formats=row.formats,
            )  # fmt: skip
            constraint.session().mask()
            findings = constraint.report()  # in the time: plain schemas are compiled when reached, or told of
        except tg.TwingramError as error:
            constraint, out.refused = None, _reason(error)
    out.seconds, out.collected = time.process_time() - begin, taken() / 1e9
    if constraint is None:
        return out
    out.memory = constraint.memory_usage()
    for finding in findings:
        into = {"narrowed": out.narrowed, "relaxed": out.relaxed}.get(finding.status)
        if into is not None:
            into.append(f"{finding.keyword}: {finding.reason} at {finding.path}")
    begin = time.process_time()
    for at, (data, label) in enumerate(row.tests):
        _instance(out, constraint, row, at, data, label)
    out.judging = time.process_time() - begin
    return out


def _reason(error: tg.TwingramError) -> str:
    if isinstance(error, tg.SchemaError):
        return f"{error.keyword or 'schema'}: {error.message}"
    return f"{type(error).__name__}: {str(error).splitlines()[0][:120]}"


def _instance(out: Outcome, constraint: tg.Constraint, row: Row, at: int, data: Any, label: bool) -> None:
    if not isinstance(data, dict):
        out.counts["no object"] += 1
        return
    data = _integral(data)
    verdict = _verdict(row, at)
    if verdict is None or verdict is not label:
        out.counts["judges differ"] += 1
        return
    if not spellable(data, out.format):
        out.counts["not spellable"] += 1
        return
    text = HEADS[out.format] + render_call(out.format, "f", data, sort=False)
    accepted = _accepts(constraint, text)
    if accepted and not label and _read(out.format, text, row.schema) != data:
        out.counts["not spellable"] += 1  # the text stands for another value, which is valid
        return
    kind = "valid" if label else "invalid"
    out.counts[f"{kind}"] += 1
    out.counts[f"{kind} {'accepted' if accepted else 'rejected'}"] += 1
    claim = not (out.narrowed if label else out.relaxed)
    if claim:
        out.counts[f"{kind} claimed"] += 1
        if accepted is not label:
            out.wrong.append(f"{kind} instance {at}")


def _read(name: str, text: str, schema: Any) -> Any:
    """The arguments that a text stands for."""
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    calls = tg.load_format(name).parse(text, tools).calls
    return calls[0].value if calls else None


def _integral(value: Any) -> Any:
    """Integers without a fraction, as models write them."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    if isinstance(value, dict):
        return {key: _integral(item) for key, item in value.items()}
    return [_integral(item) for item in value] if isinstance(value, list) else value


_VERDICTS: dict[tuple[str, str, int], bool | None] = {}


def _verdict(row: Row, at: int) -> bool | None:
    """What `jsonschema` says of an instance; None if it cannot say."""
    key = (row.set, row.id, at)
    if key not in _VERDICTS:
        cls = jsonschema.validators.validator_for(row.schema, default=jsonschema.Draft202012Validator)
        validator = cls(row.schema, format_checker=cls.FORMAT_CHECKER if row.formats else None)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                _VERDICTS[key] = validator.is_valid(row.tests[at][0])
        except Exception:  # noqa: BLE001  a schema that is none: whatever the validator raises, it has no verdict
            _VERDICTS[key] = None
    return _VERDICTS[key]


def _accepts(constraint: tg.Constraint, text: str) -> bool:
    alphabet = constraint.binding.alphabet
    symbols: list[int] = []
    markers = sorted(alphabet.symbolic, key=len, reverse=True)
    rest = text
    while rest:
        at, marker = min(((rest.find(m), m) for m in markers if m in rest), default=(len(rest), ""))
        symbols += rest[:at].encode()
        if marker:
            symbols.append(256 + alphabet.markers.index(marker))
        rest = rest[at + len(marker) :]
    found = constraint.machine.start.run(symbols)
    return found is not None and bool(found.state.first & constraint.end_bits)


# -- many rows ---------------------------------------------------------------------------------------------------------


def _work(numbered: tuple[int, Row], peers: Sequence[str] = ()) -> tuple[int, list[Outcome]]:
    number, row = numbered
    return number, [judge(row, name) for name in FORMATS] + [judge_by_peer(row, name) for name in peers]


def judge_by_peer(row: Row, name: str) -> Outcome:
    """What another engine makes of a row in plain JSON."""
    out = Outcome(row.set, row.id, name, tested=bool(row.tests))
    out.hollow = not any(label and isinstance(data, dict) for data, label in row.tests)
    agreed = [
        (_integral(data), label) for at, (data, label) in enumerate(row.tests)
        if isinstance(data, dict) and _verdict(row, at) is label
    ]  # fmt: skip
    out.counts = judge_peer(name, row.schema, agreed)
    if not out.counts["compiled"]:
        out.refused = "no answer in time" if out.counts["no answer"] else "refused"
    return out


def _ready() -> None:
    """Load what is no schema's own cost."""
    for name in FORMATS:
        judge(Row("", "", {"type": "object", "properties": {"a": {}}}, []), name)
    gc.collect()
    gc.freeze()  # the rows of all sets, which lie in each process: Python's collector would look through them each time


def run(rows: Sequence[Row], processes: int, peers: Sequence[str] = ()) -> list[Outcome]:
    """Judge all rows in parallel; outcomes in the order of the rows."""
    with multiprocessing.Pool(processes, initializer=_ready, maxtasksperchild=100) as pool:
        judged = pool.imap_unordered(partial(_work, peers=peers), enumerate(rows), chunksize=4)
        results = sorted(tqdm(judged, total=len(rows), unit="schema", file=sys.stderr), key=lambda each: each[0])
        return [outcome for _, outcomes in results for outcome in outcomes]


# -- tables ------------------------------------------------------------------------------------------------------------

_COLUMNS = (
    "set", "format", "of objects", "compiled", "refused", "exact", "narrowed", "relaxed",
    "valid accepted", "invalid rejected", "wrong", "judges differ", "not spellable",
)  # fmt: skip


def table(outcomes: Sequence[Outcome]) -> str:
    lines = ["| " + " | ".join(_COLUMNS) + " |", "|" + "---|" * len(_COLUMNS)]
    for name in dict.fromkeys(o.set for o in outcomes):
        for fmt in FORMATS:
            lines.append("| " + " | ".join(_cells([o for o in outcomes if (o.set, o.format) == (name, fmt)])) + " |")
    return "\n".join(lines)


def _cells(some: Sequence[Outcome]) -> list[str]:
    some = [o for o in some if not (o.refused and o.hollow)] or list(some)
    counts: Counter[str] = sum((o.counts for o in some), Counter())
    compiled = [o for o in some if not o.refused]
    wrong = Counter(text.partition(" ")[0] for o in some for text in o.wrong)
    return [
        some[0].set, some[0].format, str(len(some)), _share(len(compiled), len(some)), str(len(some) - len(compiled)),
        _share(sum(o.exact for o in some), len(some)), str(sum(bool(o.narrowed) for o in some)),
        str(sum(bool(o.relaxed) for o in some)),
        _share(counts["valid claimed"] - wrong["valid"], counts["valid claimed"]),
        _share(counts["invalid claimed"] - wrong["invalid"], counts["invalid claimed"]), str(sum(wrong.values())),
        str(counts["judges differ"]), str(counts["not spellable"]),
    ]  # fmt: skip


def _share(part: int, whole: int) -> str:
    return "-" if not whole else f"{part}/{whole} ({100 * part / whole:.1f} %)"


def comparison(outcomes: Sequence[Outcome]) -> str:
    """All engines by the same rows: what compiles, and how the instances of that are judged, claimed or not."""
    lines = ["| set | engine | compiled | valid accepted | invalid rejected |", "|---|---|---|---|---|"]
    for name in dict.fromkeys(o.set for o in outcomes):
        for engine in dict.fromkeys(o.format for o in outcomes if o.set == name):
            some = [o for o in outcomes if (o.set, o.format) == (name, engine) and not (o.hollow and o.tested)]
            counts: Counter[str] = sum((o.counts for o in some), Counter())
            lines.append(
                f"| {name} | {engine} | {_share(sum(not o.refused for o in some), len(some))} "
                f"| {_share(counts['valid accepted'], counts['valid'])} "
                f"| {_share(counts['invalid rejected'], counts['invalid'])} |"
            )
    return "\n".join(lines)


def timing(outcomes: Sequence[Outcome]) -> str:
    lines = []
    for fmt in FORMATS:
        times = sorted(o.seconds * 1000 for o in outcomes if o.format == fmt)
        memory = [o.memory / 1024 for o in outcomes if o.format == fmt and not o.refused]
        alone = sorted((o.seconds - o.collected) * 1000 for o in outcomes if o.format == fmt)
        cut = int(0.99 * (len(times) - 1))
        lines.append(
            f"{fmt}: compile and first mask median {statistics.median(times):.2f} ms, 99 % {times[cut]:.1f} ms, "
            f"most {times[-1]:.0f} ms (the garbage collector aside {statistics.median(alone):.2f}, {alone[cut]:.1f}, "
            f"{alone[-1]:.0f}); memory median {statistics.median(memory):.0f} KiB, most {max(memory):.0f} KiB"
        )
    slow = sorted(outcomes, key=lambda o: -o.seconds)[:10]
    lines += ["", "Slowest ten:", ""]
    lines += [f"* {o.seconds * 1000:.0f} ms: {o.set} {o.id}, {o.format}, {o.note}" for o in slow]
    return "\n".join(lines)


def reasons(outcomes: Sequence[Outcome], most: int = 40) -> str:
    """Why schemas are not exact, most frequent first."""
    found: Counter[str] = Counter()
    for o in outcomes:
        texts = [f"refused {o.refused}"] if o.refused else []
        texts += [f"narrowed {text}" for text in o.narrowed] + [f"relaxed {text}" for text in o.relaxed]
        found.update({f"{o.format} {text.partition(' at $')[0]}" for text in texts})
    return "\n".join(f"{count:6} {text}" for text, count in found.most_common(most))


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.schemas", description=(__doc__ or "").splitlines()[0])
    add_folder(parser)
    parser.add_argument("--sets", nargs="*", default=[], metavar="NAME", help="files, without their suffix (all)")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="every row up to N a set, evenly spread")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--peers", nargs="*", choices=sorted(PEERS), default=[], help="other engines to compare with")
    parser.add_argument("--details", type=Path, metavar="FILE", help="write every outcome as a line of JSON")
    arguments = parser.parse_args(argv)
    arguments.data = folder(parser, arguments.data, arguments.sets)
    need_vocabularies(parser)
    rows: list[Row] = []
    for path in sorted(arguments.data.glob(f"*{SUFFIX}")):
        if not arguments.sets or path.name.partition(".")[0] in arguments.sets:
            mine = list(rows_of(path))
            stride = max(1, len(mine) // arguments.sample) if arguments.sample else 1
            rows += mine[::stride]
    everyone = run(rows, arguments.processes, arguments.peers)
    outcomes = [outcome for outcome in everyone if outcome.format in FORMATS]
    if arguments.details:
        with arguments.details.open("w", encoding="utf-8") as file:
            for outcome in everyone:
                file.write(json.dumps(outcome.__dict__, ensure_ascii=False) + "\n")
    print(table(outcomes), comparison(everyone), timing(outcomes), "Why not exact:", reasons(outcomes), sep="\n\n")
    wrong = [f"{o.set} {o.id} {o.format}: {text}" for o in outcomes for text in o.wrong]
    print(f"\nWrong: {len(wrong)}", *wrong[:60], sep="\n")
    print(f"peak memory of one process {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024} MiB")


if __name__ == "__main__":
    main()
