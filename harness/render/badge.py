"""A badge for a README: whether anything is unexpected in a run, as SVG with the numbers of the six readings in its
title, or as JSON for the endpoint badge of shields.io."""

from __future__ import annotations

import json
from xml.sax.saxutils import escape

from harness.results.report import Report

_COLOURS = {"good": "#1a7f37", "bad": "#b42318", "warn": "#8a5a00"}
_SHIELDS = {"good": "brightgreen", "bad": "red", "warn": "yellow"}
_LABEL = "ONNX Runtime conformance"


def _width(text: str) -> int:
    """Estimate the width of 11 px sans-serif text."""
    return round(sum(4 if c in " .,:/il1jt()" else 9 if c in "mwMW" else 6.6 for c in text)) + 14


def _value(report: Report) -> str:
    """Say in words what the colour says."""
    tables = report.tables
    total = tables.tally()
    if not total.run:
        return "nothing ran"
    head = {
        "good": "nothing unexpected",
        "warn": "incomplete or changed",
        "bad": f"{total.unexpected:,} unexpected",
    }[report.summary.tone]
    return f"{head} in {tables.selected:,} results"


def _numbers(report: Report) -> str:
    return ", ".join(f"{row.number:,} {row.reading.value}" for row in report.readings)


def render_endpoint(report: Report) -> str:
    """Write the badge as shields.io reads it: https://shields.io/badges/endpoint-badge."""
    badge = {
        "schemaVersion": 1,
        "label": _LABEL,
        "message": _value(report),
        "color": _SHIELDS[report.summary.tone],
        "isError": report.summary.tone == "bad",
    }
    return json.dumps(badge, ensure_ascii=False, indent=2) + "\n"


def render_badge(report: Report) -> str:
    """Draw the badge; its words say what its colour says."""
    summary = report.summary
    value = _value(report)
    left, right = _width(_LABEL), _width(value)
    title = escape(f"{_LABEL}: {value}: {_numbers(report)}")
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" aria-label="{title}">
<title>{title}</title>
<clipPath id="r"><rect width="{left + right}" height="20" rx="3"/></clipPath>
<g clip-path="url(#r)"><path fill="#3d444d" d="M0 0h{left}v20H0z"/>
<path fill="{_COLOURS[summary.tone]}" d="M{left} 0h{right}v20H{left}z"/></g>
<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,Geneva,sans-serif" font-size="11">
<text x="{left / 2:g}" y="14" textLength="{left - 12}">{escape(_LABEL)}</text>
<text x="{left + right / 2:g}" y="14" textLength="{right - 12}">{escape(value)}</text></g>
</svg>
"""
