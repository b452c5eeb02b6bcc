"""Many jobs over several processes, their outcomes kept in a file as they come.

In: jobs, each with a `key`, and a function from a job to an outcome, a dataclass of plain values. Out: the outcomes.
With a file, each outcome is appended to it as a line, and what it holds already is not run again: a long run can be
stopped and taken up, and what there is so far can be looked at (`processes=0`). The jobs are shuffled, always in the
same way, so that a part of them is an even sample.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Protocol, TypeVar

from tqdm import tqdm

__all__ = ["run"]

R = TypeVar("R")


class Keyed(Protocol):
    @property
    def key(self) -> str: ...


def run(
    work: Callable[[Any], R], jobs: Sequence[Keyed], kind: type[R], processes: int, kept: Path | None = None
) -> list[R]:
    """The outcomes of all jobs, those in `kept` included; with no processes those in `kept` alone."""
    wanted = {job.key: job for job in jobs}
    found = {key: _restored(kind, body) for key, body in _lines(kept) if key in wanted}
    todo = [job for key, job in wanted.items() if key not in found]
    Random(0).shuffle(todo)
    if not processes:
        return list(found.values())
    with multiprocessing.Pool(processes) as pool:
        results = pool.imap_unordered(partial(_keyed, work), todo)
        for key, outcome in tqdm(results, total=len(todo), file=sys.stderr):
            found[key] = outcome
            if kept is not None:
                with kept.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([key, vars(outcome)]) + "\n")
    return list(found.values())


def _keyed(work: Callable[[Any], R], job: Keyed) -> tuple[str, R]:
    return job.key, work(job)


def _lines(kept: Path | None) -> list[tuple[str, dict[str, Any]]]:
    if kept is None or not kept.exists():
        return []
    return [tuple(json.loads(line)) for line in kept.read_text(encoding="utf-8").splitlines()]


def _restored(kind: type[R], body: dict[str, Any]) -> R:
    return kind(**{name: Counter(value) if name == "counts" else value for name, value in body.items()})
