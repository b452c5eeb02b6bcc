"""Constraints as grammar text, for engines that take nothing else.

In: a `Constraint`. Out: text that allows the same tokens, where the engine has loaded the special tokens of the
vocabulary as such. Layer: above sessions; nothing below imports it.
What text cannot hold is left out: a token budget, how deep containers may nest, any order of keys (`exported` takes the
declared one then), and the stop tokens that end any turn, which the engine adds of itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..automaton.expression import INFINITE
from ..errors import RequestError
from ..session.constraint import Constraint
from .ebnf import ebnf
from .lark import lark
from .lowering import Grammar, lowered

__all__ = ["NOTATIONS", "exported"]

_LONGEST_REPETITION = 1000  # of one repetition in GBNF; more is refused there


def _ebnf(grammar: Grammar) -> str:
    return ebnf(grammar, "Token({})".format)


def _gbnf(grammar: Grammar) -> str:
    return ebnf(grammar, "<[{}]>".format, most_times=_LONGEST_REPETITION)


# Rules that refer to each other in a row: it goes through them by recursion. Stacks of 2 MiB overflow at some 650 of
# these, of 8 MiB at some 2,700, and the process ends.
_DEEPEST = {"llguidance": 512}
_WRITERS: dict[str, Callable[[Grammar], str]] = {"xgrammar": _ebnf, "gbnf": _gbnf, "llguidance": lark}
NOTATIONS = tuple(_WRITERS)


def exported(constraint: Constraint, to: str) -> str:
    """The text of a constraint in a notation; see `Constraint.export`."""
    if to not in _WRITERS:
        raise RequestError(f"to={to!r} is not one of {', '.join(map(repr, NOTATIONS))}")
    constraint = constraint.ordered("declared")
    alphabet = constraint.binding.alphabet

    def tokens(symbol: int) -> Sequence[int] | None:
        return None if symbol == alphabet.end else constraint.binding.ids(symbol)

    (start,) = constraint.machine.start.threads
    return _WRITERS[to](lowered(start, tokens, deepest=_DEEPEST.get(to, INFINITE)))
