"""The report on speed: measures everything, and writes the tables and charts of docs/performance.md.

    python -m benchmarks.report                     # about five minutes; nothing else should run meanwhile
    python -m benchmarks.report --seconds 0.2       # a rehearsal
    python -m benchmarks.report --only batch        # one section anew, the others from the last run
    python -m benchmarks.report --data FOLDER       # also the share of forced tokens, over calls that others wrote

Written are docs/performance.json (all numbers), docs/performance/*.svg, and, in docs/performance.md, what stands
between the two `generated` marks; the text around it is left as it is.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tqdm import tqdm

from . import measures
from .inputs import folder, need_vocabularies
from .plots import Chart, Series

DOCS = Path(__file__).resolve().parents[1] / "docs"
BEGIN, END = "<!-- generated: begin -->", "<!-- generated: end -->"
OURS = "twingram"
US, MS, SECOND, MIB = 1e3, 1e6, 1e9, float(1 << 20)
Row = Sequence[str]


# -- what it ran on ----------------------------------------------------------------------------------------------------


def machine() -> dict[str, Any]:
    found: dict[str, Any] = {
        "python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}",
        "cpus": os.cpu_count(), "cpu": _cpu(), "load before": round(os.getloadavg()[0], 2),
    }  # fmt: skip
    for package in ("twingram", "numpy", "tokenizers", "xgrammar", "llguidance", "torch"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor())


# -- tables ------------------------------------------------------------------------------------------------------------


def table(head: Row, rows: Sequence[Row]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def number(value: float, unit: float) -> str:
    scaled = value / unit
    return f"{scaled:,.0f}" if scaled >= 1000 else f"{scaled:.3g}"


def ratio(value: float, ours: float | None) -> str:
    return "" if not ours else f"{value / ours:.2f}"


def both(cell: Mapping[str, float], unit: float) -> str:
    return f"{number(cell['median'], unit)} ({number(cell['p99'], unit)})"


def steps_tables(data: Mapping[str, Any]) -> Iterator[str]:
    for fmt, found in data.items():
        yield f"### {fmt}: steps of a call, in microseconds\n"
        kinds = [kind for kind in ("fixed", "key", "number", "string") if kind in found["kinds"]]
        head = ["engine", *(f"{kind} (p99)" for kind in kinds), "all", "p99", "p99.9", "ratio"]
        ours = found["engines"].get(OURS, {}).get("all", {}).get("median")
        rows = []
        for name, cell in found["engines"].items():
            of_kind = [both(cell["kinds"][kind], US) for kind in kinds]
            all_steps = [number(cell["all"][key], US) for key in ("median", "p99", "p999")]
            rows.append([name, *of_kind, *all_steps, ratio(cell["all"]["median"], ours)])
        yield table(head, rows)
        yield f"\n![{fmt}: latency by position in a call](performance/steps-{fmt}.svg)\n"
        yield "First pass of a compiled request, in microseconds a step:\n"
        ours = found["first pass"].get(OURS, {}).get("median")
        rows = [
            [name, *(number(cell[key], US) for key in ("median", "p99", "p999")), ratio(cell["median"], ours)]
            for name, cell in found["first pass"].items()
        ]
        yield table(["engine", "median", "p99", "p99.9", "ratio"], rows) + "\n"


def cold_tables(data: Mapping[str, Any]) -> Iterator[str]:
    for fmt, engines in data.items():
        counts = list(next(iter(engines.values())))
        for key, what in (("first", "compile and first mask"), ("whole", "compile and a whole call")):
            yield f"### {fmt}: unseen request, {what}, in milliseconds, by number of tools: median (p99)\n"
            rows = [[name, *(both(cells[n][key], MS) for n in counts)] for name, cells in engines.items()]
            yield table(["engine", *counts], rows) + "\n"
        slowest = []
        for name, cells in engines.items():
            worst, alone = (max(cells[n][f"slowest mask{what}"] for n in counts) for what in ("", ", collector aside"))
            slowest.append(f"{name} {number(worst, MS)} ({number(alone, MS)})")
        what = "Slowest single mask after the first one, in milliseconds (what the garbage collector took in it aside)"
        yield f"{what}: {', '.join(slowest)}.\n"
        yield f"![{fmt}: compile and first mask by number of tools](performance/cold-{fmt}.svg)\n"


def parse_tables(data: Mapping[str, Any]) -> Iterator[str]:
    lengths = list(next(iter(data.values()))["by length"]["content"])
    rows = []
    for fmt, found in data.items():
        for what, cells in found["by length"].items():
            for fed in ("one by one", "at once"):
                shown = [number(cells[length][fed]["median"], US) for length in lengths]
                rows.append([fmt, what, fed, *shown])
    yield "### Parsing tokens, in microseconds a token, by length in tokens (medians)\n"
    yield table(["format", "what", "fed", *lengths], rows) + "\n"
    once = [f"{fmt} {number(found['one MiB at once']['median'], MS)} ms" for fmt, found in data.items()]
    yield f"One MiB of content, as text, at once: {', '.join(once)}.\n"
    yield "![cost of parsing by length](performance/parse.svg)\n"


def batch_tables(data: Mapping[str, Any]) -> Iterator[str]:
    for fmt, ways in data.items():
        sizes = list(next(iter(ways.values())))
        yield f"### {fmt}: a decode step of a batch, in microseconds: CPU time (wall time), medians\n"
        rows = []
        for name, cells in ways.items():
            times = [[number(cells[n][clock]["median"], US) for clock in ("cpu", "wall")] for n in sizes]
            rows.append([name, *(f"{cpu} ({wall})" for cpu, wall in times)])
        yield table(["way", *(f"{n} sequences" for n in sizes)], rows) + "\n"
        yield f"![{fmt}: CPU time of a decode step](performance/batch-{fmt}.svg)\n"


_BYTES = ("bytes", "used bytes")


def vocabulary_tables(data: Mapping[str, Any]) -> Iterator[str]:
    yield "### Loading a vocabulary, each in a new process\n"
    rows = []
    for fmt, cells in data.items():
        for name, cell in cells.items():
            times = [number(cell[key] * SECOND, MS) for key in ("first", "call")]
            rows.append([fmt, name, f"{cell['load']:.2f}", *times, *(number(cell[k], MIB) for k in _BYTES)])
    named = ["load, s", "first request and mask, ms", "its call, ms"]
    head = ["format", "engine", *named, "loaded, MiB", "after a call, MiB"]
    yield table(head, rows) + "\n"
    for fmt, cells in data.items():
        held = cells["twingram, from the cache"].get("a constraint of 20 tools")
        if held:
            yield f"A constraint of 20 tools holds about {held / 1024:.0f} KiB ({fmt}).\n"


def forced_tables(data: Mapping[str, Any]) -> Iterator[str]:
    yield "### Forced tokens in calls that others wrote\n"
    rows = []
    for fmt, found in data.items():
        share = f"{100 * found['forced'] / max(found['tokens'], 1):.1f} %"
        rows.append([fmt, *(str(found[key]) for key in ("calls", "tokens", "forced")), share, str(found["steps"])])
    yield table(["format", "calls", "tokens", "forced by `jump_forward`", "share", "model steps left"], rows) + "\n"


TABLES = {
    "steps": ("Steps", steps_tables), "cold": ("Unseen requests", cold_tables), "parse": ("Parsing", parse_tables),
    "batch": ("Batches", batch_tables), "vocabulary": ("Vocabulary and memory", vocabulary_tables),
    "forced": ("Speculation", forced_tables),
}  # fmt: skip


# -- charts ------------------------------------------------------------------------------------------------------------


def charts(data: Mapping[str, Any]) -> Iterator[tuple[str, Chart]]:
    for fmt, found in data.get("steps", {}).items():
        lines = [
            Series(name, [(at, value / US) for at, value in enumerate(cell["median"])])
            for name, cell in found["engines"].items()
        ]
        yield f"steps-{fmt}", Chart(
            f"{fmt}: a token and the mask after it, states met before", "position in the call (tokens)",
            "microseconds, median", lines, bands=_bands(found["kinds"]),
        )  # fmt: skip
    for fmt, engines in data.get("cold", {}).items():
        lines = [
            Series(name, [(float(n), cell["first"]["median"] / MS) for n, cell in cells.items()], dots=True)
            for name, cells in engines.items()
        ]
        title = f"{fmt}: unseen request, compile and first mask"
        yield f"cold-{fmt}", Chart(title, "tools", "milliseconds, median", lines, log_x=True)
    if "parse" in data:
        lines = []
        for fmt, found in data["parse"].items():
            for what, cells in found["by length"].items():
                points = [(float(n), cell["one by one"]["median"] / US) for n, cell in cells.items()]
                lines.append(Series(f"{fmt}, {what}", points, dots=True))
        title = "parsing, a token at a time"
        yield "parse", Chart(title, "tokens in the text", "microseconds a token", lines, log_x=True, log_y=False)
    for fmt, ways in data.get("batch", {}).items():
        lines = [
            Series(name, [(float(n), cell["cpu"]["median"] / US) for n, cell in cells.items()], dots=True)
            for name, cells in ways.items()
        ]
        title = f"{fmt}: CPU time of a decode step, masks and tokens"
        yield f"batch-{fmt}", Chart(title, "sequences", "microseconds, median", lines, log_x=True)


def _bands(kinds: Sequence[str]) -> list[tuple[float, float, str]]:
    out: list[tuple[float, float, str]] = []
    begin = 0
    for at in range(1, len(kinds) + 1):
        if at == len(kinds) or kinds[at] != kinds[begin]:
            if kinds[begin] != "fixed":
                out.append((begin - 0.5, at - 0.5, kinds[begin]))
            begin = at
    return [(max(low, 0), high, label) for low, high, label in out]


# -- the document ------------------------------------------------------------------------------------------------------


def generated(data: Mapping[str, Any]) -> str:
    parts = [BEGIN, "", _about(data["machine"]), ""]
    for key, (title, make) in TABLES.items():
        if data.get(key):
            parts += [f"## {title}", "", *make(data[key])]
    return "\n".join([*parts, END])


def _about(info: Mapping[str, Any]) -> str:
    named = [name for name in ("twingram", "numpy", "tokenizers", "xgrammar", "llguidance") if info.get(name)]
    about = (
        f"Measured on {info['date']} with: {info['cpu']}, {info['cpus']} CPUs, {info['system']}, Python "
        f"{info['python']}; {', '.join(f'{name} {info[name]}' for name in named)}. It took {info['minutes']} minutes; "
        f"the load of the machine when it began was {info['load before']}."
    )
    if info["noisy"]:
        about += "\n\n**Other programs ran at the same time: these numbers are a rehearsal, not a result.**"
    return about


def written(text: str, data: Mapping[str, Any]) -> str:
    """The document with what is generated in its place."""
    before, mark, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + generated(data) + after if mark else f"{text.rstrip()}\n\n{generated(data)}\n"


def main(argv: Sequence[str] | None = None) -> int:
    options = _options(argv)
    stored = options.docs / "performance.json"
    data: dict[str, Any] = json.loads(stored.read_text()) if options.only and stored.exists() else {}
    info, begin = machine(), time.monotonic()
    names = [name for name in measures.SECTIONS if not options.only or name in options.only]
    for name in (bar := tqdm(names, disable=None)):
        bar.set_description(name)
        data[name] = measures.SECTIONS[name](options.seconds)
    if options.data is not None:
        data["forced"] = measures.forced(options.data, options.calls)
    info |= {
        "date": time.strftime("%Y-%m-%d"), "minutes": round((time.monotonic() - begin) / 60, 1),
        "noisy": options.noisy or info["load before"] > 1,  # the average of a minute: lags behind what ran before
    }  # fmt: skip
    data["machine"] = info
    folder = options.docs / "performance"
    folder.mkdir(parents=True, exist_ok=True)
    stored.write_text(json.dumps(_rounded(data), indent=1) + "\n", encoding="utf-8")
    for name, chart in charts(data):
        (folder / f"{name}.svg").write_text(chart.svg(), encoding="utf-8")
    document = options.docs / "performance.md"
    text = document.read_text(encoding="utf-8") if document.exists() else "# Performance\n"
    document.write_text(written(text, data), encoding="utf-8")
    print(f"written: {document}, {stored}, {folder}")
    return 0


def _rounded(value: Any) -> Any:
    """Four digits are more than a clock is worth."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list) else value


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=2.0, help="time for each cell (default 2)")
    parser.add_argument("--only", nargs="+", choices=list(measures.SECTIONS), help="these sections only")
    parser.add_argument("--data", type=Path, help="folder with bfcl.jsonl.gz, for the share of forced tokens")
    parser.add_argument("--calls", type=int, default=200, help="how many of its calls (default 200)")
    parser.add_argument("--docs", type=Path, default=DOCS, help="where to write")
    parser.add_argument("--noisy", action="store_true", help="say in the document that other programs ran meanwhile")
    options = parser.parse_args(argv)
    if options.data is not None:
        folder(parser, options.data, ["bfcl"])
    need_vocabularies(parser)
    return options


if __name__ == "__main__":
    raise SystemExit(main())
