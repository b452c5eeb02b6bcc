"""The parser's automaton: the general expression of a format, with recovery, for tokens or for text.

In: a `Grammar`, a start rule, an alphabet, a reading. Out: a `Machine`, shared by all parsers that ask for the same.
A stop marker that is no special token is its letters: after one the turn is over, and whatever follows is read and
ignored. Stop tokens are not seen here; the parser ends the turn itself.
Cost: a few milliseconds, once a process for each combination in use.
"""

from __future__ import annotations

from functools import lru_cache

from ..automaton.choice import alt, maybe
from ..automaton.expression import EMPTY, Expr, mark, seq, text
from ..automaton.machine import Machine
from ..automaton.regions import exclude_dfa
from ..automaton.spelt import spelt
from ..automaton.tags import TagKind, tag
from ..limits import Limits
from .alphabet import Alphabet
from .compile import Compiler, Reading
from .recovery import recovery_of
from .rules import Grammar

__all__ = ["parser_machine"]


@lru_cache(maxsize=64)
def parser_machine(
    grammar: Grammar,
    start: str,
    alphabet: Alphabet,
    reading: Reading,
    limits: Limits,
    vocabulary: bytes = b"",  # noqa: ARG001 - a part of the cache's key
    conditions: bool = False,
) -> Machine:
    """The automaton that reads a whole turn from `start` on.

    `conditions`: the start is to be bound to what the tools declare (see `declared.meaning`), as the grammar asks.
    `vocabulary`: the fingerprint of the one whose tokens are fed, for states keep their transitions by token id.
    """
    compiler = Compiler(grammar, alphabet, reading, conditions=conditions)
    ending = compiler.ending = _ending(grammar, alphabet)
    expr = seq(compiler.rule(start), ending)
    recovery = recovery_of(compiler, ending)
    compiler.settle()
    literals = tuple(sorted({text.encode() for text in grammar.literals() if alphabet.number(text) is None}))
    return Machine(expr, widths=alphabet.widths, recovery=recovery, limits=limits, literals=literals)


def _ending(grammar: Grammar, alphabet: Alphabet) -> Expr:
    """Text after a stop marker is no part of the turn."""
    stops = [stop for stop in (*grammar.stops, *grammar.stops_after_call) if alphabet.number(stop) is None]
    if not stops:
        return EMPTY
    rest = text(exclude_dfa([], strict=False), symbols=alphabet.symbols)
    return maybe(seq(alt(spelt(stop.encode()) for stop in stops), mark(tag(TagKind.STOP, "text")), rest))
