"""Directive comments: what a grammar says beyond rules, in lines that Lark ignores.

In: the text of one file. Out: a list of `Directive`, each its words with their place. A directive is a line that begins
with `//@`; its words are separated by spaces, a word in double quotes is a string with the escapes of Lark's own
(`\\n`, `\\"`, `\\\\`), and a comma ends a group of words.
Cost: one pass over the lines.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from ..errors import GrammarError

__all__ = ["Directive", "read_directives"]

_LINE = re.compile(r"^[ \t]*//@[ \t]*(.*)$", re.MULTILINE)
_WORD = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*")|(,)|([^\s",]+))')


@dataclass(frozen=True, slots=True)
class Directive:
    """`words[0]` is the directive's name. Strings are unquoted; `quoted` tells which words were."""

    words: tuple[str, ...]
    quoted: tuple[bool, ...]
    line: int
    column: int

    def strings(self) -> tuple[str, ...]:
        return tuple(word for word, quoted in zip(self.words, self.quoted, strict=True) if quoted)


def read_directives(source: str, file: str) -> list[Directive]:
    found = []
    for match in _LINE.finditer(source):
        line = source.count("\n", 0, match.start(1)) + 1
        column = match.start(1) - source.rfind("\n", 0, match.start(1))
        words, quoted = _split(match.group(1).rstrip(), file, source, line, column)
        if not words:
            raise GrammarError("an empty directive", file=file, source=source, line=line, column=column)
        found.append(Directive(tuple(words), tuple(quoted), line, column))
    return found


def _split(text: str, file: str, source: str, line: int, column: int) -> tuple[list[str], list[bool]]:
    words: list[str] = []
    quoted: list[bool] = []
    at = 0
    while at < len(text):
        match = _WORD.match(text, at)
        if match is None:
            raise GrammarError(
                "cannot read this directive", file=file, source=source, line=line, column=column + at,
                hint='words are separated by spaces; a string is written "like \\"this\\""',
            )
        string, comma, word = match.groups()
        words.append(ast.literal_eval(string) if string else comma or word)
        quoted.append(bool(string))
        at = match.end()
    return words, quoted
