"""What a leaf reads, in words.

In: a leaf of an expression, and the binding of the vocabulary in use. Out: one line.
Cost: a list of keys or names is cut after `_MOST`.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..automaton.choice import Words
from ..automaton.counted import Counted
from ..automaton.expression import INFINITE, Leaf, Literal, Symbol
from ..automaton.members import KeyStep
from ..tokens.binding import TokenBinding
from ..tokens.walk import bits

__all__ = ["byte_class", "describe"]

_MOST = 12  # keys or words that are listed
_WIDE = 128  # so many bytes may begin it: it is text


def describe(leaf: Leaf, binding: TokenBinding) -> str:
    """What stands next."""
    if isinstance(leaf, Literal):
        return spelt(leaf.data)
    if isinstance(leaf, Symbol):
        return _symbol(leaf.number, binding)
    if isinstance(leaf, KeyStep):
        return _keys(leaf)
    if isinstance(leaf, Words):
        return "one of " + _listed(word for word, _ in leaf.entries[leaf.low : leaf.high]) + _begun(leaf.depth)
    text = "text" if leaf.first.bit_count() >= _WIDE else f"text that goes on with {byte_class(leaf.first)}"
    if isinstance(leaf, Counted) and (leaf.low or leaf.high < INFINITE):
        most = f" to {leaf.high}" if leaf.high < INFINITE else " or more"
        return f"{text}, {leaf.low}{most} characters"
    return text


def spelt(data: bytes) -> str:
    """Bytes as a quoted string on one line."""
    return repr(data.decode()) if _is_text(data) else repr(data)


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _symbol(number: int, binding: TokenBinding) -> str:
    names = [binding.text(token).decode("utf-8", "replace") for token in binding.ids(number)]
    listed = ", ".join(names) or "a token that the vocabulary lacks"
    if number == binding.alphabet.end:
        return f"the end of the turn: {listed}"
    if number == binding.alphabet.end_after_call:
        return f"the end of the turn after a call: {listed}"
    return f"the token {listed}"


def _keys(leaf: KeyStep) -> str:
    template = leaf.template
    rest = [
        (key, bool(template.required >> bit & 1))
        for bit, (key, _) in enumerate(template.entries[: leaf.high])
        if bit >= leaf.low and leaf.usable >> bit & 1
    ]
    required = [key for key, needed in rest if needed]
    line = "one of the keys " + _listed(key for key, _ in rest) + _begun(leaf.depth)
    return line + (f" (required: {_listed(required)})" if required else "")


def _begun(depth: int) -> str:
    return f", of which {depth} bytes are written" if depth else ""


def _listed(words: Iterable[bytes]) -> str:
    shown = list(words)
    left = f" and {len(shown) - _MOST} more" if len(shown) > _MOST else ""
    return ", ".join(map(spelt, shown[:_MOST])) + left


def byte_class(first: int) -> str:
    """A set of bytes and markers, given as bits, as a character class."""
    runs: list[list[int]] = []
    for byte in bits(first & ((1 << 256) - 1)):
        if runs and runs[-1][1] == byte - 1:
            runs[-1][1] = byte
        else:
            runs.append([byte, byte])
    marker = " or a marker" if first >> 256 else ""
    return "[" + "".join(_run(low, high) for low, high in runs) + "]" + marker


def _run(low: int, high: int) -> str:
    if low == high:
        return _byte(low)
    return f"{_byte(low)}{'-' if high > low + 1 else ''}{_byte(high)}"


def _byte(byte: int) -> str:
    if chr(byte) in "[]-\\^":
        return f"\\{chr(byte)}"
    return chr(byte) if 0x20 < byte < 0x7F else repr(chr(byte))[1:-1] if byte < 0x20 else f"\\x{byte:02x}"
