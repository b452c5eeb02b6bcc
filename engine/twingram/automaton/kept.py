"""Automata that are asked for again: the newest, up to a total size.

In: a function of hashable arguments that returns a `Dfa`. Out: the same function, which remembers its results.
Invariant: the remembered automata hold at most `states` states together (some 2 KB each), unless a single one is
larger. Errors are not remembered. Safe to call from several threads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import ParamSpec

from ..caches import charge, watch
from .dfa import Dfa

__all__ = ["kept"]

Arguments = ParamSpec("Arguments")
_STATES = 20_000
_STATE_BYTES = 2048


def kept(make: Callable[Arguments, Dfa], states: int = _STATES) -> Callable[Arguments, Dfa]:
    """Remembers what `make` returned, the least recently used forgotten first."""
    shelf = _Shelf(states)
    watch(shelf)

    @wraps(make)
    def ask(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Dfa:
        key = (args, *sorted(kwargs.items()))
        dfa = shelf.find(key)
        if dfa is None:
            dfa = make(*args, **kwargs)
            shelf.keep(key, dfa)
            charge(_STATE_BYTES * len(dfa))
        return dfa

    return ask


class _Shelf:
    """What one function has returned."""

    def __init__(self, most: int) -> None:
        self.most, self.total = most, 0  # states
        self.found: dict[tuple[object, ...], Dfa] = {}  # arguments -> automaton, the oldest first
        self.lock = Lock()

    def find(self, key: tuple[object, ...]) -> Dfa | None:
        with self.lock:
            dfa = self.found.pop(key, None)
            if dfa is not None:
                self.found[key] = dfa
            return dfa

    def keep(self, key: tuple[object, ...], dfa: Dfa) -> None:
        with self.lock:
            if key not in self.found:
                self.found[key] = dfa
                self.total += len(dfa)
            while self.total > self.most and len(self.found) > 1:
                self.total -= len(self.found.pop(next(iter(self.found))))

    def memory_usage(self) -> int:
        return _STATE_BYTES * self.total

    def clear(self) -> None:
        with self.lock:
            self.found.clear()
            self.total = 0
