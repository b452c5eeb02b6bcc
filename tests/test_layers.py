"""The order of the layers, the size of the modules, and what may not stand in the engine at all."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ENGINE = ROOT / "engine" / "twingram"
BINDINGS = ROOT / "bindings" / "twingram_bindings"

# From the bottom up. A module imports from its own layer and from those before it.
LAYERS = (
    ("errors",),
    ("caches", "limits", "resources", "uncollected"),
    ("automaton",),
    ("grammar",),
    ("schema",),
    ("tokens",),
    ("session",),
    ("export",),
    ("format",),
    ("explain", "sampling"),
    ("__init__",),
    ("cli", "server"),
    ("__main__",),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}

NAMES = re.compile(
    r"gemma|llama|vllm|sglang|xgrammar|llguidance|executorch|ollama|mistral|qwen|deepseek|anthropic"
    r"|(?<![a-z])(?:muse|atem|openai)(?![a-z])",
    re.IGNORECASE,
)
# The shape of Chat Completions messages is part of the public surface and is named for it; so are the notations of
# other engines that a constraint can be exported to.
API_NAMES = re.compile(
    r"\bto_openai\b|\bopenai_chunks\b|--openai\b|\.openai\b|\bopenai\.py\b|\bsession/openai\b"
    r"|\"xgrammar\"|\"llguidance\"|%llguidance\b"
)


def modules(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


ENGINE_MODULES = pytest.mark.parametrize("path", modules(ENGINE), ids=lambda path: path.relative_to(ENGINE).as_posix())
ALL_MODULES = pytest.mark.parametrize(
    "path", modules(ENGINE) + modules(BINDINGS), ids=lambda path: path.relative_to(ROOT).as_posix()
)


def dotted(path: Path) -> tuple[str, ...]:
    """The module's name below `twingram`: ("session", "emitter"), ("__init__",) for the package itself."""
    parts = path.relative_to(ENGINE).with_suffix("").parts
    return parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts


def package_imports(path: Path, nodes: Iterator[ast.AST]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """(line, module below `twingram`) of every import of our own; () is the package itself."""
    inside = path.relative_to(ENGINE).parent.parts
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                first, *rest = alias.name.split(".")
                if first == "twingram":
                    yield node.lineno, tuple(rest)
        elif isinstance(node, ast.ImportFrom):
            named = tuple(node.module.split(".")) if node.module else ()
            if node.level:
                base = inside[: len(inside) - node.level + 1] + named
            elif named[:1] == ("twingram",):
                base = named[1:]
            else:
                continue
            for alias in node.names:
                below = (*base, alias.name)
                yield node.lineno, below if is_module(below) else base


def is_module(parts: tuple[str, ...]) -> bool:
    return ENGINE.joinpath(*parts).with_suffix(".py").is_file() or ENGINE.joinpath(*parts, "__init__.py").is_file()


@ENGINE_MODULES
def test_imports_point_downwards(path: Path) -> None:
    own = dotted(path)[0]
    assert own in LEVEL, f"{path} belongs to no layer: add {own!r} to LAYERS where it belongs"
    for line, target in package_imports(path, ast.walk(ast.parse(path.read_text(encoding="utf-8")))):
        name = target[0] if target else "__init__"
        assert LEVEL[name] <= LEVEL[own], f"{path}:{line}: {own} imports {'.'.join(target)}, which lies above it"
        assert name == own or LEVEL[name] < LEVEL[own], f"{path}:{line}: {own} and {name} lie side by side"


def test_no_import_cycles() -> None:
    """Counted are the imports that run when a module is loaded."""
    graph: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for path in modules(ENGINE):
        body = iter(ast.parse(path.read_text(encoding="utf-8")).body)
        graph[dotted(path)] = {target or ("__init__",) for _, target in package_imports(path, body)}
    done: set[tuple[str, ...]] = set()

    def visit(module: tuple[str, ...], trail: tuple[tuple[str, ...], ...]) -> None:
        assert module not in trail, "cycle: " + " -> ".join(".".join(m) for m in (*trail, module))
        if module not in done:
            for target in sorted(graph.get(module, ())):
                visit(target, (*trail, module))
            done.add(module)

    for module in sorted(graph):
        visit(module, ())


@pytest.mark.parametrize("base", [ENGINE, BINDINGS], ids=lambda path: path.name)
def test_every_folder_is_a_package(base: Path) -> None:
    """Tools that read the sources (documentation, type checkers) do not find modules in a folder without this file."""
    folders = {path.parent for path in modules(base)}
    assert [folder for folder in sorted(folders) if not (folder / "__init__.py").is_file()] == []


@ENGINE_MODULES
def test_no_vendor_or_model_is_named(path: Path) -> None:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        found = NAMES.search(API_NAMES.sub("", line))
        assert found is None, f"{path}:{number}: {found.group()!r}; the engine knows no vendor and no model"


@ALL_MODULES
def test_modules_are_small_and_say_what_they_are(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= 450, f"{path} has {text.count(chr(10))} lines: split it by stage"
    assert ast.get_docstring(ast.parse(text)), f"{path} has no docstring"


@ALL_MODULES
def test_no_blanket_handler(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ExceptHandler):
            caught = "" if node.type is None else ast.unparse(node.type)
            blanket = node.type is None or re.search(r"\b(?:Base)?Exception\b", caught)
            assert not blanket, f"{path}:{node.lineno}: name the exceptions that are expected"


@ENGINE_MODULES
def test_bindings_do_not_leak_into_the_engine(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        for name in names:
            assert not name.startswith("twingram_bindings"), f"{path}:{node.lineno}: the engine imports a binding"


def test_import_is_light() -> None:
    """Nothing that trains or runs models is loaded; the time is checked loosely here and measured in benchmarks/."""
    code = (
        "import sys, time; start = time.perf_counter(); import twingram; took = time.perf_counter() - start\n"
        "heavy = {'torch', 'transformers', 'tensorflow', 'jax', 'pandas', 'scipy', 'jsonschema'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert took < 3, took\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)
