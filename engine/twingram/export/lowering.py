"""Expressions to rules: what a constraint allows, as a grammar without any notation.

In: the start expression of a constraint and the tokens of its markers. Out: `Grammar`: rules by name, the first is the
start. What only the parser needs (tags) is left out. The stop tokens that are allowed at any end are left to the
engine; those that are allowed after a call are tokens of the grammar.

Each expression becomes one rule when it is met, so nothing recurses however deep schemas nest; afterwards rules that
say the same are one, rules of one part are gone, and so is what leads nowhere.
Invariant: the same language, or `ExportError`: nothing is widened; where raw strings stand beside arrays or objects,
those made of JSON lexemes are left out though they are no JSON, since no rule of another engine tells them. Members
stand in one order (see `Constraint.ordered`). How deep containers may nest, and a token budget, are no part of a
grammar.
Cost: linear in the expressions, states of patterns and members that are reached; `most` bounds the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..automaton.choice import Alt, Words
from ..automaton.counted import Counted
from ..automaton.dfa import difference
from ..automaton.expression import EMPTY, INFINITE, NOTHING, Expr, Literal, Mark, Repeat, Seq, Symbol, literal
from ..automaton.expression import Text as Region
from ..automaton.interning import intern
from ..automaton.later import Later
from ..automaton.meet import Meet
from ..automaton.members import Members
from ..automaton.notjson import NotJson
from ..automaton.recursion import Reference
from ..automaton.rows import Rows
from ..errors import ExportError
from ..schema.readings import read_as
from .regular import Counts, regular
from .terms import NONE, NULL, Either, Name, Row, Term, Text, Times, Token, either, row, times, walk

__all__ = ["Grammar", "lowered"]

_MOST = 50_000  # rules


@dataclass(frozen=True)
class Grammar:
    """`rules[start]` is the language."""

    start: str
    rules: dict[str, Term]


def lowered(
    start: Expr, tokens: Callable[[int], Sequence[int] | None], *, most: int = _MOST, deepest: int = INFINITE
) -> Grammar:
    """The grammar of an expression. `tokens`: the ids that a marker's symbol stands for; None: it is the engine's.
    `deepest`: how many rules may refer to each other in a row, at the least."""
    lowering = _Lowering(tokens, most, deepest)
    first = lowering.name(start)
    lowering.run()
    return _tidy(first.name, lowering.rules)


class _Lowering:
    """One export."""

    def __init__(self, tokens: Callable[[int], Sequence[int] | None], most: int, deepest: int) -> None:
        self.tokens, self.most, self.deepest = tokens, most, deepest
        self.rules: dict[str, Term] = {}
        self._names: dict[object, Name] = {}  # expression or other origin -> its rule
        self._todo: list[tuple[Name, Expr, int, str]] = []  # what is lowered, from which item, under which literal
        self._depths: list[int] = []  # of these, by the shortest way from the start
        self._here, self._label = -1, ""
        self._counts: Counts = {}
        self._count = 0

    def run(self) -> None:
        for at, (name, expr, _, _) in enumerate(self._todo):  # grows
            self._here, self._label = at, ""
            try:
                self.rules[name.name] = self._body(expr)
            except ExportError as error:
                raise ExportError(error.message, error.reason, place=self._place(at)) from None

    def _place(self, at: int) -> str:
        """The names of tools, keys and alternatives on the way there."""
        labels: list[str] = []
        while at >= 0:
            _, _, at, label = self._todo[at]
            labels += [label] if label.isprintable() and label.strip() else []
        return " > ".join(reversed(labels))

    def _new(self) -> Name:
        self._count += 1
        if self._count > self.most:
            raise ExportError(
                f"the grammar would have more than {self.most} rules",
                "offer fewer tools, or allow fewer characters in texts; or use the masks, which have no such limit",
            )
        return Name(f"r{self._count}")

    def _rule_of(self, _: object) -> tuple[Name, Callable[[Term], None]]:
        name = self._new()
        return name, lambda term: self.rules.__setitem__(name.name, term)

    def name(self, expr: Expr) -> Name:
        found = self._names.get(expr)
        if found is None:
            found = self._names[expr] = self._new()
            self._todo.append((found, expr, self._here, self._label))
            self._depths.append(self._depths[self._here] + 1 if self._here >= 0 else 1)
            if self._depths[-1] > self.deepest:
                raise ExportError(
                    f"more than {self.deepest} rules that refer to each other in a row",
                    "allow fewer items or members where they are counted; or use the masks, which have no such limit",
                )
        return found

    # -- expressions ---------------------------------------------------------------------------------------------------

    def term(self, expr: Expr) -> Term:
        """An expression in the body of a rule: small ones as they are, others by name."""
        if expr is NOTHING:
            return NONE
        if expr is EMPTY or isinstance(expr, Mark):
            return NULL
        if isinstance(expr, Symbol):
            return self._symbol(expr.number)
        return self.row([expr]) if isinstance(expr, (Literal, Seq)) else self.name(expr)

    def row(self, exprs: Sequence[Expr]) -> Term:
        """Expressions in a row. Bytes that stand together are read together: a character may lie in two parts."""
        parts: list[Term] = []
        run = b""
        stack = list(reversed(exprs))
        while stack:
            expr = stack.pop()
            if isinstance(expr, Seq):
                stack += (expr.tail, expr.head)
            elif isinstance(expr, Literal):
                run += expr.data
            elif not isinstance(expr, Mark):
                parts += (_text(run), self.term(expr))
                run = b""
        return row(*parts, _text(run))

    def _symbol(self, number: int) -> Term:
        ids = self.tokens(number)
        return NULL if ids is None else either(Token(each) for each in ids)

    def _body(self, expr: Expr) -> Term:
        if isinstance(expr, (Literal, Seq, Symbol, Mark)) or expr is EMPTY or expr is NOTHING:
            return self.term(expr)
        if isinstance(expr, Alt):
            return either(self.term(item) for item in expr.items)
        if isinstance(expr, Words):
            return either(self._word(word, expr.depth, tail) for word, tail in expr.entries[expr.low : expr.high])
        if isinstance(expr, Repeat):
            return self._repeat(expr)
        if isinstance(expr, Region):
            if expr.symbols or expr.state != expr.dfa.start:
                raise ExportError("a text from its middle on")
            clear = difference(expr.dfa, read_as(expr.kinds)) if isinstance(expr, NotJson) else expr.dfa
            return regular(clear, 0, INFINITE, self._rule_of, most=self.most)
        if isinstance(expr, Counted):
            return regular(
                expr.dfa, expr.low, expr.high, self._rule_of, most=self.most, deepest=self.deepest, known=self._counts
            )
        if isinstance(expr, (Later, Meet)):
            return self.term(expr.made())
        if isinstance(expr, Reference):
            return self.term(expr.owner.bodies[expr.key])
        if isinstance(expr, Members):
            return self._members(expr)
        if isinstance(expr, Rows):
            return self._rows(expr)
        raise ExportError(f"{expr!r} has no form in other engines")

    def _word(self, word: bytes, depth: int, tail: Expr) -> Term:
        self._label = word.decode("utf-8", "replace")
        return row(_text(word[depth:]), self.term(tail))

    def _repeat(self, expr: Repeat) -> Term:
        """Of a body that may be empty, what is empty is left out: some engines would not come to an end."""
        body, low = expr.body, expr.low
        if not body.shortest:
            if not isinstance(body, Alt) or EMPTY not in body.items:
                raise ExportError("a repetition of what may be empty")
            return times(either(self.term(item) for item in body.items if item is not EMPTY), 0, expr.high)
        return times(self.term(body), low, expr.high)

    # -- members and rows ----------------------------------------------------------------------------------------------

    def _members(self, expr: Members) -> Term:
        template, used = expr.template, expr.used
        count = len(template.entries)
        if count > 1 and template.upto is None:
            raise ExportError("members in any order", "ask for key_order='declared' or 'sorted'")
        between = [template.separator] if expr.begun else []
        ways: list[Term] = []

        def member(parts: Sequence[Expr], after: int, bit: int | None) -> None:
            rest = intern(Members, template, after, True, template.written(expr.written, bit))
            self.term(rest)  # not under this member's key
            self._label = "" if bit is None else template.entries[bit][0].decode("utf-8", "replace")
            ways.append(self.row([*between, template.before, *parts, rest]))
            self._label = ""

        bits = [bit for bit in range(count) if not used >> bit & 1]
        if template.tally is None and bits:
            bits = [min(bits, key=lambda bit: template.upto[bit].bit_count() if template.upto else 0)]
        elif template.tally is not None:
            usable = template.usable(used, expr.written)
            bits = [bit for bit in bits if usable >> bit & 1]
        for bit in bits:
            key, tail = template.entries[bit]
            member([literal(key), tail], template.after(used, bit), bit)
        if template.free is not NOTHING and template.completes(used, template.written(expr.written, None)):
            member([template.free], used, None)
        if template.tally is None and bits:  # the next key is there or it is not
            if not template.required >> bits[0] & 1:
                after = template.after(used, bits[0])
                ways.append(self.name(intern(Members, template, after, expr.begun, expr.written)))
        elif not any(template.missing(used, expr.written)):
            ways.append(NULL)
        return either(ways)

    def _rows(self, expr: Rows) -> Term:
        template, count = expr.template, expr.count
        kinds, ways = template.kinds(count), []
        between = [template.separator] if count else []
        for hit in (1, 0):
            counts = template.after(count, expr.hits, hit)
            if kinds[hit] is not NOTHING and template.completes(*counts):
                ways.append(self.row([*between, kinds[hit], intern(Rows, template, *counts)]))
        if template.ends(count, expr.hits):
            ways.append(NULL)
        return either(ways)


def _text(data: bytes) -> Term:
    try:
        return Text(data.decode()) if data else NULL
    except UnicodeDecodeError:
        raise ExportError(f"{data!r} is not made of whole characters") from None


# -- tidying -----------------------------------------------------------------------------------------------------------


class _Names:
    """The names in the bodies of rules, each body looked through once. Bodies are kept, so that no other is taken for
    one that is gone."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Term, list[str]]] = {}

    def __call__(self, term: Term) -> list[str]:
        found = self._known.get(id(term))
        if found is None:
            names = list(dict.fromkeys(each.name for each in walk(term) if isinstance(each, Name)))
            found = self._known[id(term)] = (term, names)
        return found[1]


def _tidy(start: str, rules: dict[str, Term]) -> Grammar:
    """The same language in fewer rules."""
    names_in = _Names()
    rules = _productive(rules, names_in)
    while True:
        before = len(rules)
        if start not in rules:
            raise ExportError("nothing can be generated")
        names = _renamed(start, rules)
        start = names.get(start, start)
        rules = {
            name: _with(term, names) if any(each in names for each in names_in(term)) else term
            for name, term in rules.items() if name not in names
        }  # fmt: skip
        rules = _inlined(start, rules, names_in)
        if len(rules) == before:
            break
    order = _order(start, rules, names_in)
    numbered = {name: f"r{at}" for at, name in enumerate(order)}
    return Grammar("r0", {numbered[name]: _renaming(rules[name], numbered) for name in order})


def _mapped(term: Term, of: Callable[[Name], Term]) -> Term:
    """With other terms for its names; the very same term where none changes."""
    if isinstance(term, Name):
        return of(term)
    if isinstance(term, Times):
        body = _mapped(term.body, of)
        return term if body is term.body else times(body, term.low, term.high)
    if not isinstance(term, (Row, Either)):
        return term
    parts = [_mapped(part, of) for part in term.parts]
    if all(part is before for part, before in zip(parts, term.parts, strict=True)):
        return term
    return row(*parts) if isinstance(term, Row) else either(parts)


def _with(term: Term, names: dict[str, str]) -> Term:
    return _mapped(term, lambda name: Name(names[name.name]) if name.name in names else name)


_renaming = _with


def _productive(rules: dict[str, Term], names_in: _Names) -> dict[str, Term]:
    """The rules that derive some text, and of these only what does."""
    good: set[str] = set()
    users: dict[str, list[str]] = {}
    for name, term in rules.items():
        for used in names_in(term):
            users.setdefault(used, []).append(name)
    todo = list(rules)
    while todo:
        name = todo.pop()
        if name not in good and _derives(rules[name], good):
            good.add(name)
            todo += users.get(name, ())
    if len(good) == len(rules):
        return rules

    def kept(name: Name) -> Term:
        return name if name.name in good else NONE

    return {name: _mapped(term, kept) for name, term in rules.items() if name in good}


def _derives(term: Term, good: set[str]) -> bool:
    if isinstance(term, Name):
        return term.name in good
    if isinstance(term, Row):
        return all(_derives(part, good) for part in term.parts)
    if isinstance(term, Either):
        return any(_derives(part, good) for part in term.parts)
    return not isinstance(term, Times) or term.low == 0 or _derives(term.body, good)


def _renamed(start: str, rules: dict[str, Term]) -> dict[str, str]:
    """rule -> another one that says the same: of equal bodies the first, of a mere name what it names."""
    first: dict[Term, str] = {}
    names: dict[str, str] = {}
    for name, term in rules.items():
        if isinstance(term, Name) and term.name != name:
            names[name] = term.name
        elif name != start and term in first:
            names[name] = first[term]
        else:
            first.setdefault(term, name)
    return {name: to for name, to in names.items() if to not in names}  # chains are followed in the next round


_SMALL = 3  # parts of a rule that is written out where it is used


def _inlined(start: str, rules: dict[str, Term], names_in: _Names) -> dict[str, Term]:
    """Small rules that use no other are written out where they stand, and rules that are used once."""
    small = {
        name: term for name, term in rules.items()
        if name != start and not names_in(term) and sum(1 for _ in walk(term)) <= _SMALL
    }  # fmt: skip
    if not small:
        return rules
    return {
        name: _mapped(term, lambda n: small.get(n.name, n)) if any(each in small for each in names_in(term)) else term
        for name, term in rules.items() if name not in small
    }  # fmt: skip


def _order(start: str, rules: dict[str, Term], names_in: _Names) -> list[str]:
    """The rules that are reached, in the order in which they are met."""
    order = {start: None}
    todo = [start]
    for name in todo:
        for used in names_in(rules[name]):
            if used not in order:
                order[used] = None
                todo.append(used)
    return list(order)
