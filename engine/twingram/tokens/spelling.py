"""How tokenizer files write the bytes of a token as text.

In: a token's text as a file holds it. Out: its bytes. Two alphabets are in use:
*byte-level*, where each byte is one printable character (the printable ones of Latin-1 stand for themselves, the others
for characters from U+0100 on); and *pieces*, where U+2581 stands for a space and `<0x41>` for a single byte.
Source: the byte alphabet of byte-level BPE (Radford et al. 2019); SentencePiece (Kudo and Richardson 2018).
"""

from __future__ import annotations

import re

__all__ = ["BYTE_LEVEL", "BYTE_TOKEN", "SPACE", "from_byte_level", "replace_surrogates"]

SPACE = "\u2581".encode()
BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_SURROGATE = re.compile("[\ud800-\udfff]")


def _byte_alphabet() -> str:
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return "".join(chr(value if value in printable else next(others)) for value in range(256))


BYTE_LEVEL = _byte_alphabet()
"""The character of each byte value."""
_BYTE_OF = {char: value for value, char in enumerate(BYTE_LEVEL)}


def from_byte_level(text: str) -> bytes:
    """Text with a character outside the alphabet was never encoded, and stands for itself."""
    try:
        return bytes(map(_BYTE_OF.__getitem__, text))
    except KeyError:
        return text.encode("utf-8")


def replace_surrogates(text: str) -> bytes:
    """UTF-8 of any `str`; half a surrogate pair, which no UTF-8 can hold, becomes U+FFFD."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text).encode("utf-8")
