"""Line charts as SVG text: no library, light and dark pages alike.

In: series of points. Out: one SVG. Both axes may be logarithmic. A value of None breaks the line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

__all__ = ["Chart", "Series"]

_COLOURS = ("#0969da", "#cf222e", "#1a7f37", "#8250df", "#9a6700", "#57606a")
_WIDTH, _HEIGHT = 860, 380
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 20, 64, 48


@dataclass(frozen=True)
class Series:
    name: str
    points: Sequence[tuple[float, float | None]]
    dots: bool = False


@dataclass
class Chart:
    """`bands`: (from, to, label), shaded stretches of the x axis."""

    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    log_x: bool = False
    log_y: bool = True
    bands: Sequence[tuple[float, float, str]] = field(default_factory=tuple)

    def svg(self) -> str:
        xs = [x for series in self.series for x, _ in series.points]
        ys = [y for series in self.series for _, y in series.points if y is not None and (y > 0 or not self.log_y)]
        across = _Scale(min(xs), max(xs), _LEFT, _WIDTH - _RIGHT, log=self.log_x)
        up = _Scale(min(ys) if self.log_y else 0, max(ys) * 1.15, _HEIGHT - _BOTTOM, _TOP, log=self.log_y)
        size = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" font-size="12"'
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(self.title, quote=True)}">',
            f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
            f'<text x="{_LEFT}" y="20" font-size="15" fill="#1f2328">{escape(self.title)}</text>',
        ]
        parts += self._bands(across)
        parts += self._axes(across, up)
        for number, series in enumerate(self.series):
            parts += _line(series, across, up, _COLOURS[number % len(_COLOURS)], self.log_y)
        parts += self._legend()
        return "\n".join([*parts, "</svg>"]) + "\n"

    def _bands(self, across: _Scale) -> list[str]:
        out, named = [], set[str]()
        for low, high, label in self.bands:
            left, right = across(low), across(high)
            size = f'width="{max(right - left, 1):.1f}" height="{_HEIGHT - _TOP - _BOTTOM}"'
            out.append(f'<rect x="{left:.1f}" y="{_TOP}" {size} fill="#eef2f7"/>')
            if label not in named and right - left > 7 * len(label):
                named.add(label)
                place = f'x="{left + 3:.1f}" y="{_TOP + 13}"'
                out.append(f'<text {place} fill="#57606a" font-size="11">{escape(label)}</text>')
        return out

    def _axes(self, across: _Scale, up: _Scale) -> list[str]:
        out = []
        for value in up.ticks():
            y = up(value)
            out.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#d8dee4"/>')
            out.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" fill="#57606a">{value:g}</text>')
        for value in across.ticks():
            x = across(value)
            out.append(
                f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 16}" text-anchor="middle" fill="#57606a">{value:g}</text>'
            )
        middle = (_LEFT + _WIDTH - _RIGHT) / 2
        out.append(
            f'<text x="{middle}" y="{_HEIGHT - 10}" text-anchor="middle" fill="#1f2328">{escape(self.x_label)}</text>'
        )
        out.append(
            f'<text transform="translate(16 {(_TOP + _HEIGHT - _BOTTOM) / 2}) rotate(-90)" text-anchor="middle" '
            f'fill="#1f2328">{escape(self.y_label)}</text>'
        )
        return out

    def _legend(self) -> list[str]:
        out, x = [], float(_LEFT)
        for number, series in enumerate(self.series):
            colour = _COLOURS[number % len(_COLOURS)]
            out.append(f'<rect x="{x:.0f}" y="34" width="14" height="4" fill="{colour}"/>')
            out.append(f'<text x="{x + 19:.0f}" y="40" fill="#1f2328">{escape(series.name)}</text>')
            x += 36 + 6.6 * len(series.name)
        return out


class _Scale:
    def __init__(self, low: float, high: float, start: float, end: float, *, log: bool) -> None:
        self.low, self.high, self.start, self.end, self.log = low, max(high, low * 1.001 + 1e-9), start, end, log

    def __call__(self, value: float) -> float:
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        if self.log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            steps = (1, 2, 5) if last - first < 4 else (1,)
            found = [step * 10.0**power for power in range(first, last + 1) for step in steps]
            return [value for value in found if self.low <= value <= self.high]
        rough = (self.high - self.low) / 6
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(step * power for step in (1, 2, 5, 10) if step * power >= rough)
        return [step * at for at in range(math.ceil(self.low / step), int(self.high / step) + 1)]


def _line(series: Series, across: _Scale, up: _Scale, colour: str, log: bool) -> list[str]:
    runs: list[list[str]] = [[]]
    dots = []
    for x, y in series.points:
        if y is None or (log and y <= 0):
            runs.append([])
            continue
        runs[-1].append(f"{across(x):.1f},{up(y):.1f}")
        if series.dots:
            dots.append(f'<circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="3.2" fill="{colour}"/>')
    lines = [
        f'<polyline points="{" ".join(run)}" fill="none" stroke="{colour}" stroke-width="1.8"/>' for run in runs if run
    ]
    return lines + dots
