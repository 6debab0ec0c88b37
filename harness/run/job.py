"""One target's part of a run: executes and judges cases, and makes results of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from harness.compile.prepare import refusal
from harness.model.case import BEYOND, Case, Validity
from harness.model.errors import TargetUnavailable
from harness.model.result import NOT_EXPRESSIBLE, Error, Result, rounded
from harness.model.target_info import DIRECTML
from harness.model.verdict import CONFORMING, NOT_EXECUTED, Outcome, Verdict, conforms
from harness.operators.directml.description import call_of
from harness.operators.directml.levels import level_made
from harness.run.artifacts import Artifacts
from harness.run.baseline import Baseline
from harness.run.deviation import Given, remembers
from harness.run.hashes import output_hash
from harness.run.held_back import Culprits, PatternRuns, Reruns
from harness.run.judge import Judgement, judge, verdict
from harness.run.kept_blocks import KeptBlocks
from harness.run.resume import Done
from harness.specs.expectations.expectation_entry import Entry
from harness.specs.expectations.expectations import Expectations
from harness.specs.expectations.target_expectations import Known, TargetExpectations
from harness.specs.find_case import problem_of
from harness.specs.selection import CaseBlock, ChosenCases, Selection
from harness.targets.execution import Execution, Graph, Prepared
from harness.targets.pool import WorkerPool
from harness.targets.target import Target


class RunInputs(NamedTuple):
    """The inputs of a run before any target is started; `artifacts` is the folder for tensors of failing
    cases, None to keep none."""

    targets: tuple[Target, ...]
    selection: Selection | ChosenCases
    expectations: Expectations
    baseline: Baseline | None
    artifacts: Path | None
    seed: int
    timeout: float
    reruns: int = 0
    """How often unexpected results are repeated."""
    no_cache: bool = False
    """Every case is made and judged anew."""


class TargetRun(NamedTuple):
    """Blocks of cases on one target."""

    work: RunInputs
    target: Target
    known: TargetExpectations
    done: Done | None
    artifacts: Artifacts | None
    """None where no tensors are kept."""

    def results(self, pool: WorkerPool | None, blocks: Iterable[CaseBlock]) -> Iterator[Result]:
        """Yield one result a case; invalid and unspecified cases run in workers of their own, after the valid
        ones."""
        for valid, alike in groupby(blocks, attrgetter("valid")):
            if pool is None:
                yield from (self._unavailable(case) for block in alike for case in self.left(block.cases()))
            else:
                yield from self._run(pool, alike, valid=valid)

    def _run(self, pool: WorkerPool, blocks: Iterable[CaseBlock], *, valid: bool) -> Iterator[Result]:
        pool.keep_apart(valid)
        work, provider = self.work, self.target.provider
        reruns = Reruns(provider, work.reruns)
        over_patterns = PatternRuns(provider)
        culprits = Culprits(provider)
        keeps = work.baseline is None and self.done is None and not work.no_cache
        kept = KeptBlocks(
            work.selection if keeps else None,
            self.known,
            work.seed,
            self._inexpressible,
            self.artifacts,
            pool.hello.library if pool.hello is not None else "",
        )
        supply = (group for block in blocks for group in kept.groups(block, self.left))

        def final(prepared: Prepared, graph: Graph, result: Result) -> Iterator[Result]:
            searched = culprits.searched or not culprits.concerns(graph, result)
            kept.settled(prepared, result, searched=searched)
            if not reruns.hold(prepared, graph, result):
                yield result

        try:
            with closing(pool.run(supply, keep=True)) as answers:
                for prepared, graph, execution in answers:
                    as_before = kept.result(prepared, execution)
                    if as_before is None:
                        prepared, graph = kept.made(prepared, graph)
                        result = self._result(prepared, graph, execution)
                        as_before = kept.judged(prepared, graph, execution, result)
                    if as_before is not None:
                        yield as_before
                    elif over_patterns.hold(prepared, graph, execution, result) or culprits.hold(
                        prepared, graph, result
                    ):
                        kept.hold(prepared)
                    else:
                        yield from final(prepared, graph, result)
            for prepared, graph, result in over_patterns.results(pool):
                result = self._remembered(result)
                if not culprits.hold(prepared, graph, result):
                    yield from final(prepared, graph, result)
            for prepared, graph, result in culprits.results(pool):
                yield from final(prepared, graph, self._by_culprit(result))
        except TargetUnavailable:
            yield from map(self._remembered, over_patterns.unchanged())
            yield from map(self._by_culprit, culprits.unchanged())
            yield from reruns.unchanged()
            raise
        yield from (result for _, _, result in reruns.results(pool))
        yield from kept.inexpressible

    def left(self, cases: Iterable[Case]) -> Iterable[Case]:
        """Yield the cases that an interrupted run has not done; the results that it has count as done."""
        return cases if self.done is None else self._left(cases, self.done)

    def _left(self, cases: Iterable[Case], done: Done) -> Iterator[Case]:
        for case in cases:
            conforming = done.conforming(case.id, self.target.name)
            if conforming is not None:
                self.known.record(case.id, None, conforms=conforming)
            elif not done.refused(case.id, self.target.name):
                yield case

    def _result(self, prepared: Prepared, graph: Graph, execution: Execution) -> Result:
        case = prepared.case
        judgement = self._placed(case, judge(prepared, graph, execution, self.target.provider))
        outcome = judgement.outcome
        conforming = conforms(case.validity, outcome)
        given = Given(prepared, execution.outputs, judgement, self.target.provider)
        known = self.known.record(
            case.id, outcome, conforms=conforming, beyond=case.beyond, allows=given.allows
        )
        expected = None if known is None else known.expect
        found = verdict(case.validity, outcome, expected)
        baseline = self.work.baseline
        if baseline is not None and not (expected is outcome and found is Verdict.EXPECTED):
            output = output_hash(execution.outputs) if baseline.seed == self.work.seed else UNSET
            found = baseline.verdict(case.id, self.target.name, case.validity, outcome, output)
            known = None
        if outcome in NOT_EXECUTED or (
            found is Verdict.EXPECTED and CONFORMING.get(case.validity) is outcome
        ):
            known = None
        worth = (
            execution.outputs is not None or found is not Verdict.EXPECTED
        )  # inputs alone can be made again
        if self.artifacts is not None and (
            case.validity is Validity.UNSPECIFIED or (worth and not conforming)
        ):
            self.artifacts.keep(
                self.target.name, prepared, execution, judgement, expected=found is Verdict.EXPECTED
            )
        return self._record(case, judgement, found, execution, graph, known)

    def _entry(self, result: Result) -> Entry | None:
        """Return the entry that says of a result that it is known."""
        number = result.expectation
        return self.work.expectations.entries[number].entry if isinstance(number, int) else None

    def _remembered(self, result: Result) -> Result:
        """Judge a result again by what its elements are over other memory: a known deviation is one only if its entry
        says so of them."""
        entry, baseline = self._entry(result), self.work.baseline
        if result.verdict is not Verdict.EXPECTED or remembers(entry, result.memory, result.diff):
            return result
        if entry is None and baseline is not None and baseline.read_outside(result.case, result.target):
            return result
        return msgspec.structs.replace(result, verdict=Verdict.REGRESSION, expectation=UNSET)

    def _by_culprit(self, result: Result) -> Result:
        """Judge a result again by the transformer that makes it wrong: an entry may speak of one alone."""
        entry = self._entry(result)
        transformer = None if entry is None else entry.when.transformer
        if transformer is None or (isinstance(result.culprit, tuple) and transformer in result.culprit):
            return result
        return msgspec.structs.replace(result, verdict=Verdict.REGRESSION, expectation=UNSET)

    def _placed(self, case: Case, judgement: Judgement) -> Judgement:
        """Name the place of a documented result that the formula contradicts."""
        selection, error = self.work.selection, judgement.error
        contradicts = judgement.outcome is Outcome.ORACLE_ERROR and judgement.expected is not None
        if not contradicts or error is None or not isinstance(selection, Selection):
            return judgement
        what = problem_of(selection.plan.by_operator[case.operator], case, error.message, "output")
        return judgement._replace(error=Error(error.class_, what))

    def _record(
        self,
        case: Case,
        judgement: Judgement,
        found: Verdict,
        execution: Execution | None,
        graph: Graph | None = None,
        known: Known | None = None,
    ) -> Result:
        changed = UNSET if execution is None else execution.transformers or UNSET
        return Result(
            case=case.id,
            operator=case.operator,
            target=self.target.name,
            validity=case.validity,
            levels=case.levels
            if graph is None or self.target.provider != DIRECTML
            else level_made(graph.model, case.levels.get("directml", BEYOND)),
            outcome=judgement.outcome,
            verdict=found,
            stage=execution.stage if execution else None,
            placed_on=judgement.placed_on,
            error=judgement.error,
            diff=judgement.diff,
            seconds=rounded(execution.seconds) if execution else 0.0,
            output=UNSET
            if execution is None or judgement.outcome is Outcome.PASS
            else output_hash(execution.outputs),
            accuracy=UNSET if judgement.accuracy is None else judgement.accuracy,
            empty=judgement.empty or UNSET,
            nans=UNSET if judgement.nans is None else judgement.nans,
            function_nodes=UNSET if judgement.function_nodes is None else judgement.function_nodes,
            sampled=UNSET if judgement.sampled is None else judgement.sampled,
            uses=UNSET if case.uses is None else case.uses,
            transformers=changed,
            graph_nodes=UNSET if execution is None else execution.graph_nodes or UNSET,
            call=UNSET if graph is None or self.target.provider != DIRECTML else call_of(graph.model),
            expectation=UNSET if known is None else known.number,
        )

    def ended_with(self, case: Case, error: Error) -> Result:
        """Record a case that ended the process around its worker."""
        known = self.known.record(case.id, Outcome.CRASH, conforms=False, beyond=case.beyond)
        found = verdict(case.validity, Outcome.CRASH, None if known is None else known.expect)
        baseline = self.work.baseline
        if baseline is not None and found is not Verdict.EXPECTED:
            found = baseline.verdict(case.id, self.target.name, case.validity, Outcome.CRASH)
            known = None
        return self._record(case, Judgement(Outcome.CRASH, error=error), found, None, known=known)

    def _inexpressible(self, case: Case, why: str) -> Result:
        return self._record(
            case, Judgement(Outcome.NOT_RUN, error=Error(NOT_EXPRESSIBLE, why)), Verdict.EXPECTED, None
        )

    def _unavailable(self, case: Case) -> Result:
        """Record that the target is unavailable, with the reason once, in the header; inexpressible cases
        stay inexpressible."""
        why = refusal(case, self.target.provider)
        if why is not None:
            return self._inexpressible(case, why)
        return self._record(case, Judgement(Outcome.UNAVAILABLE), Verdict.MISSING, None)
