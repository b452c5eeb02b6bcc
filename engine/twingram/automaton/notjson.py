"""Text that is no JSON document: what a string may be where nothing marks it, and arrays or objects are admitted too.

In: a byte automaton, which of the two containers are read as such. Out: a `NotJson` leaf: the texts of the automaton
without those that are, outer white space aside, an array or an object. No finite automaton tells them apart, since
containers nest; the leaf keeps the open ones as bits. From the first byte on that no document has, it is plain text.

Invariant: what is text of the automaton stays text here; only where it may end differs, so that the automaton's masks
serve. The automaton can go on from the end of a document with some byte that is no white space.
Cost: a look-up and a shift a byte, as long as the text is the beginning of a document. Numbers are those of `finite`.

Source: RFC 8259.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import cache
from typing import NamedTuple, TypeAlias

from .dfa import NEVER, Dfa
from .expression import EMPTY, Expr, Head, Text, text
from .finite import finite_dfa
from .interning import intern

__all__ = ["NotJson", "is_document", "not_json"]

Reading: TypeAlias = "tuple[int, int]"  # place; open containers as bits below a leading one: 1 an object, 0 an array

_SPACE = b" \t\n\r"
_FREE, _ARRAYS, _OBJECTS, _DONE, _AFTER, _VALUE, _FIRST, _KEY, _FIRST_KEY, _COLON = range(10)
_NONE = 1  # no container is open


class _Lexemes(NamedTuple):
    """place -> byte -> place, inside lexemes and between them; and the places at which a number may end."""

    moves: list[dict[int, int]]
    ends: frozenset[int]


@cache
def _lexemes() -> _Lexemes:
    moves: list[dict[int, int]] = [dict.fromkeys(_SPACE, place) for place in range(10)]

    def place(*ways: tuple[bytes, int]) -> int:
        moves.append({byte: target for letters, target in ways for byte in letters})
        return len(moves) - 1

    def string(after: int) -> int:
        body = place((bytes(range(0x20, 0x100)), len(moves)), (b'"', after))
        digits = body
        for _ in range(4):
            digits = place((b"0123456789abcdefABCDEF", digits))
        moves[body][0x5C] = place((b'"\\/bfnrt', body), (b"u", digits))
        return body

    numbers, first = finite_dfa(), len(moves)
    for row in numbers.rows:
        place(*((bytes((byte,)), first + row[byte]) for byte in range(256) if row[byte]))
    starts = [(bytes((byte,)), target) for byte, target in moves[first + numbers.start].items()]
    for word in (b"true", b"false", b"null"):
        target = _AFTER
        for letter in reversed(word[1:]):
            target = place((bytes((letter,)), target))
        starts.append((word[:1], target))
    starts.append((b'"', string(_AFTER)))
    for here in (_VALUE, _FIRST):
        moves[here].update({byte: target for letters, target in starts for byte in letters})
    key = string(_COLON)
    moves[_KEY][0x22] = moves[_FIRST_KEY][0x22] = key
    moves[_COLON][0x3A] = _VALUE
    ends = frozenset(first + state for state, end in enumerate(numbers.accept) if end)
    for number in ends:
        moves[number].update(dict.fromkeys(_SPACE, _AFTER))
    return _Lexemes(moves, ends)


_OPENS = {  # place -> the brackets that may open there
    _FREE: b"[{", _ARRAYS: b"[", _OBJECTS: b"{", _VALUE: b"[{", _FIRST: b"[{",
}  # fmt: skip

_KINDS = {_FREE: frozenset({"array", "object"}), _ARRAYS: frozenset({"array"}), _OBJECTS: frozenset({"object"})}


def _step(reading: Reading, byte: int) -> Reading | None:
    """One byte further in a document; None if there is none that goes on so."""
    place, opened = reading
    lexemes = _lexemes()
    inner = lexemes.moves[place].get(byte)
    if inner is not None:
        return inner, opened
    if byte in _OPENS.get(place, b""):
        brace = byte == 0x7B
        return (_FIRST_KEY if brace else _FIRST), opened << 1 | brace
    if opened == _NONE:
        return None
    after = place == _AFTER or place in lexemes.ends
    if byte == (0x7D if opened & 1 else 0x5D):
        if after or place == (_FIRST_KEY if opened & 1 else _FIRST):
            return (_AFTER if opened >> 1 > _NONE else _DONE), opened >> 1
    elif byte == 0x2C and after:
        return (_KEY if opened & 1 else _VALUE), opened
    return None


def _read(reading: Reading, data: bytes) -> Reading | None:
    """Several bytes further."""
    for byte in data:
        after = _step(reading, byte)
        if after is None:
            return None
        reading = after
    return reading


def _start(*, arrays: bool, objects: bool) -> Reading:
    return (_FREE if arrays and objects else _ARRAYS if arrays else _OBJECTS), _NONE


def is_document(data: bytes, *, arrays: bool, objects: bool) -> bool:
    """Whether a text is an array (if `arrays`) or an object (if `objects`)."""
    reading = _read(_start(arrays=arrays, objects=objects), data) if arrays or objects else None
    return reading is not None and reading[0] == _DONE


class NotJson(Text):
    """Text of `dfa` that may not end as a document."""

    __slots__ = ("reading",)

    def __init__(self, dfa: Dfa, state: int, reading: Reading) -> None:
        super().__init__(dfa, state, 0)
        self.reading = reading

    @property
    def kinds(self) -> frozenset[str]:
        """The containers that are read as such, before anything is read."""
        return _KINDS[self.reading[0]]

    @property
    def complete(self) -> bool:
        """Whether what has been read is a document, and must go on."""
        return self.reading[0] == _DONE

    def after(self, sym: int) -> Expr:
        return self.moved(self.dfa.rows[self.state][sym], _step(self.reading, sym))

    def moved(self, state: int, reading: Reading | None) -> Expr:
        """What is left there."""
        if reading is None:
            return text(self.dfa, state)
        found: Expr = intern(NotJson, self.dfa, state, reading)
        return found

    def ends_after(self, data: bytes) -> bool:
        """Whether the text may end after these bytes, going by what a document is."""
        reading = _read(self.reading, data)
        return reading is None or reading[0] != _DONE

    def _find_heads(self) -> tuple[Head, ...]:
        heads: list[Head] = []
        if self.dfa.accept[self.state] and not self.complete:
            heads.append(((), None, EMPTY))
        if self.first:
            heads.append(((), self, EMPTY))
        return tuple(heads)

    def measure(self, of: Callable[[Expr], int], spell: Callable[[bytes], int]) -> int:
        """The automaton's own, unless a document is complete: then one byte that is no white space comes first."""
        if not self.complete:
            return self.dfa.shortest[self.state]
        return 1 + min((self.dfa.shortest[state] for state in self.onward()), default=NEVER)

    def onward(self, without: Container[int] = ()) -> set[int]:
        """Where a byte that is no white space leads; `without` are bytes that cannot be written."""
        row = self.dfa.rows[self.state]
        return {row[byte] for byte in range(256) if row[byte] and byte not in _SPACE and byte not in without}

    def __repr__(self) -> str:
        return f"{super().__repr__()}!{self.reading[0]}"


def not_json(dfa: Dfa, *, arrays: bool, objects: bool) -> Expr:
    """The texts of `dfa` that are no array (if `arrays`) and no object (if `objects`)."""
    if not (arrays or objects) or not dfa.start:
        return text(dfa)
    found: Expr = intern(NotJson, dfa, dfa.start, _start(arrays=arrays, objects=objects))
    return found
