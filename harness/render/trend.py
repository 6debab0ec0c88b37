"""Draws a trend as a line of the size of a few words, and a target's numbers as a badge, both as SVG."""

from __future__ import annotations

from html import escape

from markupsafe import Markup

from harness.render.text import line
from harness.results.history.runs import Trend
from harness.results.tally import Tally

_WIDTH, _HEIGHT, _EDGE = 260, 44, 6
_CHARACTER = 7
"""Pixels of a character of a badge at most, on average."""


def trend_svg(trend: Trend) -> Markup:
    """Draw a line from the first point to the last; each point has its value as a title."""
    values = [value for _, value in trend.points]
    low, high = min(values), max(values)
    step = (_WIDTH - 2 * _EDGE) / (len(values) - 1)
    places = [
        (_EDGE + number * step, _HEIGHT / 2 if high == low else _HEIGHT - _EDGE - (value - low) / (high - low) * (_HEIGHT - 2 * _EDGE))
        for number, value in enumerate(values)
    ]  # fmt: skip
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    marks = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"><title>{escape(line(name, 100))}: {value:,}</title></circle>'
        for (x, y), (name, value) in zip(places, trend.points, strict=True)
    )
    (first, then), (last, now) = trend.points[0], trend.points[-1]
    said = escape(line(f"{trend.what}: {then:,} in {first}, {now:,} in {last}", 300))
    return Markup(
        f'<svg class="trend" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{said}">'
        f'<polyline points="{path}"/>{marks}</svg>'
    )


def badge_svg(name: str, tally: Tally) -> str:
    """Draw the badge of a target: its name, and how many results are wrong or unexpected."""
    if tally.unexpected:
        said, colour = f"{tally.unexpected:,} unexpected", "#b42318"
    elif not tally.run:
        said, colour = "not run", "#57606a"
    else:
        said, colour = f"{tally.defects:,} wrong, all known" if tally.defects else "none wrong", "#1f7a3d"
    name = line(name, 60)
    left, right = (_CHARACTER * len(text) + 12 for text in (name, said))
    title = escape(f"{name}: {said}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" aria-label="{title}"><title>{title}</title>'
        f'<rect width="{left}" height="20" fill="#3a414a"/><rect x="{left}" width="{right}" height="20" fill="{colour}"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">'
        f'<text x="{left / 2}" y="14">{escape(name)}</text><text x="{left + right / 2}" y="14">{escape(said)}</text></g></svg>\n'
    )
