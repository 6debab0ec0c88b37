"""The command line. Exit codes: 0 as expected, 1 unexpected results, 2 usage or spec error, 3 a named target
is unavailable or placement is unproven, 4 nothing ran, 5 fault in the harness; 130 after Ctrl-C. Results go
to stdout, progress and errors to stderr.
"""

from __future__ import annotations

import io
import re
import shlex
import sys
import traceback
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import click
from click.core import ParameterSource

from harness.commands.choosing_cases import QUERIES, SPECS
from harness.commands.help_texts import dressed
from harness.commands.named_path import NamedPath
from harness.commands.timeout import Seconds
from harness.model import interrupt
from harness.model.errors import HarnessError, HarnessFault, SpecError, UsageError, shown
from harness.model.progress import Progress

if TYPE_CHECKING:
    from harness.model.records import Select
    from harness.run.request import Request


class _Commands(click.Group):
    """Loads the command groups of other modules only when they are called: no report needs the Windows
    runtime's code."""

    _ELSEWHERE: ClassVar = {
        "bisect": "harness.commands.bisect:bisect_command",
        "compare": "harness.commands.compare:compare",
        "coverage": "harness.commands.coverage:coverage_command",
        "expect": "harness.commands.expect:expect",
        "explain": "harness.commands.explain:explain_command",
        "history": "harness.commands.history:history",
        "reduce": "harness.commands.reduce:reduce",
        "report": "harness.commands.report:report",
        "repro": "harness.commands.repro:repro",
        "runtimes": "harness.commands.runtimes:runtimes",
        "windows": "harness.commands.windows:windows",
    }

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *self._ELSEWHERE])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; click itself would end with 1 where the reader of its output leaves, which says
        that results are unexpected."""
        try:
            done = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            from harness.render.console import LEFT, nobody_reads

            nobody_reads()
            sys.exit(LEFT)
        return done

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self._ELSEWHERE:
            own = super().get_command(ctx, name)
            return own and dressed(name, own)
        module, _, attribute = self._ELSEWHERE[name].partition(":")
        found = getattr(import_module(module), attribute)
        assert isinstance(found, click.Command)
        return dressed(name, found)


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="onnxruntime-conformance-harness", prog_name="harness")
def cli() -> None:
    """Bit-exact conformance runs for ONNX Runtime execution providers.

    \b
    Get started:
      harness setup       install DirectML where this machine supports it
      harness run         run every spec on every available target
      harness run -h      show options and examples of a command
    """


@cli.command()
@SPECS
@click.option(
    "-t",
    "--target",
    "targets",
    multiple=True,
    metavar="TARGET",
    help="cpu, dml, cpu@ort-1.22.1 …; repeatable; `harness targets` lists them (default: cpu, and dml and directml if available).",
)
@QUERIES
@click.option("--shard", metavar="I/N", help="Run the I-th of N parts.")
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(1, 256),
    help="Worker processes per target (default: the number of processors).",
)
@click.option(
    "--timeout", type=Seconds(), default=30.0, show_default=True, help="Time limit of a case in seconds."
)
@click.option(
    "--select",
    type=click.Choice(["default", "all", "pairwise", "thorough"]),
    default="default",
    show_default=True,
    help="Cases of a sweep: as the spec says, all, few that cover every pair of values, or triples where it covers pairs.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Seed of the random inputs; the cases stay the same.",
)
@click.option("--baseline", type=NamedPath(), metavar="RUN", help="Judge against this earlier run.")
@click.option(
    "--expectations",
    multiple=True,
    type=NamedPath(),
    help="Expectation files or folders (default: the harness's own).",
)
@click.option(
    "--rerun-unexpected",
    "reruns",
    type=click.IntRange(0, 1000),
    default=0,
    metavar="N",
    help="Repeat unexpected results N times to find flakes.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Continue the run in -o (default: reports/latest) with its own options.",
)
@click.option("--force", is_flag=True, help="Replace the run that -o holds.")
@click.option(
    "--min-cases",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Exit with 4 if fewer cases are selected.",
)
@click.option(
    "-o", "--output", type=NamedPath(), metavar="DIR", help="Folder of the run (default: reports/<run id>)."
)
def run(
    specs: tuple[Path, ...],
    targets: tuple[str, ...],
    queries: tuple[str, ...],
    shard: str | None,
    jobs: int | None,
    timeout: float,
    select: Select,
    seed: int,
    baseline: Path | None,
    expectations: tuple[Path, ...],
    reruns: int,
    resume: bool,
    force: bool,
    min_cases: int,
    output: Path | None,
) -> None:
    """Run specs on targets, compare with the oracle, write run file and reports.

    SPEC is a spec file or a folder of them (default: the harness's own).

    Exit code 0: as expected; 1: unexpected results; 2: wrong usage or spec; 3: a target is not available; 4:
    nothing ran.
    """
    from harness import api
    from harness.commands.finish import finish
    from harness.run.continuing import continued

    if resume and force:
        raise UsageError("--resume goes on with a run and --force replaces it: name one of the two")
    request = api.request(
        targets, queries, specs, output=output, expectations=expectations, shard=_shard(shard), select=select, jobs=jobs, timeout=timeout,
        seed=seed, baseline=baseline, reruns=reruns, min_cases=min_cases, resume=resume, force=force,
        command=shlex.join(["harness", *sys.argv[1:]]).encode(errors="backslashreplace").decode(),
    )  # fmt: skip
    if resume:
        request = continued(request, _given())
    if request.targets_left_out:
        names = " and ".join(request.targets_left_out)
        click.echo(
            f"harness: cpu alone, without {names}: {next(iter(request.targets_left_out.values()))}", err=True
        )
    try:
        with Progress() as progress:
            done = api.execute(request._replace(progress=progress.update))
    except KeyboardInterrupt:
        _fail(f"interrupted{_kept(request)}", 130)
    except HarnessFault as error:
        raise HarnessFault(f"{error}{_kept(request)}") from error
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
    from harness.targets.registry import starts_what_it_names

    if not request.resume and not folders.holds_run(request.out, request.run_id):
        return ""
    repeated = [target.name for target in request.targets if starts_what_it_names(target.name)]
    command = folders.to_continue(
        request.out, [target.name for target in request.targets] if repeated else ()
    )
    return f"; what was finished is kept: continue with: {command}"


@cli.command()
@SPECS
@click.option(
    "--expectations",
    multiple=True,
    type=NamedPath(),
    help="Expectation files or folders (default: the harness's own).",
)
def check(specs: tuple[Path, ...], expectations: tuple[Path, ...]) -> None:
    """Validate specs and expectations; report all errors at once."""
    from harness.commands.examine import contradictions, unquoted_bits
    from harness.results.summary import count
    from harness.specs.expand import expand
    from harness.specs.expectations import ExpectationScope, lint, load_expectations
    from harness.specs.load import load_each

    loaded, wrong = load_each(specs)
    try:
        plan = expand(loaded)
    except SpecError as error:
        wrong.extend(error.problems)
    try:
        known = load_expectations(expectations)
    except SpecError as error:
        wrong.extend(error.problems)
    if wrong:
        raise SpecError(wrong)
    cases = list(plan)
    ids = [case.id for case in cases]
    problems = contradictions(plan.specs, cases) + lint(
        known, date.today(), ids, ExpectationScope.of(plan.specs)
    )
    for warning in unquoted_bits(plan.specs):
        click.echo(warning, err=True)
    for line in problems:
        click.echo(line, err=True)
    numbers = (
        count(len(plan.specs), "spec"),
        count(len(ids), "case"),
        count(len(known.entries), "expectation"),
    )
    click.echo(f"{numbers[0]} with {numbers[1]}, {numbers[2]}: {'ok' if not problems else 'see above'}")
    sys.exit(1 if problems else 0)


@cli.command("list")
@SPECS
@QUERIES
@click.option("--json", "as_json", is_flag=True, help="Print each case in full, one JSON object per line.")
@click.option(
    "--count",
    is_flag=True,
    help="Print only the number of cases, and of combinations left out, with the reasons.",
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="List the whole product of each sweep, as `run --select all` runs it.",
)
@click.option(
    "--thorough",
    is_flag=True,
    help="List triples of factors where a spec covers pairs, as `run --select thorough` runs them.",
)
def list_(
    specs: tuple[Path, ...],
    queries: tuple[str, ...],
    as_json: bool,
    count: bool,
    everything: bool,
    thorough: bool,
) -> None:
    """List the ids of the cases that a query selects."""
    from harness import api
    from harness.commands.listing import lines

    selection = api.load(specs, queries, everything=everything, thorough=thorough)
    for line in lines(selection, as_json=as_json, count=count):
        click.echo(line)


@cli.command("compile")
@SPECS
@QUERIES
@click.option("--check", "only_check", is_flag=True, help="Only check the manifest; exit 1 if it is stale.")
@click.option(
    "-o",
    "--output",
    type=NamedPath(),
    metavar="DIR",
    help="Folder of the graphs (default: generated_models).",
)
def compile_(
    specs: tuple[Path, ...], queries: tuple[str, ...], only_check: bool, output: Path | None
) -> None:
    """Write the graphs of the selected cases to generated_models/, with a manifest of hashes."""
    from harness.compile.graph_files import check_manifest, write_graphs
    from harness.model.query import parse_all

    if only_check:
        stale = check_manifest(specs, output)
        click.echo(stale or "the manifest is fresh")
        sys.exit(1 if stale else 0)
    click.echo(write_graphs(specs, parse_all(queries), output))


@cli.command()
def targets() -> None:
    """Show which targets can run here; for the others, show why not and how to get them."""
    from harness.commands.target_list import show_targets

    show_targets()


@cli.command()
@click.argument("run", type=NamedPath(), metavar="RUN")
@SPECS
def annotate(run: Path, specs: tuple[Path, ...]) -> None:
    """Print unexpected results as annotations of a GitHub workflow, at the lines of their specs.

    SPEC is the current location of the specs (default: their location during the run). The exit code does not
    depend on the results.
    """
    from harness.commands.annotate import github_annotations

    for line in github_annotations(run, specs):
        click.echo(line)


@cli.command()
def setup() -> None:
    """Install what this machine supports, and report what it does not."""
    from harness.commands.windows import setup_lines

    click.echo("cpu: this interpreter's onnxruntime; nothing to install")
    for line in setup_lines():
        click.echo(line)


@cli.command()
@click.argument("runs", nargs=-1, required=True, type=NamedPath(), metavar="RUN...")
@click.option(
    "-o", "--output", required=True, type=NamedPath(), metavar="DIR", help="Folder of the merged run."
)
@click.option(
    "--partial",
    is_flag=True,
    help="Merge the shards that exist; the merged run lists the missing ones.",
)
@click.option("--force", is_flag=True, help="Replace the run that -o holds.")
def merge(runs: tuple[Path, ...], output: Path, partial: bool, force: bool) -> None:
    """Merge the runs of all shards into one run, with the tensors that they kept."""
    from harness.commands.finish import finish
    from harness.run.folders import point_latest
    from harness.run.merging import merge_runs

    summary = merge_runs(runs, output, partial=partial, force=force)
    point_latest(output)
    finish(summary.path)
    sys.exit(summary.exit_code)


def _shard(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise UsageError(f"--shard {shown(text)}: write I/N with 1 <= I <= N, for example 1/4")
    return int(found[1]), int(found[2])


def main() -> None:
    """Run the command line. Every error is one line and an exit code; only a defect of the harness itself
    shows a traceback above it."""
    interrupt.install()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(
            errors="backslashreplace"
        )  # a file on Windows takes only the characters of its code page
    try:
        cli.main(standalone_mode=False, prog_name="harness")
    except HarnessError as error:
        _fail(str(error), error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        _fail("interrupted", interrupt.EXIT_CODE)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except Exception as error:  # noqa: BLE001 - Python's own exit code for it would say "unexpected results"
        if interrupt.behind(error):
            _fail("interrupted", interrupt.EXIT_CODE)
        traceback.print_exc()
        _fail(f"a fault in the harness: {type(error).__name__}: {error}", HarnessFault.exit_code)


def _fail(message: str, code: int) -> NoReturn:
    from harness.render.text import visible

    click.echo(
        "\n".join(f"harness: {line}" for line in visible(message).splitlines()) or "harness: failed", err=True
    )
    sys.exit(code)
