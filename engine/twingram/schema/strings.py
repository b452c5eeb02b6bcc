"""Strings: lengths, patterns and formats.

In: schemas that hold together, and the types that stand beside strings at the place. Out: the expression of the strings
that satisfy `minLength`, `maxLength`, `pattern` and `format`, in the format's spelling.

Lengths count characters of the value, however they are spelt. A pattern is searched for, as JSON Schema has it, and
speaks of the value, not of its spelling; one that only counts characters (`^[a-z]{0,63}$`) is taken apart into a class
and a length. Where strings have no delimiters, a text that would be read as another admitted type is no string
(`readings`).
Cost: an automaton for each new pattern; products and lengths cost nothing until they are met.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ..automaton.dfa import Dfa
from ..automaton.expression import INFINITE, NOTHING, Expr, seq
from ..automaton.meet import meet, product, sample
from ..automaton.notjson import not_json
from ..automaton.regex import RegexError, counted_pattern, pattern_dfa
from ..automaton.regions import any_text
from ..errors import LimitExceeded
from ..limits import Limits
from .bounds import greatest, least
from .context import Context
from .formats import FORMATS, UNCHECKED
from .forms import Forms, without_texts
from .keywords import ANNOTATIONS, COMBINING, ENFORCED, Own
from .readings import read_as
from .report import Placed, Refusal
from .stated import Branch, Types

__all__ = ["Narrowed", "narrowed_by", "strings"]


UNRESTRICTED = (ANNOTATIONS | COMBINING | ENFORCED) - {"minLength", "maxLength", "pattern", "format"}
"""Keywords that say nothing of texts, or are followed elsewhere."""
_OPEN = UNRESTRICTED | {"minLength", Own.EXCLUDED}  # and those that leave every text a way to go on
_PRODUCTS = 5  # what part of the states that one automaton may have products of several patterns may have
_SMALL = 64  # a least length up to which it is part of an automaton


class Narrowed(NamedTuple):
    """Texts of both automata, or of the one, that have so many characters. `full`: no further automaton fits in."""

    dfas: tuple[Dfa, ...]
    low: int
    high: int
    full: bool = False

    def also(self, dfa: Dfa, low: int = 0, high: int | None = None, *, limits: Limits) -> Narrowed:
        """Those of them that another automaton accepts, and that are so long."""
        body, *others = self.dfas
        dfas = self.dfas if dfa in self.dfas else (body, product((*others, dfa), limits))
        most = self.high if high is None else min(self.high, high)
        return self._replace(dfas=dfas, low=max(self.low, low), high=most)

    def told(self, dfa: Dfa, low: int, high: int | None, placed: Placed, keyword: str, rest: Context) -> Narrowed:
        """The same, unless it takes too large an automaton, which is reported. Products are tried up to a part of the
        limit only, and once one was too large no more of them: twenty patterns would take seconds else."""
        smaller = replace(rest.limits, automaton_states=max(1, rest.limits.automaton_states // _PRODUCTS))
        try:
            if not self.full or dfa in self.dfas:
                return self.also(dfa, low, high, limits=smaller if len(self.dfas) > 1 else rest.limits)
        except LimitExceeded:
            pass
        rest.report.relax(placed.path, keyword, "with what else restricts the text it needs too large an automaton")
        return self._replace(full=True)

    def expr(self, limits: Limits) -> Expr:
        return meet(self.dfas, self.low, self.high, limits=limits)


def strings(branch: Branch, forms: Forms, read: Types, rest: Context) -> Expr | Refusal:
    """The strings of a branch."""
    free = all(schema.keys() <= UNRESTRICTED for schema, _ in branch)
    if free:
        return forms.free_text(read)
    containers = forms.others(read) & {"array", "object"}
    if containers:
        inner = _beside(containers, branch, forms, read, rest)
    else:
        whole = Narrowed((forms.body(read),), 0, INFINITE)
        found = narrowed_by(branch, whole, forms.string.table, rest)
        try:
            inner = found.expr(rest.limits)
        except LimitExceeded:
            reason = "with what can be written here it needs too large an automaton"
            rest.report.relax(branch[0].path, _blamed(branch), reason)
            inner = found._replace(dfas=found.dfas[:1]).expr(rest.limits)
    if inner is NOTHING:
        return Refusal(branch[0].path, _blamed(branch), "no text that can be written satisfies this")
    return seq(forms.string.before, inner, forms.string.after)


def _beside(containers: frozenset[str], branch: Branch, forms: Forms, read: Types, rest: Context) -> Expr:
    """The inside of strings that have no delimiters, where arrays or objects are admitted beside them."""
    table, limits = forms.string.table, rest.limits
    found = narrowed_by(branch, Narrowed((forms.clear(read),), 0, INFINITE), table, rest)
    open_ended = len(found.dfas) == 1 or all(schema.keys() <= _OPEN for schema, _ in branch)
    if open_ended and found.low <= _SMALL and found.high >= INFINITE:
        if found.low:
            found = found.also(pattern_dfa(f"[^]{{{found.low}}}", spelling=table, limits=limits), limits=limits)
        return not_json(product(found.dfas, limits), arrays="array" in containers, objects="object" in containers)
    try:
        overlap = sample((*found.dfas, read_as(containers)), found.low, found.high, limits=limits) is not None
    except LimitExceeded:  # not known
        overlap = True
    if overlap:
        reason = "a text made of nothing but JSON lexemes is not written as a string, even where it is no JSON"
        rest.report.narrow(branch[0].path, "type", reason)
    return narrowed_by(branch, Narrowed((forms.body(read),), 0, INFINITE), table, rest).expr(limits)


def narrowed_by(branch: Branch, found: Narrowed, table: str, rest: Context) -> Narrowed:
    """The texts of `found` that satisfy the branch."""
    found = found._replace(low=max(found.low, greatest(branch, "minLength", rest.report)))
    for placed in branch:
        schema = placed.schema
        for keyword in ("pattern", Own.UNLIKE):
            if keyword in schema:
                found = _by_pattern(found, placed, keyword, table, rest)
        for keyword in ("format", Own.UNFIT):
            if keyword in schema:
                found = _by_format(found, placed, keyword, table, rest)
    high = least(branch, "maxLength", rest.report)
    rows = (schema.get(Own.EXCLUDED, ()) for schema, _ in branch)
    listed = sorted({value for row in rows for value in row if isinstance(value, str)})
    if listed:
        found = found.also(without_texts(any_text(table), tuple(listed), table, rest.limits), limits=rest.limits)
    return found if high is None else found._replace(high=min(found.high, high))


def _by_pattern(found: Narrowed, placed: Placed, keyword: str | Own, table: str, rest: Context) -> Narrowed:
    schema, path = placed
    pattern = schema[keyword]
    if not isinstance(pattern, str):
        rest.report.malformed(path, "pattern", "a text")
        return found
    try:
        unlike = keyword is Own.UNLIKE
        split = None if unlike else counted_pattern(pattern, spelling=table, limits=rest.limits)
        if split is None:
            split = pattern_dfa(pattern, spelling=table, negate=unlike, limits=rest.limits), 0, None
    except RegexError as error:
        rest.report.relax(path, "pattern", error.construct)
        return found
    except LimitExceeded as error:
        rest.report.relax(path, "pattern", str(error))
        return found
    return found.told(*split, placed, "pattern", rest)


def _by_format(found: Narrowed, placed: Placed, keyword: str | Own, table: str, rest: Context) -> Narrowed:
    schema, path = placed
    name = schema[keyword]
    if not isinstance(name, str):
        rest.report.malformed(path, "format", "a text")
        return found
    if not rest.options.formats:
        rest.report.note(path, "format", "it describes only, as the request has it")
        return found
    if name in UNCHECKED:
        rest.report.relax(path, "format", f"texts are not checked for being a {name}")
        return found
    form = FORMATS.get(name)
    if form is None:
        rest.report.note(path, "format", f"no format of JSON Schema is called {name[:40]!r}: it restricts nothing")
        return found
    away = keyword is Own.UNFIT
    try:
        dfa = pattern_dfa(form.pattern, spelling=table, search=False, negate=away, limits=rest.limits)
    except LimitExceeded as error:
        rest.report.relax(path, "format", str(error))
        return found
    return found.told(dfa, 0, None if away else form.most, placed, "format", rest)


def _blamed(branch: Branch) -> str:
    keywords = ("pattern", "format", "minLength", "maxLength")
    found = [k for k in keywords if any(k in schema for schema, _ in branch)]
    return found[0] if found else "type"
