"""`python -m tests.fuzz` tries random inputs for `TWINGRAM_FUZZ_SECONDS` (60), and prints how many and what broke.

`TWINGRAM_FUZZ_SEED` (drawn from the clock) makes a run repeatable. What breaks is shrunk, printed as a line for
`corpus.jsonl`, and the run goes on; the status is 1 if anything broke.
"""

from __future__ import annotations

import dataclasses
import os
import random
import sys
import time
import traceback

from .harness import Trial, check, random_trial

_EVERY = 400  # one trial in so many has its work counted


def main() -> int:
    seconds = float(os.environ.get("TWINGRAM_FUZZ_SECONDS", "60"))
    seed = int(os.environ.get("TWINGRAM_FUZZ_SEED", str(time.time_ns())))
    rng, began, told, tried = random.Random(seed), time.monotonic(), time.monotonic(), 0
    broken: dict[str, str] = {}
    while time.monotonic() - began < seconds:
        trial = random_trial(rng)
        tried += 1
        work = tried % _EVERY == 0
        reason = _fault(trial, work)
        if reason and reason not in broken:
            broken[reason] = _shrunk(trial, reason, work).line()
            print(f"{reason}\n  {broken[reason]}", flush=True)
        if time.monotonic() - told > 60:
            told = time.monotonic()
            print(f"{tried} inputs, {len(broken)} kinds of fault", flush=True)
    print(f"seed {seed}: {tried} inputs in {time.monotonic() - began:.0f} s, {len(broken)} kinds of fault", flush=True)
    return bool(broken)


def _fault(trial: Trial, work: bool) -> str:
    """What breaks on this trial, by its place; "" if nothing does. Any exception is a finding here."""
    try:
        check(trial, work=work)
    except Exception as error:  # noqa: BLE001 - whatever it is, it was found
        frames = traceback.extract_tb(error.__traceback__)
        own = next(frame for frame in reversed(frames) if "twingram" in frame.filename or "fuzz" in frame.filename)
        return f"{trial.format}: {type(error).__name__} {own.name}:{own.lineno} {str(error).splitlines()[:1]}"[:160]
    return ""


def _shrunk(trial: Trial, reason: str, work: bool) -> Trial:
    """A shorter text that breaks at the same place."""
    place = reason.split(" [", maxsplit=1)[0]
    size = max(1, len(trial.text) // 2)
    while size:
        at = 0
        while at < len(trial.text):
            smaller = dataclasses.replace(trial, text=trial.text[:at] + trial.text[at + size :])
            if _fault(smaller, work).split(" [")[0] == place:
                trial = smaller
            else:
                at += size
        size //= 2
    return trial


if __name__ == "__main__":
    sys.exit(main())
