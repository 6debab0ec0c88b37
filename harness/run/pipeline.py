"""The run: load -> select -> (prepare -> execute -> judge, in blocks) -> write. The only module that knows
this order."""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from harness.compile import graph_files
from harness.model.errors import NothingRan, TargetUnavailable
from harness.model.header import SCHEMA, End, Header
from harness.model.progress import PLANNING
from harness.model.target_info import CPU
from harness.results.counts import Counts
from harness.results.runfile import RunWriter
from harness.run.baseline import Baseline
from harness.run.block_files import make_room
from harness.run.folders import check_own, check_vacant, clear, make, point_latest
from harness.run.hashes import run_hashes
from harness.run.job import RunInputs
from harness.run.processes.coordinator import Coordinator, coordinator
from harness.run.processes.process import Opened, TargetPart
from harness.run.request import Request, new_run_id, planned
from harness.run.resume import Done, Earlier
from harness.specs.expectations.expectations import load_expectations
from harness.specs.expectations.target_expectations import ExpectationScope
from harness.specs.reading.load import LoadedSpec, load_specs, spec_files
from harness.specs.reading.origins import origins
from harness.specs.selection import Selection
from harness.targets.fake_script import check_scripts
from harness.targets.launches import launch, make_ready
from harness.targets.starting import ForkServer

if TYPE_CHECKING:
    from harness.run.cluster.scheduler import DaskCluster


class RunOutcome(NamedTuple):
    """How a run ended: its file and end record, and the exit code; `was_complete` if there was nothing left
    to run."""

    path: Path
    end: End
    exit_code: int
    was_complete: bool = False


def run(request: Request) -> RunOutcome:
    """Run a request and write the run file. Errors: those of `errors`; no result is lost by one."""
    if request.cluster is None:
        with _first_workers(request):
            return _run(request, None)
    from harness.run.cluster.scheduler import connected  # asyncio, which a run on this machine does without

    with connected(request.cluster) as cluster:
        return _run(request, cluster)


def _first_workers(request: Request) -> AbstractContextManager[None]:
    """Let onnxruntime load for the workers of the first target while specs are read, if the run names specs or queries: in
    a run of all specs the run processes start the workers."""
    target = request.targets[0]
    here = target.provider == CPU and target.release is None and target.host is None
    if here and (request.specs or request.queries):
        with suppress(TargetUnavailable):  # the run says why
            start = launch(target)
            return ForkServer.ahead(start.forks, start.env or {}) if start.forks else nullcontext()
    return nullcontext()


def _run(request: Request, cluster: DaskCluster | None) -> RunOutcome:
    started, began = time.monotonic(), time.time()
    check_own(request.out)
    earlier = Earlier(request.out) if request.resume else None
    if earlier is None:
        check_vacant(request.out, force=request.force)
    check_scripts(request.targets)
    specs = load_specs(request.specs, request.queries)
    plan = planned(specs, request.queries, request.select, partial(request.progress, PLANNING))
    graph_files.verify_existing(operators=plan.operators)
    expectations = load_expectations(request.expectations)
    baseline = (
        None
        if request.baseline is None
        else Baseline(request.baseline, [target.name for target in request.targets])
    )
    hashes = run_hashes(spec_files(request.specs), expectations)
    header = Header(
        SCHEMA,
        request.run_id or new_run_id(),
        request.command,
        request.seed,
        hashes,
        {},
        origins(plan),
        selection=request.asked(),
        targets_left_out=dict(request.targets_left_out),
    )
    if baseline is not None:
        header = msgspec.structs.replace(header, baseline=baseline.against(header))
    if earlier is not None:
        earlier.check(header)
        if (end := earlier.complete()) is not None:
            code = _exit_code(end, earlier.done.counts, baselined=baseline is not None)
            return RunOutcome(earlier.path, end, code, was_complete=True)
    selection = Selection(plan, request.queries, request.shard, pairwise=request.select == "pairwise")
    total, left_out = selection.counted()
    if total < request.min_cases:
        raise NothingRan(f"{total} cases are selected, fewer than --min-cases {request.min_cases}")
    left_out |= _gone(baseline, selection, request)
    scope = ExpectationScope.of(specs) if selection.complete else None
    if cluster is None:
        make_ready(request.targets)
    work = RunInputs(
        request.targets,
        selection,
        expectations,
        baseline,
        request.out / "artifacts",
        request.seed,
        request.timeout,
        request.reruns,
        request.no_cache,
    )
    path = request.out / "run.jsonl"
    gc.freeze()  # modules and plan stay: the collector need not walk through them again and again
    with _coordinator(cluster, request, header.run_id, specs, work, total) as processes:
        opened = [processes.open(number) for number in range(len(request.targets))]
        infos = {
            target.name: processes.info(number, found)
            for number, (target, found) in enumerate(zip(request.targets, opened, strict=True))
        }
        header = msgspec.structs.replace(
            header,
            targets=infos,
            expectations=expectations.stated(infos, plan.operators),
            nodes=processes.nodes,
        )
        done = None if earlier is None else earlier.continued(header)
        with _writer(path, header, done) as writer:
            point_latest(request.out)
            counts = Counts()
            if done is not None:
                counts.merge(done.counts)
            problems: list[str] = []
            for number, (target, found) in enumerate(zip(request.targets, opened, strict=True)):
                here = found if isinstance(found, Opened) else None
                sink = _Written(writer, request, target.name, total)
                reports = processes.run(TargetPart(number, infos[target.name], here, done), sink)
                request.progress(target.name, sink.number, total)
                known = expectations.for_target(target.name, infos[target.name])
                for report in reports:
                    counts.merge(report.counts)
                    known.merge(report.findings)
                    problems += [] if report.problem is None else [f"{target.name}: {report.problem}"]
                problems += known.problems(date.today(), None if here is None else scope)
            end = counts.end(
                total * len(request.targets) - counts.inexpressible,
                left_out,
                problems,
                round(time.monotonic() - started, 3),
                tuple(node for node in processes.nodes if node not in header.nodes),
            )
            writer.close(end)
    make_room(began)
    return RunOutcome(path, end, _exit_code(end, counts, baselined=baseline is not None))


def _coordinator(
    cluster: DaskCluster | None,
    request: Request,
    run_id: str,
    specs: Sequence[LoadedSpec],
    work: RunInputs,
    total: int,
) -> Coordinator:
    if cluster is None:
        return coordinator(work, request.jobs, total, heavy=request.heavy)
    from harness.run.cluster.coordinator import on_cluster

    return on_cluster(cluster, request, run_id, specs, work, total)


def _exit_code(end: End, counts: Counts, *, baselined: bool) -> int:
    nothing = not end.run and counts.inexpressible == sum(counts.outcomes.values())
    return NothingRan.exit_code if nothing else counts.exit_code(end.problems, baseline=baselined)


class _Written:
    """Appends lines to the run file and tells the progress; `number` counts them."""

    def __init__(self, writer: RunWriter, request: Request, target: str, total: int) -> None:
        self._writer = writer
        self._request = request
        self._target = target
        self._total = total
        self.number = 0

    def __call__(self, lines: bytes, number: int) -> None:
        self._writer.append(lines)
        self.number += number
        self._request.watch(lines)
        self._request.progress(self._target, self.number, self._total)


def _gone(baseline: Baseline | None, selection: Selection, request: Request) -> dict[str, int]:
    """Count what the earlier run has and the specs have no longer; a part of the cases says nothing of it."""
    if baseline is None or not selection.complete:
        return {}
    gone = baseline.gone(
        (case.id for case in selection),
        (spec.model.operator for spec in selection.plan.specs),
        [target.name for target in request.targets],
    )
    return {"in the baseline, no longer in the specs": gone} if gone else {}


def _writer(path: Path, header: Header, done: Done | None) -> RunWriter:
    make(path.parent)
    if done is not None:
        return RunWriter(path, keep=done.keep)
    writer = RunWriter(path, header)
    clear(path.parent)
    return writer
