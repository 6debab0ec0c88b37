"""Renders the report as one self-contained HTML page: tables as markup, single cases as compressed data that
the page decodes.

The page loads nothing, or slices of a long run beside it (`page_cases`), and runs only its own module. Only the
template makes markup: every text passes through Jinja2's autoescape, and the module sets whatever it shows as text.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemBytecodeCache, FunctionLoader, StrictUndefined
from markupsafe import Markup

from harness.model.cache_folder import cache_folder
from harness.model.case import BEYOND
from harness.model.facets import written
from harness.model.reference.feature_levels import level_key
from harness.model.target_info import TargetInfo
from harness.model.verdict import DEFECTS, Reading, Verdict
from harness.render.markup import host
from harness.render.page_cases import WHOLE, PageCases, Slices
from harness.render.payload import COUNTED
from harness.render.report_counts import ABOUT_KERNELS
from harness.render.terminal import details
from harness.render.text import folded_types, line, ranks, visible, whole
from harness.render.trend import trend_svg
from harness.results.bound_ratios import ratio_text, ulp_text
from harness.results.counted import count
from harness.results.cross_check import CrossCheck, Suspect
from harness.results.defects import defect_words
from harness.results.explain.in_common import in_common, rules
from harness.results.explain.words import inseparable
from harness.results.history.runs import Trend
from harness.results.known_deviations import PENDING
from harness.results.level_table import (
    MARKS,
    STATUS_WORDS,
    LevelRow,
    levels,
    many,
    rate,
    status,
    validity_table,
)
from harness.results.reading_rows import BESIDE, EXPLANATIONS
from harness.results.report import Report
from harness.results.runfile import RunReader
from harness.results.summary import target_facts
from harness.results.tables import Tables
from harness.results.tally import Tally
from harness.results.tensor_support import FLOOR, Status

GROUPS = 300
_MODULE = ("data.js", "query.js", "elements.js", "cases.js", "operators.js", "case.js", "start.js")
"""The parts of the page's module, in their order."""
_FOLDED_FACTS = ("DirectML.dll sha256", "plugin sha256", "device dtypes", "device metadata")


def render_html(run: Path, trends: Sequence[Trend] = ()) -> str:
    """Render the run file at `run`, or the one in that folder, with the tensors of failing cases that lie
    beside it and with what its targets' numbers were in earlier runs. Errors: UsageError."""
    report, cases = read_page(run)
    report.trends = trends
    return page(report, cases, {})


def read_page(run: Path) -> tuple[Report, PageCases]:
    """Read a run once, for every report that is made of it. Errors: UsageError."""
    reader = RunReader(run)
    tables = Tables(reader.header)
    cases = PageCases(reader)
    count(reader, tables, cases.add, singly=WHOLE)
    return Report(tables, in_common(run, tables)), cases


def page(report: Report, cases: PageCases, slices: Slices) -> str:
    """Fill the template; the page loads further results from `slices`."""
    context = {"about_cases": cases.about(slices), "slices": slices}
    return fill("report.html.j2", _context(report) | context, cases.encode(report.tables, slices))


def fill(template: str, context: dict[str, Any], data: str) -> str:
    """Make a self-contained page of a template, with `Payload`'s data and the look and module that all pages
    share."""
    made = environment().get_template(template)
    script = "\n".join(map(asset, _MODULE))
    return made.render(context, data=Markup(data), css=Markup(asset("report.css")), script=Markup(script))


_HEADING = re.compile(r'<section id="([\w-]+)"[^>]*>\s*<h2 [^>]*?(?:data-short="([^"]*)")?>(.*?)</h2>')


def headings(parts: str) -> list[tuple[str, Markup]]:
    """Return id and heading of each section of a page, or its short form, for the navigation."""
    return [(name, Markup(short or title)) for name, short, title in _HEADING.findall(parts)]


def breakable(name: str) -> Markup:
    """Let a name break before its capitals and behind its dots alone."""
    return Markup("<wbr>").join(re.split(r"(?<=[a-z.])(?=[A-Z])", name))


def bar(tally: Tally) -> str:
    """Write where the three parts of a cell's bar end: correct, wrong with crashed and accepted, not supported. The
    smallest part that is wrong takes two percent."""
    correct = 100 * tally.correct // tally.selected
    wrong = min(100, correct + max(2, 100 * tally.defects // tally.selected)) if tally.defects else correct
    lacking = min(100, wrong + -(-100 * tally[Reading.NOT_SUPPORTED] // tally.selected))
    return f"--r:{correct}%;--w:{wrong}%;--n:{lacking}%"


def better(tally: Tally) -> int:
    """Return how many results improved on the baseline."""
    return tally.verdicts[Verdict.IMPROVEMENT]


def asset(name: str) -> str:
    """Return a template, a style sheet or a script that pages share."""
    return files("harness.render").joinpath("assets").joinpath(name).read_text(encoding="utf-8")


def _compiled_templates() -> FileSystemBytecodeCache | None:
    """Return where compiled templates are kept, since compiling takes longer than filling them; None where nothing
    can be written."""
    folder = cache_folder("templates") / version("jinja2")
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return FileSystemBytecodeCache(str(folder)) if os.access(folder, os.W_OK) else None


@cache
def environment() -> Environment:
    """Return what fills templates; every text passes through its autoescape."""
    made = Environment(
        loader=FunctionLoader(asset),
        bytecode_cache=_compiled_templates(),
        optimized=False,  # what is compiled follows from the template alone, not from the filters' results
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=False,
        keep_trailing_newline=True,
        newline_sequence="\n",
    )
    made.filters.update(
        host=host,
        breakable=breakable,
        shown=visible,
        line=lambda text: line(text, 1000),
        number=lambda number: f"{number:,}",
        ranks=ranks,
        written=written,
        whole=whole,
    )
    made.globals.update(
        {
            function.__name__: function
            for function in (
                status,
                rate,
                query,
                levels_within,
                details,
                rules,
                inseparable,
                anchor,
                ratio_text,
                ulp_text,
                headings,
                bar,
                better,
                folded_types,
                defect_words,
                trend_svg,
            )
        },
        marks=MARKS,
        words=STATUS_WORDS,
    )
    return made


def levels_within(row: LevelRow) -> str:
    """Name the levels that a row's device allows, as a filter does."""
    most = level_key(row.device_level or BEYOND)
    return ",".join(level for level in row.by_level if level != BEYOND and level_key(level) <= most)


def query(**terms: object) -> str:
    """Write a filter as a URL fragment; empty terms are left out."""
    return "&".join(f"{name}={quote(str(value), safe='')}" for name, value in terms.items() if value != "")


def anchor(operator: str, *, plain: bool = False) -> str:
    """Name the part of the page that shows an operator's matrices: `plain` as an id, otherwise as a URL fragment."""
    name = f"of-{visible(operator)}"
    return name if plain else quote(name, safe="")


def fact_rows(infos: Sequence[TargetInfo]) -> list[tuple[str, list[str]]]:
    """Return the facts about some targets by name, each with the value of every target."""
    found = [dict(target_facts(info)) for info in infos]
    names = dict.fromkeys(name for facts in found for name in facts)
    reasons = [info.unavailable or "" for info in infos]
    rows = [(name, [facts.get(name, "") for facts in found]) for name in names]
    return ([("not available", reasons)] if any(reasons) else []) + rows


def _context(report: Report) -> dict[str, Any]:
    tables = report.tables
    header = tables.header
    groups = tables.differences.groups()
    counted = [
        {"name": target, "tally": tables.tally(target=target), "link": query(target=target), "all": False}
        for target in tables.targets
    ]
    if len(counted) > 1:
        counted.append({"name": "all", "tally": tables.tally(), "link": "target=", "all": True})
    return {
        "report": report,
        "tables": tables,
        "defects_shown": report.defects[:GROUPS],
        "about_kernels": ABOUT_KERNELS,
        "explanations": EXPLANATIONS,
        "counted_only": COUNTED,
        "header": header,
        "folded_facts": _FOLDED_FACTS,
        "several": len(tables.operators) > 1,
        "defect_readings": DEFECTS,
        "groups": tables.unexpected.groups()[:GROUPS],
        "left_out": sorted(tables.left_out.items(), key=lambda item: (-item[1], item[0])),
        "operators": [visible(operator) for operator in tables.operators],
        "targets": [{"name": target} for target in tables.targets],
        "counted": counted,
        "beside": counted if len(tables.targets) <= BESIDE else counted[-1:],
        "levels": levels(tables),
        "validity_rows": validity_table(tables),
        "many": many(tables),
        "nearness": tables.nearnesses.rows(tables.targets),
        "nothing_ran": [target for target in tables.targets if not tables.tally(target=target).run],
        "disagreeing": [row for row in report.support if row.disagreements],
        "differences": groups,
        "differences_shown": groups[:GROUPS],
        "differing": sum(group.number for group in groups),
        **_directml(tables),
        "deviations": tables.deviations.rows(pending=False),
        "not_reviewed": tables.deviations.rows(pending=True),
        "about_deviations": tables.deviations.remarks(report.known),
        "about_pending": PENDING,
        "facts": fact_rows(list(header.targets.values())),
        "duration": f"{tables.end.seconds:,.1f} s" if tables.end else "",
    }


def _directml(tables: Tables) -> dict[str, Any]:
    """What the parts on DirectML's own API show; empty where no target is that."""
    support = tables.tensor_support
    found = {target: support.cells(target) for target in support.targets}
    rows: dict[tuple[str, str, str], Counter[Status]] = {}
    for target, cells in found.items():
        for cell in cells:
            rows.setdefault((cell.key.operator, cell.key.tensor, target), Counter())[cell.status] += 1
    cross_check = tables.cross_check or CrossCheck(tables.header)
    agreements = [each for each in cross_check.groups() if each.agreement.points is not Suspect.NOWHERE]
    return {
        "floor": FLOOR,
        "cell_statuses": list(Status),
        "cells": [
            {
                "operator": operator,
                "tensor": tensor,
                "target": target,
                "level": support.level(target),
                "counts": counts,
            }
            for (operator, tensor, target), counts in sorted(rows.items(), key=lambda row: row[0][:2])
        ],
        "odd_cells": [
            (target, cell)
            for target, cells in found.items()
            for cell in cells
            if cell.status in (Status.REJECTED, Status.ACCEPTED)
        ],
        "cross_checked": cross_check.pair or ("", ""),
        "compared": cross_check.compared,
        "agreements": agreements,
    }
