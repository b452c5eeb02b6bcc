"""A format of one's own needs a file and nothing else: the made-up one holds all promises where no other grammar is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .walks import RUNES

SUITES = ("tests/test_promises_mask.py", "tests/test_promises_stream.py", "tests/test_earley.py")


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """The environment of a process whose folder of grammars is empty."""
    folder = tmp_path / "grammars"
    folder.mkdir()
    return {**os.environ, "TWINGRAM_GRAMMARS": str(folder)}


def test_there_are_no_other_formats(bare: dict[str, str]) -> None:
    code = (
        "import twingram as tg\n"
        "assert tg.list_formats() == []\n"
        "try:\n    tg.load_format('gemma4')\n"
        "except tg.GrammarError as error:\n    assert 'Format.from_file' in str(error)\n"
        "else:\n    raise AssertionError\n"
        f"fmt = tg.Format.from_file({str(RUNES)!r})\n"
        "message = fmt.parse('[[think]]hm[[/think]]Look:[[call]]f(a=[[s]]x; y[[/s]]; b=<1 | yes>)[[/call]][[end]]')\n"
        "assert (message.reasoning, message.content) == ('hm', 'Look:')\n"
        "assert [(call.name, call.value) for call in message.calls] == [('f', {'a': 'x; y', 'b': [1, True]})]\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, env=bare, timeout=60)


def test_all_promises_hold_without_them(bare: dict[str, str], root: Path) -> None:
    """The property suites in a process of its own, with a few walks."""
    bare |= {"TWINGRAM_WALKS": "16", "TWINGRAM_EXAMPLES": "15"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "runes", *SUITES]
    done = subprocess.run(command, cwd=root, env=bare, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
