"""How a format spells values: the pieces of its rules that a schema compiler puts together.

In: a mask `Compiler` and the name of the rule of a value or of an object. Out: a `Spelling`, which knows for each JSON
type what stands before, between and after; nothing here knows any format or any schema.

A rule is taken apart with holes: it is compiled with a placeholder where the string's body, the key or the value goes,
and the expression is cut there. Lists are recognised by their form: `x*`, or `[x (SEPARATOR x)*]`.
Invariant: every expression here carries the same tags at the same places as the general parser's.
Cost: once for each format and alphabet.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ..automaton.dfa import Dfa, intersect, literal, union
from ..automaton.expression import Expr, seq
from ..automaton.regions import parse_region, terminal_dfa, unlike_dfa
from ..errors import GrammarError
from .canonical import canonical, value_roles
from .compile import Compiler, cyclic_rules, names_in, without_empty
from .holes import cut, hole
from .rules import Choice, Group, Loop, Node, Rule, Use

__all__ = ["ArrayShape", "ObjectShape", "Spelling", "StringShape", "cut"]


@dataclass(frozen=True)
class StringShape:
    """A string (or a key): `before`, its body in `body`'s language, `after`. `table` says how characters are spelt."""

    before: Expr
    after: Expr
    body: Dfa
    table: str

    def spell(self, value: str) -> bytes | None:
        """The body of this very string, None if the format cannot write it."""
        try:
            spelt = value.encode() if self.table == "raw" else _inside(value).encode()
            if self.body.matches(spelt):
                return spelt
            if self.table == "raw":
                return None
            spelt = b"".join(_escaped(char) for char in value)  # it holds the letters of a marker: break them up
        except UnicodeEncodeError:
            return None
        return spelt if self.body.matches(spelt) else None


_QUOTED = json.JSONEncoder(ensure_ascii=False).encode  # `json.dumps` makes an encoder anew each time: 1.9 us, not 0.2


def _inside(value: str) -> str:
    return _QUOTED(value)[1:-1]


def _escaped(char: str) -> bytes:
    return f"\\u{ord(char):04x}".encode() if char in "<>[]|/" else _inside(char).encode()


@dataclass(frozen=True)
class ObjectShape:
    """`before` [member (separator member)*] `after`, a member being member_before KEY between VALUE member_after."""

    before: Expr
    member_before: Expr
    key: StringShape
    between: Expr
    member_after: Expr
    separator: Expr
    after: Expr
    value: Spelling


@dataclass(frozen=True)
class ArrayShape:
    """`before` [item (separator item)*] `after`."""

    before: Expr
    separator: Expr
    after: Expr
    item: Spelling


class Spelling:
    """How the values of one rule are written. `raw`: its strings have no delimiters, so that a text that reads as
    another type is of that type."""

    def __init__(
        self, compiler: Compiler, rule: str, *, wrapped: bool = False, ends: tuple[bytes, ...] = ()
    ) -> None:
        self.compiler, self.rule = compiler, rule
        self._names = value_roles(rule, compiler.grammar)
        if not self._names:
            raise self._error(compiler.grammar.rules[rule], "a rule of values lists rules of values", _VALUE_HINT)
        name = self._names.get("string")
        self.raw = name is not None and compiler.is_raw_string(name)
        # Where the schema types raw text, typed values are tagged as text as well: the parser reads them so.
        self._wrap = wrapped or self.raw
        self._inner = Compiler(compiler.grammar, compiler.alphabet, compiler.reading, tagged=False)
        self._used = self._inner if self._wrap else compiler
        self._ends = ends + (self._closers() if self.raw else ())  # what ends the raw text that all this stands in

    @classmethod
    def plain(cls, compiler: Compiler, rule: str) -> Spelling:
        """For an object whose members are tags of their own even where its values are raw text."""
        made = cls(compiler, rule)
        made._wrap, made._used, made._ends = False, compiler, ()
        return made

    @property
    def types(self) -> frozenset[str]:
        """The JSON types that can be written here (`boolean` needs both its words)."""
        names = set(self._names)
        if {"true", "false"} <= names:
            names.add("boolean")
        return frozenset(names - {"true", "false"})

    def _error(self, rule: Rule, message: str, hint: str) -> GrammarError:
        return self.compiler.grammar.fault(rule, f"{message}, but {rule.name!r} is: {rule}", hint)

    def wrap(self, body: Expr) -> Expr:
        """A typed value with the tags that it has when read as raw text."""
        if not self._wrap:
            return body
        return self.compiler.tags("string", self.compiler.tags("text", body))

    def word(self, role: str) -> Expr:
        """`true`, `false` or `null`."""
        return self.wrap(self._used.rule(self._names[role]))

    @cached_property
    def string(self) -> StringShape:
        return self._string_shape(self._names["string"], self.compiler if self.raw else self._used)

    def _string_shape(self, name: str, compiler: Compiler) -> StringShape:
        rule, grammar = compiler.grammar.rules[name], compiler.grammar
        node = canonical(rule.choice, grammar)
        terminals = [use.name for use in names_in(node) if use.name in grammar.terminals] if node is not None else []
        if len(terminals) != 1 or name in cyclic_rules(grammar):
            raise self._error(rule, "a string or key has one terminal for its text", 'string: "\\"" [TEXT] "\\""')
        terminal = terminals[0]
        try:
            before, after = cut(compiler.rule(name, {terminal: hole("text")}), "text")
        except ValueError as error:
            raise self._error(rule, str(error), 'string: "\\"" [TEXT] "\\""') from error
        table = compiler.escapes(terminal)
        body = without_empty(self._body(terminal, table))
        if node is not None and _may_lack(node, terminal):
            body = union(body, literal(b""))
        return StringShape(before, after, body, table)

    def _body(self, terminal: str, table: str) -> Dfa:
        pattern = self.compiler.grammar.terminals[terminal].pattern
        region = parse_region(*pattern) if pattern else None
        if region is not None:
            body = self.compiler.mask_text([*region.prefixes, *self._ends])
            return body if region.unlike is None else intersect(body, unlike_dfa(region.unlike))
        return intersect(self.compiler.mask_text(list(self._ends), table), terminal_dfa(*self._pattern(terminal)))

    def _closers(self) -> tuple[bytes, ...]:
        """What ends a raw string of this spelling."""
        rules, terminals = self.compiler.grammar.rules, self.compiler.grammar.terminals
        names = [use.name for branch in rules[self._names["string"]].choice.branches for use in names_in(branch.node)]
        patterns = [terminals[name].pattern for name in names if name in terminals]
        regions = [parse_region(*pattern) for pattern in patterns if pattern is not None]
        return tuple(prefix for region in regions if region is not None for prefix in region.prefixes)

    @cached_property
    def number(self) -> tuple[Expr, Expr, Dfa]:
        """What stands before a number, after it, and the automaton of its own terminal."""
        name, grammar = self._names["number"], self.compiler.grammar
        names = [use.name for branch in grammar.rules[name].choice.branches for use in names_in(branch.node)]
        if len(names) != 1 or names[0] not in grammar.terminals:
            raise self._error(grammar.rules[name], "a number is one terminal", "number: NUMBER")
        before, after = cut(self.wrap(self._used.rule(name, {names[0]: hole("text")})), "text")
        return before, after, terminal_dfa(*self._pattern(names[0]))

    def _pattern(self, terminal: str) -> tuple[str, str]:
        """The one pattern that a terminal is."""
        grammar = self.compiler.grammar
        found = grammar.terminals[terminal]
        if found.pattern is None:
            raise GrammarError(
                f"a schema narrows terminal {terminal}, so that it has to be one pattern", file=grammar.file,
                source=grammar.source if not found.space else None, line=found.place.line, column=found.place.column,
                hint=f"{terminal}: /pattern/",
            )
        return found.pattern

    @cached_property
    def object(self) -> ObjectShape:
        return self.object_of(self._names["object"])

    def object_of(self, name: str) -> ObjectShape:
        """The shape of an object rule (the arguments themselves, or a value)."""
        rule, used = self.compiler.grammar.rules[name], self._used
        first, member, separator, last = self._list(rule)
        before, after = cut(self._around(rule, first, last, used), "items")
        member_rule = self.compiler.grammar.rules[member]
        value_name, key_name = self._member_names(member_rule)
        holes = {key_name: hole("key"), value_name: hole("value")}
        try:
            start, between, end = cut(used.rule(member, holes), "key", "value")
        except ValueError as error:
            raise self._error(member_rule, str(error), 'member: key ":" value') from error
        value = Spelling(used, value_name, ends=self._ends)
        key = self._string_shape(key_name, used)
        return ObjectShape(before, start, key, between, end, used.node(separator), after, value)

    def _member_names(self, rule: Rule) -> tuple[str, str]:
        rules = self.compiler.grammar.rules
        names = [use.name for branch in rule.choice.branches for use in names_in(branch.node)]
        keys = [name for name in names if name in rules and rules[name].role == "key"]
        values = [name for name in names if name not in keys and value_roles(name, self.compiler.grammar)]
        if len(keys) != 1 or len(values) != 1:
            raise self._error(rule, "a member has one key and one value", 'member: key ":" value')
        return values[0], keys[0]

    @cached_property
    def array(self) -> ArrayShape:
        rule, used = self.compiler.grammar.rules[self._names["array"]], self._used
        first, item, separator, last = self._list(rule)
        before, after = cut(self._around(rule, first, last, used), "items")
        inner = self if item == self.rule and used is self.compiler else Spelling(used, item, ends=self._ends)
        return ArrayShape(before, used.node(separator), after, inner)

    def _around(self, rule: Rule, first: Sequence[Node], last: Sequence[Node], used: Compiler) -> Expr:
        body = seq(used.node(Group(tuple(first))), hole("items"), used.node(Group(tuple(last))))
        return self.wrap(used.tags(rule.role or "", body)) if rule.role else body

    def _list(self, rule: Rule) -> tuple[Sequence[Node], str, Node, Sequence[Node]]:
        """(what stands before the list, the element's rule, the separator, what stands after)"""
        node = canonical(rule.choice, self.compiler.grammar)
        parts = node.parts if isinstance(node, Group) else (node,) if node is not None else ()
        for i, part in enumerate(parts):
            found = _list_of(part)
            if found:
                return parts[:i], found[0], found[1], parts[i + 1 :]
        raise self._error(rule, "an object or array holds one list", '"[" [value ("," value)*] "]", or member*')


_VALUE_HINT = "?value: object | array | string | number | true | false | null"


def _may_lack(node: Node, terminal: str) -> bool:
    """Whether a terminal that stands in a node may be left out."""
    match node:
        case Use(name=name):
            return name != terminal
        case Group(parts=parts):
            return all(_may_lack(part, terminal) for part in parts)
        case Choice(branches=branches):
            return any(_may_lack(branch.node, terminal) for branch in branches)
        case Loop(node=inner, low=low):
            return low == 0 or _may_lack(inner, terminal)
    return True


def _list_of(node: Node) -> tuple[str, Node] | None:
    match node:
        case Loop(node=Use(name=name), low=0, high=None):
            return name, Group(())
        case Loop(node=Group(parts=(Use(name=name), Loop(node=Group(parts=rest), low=0, high=None))), low=0, high=1):
            if isinstance(rest[-1], Use) and rest[-1].name == name:
                return name, Group(tuple(rest[:-1]))
        case _:
            pass
    return None


