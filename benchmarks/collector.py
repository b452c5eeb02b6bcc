"""What the collector of cyclic garbage takes of a time that is measured.

In: nothing. Out: a clock of its work, in nanoseconds. It is on while the clock runs, as it is for users; what it walks
is all that a process holds, so that its share says more of the benchmark's process than of what is timed.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["collector"]


@contextmanager
def collector() -> Iterator[Callable[[], int]]:
    """Tells how many nanoseconds the collector of cyclic garbage has taken since."""
    taken, began = 0, 0

    def told(phase: str, _: dict[str, int]) -> None:
        nonlocal taken, began
        if phase == "start":
            began = time.perf_counter_ns()
        else:
            taken += time.perf_counter_ns() - began

    gc.callbacks.append(told)
    try:
        yield lambda: taken
    finally:
        gc.callbacks.remove(told)
