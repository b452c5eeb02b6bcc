"""Regular expressions over code points: a plain nondeterministic automaton, simulated.

In: a pattern as JSON Schema means it (ECMA-262, searched, `^` and `$` match at the ends of the text only). Out: a
`Machine`: states are frozen sets of positions. Python's own parser of regular expressions reads the pattern; what the
two dialects read differently is translated or refused (`Unsupported`).
Construction: K. Thompson, "Regular Expression Search Algorithm" (1968); the simplest automaton of its kind.
"""

from __future__ import annotations

import re
import sys
import warnings
from functools import lru_cache
from typing import Any

from .request import Unsupported

if sys.version_info >= (3, 11):
    from re import _parser as sre
else:
    import sre_parse as sre

__all__ = ["LAST", "Machine", "pattern", "pattern_of_literals"]

LAST = 0x10FFFF
Ranges = tuple[tuple[int, int], ...]  # ends included
State = frozenset[int]

_LINE_ENDS: Ranges = ((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029))
_CLASSES: dict[str, Ranges] = {
    "DIGIT": ((0x30, 0x39),),
    "WORD": ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)),
    "SPACE": (
        (0x09, 0x0D),
        (0x20, 0x20),
        (0xA0, 0xA0),
        (0x1680, 0x1680),
        (0x2000, 0x200A),
        (0x2028, 0x2029),
        (0x202F, 0x202F),
        (0x205F, 0x205F),
        (0x3000, 0x3000),
        (0xFEFF, 0xFEFF),
    ),
}


def _without(ranges: Ranges) -> Ranges:
    """The complement."""
    out: list[tuple[int, int]] = []
    at = 0
    for low, high in sorted(ranges):
        if low > at:
            out.append((at, low - 1))
        at = max(at, high + 1)
    if at <= LAST:
        out.append((at, LAST))
    return tuple(out)


class Machine:
    """Positions with silent moves (free, at the start only, at the end only) and moves over sets of code points."""

    def __init__(self) -> None:
        self.silent: list[list[tuple[str, int]]] = []
        self.moves: list[list[tuple[Ranges, int]]] = []
        self.first = self.new()
        self.last = -1
        self._stepped: dict[tuple[State, int], State] = {}

    def new(self) -> int:
        self.silent.append([])
        self.moves.append([])
        return len(self.silent) - 1

    def closure(self, positions: State, *, at_start: bool = False, at_end: bool = False) -> State:
        seen = set(positions)
        todo = list(positions)
        while todo:
            for condition, target in self.silent[todo.pop()]:
                passes = condition == "" or (condition == "^" and at_start) or (condition == "$" and at_end)
                if passes and target not in seen:
                    seen.add(target)
                    todo.append(target)
        return frozenset(seen)

    @property
    def start(self) -> State:
        return self.closure(frozenset({self.first}), at_start=True)

    def step(self, state: State, code_point: int) -> State:
        key = (state, code_point)
        if key not in self._stepped:
            hit = {
                target
                for position in state
                for ranges, target in self.moves[position]
                if any(low <= code_point <= high for low, high in ranges)
            }
            self._stepped[key] = self.closure(frozenset(hit))
        return self._stepped[key]

    def accepts(self, state: State, *, empty: bool = False) -> bool:
        return self.last in self.closure(state, at_start=empty, at_end=True)

    def matches(self, text: str) -> bool:
        state = self.start
        for char in text:
            state = self.step(state, ord(char))
        return self.accepts(state, empty=not text)

    @property
    def cuts(self) -> set[int]:
        """Where a set of code points begins or ends: between two cuts all code points act alike."""
        found = {0}
        for moves in self.moves:
            for ranges, _ in moves:
                for low, high in ranges:
                    found |= {low, high + 1}
        return found


def _in_set(items: list[Any]) -> Ranges:
    ranges: list[tuple[int, int]] = []
    negated = False
    for op, value in items:
        kind = str(op)
        if kind == "NEGATE":
            negated = True
        elif kind == "LITERAL":
            ranges.append((value, value))
        elif kind == "RANGE":
            ranges.append(value)
        else:
            ranges += _category(str(value))
    return _without(tuple(ranges)) if negated else tuple(ranges)


def _category(name: str) -> Ranges:
    negated, name = "_NOT_" in name, name.rsplit("_", 1)[-1]
    return _without(_CLASSES[name]) if negated else _CLASSES[name]


def _build(machine: Machine, tree: Any, begin: int) -> int:
    """Adds the tree's positions after `begin`; the position where it ends."""
    for op, value in tree:
        begin = _build_one(machine, str(op), value, begin)
    return begin


def _build_one(machine: Machine, op: str, value: Any, begin: int) -> int:
    if op == "SUBPATTERN":
        if value[1] or value[2]:
            raise Unsupported("flags inside a pattern")
        return _build(machine, value[3], begin)
    if op in ("MAX_REPEAT", "MIN_REPEAT"):
        return _build_repeat(machine, *value, begin=begin)
    end = machine.new()
    if op == "BRANCH":
        for branch in value[1]:
            machine.silent[_build(machine, branch, begin)].append(("", end))
    elif op == "AT" and str(value) in ("AT_BEGINNING", "AT_END"):
        machine.silent[begin].append(("^" if str(value) == "AT_BEGINNING" else "$", end))
    elif op in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
        machine.moves[begin].append((_set_of(op, value), end))
    else:
        raise Unsupported(f"{op} in a pattern")
    return end


def _set_of(op: str, value: Any) -> Ranges:
    if op == "ANY":
        return _without(_LINE_ENDS)
    if op == "IN":
        return _in_set(value)
    return ((value, value),) if op == "LITERAL" else _without(((value, value),))


def _build_repeat(machine: Machine, low: int, high: Any, tree: Any, *, begin: int) -> int:
    for _ in range(low):
        begin = _build(machine, tree, begin)
    if str(high) == "MAXREPEAT":
        loop = machine.new()
        machine.silent[begin].append(("", loop))
        machine.silent[_build(machine, tree, loop)].append(("", loop))
        begin = loop
        end = machine.new()
        machine.silent[loop].append(("", end))
        return end
    end = machine.new()
    for _ in range(high - low):
        machine.silent[begin].append(("", end))
        inner = machine.new()
        machine.silent[begin].append(("", inner))
        begin = _build(machine, tree, inner)
    machine.silent[begin].append(("", end))
    return end


_REFUSED = re.compile(r"\\[pPkZABb]|\(\?[=!<]|\{,|\\u\{|\[\]|\[\^\]")


@lru_cache(maxsize=1000)
def pattern(text: str) -> Machine:
    """The machine of the texts in which the pattern occurs."""
    text = re.sub(r"\(\?<(?=[A-Za-z_])", "(?P<", text)
    if found := _REFUSED.search(text):
        raise Unsupported(f"{found[0]} in a pattern")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        try:
            tree = sre.parse(text)
        except re.error as error:
            raise Unsupported(str(error)) from error
    machine = Machine()
    anything: Ranges = ((0, LAST),)
    machine.moves[machine.first].append((anything, machine.first))
    inner = machine.new()
    machine.silent[machine.first].append(("", inner))
    machine.last = _build(machine, tree, inner)
    # after a match anything may follow; a `$` that was passed is only passed at the end of the text
    after = machine.new()
    machine.silent[machine.last].append(("", after))
    machine.moves[after].append((anything, after))
    machine.silent[after].append(("", machine.last))
    return machine


@lru_cache(maxsize=1000)
def pattern_of_literals(texts: frozenset[str]) -> Machine:
    """The machine of exactly these texts: a trie."""
    machine = Machine()
    machine.last = machine.new()
    children: dict[tuple[int, str], int] = {}
    for text in sorted(texts):
        node = machine.first
        for char in text:
            if (node, char) not in children:
                children[node, char] = machine.new()
                machine.moves[node].append((((ord(char), ord(char)),), children[node, char]))
            node = children[node, char]
        machine.silent[node].append(("", machine.last))
    return machine
