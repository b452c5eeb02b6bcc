"""The documents say what is true: commands, examples, file names, grammar snippets."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lark
import pytest

import twingram

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
# Before a block, `<!-- needs: package, package -->` runs it where these can be imported; `<!-- run: server -->` gives
# it a server on port 8000; `<!-- run: not -->` says that it needs what a test machine lacks. A block of commands runs
# with `<!-- run: shell -->`, in a folder that has the checkout's `grammars` and a `tools.json`.
BLOCK = re.compile(r"(?:^<!-- (needs|run): ([^>]*) -->\n+)?^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DOCUMENTS = [
    ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "benchmarks" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]  # fmt: skip


def blocks(path: Path, language: str) -> list[str]:
    return [text for _, _, found, text in BLOCK.findall(path.read_text(encoding="utf-8")) if found == language]


def python_blocks() -> Iterator[Any]:
    for path in DOCUMENTS:
        found = [block for block in BLOCK.findall(path.read_text(encoding="utf-8")) if block[2] == "python"]
        for n, (kind, given, _, code) in enumerate(found):
            words = [word.strip() for word in given.split(",") if word.strip()]
            needed = words if kind == "needs" else ["openai", "uvicorn"] if words == ["server"] else []
            missing = [name for name in needed if importlib.util.find_spec(name) is None]
            reason = "it needs what a test machine lacks" if words == ["not"] else f"needs {', '.join(missing)}"
            skipped = bool(missing) or words == ["not"]
            name = f"{path.relative_to(ROOT)}-{n}" + (f" ({reason})" if skipped else "")
            marks = [pytest.mark.skip(reason=reason)] if skipped else []
            yield pytest.param(path, code, words == ["server"], id=name, marks=marks)


@pytest.fixture
def port() -> Iterator[int]:
    """Where `twingram serve --backend random` listens."""
    command = [sys.executable, "-m", "twingram", "serve", "--backend", "random", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        listening = (re.search(r"running on http://127\.0\.0\.1:(\d+)", line) for line in process.stderr)
        try:
            yield next(int(match.group(1)) for match in listening if match)
        finally:
            process.terminate()


def test_the_first_block_is_the_two_commands() -> None:
    *_, text = BLOCK.findall(README)[0]
    assert text.splitlines() == [
        "python -m pip install . && twingram demo",
        "python -m pip install '.[test]' && python -m pytest",
    ]


@pytest.mark.parametrize(("path", "code", "asks"), [*python_blocks()])
def test_python_blocks_run(request: pytest.FixtureRequest, path: Path, code: str, asks: bool, tmp_path: Path) -> None:
    if asks:
        assert "127.0.0.1:8000" in code
        code = code.replace("127.0.0.1:8000", f"127.0.0.1:{request.getfixturevalue('port')}")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=180
    )
    assert done.returncode == 0, f"{path}:\n{code}\n{done.stderr}"
    assert not asks or done.stdout


SHELL = [
    pytest.param(text, id=f"{path.relative_to(ROOT)}-{n}")
    for path in DOCUMENTS
    for n, (_, given, _, text) in enumerate(BLOCK.findall(path.read_text(encoding="utf-8")))
    if given == "shell"
]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs a shell")
@pytest.mark.parametrize("text", SHELL)
def test_commands_run(text: str, tmp_path: Path) -> None:
    (tmp_path / "grammars").symlink_to(ROOT / "grammars")
    tool = {"name": "get_weather", "parameters": {"properties": {"city": {"type": "string"}}, "required": ["city"]}}
    (tmp_path / "tools.json").write_text(json.dumps([tool]), encoding="utf-8")
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text], cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True,
        text=True, timeout=180,
    )  # fmt: skip
    assert done.returncode == 0, f"{text}\n{done.stderr}"
    assert done.stdout


def test_extras_exist() -> None:
    """Every extra that a document or a message names is one of the package."""
    table = (ROOT / "pyproject.toml").read_text(encoding="utf-8").split("[project.optional-dependencies]")[1]
    extras = set(re.findall(r"^(\w+) = \[", table.split("\n[")[0], re.MULTILINE))
    sources = [*DOCUMENTS, ROOT / ".ci" / "run", *(ROOT / "engine").rglob("*.py"), *(ROOT / "bindings").rglob("*.py")]
    named = {
        name.strip() for path in sources
        for found in re.findall(r"(?:\btwingram|[' ]\.)\[([a-z, ]+)\]", path.read_text(encoding="utf-8"))
        for name in found.split(",")
    }  # fmt: skip
    assert {"server", "test"} <= named <= extras


def test_the_example_is_short() -> None:
    example, _asks_a_server = blocks(ROOT / "README.md", "python")
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


def test_the_site_has_every_page_and_every_public_name() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n")[1].split("\nplugins:")[0]
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert set(re.findall(r": ([\w/]+\.md)$", nav, re.MULTILINE)) == pages
    api = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    named = re.findall(r"^::: twingram\.(\w+)$|`twingram\.(\w+)`", api, re.MULTILINE)
    assert {name for pair in named for name in pair if name} == {*twingram.__all__} - {"__version__"}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
        if not re.match(r"[a-z]+:", target):
            assert (path.parent / target).exists(), f"{path}: {target}"


@pytest.mark.parametrize("name", [".ci/run", "scripts/check"])
def test_scripts_can_be_run(name: str) -> None:
    assert os.access(ROOT / name, os.X_OK)
    subprocess.run(["bash", "-n", str(ROOT / name)], check=True)
