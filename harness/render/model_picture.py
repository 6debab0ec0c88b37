"""Draws a model: its graph with nodes coloured by what became of them, as a strip where it is large, and the
difference from the CPU along the depth."""

from __future__ import annotations

from collections.abc import Iterator
from math import log10
from xml.sax.saxutils import escape, quoteattr

from harness.render.text import line, node_name
from harness.results.model_report import ModelView

_MOST = 300
"""Nodes that are drawn as a graph; of more a strip is."""
_WIDE, _TALL, _GAP = 132, 22, 14
_COLUMNS = 60
_COLOURS = {
    "correct": "#2f8f4e", "wrong": "#b42318", "crashed": "#7a0012", "accepted": "#b7791f", "not supported": "#d08700",
    "not judged": "#8a94a0", "compared": "#3b82c4",
}  # fmt: skip
_STYLE = """.mg text { font: 11px system-ui, sans-serif; fill: #fff; }
.mg .key { fill: currentColor; } .mg path { fill: none; stroke: #8a94a0; }"""


def draw_graph(view: ModelView) -> str:
    """Return the graph as an SVG made of escaped text."""
    shapes, width, height = _strip(view) if len(view.report.nodes) > _MOST else _layers(view)
    legend = "".join(
        f'<rect x="{8 + 110 * n}" y="{height + 8}" width="12" height="12" fill="{colour}"/>'
        f'<text class="key" x="{24 + 110 * n}" y="{height + 18}">{name}</text>'
        for n, (name, colour) in enumerate(_COLOURS.items())
    )
    return _svg(
        "The graph, each node coloured by the worst result on any target",
        shapes + legend,
        max(width, 800),
        height + 28,
    )


def _box(view: ModelView, number: int, x: int, y: int, width: int, height: int, text: str = "") -> str:
    node = view.report.nodes[number]
    row = view.report.calls[node.call]
    verdict = view.worst(node.call)
    said = f"{node_name(node.name)}: {row.text}: {verdict}"
    return (
        f'<g><title>{escape(line(said, 300))}</title><rect x="{x}" y="{y}" width="{width}" height="{height}" rx="2" '
        f'fill="{_COLOURS[verdict]}"/>{text}</g>'
    )


def _strip(view: ModelView) -> tuple[str, int, int]:
    side = 12
    shapes = "".join(
        _box(view, n, 4 + n % _COLUMNS * (side + 2), 4 + n // _COLUMNS * (side + 2), side, side)
        for n in range(len(view.report.nodes))
    )
    return shapes, _COLUMNS * (side + 2) + 8, (len(view.report.nodes) // _COLUMNS + 1) * (side + 2) + 8


def _layers(view: ModelView) -> tuple[str, int, int]:
    depth: list[int] = []
    places: list[tuple[int, int]] = []
    filled: dict[int, int] = {}
    for node in view.report.nodes:
        level = 1 + max((depth[source] for source in node.after), default=-1)
        depth.append(level)
        column = filled[level] = filled.get(level, -1) + 1
        places.append((8 + column * (_WIDE + _GAP), 8 + level * (_TALL + _GAP)))
    edges = "".join(
        f'<path d="M{places[source][0] + _WIDE // 2} {places[source][1] + _TALL}L{x + _WIDE // 2} {y}"/>'
        for node, (x, y) in zip(view.report.nodes, places, strict=True)
        for source in node.after
    )
    boxes = "".join(
        _box(
            view, n, x, y, _WIDE, _TALL,
            f'<text x="{x + 6}" y="{y + 15}">{escape(line(view.report.calls[node.call].operator.rpartition(".")[2], 20))}</text>',
        )
        for n, (node, (x, y)) in enumerate(zip(view.report.nodes, places, strict=True))
    )  # fmt: skip
    width = max(x for x, _ in places) + _WIDE + 8
    return edges + boxes, width, max(y for _, y in places) + _TALL + 8


def draw_growth(view: ModelView) -> str:
    """Return the differences by node, on a logarithmic axis from 1e-9 to 1."""
    width, height = 800, 220
    shapes = "".join(
        f'<path d="M40 {_y(10.0**power):.1f}H{width}" stroke-dasharray="2 4"/>'
        f'<text class="key" x="4" y="{_y(10.0**power) + 4:.1f}">1e{power}</text>'
        for power in range(-9, 1, 3)
    )
    for number, (target, errors) in enumerate(view.report.growth.items()):
        colour = list(_COLOURS.values())[(number * 3 + 1) % len(_COLOURS)]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in _points(errors, width))
        shapes += f'<polyline points="{points}" fill="none" stroke="{colour}"/>'
        shapes += f'<text class="key" x="{44 + 160 * number}" y="{height - 4}" style="fill:{colour}">{escape(line(target, 30))}</text>'
    return _svg("Difference of each node's outputs from the CPU's, by node", shapes, width, height)


def _points(errors: tuple[float | None, ...], width: int) -> Iterator[tuple[float, float]]:
    for number, error in enumerate(errors):
        if error is not None:
            yield 40 + number * (width - 40) / max(1, len(errors) - 1), _y(error)


def _y(error: float) -> float:
    return 10 + 18.0 * min(10.0, max(0.0, -log10(max(error, 1e-10))))


def _svg(title: str, body: str, width: int, height: int) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="mg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label={quoteattr(title)}><style>{_STYLE}</style>{body}</svg>'
    )
