"""The Python files of inference engines, so that adapters are tested against their real classes without a GPU.

    python -m tests.engine_sources      # fetches two wheels (380 MB), keeps their Python files (100 MB)

The engines' own dependencies are not fetched: the command names those that an import lacks. `VLLM` and `SGLANG` are the
releases that the adapters were written against; `TWINGRAM_ENGINES` moves the folder. Tests that need an engine skip
where it cannot be imported, and say why.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import types
import warnings
import zipfile
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

VLLM, SGLANG = "0.33.0", "0.5.23"
FOLDER = Path(os.environ.get("TWINGRAM_ENGINES", Path.home() / ".cache" / "twingram" / "engines"))
NEEDED = {
    "vllm": (
        "vllm.parser.parser_manager",
        "vllm.v1.sample.logits_processor",
        "vllm.v1.worker.gpu.sample.logits_processor",
    ),
    "sglang": ("sglang.srt.constrained.base_grammar_backend", "sglang.srt.function_call.function_call_parser"),
}


def fetch(name: str, version: str) -> None:
    """Unpack the Python files of one wheel into the folder."""
    with tempfile.TemporaryDirectory() as work:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", f"{name}=={version}", "-d", work]
        subprocess.run(command, check=True, timeout=1200)
        (wheel,) = Path(work).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            wanted = [m for m in archive.namelist() if m.endswith((".py", ".json")) or ".dist-info/" in m]
            archive.extractall(FOLDER, wanted)


@cache
def why_not(name: str) -> str:
    """Why this engine cannot be imported here; '' if it can. It is on the path afterwards."""
    if importlib.util.find_spec(name) is None:
        if not (FOLDER / name).is_dir():
            return f"{name} is not here; python -m tests.engine_sources fetches it"
        sys.path.append(str(FOLDER))
    os.environ.setdefault("VLLM_TARGET_DEVICE", "cpu")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name == "sglang" and name not in sys.modules:  # its own __init__ wants a GPU compiler
            sys.modules[name] = types.ModuleType(name)
            sys.modules[name].__path__ = [str(FOLDER / name)]
        try:
            for module in NEEDED[name]:
                importlib.import_module(module)
        except ImportError as error:
            return f"{name} cannot be imported: {error}"
    return ""


def or_skip(name: str) -> None:
    """Skip the test module, with the reason, where the engine cannot be imported."""
    if reason := why_not(name):
        pytest.skip(reason, allow_module_level=True)


def quietly(module: str) -> ModuleType:
    """A module that imports parts of an engine which warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(module)


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for engine, release in (("vllm", VLLM), ("sglang", SGLANG)):
        if not (FOLDER / engine).is_dir():
            fetch(engine, release)
        print(engine, release, why_not(engine) or "can be imported")
