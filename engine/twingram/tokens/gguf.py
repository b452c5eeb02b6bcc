"""GGUF files: the vocabulary out of the key-values at their head; tensors are never touched.

In: the path of a file of any size. Out: a `TokenTable`, or the encoder of the same file.
Two kinds of tokenizer are read, told apart by what the token list holds: byte-fallback vocabularies (pieces in which
U+2581 stands for a space, tokens `<0x00>` to `<0xFF>`; merges ordered by score, or listed) and byte-level ones (each
byte of a piece is written as one printable character; merges listed).
Token types: 1 ordinary, 2 unknown and 3 control (both special), 4 defined by the user (ordinary text that is split off
before any merge), 5 unused (spells nothing), 6 a single byte.
Cost: memory-mapped, one pass over the key-values: 0.2 s for 262,144 tokens in a file of 250 MB.
Source: the GGUF specification, versions 2 and 3; score-ordered merges as in SentencePiece's BPE.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import VocabularyError
from .library import splitter
from .merges import BytePairs, Encoder, Rank, characters, single_bytes
from .ranks import DEFAULT_PATTERN
from .spelling import BYTE_LEVEL, BYTE_TOKEN, SPACE, from_byte_level
from .table import TokenTable

__all__ = ["MAGIC", "encoder", "read_table"]

MAGIC = b"GGUF"
_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9
_UNKNOWN, _CONTROL, _USER, _UNUSED, _BYTE = 2, 3, 4, 5, 6
_LENGTH = struct.Struct("<Q")


class _Reader:
    """A position in the mapped file. Every read checks the end, so a cut file gives an error and no loop."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data, self.at = data, len(MAGIC)

    def scalar(self, layout: str) -> Any:
        (value,) = struct.unpack_from(layout, self.data, self.at)
        self.at += struct.calcsize(layout)
        return value

    def string(self) -> bytes:
        return self.strings(1)[0]

    def strings(self, count: int) -> list[bytes]:
        data, at, length_at = self.data, self.at, _LENGTH.unpack_from
        found = []
        for _ in range(count):
            (length,) = length_at(data, at)
            at += 8
            found.append(data[at : at + length])
            at += length
        if at > len(data):
            raise struct.error("a string runs past the end")
        self.at = at
        return found

    def value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY:
            kind, count = self.scalar("<I"), self.scalar("<Q")
            return self.strings(count) if kind == _STRING else self.numbers(kind, count)
        return self.scalar(_SCALARS[kind])

    def numbers(self, kind: int, count: int) -> NDArray[Any]:
        layout = np.dtype(_SCALARS[kind])
        if count * layout.itemsize > len(self.data) - self.at:
            raise struct.error("an array runs past the end")
        found = np.frombuffer(self.data[self.at : self.at + count * layout.itemsize], dtype=layout)
        self.at += found.nbytes
        return found


def _key_values(path: str | PathLike[str]) -> dict[str, Any]:
    """The key-values of the tokenizer, their keys without the common prefix."""
    with Path(path).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        reader, found = _Reader(data), {}
        try:
            version = reader.scalar("<I")
            if version not in (2, 3):
                raise VocabularyError(f"{path}: GGUF version {version} cannot be read; convert the file to version 3")
            _tensors, count = reader.scalar("<Q"), reader.scalar("<Q")
            for _ in range(count):
                key, kind = reader.string(), reader.scalar("<I")
                found[key] = reader.value(kind)
        except (struct.error, KeyError, OverflowError) as error:
            message = f"{path}: the key-values are damaged at byte {reader.at} ({error}); fetch the file again"
            raise VocabularyError(message) from error
    prefix = b"tokenizer.ggml."
    return {
        key[len(prefix) :].decode("utf-8", "replace"): value for key, value in found.items() if key.startswith(prefix)
    }


class _File:
    """The key-values that make a vocabulary, checked against each other."""

    def __init__(self, path: str | PathLike[str]) -> None:
        values = _key_values(path)
        pieces, merges = values.get("tokens"), values.get("merges")
        if not isinstance(pieces, list) or not pieces:
            raise VocabularyError(f"{path}: the file holds no token list; use one that was made with its tokenizer")
        self.pieces: list[bytes] = pieces
        self.merges: list[bytes] | None = merges if isinstance(merges, list) else None
        self.types = self._one_a_token(path, values.get("token_type", np.ones(len(pieces), dtype=np.int32)))
        self.scores = self._one_a_token(path, values["scores"]) if "scores" in values else None
        known = set(self.pieces)
        self.byte_level = not (self.types == _BYTE).any() and all(char.encode() in known for char in BYTE_LEVEL)
        if not self.byte_level and not (self.types == _BYTE).any():
            raise VocabularyError(
                f"{path}: neither a byte-level vocabulary nor one with a token for every byte; use tokenizer.json"
            )

    def _one_a_token(self, path: str | PathLike[str], numbers: object) -> NDArray[Any]:
        if isinstance(numbers, np.ndarray) and len(numbers) == len(self.pieces):
            return numbers
        raise VocabularyError(f"{path}: the types and scores of tokens do not match the {len(self.pieces)} tokens")

    def tokens(self) -> list[bytes]:
        return [self._spelt(piece, kind) for piece, kind in zip(self.pieces, self.types.tolist(), strict=True)]

    def _spelt(self, piece: bytes, kind: int) -> bytes:
        if kind == _BYTE:
            return bytes([_byte_value(piece)])
        if kind == _UNUSED:
            return b""
        return self.plain(piece) if kind not in (_UNKNOWN, _CONTROL, _USER) else piece

    def plain(self, piece: bytes) -> bytes:
        if self.byte_level:
            return from_byte_level(piece.decode("utf-8", "replace"))
        return piece.replace(SPACE, b" ")

    def rank(self, ids: Mapping[bytes, int]) -> Rank:
        """The order of merges: as listed, else by score, else none."""
        if self.merges is not None:
            listed = {}
            for order, merge in enumerate(self.merges):
                cut = merge.find(b" ", 1)
                listed[self.plain(merge[:cut]), self.plain(merge[cut + 1 :])] = order
            return lambda left, right: listed.get((left, right))
        if self.scores is None:
            return _never
        order_of = (-self.scores).tolist()

        def by_score(left: bytes, right: bytes) -> float | None:
            token_id = ids.get(left + right)
            return None if token_id is None else order_of[token_id]

        return by_score


def _never(_left: bytes, _right: bytes) -> None:
    """The order of merges of a file without any."""


def _byte_value(piece: bytes) -> int:
    found = BYTE_TOKEN.fullmatch(piece.decode("utf-8", "replace"))
    if found is None:
        raise VocabularyError(f"{piece!r} is marked as a byte token but is not written like <0x41>")
    return int(found[1], 16)


def read_table(path: str | PathLike[str]) -> TokenTable:
    file = _File(path)
    return TokenTable.of(file.tokens(), np.flatnonzero(np.isin(file.types, (_UNKNOWN, _CONTROL))).tolist())


def encoder(path: str | PathLike[str], pattern: str | None) -> Encoder:
    """Of ordinary text. `pattern`: the pre-split of a byte-level vocabulary, as the file does not hold it."""
    file = _File(path)
    ids: dict[bytes, int] = {}
    user: dict[bytes, int] = {}
    byte_ids: dict[int, int] = {}
    for token_id, (token, kind) in enumerate(zip(file.tokens(), file.types.tolist(), strict=True)):
        if kind == _BYTE:
            byte_ids.setdefault(token[0], token_id)
        elif kind == _USER:
            user.setdefault(token, token_id)
        elif token and kind not in (_UNKNOWN, _CONTROL):
            ids.setdefault(token, token_id)
    user.pop(b"", None)
    if file.byte_level:
        return BytePairs(ids, byte_ids, file.rank(ids), single_bytes, splitter(pattern or DEFAULT_PATTERN), user)
    return BytePairs(ids, byte_ids, file.rank(ids), characters, splitter(pattern) if pattern else None, user)
