"""Automata that are asked for again, and what is known of automata: the newest, up to a total size.

In: a function of hashable arguments that returns a `Dfa` (`kept`), or anything small (`known`). Out: the same function,
which remembers its results.
Invariant: the remembered automata hold at most `states` states together (some 2 KB each), unless a single one is
larger. Automata among the arguments are remembered by their digests and live no longer for it: thousands of numbers
that are known of them would else keep thousands of automata. Errors are not remembered. Safe to call from several
threads.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from threading import Lock
from typing import ParamSpec, TypeVar

from ..caches import charge, watch
from .dfa import Dfa

__all__ = ["kept", "known"]

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
_STATES = 20_000
_STATE_BYTES = 2048


def kept(make: Callable[Arguments, Dfa], states: int = _STATES) -> Callable[Arguments, Dfa]:
    """Remembers what `make` returned, the least recently used forgotten first."""
    shelf = _Shelf(states)
    watch(shelf)

    @wraps(make)
    def ask(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Dfa:
        key = (*map(_digest, args), *sorted(kwargs.items()))
        dfa = shelf.find(key)
        if dfa is None:
            dfa = make(*args, **kwargs)
            shelf.keep(key, dfa)
            charge(_STATE_BYTES * len(dfa))
        return dfa

    return ask


def known(make: Callable[Arguments, Result], most: int = 1024) -> Callable[Arguments, Result]:
    """Remembers the newest `most` results of `make`, or up to twice as many."""
    new: dict[Hashable, Result] = {}
    old: dict[Hashable, Result] = {}

    @wraps(make)
    def ask(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        nonlocal new, old
        key = (*map(_digest, args), *sorted(kwargs.items()))
        fresh, stale = new, old  # another thread may exchange them meanwhile
        if key in fresh:
            return fresh[key]
        found = stale[key] if key in stale else make(*args, **kwargs)
        if len(fresh) >= most:
            new, old = {}, fresh
        new[key] = found
        return found

    return ask


def _digest(part: object) -> object:
    """What stands for an argument in a key: content alike for automata, which it does not hold."""
    if type(part) is Dfa:
        return part.key
    return tuple(map(_digest, part)) if type(part) is tuple else part


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
