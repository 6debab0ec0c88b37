"""The run: load -> select -> (prepare -> execute -> judge, in lanes) -> write. The only module that knows this order."""

from __future__ import annotations

import gc
import secrets
import time
from collections.abc import Callable
from datetime import date, datetime, timezone
from pathlib import Path
from typing import NamedTuple

from harness.baseline import Baseline
from harness.counts import Counts
from harness.errors import NothingRan, UsageError
from harness.expectations import load_expectations
from harness.fake_script import check_scripts
from harness.hashes import run_hashes
from harness.job import Work
from harness.lanes.crew import lanes
from harness.lanes.lane import Opened
from harness.query import Query
from harness.records import NOT_EXECUTED, SCHEMA, End, Header, TargetInfo
from harness.resume import Done, read_done
from harness.runfile import RunWriter
from harness.selection import Selection, Shard, select
from harness.specs.expand import expand
from harness.specs.load import load_specs
from harness.specs.origins import origins
from harness.target_info import target_info
from harness.targets import Target, make_ready


class Request(NamedTuple):
    """What to run; `out` is the folder of this run, `command` what the header records."""

    out: Path
    command: str
    targets: tuple[Target, ...]
    specs: tuple[Path, ...] = ()
    expectations: tuple[Path, ...] = ()
    queries: tuple[Query, ...] = ()
    shard: Shard | None = None
    pairwise: bool = False
    jobs: int = 2
    timeout: float = 30.0
    seed: int = 0
    min_cases: int = 1
    resume: bool = False
    baseline: Path | None = None
    reruns: int = 0
    progress: Callable[[str, int, int], None] = lambda _target, _done, _total: None


class Summary(NamedTuple):
    """How a run ended: its file and end record, and the exit code."""

    path: Path
    end: End
    exit_code: int


def run(request: Request) -> Summary:
    """Run everything that is asked for and write the run file; errors are of `errors`, results are never lost by one."""
    started = time.monotonic()
    check_scripts(request.targets)
    specs = load_specs(request.specs)
    plan = expand(specs)
    expectations = load_expectations(request.expectations)
    baseline = None if request.baseline is None else Baseline(request.baseline, [target.name for target in request.targets])
    selection = select(plan, request.queries, request.shard, pairwise=request.pairwise)
    total, left_out = selection.counted()
    if total < request.min_cases:
        raise NothingRan(f"{total} cases are selected, fewer than --min-cases {request.min_cases}")
    left_out |= _gone(baseline, selection, request)
    make_ready(request.targets)
    work = Work(
        request.targets, selection, expectations, baseline, request.out / "artifacts", request.seed, request.timeout, request.reruns
    )
    path = request.out / "run.jsonl"
    gc.freeze()  # modules and plan stay: the collector need not walk through them again and again
    with lanes(work, request.jobs, total) as crew:
        opened = [crew.open(number) for number in range(len(request.targets))]
        infos = {target.name: _info(target, found) for target, found in zip(request.targets, opened, strict=True)}
        hashes = run_hashes([spec.path for spec in specs], expectations)
        against = None if baseline is None else baseline.against(hashes, request.seed)
        run_id = f"{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"
        header = Header(SCHEMA, run_id, request.command, request.seed, hashes, infos, origins(plan), against)
        done = read_done(path, header) if request.resume else None
        with _writer(path, header, done) as writer:
            counts = Counts()
            if done is not None:
                done.count(counts)
            problems: list[str] = []
            for number, (target, found) in enumerate(zip(request.targets, opened, strict=True)):
                here = found if isinstance(found, Opened) else None
                sink = _Written(writer, request.progress, target.name, total)
                reports = crew.run(number, infos[target.name], here, done, sink)
                request.progress(target.name, sink.number, total)
                known = expectations.for_target(target.name, infos[target.name])
                for report in reports:
                    counts.merge(report.counts)
                    known.merge(report.findings)
                    problems += [] if report.problem is None else [report.problem]
                problems += known.problems(date.today(), complete=selection.complete and here is not None)
            ran = sum(counts.outcomes.values()) - sum(counts.outcomes[outcome.value] for outcome in NOT_EXECUTED)
            end = End(
                selected=total * len(request.targets) - counts.inexpressible,
                run=ran,
                left_out=dict(sorted(left_out.items())),
                outcomes=dict(sorted(counts.outcomes.items())),
                verdicts=dict(sorted(counts.verdicts.items())),
                problems=tuple(dict.fromkeys(problems)),
                seconds=round(time.monotonic() - started, 3),
            )
            writer.close(end)
    nothing = not ran and counts.inexpressible == sum(counts.outcomes.values())
    return Summary(path, end, NothingRan.exit_code if nothing else counts.exit_code(end.problems, baseline=baseline is not None))


class _Written:
    """Appends lines to the run file and tells the progress; `number` counts them."""

    def __init__(self, writer: RunWriter, progress: Callable[[str, int, int], None], target: str, total: int) -> None:
        self._writer = writer
        self._progress = progress
        self._target = target
        self._total = total
        self.number = 0

    def __call__(self, lines: bytes, number: int) -> None:
        self._writer.append(lines)
        self.number += number
        self._progress(self._target, self.number, self._total)


def _gone(baseline: Baseline | None, selection: Selection, request: Request) -> dict[str, int]:
    """Count what the earlier run has and the specs have no longer; a part of the cases says nothing of it."""
    if baseline is None or not selection.complete:
        return {}
    ids = (case.id for valid in (True, False) for case in selection.cases(valid=valid))
    gone = baseline.gone(ids, (spec.model.operator for spec in selection.plan.specs), [target.name for target in request.targets])
    return {"in the baseline, no longer in the specs": gone} if gone else {}


def _info(target: Target, opened: Opened | str) -> TargetInfo:
    if isinstance(opened, str):
        return TargetInfo(target.provider, unavailable=opened, options=target.options)
    return target_info(target, opened.hello, opened.launch.runtime)


def _writer(path: Path, header: Header, done: Done | None) -> RunWriter:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{path.parent}: cannot be made: {error.strerror}; choose another folder with -o") from error
    return RunWriter(path, header) if done is None else RunWriter(path, keep=done.keep)
