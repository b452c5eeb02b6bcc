"""Casts: from the text of a value to its JSON text, by the types that the schema admits.

In: decoded text, the admitted types (a frozen set of JSON Schema type names, or None for anything) and how deep JSON
may nest. Out: valid JSON text, always. Two tables, named for how a format writes strings:

    quoted   strings stand between delimiters, other scalars are bare (`cast_string`, `cast_bare`)
    raw      everything is bare text and only the schema knows its type (`cast_raw`)

Strict forms, in which text stands for a type that is no string (outer white space aside):

    integer  [+-]?[0-9]+                          written without `+` and leading zeros, any length
    number   digits with one dot anywhere, an exponent; finite       007. -> 7.0   .5 -> 0.5
    boolean  true, false in any case
    null     null (bare text also None)
    array, object   a JSON text of that type, handed on as written

Invariants: digits are never read as a float and written back; what no form fits stays text; a value never holds NaN,
an infinity or half a surrogate pair. Where raw text may be a number or a string, it is a number only if it is surely
finite (`automaton.finite`), because that is what masks keep strings clear of.
Cost: linear in the text. JSON is checked with a loop and an explicit stack, so depth costs no recursion.

Source: RFC 8259 for JSON; the strict forms follow what tool servers agree on (docs/grammars.md).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from json.encoder import encode_basestring

from ..automaton.finite import is_finite

__all__ = ["Types", "cast_bare", "cast_raw", "cast_string", "document", "quote", "unescape", "unquote"]

Types = frozenset[str] | None
"""The admitted types. Where `number` is admitted, `integer` is in the set as well."""

STRING: Types = frozenset({"string"})
JSON_SPACE = " \t\n\r"
SPACE = " \t\n\r\f\v"

_INTEGER = re.compile(r"([+-]?)([0-9]+)")
_NUMBER = re.compile(r"([+-]?)([0-9]*)(\.?)([0-9]*)((?:[eE][+-]?[0-9]+)?)")
_EXACT = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")

_WORDS = {"true": "boolean", "false": "boolean", "null": "null"}

quote = encode_basestring
"""A string as JSON text, as `json.dumps` writes it with `ensure_ascii=False`."""


# -- the two tables ----------------------------------------------------------------------------------------------------


def cast_string(text: str, types: Types, depth: int) -> str:
    """Text that stood between string delimiters: a string, unless the schema admits none and a strict form fits."""
    if types is None or "string" in types:
        return quote(text)
    cast = _strict(text, types, depth)
    return quote(text) if cast is None else cast


def cast_bare(text: str, role: str, types: Types, depth: int) -> str:
    """Text without delimiters; `role` is what the grammar took it for (`number`, `true`, ..., or `bare`)."""
    if (kind := _as_written(text, role)) is not None:
        return text if types is None or kind in types or "string" not in types else quote(text)
    text = text.strip(SPACE)
    inner = unquote(text)
    if inner is not None:
        return cast_string(inner, types, depth)
    if types == STRING:
        return quote(text)
    guess = _guess(text, role)
    if guess is None:
        return cast_string(text, types, depth)
    kind, written = guess
    if types is None:
        return written
    if "string" in types and (kind not in types or (kind in ("integer", "number") and written != text)):
        return quote(text)
    return written


def cast_raw(text: str, types: Types, depth: int, *, declared: bool = True) -> str:
    """Text of a format in which nothing marks a string. `declared` False: the tool has no schema at all."""
    if types == STRING:
        return quote(text)
    if types is not None and "string" not in types:
        cast = _strict(text, types, depth)
        return quote(text) if cast is None else cast
    read = document(text, depth, is_finite)
    if read is None:
        return quote(text)
    kind, written = read
    if kind == "string":
        return quote(text) if declared else written
    return written if types is None or kind in types else quote(text)


# -- forms -------------------------------------------------------------------------------------------------------------


def _strict(text: str, types: frozenset[str], depth: int) -> str | None:
    """The JSON text of the one admitted type whose strict form fits, if any. The forms exclude each other."""
    text = text.strip(SPACE)
    if "integer" in types and (found := _INTEGER.fullmatch(text)):
        return _minus(found[1]) + (found[2].lstrip("0") or "0")
    if "number" in types and (number := _number(text)) is not None:
        return number
    if "boolean" in types and text.lower() in ("true", "false"):
        return text.lower()
    if "null" in types and text in ("null", "None"):
        return "null"
    if ("object" in types or "array" in types) and text[:1] in ("{", "["):
        read = document(text, depth)
        return None if read is None else read[1]
    return None


def _guess(text: str, role: str) -> tuple[str, str] | None:
    """Type and JSON text of a bare scalar that is no string. The grammar's word for true, false, null wins."""
    if role in ("true", "false"):
        return "boolean", role
    if role == "null" or text in ("null", "None"):
        return "null", "null"
    if text.lower() in ("true", "false"):
        return "boolean", text.lower()
    number = _number(text)
    if number is None:
        return None
    return ("integer" if _INTEGER.fullmatch(number) else "number"), number


def _as_written(text: str, role: str) -> str | None:
    """The type of what most scalars are, plain digits or a word: nothing of it is rewritten. (0.9 us faster.)"""
    if role == "number":
        plain = text.isdecimal() and text.isascii() and (text[0] != "0" or len(text) == 1)
        return "integer" if plain else None
    return _WORDS.get(role) if text == role else None


def _number(text: str) -> str | None:
    """A finite number as JSON writes it, its digits kept; None for any other text."""
    if not _EXACT.fullmatch(text):
        found = _NUMBER.fullmatch(text)
        if found is None:
            return None
        sign, whole, dot, fraction, exponent = found.groups()
        if not (whole or fraction):
            return None
        text = _minus(sign) + (whole.lstrip("0") or "0") + (f".{fraction or '0'}" if dot else "") + exponent
    return text if _finite(text) else None


def _minus(sign: str) -> str:
    return "-" if sign == "-" else ""


def _finite(number: str) -> bool:
    """Integers are exact at any length; anything else must fit a double."""
    return number.lstrip("-").isdigit() or math.isfinite(float(number))


# -- quotes and escapes ------------------------------------------------------------------------------------------------

_DOUBLE_QUOTED = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_PAIR = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPE = re.compile(rf"{_PAIR}|\\u[0-9a-fA-F]{{4}}|\\.", re.DOTALL)
_HALF = re.compile(rf"{_PAIR}|\\u[dD][89a-fA-F][0-9a-fA-F]{{2}}|\\[^u]|\\u")
_PARTIAL = re.compile(  # what may still grow into a longer escape
    r"\\(?:u[0-9a-fA-F]{0,3})?|\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u(?:[dD](?:[c-fC-F][0-9a-fA-F]?)?)?)?)?"
)
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "/": "/"}


def unquote(text: str) -> str | None:
    """The inside of text in one pair of quotes, None without. Double quotes have JSON's escapes, the others none."""
    if len(text) < 2 or text[0] != text[-1] or text[0] not in "\"'`":
        return None
    if text[0] == '"':
        return unescape(text[1:-1])[0] if _DOUBLE_QUOTED.fullmatch(text) else None
    return text[1:-1] if text[0] not in text[1:-1] else None


def unescape(text: str, *, final: bool = True) -> tuple[str, int]:
    """Resolve JSON escapes, an unknown one staying as written. Also how many final characters must wait for more."""
    pieces: list[str] = []
    done = 0
    while (at := text.find("\\", done)) >= 0:
        pieces.append(text[done:at])
        if not final and len(text) - at < 12 and _PARTIAL.fullmatch(text, at):
            return "".join(pieces), len(text) - at
        found = _ESCAPE.match(text, at)
        escape = "\\" if found is None else found[0]
        pieces.append(_character(escape))
        done = at + len(escape)
    pieces.append(text[done:])
    return "".join(pieces), 0


def _character(escape: str) -> str:
    if len(escape) == 12:
        return chr(0x10000 + ((int(escape[2:6], 16) - 0xD800) << 10) + int(escape[8:], 16) - 0xDC00)
    if len(escape) == 6:
        point = int(escape.removeprefix("\\u"), 16)
        return "\ufffd" if 0xD800 <= point < 0xE000 else chr(point)
    return _SHORT.get(escape[1:], escape)


# -- JSON --------------------------------------------------------------------------------------------------------------

_LEXEME = re.compile(
    r"""[ \t\n\r]*(?:
        (?P<open>[\[{]) | (?P<close>[\]}]) | (?P<comma>,) | (?P<colon>:)
      | (?P<string>"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*")
      | (?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
      | (?P<boolean>true|false) | (?P<null>null)
    )[ \t\n\r]*""",
    re.VERBOSE,
)
_VALUE, _KEY, _CLOSE, _COMMA, _COLON, _END = 1, 2, 4, 8, 16, 32  # what may come next, as bits


def document(text: str, depth: int, finite: Callable[[str], bool] = _finite) -> tuple[str, str] | None:
    """Type and text (outer white space off) of a JSON text that nests at most `depth` deep, all of whose numbers are
    `finite`; None if it is not one."""
    text = text.strip(JSON_SPACE)
    kind = _first_type(text)
    if kind is None or not _valid(text, depth, finite):
        return None
    if kind == "number" and _INTEGER.fullmatch(text):
        kind = "integer"
    return kind, _HALF.sub(_whole, text) if "\\u" in text else text


def _first_type(text: str) -> str | None:
    found = _LEXEME.match(text)
    if found is None:
        return None
    return {"{": "object", "[": "array"}.get(text[0]) if found.lastgroup == "open" else found.lastgroup


def _whole(found: re.Match[str]) -> str:
    """Half of a surrogate pair is no character: it becomes the replacement character, as in any decoded text."""
    return "\\ufffd" if len(found[0]) == 6 else found[0]


def _valid(text: str, depth: int, finite: Callable[[str], bool]) -> bool:
    closers: list[str] = []
    expected, at = _VALUE, 0
    while at < len(text):
        found = _LEXEME.match(text, at)
        if found is None:
            return False
        at = found.end()
        kind = found.lastgroup
        if kind == "open":
            if not expected & _VALUE or len(closers) >= depth:
                return False
            brace = found[kind] == "{"
            closers.append("}" if brace else "]")
            expected = _CLOSE | (_KEY if brace else _VALUE)
        elif kind == "close":
            if not expected & _CLOSE or closers.pop() != found[kind]:
                return False
            expected = _COMMA | _CLOSE if closers else _END
        elif kind in ("comma", "colon"):
            if not expected & (_COMMA if kind == "comma" else _COLON):
                return False
            expected = _KEY if kind == "comma" and closers[-1] == "}" else _VALUE
        elif kind == "string" and expected & _KEY:
            expected = _COLON
        else:
            if not expected & _VALUE or (kind == "number" and not finite(found[kind])):
                return False
            expected = _COMMA | _CLOSE if closers else _END
    return expected == _END
