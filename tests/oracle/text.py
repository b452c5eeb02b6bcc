"""Text bodies: strings, prose and free keys, one byte at a time.

In: what a text must and must not be (`TextRule`). Out: a piece that steps over its bytes. A text is made of units, one
code point each: in raw spelling its UTF-8 bytes, in JSON spelling also its escapes. No needle may occur in the bytes as
they are spelt; lengths and patterns count and read code points. Invariant: a body is kept only while some completion
satisfies everything at once; that is decided by a search over (pattern states, end of the text so far) by length.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from .matcher import Piece, Symbol
from .patterns import Machine, State

__all__ = ["Text", "TextRule"]

_SHORT = {0x22: '\\"', 0x5C: "\\\\", 0x2F: "\\/", 0x08: "\\b", 0x0C: "\\f", 0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t"}
_SHORT_BYTES = {text.encode(): code for code, text in _SHORT.items()}
_HEX = "0123456789abcdefABCDEF"


@dataclass(frozen=True, eq=False)
class TextRule:
    """What a text must be. `machines` are patterns that must (True) or must not (False) accept it."""

    needles: tuple[bytes, ...] = ()
    spelling: str = "raw"  # raw | json
    least: int = 0
    most: int | None = None
    machines: tuple[tuple[Machine, bool], ...] = ()
    refuse: Callable[[str], bool] | None = None  # of a finished text; only for texts that one more letter rescues
    escapes: bool = True  # JSON: every valid escape, else only the shortest spelling
    _known: dict[object, bool] = field(default_factory=dict)
    _slid: dict[bytes, bytes | None] = field(default_factory=dict)

    @cached_property
    def beginnings(self) -> frozenset[bytes]:
        return frozenset(needle[:size] for needle in self.needles for size in range(len(needle)))

    @cached_property
    def intervals(self) -> tuple[tuple[int, int], ...]:
        """Sets of code points that nothing here tells apart."""
        cuts = {0, 0x20, 0x21, 0x22, 0x23, 0x5C, 0x5D, 0x80, 0x800, 0xD800, 0xE000, 0x10000, 0x110000}
        cuts.update(*(machine.cuts for machine, _ in self.machines))
        for needle in self.needles:
            cuts.update(*((byte, byte + 1) for byte in needle))
        places = sorted(cuts)
        pairs = itertools.pairwise(places)
        return tuple((low, high - 1) for low, high in pairs if not 0xD800 <= low < 0xE000)

    def slide(self, tail: bytes, data: bytes) -> bytes | None:
        """The longest end of the text that a needle begins with; None if a needle has occurred."""
        for byte in data:
            tail += bytes((byte,))
            if tail not in self._slid:
                self._slid[tail] = self._cut(tail)
            cut = self._slid[tail]
            if cut is None:
                return None
            tail = cut
        return tail

    def _cut(self, tail: bytes) -> bytes | None:
        if any(tail.endswith(needle) for needle in self.needles):
            return None
        while tail not in self.beginnings and tail:
            tail = tail[1:]
        return tail


def _utf8_range(unit: bytes) -> tuple[int, int] | None:
    """The code points whose UTF-8 begins with these one to four bytes."""
    lead = unit[0]
    size = 1 if lead < 0x80 else 2 if 0xC2 <= lead <= 0xDF else 3 if 0xE0 <= lead <= 0xEF else 4
    if 0x80 <= lead < 0xC2 or lead > 0xF4 or len(unit) > size or any(b & 0xC0 != 0x80 for b in unit[1:]):
        return None
    low = lead if size == 1 else lead & (0x7F >> size)
    for byte in unit[1:]:
        low = low << 6 | byte & 0x3F
    shift = 6 * (size - len(unit))
    low, high = low << shift, ((low + 1) << shift) - 1
    floor = (0, 0x80, 0x800, 0x10000)[size - 1]
    low, high = max(low, floor), min(high, 0x10FFFF)
    if low >= 0xD800 and high <= 0xDFFF:
        return None
    return (low, high) if low <= high else None


def _escape(code: int) -> bytes:
    if code >= 0x10000:
        high, low = divmod(code - 0x10000, 0x400)
        return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}".encode()
    return f"\\u{code:04x}".encode()


def _shortest(code: int) -> bytes:
    """The one spelling that a JSON writer without ASCII escapes uses."""
    if code in _SHORT and code != 0x2F:
        return _SHORT[code].encode()
    return _escape(code) if code < 0x20 else chr(code).encode()


@lru_cache(maxsize=100_000)
def _escape_ranges(unit: bytes) -> tuple[tuple[int, int], ...]:
    r"""The code points with a \u escape that begins with these bytes."""
    found = re.fullmatch(rf"\\(?:u([{_HEX}]{{0,4}}))?(?:\\(?:u([{_HEX}]{{0,4}}))?)?", unit.decode("latin-1"))
    if found is None:
        return ()
    first = found[1] or ""
    pair = unit.count(b"\\") == 2
    if pair and len(first) != 4:
        return ()
    low, high = int(first.ljust(4, "0"), 16), int(first.ljust(4, "f"), 16)
    second = found[2] or ""
    low2, high2 = int(second.ljust(4, "0"), 16), int(second.ljust(4, "f"), 16)
    ranges = [] if pair else [(low, min(high, 0xD7FF)), (max(low, 0xE000), high)]
    lead_low, lead_high = max(low, 0xD800), min(high, 0xDBFF)
    low2, high2 = max(low2, 0xDC00), min(high2, 0xDFFF)
    if lead_low <= lead_high and low2 <= high2:
        if lead_low == lead_high:
            base = 0x10000 + (lead_low - 0xD800) * 0x400
            ranges.append((base + low2 - 0xDC00, base + high2 - 0xDC00))
        else:
            ranges.append((0x10000 + (lead_low - 0xD800) * 0x400, 0x10000 + (lead_high - 0xD800) * 0x400 + 0x3FF))
    return tuple((a, b) for a, b in ranges if a <= b)


def _whole(rule: TextRule, unit: bytes) -> int | None:
    """The code point that these bytes spell, if they spell one."""
    if rule.spelling == "json" and unit[0] == 0x5C:
        code = _SHORT_BYTES.get(unit)
        if code is None and len(unit) in (6, 12):
            ranges = _escape_ranges(unit)
            code = ranges[0][0] if ranges and ranges[0][0] == ranges[0][1] else None
        if code is not None and not rule.escapes and _shortest(code) != unit:
            return None
        return code
    try:
        text = unit.decode()
    except UnicodeDecodeError:
        return None
    bare = rule.spelling == "json" and (text in '"\\' or text < " ")
    return None if bare else ord(text)


def _completions(rule: TextRule, unit: bytes) -> Iterator[tuple[int, bytes]]:
    """Code points that the unit can still become, one of each kind, with the bytes that are missing."""
    if unit[:1] != b"\\" or rule.spelling == "raw":
        whole = (0, 0x10FFFF) if not unit else _utf8_range(unit)
        for low, high in rule.intervals:
            if whole is None or max(low, whole[0]) > min(high, whole[1]):
                continue
            code = max(low, whole[0])
            if 0xD800 <= code <= 0xDFFF:
                continue
            if _whole(rule, chr(code).encode()) is not None:
                yield code, chr(code).encode()[len(unit) :]
    if rule.spelling == "raw" or unit[:1] not in (b"", b"\\"):
        return
    for code, text in _SHORT.items():
        if text.encode().startswith(unit) and _whole(rule, text.encode()) is not None:
            yield code, text.encode()[len(unit) :]
    for first, last in _escape_ranges(unit or b"\\"):
        for low, high in rule.intervals:
            code = max(low, first)
            if code <= min(high, last) and (rule.escapes or _shortest(code) == _escape(code)):
                yield code, _escape(code)[len(unit) :]


class Text(Piece):
    """A body in the making."""

    __slots__ = ("_hash", "_key", "count", "kept", "rule", "states", "tail", "unit")

    def __init__(
        self, rule: TextRule, states: tuple[State, ...] | None = None, count: int = 0, tail: bytes = b"",
        unit: bytes = b"", kept: str = "",
    ) -> None:  # fmt: skip
        self.rule, self.tail, self.unit, self.kept = rule, tail, unit, kept
        self.states = tuple(machine.start for machine, _ in rule.machines) if states is None else states
        limit = max(rule.least, 1) if rule.most is None else rule.most + 1
        self.count = min(count, limit)
        self._key = (self.states, self.count, tail, unit, kept)
        self._hash = hash((id(rule), self._key))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Text) and self.rule is other.rule and self._key == other._key

    def __hash__(self) -> int:
        return self._hash

    def may_end(self) -> bool:
        if self.unit or not self._length_fits(self.count):
            return False
        return self._accepts(self.states, self.count) and not (self.rule.refuse and self.rule.refuse(self.kept))

    def _length_fits(self, count: int) -> bool:
        return count >= self.rule.least and (self.rule.most is None or count <= self.rule.most)

    def _accepts(self, states: tuple[State, ...], count: int) -> bool:
        pairs = zip(self.rule.machines, states, strict=True)
        return all(machine.accepts(state, empty=count == 0) == wanted for (machine, wanted), state in pairs)

    def step(self, symbol: Symbol) -> Piece | None:
        if isinstance(symbol, str):
            return None
        unit = self.unit + bytes((symbol,))
        tail = self.rule.slide(self.tail, bytes((symbol,)))
        if tail is None:
            return None
        code = _whole(self.rule, unit)
        if code is None:
            after = Text(self.rule, self.states, self.count, tail, unit, self.kept)
        else:
            kept = self.kept + chr(code) if self.rule.refuse else ""
            after = Text(self.rule, self._stepped(self.states, code), self.count + 1, tail, b"", kept)
        return after if after.satisfiable() else None

    def _stepped(self, states: tuple[State, ...], code: int) -> tuple[State, ...]:
        pairs = zip(self.rule.machines, states, strict=True)
        return tuple(machine.step(state, code) for (machine, _), state in pairs)

    def satisfiable(self) -> bool:
        """Whether some completion of this body is admitted."""
        full = self.rule.refuse is not None and self.count == self.rule.most
        key = (self._key[:4], full and self.may_end())
        if key not in self.rule._known:
            self.rule._known[key] = self._search()
        return self.rule._known[key]

    def _search(self) -> bool:
        if self.unit and not any(True for _ in _completions(self.rule, self.unit)):
            return False
        if not self.rule.machines:
            room = self.rule.most is None or self.count + bool(self.unit) < self.rule.most
            exactly = self.rule.most is not None and self.count + bool(self.unit) == self.rule.most
            return room or (exactly and (bool(self.unit) or self.rule.refuse is None or self.may_end()))
        return self._search_machines()

    def _search_machines(self) -> bool:
        if self.may_end():
            return True
        layer = {(self.states, self.tail)}
        unit, count = self.unit, self.count
        visited: set[object] = set()
        while layer and (self.rule.most is None or count < self.rule.most):
            layer = {after for states, tail in layer for after in self._successors(states, tail, unit)}
            unit, count = b"", count + 1
            if count < self.rule.least:
                continue
            if any(self._accepts(states, count) for states, _ in layer):
                return True
            if self.rule.most is None:
                layer -= visited
                visited |= layer
        return False

    def _successors(self, states: tuple[State, ...], tail: bytes, unit: bytes) -> set[tuple[tuple[State, ...], bytes]]:
        found = set()
        for code, missing in _completions(self.rule, unit):
            slid = self.rule.slide(tail, missing)
            after = self._stepped(states, code)
            wanted = zip(self.rule.machines, after, strict=True)
            if slid is not None and all(state or not positive for (_, positive), state in wanted):
                found.add((after, slid))
        return found
