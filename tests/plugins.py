"""What the tests of servers' plugins have in common: one tool, one call of it, and a tokenizer."""

from __future__ import annotations

from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

import twingram as tg

__all__ = ["ARGUMENTS", "CALL", "WEATHER", "byte_tokenizer"]

WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1, "maximum": 14}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
CALL = '<|tool_call>call:get_weather{city:<|"|>Paris<|"|>,days:3}<tool_call|>'
ARGUMENTS = {"city": "Paris", "days": 3}


def byte_tokenizer(format_name: str, **options: Any) -> Any:
    """A tokenizer of `transformers`: bytes, and the markers of a format as special tokens. `options` are its own."""
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE({letter: i for i, letter in enumerate(letters)}, []))
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    grammar = tg.load_format(format_name).grammar
    markers = dict.fromkeys([*grammar.markers, *grammar.stops])
    made.add_special_tokens([AddedToken(marker, normalized=False) for marker in markers])
    return PreTrainedTokenizerFast(tokenizer_object=made, **options)
