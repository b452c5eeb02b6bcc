"""Tools that are in use: random calls through their masks, and calls that others wrote.

    python -m benchmarks.tools --data FOLDER [--sample N] [--sets NAME ...] [--walks N] [--landing N] [--kept FILE]

`FOLDER` (or the environment variable TWINGRAM_DATA) holds `mcp_tools.jsonl.gz`, `agent_tools.jsonl.gz` and
`bfcl.jsonl.gz`. A row is a request: `tools`, and `valid_calls` (`{name, arguments}`) if there are any. Each row runs in
each format, on that format's real vocabulary (see tests/vocabularies.py).

* *Compiled*: a tool is compiled if it can be named in `tool_choice`. Refused tools, and optional properties that are
  left out because nothing satisfies them, are listed.
* *Walks*: `--walks` random walks a tool, at most `--most` a row (or two a tool, if that is more), to the stop token.
  Half of them run under `required` with all tools of the row, half under a named tool, each in turn. The arguments of
  all calls must satisfy `jsonschema` (formats are checked), but for keywords that the report calls relaxed (counted as
  *aside*), and parsing the text and the tokens must give the session's message.
* *Written calls*: each of the valid calls, rendered by code that shares nothing with the engine, must be accepted under
  `required` and under its named choice, as the tokenizer splits it and one byte at a time, and read back equal. Where
  a call holds members that the schema does not declare, `additional_properties="schema"` is used (*open*).

`--landing N` runs, instead, N tools under budgets: see landing.py.

The status is 1 if anything failed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from jsonschema.protocols import Validator

import twingram as tg
from tests.oracle.render import render_turn, spellable
from tests.walks import Walker, call_ids, validator_of

from .inputs import SUFFIX, add_folder, folder, need_vocabularies
from .landing import BUDGETS, FORMATS, Landed, Landing, land
from .pool import run

__all__ = ["main"]

SETS = ("agent_tools", "mcp_tools", "bfcl")
_SOFT = 40  # tokens after which a walk makes for the end

Tool = Mapping[str, Any]


@dataclass(frozen=True)
class Row:
    """A request, and calls that are valid answers to it."""

    set: str
    id: str
    tools: Sequence[Tool]
    calls: Sequence[tuple[str, dict[str, Any]]] = ()


@dataclass(frozen=True)
class Job:
    row: Row
    format: str
    walks: int
    seed: int

    @property
    def key(self) -> str:
        return f"{self.row.set} {self.row.id} {self.format} {self.walks} {self.seed}"


@dataclass
class Outcome:
    """What became of a row in a format."""

    set: str
    format: str
    id: str = ""
    counts: Counter[str] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    unspelt: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0


# -- rows --------------------------------------------------------------------------------------------------------------


def rows_of(path: Path) -> Iterator[Row]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            row = json.loads(line)
            calls = [(call["name"], call["arguments"]) for call in row.get("valid_calls") or () if call]
            yield Row(path.name.partition(".")[0], str(row.get("id", number)), row["tools"], calls)


def _name(tool: Tool) -> str:
    return str(tool.get("function", tool)["name"])


def _schema(tool: Tool) -> Any:
    body = tool.get("function", tool)
    found = body.get("parameters", body.get("inputSchema"))
    return {"type": "object", "properties": {}} if found is None else found


def _named(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


class Downhill(Walker):
    """Goes downhill by the masks that end a turn inside a budget, instead of trying tokens one by one."""

    def _downhill(self, session: tg.Session) -> list[int]:
        constraint = session.constraint
        left = constraint.distances.of_state(session.state)
        return constraint.masks.within(session.state, constraint.distances, left - 1).allowed().tolist()


# -- one row -----------------------------------------------------------------------------------------------------------


class Judge:
    """Runs the checks of one row in one format and counts what they find."""

    def __init__(self, job: Job) -> None:
        self.row, self.name, self.job = job.row, job.format, job
        self.format, self.vocabulary = tg.load_format(job.format), FORMATS[job.format]()
        self.schemas = {_name(tool): _schema(tool) for tool in job.row.tools}
        self.out = Outcome(job.row.set, job.format, job.row.id)
        self.place = f"{job.row.set} {job.row.id} {job.format}"
        self.relaxed: dict[str, set[str]] = {}  # keywords, by tool
        self.compiled: list[str] = []

    def run(self) -> Outcome:
        begin = time.process_time()
        self._compile()
        if self.compiled:
            self._walks()
            self._written()
        self.out.seconds = time.process_time() - begin
        return self.out

    def _constraint(self, choice: Any, **options: Any) -> tg.Constraint:
        return self.format.constraint(self.row.tools, choice, vocabulary=self.vocabulary, **options)

    def _fail(self, text: str) -> None:
        self.out.failures.append(f"{self.place}: {text}")

    def _compile(self) -> None:
        self.out.counts["rows"] += 1
        for name in self.schemas:
            self.out.counts["tools"] += 1
            try:
                findings = self._constraint(_named(name)).report()
            except tg.TwingramError as error:
                self.out.refused.append(f"{self.place}: {name}: {str(error).splitlines()[0]}")
                continue
            self.compiled.append(name)
            self.relaxed[name] = {finding.keyword for finding in findings if finding.status == "relaxed"}
            for finding in findings:
                if finding.status == "refused":
                    self.out.left_out.append(f"{self.place}: {name} {finding.path}: {finding.reason}")
        self.out.counts["compiled"] += len(self.compiled)

    # walks

    def _walks(self) -> None:
        rng = Random(f"{self.job.seed} {self.place}")
        walker = Downhill(self.vocabulary, rng, soft=_SOFT)
        names, half = self.compiled, self.job.walks // 2
        shares = {name: half // len(names) + (at < half % len(names)) for at, name in enumerate(names)}
        for name, walks in {"": self.job.walks - half, **shares}.items():
            constraint = self._constraint(_named(name) if name else "required")
            for _ in range(walks):
                session = constraint.session(call_id=call_ids())
                try:
                    tokens = walker.walk(session)
                except AssertionError as error:
                    self._fail(f"walk {name}: {error} after {session.text!r}")
                else:
                    self.out.counts["walks"] += 1
                    self._read(session, tokens, name)

    def _read(self, session: tg.Session, tokens: list[int], name: str) -> None:
        message, text = session.message, session.text.decode()
        if not message.calls or message.errors or message.incomplete_calls:
            self._fail(f"walk {name}: no whole call in {text!r}")
        if name and {call.name for call in message.calls} != {name}:
            self._fail(f"walk {name}: called {[call.name for call in message.calls]}")
        for call in message.calls:
            self._judge(call)
        by_text = self.format.parse(text, self.row.tools, call_id=call_ids())
        by_token = self.format.parse(tokens, self.row.tools, vocabulary=self.vocabulary, call_id=call_ids())
        if by_text == message and by_token == message:
            self.out.counts["read equal"] += 1
        else:
            self._fail(f"walk {name}: parsed unlike the session's message: {text!r}")

    def _judge(self, call: tg.Call) -> None:
        self.out.counts["calls"] += 1
        errors = list(_validator(json.dumps(self.schemas[call.name])).iter_errors(call.value))
        firm = [error for error in errors if error.validator not in self.relaxed[call.name]]
        if firm:
            self._fail(f"{call.name}: {firm[0].message[:200]} in {call.arguments[:300]}")
        else:
            self.out.counts["aside" if errors else "valid"] += 1

    # calls that others wrote

    def _written(self) -> None:
        for name, arguments in self.row.calls:
            self.out.counts["written"] += 1
            if not spellable(arguments, self.name, self.schemas[name]):
                self.out.unspelt.append(f"{self.place}: {name} {json.dumps(arguments, ensure_ascii=False)[:200]}")
                continue
            text = render_turn(self.name, [(name, arguments)])
            options: dict[str, Any] = {}
            if undeclared(self.schemas[name], arguments):
                self.out.counts["open"] += 1
                options["additional_properties"] = "schema"
            found = [self._accept(choice, tokens, name, arguments, options)
                     for choice in ("required", _named(name)) for tokens in self._splits(text)]  # fmt: skip
            parsed = self.format.parse(text, self.row.tools).calls
            if all(found) and [_plain(call.value) for call in parsed] == [_plain(arguments)]:
                self.out.counts["written accepted"] += 1
            else:
                self._fail(f"written call {found}: {text!r}")

    def _accept(
        self, choice: Any, tokens: list[int], name: str, arguments: dict[str, Any], options: dict[str, Any]
    ) -> str:
        """The text that was not accepted or not read back equal is an empty answer."""
        session = self._constraint(choice, **options).session()
        if session.accept_tokens(tokens) != len(tokens) or not session.is_accepting:
            return ""
        calls = [(call.name, _plain(call.value)) for call in session.message.calls]
        return "equal" if calls == [(name, _plain(arguments))] else ""

    def _splits(self, text: str) -> tuple[list[int], list[int]]:
        """As the tokenizer splits it, and one byte at a time."""
        split, single = self.vocabulary.encode(text), _bytes(self.name)
        slow = [self._spelt(token, single) for token in split]
        return split, [token for tokens in slow for token in tokens]

    def _spelt(self, token: int, single: Mapping[int, int]) -> list[int]:
        special = self.vocabulary.is_special(token)
        return [token] if special else [single[byte] for byte in self.vocabulary.token_bytes(token)]


def _plain(value: Any) -> str:
    """Equal texts for equal values only: 1, 1.0 and true differ."""
    return json.dumps(value, sort_keys=True)


@cache
def _validator(schema: str) -> Validator:
    return validator_of(json.loads(schema), formats=True)


@cache
def _bytes(name: str) -> dict[int, int]:
    """The token of each byte alone."""
    vocabulary = FORMATS[name]()
    ordinary = [token for token in range(len(vocabulary)) if not vocabulary.is_special(token)]
    spelt = [(vocabulary.token_bytes(token), token) for token in reversed(ordinary)]
    return {data[0]: token for data, token in spelt if len(data) == 1}


def undeclared(schema: Any, value: Any) -> bool:
    """Whether some object holds a member that its schema, where it lists properties, does not list."""
    if not isinstance(schema, Mapping):
        return False
    if isinstance(value, list):
        return any(undeclared(schema.get("items"), item) for item in value)
    listed = schema.get("properties")
    if not isinstance(value, Mapping) or not listed:
        return False
    return any(key not in listed or undeclared(listed[key], value[key]) for key in value)


# -- many rows ---------------------------------------------------------------------------------------------------------


def _work(job: Job) -> Outcome:
    return Judge(job).run()


# -- tables ------------------------------------------------------------------------------------------------------------

_COLUMNS = (
    "set", "format", "rows", "tools", "compiled", "refused", "properties left out", "walks", "their calls", "valid",
    "aside", "read equal", "written calls", "not spellable", "open", "accepted and equal", "failures", "CPU s",
)  # fmt: skip


def table(outcomes: Sequence[Outcome]) -> str:
    lines = ["| " + " | ".join(_COLUMNS) + " |", "|" + "---|" * len(_COLUMNS)]
    for name in (name for name in SETS if any(o.set == name for o in outcomes)):
        for fmt in FORMATS:
            some = [o for o in outcomes if (o.set, o.format) == (name, fmt)]
            if some:
                lines.append("| " + " | ".join(_cells(some)) + " |")
    return "\n".join(lines)


def _cells(some: Sequence[Outcome]) -> list[str]:
    counts: Counter[str] = sum((o.counts for o in some), Counter())
    refused, left_out, unspelt, failures = (
        sum(len(getattr(o, what)) for o in some) for what in ("refused", "left_out", "unspelt", "failures")
    )
    numbers = (
        counts["rows"], counts["tools"], counts["compiled"], refused, left_out, counts["walks"], counts["calls"],
        counts["valid"], counts["aside"], counts["read equal"], counts["written"], unspelt, counts["open"],
        counts["written accepted"], failures, round(sum(o.seconds for o in some)),
    )  # fmt: skip
    return [some[0].set, some[0].format, *map(str, numbers)]


def slowest(outcomes: Sequence[Outcome], most: int = 5) -> str:
    found = sorted(outcomes, key=lambda o: -o.seconds)[:most]
    lines = (f"* {o.seconds:.1f} s: {o.set} {o.id} {o.format}, {o.counts['tools']} tools" for o in found)
    return "\n".join(["Slowest rows:", *lines])


def listed(title: str, texts: Sequence[str], most: int = 80) -> str:
    more = [f"... and {len(texts) - most} more"] if len(texts) > most else []
    return "\n".join([f"{title}: {len(texts)}", *(f"* {text}" for text in sorted(texts)[:most]), *more])


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tools", description=(__doc__ or "").splitlines()[0])
    add_folder(parser)
    parser.add_argument("--sets", nargs="*", default=SETS, choices=SETS, metavar="NAME", help=f"of {', '.join(SETS)}")
    parser.add_argument("--formats", nargs="*", default=list(FORMATS), choices=list(FORMATS), metavar="NAME")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="N rows a set, evenly spread (default: all)")
    parser.add_argument("--walks", type=int, default=20, metavar="N", help="walks a tool (20)")
    parser.add_argument("--most", type=int, default=200, metavar="N", help="walks a row at most (200)")
    parser.add_argument("--landing", type=int, default=0, metavar="N", help="N tools under budgets, instead")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kept", type=Path, metavar="FILE", help="keep outcomes here; those in it are not run again")
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="0: the table of what is kept (2)")
    asked = parser.parse_args(argv)
    asked.data = folder(parser, asked.data, asked.sets)
    need_vocabularies(parser, asked.formats)
    if asked.landing:
        return _land(asked)
    jobs = list(_jobs(asked))
    outcomes = run(_work, jobs, Outcome, asked.processes, asked.kept)
    print(f"{len(outcomes)} of {len(jobs)} rows and formats\n\n{table(outcomes)}")
    lists = {"Refused tools": "refused", "Properties left out": "left_out", "Written calls that a format cannot spell":
             "unspelt", "Failures": "failures"}  # fmt: skip
    for title, what in lists.items():
        print("", listed(title, [text for o in outcomes for text in getattr(o, what)]), sep="\n")
    print("", slowest(outcomes), sep="\n")
    return int(any(o.failures for o in outcomes))


def _jobs(asked: argparse.Namespace) -> Iterator[Job]:
    for name in asked.sets:
        rows = list(rows_of(asked.data / f"{name}{SUFFIX}"))
        stride = max(1, len(rows) // asked.sample) if asked.sample else 1
        for row in rows[::stride]:
            walks = min(asked.walks * len(row.tools), max(asked.most, 2 * len(row.tools)))
            for fmt in asked.formats:
                yield Job(row, fmt, walks, asked.seed)


def _land(asked: argparse.Namespace) -> int:
    """The line of `--landing`: tools spread evenly over all that the sets have, each in each format."""
    rows = [row for name in asked.sets for row in rows_of(asked.data / f"{name}{SUFFIX}")]
    tools = [(row, tool) for row in rows for tool in row.tools]
    some = [tools[at * len(tools) // asked.landing] for at in range(min(asked.landing, len(tools)))]
    jobs = [
        Landing(f"{row.set} {row.id} {fmt} {_name(tool)}", fmt, row.tools, _name(tool), _schema(tool), asked.seed)
        for row, tool in some
        for fmt in asked.formats
    ]
    found = run(land, jobs, Landed, asked.processes, asked.kept)
    print(
        f"{len(some)} tools of {len(tools)}, budgets from the least to {max(BUDGETS)} more: {len(found)} of {len(jobs)}"
    )
    for fmt in asked.formats:
        mine = [landed for landed in found if landed.format == fmt]
        counts: Counter[str] = sum((landed.counts for landed in mine), Counter())
        seconds = round(sum(landed.seconds for landed in mine))
        print(f"{fmt}: " + ", ".join(f"{what} {number}" for what, number in counts.items()) + f", CPU s {seconds}")
    failures = [text for landed in found for text in landed.failures]
    print("", listed("Failures", failures), sep="\n")
    return int(bool(failures))


if __name__ == "__main__":
    raise SystemExit(main())
