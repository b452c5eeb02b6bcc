"""The languages of `format`.

In: the name of a format. Out: a pattern that matches exactly its texts, from end to end, in the dialect that schemas
use; and how many characters they may have. Formats of JSON Schema that are not regular, or that are not written down
here, are listed in `UNCHECKED`; any other name restricts nothing, as the specification has it.

What is left to say: a leap second (`23:59:60`) is written in UTC only; the year is not 0000; an internet address that
is no plain name (`user@[192.0.2.1]`) and a quoted local part are addresses too.

Source: RFC 3339 (date, time, date-time, duration), RFC 5321 (email), RFC 1123 (hostname), RFC 2673 and RFC 4291 (ipv4,
ipv6), RFC 3986 and RFC 3987 (uri, iri and their references), RFC 6570 (uri-template), RFC 4122 (uuid), RFC 6901
(json-pointer).
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["FORMATS", "UNCHECKED", "TextFormat"]

UNCHECKED = frozenset({"regex", "idn-email", "idn-hostname"})
"""Formats of JSON Schema that are not enforced."""


class TextFormat(NamedTuple):
    """The texts that match `pattern` from end to end and have at most `most` characters."""

    pattern: str
    most: int | None = None


_DATE = (
    "(?!0000)(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    "|02-(?:0[1-9]|1[0-9]|2[0-8]))"
    "|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
)
_TIME = (
    "(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]+)?(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
    "|23:59:60(?:\\.[0-9]+)?(?:[Zz]|[+-]00:00))"
)
_CLOCK = "(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)"
_DAYS = "(?:[0-9]+D|[0-9]+M(?:[0-9]+D)?|[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?)"
_DURATION = f"P(?:{_DAYS}(?:T{_CLOCK})?|T{_CLOCK}|[0-9]+W)"

_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST = f"{_LABEL}(?:\\.{_LABEL})*"
_PLAIN_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"  # of addresses: nobody counts the letters there
_BYTE = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = f"{_BYTE}(?:\\.{_BYTE}){{3}}"
_H16 = "[0-9A-Fa-f]{1,4}"
_LS32 = f"(?:{_H16}:{_H16}|{_IPV4})"
_IPV6 = "(?:" + "|".join(
    [
        f"(?:{_H16}:){{6}}{_LS32}",
        f"::(?:{_H16}:){{5}}{_LS32}",
        f"(?:{_H16})?::(?:{_H16}:){{4}}{_LS32}",
        f"(?:(?:{_H16}:){{0,1}}{_H16})?::(?:{_H16}:){{3}}{_LS32}",
        f"(?:(?:{_H16}:){{0,2}}{_H16})?::(?:{_H16}:){{2}}{_LS32}",
        f"(?:(?:{_H16}:){{0,3}}{_H16})?::{_H16}:{_LS32}",
        f"(?:(?:{_H16}:){{0,4}}{_H16})?::{_LS32}",
        f"(?:(?:{_H16}:){{0,5}}{_H16})?::{_H16}",
        f"(?:(?:{_H16}:){{0,6}}{_H16})?::",
    ]
) + ")"  # fmt: skip
_ATEXT = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LOCAL = f'(?:{_ATEXT}(?:\\.{_ATEXT})*|"(?:[ !#-\\[\\]-~]|\\\\[ -~])*")'
_EMAIL = f"{_LOCAL}@(?:{_PLAIN_LABEL}(?:\\.{_PLAIN_LABEL})*|\\[(?:{_IPV4}|IPv6:{_IPV6})\\])"

_HEX = "[0-9A-Fa-f]"
_UUID = f"{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}"
_BEYOND = "\\u00A0-\\uD7FF\\uF900-\\uFDCF\\uFDF0-\\uFFEF\\u{10000}-\\u{1FFFD}\\u{20000}-\\u{EFFFD}"


def _resource(*, reference: bool, beyond: str = "") -> str:
    """A URI, or a reference to one; `beyond` are the characters that an IRI may hold besides."""
    unreserved, delimiters = f"A-Za-z0-9._~{beyond}\\-", "!$&'()*+,;="
    percent = f"%{_HEX}{{2}}"
    name = f"(?:[{unreserved}{delimiters}]|{percent})*"
    user = f"(?:[{unreserved}{delimiters}:]|{percent})*"
    letter = f"(?:[{unreserved}{delimiters}:@]|{percent})"
    literal = f"\\[(?:{_IPV6}|v{_HEX}+\\.[{unreserved}{delimiters}:]+)\\]"
    authority = f"(?:{user}@)?(?:{literal}|{name})(?::[0-9]*)?"
    rest = f"(?:/{letter}*)*"
    tail = f"(?:\\?(?:{letter}|[/?])*)?(?:#(?:{letter}|[/?])*)?"
    absolute = f"/(?:{letter}+{rest})?"
    whole = f"[A-Za-z][A-Za-z0-9+.-]*:(?://{authority}{rest}|{absolute}|{letter}+{rest}|){tail}"
    if not reference:
        return whole
    first = f"(?:[{unreserved}{delimiters}@]|{percent})+"
    return f"(?:{whole}|(?://{authority}{rest}|{absolute}|{first}{rest}|){tail})"


_VARIABLE = f"(?:[A-Za-z0-9_]|%{_HEX}{{2}})(?:\\.?(?:[A-Za-z0-9_]|%{_HEX}{{2}}))*(?::[1-9][0-9]{{0,3}}|\\*)?"
_TEMPLATE = (
    f"(?:[^\\u0000- \"'%<>\\\\^`{{|}}\\u007f]|%{_HEX}{{2}}|\\{{[+#./;?&=,!@|]?{_VARIABLE}(?:,{_VARIABLE})*\\}})*"
)
_POINTER = "(?:/(?:[^/~]|~[01])*)*"

FORMATS: dict[str, TextFormat] = {
    "date": TextFormat(_DATE),
    "time": TextFormat(_TIME),
    "date-time": TextFormat(f"{_DATE}[Tt]{_TIME}"),
    "duration": TextFormat(_DURATION),
    "email": TextFormat(_EMAIL),
    "hostname": TextFormat(_HOST, 253),
    "ipv4": TextFormat(_IPV4),
    "ipv6": TextFormat(_IPV6),
    "uri": TextFormat(_resource(reference=False)),
    "uri-reference": TextFormat(_resource(reference=True)),
    "iri": TextFormat(_resource(reference=False, beyond=_BEYOND)),
    "iri-reference": TextFormat(_resource(reference=True, beyond=_BEYOND)),
    "uri-template": TextFormat(_TEMPLATE),
    "uuid": TextFormat(_UUID),
    "json-pointer": TextFormat(_POINTER),
    "relative-json-pointer": TextFormat(f"(?:0|[1-9][0-9]*)(?:#|{_POINTER})"),
}
