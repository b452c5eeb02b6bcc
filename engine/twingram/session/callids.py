"""Ids of calls, made once for each index: a call that is emitted again after a rollback keeps its id.

In: a factory, random by default. Out: index -> id. Cost: one string a call.
"""

from __future__ import annotations

import os
from collections.abc import Callable

__all__ = ["CallIds", "random_call_id"]


_BYTES, _AT_ONCE = 12, 64
_ready: list[str] = []  # ids that nobody has had yet: to ask the system for each takes 0.6 us more


def random_call_id() -> str:
    try:
        return _ready.pop()
    except IndexError:
        data = os.urandom(_BYTES * _AT_ONCE).hex()
        width = 2 * _BYTES
        fresh = ["call_" + data[at : at + width] for at in range(0, len(data), width)]
        found = fresh.pop()
        _ready.extend(fresh)
        return found


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_ready.clear)  # no two processes give the same ids


class CallIds:
    """Shared by an emitter and its clones."""

    __slots__ = ("_factory", "_ids")

    def __init__(self, factory: Callable[[], str] | None = None) -> None:
        if factory is not None and not callable(factory):
            raise TypeError(f"call_id is a function that gives ids, not {type(factory).__name__}")
        self._factory = factory or random_call_id
        self._ids: list[str] = []

    def __call__(self, index: int) -> str:
        ids = self._ids
        while len(ids) <= index:
            ids.append(self._factory())
        return ids[index]

    def renewed(self) -> CallIds:
        """For another turn: the same factory, new ids."""
        return CallIds(self._factory)
