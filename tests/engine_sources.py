"""The Python files of inference engines, so that adapters are tested against their real classes without a GPU.

    python -m tests.engine_sources      # fetches two wheels (380 MB), keeps their Python files (100 MB)

What the engines import is not fetched: the command prints the line that installs what is missing of it, and names what
an import still lacks. `VLLM` and `SGLANG` are the releases that the adapters were written against; `TWINGRAM_ENGINES`
moves the folder. Tests that need an engine skip where it cannot be imported, and say why.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import shutil
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
# What these modules import, beside what the tests need. None of it needs a GPU.
DISTRIBUTIONS = (
    "aiohttp", "blake3", "cachetools", "cbor2", "cloudpickle", "diskcache", "einops", "fastapi", "ijson", "ipython",
    "mcp", "mistral-common", "msgspec", "openai-harmony", "orjson", "partial-json-parser", "pillow",
    "prometheus-fastapi-instrumentator", "protobuf", "psutil", "py-cpuinfo", "pybase64", "python-json-logger", "pyzmq",
    "sentencepiece", "setproctitle", "tiktoken", "torch", "transformers", "triton", "uvloop", "watchfiles", "xgrammar",
)  # fmt: skip


def missing() -> list[str]:
    """The distributions that are not installed."""
    out = []
    for name in DISTRIBUTIONS:
        try:
            importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            out.append(name)
    return out


def fetch(name: str, version: str) -> None:
    """Unpack the Python files of one wheel into the folder; what is there afterwards is whole."""
    with tempfile.TemporaryDirectory(dir=FOLDER) as work:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "-d", work]
        subprocess.run([*pip, f"{name}=={version}"], check=True, timeout=1200)
        (wheel,) = Path(work).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            wanted = [m for m in archive.namelist() if m.endswith((".py", ".json")) or ".dist-info/" in m]
            archive.extractall(Path(work) / "tree", wanted)
        for part in sorted((Path(work) / "tree").iterdir(), key=lambda part: part.name == name):  # the mark comes last
            shutil.rmtree(FOLDER / part.name, ignore_errors=True)
            part.rename(FOLDER / part.name)


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
    if lacking := missing():
        print("python -m pip install", *lacking)
    for engine, release in (("vllm", VLLM), ("sglang", SGLANG)):
        if not (FOLDER / engine).is_dir():
            fetch(engine, release)
        print(engine, release, why_not(engine) or "can be imported")
