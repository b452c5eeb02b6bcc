"""The documents say what is true: commands, examples, file names, grammar snippets."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import lark
import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(path: Path, language: str) -> list[str]:
    return [text for found, text in BLOCK.findall(path.read_text(encoding="utf-8")) if found == language]


def test_the_first_block_is_the_two_commands() -> None:
    _, text = BLOCK.findall(README)[0]
    assert text.splitlines() == [
        "python -m pip install . && twingram demo",
        "python -m pip install '.[test]' && python -m pytest",
    ]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        pytest.param(path, code, id=f"{path.name}-{n}")
        for path in DOCUMENTS
        for n, code in enumerate(blocks(path, "python"))
    ],
)
def test_python_blocks_run(path: Path, code: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, f"{path}:\n{code}\n{done.stderr}"


def test_the_example_is_short() -> None:
    (example,) = blocks(ROOT / "README.md", "python")
    assert len([line for line in example.splitlines() if line.strip()]) <= 20


@pytest.mark.parametrize(
    ("path", "grammar"),
    [
        pytest.param(path, text, id=f"{path.name}-{n}")
        for path in DOCUMENTS
        for n, text in enumerate(blocks(path, "lark"))
    ],
)
def test_grammar_blocks_are_valid_lark(path: Path, grammar: str) -> None:
    start = re.findall(r"^//@ start (\w+)", grammar, re.MULTILINE) or ["start"]
    lark.Lark(grammar, start=start, parser="earley", lexer="dynamic", import_paths=[str(ROOT / "grammars")])


def test_the_code_map_is_complete() -> None:
    """Every module of the engine is in the map, and everything in the map exists."""
    section = README.split("## Code map", 1)[1].split("\n## ", 1)[0]
    listed = set(re.findall(r"`((?:[a-z_0-9]+/)*[a-z_0-9]+\.py)`", section))
    engine = ROOT / "engine" / "twingram"
    present = {path.relative_to(engine).as_posix() for path in engine.rglob("*.py") if path.name != "__init__.py"}
    assert listed == present


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
        if not re.match(r"[a-z]+:", target):
            assert (path.parent / target).exists(), f"{path}: {target}"


@pytest.mark.parametrize("name", [".ci/run", "scripts/check"])
def test_scripts_can_be_run(name: str) -> None:
    assert os.access(ROOT / name, os.X_OK)
    subprocess.run(["bash", "-n", str(ROOT / name)], check=True)
