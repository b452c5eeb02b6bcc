"""Ids of calls, made once for each index: a call that is emitted again after a rollback keeps its id.

In: a factory, random by default. Out: index -> id. Cost: one string a call.
"""

from __future__ import annotations

import os
from collections.abc import Callable

__all__ = ["CallIds", "random_call_id"]


def random_call_id() -> str:
    return "call_" + os.urandom(12).hex()


class CallIds:
    """Shared by an emitter and its clones."""

    __slots__ = ("_factory", "_ids")

    def __init__(self, factory: Callable[[], str] | None = None) -> None:
        if factory is not None and not callable(factory):
            raise TypeError(f"call_id is a function that gives ids, not {type(factory).__name__}")
        self._factory = factory or random_call_id
        self._ids: list[str] = []

    def __call__(self, index: int) -> str:
        while len(self._ids) <= index:
            self._ids.append(self._factory())
        return self._ids[index]

    def renewed(self) -> CallIds:
        """For another turn: the same factory, new ids."""
        return CallIds(self._factory)
