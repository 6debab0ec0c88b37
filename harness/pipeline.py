"""The run: load -> select -> prepare -> execute -> judge -> write. The only module that knows this order."""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from harness.artifacts import LIMIT_BYTES, Artifacts
from harness.baseline import Baseline
from harness.errors import NothingRan, TargetUnavailable, UsageError
from harness.execution import Execution, Graph, Prepared
from harness.expectations import TargetExpectations, load_expectations
from harness.hashes import run_hashes
from harness.judge import Judgement, judge, verdict
from harness.pool import Hello, Pool
from harness.prepare import units
from harness.query import Query
from harness.records import SCHEMA, Case, End, Header, Outcome, Result, TargetInfo, Validity, Verdict, conforms
from harness.resume import Done, read_done
from harness.runfile import RunWriter
from harness.selection import Selection, Shard, select
from harness.specs.expand import expand
from harness.specs.load import load_specs
from harness.targets import Target
from harness.trial import open_pool

_DEVICE = ("directml", "directml_sha256", "adapter", "vendor", "luid", "driver", "max_feature_level")
_ABSENT = frozenset({Outcome.UNAVAILABLE, Outcome.NOT_RUN})


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
    progress: Callable[[str, int, int], None] = lambda _target, _done, _total: None


class Summary(NamedTuple):
    """How a run ended: its file and end record, and the exit code."""

    path: Path
    end: End
    exit_code: int


class Counts:
    """What the end record counts."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.verdicts: Counter[str] = Counter()
        self.failing = 0
        self.improved = 0
        self.lost = 0
        self.only_placement = True

    def add(self, validity: Validity, outcome: Outcome, verdict: Verdict) -> None:
        self.outcomes[outcome.value] += 1
        self.verdicts[verdict.value] += 1
        if validity is Validity.UNSPECIFIED or verdict in (Verdict.EXPECTED, Verdict.MISSING):
            return  # what an unspecified case does is shown, never a failure
        if verdict is Verdict.NEW and conforms(validity, outcome):
            return
        self.failing += 1
        self.improved += verdict is Verdict.IMPROVEMENT
        self.only_placement &= outcome is Outcome.NOT_PLACED

    def exit_code(self, problems: tuple[str, ...], *, baseline: bool) -> int:
        """1 for unexpected results, 3 if all that is unexpected is missing targets or unproven placement."""
        failing = self.failing - (self.improved if baseline else 0)
        if (problems and not self.lost) or (failing and not self.only_placement):
            return 1
        return 3 if failing or self.lost or self.verdicts[Verdict.MISSING.value] else 0


def run(request: Request) -> Summary:
    """Run everything that is asked for and write the run file; errors are of `errors`, results are never lost by one."""
    started = time.monotonic()
    specs = load_specs(request.specs)
    plan = expand(specs)
    expectations = load_expectations(request.expectations)
    baseline = None if request.baseline is None else Baseline(request.baseline)
    selection = select(plan, request.queries, request.shard, pairwise=request.pairwise)
    total = selection.total()
    if total < request.min_cases:
        raise NothingRan(f"{total} cases are selected, fewer than --min-cases {request.min_cases}")
    gc.freeze()  # modules and plan stay: the collector need not walk through them again and again
    path = request.out / "run.jsonl"
    pools: list[tuple[Target, Hello | str, Pool | None]] = []
    try:
        pools.extend(_open(target, request) for target in request.targets)
        header = Header(
            SCHEMA,
            f"{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}",
            request.command,
            request.seed,
            run_hashes([spec.path for spec in specs], expectations),
            {target.name: _info(target, hello, pool) for target, hello, pool in pools},
        )
        done = read_done(path, header) if request.resume else None
        with _writer(path, header, done) as writer:
            counts = Counts()
            if done is not None:
                done.count(counts.add)
            problems: list[str] = []
            for target, _, pool in pools:
                info = header.targets[target.name]
                artifacts = Artifacts(request.out / "artifacts")
                known = expectations.for_target(target.name, info)
                if pool is not None:
                    pool.before_waiting = writer.flush
                job = _Job(request, target, known, baseline, selection, done, artifacts)
                plan.left_out.clear()  # the same for every target
                selection.left_out.clear()
                number = 0
                try:
                    for number, result in enumerate(job.results(pool), start=1):
                        writer.add(result)
                        counts.add(result.validity, result.outcome, result.verdict)
                        if not number & 0xFF:
                            request.progress(target.name, number, total)
                except TargetUnavailable as error:  # its workers no longer start: the other targets go on
                    counts.lost += 1
                    problems.append(f"{target.name}: {error}")
                request.progress(target.name, number, total)
                problems += known.problems(date.today(), complete=selection.complete and pool is not None)
            ran = sum(counts.outcomes.values()) - sum(counts.outcomes[outcome.value] for outcome in _ABSENT)
            end = End(
                selected=total * len(pools),
                run=ran,
                left_out=dict(sorted((plan.left_out + selection.left_out).items())),
                outcomes=dict(sorted(counts.outcomes.items())),
                verdicts=dict(sorted(counts.verdicts.items())),
                problems=tuple(dict.fromkeys(problems)),
                seconds=round(time.monotonic() - started, 3),
            )
            writer.close(end)
    finally:
        for _, _, pool in pools:
            if pool is not None:
                pool.close()
    return Summary(path, end, counts.exit_code(end.problems, baseline=baseline is not None))


def _open(target: Target, request: Request) -> tuple[Target, Hello | str, Pool | None]:
    """Start the target's first worker; where that is impossible, keep the reason."""
    try:
        pool, hello = open_pool(target, jobs=request.jobs, timeout=request.timeout)
    except TargetUnavailable as error:
        return target, str(error), None
    return target, hello, pool


def _info(target: Target, hello: Hello | str, pool: Pool | None) -> TargetInfo:
    if isinstance(hello, str) or pool is None:
        return TargetInfo(target.provider, unavailable=str(hello), options=target.options)
    device = hello.device
    texts: dict[str, Any] = {key: str(device[key]) for key in _DEVICE if key in device}
    dtypes = device.get("device_dtypes", ())
    return TargetInfo(
        provider=target.provider,
        runtime=pool.runtime,
        onnxruntime=hello.onnxruntime,
        python=hello.python,
        numpy=hello.numpy,
        platform=hello.platform,
        options=target.options,
        artifact_limit_bytes=LIMIT_BYTES,
        device_dtypes=tuple(map(str, dtypes)) if isinstance(dtypes, list) else (),
        **texts,
    )


def _writer(path: Path, header: Header, done: Done | None) -> RunWriter:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{path.parent}: cannot be made: {error.strerror}; choose another folder with -o") from error
    return RunWriter(path, header) if done is None else RunWriter(path, keep=done.keep)


class _Job(NamedTuple):
    """One target's share of a run."""

    request: Request
    target: Target
    known: TargetExpectations
    baseline: Baseline | None
    selection: Selection
    done: Done | None
    artifacts: Artifacts

    def results(self, pool: Pool | None) -> Iterator[Result]:
        """Yield one result a case; invalid and unspecified cases run in workers of their own, after the valid ones."""
        for valid in (True, False):
            cases = self._cases(valid=valid)
            if pool is None:
                yield from map(self._unavailable, cases)
                continue
            with closing(pool.run(units(cases, self.request.seed))) as answers:
                for prepared, graph, execution in answers:
                    yield self._result(prepared, graph, execution)

    def _cases(self, *, valid: bool) -> Iterator[Case]:
        if self.done is None:
            return self.selection.cases(valid=valid)
        return self._left(self.done, valid=valid)

    def _left(self, done: Done, *, valid: bool) -> Iterator[Case]:
        for case in self.selection.cases(valid=valid):
            conforming = done.conforming(case.id, self.target.name)
            if conforming is None:
                yield case
            else:
                self.known.record(case.id, conforms=conforming)

    def _result(self, prepared: Prepared, graph: Graph, execution: Execution) -> Result:
        case = prepared.case
        judgement = judge(prepared, graph, execution, self.target.provider)
        outcome = judgement.outcome
        conforming = conforms(case.validity, outcome)
        self.known.record(case.id, conforms=conforming)
        expected = self.known.expected(case.id)
        found = Verdict.MISSING if outcome in _ABSENT else verdict(case.validity, outcome, expected)
        if self.baseline is not None and found is not Verdict.MISSING and not (expected is outcome and found is Verdict.EXPECTED):
            found = self.baseline.verdict(case.id, self.target.name, case.validity, outcome)
        worth = execution.output is not None or found is not Verdict.EXPECTED  # inputs alone can be made again
        if case.validity is Validity.UNSPECIFIED or (worth and not conforming):
            self.artifacts.keep(self.target.name, prepared, execution, judgement, expected=found is Verdict.EXPECTED)
        return self._record(case, judgement, found, execution)

    def _record(self, case: Case, judgement: Judgement, found: Verdict, execution: Execution | None) -> Result:
        return Result(
            case=case.id,
            operator=case.operator,
            target=self.target.name,
            validity=case.validity,
            levels=case.levels,
            outcome=judgement.outcome,
            verdict=found,
            stage=execution.stage if execution else None,
            placed_on=judgement.placed_on,
            error=judgement.error,
            diff=judgement.diff,
            seconds=round(execution.seconds, 6) if execution else 0.0,
        )

    def _unavailable(self, case: Case) -> Result:
        """Say that the target is not here; the reason stands once, in the header."""
        return self._record(case, Judgement(Outcome.UNAVAILABLE), Verdict.MISSING, None)
