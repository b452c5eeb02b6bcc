"""What the commands read: a folder of data, and the real vocabularies. What is missing ends a command in one line.

In: the parser of a command. Out: the folder, once the sets that are wanted are in it. Cost: files are looked for, not
read.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from pathlib import Path

from tests.vocabularies import MissingVocabulary, gemma_path, llama4_path

__all__ = ["SUFFIX", "add_folder", "folder", "need_vocabularies"]

SUFFIX = ".jsonl.gz"
_PATHS = {"gemma4": gemma_path, "atem": llama4_path}


def add_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data", type=Path, metavar="FOLDER", default=os.environ.get("TWINGRAM_DATA") or None,
        help=f"folder of *{SUFFIX} (default: the environment variable TWINGRAM_DATA)",
    )  # fmt: skip


def folder(parser: argparse.ArgumentParser, chosen: Path | None, sets: Iterable[str] = ()) -> Path:
    """The folder that was named; it holds a file for each of the sets, or for some if none is named."""
    if chosen is None:
        parser.error("name the folder of the data: --data FOLDER, or TWINGRAM_DATA")
    wanted = [name + SUFFIX for name in sets]
    missing = [name for name in wanted if not (chosen / name).is_file()]
    if missing or not any(chosen.glob(f"*{SUFFIX}")):
        parser.error(f"{chosen} holds no {', '.join(missing) or f'*{SUFFIX}'}")
    return chosen


def need_vocabularies(parser: argparse.ArgumentParser, formats: Iterable[str] = tuple(_PATHS)) -> None:
    try:
        for name in formats:
            _PATHS[name]()
    except MissingVocabulary as missing:
        parser.error(f"no vocabulary; run: {missing}")
