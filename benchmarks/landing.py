"""Turns under a budget: forced calls of tools that are in use, with `max_tokens` from the least to 40 more.

In: a request, a tool of it, a format. Out: what was counted. `benchmarks.tools --landing N` runs it over N tools. The
sampler (tests/landings.py) stays inside strings as long as the mask allows, and tries speculative drafts near the end
of the budget: validated, accepted, rolled back.
Checked: a budget below the least is refused; every turn ends within its budget, in a call of the tool that is complete
and whose arguments satisfy `jsonschema`, but for keywords that the report calls relaxed (counted as *aside*).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any

import twingram as tg
from tests.landings import Lander, least_tokens
from tests.vocabularies import gemma, llama4
from tests.walks import call_ids, validator_of

__all__ = ["BUDGETS", "FORMATS", "Landed", "Landing", "land"]

FORMATS = {"gemma4": gemma, "atem": llama4}
BUDGETS = range(41)  # tokens above the least


@dataclass(frozen=True)
class Landing:
    """A tool to be landed: the tools of its request, its name, its schema."""

    place: str
    format: str
    tools: Sequence[Mapping[str, Any]]
    name: str
    schema: Any
    seed: int

    @property
    def key(self) -> str:
        return f"landing {self.place} {self.seed}"


@dataclass
class Landed:
    format: str
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0


@cache
def _lander(name: str) -> Lander:
    return Lander(FORMATS[name](), Random())


def land(job: Landing) -> Landed:
    """All budgets of one tool."""
    begin, out = time.process_time(), Landed(job.format)
    lander, vocabulary = _lander(job.format), FORMATS[job.format]()
    lander.rng, lander.drafts = Random(f"{job.seed} {job.place}"), 0
    fmt, choice = tg.load_format(job.format), {"type": "function", "function": {"name": job.name}}
    free = fmt.constraint(job.tools, choice, vocabulary=vocabulary)
    relaxed = {finding.keyword for finding in free.report() if finding.status == "relaxed"}
    least, validator = least_tokens(free), validator_of(job.schema, formats=True)
    try:
        fmt.constraint(job.tools, choice, vocabulary=vocabulary, max_tokens=least - 1)
    except tg.RequestError:
        out.counts["refused"] += 1
    else:
        out.failures.append(f"{job.place}: {least - 1} tokens are not refused")
    for more in BUDGETS:
        session = fmt.constraint(job.tools, choice, vocabulary=vocabulary, max_tokens=least + more).session(
            call_id=call_ids()
        )
        out.counts["turns"] += 1
        try:
            taken = lander.land(session)
        except AssertionError as error:
            out.failures.append(f"{job.place}: budget {least} + {more}: {error} after {session.text!r}")
            continue
        message = session.message
        whole = message.calls and not message.incomplete_calls and not message.errors
        if taken > least + more or not whole or {call.name for call in message.calls} != {job.name}:
            out.failures.append(f"{job.place}: budget {least} + {more}: {taken} tokens, {session.text!r}")
            continue
        out.counts["within"] += 1
        out.counts["tokens left"] += least + more - taken
        for call in message.calls:
            errors = list(validator.iter_errors(call.value))
            firm = [error for error in errors if error.validator not in relaxed]
            out.counts["calls"] += 1
            out.counts["aside" if errors else "valid"] += not firm
            out.failures.extend(f"{job.place}: {error.message[:200]} in {call.arguments[:300]}" for error in firm[:1])
    out.counts["drafts"] += lander.drafts
    out.seconds = time.process_time() - begin
    return out
