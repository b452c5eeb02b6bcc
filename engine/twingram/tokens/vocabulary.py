"""The vocabulary: what each token of a model spells.

In: a tokenizer file (told apart by content), a tokenizer object, or a list of byte strings. Out: `Vocabulary`.
Invariants: immutable; ids run from 0 to `len(vocabulary) - 1`; a token is special (a whole symbol, never text),
ordinary (bytes) or blank (an id that spells nothing and that no mask allows); `decode(encode(text))` is the text.
Cost: parsing a file takes 0.1 to 1 s and is kept on disk, so that the next load takes some milliseconds; the trie is
built, or read from disk, when it is first asked for, and so is what only `encode` needs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, SupportsIndex

import numpy as np

from ..errors import VocabularyError
from . import cache, embedded, gguf, huggingface, ranks
from .merges import Encoder, LiteralSplit, longest_match
from .spelling import replace_surrogates
from .table import TokenTable
from .trie import TokenTrie

__all__ = ["WORTH_KEEPING", "Vocabulary"]

WORTH_KEEPING = 16_384  # tokens from which tries and rows are quicker read than built
_MOST = 1 << 24  # ids; the packed arrays hold more, but no model does


class Vocabulary:
    """Token ids and their bytes. Use one of the class methods to get one."""

    def __init__(self, table: TokenTable, make_encoder: Callable[[], Encoder] | None = None) -> None:
        self._table = table
        self._make_encoder = make_encoder
        self._blob = table.blob
        self._offsets = table.offsets.data
        self._special = table.special.view(np.uint8).data
        self.special_tokens: Mapping[str, int] = MappingProxyType(table.special_tokens())
        """Text to id of every special token."""

    # ---- sources -------------------------------------------------------------------------------------------------

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        special_tokens: Mapping[str, int] | None = None,
        size: int | None = None,
        allow_partial: bool = False,
        pattern: str | None = None,
    ) -> Vocabulary:
        """Read `tokenizer.json`, a GGUF file or a rank file (base64 and rank, a line each).

        `special_tokens` adds special tokens by id, or renames those at these ids. `size` is the width of the logits:
        ids that the file lacks are blank, ids past it are cut. `pattern` is the regular expression that cuts text
        before merging, for files that do not hold one (rank files and byte-level GGUF); only `encode` uses it.
        A vocabulary that has no token for some byte is refused unless `allow_partial`; its masks then leave out what no
        tokens could end.
        """
        read, make_encoder = _reader(path, pattern)
        key = cache.file_key(path, "vocabulary")
        arrays = cache.load("vocabulary", key)
        if arrays is None:
            table = read()
            cache.store("vocabulary", key, table.arrays())
        else:
            table = TokenTable.from_arrays(arrays)
        return cls(_adapted(table, special_tokens, size, allow_partial), make_encoder)

    @classmethod
    def from_transformers(
        cls,
        tokenizer: Any,
        special_tokens: Mapping[str, int] | None = None,
        size: int | None = None,
        allow_partial: bool = False,
    ) -> Vocabulary:
        """Of a fast tokenizer of the `transformers` library, or of a `tokenizers.Tokenizer`."""
        backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
        if not hasattr(backend, "to_str"):
            raise VocabularyError(
                f"{type(tokenizer).__name__} is not backed by the tokenizers library; load it with use_fast=True, or "
                "use Vocabulary.from_file on its tokenizer.json"
            )
        text, source = backend.to_str(), type(tokenizer).__name__
        table = _adapted(huggingface.read_table(text, source), special_tokens, size, allow_partial)
        return cls(table, lambda: huggingface.encoder(text, source))

    @classmethod
    def from_tokens(
        cls,
        tokens: Sequence[bytes],
        special_tokens: Mapping[str, int] | None = None,
        size: int | None = None,
        allow_partial: bool = False,
    ) -> Vocabulary:
        """Of the bytes of each id. An empty string is a blank id. Text is encoded by longest match."""
        listed = list(tokens)
        for token_id, token in enumerate(listed):
            if not isinstance(token, (bytes, bytearray, memoryview)):
                raise VocabularyError(f"token {token_id} is {type(token).__name__}, not bytes; encode texts in UTF-8")
        table = TokenTable.of([bytes(token) for token in listed])
        return cls(_adapted(table, special_tokens, size, allow_partial))

    @classmethod
    def embedded(cls, markers: Iterable[str] = ()) -> Vocabulary:
        """A small vocabulary that needs no file: bytes, common pieces of English, JSON, code and tags. `markers` are
        special tokens as well: those of a format, `fmt.grammar.markers`."""
        return _embedded(tuple(dict.fromkeys(marker for marker in markers if marker not in embedded.SPECIAL)))

    # ---- what a token is -----------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._special)

    def __repr__(self) -> str:
        return f"<Vocabulary of {len(self)} ids, {len(self.special_tokens)} of them special>"

    def token_bytes(self, token_id: int) -> bytes:
        """What a token spells; of a special token its text in UTF-8; nothing for a blank id."""
        self._check(token_id)
        return self._blob[self._offsets[token_id] : self._offsets[token_id + 1]]

    def is_special(self, token_id: int) -> bool:
        self._check(token_id)
        return bool(self._special[token_id])

    def _check(self, token_id: int) -> None:
        if not 0 <= token_id < len(self._special):
            raise VocabularyError(f"token id {token_id} is not between 0 and {len(self) - 1}")

    def decode(self, token_ids: Iterable[int]) -> bytes:
        """What tokens spell one after another, special ones by their text."""
        return b"".join(map(self.token_bytes, token_ids))

    def reserving(self, token_ids: Iterable[int]) -> Vocabulary:
        """The same, except that ordinary tokens among these ids are special ones: never text."""
        names = {f"<reserved {token_id}>": token_id for token_id in token_ids if not self.is_special(token_id)}
        return Vocabulary(self._table.with_special(names), self._make_encoder) if names else self

    # ---- text to tokens ------------------------------------------------------------------------------------------

    def encode(self, text: str) -> list[int]:
        """Special tokens by their text, the rest as the tokenizer splits it, else the longest match at each place.

        The tokens spell the text exactly: where a tokenizer would change it (Unicode normalisation, say), that piece
        between special tokens is spelt by longest match. Half a surrogate pair becomes U+FFFD.
        """
        if not isinstance(text, str):
            raise TypeError(f"encode takes text, not {type(text).__name__}")
        found: list[int] = []
        for data, token_id in self._split_special(replace_surrogates(text)):
            found += self._encode_ordinary(data) if token_id is None else (token_id,)
        return found

    def _encode_ordinary(self, data: bytes) -> list[int]:
        if self._encoder is not None:
            found = self._encoder.encode(data)
            size, special = len(self), self._special
            if all(token_id < size and not special[token_id] for token_id in found) and self.decode(found) == data:
                return found
        return longest_match(self.trie, data)

    @cached_property
    def _encoder(self) -> Encoder | None:
        return None if self._make_encoder is None else self._make_encoder()

    @cached_property
    def _split_special(self) -> LiteralSplit:
        return LiteralSplit({text.encode("utf-8"): token_id for text, token_id in self.special_tokens.items()})

    # ---- for masks -----------------------------------------------------------------------------------------------

    @cached_property
    def missing_bytes(self) -> tuple[int, ...]:
        """The bytes that no ordinary token spells by itself."""
        return tuple(self._table.missing_bytes())

    @cached_property
    def fingerprint(self) -> bytes:
        """A digest of all that masks depend on: bytes and specialness of every id."""
        return self._table.fingerprint()

    @cached_property
    def trie(self) -> TokenTrie:
        """Of all ordinary tokens."""
        if len(self) < WORTH_KEEPING:
            return TokenTrie.of_table(self._table)
        arrays = cache.load("trie", self.fingerprint)
        trie = TokenTrie.of_table(self._table, arrays)
        if arrays is None:
            cache.store("trie", self.fingerprint, trie.arrays())
        return trie

    def memory_usage(self) -> int:
        """Bytes of the tables, and of the trie if it has been asked for."""
        own = len(self._blob) + self._table.offsets.nbytes + self._table.special.nbytes
        trie = vars(self).get("trie")
        return own + (trie.memory_usage() if trie is not None else 0)


def _reader(
    path: str | os.PathLike[str], pattern: str | None
) -> tuple[Callable[[], TokenTable], Callable[[], Encoder]]:
    """How to read a file, by what it begins with: its table, and its encoder."""
    try:
        with Path(path).open("rb") as file:
            head = file.read(256)
    except OSError as error:
        raise VocabularyError(f"{path}: {error.strerror or error}; give the path of a tokenizer file") from error
    if head.startswith(gguf.MAGIC):
        return lambda: gguf.read_table(path), lambda: gguf.encoder(path, pattern)
    if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
        name = os.fspath(path)
        return lambda: huggingface.read_table(_content(path), name), lambda: huggingface.encoder(_content(path), name)
    line = head.split(b"\n")[0]
    if line.isascii() and len(line.split()) == 2:
        return lambda: ranks.read_table(path), lambda: ranks.encoder(path, pattern)
    raise VocabularyError(
        f"{path}: neither tokenizer.json, nor GGUF, nor lines of base64 and rank; a SentencePiece model file has to be "
        "converted to tokenizer.json first"
    )


def _content(path: str | os.PathLike[str]) -> bytes:
    return Path(path).read_bytes().removeprefix(b"\xef\xbb\xbf")


def _adapted(
    table: TokenTable, special_tokens: Mapping[str, int] | None, size: int | None, allow_partial: bool
) -> TokenTable:
    if special_tokens is not None and not isinstance(special_tokens, Mapping):
        raise VocabularyError(f"special_tokens maps texts to ids; it is {type(special_tokens).__name__}")
    names: dict[Any, Any] = dict(special_tokens or {})
    for text, token_id in names.items():
        if not isinstance(text, str) or not _is_count(token_id):
            raise VocabularyError(f"special_tokens maps texts to ids; it maps {text!r} to {token_id!r}")
    if size is not None and not _is_count(size):
        raise VocabularyError(f"size={size!r} is not a number of ids")
    width = max([len(table), *(token_id + 1 for token_id in names.values())]) if size is None else size
    if not 0 < width <= _MOST:
        raise VocabularyError(f"a vocabulary of {width} ids cannot be used; sizes run from 1 to {_MOST}")
    taken: dict[int, str] = {}
    for text, token_id in names.items():
        if not text:
            raise VocabularyError(f"special_tokens: the name of id {token_id} is empty")
        if not 0 <= token_id < width:
            raise VocabularyError(f"special_tokens: the id {token_id} of {text!r} is not between 0 and {width - 1}")
        if token_id in taken:
            raise VocabularyError(f"special_tokens: id {token_id} is named twice, {taken[token_id]!r} and {text!r}")
        taken[token_id] = text
    return table.resized(width).with_special(names).checked(allow_partial)


def _is_count(value: object) -> bool:
    return isinstance(value, SupportsIndex) and not isinstance(value, bool)


@lru_cache(maxsize=16)
def _embedded(markers: tuple[str, ...]) -> Vocabulary:
    tokens, special = embedded.tokens()
    special |= {marker: len(tokens) + len(special) + at for at, marker in enumerate(markers)}
    return Vocabulary.from_tokens(tokens, special)
