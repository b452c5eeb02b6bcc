"""What can stand right behind a text region: the mistakes that no single rule shows.

In: a `Grammar`. Out: warnings, as text.

* Two regions in a row, with nothing between them: what ends the first can be cut in two, the first part at the end of
  one region and the rest at the start of the other, so that it ends neither. A loop of regions is the usual case.
* A literal behind a region that does not end it (canonical rules only): the region can swallow what closes it.
* A region of content or reasoning that a stop marker does not end: in text, everything after the stop is read as well.
* A pattern in a rule of content or reasoning that is no region (canonical rules only): it does not yield to what may
  follow it, or is markup beside the text.

What can begin and what can end each node is found as for a position automaton, so every two neighbours of the whole
grammar are seen, whatever rules lie between them. Recovery is left out: it begins behind a sync point.
Cost: rounds over the rules until nothing changes; a few milliseconds.

Source: V. M. Glushkov, "The abstract theory of automata" (1961), for first and last positions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ..automaton.regions import Region, parse_region
from .canonical import canonical, canonical_rules
from .compile import names_in
from .rules import ROLES, TEXT_ROLES, Branch, Choice, Grammar, Group, Literal, Loop, Node, Rule, Use

__all__ = ["overlaps", "region_warnings"]


class _Atom(NamedTuple):
    """A region (`name` is its terminal, `role` what it is text of) or a literal (`name` is its text, no role)."""

    name: str
    role: str | None


@dataclass(frozen=True)
class _Edges:
    """What a node can begin and end with, and whether it can be empty."""

    first: frozenset[_Atom] = frozenset()
    last: frozenset[_Atom] = frozenset()
    empty: bool = False


_NOWHERE = _Edges()
_EMPTY = _Edges(empty=True)
_Pair = tuple[_Atom, _Atom]  # neighbours


class _Survey:
    """The edges of every rule, and all neighbours of which the first is a region."""

    def __init__(self, grammar: Grammar, *, lenient: bool) -> None:
        self.grammar, self.lenient = grammar, lenient
        self.regions: dict[str, Region] = {}
        for name, terminal in grammar.terminals.items():
            region = parse_region(*terminal.pattern) if terminal.pattern else None
            if region is not None:
                self.regions[name] = region
        self.pairs: dict[_Pair, None] = {}
        self._edges: dict[tuple[str, str], _Edges] = {}  # (rule, role of the text around it)
        self._again = True
        while self._again:
            self._again = False
            for start in [*(start.rule for start in grammar.starts), *(recover.then for recover in grammar.recovers)]:
                self._rules: set[tuple[str, str]] = set()
                self._rule(start, "")

    def _rule(self, name: str, around: str) -> _Edges:
        rule = self.grammar.rules[name]
        if rule.parsed_only and not self.lenient:
            return _NOWHERE
        role = rule.role or around
        key = (name, role)
        if key not in self._rules:  # each once a round: a rule inside itself is taken as it was known before
            self._rules.add(key)
            found = self._branches(rule.choice.branches, role)
            if found != self._edges.get(key):
                self._edges[key], self._again = found, True
        return self._edges.get(key, _NOWHERE)

    def _branches(self, branches: tuple[Branch, ...], role: str) -> _Edges:
        edges = [self._node(branch.node, branch.role if branch.role in ROLES else role) for branch in branches]
        return _Edges(
            frozenset().union(*(edge.first for edge in edges)),
            frozenset().union(*(edge.last for edge in edges)),
            any(edge.empty for edge in edges),
        )

    def _node(self, node: Node, role: str) -> _Edges:
        match node:
            case Literal(text=text):
                atom = frozenset({_Atom(text, None)})
                return _Edges(atom, atom) if text else _EMPTY
            case Use(name=name) if name in self.grammar.rules:
                return self._rule(name, role)
            case Use(name=name) if name in self.regions:
                atom = frozenset({_Atom(name, role)})
                return _Edges(atom, atom, empty=not self.regions[name].least)
            case Group(parts=parts):
                return self._row([self._node(part, role) for part in parts])
            case Choice(branches=branches):
                return self._branches(branches, role)
            case Loop(node=inner, low=low, high=high):
                edge = self._node(inner, role)
                if high != 1:
                    self._meet(edge.last, edge.first)
                return _Edges(edge.first, edge.last, edge.empty or low == 0)
        return _NOWHERE  # a pattern, or a text said twice: it is neither

    def _row(self, edges: list[_Edges]) -> _Edges:
        whole = _EMPTY
        for edge in edges:
            self._meet(whole.last, edge.first)
            whole = _Edges(
                whole.first | edge.first if whole.empty else whole.first,
                whole.last | edge.last if edge.empty else edge.last,
                whole.empty and edge.empty,
            )
        return whole

    def _meet(self, last: frozenset[_Atom], first: frozenset[_Atom]) -> None:
        for one in sorted(last, key=str):
            if one.role is not None:
                self.pairs.update(dict.fromkeys((one, other) for other in sorted(first, key=str)))


def region_warnings(grammar: Grammar) -> list[str]:
    """One line for each mistake, the place of the region first."""
    whole, canonical = _Survey(grammar, lenient=True), _Survey(grammar, lenient=False)
    found = [*_in_a_row(whole), *_not_ended(canonical), *_past_the_stop(grammar, whole), *_mere_patterns(grammar)]
    return list(dict.fromkeys(found))


def overlaps(grammar: Grammar) -> list[str]:
    """Those that let one text be read in two ways."""
    return [*_in_a_row(_Survey(grammar, lenient=False)), *_mere_patterns(grammar)]


def _in_a_row(survey: _Survey) -> Iterator[str]:
    for one, other in survey.pairs:
        if other.role is None:
            continue
        cut = [text for text in _texts(survey.regions[one.name]) if len(text) > 1]
        if cut:
            what = "itself" if one == other else f"{other.name} ({other.role or 'no role'})"
            yield (
                f"{one.name} ({one.role or 'no role'}) can be followed by {what} with nothing between: "
                f"{cut[0]!r} can be cut in two and then ends neither"
            )


def _not_ended(survey: _Survey) -> Iterator[str]:
    for one, other in survey.pairs:
        if other.role is None and not _ends(survey.regions[one.name], other.name):
            yield f"{one.name} ({one.role or 'no role'}) can be followed by {other.name!r}, which does not end it"


def _past_the_stop(grammar: Grammar, survey: _Survey) -> Iterator[str]:
    uses = {one for one, _ in survey.pairs} | {
        atom for edges in survey._edges.values() for atom in (*edges.first, *edges.last)
    }
    for one in sorted(atom for atom in uses if atom.role in TEXT_ROLES):
        for stop in (*grammar.stops, *grammar.stops_after_call):
            if not _ends(survey.regions[one.name], stop):
                yield f"{one.name} ({one.role}) is not ended by the stop marker {stop!r}, so it goes on behind it"


def _mere_patterns(grammar: Grammar) -> Iterator[str]:
    for name in sorted(canonical_rules(grammar)):
        rule = grammar.rules[name]
        if rule.role not in TEXT_ROLES:
            continue
        terminals = {found: grammar.terminals[found].pattern for found in _terminals_below(rule, grammar, ())}
        patterns = {found: pattern for found, pattern in terminals.items() if pattern is not None}
        regions = [found for found, pattern in patterns.items() if parse_region(*pattern) is not None]
        for found in sorted(patterns.keys() - {*regions}):
            if regions:
                yield f"{found} ({rule.role}) is markup beside the text of {regions[0]}: what it reads is not shown"
            else:
                yield f"{found} ({rule.role}) is a pattern and no text region: it does not yield to what may follow"


def _terminals_below(rule: Rule, grammar: Grammar, above: tuple[str, ...]) -> Iterator[str]:
    """The terminals in a rule and in the rules without a role that it names."""
    for branch in rule.choice.branches:
        node = canonical(branch.node, grammar)
        for use in names_in(node) if node is not None else ():
            inner = grammar.rules.get(use.name)
            if use.name in grammar.terminals:
                yield use.name
            elif inner is not None and inner.role is None and inner.name not in above:
                yield from _terminals_below(inner, grammar, (*above, inner.name))


def _ends(region: Region, text: str) -> bool:
    """Whether a terminator begins as `text` does, or stands in it. One that begins with no fixed text may."""
    spelt = text.encode()
    return any(not prefix or prefix.startswith(spelt) or prefix in spelt for prefix in region.prefixes)


def _texts(region: Region) -> list[str]:
    return [prefix.decode("utf-8", "replace") for prefix in region.prefixes]
