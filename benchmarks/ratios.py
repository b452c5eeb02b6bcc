"""The suites' numbers side by side: `python -m benchmarks.ratios FILE`.

In: the file that `--benchmark-json=FILE` wrote. Out: a line for each engine in each group: the median and the 99th
percentile a step, and the median as a multiple of ours (below 1: faster than ours).
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FACTORS = {"us": 1e6, "ms": 1e3}
OURS = "twingram"


def lines(data: Mapping[str, Any]) -> list[str]:
    groups: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for entry in data["benchmarks"]:
        groups[entry["group"]].append(entry)
    machine = data["machine_info"]
    cpu = machine.get("cpu", {})
    what = cpu.get("brand_raw") or machine.get("processor") or "unknown processor"
    out = [f"{what}, {cpu.get('count', '?')} CPUs, Python {machine['python_version']}", ""]
    out += ["| what | engine | median | p99 | unit | ratio |", "|---|---|---|---|---|---|"]
    for group, entries in groups.items():
        base = next((_median(entry) for entry in entries if entry["extra_info"]["engine"] == OURS), None)
        out += [_line(group, entry, base) for entry in entries]
    return out


def _median(entry: Mapping[str, Any]) -> float:
    median: float = entry["stats"]["median"]
    return median / entry["extra_info"]["per"]


def _line(group: str, entry: Mapping[str, Any], base: float | None) -> str:
    info = entry["extra_info"]
    factor = FACTORS[info["unit"]]
    rounds = sorted(entry["stats"].get("data") or [entry["stats"]["max"]])
    worst = rounds[min(int(0.99 * len(rounds)), len(rounds) - 1)] / info["per"]
    ratio = "-" if base is None or info["engine"] == OURS else f"{_median(entry) / base:.2f}"
    cells = (group, info["engine"], f"{_median(entry) * factor:.2f}", f"{worst * factor:.2f}", info["unit"], ratio)
    return "| " + " | ".join(cells) + " |"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ratios", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path, help="what --benchmark-json=FILE wrote")
    try:
        found = lines(json.loads(parser.parse_args(argv).file.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError) as error:
        parser.error(f"no results of the suites: {error}")
    print("\n".join(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
