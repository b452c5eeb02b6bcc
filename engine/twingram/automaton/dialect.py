"""What the dialects of regular expressions disagree about.

    ecma    ECMA-262 in Unicode mode, as JSON Schema asks for; lenient where validators are (needless escapes, a lone
            brace, `\\A` and `\\Z`, `(?P<name>...)`, leading flags)
    python  Python's `re` on strings, as the terminals of Lark grammars use it
    common  ECMA-262 narrowed to what both readings admit, for text that is to please a reader of either kind: a class
            is what both take it for, but what either takes it for where it is excluded (`[^\\s]`, `(?!\\w)`)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from . import charset as cs
from .charset import CharSet

__all__ = ["DIALECTS", "Dialect", "dialect_named", "property_set"]

DIALECTS = ("ecma", "python", "common")

_BREAK = cs.charset([(0x0A, 0x0A)])
_ECMA_BREAKS = cs.charset([(0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)])


@dataclass(frozen=True, slots=True)
class Dialect:
    """The named sets are found on demand: Unicode's take some milliseconds once."""

    name: str

    @property
    def python(self) -> bool:
        return self.name == "python"

    def named_class(self, letter: str, *, excluded: bool = False) -> CharSet:
        """The set of `\\d`, `\\D`, `\\s`, `\\S`, `\\w` or `\\W`; `excluded` where matching it counts against a text."""
        return _named_class(self.name, letter, excluded)

    def breaks(self, *, excluded: bool = False) -> CharSet:
        """What `.` refuses, and what a line ends with."""
        return _BREAK if self.python or (self.name == "common" and excluded) else _ECMA_BREAKS

    @property
    def words(self) -> CharSet:
        """What a word boundary counts as part of a word."""
        return cs.unicode_word() if self.python else cs.WORD


def dialect_named(name: str) -> Dialect:
    if name not in DIALECTS:
        raise ValueError(f"dialect is one of {', '.join(DIALECTS)}, not {name!r}")
    return Dialect(name)


@cache
def _named_class(dialect: str, letter: str, excluded: bool) -> CharSet:
    if dialect == "common":
        both = _named_class("ecma", letter, False), _named_class("python", letter, False)
        return cs.charset(both[0] + both[1]) if excluded else cs.intersection(*both)
    if letter.isupper():
        return cs.complement(_named_class(dialect, letter.lower(), False))
    if letter == "s":
        return cs.UNICODE_SPACE if dialect == "python" else cs.SPACE
    if dialect == "python":
        return cs.unicode_digits() if letter == "d" else cs.unicode_word()
    return cs.DIGIT if letter == "d" else cs.WORD


_LONG_NAMES = {
    "Other": "C", "Control": "Cc", "Format": "Cf", "Unassigned": "Cn", "Private_Use": "Co", "Surrogate": "Cs",
    "Letter": "L", "Lowercase_Letter": "Ll", "Modifier_Letter": "Lm", "Other_Letter": "Lo", "Titlecase_Letter": "Lt",
    "Uppercase_Letter": "Lu", "Mark": "M", "Combining_Mark": "M", "Spacing_Mark": "Mc", "Enclosing_Mark": "Me",
    "Nonspacing_Mark": "Mn", "Number": "N", "Decimal_Number": "Nd", "digit": "Nd", "Letter_Number": "Nl",
    "Other_Number": "No", "Punctuation": "P", "punct": "P", "Connector_Punctuation": "Pc", "Dash_Punctuation": "Pd",
    "Close_Punctuation": "Pe", "Final_Punctuation": "Pf", "Initial_Punctuation": "Pi", "Other_Punctuation": "Po",
    "Open_Punctuation": "Ps", "Symbol": "S", "Currency_Symbol": "Sc", "Modifier_Symbol": "Sk", "Math_Symbol": "Sm",
    "Other_Symbol": "So", "Separator": "Z", "Line_Separator": "Zl", "Paragraph_Separator": "Zp",
    "Space_Separator": "Zs", "Cased_Letter": "LC",
}  # fmt: skip


def property_set(text: str) -> CharSet | None:
    """The set of `\\p{text}`: general categories and the few properties that follow from them; None for others."""
    key, _, value = text.partition("=")
    if value:
        if key not in ("General_Category", "gc"):
            return None
        key = value
    elif key in ("Any", "Assigned", "ASCII", "ASCII_Hex_Digit", "AHex", "White_Space", "space"):
        return _binary(key)
    name = _LONG_NAMES.get(key, key)
    if name == "LC":
        return cs.charset(run for part in ("Lu", "Ll", "Lt") for run in cs.category(part) or ())
    return cs.category(name)


def _binary(name: str) -> CharSet:
    if name == "Any":
        return cs.ANY
    if name == "Assigned":
        return cs.complement(cs.category("Cn") or ())
    if name == "ASCII":
        return cs.charset([(0, 0x7F)])
    if name in ("White_Space", "space"):  # as `str.isspace`, without the separators U+001C to U+001F
        return cs.intersection(cs.UNICODE_SPACE, cs.complement(cs.charset([(0x1C, 0x1F)])))
    return cs.charset([(0x30, 0x39), (0x41, 0x46), (0x61, 0x66)])
