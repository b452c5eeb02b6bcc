"""Every exception that Twingram raises on purpose.

    TwingramError
    |-- GrammarError      a grammar file is wrong: file, line, column, caret, hint
    |-- SchemaError       a JSON Schema cannot be compiled: tool, JSON path, keyword, hint
    |-- VocabularyError   a tokenizer cannot be read, or lacks what a format needs
    |-- RequestError      the request contradicts itself (an unknown tool is named ...)
    |-- ExportError       a constraint cannot be written in the notation of another engine
    `-- LimitExceeded     something grew past one of the numbers in `limits.Limits`

A message says what is wrong, where, and what to do about it. The parts are attributes as well, so that a server can
build its own answer from them. Programming errors (a wrong argument type) raise the usual `TypeError`/`ValueError`.
"""

from __future__ import annotations

__all__ = [
    "ExportError",
    "GrammarError",
    "LimitExceeded",
    "RequestError",
    "SchemaError",
    "TwingramError",
    "VocabularyError",
]


class TwingramError(Exception):
    """Base of all errors of this package."""


class GrammarError(TwingramError):
    """A grammar file cannot be used.

    `source` is its text; with `line` and `column` (both from 1) the message shows the place with a caret.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str = "<grammar>",
        line: int | None = None,
        column: int | None = None,
        source: str | None = None,
        hint: str = "",
    ) -> None:
        self.message, self.file, self.line, self.column, self.hint = message, file, line, column, hint
        self.caret = _caret(source, line, column)
        where = file if line is None else f"{file}:{line}" if column is None else f"{file}:{line}:{column}"
        parts = [f"{where}: {message}"]
        if self.caret:
            parts.append(self.caret)
        if hint:
            parts.append(f"hint: {hint}")
        super().__init__("\n".join(parts))


def _caret(source: str | None, line: int | None, column: int | None) -> str:
    if source is None or line is None:
        return ""
    lines = source.splitlines()
    if not 1 <= line <= len(lines):
        return ""
    text = lines[line - 1]
    if column is None:
        return f"  {text}"
    return f"  {text}\n  {' ' * (column - 1)}^"


class SchemaError(TwingramError):
    """A tool's schema cannot be compiled, or nothing satisfies it."""

    def __init__(self, message: str, *, tool: str = "", path: str = "$", keyword: str = "", hint: str = "") -> None:
        self.message, self.tool, self.path, self.keyword, self.hint = message, tool, path, keyword, hint
        where = " ".join(part for part in (f"tool {tool!r}" if tool else "", path, keyword) if part)
        super().__init__(f"{where}: {message}" + (f" ({hint})" if hint else ""))


class VocabularyError(TwingramError):
    """A vocabulary cannot be read, has no token for some byte, or lacks a special token that a format needs."""


class RequestError(TwingramError):
    """The request contradicts itself: an unknown tool in a named choice, `required` without tools ..."""


class ExportError(TwingramError):
    """A constraint cannot be written as grammar text for another engine without changing what it allows."""

    def __init__(self, message: str, reason: str = "", *, place: str = "") -> None:
        self.message, self.reason, self.place = message, reason, place
        where = f"{place}: " if place else ""
        super().__init__(f"cannot export: {where}{message}" + (f" ({reason})" if reason else ""))


class LimitExceeded(TwingramError):
    """Something grew past a limit. `name` is the field of `Limits`, `value` its setting, or `ceiling` where a larger
    setting has no effect."""

    def __init__(self, name: str, value: int, what: str, *, ceiling: int | None = None) -> None:
        self.name, self.value = name, value if ceiling is None else min(value, ceiling)
        way_out = f"Limits.{name} = {self.value}; pass a larger Limits to allow it"
        if self.value == ceiling:
            way_out = f"here {name} = {ceiling} at most, and no larger Limits allows more: nest less deeply"
        super().__init__(f"{what} ({way_out})")
