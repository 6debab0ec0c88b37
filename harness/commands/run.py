"""`harness run`: runs specs on targets, compares with the oracle, writes run file and reports."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from harness.commands.error_line import fail
from harness.commands.options import (
    BASELINE,
    EXPECTATIONS,
    QUERIES,
    SPECS,
    command_line,
    flag,
    folder_option,
    jobs_option,
    seed_option,
    targets_option,
    timeout_option,
)
from harness.model.errors import HarnessFault, NodesLost, UsageError, shown
from harness.model.progress import Progress

if TYPE_CHECKING:
    from harness.run.request import Request


@click.command()
@SPECS
@targets_option(
    "cpu, dml, cpu@ort-1.22.1 …; repeatable; `harness targets` lists them (default: cpu, and dml and directml if available)."
)
@QUERIES
@click.option("--shard", metavar="I/N", help="Run the I-th of N parts.")
@jobs_option(
    "Worker processes per target (default: the number of processors; with --cluster 1 on each node)."
)
@click.option(
    "--cluster",
    metavar="ADDRESS",
    help="Run on the nodes of a Dask cluster: tls:// or tcp://HOST:PORT of its scheduler, or local:N for N processes here.",
)
@timeout_option("Time limit of a case in seconds.")
@click.option(
    "--select",
    type=click.Choice(["default", "all", "pairwise", "thorough"]),
    default="default",
    show_default=True,
    help="Cases of a sweep: as the spec says, all, few that cover every pair of values, or triples where it covers pairs.",
)
@seed_option("Seed of the random inputs; the cases stay the same.")
@BASELINE
@EXPECTATIONS
@click.option(
    "--rerun-unexpected",
    "reruns",
    type=click.IntRange(0, 1000),
    default=0,
    metavar="N",
    help="Repeat unexpected results N times to find flakes.",
)
@flag("--no-cache", help="Make and judge every case anew, whatever earlier runs kept; plans are still used.")
@flag("--resume", help="Continue the run in -o (default: reports/latest) with its own options.")
@flag("--force", help="Replace the run that -o holds.")
@click.option(
    "--min-cases",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Exit with 4 if fewer cases are selected.",
)
@folder_option("Folder of the run (default: reports/<run id>).")
def run(*, shard: str | None, resume: bool, **options: Any) -> None:
    """Run specs on targets, compare with the oracle, write run file and reports.

    SPEC is a spec file or a folder of them (default: the harness's own).

    Exit code 0: as expected; 1: unexpected results; 2: wrong usage or spec; 3: a target is not available, or where
    cases ran is not proven; 4: nothing ran, or fewer cases than --min-cases; 5: a fault in the harness, or a full
    disk; 130: interrupted with Ctrl-C.
    """
    from harness import api
    from harness.commands.finish import finish
    from harness.run.resume import continued

    request = api.request(shard=_shard(shard), resume=resume, command=command_line(), **options)
    if resume:
        request = continued(request, _given())
    if request.targets_left_out:
        names = " and ".join(request.targets_left_out)
        click.echo(
            f"harness: cpu alone, without {names}: {next(iter(request.targets_left_out.values()))}", err=True
        )
    try:
        with Progress(baseline=request.baseline is not None) as progress:
            done = api.execute(
                request._replace(
                    progress=progress.update,
                    watch=progress.watch,
                    say=lambda line: click.echo(f"harness: {line}", err=True),
                )
            )
    except KeyboardInterrupt:
        fail(f"interrupted{_kept(request)}", 130)
    except (HarnessFault, NodesLost) as error:
        raise type(error)(f"{error}{_kept(request)}") from error
    if done.was_complete:
        click.echo(f"harness: {done.path}: already complete: nothing was run", err=True)
    finish(done.path)
    sys.exit(done.exit_code)


def _given() -> set[str]:
    """Return the names of the options and arguments that stand on the command line."""
    context = click.get_current_context()
    return {
        name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }


def _kept(request: Request) -> str:
    """Say how a run that broke off goes on; nothing if it had not begun."""
    from harness.run import folders

    if not request.resume and not folders.holds_run(request.out, request.run_id):
        return ""
    command = folders.to_continue(request.out, [target.name for target in request.targets])
    return f"; what was finished is kept: continue with: {command}"


def _shard(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise UsageError(f"--shard {shown(text)}: write I/N with 1 <= I <= N, for example 1/4")
    return int(found[1]), int(found[2])
