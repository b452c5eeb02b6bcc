"""Byte automata read as automata over characters: what engines that work on code points can be told.

In: a `Dfa`. Out: `Letters`: for each of its states between characters the sets of characters that lead on, and where.
Invariant: the same texts. An automaton that stops, or only goes on, inside a character has no such form: `ExportError`.
Cost: each byte run once for each of the states inside a character that it is reached from; a state's tails are kept.
"""

from __future__ import annotations

from functools import lru_cache

from ..automaton.dfa import Dfa
from ..errors import ExportError
from .terms import Chars, either

__all__ = ["Letters", "letters"]

_LEADS = (  # first and last lead byte, bytes after it, what is taken off it, first code point
    (0x00, 0x7F, 0, 0x00, 0x00),
    (0xC2, 0xDF, 1, 0xC0, 0x80),
    (0xE0, 0xEF, 2, 0xE0, 0x800),
    (0xF0, 0xF4, 3, 0xF0, 0x10000),
)
_Tail = tuple[tuple[int, int, int], ...]  # (first, last, state) over the code points below a lead


class Letters:
    """`arcs[state]`: state -> the characters that lead there. Only states between characters occur."""

    __slots__ = ("accept", "arcs", "boundary", "start")

    def __init__(self, dfa: Dfa) -> None:
        self.start, self.accept, self.boundary = dfa.start, dfa.accept, dfa.boundary
        self.arcs: dict[int, dict[int, Chars]] = {}
        todo = [dfa.start]
        reader = _Reader(dfa)
        for state in todo:
            if state not in self.arcs:
                self.arcs[state] = reader.arcs(state)
                todo += self.arcs[state]


@lru_cache(maxsize=256)
def letters(dfa: Dfa) -> Letters:
    return Letters(dfa)


class _Reader:
    """Reads one automaton; the rest of a character after each state inside it is worked out once."""

    def __init__(self, dfa: Dfa) -> None:
        self.dfa = dfa
        self._tails: dict[tuple[int, int], _Tail] = {}

    def arcs(self, state: int) -> dict[int, Chars]:
        found: dict[int, list[Chars]] = {}
        for low, high, target in self.dfa.runs[state]:
            for first, last, length, lead, least in _parts(low, high):
                for byte in range(max(low, first), min(high, last) + 1):
                    base = (byte - lead) << 6 * length
                    for begin, end, after in self._tail(target, length):
                        code = (base + begin, base + end)
                        if code[0] < least or code[1] > 0x10FFFF or (code[0] < 0xE000 and code[1] > 0xD7FF):
                            raise _no_characters()
                        found.setdefault(after, []).append(Chars((code,)))
        return {after: chars for after, some in found.items() if isinstance(chars := either(some), Chars)}

    def _tail(self, state: int, length: int) -> _Tail:
        """Where the last `length` bytes of a character lead from a state inside it."""
        if not length:
            return ((0, 0, state),)
        key = (state, length)
        if key not in self._tails:
            if self.dfa.accept[state]:
                raise _no_characters()
            self._tails[key] = self._make_tail(state, length)
        return self._tails[key]

    def _make_tail(self, state: int, length: int) -> _Tail:
        unit = 64 ** (length - 1)
        out: list[tuple[int, int, int]] = []
        for low, high, target in self.dfa.runs[state]:
            if low < 0x80 or high > 0xBF:
                raise _no_characters()
            below = self._tail(target, length - 1)
            for byte in range(low - 0x80, high - 0x80 + 1):
                for begin, end, after in below:
                    first, last = byte * unit + begin, byte * unit + end
                    if out and out[-1][1] == first - 1 and out[-1][2] == after:
                        out[-1] = (out[-1][0], last, after)
                    else:
                        out.append((first, last, after))
        return tuple(out)


def _parts(low: int, high: int) -> list[tuple[int, int, int, int, int]]:
    """The kinds of first bytes in a run; a run that holds other bytes is not covered by them."""
    kinds = [kind for kind in _LEADS if kind[0] <= high and kind[1] >= low]
    covered = sum(min(high, kind[1]) - max(low, kind[0]) + 1 for kind in kinds)
    if covered != high - low + 1:
        raise _no_characters()
    return kinds


def _no_characters() -> ExportError:
    return ExportError("a text is not made of whole characters", "the other engines read characters, not bytes")
