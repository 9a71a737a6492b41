"""Figures as SVG in the page: lines, bars and points, with a title, a description and a table of their numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from .html import Html, join, number, table, tag, text

_WIDTH, _HEIGHT = 360, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 12, 26, 36
_ids = count()

#: Lines differ in colour and in dashes, so that they can be distinguished in grey, too.
DASHES = ("", "7 4", "2 3", "9 3 2 3", "12 4", "4 2")


@dataclass(frozen=True)
class Series:
    """A line, or points."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    style: int = 0
    is_dashed: bool | None = None
    points: bool = False
    sizes: Sequence[float] | None = None


@dataclass(frozen=True)
class Axis:
    """What an axis is called and from where to where it goes; None: as far as the numbers."""

    label: str
    low: float | None = None
    high: float | None = None
    whole: bool = False


class _Scale:
    """From numbers to places."""

    def __init__(self, axis: Axis, values: list[float], start: float, end: float) -> None:
        low = axis.low if axis.low is not None else min(values, default=0.0)
        high = axis.high if axis.high is not None else max(values, default=1.0)
        if not low < high:
            margin = 1.0 if axis.whole else abs(low) * 0.1 or 1.0
            low, high = low - margin, high + margin
        elif not axis.whole:
            margin = (high - low) * 0.04
            low = low if axis.low is not None else low - margin
            high = high if axis.high is not None else high + margin
        self.low, self.high, self.start, self.end = low, high, start, end
        self.ticks = _ticks(low, high, axis.whole)

    def __call__(self, value: float) -> float:
        return round(self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start), 2)


def _ticks(low: float, high: float, whole: bool) -> list[float]:
    """About five round numbers from one to the other."""
    rough = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= rough * 0.999)
    step = max(1.0, math.ceil(step)) if whole else step
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [i * step for i in range(first, last + 1)]


def short(value: float) -> str:
    """A number at a tick."""
    if value != 0 and not 1e-3 <= abs(value) < 1e4:
        for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
            if limit <= abs(value) < 1e12:
                return f"{value / limit:g}{unit}"
        return f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")
    return f"{round(value, 6):g}".replace("-", "\N{MINUS SIGN}")


def chart(
    title: str,
    description: str,
    series: list[Series],
    x: Axis,
    y: Axis,
    *,
    diagonal: bool = False,
    note: Any = None,
    numbers: Html | None = None,
) -> Html:
    """Lines and points over two axes."""
    values = [(float(a), float(b)) for s in series for a, b in zip(s.x, s.y)]
    across = _Scale(x, [a for a, _ in values], _LEFT, _WIDTH - _RIGHT)
    up = _Scale(y, [b for _, b in values], _HEIGHT - _BOTTOM, _TOP)
    parts = [_grid(across, up, x, y)]
    if diagonal:
        low, high = max(across.low, up.low), min(across.high, up.high)
        ends = {"x1": across(low), "y1": up(low), "x2": across(high), "y2": up(high)}
        parts.append(tag("line", **ends, class_="diagonal"))
    parts.extend(_points(s, across, up) if s.points else _line(s, across, up) for s in series)
    legend = _legend(series) if len(series) > 1 else None
    return figure(
        title, description, _svg(title, description, parts), legend, note, numbers or _numbers(title, series, x, y)
    )


def bars(title: str, description: str, edges: Sequence[float], heights: Sequence[float], x: Axis, y: Axis) -> Html:
    """A histogram."""
    across = _Scale(x, [float(e) for e in edges], _LEFT, _WIDTH - _RIGHT)
    up = _Scale(Axis(y.label, 0.0), [float(h) for h in heights], _HEIGHT - _BOTTOM, _TOP)
    parts = [_grid(across, up, x, y)]
    for low, high, height in zip(edges, edges[1:], heights):
        left, right, top = across(float(low)), across(float(high)), up(float(height))
        width = max(0.5, right - left - 0.6)
        parts.append(
            tag("rect", x=left, y=top, width=round(width, 2), height=round(up.start - top, 2), class_="bar c0")
        )
    rows = [[f"{number(float(a))} to {number(float(b))}", number(int(h))] for a, b, h in zip(edges, edges[1:], heights)]
    content = table([x.label, y.label], rows, f"Numbers of: {title}")
    return figure(title, description, _svg(title, description, parts), None, None, content)


def ranked(
    title: str, description: str, names: list[Any], values: list[float], numbers: Html, note: Any = None
) -> Html:
    """Bars from the middle to the left and the right, with their names above them."""
    row, left, right = 30, 8, _WIDTH - 8
    height = row * len(names) + 10
    largest = max((abs(v) for v in values), default=1.0) or 1.0
    low = -largest if min(values, default=0) < 0 else 0.0
    high = largest if max(values, default=0) > 0 else 0.0
    middle = left + (right - left) * (0 - low) / ((high - low) or 1)
    parts: list[Html] = []
    for i, (name, value) in enumerate(zip(names, values)):
        top = row * i + 6
        length = abs(value) / ((high - low) or 1) * (right - left)
        shown = _clipped(str(name), 38)
        parts.append(tag("text", shown, x=left, y=top + 8, class_="name"))
        parts.append(tag("text", number(value, 3).replace("-", "\N{MINUS SIGN}"), x=right, y=top + 8, class_="end"))
        start = middle if value >= 0 else middle - length
        kind = "bar c0" if value >= 0 else "bar c1"
        parts.append(tag("line", x1=middle, y1=top + 10, x2=middle, y2=top + 22, class_="axis"))
        parts.append(
            tag("rect", x=round(start, 2), y=top + 12, width=round(max(length, 0.5), 2), height=8, class_=kind)
        )
    return figure(title, description, _svg(title, description, parts, height), None, note, numbers)


def _clipped(words: str, most: int) -> str:
    return words if len(words) <= most else words[: most - 1] + "…"


def figure(
    title: str,
    description: str,
    picture: Html,
    legend: Html | None,
    note: Any,
    numbers: Html | None,
    is_wide: bool = False,
) -> Html:
    """A picture with its caption, and its numbers to be opened. A wide one has all columns of the page."""
    details = tag("details", tag("summary", "Numbers"), numbers) if numbers is not None else None
    caption = tag("figcaption", tag("strong", title), " ", tag("span", description))
    said = tag("p", note, class_="note") if note else None
    return tag("figure", caption, picture, legend, said, details, class_="wide" if is_wide else None)


def _svg(title: str, description: str, parts: list[Html], height: float = _HEIGHT) -> Html:
    own = next(_ids)
    heading = tag("title", title, id=f"t{own}"), tag("desc", description, id=f"d{own}")
    return tag(
        "svg", heading, parts, viewBox=f"0 0 {_WIDTH} {height}", role="img", aria_labelledby=f"t{own} d{own}",
        xmlns="http://www.w3.org/2000/svg",
    )  # fmt: skip


def _grid(across: _Scale, up: _Scale, x: Axis, y: Axis) -> Html:
    parts: list[Html] = [tag("text", y.label, x=4, y=13, class_="label")]
    for tick in up.ticks:
        at = up(tick)
        parts.append(tag("line", x1=_LEFT, y1=at, x2=_WIDTH - _RIGHT, y2=at, class_="grid"))
        parts.append(tag("text", short(tick), x=_LEFT - 6, y=at + 4, class_="end tick"))
    for tick in across.ticks:
        at = across(tick)
        parts.append(tag("line", x1=at, y1=_TOP, x2=at, y2=_HEIGHT - _BOTTOM, class_="grid"))
        parts.append(tag("text", short(tick), x=at, y=_HEIGHT - _BOTTOM + 15, class_="middle tick"))
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(tag("text", x.label, x=middle, y=_HEIGHT - 5, class_="middle label"))
    return join(parts)


def _inside(scale: _Scale, value: float) -> float:
    return scale(min(max(value, scale.low), scale.high))


def _line(series: Series, across: _Scale, up: _Scale) -> Html:
    places = [(_inside(across, float(a)), _inside(up, float(b))) for a, b in zip(series.x, series.y)]
    dash = DASHES[series.style % len(DASHES)] if series.is_dashed is None else ("5 4" if series.is_dashed else "")
    points = " ".join(f"{a},{b}" for a, b in places)
    marks = (
        [tag("circle", cx=a, cy=b, r=2.6, class_=f"dot c{series.style % 6}") for a, b in places]
        if len(places) < 16
        else []
    )
    line = tag("polyline", points=points, class_=f"line c{series.style % 6}", stroke_dasharray=dash or None)
    return join(line, marks)


def _points(series: Series, across: _Scale, up: _Scale) -> Html:
    sizes = series.sizes if series.sizes is not None else [2.2] * len(series.x)
    return join(
        [
            tag(
                "circle",
                cx=_inside(across, float(a)),
                cy=_inside(up, float(b)),
                r=round(size, 2),
                class_=f"point c{series.style % 6}",
            )
            for a, b, size in zip(series.x, series.y, sizes)
        ]
    )


def _legend(series: list[Series]) -> Html:
    entries = []
    for s in series:
        dash = DASHES[s.style % len(DASHES)] if s.is_dashed is None else ("5 4" if s.is_dashed else "")
        line = tag("line", x1=1, y1=5, x2=27, y2=5, class_=f"line c{s.style % 6}", stroke_dasharray=dash or None)
        mark = tag("circle", cx=14, cy=5, r=3, class_=f"point c{s.style % 6}") if s.points else line
        swatch = tag("svg", mark, viewBox="0 0 28 10", class_="swatch", aria_hidden="true")
        entries.append(tag("li", swatch, tag("bdi", s.name)))
    return tag("ul", entries, class_="legend")


def _numbers(title: str, series: list[Series], x: Axis, y: Axis, most: int = 25) -> Html:
    rows: list[list[Any]] = []
    for s in series:
        places = range(len(s.x))
        if len(places) > most:
            places = sorted({round(i * (len(places) - 1) / (most - 1)) for i in range(most)})
        rows.extend([s.name, number(float(s.x[i])), number(float(s.y[i]))] for i in places)
    return table([text("line"), x.label, y.label], rows, f"Numbers of: {title}")
