"""Text to tokens: literals first, then byte-pair merges, or the longest match where a vocabulary has no merges.

In: bytes (UTF-8) to be spelt with ordinary tokens. Out: token ids.
Invariant: where an `Encoder` does not spell its input exactly, its caller takes `longest_match`, which does or raises.
Cost: n log n in the length of a piece, with a heap; repeated short pieces are looked up.
Source: R. Sennrich et al., "Neural Machine Translation of Rare Words with Subword Units" (2016); the heap over a linked
list of symbols is SentencePiece's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush
from typing import Protocol

from ..errors import VocabularyError
from .trie import TokenTrie

__all__ = ["BytePairs", "Encoder", "LiteralSplit", "Rank", "characters", "longest_match", "single_bytes"]

Rank = Callable[[bytes, bytes], "float | None"]
_REMEMBERED = 1 << 14  # pieces
_SHORT = 64  # bytes of a piece worth remembering


class Encoder(Protocol):
    """Spells ordinary text; special tokens are not its business."""

    def encode(self, data: bytes) -> list[int]: ...


class LiteralSplit:
    """Cuts text at the leftmost, longest occurrences of given literals. Linear, whatever their number."""

    def __init__(self, literals: Mapping[bytes, int]) -> None:
        self._trie = TokenTrie.of((token_id, text) for text, token_id in literals.items())
        starts = self._trie.node_byte[1 : self._trie.first_child[1]] if literals else b""  # edges out of the root
        self._start = re.compile(b"[" + re.escape(starts) + b"]") if starts else None

    def __call__(self, data: bytes) -> Iterator[tuple[bytes, int | None]]:
        """(text between literals, None) and (literal, its id), in order; no empty text."""
        begin = at = 0
        while self._start is not None and (found := self._start.search(data, at)) is not None:
            at = found.start()
            end, token_id = _longest(self._trie, data, at)
            if token_id is None:
                at += 1
                continue
            if begin < at:
                yield data[begin:at], None
            yield data[at:end], token_id
            begin = at = end
        if begin < len(data):
            yield data[begin:], None


def _longest(trie: TokenTrie, data: bytes, at: int) -> tuple[int, int | None]:
    """Where the longest token at `at` ends, and its id (the lowest of several)."""
    node_byte, first, starts, ids = trie.node_byte, trie.first_child, trie.token_start, trie.token_ids
    node, end, token_id = 0, at, None
    while at < len(data):
        node = node_byte.find(data[at], first[node], first[node + 1])
        if node < 0:
            break
        at += 1
        if starts[node] < starts[node + 1]:
            end, token_id = at, ids[starts[node]]
    return end, token_id


def longest_match(trie: TokenTrie, data: bytes) -> list[int]:
    """At each place the longest token that fits."""
    found, at = [], 0
    while at < len(data):
        end, token_id = _longest(trie, data, at)
        if token_id is None:
            raise VocabularyError(
                f"no token spells byte 0x{data[at]:02x} at byte {at} of the text; the vocabulary is partial"
            )
        found.append(token_id)
        at = end
    return found


def characters(piece: bytes) -> list[bytes]:
    return [char.encode("utf-8") for char in piece.decode("utf-8")]


def single_bytes(piece: bytes) -> list[bytes]:
    return [piece[at : at + 1] for at in range(len(piece))]


class BytePairs:
    """Byte-pair encoding.

    `split` cuts text into pieces that no merge crosses; `symbols` cuts a piece into what is merged; `rank` says how
    early two neighbours merge (lower is earlier, None never); with `whole`, a piece that is a token is not merged.
    """

    def __init__(
        self,
        ids: Mapping[bytes, int],
        byte_ids: Mapping[int, int],
        rank: Rank,
        symbols: Callable[[bytes], list[bytes]],
        split: Callable[[bytes], Iterable[bytes]] | None = None,
        user: Mapping[bytes, int] | None = None,
        whole: bool = False,
    ) -> None:
        self._ids, self._byte_ids, self._rank, self._symbols = ids, byte_ids, rank, symbols
        self._split, self._whole = split, whole
        self._literals = LiteralSplit(user or {})
        self._known: dict[bytes, list[int]] = {}

    def encode(self, data: bytes) -> list[int]:
        found: list[int] = []
        for text, token_id in self._literals(data):
            if token_id is not None:
                found.append(token_id)
                continue
            for piece in self._split(text) if self._split else (text,):
                found += self._piece(piece)
        return found

    def _piece(self, piece: bytes) -> list[int]:
        known = self._known.get(piece)
        if known is not None:
            return known
        if self._whole and piece in self._ids:
            return [self._ids[piece]]
        found: list[int] = []
        for symbol in merged(self._symbols(piece), self._rank):
            token_id = self._ids.get(symbol)
            if token_id is not None:
                found.append(token_id)
            else:
                found += [self._byte_ids[value] for value in symbol if value in self._byte_ids]
        if len(piece) <= _SHORT:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[piece] = found
        return found


def merged(symbols: list[bytes], rank: Rank) -> list[bytes]:
    """Merge neighbours, the lowest rank first and of equals the leftmost, until no pair has a rank.

    Symbols form a list linked by `after`; a heap entry is stale once either of its symbols has changed.
    """
    count = len(symbols)
    before, after = list(range(-1, count - 1)), list(range(1, count + 1))
    heap = []
    for left in range(count - 1):
        order = rank(symbols[left], symbols[left + 1])
        if order is not None:
            heap.append((order, left, left + 1, symbols[left] + symbols[left + 1]))
    heapify(heap)
    while heap:
        _, left, right, joined = heappop(heap)
        if after[left] != right or symbols[left] + symbols[right] != joined or not symbols[left]:
            continue
        symbols[left], symbols[right] = joined, b""
        end = after[left] = after[right]
        if end < count:
            before[end] = left
        for one, two in ((before[left], left), (left, end)):
            if one >= 0 and two < count:
                order = rank(symbols[one], symbols[two])
                if order is not None:
                    heappush(heap, (order, one, two, symbols[one] + symbols[two]))
    return [symbol for symbol in symbols if symbol]
