"""Strings: lengths and patterns.

In: schemas that hold together, and the types that stand beside strings at the place. Out: the expression of the strings
that satisfy `minLength`, `maxLength` and `pattern`, in the format's spelling.

Lengths count characters of the value, however they are spelt. A pattern is searched for, as JSON Schema has it, and
speaks of the value, not of its spelling. Where strings have no delimiters, a text that would be read as another
admitted type is no string (`readings`).
Cost: one product of automata for each new pattern; lengths cost nothing until they are met.
"""

from __future__ import annotations

from ..automaton.counted import counted
from ..automaton.dfa import Dfa
from ..automaton.expression import INFINITE, NOTHING, Expr, seq, text
from ..automaton.regex import RegexError, pattern_dfa
from ..errors import LimitExceeded
from ..limits import Limits
from .bounds import greatest, least
from .forms import Forms, both
from .keywords import PLAIN_SCALAR
from .report import Refusal, Report
from .stated import Branch, Types

__all__ = ["narrowed_by", "strings"]


def strings(branch: Branch, forms: Forms, read: Types, report: Report, limits: Limits) -> Expr | Refusal:
    """The strings of a branch."""
    body = forms.body(read)
    if all(schema.keys() <= PLAIN_SCALAR for schema, _ in branch):
        return forms.plain("string") if body is forms.string.body else forms.text(body)
    dfa, low, high = narrowed_by(branch, body, forms.string.table, report, limits)
    inner = counted(dfa, low, high) if (low, high) != (0, INFINITE) else text(dfa)
    if inner is NOTHING:
        return Refusal(branch[0].path, _blamed(branch), "no text that can be written satisfies this")
    return seq(forms.string.before, inner, forms.string.after)


def narrowed_by(
    branch: Branch, body: Dfa, table: str, report: Report, limits: Limits
) -> tuple[Dfa, int, int]:
    """The texts of `body` that match the patterns of a branch, and how many characters they may have."""
    for schema, path in branch:
        if "pattern" not in schema:
            continue
        pattern = schema["pattern"]
        if not isinstance(pattern, str):
            report.malformed(path, "pattern", "a text")
            continue
        try:
            body = both(pattern_dfa(pattern, spelling=table, limits=limits), body, limits)
        except RegexError as error:
            report.relax(path, "pattern", error.construct)
        except LimitExceeded as error:
            report.relax(path, "pattern", str(error))
    low = greatest(branch, "minLength", report)
    high = least(branch, "maxLength", report)
    return body, low, INFINITE if high is None else high


def _blamed(branch: Branch) -> str:
    found = [k for k in ("pattern", "minLength", "maxLength") if any(k in schema for schema, _ in branch)]
    return found[0] if found else "type"
