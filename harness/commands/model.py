"""`harness model`: takes ONNX models apart and says which of their nodes, and which levels of optimisation, are wrong
on which target."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections import Counter
from pathlib import Path

import click

from harness.commands.error_line import fail
from harness.commands.options import (
    BASELINE,
    EXPECTATIONS,
    NamedPath,
    command_line,
    flag,
    folder_option,
    jobs_option,
    seed_option,
    targets_option,
    timeout_option,
)
from harness.commands.report import write_reports, write_whole
from harness.model.errors import UsageError, shown
from harness.model.progress import Progress

_DIMENSION = re.compile(r"(.+)=([0-9]{1,9})")


@click.command("model")
@click.argument("models", nargs=-1, required=True, type=NamedPath(), metavar="MODEL...")
@targets_option("As for `harness run`; repeatable (default: cpu, and dml and directml if available).")
@click.option(
    "--data",
    type=NamedPath(),
    metavar="FILE",
    help="Inputs: an .npz file, or a folder with input_0.pb, input_1.pb … (default: drawn).",
)
@click.option(
    "--dim",
    "dims",
    multiple=True,
    metavar="NAME=N",
    help="Size of a free dimension (default: 2 or 3, or one that runs); repeatable.",
)
@seed_option("Seed of the inputs that are drawn.")
@click.option(
    "--cases",
    type=NamedPath(),
    metavar="DIR",
    help="Write the distinct calls as specs into DIR, and run nothing.",
)
@BASELINE
@EXPECTATIONS
@jobs_option("Worker processes per target.")
@timeout_option("Time limit of a call, and of each part of the recorded run, in seconds.", 60.0)
@flag("--resume", help="Continue the run in -o.")
@flag("--force", help="Replace the run that -o holds, or the specs in --cases.")
@folder_option("Folder of the run (default: reports/<run id>).")
def model_command(
    models: tuple[Path, ...],
    targets: tuple[str, ...],
    data: Path | None,
    dims: tuple[str, ...],
    seed: int,
    cases: Path | None,
    baseline: Path | None,
    expectations: tuple[Path, ...],
    jobs: int | None,
    timeout: float,
    resume: bool,
    force: bool,
    output: Path | None,
) -> None:
    """Say which nodes of ONNX models are wrong on targets, what falls back, and which level of optimisation is wrong.

    One run without optimisation on the CPU records every tensor. Each distinct call of an operator is judged by the
    oracle with these tensors, on each target; then each target runs the models whole. DIR gets model.html, model.md,
    model.json, and the run with its specs.

    Exit codes are those of `harness run`; 1 as well if a whole model is wrong at a level of optimisation.
    """
    from harness import api
    from harness.render.console import Console
    from harness.render.document_html import write_html
    from harness.render.document_markdown import write_markdown
    from harness.render.document_terminal import write_terminal
    from harness.render.html import read_page
    from harness.render.model import model_data, model_document
    from harness.results.runfile import run_file
    from harness.results.summary import count
    from harness.run.models import ModelInput, examine, take_apart

    sizes = [_dimension(text) for text in dims]
    if twice := [name for name, number in Counter(name for name, _ in sizes).items() if number > 1]:
        raise UsageError(f"--dim {shown(twice[0])} is given twice; leave one out")
    given = ModelInput(data, dict(sizes), seed)
    if data is not None and len(models) > 1:
        raise UsageError("--data gives the inputs of one model; name one")
    if data is not None and dims:
        raise UsageError(
            "--dim sizes inputs that are drawn, and --data gives those of its own; leave one out"
        )
    of_a_run = {
        "-o": output, "--baseline": baseline, "--resume": resume, "-t": targets, "--expectations": expectations, "-j": jobs,
    }  # fmt: skip
    if cases is not None and (given_too := [name for name, value in of_a_run.items() if value]):
        raise UsageError(f"--cases runs nothing, and {given_too[0]} is about a run; leave one out")
    if cases is not None and not force and any(cases.glob("*.yaml")):
        raise UsageError(f"{cases}: holds specs already; --force replaces them")
    with Progress(baseline=baseline is not None) as progress:
        if cases is not None:
            found = take_apart(models, given, cases, progress.update, timeout)
            if nothing := found.without_a_formula():
                raise nothing
        else:
            command = command_line()
            asked = api.request(
                targets, output=output, expectations=expectations, jobs=jobs, timeout=timeout, seed=seed, baseline=baseline,
                resume=resume, force=force, command=command, progress=progress.update,
            )  # fmt: skip
            try:
                view, code = examine(models, given, asked)
            except KeyboardInterrupt:
                if not run_file(asked.out).is_file():
                    fail("interrupted before a call ran: repeat the command", 130)
                command += "" if resume else " --resume"
                command += "" if output else f" -o {shlex.quote(str(asked.out))}"
                fail(f"interrupted; continue with: {command}", 130)
    if cases is not None:
        for line in found.ended:
            click.echo(f"harness: {line}", err=True)
        judged = sum(call.case is not None for call in found.calls)
        click.echo(
            f"{count(len(found.nodes), 'node')}, {count(len(found.calls), 'distinct call')}, {judged:,} written to {cases}"
        )
        sys.exit(int(bool(found.ended)))
    document = model_document(view)
    write_whole(asked.out / "model.md", [write_markdown(document)])
    write_whole(asked.out / "model.html", [write_html(document)])
    write_whole(asked.out / "model.json", [json.dumps(model_data(view), indent=1) + "\n"])
    write_reports(*read_page(asked.out), asked.out)
    write_terminal(document, Console())
    click.echo(f"\n{asked.out}/model.html  model.md  model.json  report.html  run.jsonl")
    sys.exit(code)


def _dimension(text: str) -> tuple[str, int]:
    found = _DIMENSION.fullmatch(text)
    if found is None:
        raise UsageError(f"--dim {shown(text)}: write NAME=N, for example batch=2")
    return found[1], int(found[2])
