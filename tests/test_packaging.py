"""What is shipped: an sdist and the wheel built from it, looked into and run."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import twingram
from twingram import resources

ROOT = Path(__file__).resolve().parents[1]
GRAMMARS = sorted(path.relative_to(ROOT / "grammars").as_posix() for path in (ROOT / "grammars").rglob("*.lark"))


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel made from that sdist."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    (path,) = dist.glob("*.whl")
    return path


def sources(folder: str, package: str) -> set[str]:
    base = ROOT / folder
    return {path.relative_to(base).as_posix() for path in (base / package).rglob("*.py")}


def test_wheel_holds_the_packages_and_the_grammars(wheel: Path) -> None:
    assert GRAMMARS
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        for grammar in GRAMMARS:
            assert archive.read(f"twingram/grammars/{grammar}") == (ROOT / "grammars" / grammar).read_bytes()
    expected = sources("engine", "twingram") | sources("bindings", "twingram_bindings")
    expected |= {"twingram/py.typed", "twingram_bindings/py.typed"}
    assert expected <= names
    assert {name.split("/")[0] for name in names} == {"twingram", "twingram_bindings"}
    assert not [name for name in names if "__pycache__" in name]


def test_wheel_metadata(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        by_name = {name.split("/", 1)[1]: name for name in archive.namelist() if ".dist-info/" in name}
        assert "twingram = twingram.cli:main" in archive.read(by_name["entry_points.txt"]).decode()
        assert archive.read(by_name["licenses/LICENSE"]) == (ROOT / "LICENSE").read_bytes()
        metadata = archive.read(by_name["METADATA"]).decode()
    assert f"Version: {twingram.__version__}\n" in metadata
    assert "License-Expression: Apache-2.0" in metadata


def test_sdist_holds_what_is_needed_to_test_it(dist: Path) -> None:
    (path,) = dist.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    wanted = {f"grammars/{grammar}" for grammar in GRAMMARS} | {"tests/conftest.py", "README.md", "LICENSE", ".ci/run"}
    assert wanted <= names


def test_wheel_works_away_from_the_checkout(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    code = "import json, twingram as tg, twingram_bindings; print(json.dumps([tg.__file__, tg.list_formats()]))"
    environment = {name: value for name, value in os.environ.items() if name != "TWINGRAM_GRAMMARS"}
    environment["PYTHONPATH"] = str(tmp_path / "site")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    file, formats = json.loads(done.stdout)
    assert Path(file).is_relative_to(tmp_path.resolve())
    assert formats == twingram.list_formats()
    assert formats


def test_the_installed_package_is_what_is_tested() -> None:
    """After `pip install .` the tests must not import the checkout's engine/ in its place."""
    try:
        installed = importlib.metadata.distribution("twingram")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("twingram is not installed; it runs from PYTHONPATH")
    origin = json.loads(installed.read_text("direct_url.json") or "{}")
    if not origin.get("dir_info", {}).get("editable") and "PYTHONPATH" not in os.environ:
        assert not Path(twingram.__file__).is_relative_to(ROOT / "engine")
    assert installed.version == twingram.__version__


def test_another_folder_of_grammars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWINGRAM_GRAMMARS", str(tmp_path))
    assert resources.format_names() == []
    (tmp_path / "mine.lark").write_text('//@ format mine 1\n//@ start turn\nturn: "x"\n', encoding="utf-8")
    (tmp_path / "piece.lark").write_text('value: "x"\n', encoding="utf-8")
    (tmp_path / "odd.lark").write_bytes(b"//@ format \xff")
    assert resources.format_names() == ["mine"]
    assert resources.grammar_path("mine") == tmp_path / "mine.lark"
    for name in ["piece", "nowhere", "../mine", ""]:
        with pytest.raises(twingram.GrammarError, match="known formats: mine"):
            resources.grammar_path(name)
    monkeypatch.setenv("TWINGRAM_GRAMMARS", str(tmp_path / "nowhere"))
    with pytest.raises(twingram.GrammarError, match="known formats: none in"):
        resources.grammar_path("mine")
