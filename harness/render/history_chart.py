"""Draws pass counts by version and level as one SVG: a bar in each cell with its count, the part that is
not correct hatched."""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from harness.render.text import line
from harness.results.history.recorded import INVALID, Rate
from harness.results.history.runs import HistoryRow
from harness.results.history.summary import History

ROWS = 40
"""Rows drawn of each target, the newest ones."""
_LABEL, _COLUMN, _BAR, _HEIGHT, _TOP = 250, 150, 136, 34, 44
_CHARACTER = 7
"""Pixels of a character at most, on average, in the fonts of the chart."""
_HATCH = (
    '<pattern id="hc-hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<path class="stripe" d="M0 0v6"/></pattern>'
)
_STYLE = """
.hc { color-scheme: light dark;
  --hc-ink: #1f2328; --hc-soft: #57606a; --hc-pass: #2f8f4e; --hc-fail: #b42318; --hc-none: #e9ecf0; --hc-paper: #fff; }
@media (prefers-color-scheme: dark) {
  .hc { --hc-ink: #e4e8ed; --hc-soft: #a3adb8; --hc-pass: #5fc482; --hc-fail: #ff8b80; --hc-none: #272e36; --hc-paper: #0f1318; }
}
.hc text { fill: var(--hc-ink); font: 12px system-ui, "Segoe UI", "Liberation Sans", "DejaVu Sans", sans-serif; }
.hc .soft { fill: var(--hc-soft); }
.hc .bold { font-weight: 600; }
.hc .paper { fill: var(--hc-paper); }
.hc .pass { fill: var(--hc-pass); }
.hc .fail { fill: url(#hc-hatch); stroke: var(--hc-fail); }
.hc .none { fill: var(--hc-none); }
.hc .stripe { stroke: var(--hc-fail); stroke-width: 3; }
"""


def render_history_svg(history: History) -> str:
    """Draw the chart; the same history gives the same bytes."""
    levels = [*history.levels, "all", *([INVALID] * history.has_invalid)]
    column = _column(history, levels)
    width = _LABEL + column * len(levels) + 8
    body = list(_body(history, levels, column))
    height = max([_TOP, *(y for y, _ in body)]) + 40
    title = "Correct results, by version and DirectML feature level"
    heads = "\n".join(
        f'<text class="bold" x="{_LABEL + column * place}" y="34">{escape(line(level, 20))}</text>'
        for place, level in enumerate(levels)
    )
    key = height - 8
    legend = (
        f'<rect class="pass" x="0.5" y="{key - 9}" width="20" height="8"/><text class="soft" x="26" y="{key}">correct</text>'
        f'<rect class="fail" x="90.5" y="{key - 9}" width="20" height="8"/>'
        f'<text class="soft" x="116" y="{key}">not correct, \N{MINUS SIGN} how many</text>'
    )
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return f"""<svg xmlns="http://www.w3.org/2000/svg" class="hc" {size} role="img" aria-label={quoteattr(title)}>
<title>{title}</title>
<style>{_STYLE}</style>
<defs>{_HATCH}</defs>
<rect class="paper" width="{width}" height="{height}"/>
<text class="bold" x="0" y="14">{title}</text>
{heads}
{chr(10).join(text for _, text in body)}
{legend}
</svg>
"""


def _body(history: History, levels: list[str], column: int) -> Iterator[tuple[int, str]]:
    y = _TOP
    for target, rows in history.rows.items():
        y += 18 if y == _TOP else 34
        left_out = f", {len(rows) - ROWS:,} older rows not drawn" if len(rows) > ROWS else ""
        yield y, f'<text class="bold" x="0" y="{y}">{escape(line(target, 60))}{left_out}</text>'
        for row in rows[-ROWS:]:
            y += _HEIGHT
            yield y, _label(row, y)
            for place, level in enumerate(levels):
                yield y, _bar(_rate(row, level), _LABEL + column * place, y)


def _rate(row: HistoryRow, level: str) -> Rate | None:
    return row.total if level == "all" else row.rates.get(level)


def _column(history: History, levels: list[str]) -> int:
    """Return the width of a column: the longest counts must not touch the next one's."""
    drawn = (row for rows in history.rows.values() for row in rows[-ROWS:])
    rates = (_rate(row, level) for row in drawn for level in levels)
    return max([_COLUMN, *(_CHARACTER * len(_words(rate)) + 14 for rate in rates if rate is not None)])


def _words(rate: Rate) -> str:
    lost = rate.judged - rate.correct
    return f"{rate.correct:,} / {rate.judged:,}" + (f" \N{MINUS SIGN} {lost:,}" if lost else "")


def _label(row: HistoryRow, y: int) -> str:
    runs = f", {row.runs:,} runs" if row.runs > 1 else ""
    return (
        f'<text x="0" y="{y - 10}">{escape(line(row.last.version, 34))}</text>'
        f'<text class="soft" x="0" y="{y + 5}">{escape(line(row.first.when, 30))}{runs}</text>'
    )


def _bar(rate: Rate | None, x: int, y: int) -> str:
    """Draw one cell; the incorrect part is at least three pixels wide, and a bar with such a part is never full."""
    if rate is None or not rate.judged:
        return f'<rect class="none" x="{x}" y="{y}" width="{_BAR}" height="3"/><text class="soft" x="{x}" y="{y - 8}">none judged</text>'
    lost = rate.judged - rate.correct
    failing = 0 if not lost else max(3, round(_BAR * lost / rate.judged))
    parts = (
        [f'<rect class="pass" x="{x}" y="{y - 4}" width="{_BAR - failing}" height="9"/>']
        if failing < _BAR
        else []
    )
    if failing:
        parts.append(
            f'<rect class="fail" x="{x + _BAR - failing + 0.5}" y="{y - 3.5}" width="{failing - 1}" height="8"/>'
        )
    parts.append(f'<text x="{x}" y="{y - 10}">{_words(rate)}</text>')
    return "".join(parts)


_WIDE, _TALL = 120, 20


def sparkline(rates: list[Rate]) -> str:
    """Draw rates in the order of runs as one line, from none at the bottom to all at the top; its words say the
    first and the last."""
    step = (_WIDE - 6) / max(1, len(rates) - 1)
    points = [
        (3 + step * place, _TALL - 3 - (_TALL - 6) * rate.correct / rate.judged if rate.judged else _TALL - 3)
        for place, rate in enumerate(rates)
    ]
    words = f"{len(rates)} runs, from {rates[0].correct:,} / {rates[0].judged:,} to {rates[-1].correct:,} / {rates[-1].judged:,}"
    x, y = points[-1]
    return (
        f'<svg class="spark" viewBox="0 0 {_WIDE} {_TALL}" width="{_WIDE}" height="{_TALL}" role="img" aria-label="{words}">'
        f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/><circle cx="{x:.1f}" cy="{y:.1f}" r="2.5"/></svg>'
    )
