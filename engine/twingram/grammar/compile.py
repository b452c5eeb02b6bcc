"""Rules -> expressions.

In: a `Grammar`, an `Alphabet`, and for what the expression is wanted (`Reading`). Out: expressions with tags at the
roles. `holes` put ready-made expressions in the place of rules or roles: this is how a tool's name and the language of
its arguments enter the format's own rules.

What differs between readings: a mask has canonical alternatives only, and its text excludes the letters of every
marker, in valid UTF-8; a parser's text takes any bytes and any marker that does not end it; commits and what is only
parsed exist when parsing.
Invariant: a rule that is part of a cycle is compiled once, behind a reference.
Cost: each rule once for each set of holes; about 0.1 ms a format's turn.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any

from ..automaton.bound import same
from ..automaton.capture import recorder
from ..automaton.choice import alt
from ..automaton.dfa import Dfa, difference, intersect
from ..automaton.dfa import literal as literal_dfa
from ..automaton.dfa import literals as literals_dfa
from ..automaton.ending import at_end, closed
from ..automaton.expression import (
    EMPTY,
    INFINITE,
    NOTHING,
    Expr,
    literal,
    mark,
    repeat,
    seq,
    symbol,
    text,
)
from ..automaton.recursion import Definitions, reference
from ..automaton.regions import Region, exclude_dfa, parse_region, terminal_dfa, unlike_dfa, until_dfa
from ..automaton.spelt import astray, spelt
from ..automaton.tags import COMMIT, LEVEL, close_tag, open_tag
from ..errors import GrammarError
from .alphabet import Alphabet
from .declared import declared_key, declared_tool
from .rules import (
    CLOSED_RULES,
    COMMIT_RULE,
    END_RULE,
    ROLES,
    TEXT_ROLES,
    Branch,
    Choice,
    Condition,
    Grammar,
    Group,
    Literal,
    Loop,
    Node,
    Rule,
    Same,
    Use,
)

__all__ = ["Compiler", "Holes", "Reading", "names_in", "without_empty"]

Holes = Mapping[str, Expr]  # rule name or role -> what stands there
_NO_HOLES: Holes = {}


class Reading(Enum):
    """What an expression is for."""

    MASK = "mask"  # what may be generated
    STRICT = "strict"  # what is canonical, read from any bytes
    LENIENT = "lenient"  # and what is only parsed
    SALVAGE = "salvage"  # and what is only parsed on request


class Compiler:
    """Compiles the rules of one grammar for one alphabet and one reading. `tagged=False` leaves the tags out."""

    def __init__(
        self,
        grammar: Grammar,
        alphabet: Alphabet,
        reading: Reading,
        *,
        tagged: bool = True,
        conditions: bool = False,
    ) -> None:
        """`conditions`: the grammar's conditions on names hold; else any name counts as declared, and no key."""
        self.grammar, self.alphabet, self.reading, self.tagged = grammar, alphabet, reading, tagged
        self.conditions = conditions
        self.ending = EMPTY  # what follows the turn, where something does
        self.definitions = Definitions()
        self._cyclic = cyclic_rules(grammar)
        self._rules: dict[tuple[str, str | None], Expr] = {}  # (rule, inherited text role)
        self._marks: dict[str, tuple[Expr, Expr]] = {}  # role -> what stands around it
        self.kept: dict[Hashable, Any] = {}  # what others build from the rules, once: turns, spellings of values

    # -- rules ---------------------------------------------------------------------------------------------------------

    def rule(self, name: str, holes: Holes = _NO_HOLES, text_role: str | None = None) -> Expr:
        """The expression of a rule, tags of its role included.

        A rule without a role is transparent: text regions in it belong to `text_role`, as where it is used.
        """
        rule = self.grammar.rules[name]
        if rule.role is not None and rule.role in holes:
            return holes[rule.role] if self._reads(rule) else NOTHING
        if name in holes:
            return holes[name]
        if name == COMMIT_RULE:
            return mark(COMMIT) if self.reading is not Reading.MASK and self.tagged else EMPTY
        if name == END_RULE:
            return NOTHING if self.reading is Reading.MASK else at_end(self.ending)
        if name in CLOSED_RULES:
            return NOTHING if self.reading is Reading.MASK else closed(CLOSED_RULES[name])
        if not self._reads(rule):
            return NOTHING
        inherited = text_role if rule.role is None else None
        if holes:  # holes stand where a cycle would close, so this ends
            return self._body(rule, holes, inherited)
        if name not in self._cyclic:
            key = (name, inherited)
            if key not in self._rules:
                self._rules[key] = self._body(rule, holes, inherited)
            return self._rules[key]
        if name not in self.definitions.bodies:
            self.definitions.bodies[name] = NOTHING  # marks it as begun; replaced before anyone unfolds it
            self.definitions.bodies[name] = self._body(rule, _NO_HOLES, None)
        return reference(self.definitions, name)

    def _reads(self, rule: Rule) -> bool:
        if rule.on_request:
            return self.reading is Reading.SALVAGE
        return not rule.parsed_only or self.reading in (Reading.LENIENT, Reading.SALVAGE)

    def settle(self) -> None:
        """To be called once when all rules are compiled: references learn their shortest completion."""
        self.definitions.settle()

    def _body(self, rule: Rule, holes: Holes, text_role: str | None) -> Expr:
        if rule.name in self.grammar.recorded and self.reading is not Reading.MASK:
            return self._recorded(rule)
        branches = self._raw_branch(rule) or rule.choice.branches
        return self._in_role(rule.role, Choice(tuple(branches)), holes, text_role)

    def _recorded(self, rule: Rule) -> Expr:
        """A rule whose text is wanted again: one terminal, which is recorded."""
        branch = rule.choice.branches[0]
        role = rule.role
        if len(rule.choice.branches) == 1 and isinstance(branch.node, Use):
            terminal = self.grammar.terminals.get(branch.node.name)
            if terminal is not None and terminal.pattern is not None:
                names = terminal_dfa(*terminal.pattern)
                if self.grammar.reserved:  # words that stand in the place of a name and are none
                    names = difference(names, literals_dfa(word.encode() for word in self.grammar.reserved))
                body = recorder(names, rule.name)
                return self.tags(role, body) if role is not None else body
        raise GrammarError(
            f"_same{{{rule.name}}} needs a rule that is one terminal, but it is: {rule}", file=self.grammar.file,
            source=self.grammar.source, line=rule.place.line, column=rule.place.column,
            hint=f"write it as {rule.name}: NAME",
        )

    def _in_role(self, role: str | None, choice: Choice, holes: Holes, text_role: str | None) -> Expr:
        """The alternatives, between the tags of a role: around the text regions alone for roles that are text."""
        if role is None or role == "arguments":
            return alt(self._branch(branch, holes, text_role) for branch in choice.branches)
        if role in TEXT_ROLES and self._has_region(choice):
            return alt(self._branch(branch, holes, role) for branch in choice.branches)
        inner = "text" if role in ("string", "key") else None
        return self.tags(role, alt(self._branch(branch, holes, inner) for branch in choice.branches))

    def _raw_branch(self, rule: Rule) -> tuple[Branch, ...] | None:
        """Where everything is text that the schema types, the raw string reads what the typed spellings would."""
        if self.grammar.casts != "raw" or self.reading is Reading.MASK or rule.role in ROLES:
            return None
        for branch in rule.choice.branches:
            if isinstance(branch.node, Use) and self.is_raw_string(branch.node.name):
                return (branch,)
        return None

    def is_raw_string(self, name: str) -> bool:
        """Whether a rule is a string without delimiters."""
        rule = self.grammar.rules.get(name)
        if rule is None or rule.role != "string":
            return False
        nodes = [branch.node for branch in rule.choice.branches]
        return all(isinstance(n.node if isinstance(n, Loop) else n, Use) for n in nodes)

    def _has_region(self, node: Node) -> bool:
        """Whether a text region stands here or in a rule without a role below."""
        return any(self._is_region(use.name) or self._lends_region(use.name) for use in names_in(node))

    def _lends_region(self, name: str) -> bool:
        rule = self.grammar.rules.get(name)
        return rule is not None and rule.role is None and name not in self._cyclic and self._has_region(rule.choice)

    def tags(self, role: str, body: Expr) -> Expr:
        """`body` between the tags of `role`; without tags, containers are still counted."""
        if body is NOTHING:
            return body
        if not self.tagged:
            return seq(body, mark(LEVEL)) if role in ("object", "array") else body
        marks = self._marks.get(role)
        if marks is None:
            marks = self._marks[role] = mark(open_tag(role)), mark(close_tag(role))
        return seq(marks[0], body, marks[1])

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def _branch(self, branch: Branch, holes: Holes, text_role: str | None) -> Expr:
        if branch.role not in ROLES:
            return self.node(branch.node, holes, text_role)
        if branch.role in holes:
            return holes[branch.role]
        return self._in_role(branch.role, Choice((Branch(branch.node),)), holes, None)

    def node(self, node: Node, holes: Holes = _NO_HOLES, text_role: str | None = None) -> Expr:
        """The expression of a node; `text_role` is the role whose tags stand around text regions here."""
        match node:
            case Literal(text=letters):
                return self.letters(letters)
            case Use(name=name):
                if name in self.grammar.rules:
                    return self.rule(name, holes, text_role)
                return self._hole(name, holes, text_role) if name in holes else self.terminal(name, text_role)
            case Group(parts=parts):
                return seq(*(self.node(part, holes, text_role) for part in parts))
            case Choice(branches=branches):
                return alt(self._branch(branch, holes, text_role) for branch in branches)
            case Same(name=name):
                return same(name)
            case Condition():
                return self._condition(node, holes)
            case Loop(node=Use(name=name), low=0, high=1) if name in self.grammar.terminals and name in holes:
                return self._hole(name, holes, text_role)  # what fills the hole decides whether it may be empty
            case Loop(node=Use(name=name), low=0, high=1) if self._is_region(name):
                return self.terminal(name, text_role, nonempty=False)
            case Loop(node=inner, low=low, high=high):
                body = self.node(inner, holes, text_role)
                if (low, high) == (0, 1):
                    return alt((body, EMPTY))
                return repeat(body, low, INFINITE if high is None else high)
        raise AssertionError(node)

    def _condition(self, node: Condition, holes: Holes) -> Expr:
        """A piece that reads only what the tools declare: a tool's name, or a key of the tool that was read so."""
        rule = self.grammar.rules.get(node.name)  # a terminal has none, and no role
        role = None if rule is None else rule.role
        if role in ("tool_name", "silent"):  # a name in a header is not shown
            if not self.conditions:  # no tools were given: any name counts as declared
                return self.rule(node.name, holes)
            return self.tags(role, declared_tool(node.name))
        assert role == "key", "a grammar is checked before it is compiled"
        return self.tags(role, declared_key(of_text=node.of_text))

    def _hole(self, name: str, holes: Holes, text_role: str | None) -> Expr:
        body = self._body_role(name, text_role)
        return self.tags(body, holes[name]) if body else holes[name]

    def _body_role(self, name: str, text_role: str | None) -> str | None:
        """The role whose tags stand around a terminal: of a text region, or of text that is spelt with escapes."""
        if text_role == "text" and self.escapes(name) != "raw":
            return "escaped"
        return text_role if self._is_region(name) else None

    def escapes(self, terminal: str) -> str:
        """The table by which characters are spelt in a terminal: that of the file it comes from."""
        return self.grammar.escapes.get(self.grammar.terminals[terminal].space, "raw")

    def _is_region(self, name: str) -> bool:
        return name in self.grammar.terminals and self._region_of(name) is not None

    def letters(self, letters: str) -> Expr:
        """A literal: its bytes, and the symbols of the markers in it."""
        return seq(*map(self._piece, self.grammar.pieces(letters)))

    def _piece(self, letters: str) -> Expr:
        """A marker, as a symbol or in letters, or a text without any."""
        if letters == "":
            return EMPTY
        number = self.alphabet.number(letters)
        if number is not None:
            return symbol(number)
        marker = self.reading is not Reading.MASK and self._is_spelt(letters)
        return spelt(letters.encode()) if marker else literal(letters.encode())

    # -- terminals -----------------------------------------------------------------------------------------------------

    def _region_of(self, name: str) -> Region | None:
        pattern = self.grammar.terminals[name].pattern
        return parse_region(*pattern) if pattern else None

    def terminal(self, name: str, text_role: str | None = None, *, nonempty: bool = True) -> Expr:
        """The expression of a terminal; a text region stands between the tags of `text_role`."""
        region = self._region_of(name)
        if region is None:
            body = self._plain_terminal(name)
        else:
            dfa, symbols = self.region(region)
            body = text(without_empty(dfa) if nonempty else dfa, symbols=symbols)
        role = self._body_role(name, text_role)
        body = self.tags(role, body) if role else body
        if region is None or self.reading is Reading.MASK:
            return body
        stray = alt(map(self._astray, self._leaking(region, role)))
        body = seq(body, alt((EMPTY, stray)))
        return alt((body, stray)) if nonempty and role is not None else body

    def _leaking(self, region: Region, role: str | None) -> list[bytes]:
        """What ends a text and must not leak into it in part where nothing goes on with it: it is read, whole, and then
        there is no way on. What is a value is not given before it is known to end: there only markers may be others."""
        exact = [text for text in region.literals if text]
        if role is None:
            return [text for text in exact if self._is_spelt(text.decode()) and self.reading is not Reading.STRICT]
        return [text for text in exact if role in TEXT_ROLES and self.alphabet.number(text.decode()) is None]

    def _astray(self, letters: bytes) -> Expr:
        """Canonical readings do not go on from what went astray as if it were something else."""
        return seq(literal(letters), same("no way on")) if self.reading is Reading.STRICT else astray(letters)

    def _is_spelt(self, letters: str) -> bool:
        """Whether it is a marker that is read as letters."""
        return letters in self.alphabet.markers and self.alphabet.number(letters) is None

    def _plain_terminal(self, name: str) -> Expr:
        ways = []
        for pieces in self.grammar.terminals[name].pieces:
            row = []
            for kind, body, flags in pieces:
                row.append(text(terminal_dfa(body, flags)) if kind == "re" else self.letters(body))
            ways.append(seq(*row))
        return alt(ways)

    def region(self, region: Region) -> tuple[Dfa, int]:
        """The byte automaton of a text region, and the markers that may stand in it, as bits."""
        dfa, symbols = self._up_to_its_end(region)
        return dfa if region.unlike is None else intersect(dfa, unlike_dfa(region.unlike)), symbols

    def _up_to_its_end(self, region: Region) -> tuple[Dfa, int]:
        if self.reading is Reading.MASK:
            return self.mask_text([*region.prefixes]), 0
        symbols, needles, trees = self.alphabet.symbols, [], []
        for tree, exact in zip(region.terminators, region.literals, strict=True):
            number = self.alphabet.number(exact.decode()) if exact is not None else None
            if number is not None:
                symbols &= ~(1 << number)
            elif exact is not None:
                needles.append(exact)
            else:
                trees.append(tree)
        if not trees:
            return exclude_dfa(needles, strict=False), symbols
        rest = [tree for tree, exact in zip(region.terminators, region.literals, strict=True) if exact in needles]
        return until_dfa([*trees, *rest], strict=False), symbols

    def mask_text(self, needles: list[bytes], spelling: str = "raw") -> Dfa:
        """Text that may be generated: none of `needles`, no letters of a marker, valid UTF-8."""
        markers = [marker.encode() for marker in self.grammar.markers]
        return exclude_dfa(sorted({*markers, *needles}), strict=True, spelling=spelling)


def without_empty(dfa: Dfa) -> Dfa:
    """The language less the empty text."""
    return difference(dfa, literal_dfa(b"")) if dfa.accept[dfa.start] else dfa


def names_in(node: Node) -> list[Use]:
    """Every name below a node, in order."""
    match node:
        case Use():
            return [node]
        case Condition(name=name, place=place):
            return [Use(name, place)]
        case Group(parts=parts):
            return [use for part in parts for use in names_in(part)]
        case Choice(branches=branches):
            return [use for branch in branches for use in names_in(branch.node)]
        case Loop(node=inner):
            return names_in(inner)
    return []


def _edges(grammar: Grammar) -> dict[str, set[str]]:
    """For each rule those that it names."""
    return {
        name: {use.name for branch in rule.choice.branches for use in names_in(branch.node)} & set(grammar.rules)
        for name, rule in grammar.rules.items()
    }


@lru_cache(maxsize=32)
def cyclic_rules(grammar: Grammar) -> frozenset[str]:
    """The rules that can reach themselves."""
    edges = _edges(grammar)
    reach = {name: set(below) for name, below in edges.items()}
    changed = True
    while changed:
        changed = False
        for below in reach.values():
            more = set().union(*(reach[inner] for inner in below)) if below else set()
            if not more <= below:
                below |= more
                changed = True
    return frozenset(name for name, below in reach.items() if name in below)
