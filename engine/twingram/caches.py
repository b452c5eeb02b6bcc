"""One budget of bytes for all caches of the process: states, masks, tables of text, automata, compiled schemas.

In: caches that say how much they hold and can forget it; what each adds. Out: nothing; when all together hold more than
the budget, the largest are emptied until half of it is free. Nothing that is in use is lost: whoever holds a state, a
row or an automaton goes on with it, and what is asked for again is made again. So a budget may be tiny: work is then
done over and over, and the results are the same.

    twingram.set_cache_budget(64 << 20)     # bytes; 256 MB by default
    twingram.cache_usage()                  # bytes, about

Not counted: vocabularies and their tries, grammars, and whatever callers hold: constraints without their states,
sessions, parsers; and tables of small things that are bounded by their number, some 25 MB when all are full: the last
64 parsers' automata without their states, what is known of the lengths of automata, sets of characters.
Invariant: caches that can be emptied hold at most the budget and an eighth of it (at least `SLACK` bytes) more. A cache
that nothing else refers to is gone from here too.
Cost: an addition and a comparison for each thing that is added; counting all of them when the budget is reached, which
is at least that eighth later than the last time.
"""

from __future__ import annotations

from threading import Lock
from typing import Protocol
from weakref import ref

__all__ = ["Cache", "cache_usage", "charge", "set_cache_budget", "watch"]

DEFAULT_BUDGET = 256 << 20
SLACK = 1 << 16


class Cache(Protocol):
    """What can be watched. Both methods may be called from any thread, at any time but from inside `charge`'s caller's
    own locks."""

    def memory_usage(self) -> int:
        """Bytes, about."""

    def clear(self) -> None:
        """Forget what can be made again."""


class _Ledger:
    """All caches, and what they have added since they were last counted."""

    def __init__(self, budget: int) -> None:
        self.budget, self.charged, self.threshold = budget, 0, budget
        self.caches: dict[int, ref[Cache]] = {}
        self.lock = Lock()  # one thread empties, others go on

    def settle(self) -> None:
        """Count, and empty what is largest if that is too much."""
        if not self.lock.acquire(blocking=False):
            return
        try:
            total = self._emptied()
            self.charged = total
            self.threshold = max(self.budget, total + max(self.budget // 8, SLACK))
        finally:
            self.lock.release()

    def living(self) -> list[Cache]:
        return [cache for entry in list(self.caches.values()) if (cache := entry()) is not None]

    def _emptied(self) -> int:
        held = sorted(((cache.memory_usage(), cache) for cache in self.living()), key=lambda pair: -pair[0])
        total = sum(size for size, _ in held)
        if total <= self.budget:
            return total
        for size, cache in held:
            if total <= self.budget // 2 or not size:
                break
            cache.clear()
            total += cache.memory_usage() - size
        return total


_LEDGER = _Ledger(DEFAULT_BUDGET)


def watch(cache: Cache) -> None:
    """Count a cache as long as something else refers to it."""
    key, caches = id(cache), _LEDGER.caches
    caches[key] = ref(cache, lambda entry: caches.pop(key, None) if caches.get(key) is entry else None)


def charge(size: int) -> None:
    """A watched cache has grown by so many bytes. Not to be called under a lock that its `clear` takes."""
    ledger = _LEDGER
    ledger.charged += size  # threads may lose one another's: it is an estimate until all is counted
    if ledger.charged > ledger.threshold:
        ledger.settle()


def set_cache_budget(size: int) -> None:
    """The bytes that all caches of this process may hold together, 256 MB by default. Smaller than what they hold now:
    they are emptied at once."""
    if size < 0:
        raise ValueError(f"a cache budget of {size} bytes; 0 or more is wanted")
    _LEDGER.budget = size
    _LEDGER.settle()


def cache_usage() -> int:
    """The bytes that all caches of this process hold, about."""
    return sum(cache.memory_usage() for cache in _LEDGER.living())
