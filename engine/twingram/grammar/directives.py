"""Directive comments: what a grammar says beyond rules, in lines that Lark ignores.

In: the text of one file. Out: a list of `Directive`, each its words with their place. A directive is a line that begins
with `//@`; its words are separated by spaces, a word in double quotes is a string with the escapes of Lark's own
(`\\n`, `\\"`, `\\\\`), and a comma ends a group of words.
Cost: one pass over the lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import GrammarError

__all__ = ["Directive", "read_directives", "unquoted"]

_LINE = re.compile(r"^[ \t]*//@[ \t]*(.*)$", re.MULTILINE)
_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U(000[0-9a-fA-F]{5}|0010[0-9a-fA-F]{4})|(.))", re.DOTALL
)
_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", '"': '"', "\\": "\\"}
_WORD = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*")|(,)|([^\s",]+))')


@dataclass(frozen=True, slots=True)
class Directive:
    """`words[0]` is the directive's name. Strings are unquoted; `quoted` tells which words were."""

    words: tuple[str, ...]
    quoted: tuple[bool, ...]
    line: int
    column: int

    def strings(self, end: int | None = None) -> tuple[str, ...]:
        """The words up to `end`, which are strings; `ValueError` if there are none, or other words among them."""
        listed = [pair for pair in zip(self.words, self.quoted, strict=True) if pair != (",", False)][1:end]
        if not listed or not all(word and quoted for word, quoted in listed):
            raise ValueError(f'write texts in quotes after it: {self.words[0]} "one" "another"')
        return tuple(word for word, _ in listed)


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


def unquoted(string: str) -> str:
    """The text of a string with its quotes, by Lark's escapes; a backslash before anything else stands for itself.

    `ast.literal_eval` would do, were it not for CPython 3.11, where it fails if several threads use it at once.
    """
    return _ESCAPE.sub(_escaped, string[1:-1])


def _escaped(match: re.Match[str]) -> str:
    code = match.group(1) or match.group(2) or match.group(3)
    return chr(int(code, 16)) if code else _LETTERS.get(match.group(4), match.group())


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
        words.append(unquoted(string) if string else comma or word)
        quoted.append(bool(string))
        at = match.end()
    return words, quoted
