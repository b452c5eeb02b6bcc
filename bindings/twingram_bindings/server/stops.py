"""Stop sequences: the text of the answer ends before the first of them.

In: deltas. Out: deltas, with text held back only while it may still become a stop sequence.
Invariants: only content is searched, so that a call or a value inside it is never cut; what has been let through joins
to the content up to the stop. Cost: constant a character for the few, short sequences that a request may name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import twingram as tg

__all__ = ["StopText"]


class StopText:
    """Filters the deltas of one turn. `hit` once a stop sequence was met: nothing may follow."""

    def __init__(self, stops: Iterable[str]) -> None:
        self._stops = tuple(stops)
        self._held = ""
        self.hit = False

    def filter(self, deltas: Iterable[tg.Delta]) -> Iterator[tg.Delta]:
        for delta in deltas:
            if self.hit:
                return
            if not self._stops or not isinstance(delta, tg.Content):
                yield from self.flush()
                yield delta
            else:
                yield from self._content(self._held + delta.text)

    def flush(self) -> Iterator[tg.Delta]:
        """What was held back, when no more text follows it."""
        if self._held:
            yield tg.Content(self._held)
            self._held = ""

    def _content(self, text: str) -> Iterator[tg.Delta]:
        found = [at for at in (text.find(stop) for stop in self._stops) if at >= 0]
        self.hit = bool(found)
        cut = min(found) if found else len(text) - self._pending(text)
        self._held = "" if found else text[cut:]
        if text[:cut]:
            yield tg.Content(text[:cut])

    def _pending(self, text: str) -> int:
        """The length of the longest end of `text` that begins a stop sequence."""
        longest = min(max(map(len, self._stops)) - 1, len(text))
        starts = (n for n in range(longest, 0, -1) if any(stop.startswith(text[-n:]) for stop in self._stops))
        return next(starts, 0)
