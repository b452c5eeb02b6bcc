"""Conditions on names: a piece that reads only what the request's tools declare.

In: the names of the tools and of their arguments (`Declared`). Out: for a compiler, placeholders for one of the
declared tool names and, after it, for one of that tool's keys: any, or one whose value may be a string; and for a
parser what they stand for (see `automaton.bound`), so that all tools share one automaton. A key is read once in a call,
so a piece that was read is no longer among those that may come.

Invariant: without a tool name that was read by such a piece, a declared key reads nothing.
Cost: a tool's keys are spelt when its name is first read, and those that are left once for each set of keys seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..automaton.bound import Env, bits_of, same
from ..automaton.capture import listed
from ..automaton.expression import Expr

__all__ = ["Declared", "declared_key", "declared_tool", "meaning"]

_ANY, _TEXT = same("a declared key"), same("a declared key of text")


@dataclass(frozen=True)
class Declared:
    """What a reading must know of the tools: for each name its keys, and those of them whose value may be a string."""

    tools: tuple[tuple[str, tuple[str, ...], frozenset[str]], ...]


def declared_tool(rule: str) -> Expr:
    """The placeholder of one of the names. `rule` is what `_same` calls it."""
    return same(f"a declared name, {rule}", (same(rule), _ANY, _TEXT))


def meaning(declared: Declared, rules: Iterable[str]) -> Env:
    """What stands there under these tools, for the rules that stand in conditions on names."""
    names, fills = [name.encode("utf-8", "replace") for name, _, _ in declared.tools], _Names(declared)
    return Env.of({declared_tool(rule): listed(names, rule, fills) for rule in rules})


def declared_key(*, of_text: bool) -> Expr:
    """The placeholder of a key of the tool whose name was read before."""
    return _TEXT if of_text else _ANY


class _Names:
    """Fills in the keys of the tool that was read."""

    gives = bits_of((_ANY, _TEXT))

    def __init__(self, declared: Declared) -> None:
        self._keys = {name.encode("utf-8", "replace"): (keys, text) for name, keys, text in declared.tools}
        self._known: dict[bytes, Mapping[Expr, Expr]] = {}

    def __call__(self, name: bytes) -> Mapping[Expr, Expr]:
        found = self._known.get(name)
        if found is None:
            keys, text = self._keys[name]
            left = _Keys(keys, text)
            found = self._known[name] = {_ANY: left.any, _TEXT: left.text}
        return found


class _Keys:
    """The keys that are left; fills in the fewer that are left after one."""

    gives = _Names.gives

    def __init__(self, keys: Iterable[str], text: frozenset[str]) -> None:
        self._keys, self._text = tuple(keys), text
        self._known: dict[bytes, Mapping[Expr, Expr]] = {}
        self.any = self._recorder(self._keys)
        self.text = self._recorder([key for key in self._keys if key in text])

    def _recorder(self, keys: Iterable[str]) -> Expr:
        return listed((key.encode("utf-8", "replace") for key in keys if key), "key", self)

    def __call__(self, key: bytes) -> Mapping[Expr, Expr]:
        found = self._known.get(key)
        if found is None:
            left = _Keys([other for other in self._keys if other.encode("utf-8", "replace") != key], self._text)
            found = self._known[key] = {_ANY: left.any, _TEXT: left.text}
        return found
