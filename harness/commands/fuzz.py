"""`harness fuzz`: random valid calls of one operator, or random graphs, on a target, held against the oracle."""

from __future__ import annotations

import secrets
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic

import click
import msgspec

from harness.commands.options import (
    EXPECTATIONS,
    NamedPath,
    Seconds,
    flag,
    folder_option,
    target_option,
    timeout_option,
)
from harness.commands.report import writable, write_whole
from harness.model.errors import NothingRan, UsageError
from harness.operators import OPERATORS
from harness.results.summary import count
from harness.run.probe import Probes
from harness.run.target_info import target_info
from harness.specs.expand import expand
from harness.specs.expectations.expectations import load_expectations
from harness.specs.reading.load import GRAPHS, LoadedSpec, default_folder, load_specs, own_spec
from harness.specs.reading.source import suggestion
from harness.specs.reading.write import entry_lines, spec_file, spec_text
from harness.specs.sweeps.calls import call_of
from harness.targets.registry import parse_target
from harness.triage.fuzzing.findings import FuzzFinding
from harness.triage.fuzzing.fuzzer import FuzzCounts, Fuzzer
from harness.triage.fuzzing.graphs import GraphDrawing
from harness.triage.fuzzing.random_calls import Drawing
from harness.triage.fuzzing.seeds import Seeds

GRAPH_NAME = "Fuzzed"
FOUND = 1
"""Exit code where there are findings."""
_TOLD_EVERY = 10.0


@click.command("fuzz")
@click.argument("operator", metavar="[OPERATOR]", required=False)
@flag("--graph", help="Graphs of specs/graphs: all, or the pattern in place of OPERATOR.")
@target_option("Where the calls run.", default="cpu")
@click.option(
    "--seconds", type=Seconds(), default=60.0, show_default=True, help="How long; Ctrl-C ends it in order."
)
@click.option(
    "--seed", type=click.IntRange(0), help="Seed of the calls, for the same ones again.  [default: a new one]"
)
@folder_option("Folder of the findings.  [default: reports/fuzz-OPERATOR-SEED]")
@click.option("--spec", "spec_path", type=NamedPath(), metavar="FILE", help="Spec of the operator.")
@EXPECTATIONS
@timeout_option("Time limit of a call in seconds.")
@flag("--force", help="Replace the findings that -o holds.")
def fuzz_command(
    operator: str | None,
    graph: bool,
    target: str,
    seconds: float,
    seed: int | None,
    output: Path | None,
    spec_path: Path | None,
    expectations: tuple[Path, ...],
    timeout: float,
    force: bool,
) -> None:
    """Run random valid calls of OPERATOR on a target, and compare with the oracle.

    Calls begin as cases of the operator's spec and go beyond them in extents, ranks, element types,
    attributes, values and options. With --graph, graphs of several operators run at each level of optimisation:
    members of patterns, and compositions of their pieces. Known deviations are counted, not reported. What else fails is grouped,
    shrunk and written as a spec. Exit code 0: nothing found; 1: findings; 4: no call could run.
    """
    if operator is None and not graph:
        raise UsageError("name an OPERATOR, or say --graph")
    what = operator or "graphs"
    chosen = parse_target(target)
    seed = secrets.randbelow(1 << 31) if seed is None else seed
    folder = output or Path("reports") / f"fuzz-{what}-{seed}"
    path = folder / (f"{GRAPH_NAME}1.yaml" if graph else f"{operator}.yaml")
    drawing = _graphs(operator, spec_path, seed) if graph else _calls(operator or "", spec_path, seed)
    if path.exists() and not force:
        raise UsageError(f"{path}: is there already; --force replaces it, -o DIR names another folder")
    writable(path)
    known = load_expectations(expectations)
    with Probes(chosen, timeout=timeout) as probes:
        info = target_info(chosen, probes.hello, probes.runtime)
        click.echo(
            f"{what} on {chosen.name} (onnxruntime {info.onnxruntime}), seed {seed}, {seconds:g} s", err=True
        )
        judged = known.for_target(chosen.name, info)
        fuzzer = Fuzzer(drawing, probes, judged, _Telling(), _tell_finding)
        fuzzer.run(seconds)
    if not fuzzer.done.ran:
        raise NothingRan(f"no call of {what} ran on {chosen.name}: {_numbers(fuzzer.done.aside)}")
    for line in _summary(fuzzer.done):
        click.echo(line)
    found = fuzzer.findings.new
    if not found:
        return
    click.echo(count(len(found), "finding"))
    command = f"harness fuzz {'--graph ' if graph else ''}{operator or ''} -t {shlex.quote(chosen.name)} --seed {seed}"
    written = _write_graphs(folder, found, command) if graph else _write(path, found, command)
    for line in _shown(written, found, fuzzer, chosen.name):
        click.echo(line)
    sys.exit(FOUND)


def _calls(operator: str, path: Path | None, seed: int) -> Drawing:
    spec = _spec(operator, path)
    seeds = Seeds(spec, OPERATORS[operator], list(expand([spec])))
    if not seeds.cases:
        raise NothingRan(f"{operator}: the spec has no valid case to begin with")
    return Drawing(seeds, seed)


def _graphs(name: str | None, path: Path | None, seed: int) -> GraphDrawing:
    """Return what draws graphs of all patterns, or of one of them, or of those of a file or folder."""
    patterns = {spec.model.operator: spec for spec in load_specs([path or default_folder() / GRAPHS])}
    if name is not None and name not in patterns:
        raise UsageError(f"no pattern is named {name!r}{suggestion(name, patterns)}")
    return GraphDrawing(list(patterns.values()), seed, patterns.get(name or ""))


def _spec(operator: str, path: Path | None) -> LoadedSpec:
    if path is None:
        path = own_spec(operator)
        if operator in OPERATORS and not path.exists():
            raise UsageError(f"{operator}: no spec to begin with; name one with --spec FILE")
    if operator not in OPERATORS:
        hint = suggestion(operator, OPERATORS) or "; docs/operators.md lists those that have one"
        raise UsageError(
            f"the harness has no formula for {operator!r}, so nothing could judge its calls{hint}"
        )
    found = [spec for spec in load_specs([path]) if spec.model.operator == operator]
    if not found:
        raise UsageError(f"{path}: no spec of {operator}")
    return found[0]


class _Telling:
    """Says on stderr how far it is, every some seconds."""

    def __init__(self) -> None:
        self._last = monotonic()

    def __call__(self, done: FuzzCounts, findings: int) -> None:
        if monotonic() - self._last >= _TOLD_EVERY:
            self._last = monotonic()
            click.echo(f"{done.seconds:,.0f} s: {done.ran:,} calls, {count(findings, 'finding')}", err=True)


def _tell_finding(finding: FuzzFinding) -> None:
    click.echo(f"found: {finding.signature}{_by(finding)}: {finding.case.id}", err=True)


def _summary(done: FuzzCounts) -> Iterator[str]:
    stopped = ", stopped" if done.stopped else ""
    failed = done.ran - done.passed - done.known.total()
    yield (
        f"{done.ran:,} calls in {done.seconds:,.0f} s{stopped}: {done.passed:,} as ONNX defines, "
        f"{done.known.total():,} known, {failed:,} unexpected"
    )
    if done.known:
        yield f"known: {_numbers(done.known)}"
    if done.aside:
        yield f"not counted: {_numbers(done.aside)}"


def _numbers(counts: dict[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{number:,} {what}" for what, number in ordered) or "none was drawn"


def _write(path: Path, found: Sequence[FuzzFinding], command: str) -> Path:
    for finding in found:
        after = finding.case.options.after
        if after is not None:
            options = msgspec.structs.replace(finding.case.options, after=None)
            finding.case = msgspec.structs.replace(finding.case, options=options)
            finding.remark = f"failed after another call in its session (after={after}), which no written-out case asks for"
    model = found[0].spec.model
    claimed = model.lowers_to
    text = spec_file(
        model.operator,
        [finding.case.opset for finding in found],
        claimed.directml if claimed else (),
        [entry_lines(finding.case, f"fuzz_{number}") for number, finding in enumerate(found, start=1)],
        [f"Found by {command}"],
    )
    write_whole(path, [text])
    return path


def _write_graphs(folder: Path, found: Sequence[FuzzFinding], command: str) -> Path:
    """Write a spec for each graph; return their folder."""
    for number, finding in enumerate(found, start=1):
        name = f"{GRAPH_NAME}{number}"
        finding.case = msgspec.structs.replace(finding.case, operator=name)
        said = [f"Found by {command}", f"{finding.signature}{_by(finding)}"]
        write_whole(folder / f"{name}.yaml", [spec_text(finding.spec, finding.case, f"fuzz_{number}", said)])
    return folder


def _by(finding: FuzzFinding) -> str:
    return f" by {' and '.join(finding.culprit)}" if finding.culprit else ""


def _shown(path: Path, found: Sequence[FuzzFinding], fuzzer: Fuzzer, target: str) -> Iterator[str]:
    ids = {case.id.partition("case=")[2].partition(";")[0]: case for case in expand(load_specs([path]))}
    for number, finding in enumerate(found, start=1):
        case = ids[f"fuzz_{number}"]
        inputs = sum(1 for _ in call_of(case).inputs)
        yield ""
        calls = count(len(finding.calls), "call")
        yield f"{number}. {finding.signature}{_by(finding)}, {calls}, {count(inputs, 'input')}"
        yield f"   {case.id}"
        if finding.remark:
            yield f"   {finding.remark}"
        rule = fuzzer.findings.rule(finding)
        if rule:
            yield f"   {rule}"
        for place in finding.like:
            yield f"   compare with the known deviation {place}"
        asked = f"{shlex.quote(case.id)} --spec {shlex.quote(str(path))} -t {shlex.quote(target)}"
        yield f"   harness reduce {asked}"
    yield ""
    run = (path if path.is_dir() else path.parent) / "run"
    yield f"harness run {shlex.quote(str(path))} -t {shlex.quote(target)} -o {shlex.quote(str(run))}"
    yield f"harness repro {shlex.quote(str(run))} CASE --spec {shlex.quote(str(path))} -o bug"
