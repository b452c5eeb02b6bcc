"""A grammar as railroad diagrams: one track for each rule, all in one SVG.

In: a `Grammar`. Out: the text of an SVG file. Rules that are only parsed have a track of another colour.
The drawing is done by the package `railroad-diagrams`, an extra: it is loaded when a diagram is asked for.
Cost: linear in the rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from ..errors import RequestError
from ..grammar.canonical import canonical_rules
from ..grammar.rules import ROLES, Choice, Condition, Grammar, Group, Literal, Loop, Node, Rule, Same, Use

__all__ = ["diagram"]

_TITLE = 26  # pixels above a track
_STYLE = """
text { font: bold 14px monospace; text-anchor: middle; }
text.title { font: bold 15px sans-serif; text-anchor: start; }
text.title tspan { font-weight: normal; fill: #666666; }
text.comment { font: italic 12px monospace; }
path { stroke-width: 2; stroke: #333333; fill: none; }
rect { stroke-width: 2; stroke: #333333; fill: #d5ecd0; }
g.non-terminal rect { fill: #f0f0f0; }
g.pattern rect { fill: #f7ecc0; }
svg.parsed path, svg.parsed rect { stroke: #8a9bb5; }
"""


def diagram(grammar: Grammar) -> str:
    """The rules in the order of the file. `RequestError` if the drawing package is missing."""
    try:
        import railroad  # noqa: PLC0415
    except ImportError as error:
        raise RequestError("diagrams need a package: python -m pip install railroad-diagrams") from error
    canonical = canonical_rules(grammar)
    tracks, top, width = [], 0.0, 0.0
    for rule in grammar.rules.values():
        track = railroad.Diagram(_track(railroad, Choice(rule.choice.branches), grammar), type="complex").format(10)
        if rule.name not in canonical:
            track.attrs["class"] += " parsed"
        track.attrs.update(x="0", y=f"{top + _TITLE:g}")
        pieces: list[str] = []
        track.writeSvg(pieces.append)
        title = f'<text class="title" x="10" y="{top + _TITLE - 8:g}">{_title(rule, rule.name in canonical)}</text>'
        tracks.append(title + "".join(pieces))
        top += _TITLE + float(track.attrs["height"])
        width = max(width, float(track.attrs["width"]))
    size = f'width="{width:g}" height="{top:g}" viewBox="0 0 {width:g} {top:g}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n<style>{_STYLE}</style>\n'
    return head + "\n".join(tracks) + "\n</svg>\n"


def _title(rule: Rule, canonical: bool) -> str:
    roles = dict.fromkeys([rule.role, *(branch.role for branch in rule.choice.branches)])
    notes = [f"role {role}" for role in roles if role in ROLES]
    notes += [] if canonical else ["only parsed"]
    return escape(rule.name) + (f" <tspan>{escape(', '.join(notes))}</tspan>" if notes else "")


def _track(railroad: Any, node: Node, grammar: Grammar) -> Any:
    match node:
        case Literal(text=text):
            return railroad.Terminal(str(node)) if text else railroad.Skip()
        case Same(name=name):
            return railroad.NonTerminal(f"the same {name}")
        case Condition(name=name, of_text=of_text):
            return railroad.NonTerminal(f"declared {name}" + " of text" * of_text)
        case Use(name=name):
            return railroad.NonTerminal(name) if name in grammar.rules else _terminal(railroad, name, grammar)
        case Group(parts=parts):
            return railroad.Sequence(*(_track(railroad, part, grammar) for part in parts)) if parts else railroad.Skip()
        case Choice(branches=branches):
            tracks = [_track(railroad, branch.node, grammar) for branch in branches]
            return tracks[0] if len(tracks) == 1 else railroad.Choice(0, *tracks)
        case Loop(node=inner, low=low, high=high):
            body = _track(railroad, inner, grammar)
            if high == 1:
                return railroad.Optional(body)
            count = () if high is None and low < 2 else (railroad.Comment(_times(low, high)),)
            return railroad.OneOrMore(body, *count) if low else railroad.ZeroOrMore(body, *count)
    raise AssertionError(node)


def _terminal(railroad: Any, name: str, grammar: Grammar) -> Any:
    return railroad.Terminal(name, cls="pattern", title="".join(_spelt(name, grammar)))


def _spelt(name: str, grammar: Grammar) -> Iterator[str]:
    terminal = grammar.terminals.get(name)
    for number, pieces in enumerate(() if terminal is None else terminal.pieces):
        yield " | " if number else ""
        yield " ".join(f"/{text}/{flags}" if kind == "re" else text for kind, text, flags in pieces)


def _times(low: int, high: int | None) -> str:
    return f"{low} or more" if high is None else f"{low} to {high}"
