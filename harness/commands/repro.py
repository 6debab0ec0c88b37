"""`harness repro`: writes a failing case as a folder for someone who does not have the harness."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click
import msgspec

from harness.commands.options import (
    NamedPath,
    flag,
    folder_option,
    specs_option,
    target_option,
    timeout_option,
)
from harness.commands.reduce import FLAKY, reduce_case
from harness.compile.prepare import by_graph
from harness.model.case import Case
from harness.model.caseid import parse
from harness.model.errors import NothingRan, TargetUnavailable, UsageError
from harness.model.plain_file import read_bytes
from harness.model.result import Memory
from harness.model.signature import signature_of
from harness.model.target_info import DIRECTML, REPRODUCED, TargetInfo
from harness.model.verdict import conforms
from harness.render.text import without_paths
from harness.run.probe import Probes
from harness.run.target_info import target_info
from harness.specs.expand import expand
from harness.specs.reading.load import LoadedSpec, load_specs
from harness.specs.reading.write import reduced_from, spec_text
from harness.targets.execution import Prepared
from harness.targets.launches import launch
from harness.targets.registry import parse_target
from harness.targets.target import Target, session_config, session_threads
from harness.triage.bisection import mended
from harness.triage.recorded import Recorded, recorded_failure, recorded_target
from harness.triage.redrawn import redrawn
from harness.triage.reduction.reducer import Flaky
from harness.triage.repro.failure import Failure, SessionSettings
from harness.triage.repro.folder import write_repro
from harness.triage.repro.onnx_alone import ask_onnx

_LARGEST = 4 << 20
"""Bytes of a reduced case or a table of releases."""


@click.command("repro")
@click.argument("run", required=False, type=NamedPath(), metavar="[RUN")
@click.argument("case_id", required=False, metavar="CASE]")
@folder_option("Folder of the repro.", required=True)
@click.option(
    "--case",
    "case_file",
    type=NamedPath(),
    metavar="FILE",
    help="The file that `harness reduce` wrote, instead of a run.",
)
@target_option("Target on which CASE fails; required with --case, or if it fails on several targets.")
@flag(
    "--redraw",
    help="Draw the numbers of all inputs anew, of the same mean, deviation and range, where CASE fails alike with them.",
)
@flag("--reduce", "first_reduce", help="Reduce the case first.")
@click.option(
    "--bisect", type=NamedPath(), metavar="FILE", help="Table from `harness bisect --format markdown`."
)
@flag(
    "--newest",
    help="Also run the newest release; where CASE conforms there, name the release that mended it.",
)
@specs_option("Spec files or folders of the run.")
@timeout_option("Time limit of a probe in seconds.")
def repro(
    run: Path | None,
    case_id: str | None,
    output: Path,
    case_file: Path | None,
    target: str | None,
    redraw: bool,
    first_reduce: bool,
    bisect: Path | None,
    newest: bool,
    specs: tuple[Path, ...],
    timeout: float,
) -> None:
    """Write the failing CASE of RUN to DIR: model.onnx, test_data_set_0/, repro.py and issue.md.

    repro.py needs only onnxruntime and numpy, and exits with 1 while the bug is there. Of a call of DirectML's own
    API it needs only Windows, numpy and a DirectML.dll; operator.json and .npy files stand in place of the model.
    Exit code 0: written; 1: the case is flaky, and nothing is written; 4: it does not fail.
    """
    table = None if bisect is None else _read(bisect)
    if case_file is not None:
        if run is not None or target is None:
            raise UsageError("--case FILE stands instead of RUN and CASE, and needs the target with -t")
        chosen = parse_target(target)
        case, spec = _only_case(case_file)
        record, origin = None, reduced_from(_read(case_file))
        seed = 0
        commands = [f"harness run {shlex.quote(case_file.name)} -t {shlex.quote(target)} -k {case.operator}"]
    else:
        if run is None or case_id is None:
            raise UsageError("name a RUN and a CASE in it, or a spec with one case with --case FILE")
        record = recorded_failure(run, case_id, target, specs)
        chosen = recorded_target(run, record.result.target, target)
        case, spec, seed = record.case, record.spec, record.header.seed
        origin = None
        commands = [
            without_paths(record.header.command),
            f"harness run -t {shlex.quote(chosen.name)} -k {shlex.quote(case.id)}",
        ]
    if chosen.provider not in REPRODUCED:
        raise UsageError(
            f"target {chosen.name!r} is neither a provider of onnxruntime nor DirectML, which alone a repro needs; "
            "reproduce it on cpu, dml or directml"
        )
    if newest and chosen.provider == DIRECTML:
        raise UsageError(
            f"--newest runs releases of ONNX Runtime, which has no part in {chosen.name!r}; "
            "`harness run -t directml@levels` runs the newest DirectML.dll of each level"
        )
    failure = _failure(
        chosen, case, spec, seed, record, commands, redraw=redraw, first_reduce=first_reduce, timeout=timeout
    )
    if newest:
        failure = failure._replace(mended=mended(failure, seed=seed, timeout=timeout))
    for path in write_repro(failure._replace(origin=failure.origin or origin), output, table):
        click.echo(path)


def _failure(
    target: Target,
    case: Case,
    spec: LoadedSpec,
    seed: int,
    record: Recorded | None,
    commands: list[str],
    *,
    redraw: bool,
    first_reduce: bool,
    timeout: float,
) -> Failure:
    """Run the case once more and return how it fails; without the target, what the run recorded."""
    try:
        probes = Probes(target, timeout=timeout, seed=seed)
    except TargetUnavailable as error:
        if record is None or first_reduce or redraw:
            raise
        click.echo(
            f"{target.name} cannot run here, so the repro shows what the run recorded: {error}", err=True
        )
        return _from_record(target, record, commands)
    with probes:
        origin = None
        if redraw:
            other = redrawn(probes, case, spec)
            case, spec = other.case, other.spec
            kept = f"all but those of {', '.join(other.kept)}" if other.kept else "all"
            click.echo(f"drawn anew: {kept}", err=True)
            commands = []  # they name the model, and find nothing without it
        if first_reduce:
            found = reduce_case(probes, case, spec)
            if isinstance(found, Flaky):
                click.echo(f"harness: {found.what}; nothing is written", err=True)
                sys.exit(FLAKY)
            origin, case = case.id, found.reduction.case
            if not redraw:
                commands = [*commands, f"harness reduce {shlex.quote(origin)} -t {shlex.quote(target.name)}"]
        probe = probes.fresh(case)
        now = probe.signature
        info = target_info(target, probes.hello, probes.runtime)
        memory = probes.memory(probe)
        culprit = probes.culprit(probe)
    if conforms(case.validity, now.outcome):
        before = f"; the run recorded {record.result.outcome.value}" if record else ""
        raise NothingRan(
            f"{case.id} conforms on {target.name} ({now.outcome.value}){before}: there is nothing to reproduce"
        )
    if record is not None and record.result.outcome is not now.outcome:
        click.echo(
            f"the run recorded {record.result.outcome.value}, here it is now {now}: the repro shows the latter",
            err=True,
        )
    launched = launch(target)
    session = SessionSettings(target.provider, launched.provider_options, launched.config, launched.threads)
    what, actual = probe.judgement.error, probe.execution.outputs
    directml = target.provider == DIRECTML
    return Failure(
        probe.prepared,
        probe.graph,
        target,
        session,
        info,
        now,
        what,
        actual,
        origin,
        tuple(dict.fromkeys(commands)),
        memory,
        None if directml else ask_onnx(probe.graph.model),
        spec_file=_spec_file(probe.prepared, spec) if directml or redraw or _is_plain(spec) else None,
        culprit=culprit,
        optimized=probe.execution.graph_nodes,
    )


def _from_record(target: Target, record: Recorded, commands: list[str]) -> Failure:
    case, result = record.case, record.result
    info: TargetInfo = record.header.targets[result.target]
    memory = result.memory if isinstance(result.memory, Memory) else None
    found = signature_of(result.outcome, result.stage or "run", result.error, result.diff)
    options = {
        key: value
        for key, value in info.options.items()
        if key in ("device_id", "performance_preference", "device_filter")
    }
    session = SessionSettings(info.provider, options, session_config(target), session_threads(target))
    directml = target.provider == DIRECTML
    ((graph, (prepared,)),) = by_graph([case], record.header.seed, target.provider)
    return Failure(
        prepared,
        graph,
        target,
        session,
        info,
        found,
        result.error,
        None,
        None,
        tuple(dict.fromkeys(commands)),
        memory,
        None if directml else ask_onnx(graph.model),
        spec_file=_spec_file(prepared, record.spec) if directml else None,
        culprit=result.culprit if isinstance(result.culprit, tuple) else (),
        optimized=result.graph_nodes if isinstance(result.graph_nodes, tuple) else (),
    )


def _is_plain(spec: LoadedSpec) -> bool:
    """Say whether a spec describes one graph, so that it can be written with its case alone."""
    return spec.graph is not None and not spec.graph.spec.parameters and not spec.graph.spec.types


def _spec_file(prepared: Prepared, spec: LoadedSpec) -> str | None:
    """Return the case as a whole spec, None where an entry cannot say it."""
    case = prepared.case
    written = msgspec.structs.replace(case, literals=tuple(tensor.array for tensor in prepared.inputs))
    terms = parse(case.id).terms
    try:
        return spec_text(spec, written, terms.get("case") or terms["sweep"], (case.id,))
    except UsageError:
        return None


def _only_case(path: Path) -> tuple[Case, LoadedSpec]:
    plan = expand(load_specs([path]))
    cases = list(plan)
    if len(cases) != 1:
        raise UsageError(
            f"{path}: has {len(cases):,} cases; --case takes a spec with one, such as `harness reduce -o FILE` writes"
        )
    return cases[0], plan.by_operator[cases[0].operator]


def _read(path: Path) -> str:
    try:
        return read_bytes(path, _LARGEST).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
