"""Draws docs/pictures/*.svg: the pipeline, a state with its mask, the trace of one call. The last two from a real run.

    python scripts/pictures.py           # writes them
    python scripts/pictures.py --check   # says with its exit status whether they are current
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from html import escape
from pathlib import Path

import twingram as tg

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures"
WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}},
    "required": ["city"],
}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}}]
TURN = '<|tool_call>call:get_weather{city:<|"|>Paris<|"|>,days:3}<tool_call|><turn|>'
AT = '<|tool_call>call:get_weather{'


def text(x: float, y: float, words: str, *, bold: bool = False, middle: bool = False, code: bool = False) -> str:
    style = ('font-weight="bold" ' if bold else "") + ('text-anchor="middle" ' if middle else "")
    family = 'font-family="monospace" xml:space="preserve" ' if code else ""
    return f'<text x="{x:g}" y="{y:g}" {style}{family}>{escape(words)}</text>'


def box(x: float, y: float, width: float, height: float, kind: str = "#eef2ff") -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" fill="{kind}" stroke="#475569"/>'


def arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    return f'<path d="M{x:g} {y:g} L{to_x:g} {to_y:g}" stroke="#475569" marker-end="url(#a)"/>'


def svg(width: int, height: int, title: str, parts: Iterable[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="sans-serif" font-size="14" fill="#0f172a" role="img"><title>{escape(title)}</title>'
        '<defs><marker id="a" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 L8 4 L0 8 z" fill="#475569"/></marker></defs>'
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    )
    return "\n".join([head, *parts, "</svg>", ""])


def labelled(x: float, y: float, title: str, words: str, kind: str = "#eef2ff", width: float = 170) -> list[str]:
    return [
        box(x, y, width, 54, kind),
        text(x + width / 2, y + 23, title, bold=True, middle=True),
        text(x + width / 2, y + 42, words, middle=True),
    ]


def pipeline() -> str:
    parts = [
        *labelled(10, 20, "grammar file", "one a format", "#fef3c7"),
        *labelled(10, 100, "tools, tool_choice", "JSON Schema", "#fef3c7"),
        *labelled(10, 180, "vocabulary", "bytes of each token", "#fef3c7"),
        *labelled(250, 60, "expressions", "what may still follow"),
        *labelled(490, 60, "states", "one a derivative, kept"),
        *labelled(490, 180, "token trie", "all tokens by bytes"),
        *labelled(730, 20, "deltas", "content, calls", "#dcfce7"),
        *labelled(730, 130, "mask", "one bit a token", "#dcfce7"),
        arrow(180, 47, 250, 80), arrow(180, 127, 250, 95), arrow(180, 207, 490, 207), arrow(420, 87, 490, 87),
        arrow(660, 80, 730, 50), arrow(660, 95, 730, 150), arrow(660, 200, 730, 165),
    ]  # fmt: skip
    return svg(910, 250, "From grammar, tools and vocabulary to masks and deltas", parts)


def session() -> tg.Session:
    fmt, vocabulary = tg.load_format("gemma4"), tg.Vocabulary.embedded()
    return fmt.constraint(TOOLS, tool_choice="required", vocabulary=vocabulary).session()


def name(vocabulary: tg.Vocabulary, token: int) -> str:
    return vocabulary.token_bytes(token).decode("utf-8", "replace")


def state() -> str:
    """The state after the brace: five tokens of the vocabulary are allowed, which lead to four states."""
    at = session()
    vocabulary = at.constraint.vocabulary
    assert at.accept_tokens(vocabulary.encode(AT)) == len(vocabulary.encode(AT))
    allowed = at.allowed_tokens().tolist()
    parts = [
        text(20, 30, f"after  {AT}", code=True),
        box(20, 110, 200, 70), text(120, 137, "state", bold=True, middle=True),
        text(120, 160, "a key: city or days", middle=True),
        text(20, 225, f"{len(allowed)} of {len(vocabulary)} tokens allowed"),
        text(560, 30, "token", bold=True), text(690, 30, "what may follow it", bold=True),
    ]  # fmt: skip
    for row, token in enumerate(allowed):
        y = 45 + 44 * row
        after = at.fork()
        assert after.accept_token(token)
        following = [name(vocabulary, t) for t in after.allowed_tokens().tolist()]
        shown = ", ".join(map(repr, following[:4])) + (", ..." if len(following) > 4 else "")
        parts += [arrow(220, 145, 550, y + 18), box(555, y, 90, 34, "#dcfce7")]
        parts.append(text(600, y + 22, name(vocabulary, token), middle=True, code=True))
        parts.append(text(690, y + 22, shown, code=True))
    return svg(910, 280, "A state and its mask", parts)


def trace() -> str:
    """Each token of a call: how many were allowed, which deltas came."""
    at = session()
    vocabulary = at.constraint.vocabulary
    parts = [text(20, 28, "token", bold=True), text(190, 28, "allowed before it", bold=True)]
    parts += [text(330, 28, "forced", bold=True), text(420, 28, "deltas", bold=True)]
    y = 34
    for token in vocabulary.encode(TURN):
        allowed, forced = len(at.allowed_tokens()), at.jump_forward()[:1] == [token]
        assert at.accept_token(token)
        shown = "   ".join(delta_text(delta) for delta in at.take_deltas())
        parts += [f'<path d="M20 {y} H890" stroke="#cbd5e1"/>', text(20, y + 18, name(vocabulary, token), code=True)]
        parts += [text(190, y + 18, f"{allowed} of {len(vocabulary)}"), text(330, y + 18, "yes" if forced else "")]
        parts.append(text(420, y + 18, shown, code=True))
        y += 26
    return svg(910, y + 10, "One call, token by token", parts)


def delta_text(delta: tg.Delta) -> str:
    if isinstance(delta, tg.CallStart):
        return f"CallStart {delta.name}"
    if isinstance(delta, tg.CallArguments):
        return f"CallArguments {delta.json}"
    return type(delta).__name__


def main() -> int:
    drawn = {"pipeline.svg": pipeline(), "state.svg": state(), "trace.svg": trace()}
    if "--check" in sys.argv[1:]:
        old = [file for file, data in drawn.items() if (FOLDER / file).read_text(encoding="utf-8") != data]
        return 1 if old else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for file, data in drawn.items():
        (FOLDER / file).write_text(data, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
