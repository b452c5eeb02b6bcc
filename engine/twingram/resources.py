"""Finds the grammar files that come with the package.

In: the name of a format. Out: the path of its `.lark` file. Invariant: one folder serves a whole process, the first
that exists of the one named by `TWINGRAM_GRAMMARS`, the package's own data, and the `grammars/` folder of a checkout
(an editable install has no data inside the package). A file is a format if it holds a `//@ format` directive; the
others are pieces that formats import. Cost: one folder listing and one read per file.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from .errors import GrammarError

__all__ = ["format_names", "grammar_folder", "grammar_path", "is_path"]

_PACKAGE = Path(__file__).resolve().parent
_FORMAT_DIRECTIVE = re.compile(r"^//@[ \t]*format\b", re.MULTILINE)


def grammar_folder() -> Path:
    """The folder of the grammar files in use; it need not exist when `TWINGRAM_GRAMMARS` says so."""
    named = os.environ.get("TWINGRAM_GRAMMARS")
    if named:
        return Path(named)
    packaged = _PACKAGE / "grammars"
    return packaged if packaged.is_dir() else _PACKAGE.parents[1] / "grammars"


def format_names() -> list[str]:
    """The names of the formats at hand, sorted."""
    return sorted(path.stem for path in grammar_folder().glob("*.lark") if _is_format(path))


def grammar_path(name: str) -> Path:
    """The file of the format `name`; a `GrammarError` lists the names that exist."""
    path = grammar_folder() / f"{name}.lark"
    known = format_names()
    if name not in known:
        listed = ", ".join(known) if known else f"none in {grammar_folder()}"
        raise GrammarError(
            f"there is no format named {name!r}",
            file=str(path),
            hint=f"known formats: {listed}; for a file of your own use Format.from_file(path)",
        )
    return path


def is_path(name: str) -> bool:
    """Whether this is a grammar file rather than the name of a format: a name has no suffix and no folder."""
    path = Path(name)
    return bool(path.suffix) or path.name != name


def _is_format(path: Path) -> bool:
    try:
        return _FORMAT_DIRECTIVE.search(path.read_text(encoding="utf-8")) is not None
    except (OSError, UnicodeDecodeError):
        return False
