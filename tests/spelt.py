"""Formats as the schema tests need them: a grammar, the shape of its arguments, texts as symbols.

In: the grammar files. Out: `FORMATS`, by name. Rendering is the oracle's, so that what is accepted was written by other
code than accepts it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import oracle
from tests.oracle import atem, gemma4, runes
from tests.oracle.render import render_call
from twingram.automaton.machine import Machine, State
from twingram.grammar.alphabet import Alphabet
from twingram.grammar.compile import Compiler, Reading
from twingram.grammar.source import load_file
from twingram.grammar.spelling import Spelling
from twingram.limits import Limits
from twingram.schema.compiler import SchemaOptions, compile_arguments
from twingram.schema.report import CompiledSchema

ROOT = Path(__file__).resolve().parents[1]
INT, NUM, STR, BOOL, NULL = ({"type": name} for name in ("integer", "number", "string", "boolean", "null"))


class Format:
    """A grammar, and the shape of its arguments."""

    def __init__(self, name: str, path: Path, head: str, tail: str) -> None:
        self.name, self.head, self.tail = name, head, tail
        self.grammar = load_file(path)
        self.alphabet = Alphabet.of(self.grammar.markers, special=self.grammar.markers)
        compiler = Compiler(self.grammar, self.alphabet, Reading.MASK)
        self.shape = Spelling.plain(compiler, "value").object_of("object")
        self.value = Spelling(compiler, "value")

    def compile(self, schema: Any, limits: Limits | None = None, **options: Any) -> CompiledSchema:
        options |= {"limits": limits} if limits else {}
        return compile_arguments(schema, self.shape, tool="f", options=SchemaOptions(**options))

    def machine(self, compiled: CompiledSchema) -> Machine:
        return Machine(compiled.expr, widths=self.alphabet.widths, ordered=False)

    def symbols(self, text: str) -> list[int]:
        numbers = {marker: 256 + k for k, marker in enumerate(self.grammar.markers)}
        return [numbers[s] if isinstance(s, str) else s for s in oracle.symbols(text, self.grammar.markers)]

    def state(self, compiled: CompiledSchema, text: str) -> State | None:
        found = self.machine(compiled).start.run(self.symbols(text))
        return None if found is None else found.state

    def accepts(self, compiled: CompiledSchema, text: str) -> bool:
        state = self.state(compiled, text)
        return state is not None and state.accepting

    def render(self, arguments: dict[str, Any]) -> str:
        text = render_call(self.name, "f", arguments, sort=False)
        assert text.startswith(self.head)
        assert text.endswith(self.tail)
        return text[len(self.head) : len(text) - len(self.tail)]

    def admits(self, compiled: CompiledSchema, arguments: dict[str, Any]) -> bool:
        return self.accepts(compiled, self.render(arguments))


FORMATS = {
    "gemma4": Format("gemma4", ROOT / "grammars/gemma4.lark", "<|tool_call>call:f", "<tool_call|>"),
    "atem": Format(
        "atem", ROOT / "grammars/atem.lark", '<atem:function_calls>\n<atem:invoke name="f">\n',
        "</atem:invoke>\n</atem:function_calls>",
    ),
    "runes": Format("runes", ROOT / "tests/formats/runes.lark", "[[call]]f", "[[/call]]"),
}  # fmt: skip
GEMMA, ATEM = FORMATS["gemma4"], FORMATS["atem"]
SPELLINGS = {"gemma4": gemma4.Braces, "atem": atem.Tags, "runes": runes.Runes}
each_format = pytest.mark.parametrize("name", FORMATS)


def of_x(schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": schema}, "required": ["x"]}


def obj(properties: dict[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    """An object with these members."""
    return {"type": "object", "properties": properties} | ({"required": list(required)} if required else {}) | more


def arr(**more: Any) -> dict[str, Any]:
    return {"type": "array"} | more
