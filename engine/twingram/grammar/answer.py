"""The answer as data: where content stands, and how a value is spelt there.

In: a mask `Compiler` of a grammar that names a rule for answers. Out: an `AnswerPlace`: the spelling of that rule's
values, and the terminals of content that a compiled value takes the place of.

The value is one text to a parser, so that nothing in it is tagged: it reads back as content, letter by letter. Its
strings keep clear of what would end the content, besides the letters of markers.
Cost: once for each format and alphabet.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..automaton.regions import parse_region
from .compile import Compiler, names_in
from .rules import Grammar
from .spelling import Spelling

__all__ = ["AnswerPlace", "content_terminals"]


def content_terminals(grammar: Grammar) -> tuple[str, ...]:
    """The text regions right under the role of content."""
    names = [
        use.name
        for rule in grammar.rules.values()
        if not rule.parsed_only
        for branch in rule.choice.branches
        if (branch.role or rule.role) == "content"
        for use in names_in(branch.node)
    ]
    patterns = {name: grammar.terminals[name].pattern for name in names if name in grammar.terminals}
    return tuple(name for name, pattern in patterns.items() if pattern is not None and parse_region(*pattern))


@dataclass(frozen=True)
class AnswerPlace:
    """`terminals` are replaced by the answer where they stand for content."""

    spelling: Spelling
    terminals: tuple[str, ...]

    @classmethod
    def of(cls, compiler: Compiler) -> AnswerPlace | None:
        """None: the grammar names no rule for answers."""
        grammar = compiler.grammar
        if not grammar.answer:
            return None
        terminals = content_terminals(grammar)
        ends: list[bytes] = []
        for name in terminals:
            pattern = grammar.terminals[name].pattern
            region = parse_region(*pattern) if pattern else None
            ends += region.prefixes if region is not None else []
        untagged = Compiler(grammar, compiler.alphabet, compiler.reading, tagged=False)
        return cls(Spelling(untagged, grammar.answer, ends=tuple(dict.fromkeys(ends))), terminals)
