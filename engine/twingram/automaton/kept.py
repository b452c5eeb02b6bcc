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

from .dfa import Dfa

__all__ = ["kept"]

Arguments = ParamSpec("Arguments")
_STATES = 20_000


def kept(make: Callable[Arguments, Dfa], states: int = _STATES) -> Callable[Arguments, Dfa]:
    """Remembers what `make` returned, the least recently used forgotten first."""
    found: dict[tuple[object, ...], Dfa] = {}  # arguments -> automaton, the oldest first
    lock = Lock()
    total = 0

    @wraps(make)
    def ask(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Dfa:
        nonlocal total
        key = (args, *sorted(kwargs.items()))
        with lock:
            dfa = found.pop(key, None)
            if dfa is not None:
                found[key] = dfa
                return dfa
        dfa = make(*args, **kwargs)
        with lock:
            if key not in found:
                found[key] = dfa
                total += len(dfa)
            while total > states and len(found) > 1:
                total -= len(found.pop(next(iter(found))))
        return dfa

    return ask
