"""Renders a history as one self-contained HTML page: the chart, the counts, the answers; no script."""

from __future__ import annotations

from markupsafe import Markup

from harness.model.verdict import Reading
from harness.render.history import RATES, rate
from harness.render.history_chart import render_history_svg, sparkline
from harness.render.html import fill
from harness.results.history.summary import (
    History,
    at,
    did,
    explained,
    flipping,
    headline,
    seen,
    sentence,
    standing,
)

ROWS = 2000
"""Rows of each table of the page."""


def render_history_html(history: History) -> str:
    """Render the page."""
    context = {
        "history": history,
        "headline": headline(history),
        "chart": Markup(render_history_svg(history)),  # made of escaped text
        "rates": RATES,
        "courses": history.courses(),
        "sparkline": lambda rates: Markup(sparkline(rates)),  # made of numbers
        "rate": rate,
        "readings": list(Reading),
        "rows": ROWS,
        "at": at,
        "did": did,
        "sentence": sentence,
        "explained": explained,
        "standing": standing(history),
        "flipping": flipping(history),
        "seen": seen,
    }
    return fill("history.html.j2", context, "")
