"""`harness reduce`: finds the smallest case that still fails in the same way, as a spec entry."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from typing import NamedTuple

import click
import msgspec

from harness.commands.options import NamedPath, specs_option, target_option, timeout_option
from harness.commands.report import writable, write_whole
from harness.compile.prepare import with_inputs
from harness.model.case import Case, Validity
from harness.model.errors import NothingRan, UsageError
from harness.model.verdict import conforms
from harness.run.probe import Probe, Probes
from harness.specs.find_case import find_case
from harness.specs.reading.load import LoadedSpec, load_specs
from harness.specs.reading.write import REDUCED_FROM, spec_text
from harness.targets.registry import parse_target
from harness.triage.recorded import recorded_failure, recorded_target
from harness.triage.reduction.reducer import Flaky, ReducedCase, Reducer

SECONDS = 300.0
"""How long a search may take; what has not ended by then is as good as ended, or needs another start."""
_BETWEEN_LINES = 20
"""Seconds between two lines of progress where there is no terminal."""
FLAKY = 1
"""Exit code where the case does not always fail in the same way."""


class Reduced(NamedTuple):
    """A reduction with the text of its spec."""

    reduction: ReducedCase
    text: str


@click.command("reduce")
@click.argument("case_id", metavar="CASE")
@target_option("Target on which CASE fails: dml, cpu@ort-1.22.1 …  [default: cpu, or the target of RUN]")
@target_option(
    "Require that the case conforms here, so that the defect stays the same: cpu@ort-1.24.3.", "--conforms-on"
)
@click.option(
    "--run", type=NamedPath(), metavar="RUN", help="The run in which CASE failed; gives target and seed."
)
@click.option(
    "-o", "--output", type=NamedPath(), metavar="FILE", help="Write here instead of to standard output."
)
@specs_option("Spec files or folders with the case.")
@click.option("--seed", type=click.IntRange(0), help="Seed with which the case failed.  [default: 0]")
@timeout_option("Time limit of a probe in seconds.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=1),
    default=SECONDS,
    show_default=True,
    help="Stop the search after that, with the smallest case so far.",
)
def reduce(
    case_id: str,
    target: str | None,
    conforms_on: str | None,
    run: Path | None,
    output: Path | None,
    specs: tuple[Path, ...],
    seed: int | None,
    timeout: float,
    seconds: float,
) -> None:
    """Shrink the failing CASE to the smallest case that fails in the same way.

    Writes a spec with this one case: run it as it is, or paste its entry into the operator's spec. Exit code
    0: reduced; 1: the case is flaky, and nothing is written; 4: the case conforms.
    """
    writable(output)
    if run is not None:
        if seed is not None:
            raise UsageError("--seed and --run: the run knows its seed")
        record = recorded_failure(run, case_id, target, specs)
        case, spec, seed = record.case, record.spec, record.header.seed
        chosen = recorded_target(run, record.result.target, target)
    else:
        chosen = parse_target(target or "cpu")
        case, spec = find_case(load_specs(specs), case_id)
    with ExitStack() as open_probes:
        probes = open_probes.enter_context(Probes(chosen, timeout=timeout, seed=seed or 0))
        conforming = None
        if conforms_on is not None:
            conforming = open_probes.enter_context(
                Probes(parse_target(conforms_on), timeout=timeout, seed=seed or 0)
            )
        found = reduce_case(probes, case, spec, conforming, seconds)
    if isinstance(found, Flaky):
        click.echo(f"harness: {found.what}; nothing is written", err=True)
        sys.exit(FLAKY)
    if output is None:
        click.echo(found.text, nl=False)
    else:
        write_whole(output, [found.text])
        click.echo(f"{output}: {found.reduction.case.id}")


def _without_earlier_call(probes: Probes, case: Case, failing: Probe) -> Case:
    """Return the case without the call that its session runs before; UsageError where it fails only after
    one, which no spec entry of a single case can ask for."""
    alone = msgspec.structs.replace(
        case,
        id=case.id.replace(f";after={case.options.after}", ""),
        options=msgspec.structs.replace(case.options, after=None),
        literals=tuple(tensor.array for tensor in with_inputs(case, probes.seed).inputs),
    )
    probe = probes.one(alone)
    if probe.signature != failing.signature:
        raise UsageError(
            f"{case.id}: fails only after another call in its session (after={case.options.after}), which reduce does not keep; "
            "harness repro carries both calls"
        )
    return alone


def reduce_case(
    probes: Probes, case: Case, spec: LoadedSpec, conforming: Probes | None = None, seconds: float = SECONDS
) -> Reduced | Flaky:
    """Reduce a failing case on a target to one that conforms on the second, if there is one; says on stderr
    how many probes that took.

    Raises NothingRan if the case conforms on the first, UsageError if it does not on the second.
    """
    if case.validity is Validity.UNSPECIFIED:
        raise UsageError(
            f"{case.id}: ONNX leaves open what this case does, so nothing that it does is a failure to reduce"
        )
    first = probes.one(case)
    if case.options.after is not None and not conforms(case.validity, first.judgement.outcome):
        case = _without_earlier_call(probes, case, first)
    if conforms(case.validity, first.judgement.outcome):
        raise NothingRan(
            f"{case.id} conforms on {probes.target.name} ({first.judgement.outcome.value}): there is nothing to reduce"
        )
    if conforming is not None:
        there = conforming.one(case).judgement.outcome
        if not conforms(case.validity, there):
            raise UsageError(
                f"{case.id} does not conform on {conforming.target.name} either ({there.value}): name a target without the defect"
            )
    live = sys.stderr.isatty()
    last_line = monotonic()

    def progress(number: int, left: int) -> None:
        nonlocal last_line
        said = f"{number} probes, {left:,} elements in the smallest so far"
        if live:
            click.echo(f"\r{said}\x1b[K", err=True, nl=False)
        elif monotonic() - last_line >= _BETWEEN_LINES:
            last_line = monotonic()
            click.echo(said, err=True)

    prepared = with_inputs(case, probes.seed)
    reducer = Reducer(probes, prepared, spec, progress, conforming, seconds)
    found = reducer.reduce()
    if live:
        click.echo("\r\x1b[K", err=True, nl=False)
    if isinstance(found, Flaky):
        return found
    restarts = f", {found.restarts} of which ended the worker" if found.restarts else ""
    click.echo(
        f"{found.probes} probes{restarts}: {found.before:,} elements became {found.after:,}; {found.signature}",
        err=True,
    )
    if not found.finished:
        click.echo(
            f"stopped after {seconds:g} s: a smaller case may fail alike; --seconds searches longer", err=True
        )
    but = "" if conforming is None else f", conforming on {conforming.target.name} ({_release(conforming)})"
    comment = (f"{found.signature} on {probes.target.name} ({_release(probes)}){but}{REDUCED_FROM}", case.id)
    return Reduced(found, spec_text(found.spec, found.case, reducer.subject.name, comment))


def _release(probes: Probes) -> str:
    """Name what ran: the release of onnxruntime, or the version of DirectML.dll."""
    version = probes.hello.onnxruntime
    return f"onnxruntime {version}" if version else f"DirectML {probes.hello.device.get('directml')}"
