"""Is parsing linear? t(2n) / t(n) for texts that are hard to read; the goal is under 2.5.

    python -m benchmarks.linear [BYTES [REPEATS]]

In: texts of n and 2n bytes (1,000,000), each kind built to be bad for something: long strings, many calls, brackets up
to the limit, markers that never come to their end, white space whose fate is open, openers in turn. Out: a table.
Timed is the processor time of feeding the text whole and of feeding it in pieces of 1,000 bytes, states met before, the
least of the repeats. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Iterator, Sequence

import twingram as tg

_TOOL = {"type": "object", "properties": {"a": {"type": "string"}, "l": {"type": "array"}}}
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": _TOOL}}]
_OPEN, _CLOSE, _QUOTE = "<|tool_call>call:f{", "}<tool_call|>", '<|"|>'
_HEAD = ' to=f<|message|><atem:function_calls>\n<atem:invoke name="f">\n'
_VALUE, _TAIL = '<atem:parameter name="a">', "</atem:parameter>\n</atem:invoke>\n</atem:function_calls>"
_NEXT = "<|eom|><|start|>assistant"
_DEPTH = 500  # under the limit on nesting

Kind = tuple[str, str, Callable[[int], str]]


def _filled(before: str, unit: str, after: str = "") -> Callable[[int], str]:
    return lambda size: before + unit * ((size - len(before) - len(after)) // len(unit)) + after


def _nested(size: int) -> str:
    one = f"{_OPEN}l:{'[' * _DEPTH}"
    return (one + "<tool_call|>") * (size // len(one))


KINDS: tuple[Kind, ...] = (
    ("gemma4", "content", _filled("", "word and wörd, ")),
    ("gemma4", "one string", _filled(f"{_OPEN}a:{_QUOTE}", "text {x}, ", f"{_QUOTE}{_CLOSE}")),
    ("gemma4", "one raw value", _filled(f"{_OPEN}a:", "text {x}, a: ", _CLOSE)),
    ("gemma4", "many calls", _filled("", f"{_OPEN}a:{_QUOTE}x{_QUOTE}{_CLOSE}")),
    ("gemma4", "many items", _filled(f"{_OPEN}l:[", "1,", f"2]{_CLOSE}")),
    ("gemma4", "unbalanced brackets", _nested),
    ("gemma4", "endless <", _filled("", "<")),
    ("gemma4", "endless < in a call", _filled(f"{_OPEN}a:", "<")),
    ("gemma4", "endless partial markers", _filled("", "<|tool_cal")),
    ("gemma4", "partial markers in a string", _filled(f"{_OPEN}a:{_QUOTE}", '}<|"|}<tool_call|')),
    ("gemma4", "endless white space", _filled("x", " ")),
    ("gemma4", "white space after a call", _filled(f"{_OPEN}{_CLOSE}", "\n")),
    ("gemma4", "alternating openers", _filled("", "<|tool_call><|channel>")),
    ("gemma4", "openers that become calls", _filled("", "<|tool_call>call:f{<|channel>thought\n")),
    ("atem", "content", _filled(" to=user<|message|>", "word and wörd, ")),
    ("atem", "one string", _filled(_HEAD + _VALUE, "text </b> ", _TAIL)),
    ("atem", "many calls", lambda size: (_HEAD + _VALUE + "x" + _TAIL + _NEXT) * (size // 180)),
    ("atem", "many parameters",
     _filled(_HEAD, f"{_VALUE}x</atem:parameter>\n", "</atem:invoke></atem:function_calls>")),
    ("atem", "endless <", _filled(_HEAD + _VALUE, "<")),
    ("atem", "endless partial closers", _filled(_HEAD + _VALUE, "</atem:parameter>\n</atem:invoke>\n</atem:functio")),
    ("atem", "endless white space", _filled(_HEAD + _VALUE + "x</atem:parameter>", " ")),
    ("atem", "alternating openers", _filled("", "<|start|>assistant to=f<|message|>")),
    ("atem", "blocks that are text", _filled("", "<atem:function_calls>\n")),
)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.linear", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("bytes", nargs="?", type=int, default=1_000_000, help="of the shorter text (1000000)")
    parser.add_argument("repeats", nargs="?", type=int, default=3, help="the least of so many counts (3)")
    options = parser.parse_args(argv)
    size, repeats = options.bytes, options.repeats
    print(f"{'format':8} {'kind':28} {'t(n)':>9} {'whole':>6} {'pieces':>7}   n = {size:,} bytes")
    for name, kind, text in KINDS:
        one, two = text(size), text(2 * size)
        _seconds(name, _whole(two))
        row = [_best(name, one, two, cut, repeats) for cut in (_whole, _pieces)]
        print(f"{name:8} {kind:28} {row[0][0]:8.3f}s {row[0][1]:6.2f} {row[1][1]:7.2f}", flush=True)
    return 0


def _best(name: str, one: str, two: str, cut: Callable[[str], list[str]], repeats: int) -> tuple[float, float]:
    least = [min(_seconds(name, cut(text)) for _ in range(repeats)) for text in (one, two)]
    return least[0], least[1] / least[0] * (len(one) * 2 / len(two))


def _whole(text: str) -> list[str]:
    return [text]


def _pieces(text: str) -> list[str]:
    return list(_cut(text, 1000))


def _cut(text: str, size: int) -> Iterator[str]:
    return (text[at : at + size] for at in range(0, len(text), size))


def _seconds(name: str, pieces: list[str]) -> float:
    parser = tg.load_format(name).parser(TOOLS)
    gc.collect()
    began = time.process_time()
    for piece in pieces:
        parser.feed(piece)
    parser.finish()
    return time.process_time() - began


if __name__ == "__main__":
    raise SystemExit(main())
