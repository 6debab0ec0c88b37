"""Ends a run: the terminal summary, `report.md`, `report.html` and the columns of a long run beside its run file, the job
summary."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from harness.commands.error_line import nowhere
from harness.commands.report import write_report, write_reports
from harness.model.errors import UsageError
from harness.render.console import Console
from harness.render.html import read_page
from harness.render.report import render_markdown
from harness.render.terminal import render_terminal
from harness.results import columns
from harness.results.counted import LONG
from harness.results.guidance import next_steps
from harness.results.summary import lacks
from harness.specs.reading.load import are_own


def finish(path: Path) -> None:
    """Render what every run ends with; a report that cannot be written is one line, the results stay."""
    long = path.stat().st_size >= LONG
    if long:
        click.echo("writing reports", err=True)
    also = "report.md  report.html"
    if long and not lacks(path):
        try:
            write_report(path, "parquet", path.with_name(f"run{columns.SUFFIX}"))
            also = f"run{columns.SUFFIX}  {also}"
        except UsageError as error:
            click.echo(f"harness: {error}", err=True)
    report, cases = read_page(path)
    try:
        write_reports(report, cases, path.parent)
    except UsageError as error:
        click.echo(f"harness: {error}", err=True)
    job_summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if job_summary:
        try:
            with open(job_summary, "a", encoding="utf-8") as file:
                file.write(render_markdown(report))
        except OSError as error:
            click.echo(f"harness: {job_summary}: cannot be written: {error.strerror}", err=True)
    try:
        render_terminal(report, Console())
        click.echo(f"\n{path}  {also}")
        if report.summary.tone == "bad":
            asked = report.tables.header.selection
            own = asked is None or are_own(asked.specs)
            for step in next_steps(report.tables, str(path.parent), own_specs=own):
                click.echo(f"{step.what}:\n  {step.command}")
        sys.stdout.flush()
    except (
        BrokenPipeError
    ):  # `harness run | head`: the reader has seen enough, the exit code still says how the run ended
        nowhere(sys.stdout)
