"""Tallies: how many members an object has, and which of them ask for others.

In: bounds on the number of members, for each declared key the keys that it asks for. Out: a `Tally`, which says for
what has been written whether a key may come next so that the object can still be completed.

What has been written is `(bits of declared keys, members)`; the count stops where more makes no difference.
Invariant: `needs` is closed: what a key asks for asks for nothing more. Where both an upper bound and needs are given,
there is no lower bound beyond what is required (the caller sees to it): else completing is a puzzle.
Cost: a few operations on bit sets for each key that is open.
"""

from __future__ import annotations

from collections.abc import Sequence

from .expression import INFINITE

__all__ = ["NOTHING_WRITTEN", "Tally", "Written"]

Written = tuple[int, int]
NOTHING_WRITTEN: Written = (0, 0)


class Tally:
    """Bounds and needs of one object type."""

    __slots__ = ("_cap", "least", "most", "needs")

    def __init__(self, least: int, most: int, needs: Sequence[int]) -> None:
        self.least, self.most = least, most
        self.needs = _closed(needs)
        self._cap = least if most >= INFINITE else most + 1

    def after(self, written: Written, bit: int | None) -> Written:
        """What is written once key `bit`, or a free one, has been added."""
        bits, count = written
        return bits if bit is None else bits | 1 << bit, min(count + 1, self._cap)

    def owed(self, required: int, written: Written) -> int:
        """The keys that still have to come."""
        bits = written[0]
        wanted = required | bits
        owed, at = required, 0
        while wanted and any(self.needs):
            if wanted & 1:
                owed |= self.needs[at]
            wanted >>= 1
            at += 1
        return owed & ~bits

    def completes(self, required: int, written: Written, open_keys: int, free: bool) -> bool:
        """Whether the object can be completed; `open_keys` are those that may still come, in some order."""
        owed = self.owed(required, written)
        if owed & ~open_keys:
            return False
        count, missing = written[1], owed.bit_count()
        if max(self.least, count + missing) > self.most:
            return False
        return free or count + open_keys.bit_count() >= self.least

    def missing(self, required: int, written: Written) -> tuple[int, int]:
        """The keys that have to come, and how many members more than these."""
        owed = self.owed(required, written)
        return owed, max(0, self.least - written[1] - owed.bit_count())


def _closed(needs: Sequence[int]) -> tuple[int, ...]:
    found = list(needs)
    changed = True
    while changed:
        changed = False
        for bit, wanted in enumerate(found):
            more = wanted
            for other in range(len(found)):
                if wanted >> other & 1:
                    more |= found[other]
            more &= ~(1 << bit)
            if more != wanted:
                found[bit], changed = more, True
    return tuple(found)
