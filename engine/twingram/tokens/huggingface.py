"""tokenizer.json: the vocabulary out of a tokenizer description, and its encoder.

In: the JSON text of a `tokenizers` file. Out: a `TokenTable`, or the encoder of the same text.
The bytes of a token follow from the decoder (where there is none, from the pre-tokenizer): a byte-level one, or a chain
of replacements with a byte fallback. Added tokens marked special are special; all others are ordinary text.
The encoder is the `tokenizers` library's, told to leave the letters of special tokens alone, and without what would
change the text: no space put in front, no template of special tokens.
Cost: parsing JSON, 0.7 s for 262,144 tokens with their merges; the encoder is built when it is first needed.
Source: the file format of the `tokenizers` library.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..errors import VocabularyError
from .library import LibraryEncoder
from .merges import Encoder
from .spelling import BYTE_TOKEN, from_byte_level
from .table import TokenTable

__all__ = ["encoder", "read_table"]

Spelling = Callable[[str], bytes]


def _load(text: str | bytes, source: str) -> dict[str, Any]:
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise VocabularyError(f"{source}: not JSON ({error}); fetch the file again") from error
    if not isinstance(config, dict) or not isinstance(config.get("model"), dict):
        raise VocabularyError(f'{source}: JSON without a "model"; tokenizer.json is wanted, not its configuration')
    return config


def read_table(text: str | bytes, source: str) -> TokenTable:
    config = _load(text, source)
    spelt = _spelling(config, source)
    tokens: dict[int, bytes] = {}
    try:
        for piece, token_id in _model_tokens(config["model"]):
            tokens[int(token_id)] = spelt(piece)
        special = set()
        for added in config.get("added_tokens") or ():
            token_id, content = int(added["id"]), added["content"]
            tokens[token_id] = content.encode("utf-8") if added.get("special") else spelt(content)
            if added.get("special"):
                special.add(token_id)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise VocabularyError(f"{source}: the token list is damaged ({error!r}); fetch the file again") from error
    size = max(tokens, default=-1) + 1
    if size == 0 or min(tokens) < 0 or size > 16 * len(tokens) + 4096:
        raise VocabularyError(f"{source}: {len(tokens)} tokens with ids up to {size - 1}; the file is damaged")
    return TokenTable.of([tokens.get(token_id, b"") for token_id in range(size)], special)


def _model_tokens(model: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """(text, id) of the model's own vocabulary: an object, or a list of [text, score]."""
    vocabulary = model["vocab"]
    if isinstance(vocabulary, list):
        return ((piece, token_id) for token_id, (piece, _) in enumerate(vocabulary))
    return iter(vocabulary.items())


def _parts(config: Mapping[str, Any], stage: str, within: str) -> list[dict[str, Any]]:
    """The steps of one stage, sequences laid flat."""
    part = config.get(stage)
    if not part:
        return []
    if part.get("type") != "Sequence":
        return [part]
    return [step for inner in part.get(within, ()) for step in _parts({stage: inner}, stage, within)]


def _spelling(config: Mapping[str, Any], source: str) -> Spelling:
    """Token text to bytes, as the decoder does it for a token in the middle of a text."""
    decoder = _parts(config, "decoder", "decoders")
    kinds = {step.get("type") for step in decoder}
    before = _parts(config, "pre_tokenizer", "pretokenizers")
    if "ByteLevel" in kinds or (not decoder and any(step.get("type") == "ByteLevel" for step in before)):
        return from_byte_level
    unknown = kinds - {"Replace", "ByteFallback", "Fuse", "Strip", "Metaspace"}
    if unknown:
        named = ", ".join(sorted(map(str, unknown)))
        raise VocabularyError(f"{source}: the bytes of a token cannot be told from the decoder {named}")
    changes = [change for step in decoder if (change := _replacement(step, source)) is not None]
    fallback = "ByteFallback" in kinds

    def spelt(piece: str) -> bytes:
        if fallback and (byte := BYTE_TOKEN.fullmatch(piece)):
            return bytes([int(byte[1], 16)])
        for old, new in changes:
            piece = piece.replace(old, new)
        return piece.encode("utf-8")

    return spelt


def _replacement(step: Mapping[str, Any], source: str) -> tuple[str, str] | None:
    if step["type"] == "Metaspace":
        return step.get("replacement", "\u2581"), " "
    if step["type"] != "Replace":
        return None
    old, new = step.get("pattern", {}).get("String"), step.get("content")
    if not old or not isinstance(new, str):
        raise VocabularyError(f"{source}: the decoder replaces by a regular expression, so tokens have no fixed bytes")
    return old, new


def encoder(text: str | bytes, source: str) -> Encoder:
    config = _load(text, source)
    plain = _without_additions(config)
    if any(plain[stage] != config.get(stage) for stage in ("normalizer", "pre_tokenizer")):
        return LibraryEncoder(json.dumps(plain), source)
    return LibraryEncoder(text if isinstance(text, str) else text.decode("utf-8"), source)


def _without_additions(config: dict[str, Any]) -> dict[str, Any]:
    """The same tokenizer, without the space that some put before a text."""
    plain = dict(config)
    for stage, within in (("normalizer", "normalizers"), ("pre_tokenizer", "pretokenizers")):
        steps = [_plain_step(step) for step in _parts(config, stage, within) if step.get("type") != "Prepend"]
        plain[stage] = None if not steps else steps[0] if len(steps) == 1 else {"type": "Sequence", within: steps}
    return plain


def _plain_step(step: dict[str, Any]) -> dict[str, Any]:
    plain = dict(step)
    if plain.get("add_prefix_space"):
        plain["add_prefix_space"] = False
    if plain.get("prepend_scheme", "never") != "never":
        plain["prepend_scheme"] = "never"
    return plain
