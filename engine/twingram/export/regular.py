"""Texts of an automaton as grammar terms, with bounds on their number of characters.

In: a `Dfa`, a least and a greatest number of characters. Out: one term; what a regular expression would say at too
great a length becomes rules, one for each state that is left: each says which characters lead to which rule.

States are taken out one after the other, the cheapest first, until the next would cost too much. States inside what
counts as one character (an escape of several) go first; then a count is a repetition where all states but one are gone,
and elsewhere a rule for each number of characters and each state of those that every cycle goes through.
Invariant: the same texts. `ExportError` where the bounds need more rules than `most`.
Cost: states times the size of the term.
Source: J. A. Brzozowski, E. J. McCluskey, "Signal Flow Graph Techniques for Sequential Circuit State Diagrams" (1963).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

from ..automaton.dfa import Dfa
from ..automaton.expression import INFINITE
from ..errors import ExportError
from .letters import letters
from .terms import NONE, NULL, Name, Term, either, row, size_of, times

__all__ = ["Counts", "Rules", "regular"]

Rules: TypeAlias = "Callable[[object], tuple[Name, Callable[[Term], None]]]"
"""A name for a new rule of this origin, and what takes its body."""

Counts: TypeAlias = "dict[tuple[Dfa, int, int, int], Name]"
"""Automaton, state, what is left of the bounds -> rule; or automaton, state, length below zero, last state -> rule."""


_GROWTH = 60  # a state is taken out if the terms grow by no more parts than that
_WIDEST = 150  # parts of a term between two states
_ESCAPE = 4000  # both, of states inside what counts as one character: they have to go
_BETWEEN = 500  # states that are taken out of counts, at most
_START, _END = 0, -1
Arcs: TypeAlias = "dict[int, dict[int, Term]]"  # state -> state -> what is read on the way


def regular(
    dfa: Dfa, low: int, high: int, rules: Rules, *, most: int, deepest: int = INFINITE, known: Counts | None = None
) -> Term:
    """The texts of `dfa` with `low` to `high` characters. `known`: counted rules made so far, which are shared.
    `deepest`: how many of them may refer to each other in a row."""
    if not dfa.start:
        return NONE
    if low <= 0 and high >= INFINITE:
        return _term(_reduced(dfa), rules)
    return _counted(dfa, low, high, rules, most, deepest, {} if known is None else known)


def _open(dfa: Dfa) -> Arcs:
    """The arcs of an automaton, with a start before its start and an end behind its ends."""
    found = letters(dfa)
    arcs: Arcs = {state: dict(after.items()) for state, after in found.arcs.items()}
    for state in found.arcs:
        if found.accept[state]:
            arcs[state][_END] = NULL
    arcs[_START] = {found.start: NULL}
    return arcs


@lru_cache(maxsize=256)
def _reduced(dfa: Dfa) -> Arcs:
    graph = _Graph(_open(dfa))
    graph.take_out(lambda _: True, _GROWTH, _WIDEST)
    return graph.arcs


def _term(arcs: Arcs, rules: Rules) -> Term:
    """What leads from the start to the end; a state that is left is a rule."""
    made = {state: rules(state) for state in arcs if state != _START}

    def leads(state: int) -> Term:
        return either(row(term, NULL if to == _END else made[to][0]) for to, term in arcs[state].items())

    for state, (_, give) in made.items():
        give(leads(state))
    return leads(_START)


class _Graph:
    """States with terms between them."""

    def __init__(self, arcs: Arcs) -> None:
        self.arcs: Arcs = {}
        self.before: dict[int, dict[int, int]] = {}  # state -> states that lead there -> size of the term between
        for source, after in arcs.items():
            self.arcs[source] = {}
            for target, term in after.items():
                self._set(source, target, term)

    def _set(self, source: int, target: int, term: Term) -> None:
        self.arcs[source][target] = term
        self.before.setdefault(target, {})[source] = size_of(term)

    def take_out(self, which: Callable[[int], bool], growth: int, widest: int) -> None:
        """Take out the states that may go, the cheapest first, the farthest of those that cost the same."""
        left = {state for state in self.arcs if state != _START and which(state)}
        heap = [(self._cost(state, widest), -state) for state in left]
        heapq.heapify(heap)
        while heap:
            known, key = heapq.heappop(heap)
            state = -key
            if state not in left:
                continue
            cost = self._cost(state, widest)
            if cost != known:  # of a time before other states went
                heapq.heappush(heap, (cost, key))
                continue
            if cost > growth:
                return
            left.discard(state)
            near = left.intersection((*self.arcs[state], *self.before.get(state, ())))
            self._remove(state)
            for each in near:
                heapq.heappush(heap, (self._cost(each, widest), -each))

    def _cost(self, state: int, widest: int) -> int:
        """By how many parts the terms grow."""
        after = {to: self.before[to][state] for to in self.arcs[state] if to != state}
        before = {source: size for source, size in self.before.get(state, {}).items() if source != state}
        around = self.before[state][state] + 1 if state in self.arcs[state] else 0
        if before and after:
            known = max(self.before[to].get(source, 0) for to in after for source in before)
            if known + max(before.values()) + around + max(after.values()) > widest:
                return INFINITE
        made = len(after) * sum(before.values()) + len(before) * (sum(after.values()) + around * len(after))
        return made - sum(before.values()) - sum(after.values()) - around

    def _remove(self, state: int) -> None:
        after = self.arcs.pop(state)
        loop = after.pop(state, NONE)
        for source in self.before.pop(state, {}):
            if source == state:
                continue
            term = self.arcs[source].pop(state)
            for target, then in after.items():
                known = self.arcs[source].get(target, NONE)
                self._set(source, target, either((known, row(term, times(loop), then))))
        for target in after:
            self.before[target].pop(state, None)


# -- counts ------------------------------------------------------------------------------------------------------------


def _counted(dfa: Dfa, low: int, high: int, rules: Rules, most: int, deepest: int, known: Counts) -> Term:
    """Bounds: what lies between two states that complete a character counts as one."""
    boundary = dfa.boundary
    graph = _Graph(_open(dfa))
    start = dfa.start
    graph.take_out(lambda state: not boundary[state] and state != start, _ESCAPE, _ESCAPE)
    arcs = {state: {to: term for to, term in after.items() if to != _END} for state, after in graph.arcs.items()}
    left = [state for state in arcs if state not in (_START, start) and not boundary[state]]
    if left or any(not boundary[to] for state in arcs if state != _START for to in arcs[state]):
        raise ExportError("the characters of a text cannot be counted", "it has escapes of its own")
    ends = {state for state, after in graph.arcs.items() if _END in after}
    return _Count(dfa, arcs, ends, rules, most, deepest, known).term(start, low, high)


class _Count:
    """Some states, with what is left of the bounds, make a rule: texts of one automaton share them, whatever their
    bounds. These are the start and as many as it takes that each cycle meets one; what lies between two of them are
    words of known lengths, each set of which is a rule of its own."""

    def __init__(
        self, dfa: Dfa, arcs: Arcs, ends: set[int], rules: Rules, most: int, deepest: int, known: Counts
    ) -> None:
        self.dfa, self.arcs, self.ends = dfa, arcs, ends
        self.rules, self.most, self.deepest, self.known = rules, most, deepest, known
        self.stations: set[int] = set()
        self.ways: dict[int, list[tuple[int, int]]] = {}  # station -> lengths and ends of the words from there
        self.todo: list[tuple[int, int, int, Callable[[Term], None]]] = []

    def term(self, state: int, low: int, high: int) -> Term:
        count = (low if high >= INFINITE else high) + 1
        self.stations = _stations(self.arcs, state)
        everywhere = {each for each in self.arcs if each != _START}
        between = everywhere - self.stations
        if len(between) > _BETWEEN or self._words_of(between) > len(between) * count:
            self.stations = everywhere  # a word is one character then
        self.ways = {each: _ways(self.arcs, each, self.stations, self.ends) for each in self.stations}
        if (len(self.stations) * count > self.most or count > self.deepest + 1) and not self._is_loop(state):
            raise ExportError(
                f"a text of a pattern and {low} to {high} characters, which takes a rule for each",
                "allow fewer characters, or use the masks, which have no such limit",
            )
        first = self._at(state, low, high)
        for at, least, most, give in self.todo:  # grows
            give(self._body(at, least, most))
        return first

    def _words_of(self, between: set[int]) -> int:
        return sum(len(_ways(self.arcs, each, self.stations, self.ends)) for each in between)

    def _is_loop(self, state: int) -> bool:
        return list(self.arcs[state]) == [state] and state in self.ends

    def _at(self, state: int, low: int, high: int) -> Term:
        if self._is_loop(state):
            return times(self.arcs[state][state], low, high)
        key = (self.dfa, state, low, high)
        if key not in self.known:
            self.known[key], give = self.rules(key)
            self.todo.append((state, low, high, give))
        return self.known[key]

    def _body(self, state: int, low: int, high: int) -> Term:
        out: list[Term] = [NULL] if state in self.ends and not low else []
        for length, to in self.ways[state]:
            if length > high or (to == _END and length < low):
                continue
            rest: Term = NULL
            if to != _END:
                rest = self._at(to, max(0, low - length), high if high >= INFINITE else high - length)
            out.append(row(self._words(state, length, to), rest))
        return either(out)

    def _words(self, state: int, length: int, to: int) -> Term:
        """The texts of so many characters from a state to a station or any end (`_END`), with no station between."""
        if not length:
            return NULL if to == _END and state in self.ends else NONE
        if length == 1 and to != _END:
            return self.arcs[state].get(to, NONE)
        key = (self.dfa, state, -length, to)
        if key not in self.known:
            self.known[key], give = self.rules(key)
            between = [(after, term) for after, term in self.arcs[state].items() if after not in self.stations]
            give(either(row(term, self._words(after, length - 1, to)) for after, term in between))
        return self.known[key]


def _stations(arcs: Arcs, start: int) -> set[int]:
    """The start, and the states to which a walk in depth comes back: without them there is no cycle."""
    found, seen, path = {start}, {start}, {start}
    stack = [(start, iter(arcs[start]))]
    while stack:
        state, after = stack[-1]
        to = next(after, None)
        if to is None:
            stack.pop()
            path.discard(state)
        elif to in path:
            found.add(to)
        elif to not in seen:
            seen.add(to)
            path.add(to)
            stack.append((to, iter(arcs[to])))
    return found


def _ways(arcs: Arcs, start: int, stations: set[int], ends: set[int]) -> list[tuple[int, int]]:
    """(length, station) of the words from a station to the next one, and (length, `_END`) of those that may end."""
    out: list[tuple[int, int]] = []
    layer, length = {start}, 0
    while layer:
        length += 1
        after = {to for state in layer for to in arcs[state]}
        out += [(length, to) for to in sorted(after & stations)]
        layer = after - stations
        if layer & ends:
            out.append((length, _END))
    return out
