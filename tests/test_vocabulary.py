"""Vocabularies from every source, against the libraries whose files they are; and the disk cache."""

from __future__ import annotations

import base64
import json
import random
import struct
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache as once
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from tests.vocabularies import GEMMA_MARKERS, NEEDS_GEMMA, NEEDS_LLAMA4, gemma, gemma_path, llama4
from twingram.errors import VocabularyError
from twingram.tokens import cache, embedded, gguf
from twingram.tokens.merges import LiteralSplit, merged
from twingram.tokens.ranks import DEFAULT_PATTERN
from twingram.tokens.spelling import BYTE_LEVEL, from_byte_level
from twingram.tokens.table import TokenTable
from twingram.tokens.vocabulary import Vocabulary

BYTES = [bytes([value]) for value in range(256)]
CORPUS = [
    "The quick brown fox jumps over the lazy dog, then it's gone. You'll see: 12345 times!",
    '{"name": "get_weather", "arguments": {"city": "Zürich", "days": 3}}',
    "def function(value):\n    return value['key'] + 1.5e-7  # naïve\n",
    "Über allen Gipfeln ist Ruh. 日本語のテキスト。 Привет, мир! 🙂👍🏽",
    '<function_calls>\n<invoke name="x">\n</invoke>\n\n\n</function_calls>  ',
] * 3
texts = st.text(max_size=30) | st.lists(
    st.sampled_from(
        ["the ", "The", "get", "_", "weather", '"', "<s>", "<|x|>", "\n\n", "  ", "ü", "日", "🙂", "123", "▁", "A"]
    ),
    max_size=12,
).map("".join)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TWINGRAM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


# ---- ids, special tokens, sizes -----------------------------------------------------------------------------------


def test_tokens_by_id() -> None:
    vocabulary = Vocabulary.from_tokens([*BYTES, b"ab", b"", b"abc"], {"<s>": 259})
    assert len(vocabulary) == 260
    assert [vocabulary.token_bytes(i) for i in (97, 256, 257, 258, 259)] == [b"a", b"ab", b"", b"abc", b"<s>"]
    assert dict(vocabulary.special_tokens) == {"<s>": 259}
    assert (vocabulary.is_special(259), vocabulary.is_special(258)) == (True, False)
    assert vocabulary.encode("abcab<s>a") == [258, 256, 259, 97]
    assert vocabulary.decode([258, 259]) == b"abc<s>"
    assert sorted(vocabulary.trie.subtree_tokens(0).tolist()) == [*range(257), 258]
    for token_id in (-1, 260):
        with pytest.raises(VocabularyError, match="between 0 and 259"):
            vocabulary.token_bytes(token_id)
        with pytest.raises(VocabularyError, match="between 0 and 259"):
            vocabulary.is_special(token_id)
    with pytest.raises(TypeError):
        vocabulary.special_tokens["<s>"] = 3  # type: ignore[index]


def test_an_ordinary_token_becomes_special() -> None:
    vocabulary = Vocabulary.from_tokens([*BYTES, b"ab"], {"<s>": 256})
    assert (vocabulary.token_bytes(256), vocabulary.is_special(256)) == (b"<s>", True)
    assert vocabulary.encode("ab") == [97, 98]
    assert 256 not in vocabulary.trie.subtree_tokens(0).tolist()


def test_special_tokens_are_renamed_and_moved() -> None:
    table = TokenTable.of([*BYTES, b"<old>", b"<b>", b"<b>"], [256, 257, 258])
    renamed = table.with_special({"<new>": 256})
    assert renamed.special_tokens() == {"<new>": 256, "<b>": 257}
    moved = table.with_special({"<old>": 97})
    assert moved.special_tokens() == {"<old>": 97, "<b>": 257}
    assert moved.special[256]
    assert moved.token(256) == b""
    swapped = table.with_special({"<old>": 257, "<b>": 256})
    assert swapped.special_tokens() == {"<b>": 256, "<old>": 257}
    assert swapped.token(258) == b""
    assert table.with_special({"<b>": 258}).special_tokens() == {"<old>": 256, "<b>": 258}
    assert moved.blob != table.blob
    assert [moved.token(i) for i in range(97)] == BYTES[:97]


@pytest.mark.parametrize(
    ("special_tokens", "size", "message"),
    [
        ({"<a>": 256, "<b>": 256}, None, "id 256 is named twice, '<a>' and '<b>'"),
        ({"": 256}, None, "the name of id 256 is empty"),
        ({"<a>": -1}, None, "not between 0 and 255"),
        ({"<a>": 300}, 300, "not between 0 and 299"),
        ({}, 0, "of 0 ids"),
        ({}, -5, "of -5 ids"),
        ({"<a>": 1 << 40}, None, "cannot be used"),
        ({}, 200, "no ordinary token for 56 of the 256 byte values \\(0xc8, 0xc9, .*, \\.\\.\\.\\).*allow_partial"),
        ({"<a>": 65}, None, "no ordinary token for 1 of the 256 byte values \\(0x41\\)"),
    ],
)
def test_what_cannot_be_used(special_tokens: dict[str, int], size: int | None, message: str) -> None:
    with pytest.raises(VocabularyError, match=message):
        Vocabulary.from_tokens(BYTES, special_tokens, size=size)


def test_sizes_cut_and_pad() -> None:
    tokens = [*BYTES, b"ab", b"abc"]
    wide = Vocabulary.from_tokens(tokens, {"<s>": 300}, size=320)
    assert (len(wide), wide.token_bytes(319), wide.token_bytes(258)) == (320, b"", b"")
    assert wide.encode("abc<s>") == [257, 300]
    cut = Vocabulary.from_tokens(tokens, size=257)
    assert (len(cut), cut.encode("abc")) == (257, [256, 99])
    partial = Vocabulary.from_tokens(tokens, size=98, allow_partial=True)
    assert partial.encode("aaA") == [97, 97, 65]
    with pytest.raises(VocabularyError, match="0x62 at byte 1"):
        partial.encode("ab")


def test_fingerprints_tell_vocabularies_apart() -> None:
    tokens = [*BYTES, b"ab", b"c"]
    variants = [
        Vocabulary.from_tokens(tokens),
        Vocabulary.from_tokens([*BYTES, b"a", b"bc"]),
        Vocabulary.from_tokens(tokens, size=300),
        Vocabulary.from_tokens(tokens, {"ab": 256}),
        Vocabulary.from_tokens([*BYTES, b"c", b"ab"]),
    ]
    assert len({vocabulary.fingerprint for vocabulary in variants}) == len(variants)
    assert Vocabulary.from_tokens(tokens).fingerprint == variants[0].fingerprint
    assert all(len(vocabulary.fingerprint) == 16 for vocabulary in variants)


def test_half_a_surrogate_pair_is_replaced() -> None:
    vocabulary = Vocabulary.embedded()
    assert vocabulary.decode(vocabulary.encode("a\ud800b\udc00")) == "a\ufffdb\ufffd".encode()


# ---- literals and merges ------------------------------------------------------------------------------------------


@given(st.sets(st.text("abc", min_size=1, max_size=4), max_size=8), st.text("abcd", max_size=30))
def test_literals_are_cut_leftmost_and_longest(literals: set[str], text: str) -> None:
    split = LiteralSplit({literal.encode(): number for number, literal in enumerate(sorted(literals))})
    found = list(split(text.encode()))
    assert b"".join(piece for piece, _ in found) == text.encode()
    expected, at = [], 0
    while at < len(text):
        fitting = [literal for literal in literals if text.startswith(literal, at)]
        longest = max(fitting, key=len, default="")
        if longest:
            expected.append((longest, sorted(literals).index(longest)))
        elif expected and expected[-1][1] is None:
            expected[-1] = (expected[-1][0] + text[at], None)
        else:
            expected.append((text[at], None))
        at += len(longest) or 1
    assert found == [(piece.encode(), number) for piece, number in expected]


def merged_slowly(symbols: list[bytes], ranks: dict[bytes, int]) -> list[bytes]:
    while True:
        pairs = [(ranks[a + b], at) for at, (a, b) in enumerate(pairwise(symbols)) if a + b in ranks]
        if not pairs:
            return symbols
        _, at = min(pairs)
        symbols = [*symbols[:at], symbols[at] + symbols[at + 1], *symbols[at + 2 :]]


@given(st.lists(st.text("abc", min_size=2, max_size=5), max_size=12), st.text("abc", max_size=30), st.booleans())
def test_merges_are_lowest_and_leftmost_first(tokens: list[str], text: str, ties: bool) -> None:
    ranks = {token.encode(): 0 if ties else number for number, token in enumerate(tokens)}
    symbols = [char.encode() for char in text]
    assert merged(list(symbols), lambda a, b: ranks.get(a + b)) == merged_slowly(symbols, ranks)


# ---- tokenizer.json -----------------------------------------------------------------------------------------------


@once
def byte_level() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(DEFAULT_PATTERN), behavior="isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        CORPUS,
        trainers.BpeTrainer(vocab_size=420, initial_alphabet=alphabet, show_progress=False, special_tokens=["<s>"]),
    )
    tokenizer.add_tokens([AddedToken("<|x|>", normalized=False)])
    return tokenizer


@once
def byte_fallback() -> Tokenizer:
    """Pieces with U+2581, byte tokens, and every merge that leads to a token, ordered by the token's score."""
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never", split=False)
    trained.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=300, show_progress=False, limit_alphabet=60))
    pieces = sorted(set(trained.get_vocab()) - {"\n\n"}, key=lambda piece: trained.token_to_id(piece) or 0)
    tokens = ["<pad>", "<s>", "<unk>", "\n\n", *(f"<0x{value:02X}>" for value in range(256)), *pieces]
    vocabulary = {piece: number for number, piece in enumerate(tokens)}
    known = set(pieces)
    splits = [(p[:at], p[at:]) for p in pieces for at in range(1, len(p)) if p[:at] in known and p[at:] in known]
    merges = sorted(splits, key=lambda pair: vocabulary["".join(pair)])
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", "\u2581")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_tokens([AddedToken("\n\n", normalized=False)])
    tokenizer.add_special_tokens(["<pad>", "<s>", "<unk>"])
    return tokenizer


TOKENIZERS = pytest.mark.parametrize("make", [byte_level, byte_fallback])


@TOKENIZERS
@given(text=texts)
def test_encoding_is_the_tokenizers_own(make: Callable[[], Tokenizer], text: str) -> None:
    vocabulary = _from_library(make)
    found = vocabulary.encode(text)
    assert vocabulary.decode(found) == text.encode()
    if "\u2581" not in text:  # which that tokenizer turns into a space; we never change a text
        assert found == make().encode(text, add_special_tokens=False).ids


@once
def _from_library(make: Callable[[], Tokenizer]) -> Vocabulary:
    return Vocabulary.from_transformers(make())


@TOKENIZERS
def test_token_bytes_are_what_the_tokenizer_decodes(make: Callable[[], Tokenizer], tmp_path: Path) -> None:
    tokenizer = make()
    tokenizer.save(str(tmp_path / "any name"))
    vocabulary = Vocabulary.from_file(tmp_path / "any name")
    assert len(vocabulary) == tokenizer.get_vocab_size()
    for token_id in range(len(vocabulary)):
        decoded = tokenizer.decode([token_id], skip_special_tokens=False)
        assert vocabulary.token_bytes(token_id).decode("utf-8", "replace") == decoded
    special = {"<s>"} if make is byte_level else {"<pad>", "<s>", "<unk>"}
    assert set(vocabulary.special_tokens) == special


def test_the_letters_of_a_renamed_token_are_text() -> None:
    plain = Vocabulary.from_transformers(byte_level())
    old, text = plain.special_tokens["<s>"], byte_level().token_to_id("<|x|>")
    vocabulary = Vocabulary.from_transformers(byte_level(), {"<new>": old, "<also>": text})
    assert vocabulary.encode("<new>a<also>") == [old, *plain.encode("a"), text]
    for letters in ("<s>", "<|x|>"):
        assert not {old, text} & set(vocabulary.encode(letters))
        assert vocabulary.decode(vocabulary.encode(letters)) == letters.encode()


def test_ids_past_the_size_are_not_used() -> None:
    vocabulary = Vocabulary.from_transformers(byte_level(), size=300)
    for text in CORPUS:
        found = vocabulary.encode(text)
        assert max(found) < 300
        assert vocabulary.decode(found) == text.encode()


def test_what_a_tokenizer_adds_or_changes_is_left_out() -> None:
    tokenizer = Tokenizer.from_str(byte_level().to_str())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Prepend("x")])
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.enable_truncation(2)
    tokenizer.enable_padding(length=50)
    vocabulary = Vocabulary.from_transformers(tokenizer)
    for text in ("the quick brown fox", "e\u0301", "<s>the<s>"):
        assert vocabulary.decode(vocabulary.encode(text)) == text.encode()
    assert vocabulary.encode("the") == byte_level().encode("the").ids


def test_a_wrapped_tokenizer_is_unwrapped() -> None:
    class Fast:
        backend_tokenizer = byte_level()

    assert Vocabulary.from_transformers(Fast()).fingerprint == Vocabulary.from_transformers(byte_level()).fingerprint
    with pytest.raises(VocabularyError, match=r"int is not backed.*use_fast=True"):
        Vocabulary.from_transformers(3)


def test_lists_of_scored_pieces_and_other_decoders(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    model = {"type": "Unigram", "unk_id": None, "vocab": [["\u2581the", -1.0], ["\u2581", -2.0], ["e", -2.5]]}
    decoder = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}
    path.write_text(json.dumps({"model": model, "decoder": decoder, "added_tokens": []}), encoding="utf-8")
    vocabulary = Vocabulary.from_file(path, allow_partial=True)
    assert [vocabulary.token_bytes(i) for i in range(3)] == [b" the", b" ", b"e"]
    path.write_text(json.dumps({"model": model, "decoder": {"type": "WordPiece"}}), encoding="utf-8")
    with pytest.raises(VocabularyError, match="decoder WordPiece"):
        Vocabulary.from_file(path, allow_partial=True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ("{" + '"a":[' * 3000, "not JSON"),
        ('{"added_tokens": []}', 'without a "model"'),
        ('{"model": {"type": "BPE"}}', "damaged"),
        ('{"model": {"vocab": {}}}', "0 tokens"),
        ('{"model": {"vocab": {"a": "b"}}}', "damaged"),
        ('{"model": {"vocab": {"a": -4}}}', "damaged"),
        ('{"model": {"vocab": {"a": 123456789}}}', "damaged"),
        ('{"model": {"vocab": {"a": 0}}, "added_tokens": [{"content": "x"}]}', "damaged"),
        ('{"model": {"vocab": {"a": 0}}, "added_tokens": [3]}', "damaged"),
        ("", "neither tokenizer.json"),
        ("hello world\nagain", "not a line of a rank file"),
        ("\x0a\x0e\x0a\x05<unk>\x15", "SentencePiece"),
    ],
)
def test_files_that_cannot_be_read(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(VocabularyError, match=message):
        Vocabulary.from_file(path, allow_partial=True)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(VocabularyError, match="give the path of a tokenizer file"):
            Vocabulary.from_file(path)


# ---- GGUF ---------------------------------------------------------------------------------------------------------


def gguf_string(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text


def gguf_value(value: Any) -> bytes:
    if isinstance(value, bytes):
        return struct.pack("<I", 8) + gguf_string(value)
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<Id", 12, value)
    if value and isinstance(value[0], bytes):
        return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(gguf_string, value))
    kind, layout = (6, "f") if value and isinstance(value[0], float) else (5, "i")
    return struct.pack("<IIQ", 9, kind, len(value)) + struct.pack(f"<{len(value)}{layout}", *value)


def write_gguf(path: Path, values: dict[str, Any], version: int = 3) -> Path:
    body = b"".join(gguf_string(key.encode()) + gguf_value(value) for key, value in values.items())
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", version, 0, len(values)) + body)
    return path


def scored_gguf(path: Path) -> Path:
    """`byte_fallback()` as a GGUF file."""
    tokenizer = byte_fallback()
    pieces = [tokenizer.id_to_token(i) for i in range(tokenizer.get_vocab_size())]
    kinds = [3, 3, 2, 4, *[6] * 256, *[1] * (len(pieces) - 260)]
    values = {
        "general.architecture": b"any",
        "general.threshold": 0.5,
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.ggml.tokens": [piece.encode() for piece in pieces],
        "tokenizer.ggml.scores": [-float(number) for number in range(len(pieces))],
        "tokenizer.ggml.token_type": kinds,
    }
    return write_gguf(path, values)


def merging_gguf(path: Path, tokenizer: Tokenizer, kinds: Sequence[int]) -> Path:
    model = json.loads(tokenizer.to_str())["model"]
    pieces = [(tokenizer.id_to_token(i) or "").encode() for i in range(tokenizer.get_vocab_size())]
    merges = [" ".join(pair).encode() for pair in model["merges"]]
    keys = ("tokens", "merges", "token_type")
    return write_gguf(
        path, {f"tokenizer.ggml.{k}": v for k, v in zip(keys, (pieces, merges, list(kinds)), strict=True)}
    )


def check_same(vocabulary: Vocabulary, tokenizer: Tokenizer, text: str) -> None:
    found = vocabulary.encode(text)
    assert vocabulary.decode(found) == text.encode()
    if "\u2581" not in text:
        assert found == tokenizer.encode(text, add_special_tokens=False).ids


@pytest.fixture(scope="module")
def from_gguf(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Vocabulary, Tokenizer]]:
    folder = tmp_path_factory.mktemp("gguf")
    size, level_size = byte_fallback().get_vocab_size(), byte_level().get_vocab_size()
    paths = [
        (scored_gguf(folder / "scored"), byte_fallback()),
        (
            merging_gguf(folder / "pieces", byte_fallback(), [3, 3, 2, 4, *[6] * 256, *[1] * (size - 260)]),
            byte_fallback(),
        ),
        (merging_gguf(folder / "level", byte_level(), [3, *[1] * (level_size - 2), 4]), byte_level()),
    ]
    return [(Vocabulary.from_file(path), tokenizer) for path, tokenizer in paths]


@given(text=texts)
def test_gguf_encodes_as_its_tokenizer(from_gguf: list[tuple[Vocabulary, Tokenizer]], text: str) -> None:
    for vocabulary, tokenizer in from_gguf:
        check_same(vocabulary, tokenizer, text)


def test_gguf_has_the_bytes_of_its_tokenizer(from_gguf: list[tuple[Vocabulary, Tokenizer]]) -> None:
    for vocabulary, tokenizer in from_gguf:
        same = Vocabulary.from_transformers(tokenizer)
        assert vocabulary.fingerprint == same.fingerprint
        assert vocabulary.special_tokens == same.special_tokens
        for text in CORPUS:
            check_same(vocabulary, tokenizer, text)


def test_gguf_token_types(tmp_path: Path) -> None:
    tokens = [
        *(b"<0x%02X>" % value for value in range(256)),
        "\u2581a".encode(),
        b"gone",
        "<\u2581>".encode(),
        b"<c>",
        b"<u>",
    ]
    kinds = [*[6] * 256, 1, 5, 4, 3, 2]
    path = write_gguf(tmp_path / "f", {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": kinds}, version=2)
    vocabulary = Vocabulary.from_file(path)
    assert [vocabulary.token_bytes(i) for i in range(256, 261)] == [b" a", b"", "<\u2581>".encode(), b"<c>", b"<u>"]
    assert dict(vocabulary.special_tokens) == {"<c>": 259, "<u>": 260}
    assert vocabulary.encode("<\u2581> a") == [258, 32, 97]  # no scores, no merges: bytes


def test_gguf_cut_anywhere_is_refused(tmp_path: Path) -> None:
    values = {"general.name": b"x", "tokenizer.ggml.tokens": [b"<0x41>", b"b"], "tokenizer.ggml.token_type": [6, 1]}
    whole = write_gguf(tmp_path / "whole", {**values, "tokenizer.ggml.scores": [0.0, 1.0]}).read_bytes()
    assert len(Vocabulary.from_file(tmp_path / "whole", allow_partial=True)) == 2
    for end in range(4, len(whole)):
        (tmp_path / "cut").write_bytes(whole[:end])
        with pytest.raises(VocabularyError):
            Vocabulary.from_file(tmp_path / "cut", allow_partial=True)


@given(st.integers(0, 1 << 16), st.integers(0, 255))
def test_damaged_gguf_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, at: int, value: int) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    values = {"general.name": b"x", "tokenizer.ggml.tokens": [b"<0x41>", b"b"], "tokenizer.ggml.token_type": [6, 1]}
    data = bytearray(write_gguf(folder / "f", values).read_bytes())
    data[4 + at % (len(data) - 4)] = value
    (folder / "f").write_bytes(data)
    with suppress(VocabularyError):
        Vocabulary.from_file(folder / "f", allow_partial=True).encode("b")


@pytest.mark.parametrize(
    ("values", "version", "message"),
    [
        ({"general.name": b"x"}, 3, "no token list"),
        ({"tokenizer.ggml.tokens": [b"a"]}, 1, "version 1"),
        ({"tokenizer.ggml.tokens": [b"a"]}, 1 << 24, "version 16777216"),
        ({"tokenizer.ggml.tokens": [b"a", b"b"]}, 3, "neither a byte-level vocabulary"),
        ({"tokenizer.ggml.tokens": [b"a", b"b"], "tokenizer.ggml.token_type": [1]}, 3, "do not match the 2 tokens"),
        ({"tokenizer.ggml.tokens": [b"0x41"], "tokenizer.ggml.token_type": [6]}, 3, "not written like <0x41>"),
    ],
)
def test_gguf_without_a_usable_vocabulary(values: dict[str, Any], version: int, message: str, tmp_path: Path) -> None:
    with pytest.raises(VocabularyError, match=message):
        Vocabulary.from_file(write_gguf(tmp_path / "f", values, version), allow_partial=True)


# ---- rank files ---------------------------------------------------------------------------------------------------


@once
def ranks() -> dict[bytes, int]:
    """The merges of `byte_level()`, as ranks: bytes first."""
    tokenizer = byte_level()
    pieces = [tokenizer.id_to_token(i) or "" for i in range(tokenizer.get_vocab_size())]
    tokens = [from_byte_level(piece) for piece in pieces if piece not in ("<s>", "<|x|>")]
    return {token: rank for rank, token in enumerate([*BYTES, *(token for token in tokens if len(token) > 1)])}


def rank_file(path: Path) -> Path:
    lines = [base64.b64encode(token) + b" %d" % rank for token, rank in ranks().items()]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


@pytest.fixture(scope="module")
def from_ranks(tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    path = rank_file(tmp_path_factory.mktemp("ranks") / "f")
    return Vocabulary.from_file(path, {"<|x|>": len(ranks()) + 4}, size=len(ranks()) + 10)


@given(text=texts)
def test_rank_files_merge_by_rank(from_ranks: Vocabulary, text: str) -> None:
    split = pre_tokenizers.Split(Regex(DEFAULT_PATTERN), behavior="isolated")
    expected = []
    for part, is_marker in ((p, i % 2) for i, p in enumerate(f"{text}".replace("<|x|>", "\0<|x|>\0").split("\0"))):
        if is_marker and part == "<|x|>":
            expected.append(len(ranks()) + 4)
            continue
        for piece, _ in split.pre_tokenize_str(part):
            symbols = merged_slowly([bytes([value]) for value in piece.encode()], ranks())
            expected += [ranks()[piece.encode()]] if piece.encode() in ranks() else [ranks()[s] for s in symbols]
    if "\0" not in text:
        assert from_ranks.encode(text) == expected
    assert from_ranks.decode(from_ranks.encode(text)) == text.encode()


def test_a_pattern_changes_the_split_and_not_the_text(tmp_path: Path) -> None:
    path = rank_file(tmp_path / "f")
    by_char, text = Vocabulary.from_file(path, pattern=r"[\s\S]"), CORPUS[0]
    assert len(by_char.encode(text)) == len(text)
    assert by_char.decode(by_char.encode(text)) == text.encode()
    with pytest.raises(VocabularyError, match="pattern= is not a regular expression"):
        Vocabulary.from_file(path, pattern="(").encode("a")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("YQ== 0\nYg==\n", ":2: not a line"),
        ("YQ== 0\n!!!! 1\n", ":2: not a line"),
        ("YQ== 0\nYg== x\n", ":2: not a line"),
        ("YQ== -1\n", "negative"),
        ("YQ== 123456789\n", "the file is damaged"),
    ],
)
def test_rank_files_that_cannot_be_read(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_text(content, encoding="ascii")
    with pytest.raises(VocabularyError, match=message):
        Vocabulary.from_file(tmp_path / "f", allow_partial=True)


# ---- the embedded one ---------------------------------------------------------------------------------------------


def test_the_embedded_vocabulary() -> None:
    tokens, special = embedded.tokens()
    vocabulary = Vocabulary.embedded()
    assert vocabulary is Vocabulary.embedded()
    assert tokens[:256] == BYTES
    assert len(set(tokens)) == len(tokens)
    assert 1000 < len(vocabulary) < 2500
    assert (len(vocabulary), dict(vocabulary.special_tokens)) == (len(tokens) + len(special), special)
    assert {"<|tool_call>", '<|"|>', "<|message|>", "<|eot|>", "<turn|>", "<eos>"} <= set(special)
    assert {b'":"', b'"},', b"</", b'">', b"\xf0\x9f", b"\x9f\x99\x82"} <= set(tokens)


def test_the_embedded_vocabulary_takes_markers() -> None:
    plain, marked = Vocabulary.embedded(), Vocabulary.embedded(["<a>", "<eos>", "[b]", "<a>"])
    assert marked is Vocabulary.embedded(("<a>", "[b]"))
    assert Vocabulary.embedded(["<eos>"]) is plain
    assert len(marked) == len(plain) + 2
    assert dict(marked.special_tokens) == {**plain.special_tokens, "<a>": len(plain), "[b]": len(plain) + 1}
    assert marked.encode("x<a>[b]")[1:] == [len(plain), len(plain) + 1]


@given(st.text() | texts)
def test_embedded_spells_everything(text: str) -> None:
    vocabulary = Vocabulary.embedded()
    assert vocabulary.decode(vocabulary.encode(text)) == text.encode()


def test_the_byte_alphabet() -> None:
    assert sorted(BYTE_LEVEL) == sorted(pre_tokenizers.ByteLevel.alphabet())
    assert from_byte_level(BYTE_LEVEL) == bytes(range(256))
    assert from_byte_level("Ġa") == b" a"
    assert from_byte_level("a b") == b"a b"  # a space is not in the alphabet: this was never encoded


# ---- real ones ----------------------------------------------------------------------------------------------------


@NEEDS_GEMMA
def test_a_vocabulary_of_262144() -> None:
    vocabulary = gemma()
    assert len(vocabulary) == 262_144
    assert {text: vocabulary.special_tokens[text] for text in GEMMA_MARKERS} == GEMMA_MARKERS
    assert vocabulary.token_bytes(107) == b"\n"
    assert "<unused42>" not in vocabulary.special_tokens  # id 48 has a new name
    text = '<|tool_call>call:get_weather{city:<|"|>Zürich  🙂<|"|>}<tool_call|>'
    found = vocabulary.encode(text)
    assert (found[0], found[-1]) == (48, 49)
    assert vocabulary.decode(found) == text.encode()
    assert [vocabulary.token_bytes(i) for i in vocabulary.encode("Hello world,  this\n\n")] == [
        b"Hello", b" world", b",", b"  ", b"this", b"\n\n",
    ]  # fmt: skip
    assert len(vocabulary.trie.subtree_tokens(0)) == sum(not vocabulary.is_special(i) for i in range(len(vocabulary)))


@NEEDS_GEMMA
def test_only_the_head_of_a_model_file_is_read(own_cache: Path) -> None:
    values = gguf._key_values(gemma_path())
    assert len(values["tokens"]) == len(values["scores"]) == 262_144
    assert not own_cache.exists()


@NEEDS_LLAMA4
def test_a_vocabulary_of_202048() -> None:
    vocabulary = llama4()
    assert len(vocabulary) == 202_048
    assert vocabulary.special_tokens["<|message|>"] == 200_023
    assert len(vocabulary.special_tokens) == 2048
    found = vocabulary.encode("<|start|>assistant to=self<|message|>")
    assert (found[0], found[-1], len(found)) == (200_022, 200_023, 5)
    # The split below was made with the library that the file format comes from.
    assert vocabulary.encode("Hello world, this  is a test.\n\n\tdef f(x):") == [
        19873, 3817, 24, 544, 220, 373, 262, 1600, 1574, 31354, 288, 2595, 2513,
    ]  # fmt: skip


# ---- the disk cache -----------------------------------------------------------------------------------------------

ARRAYS = {
    "small": np.arange(5, dtype=np.uint8),
    "wide": np.arange(12, dtype=np.int32).reshape(3, 4),
    "none": np.zeros(0, dtype=np.float32),
    "flags": np.array([True, False]),
}


def test_arrays_come_back_as_they_were(own_cache: Path) -> None:
    assert cache.load("kind", b"key") is None
    cache.store("kind", b"key", ARRAYS)
    found = cache.load("kind", b"key")
    assert found is not None
    assert set(found) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        assert np.array_equal(found[name], array)
        assert not found[name].flags.writeable
    assert cache.load("kind", b"kez") is None
    assert cache.load("other", b"key") is None
    cache.store("kind", b"key" * 50, {})
    assert cache.load("kind", b"key" * 50) == {}
    assert [path.name for path in own_cache.rglob("*.tmp")] == []


def test_damaged_and_foreign_files_count_as_absent(own_cache: Path) -> None:
    cache.store("kind", b"key", ARRAYS)
    (path,) = own_cache.rglob("*.bin")
    whole = path.read_bytes()
    rng = random.Random(0)
    for _ in range(100):
        damaged = bytearray(whole)
        damaged[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        assert cache.load("kind", b"key") is None
    for end in (0, 5, 20, 40, len(whole) - 1):
        path.write_bytes(whole[:end])
        assert cache.load("kind", b"key") is None
    path.write_bytes(whole)
    assert cache.load("kind", b"key") is not None
    path.with_name(b"kez".hex() + ".bin").write_bytes(whole)  # a file in another's place
    assert cache.load("kind", b"kez") is None


def test_only_numbers_are_kept() -> None:
    with pytest.raises(ValueError, match="only numbers"):
        cache.store("kind", b"key", {"a": np.array([None])})


@pytest.mark.parametrize("switch", ["0", "off", "No", "FALSE"])
def test_the_cache_can_be_switched_off(switch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWINGRAM_CACHE", switch)
    assert cache.folder() is None
    cache.store("kind", b"key", ARRAYS)
    assert cache.load("kind", b"key") is None


def test_the_folder_follows_the_platform(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TWINGRAM_CACHE")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setattr("sys.platform", "linux")
    assert cache.folder() == tmp_path / "xdg" / "twingram"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache.folder() == tmp_path / ".cache" / "twingram"
    monkeypatch.setattr("sys.platform", "darwin")
    assert cache.folder() == tmp_path / "Library" / "Caches" / "twingram"
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert cache.folder() == tmp_path / "local" / "twingram"


def test_a_folder_that_cannot_be_used_is_no_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder", encoding="ascii")
    monkeypatch.setenv("TWINGRAM_CACHE", str(tmp_path / "file"))
    cache.store("kind", b"key", ARRAYS)
    assert cache.load("kind", b"key") is None
    assert Vocabulary.from_file(rank_file(tmp_path / "ranks")).encode("a") == [97]


def test_the_oldest_files_make_room(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = {"a": np.zeros(1000, dtype=np.uint8)}
    monkeypatch.setattr(cache, "LIMIT_BYTES", 4000)
    for number in range(4):
        cache.store("kind", bytes([number]), one)
        for path in own_cache.rglob("*.bin"):  # each store a minute after the one before
            stamp = path.stat().st_mtime_ns - 60_000_000_000
            __import__("os").utime(path, ns=(stamp, stamp))
        cache.load("kind", b"\0")
    kept = [number for number in range(4) if cache.load("kind", bytes([number])) is not None]
    assert 0 in kept  # in use all the time
    assert 3 in kept
    assert len(kept) < 4
    assert sum(path.stat().st_size for path in own_cache.rglob("*.bin")) <= 4000


def test_many_writers_of_one_key(own_cache: Path) -> None:
    def work(_: int) -> bool:
        cache.store("kind", b"key", ARRAYS)
        found = cache.load("kind", b"key")
        return found is not None and np.array_equal(found["wide"], ARRAYS["wide"])

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(40)))
    assert len(list(own_cache.rglob("*.*"))) == 1


def test_a_vocabulary_is_read_once(own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = scored_gguf(tmp_path / "f")
    first = Vocabulary.from_file(path, {"<t>": 1})
    assert len(list(own_cache.rglob("*.bin"))) == 1
    with monkeypatch.context() as patch:
        patch.setattr(gguf, "read_table", None)
        again = Vocabulary.from_file(path, {"<t>": 1})
    assert again.fingerprint == first.fingerprint
    assert again.encode(CORPUS[0]) == first.encode(CORPUS[0])
    rank_file(path)  # another file in its place
    assert Vocabulary.from_file(path).fingerprint != first.fingerprint


def test_a_large_trie_is_built_once(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = [*BYTES, *(b"%x" % number for number in range(1 << 20, (1 << 20) + (1 << 14)))]
    first = Vocabulary.from_tokens(tokens).trie
    assert len(list(own_cache.rglob("*.bin"))) == 1
    monkeypatch.setattr("twingram.tokens.trie._build", None)
    again = Vocabulary.from_tokens(tokens).trie
    assert again.node_byte == first.node_byte
    assert again.tokens(again.walk(b"100001")) == [257]
