"""Runs conformance within pytest: collects specs, runs the cases that pytest selects, and reports each case
as a test.

A spec file is a node of pytest, and in it each case on a target is an item,
`specs/Round.yaml::cpu[Round@22:case=documented_onnx;…]`. What a result is to pytest:

| result | pytest |
|---|---|
| correct | passed |
| wrong, crashed, accepted or not supported, as an entry expects | xfailed, with the entry's reason and link; failed with `--runxfail` |
| unexpected: a regression, a changed result, an improvement (as a strict xfail) | failed |
| not judged, or does not apply to the target | skipped, with the reason |
| its target is not here (any more) | failed, with the line that says why |

The status is that of JUnit and CTRF (`render.foreign`).
"""

from __future__ import annotations

import gc
import shlex
from collections.abc import Generator, Iterator
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import pytest

from harness.commands.pytest_plugin.execution import ItemRuns, Wanted
from harness.commands.pytest_plugin.settings import Settings, is_xdist_worker, settings
from harness.model.case import Case
from harness.model.caseid import CaseKey
from harness.model.errors import HarnessError, NothingRan, TargetUnavailable
from harness.model.header import Expectation, Header
from harness.model.result import Result
from harness.model.verdict import Outcome, Verdict, judged
from harness.render.foreign import status, summary
from harness.render.terminal import describe
from harness.render.text import line, visible
from harness.run.probe import open_pool
from harness.specs.expand import Plan, expand
from harness.specs.reading.load import LoadedSpec, load_specs
from harness.specs.reading.origins import entry_lines
from harness.specs.selection import Selection
from harness.targets.launches import make_ready
from harness.targets.target import Target

MARK = "harness"


class SpecFile(pytest.File):
    """A spec."""

    conformance: Conformance

    def collect(self) -> Iterator[CaseItem]:
        """Yield one item per target and case. An invalid spec ends the run before any test."""
        try:
            spec, cases = self.conformance.cases(self.path)
        except HarnessError as error:
            self.conformance.refuse(self, str(error))
            return
        lines = entry_lines(spec)
        for target in self.conformance.settings.targets:
            marks: dict[str, list[pytest.Mark]] = {}
            for case in cases:
                key = f"{case.opset} {case.validity.value} {case.levels}"
                if key not in marks:
                    marks[key] = _marks(case, target.name)
                name = f"{target.name}[{case.id}]"
                item = CaseItem.from_parent(
                    self, name=name, nodeid=f"{self.nodeid}::{name}"
                )  # from 9.2 on pytest reads it only so
                item.case, item.target, item.line = case, target, lines.get(CaseKey.of(case.id).origin, 1)
                item.own_markers.extend(marks[key])
                yield item


def _marks(case: Case, target: str) -> list[pytest.Mark]:
    """Return one mark, or one for each level of a case that lowers to several DirectML operators."""
    said = {"operator": case.operator, "opset": case.opset, "target": target, "validity": case.validity.value}
    mark = getattr(pytest.mark, MARK)
    return [mark(**said, level=level).mark for level in sorted(set(case.levels.values()))] or [
        mark(**said).mark
    ]


class CaseItem(pytest.Item):
    """A case on a target; the parametrization in its name is the case's id, as reports have it."""

    case: Case
    target: Target
    line: int
    """Where the spec says it, counted from 1."""

    def runtest(self) -> None:
        """Take no part in pytest's own protocol: `conformance` makes the reports, of results that come by the
        batch."""
        raise AssertionError

    def reportinfo(self) -> tuple[PathLike[str] | str, int | None, str]:
        """Return the spec, the line counted from 0, and what stands above a failure."""
        return self.path, self.line - 1, self.name


_KEYWORDS: dict[str, Literal[1]] = {"harness": 1}


def reports(item: CaseItem, execution: ItemRuns) -> Iterator[pytest.TestReport]:
    """Yield the reports of a case: what came of it, and that nothing is left of it, by which others know that
    it has ended."""
    skip = item.get_closest_marker("skip")
    if skip is not None:
        yield _report(
            item,
            "skipped",
            _skipped(item, str(skip.kwargs.get("reason", *skip.args[:1] or ["unconditional skip"]))),
        )
    else:
        try:
            yield _of_result(item, *execution.result(Wanted(item.case, item.target.name)))
        except TargetUnavailable as error:
            yield _report(item, "failed", str(error))
    yield _report(item, "passed", None, when="teardown")


def _of_result(item: CaseItem, result: Result, header: Header) -> pytest.TestReport:
    state = status(result, header)
    seconds = result.seconds
    entry = header.entry(result.expectation)
    if state == "passed":
        return _report(item, "passed", None, seconds=seconds)
    if state == "skipped":
        return _report(item, "skipped", _skipped(item, summary(result, header)), seconds=seconds)
    if state == "known" and not item.config.getoption("runxfail"):
        return _report(item, "skipped", "", wasxfail=f"{describe(result)} · {_known(entry)}", seconds=seconds)
    return _report(item, "failed", _failure(item, result, entry), seconds=seconds)


def _known(entry: Expectation | None) -> str:
    if entry is None:
        return "known deviation"
    return f"{'not reviewed yet' if entry.pending else 'known'}: {line(entry.reason, 1000)} {line(entry.link, 1000)}"


def _failure(item: CaseItem, result: Result, entry: Expectation | None) -> str:
    """Write what happened, why that is unexpected, where the case is written, and how it is repeated without
    pytest."""
    said = [f"{judged(result.outcome, result.verdict)}: {describe(result)}"]
    if result.verdict is Verdict.IMPROVEMENT:
        said[0] = f"[XPASS(strict)] {said[0]}: remove or narrow the expectation"
    if entry is not None:
        said.append(_known(entry))
    if result.outcome is Outcome.ACCEPTED_INVALID and item.case.rule:
        said.append(f"the rule: {line(item.case.rule, 1000)}")
    where, number, _ = item.location
    said.append(f"{where}:{(number or 0) + 1}")
    said.append(shlex.join(["harness", "run", where, "-t", item.target.name, "-k", item.case.id]))
    return "\n".join(map(visible, said))


def _skipped(item: CaseItem, reason: str) -> tuple[str, int, str]:
    return str(item.path), (item.location[1] or 0) + 1, f"Skipped: {reason}"


def _report(
    item: CaseItem,
    outcome: Literal["passed", "failed", "skipped"],
    shown: Any,
    when: Literal["call", "teardown"] = "call",
    seconds: float = 0.0,
    **more: Any,
) -> pytest.TestReport:
    return pytest.TestReport(
        item.nodeid, item.location, _KEYWORDS, outcome, shown, when, duration=seconds, **more
    )


_MARKS = f"{MARK}(operator, opset, target, validity, level): what a conformance case is of, for `-m \"{MARK}(operator='Round')\"`"


class Conformance:
    """The hooks of a run that asks for conformance."""

    def __init__(self, asked: Settings) -> None:
        self.settings = asked
        self._plans: list[Plan] = []
        self._operators: dict[str, LoadedSpec] = {}
        self._problems: list[str] = []
        self._found = False
        self._execution: ItemRuns | None = None

    @classmethod
    def of(cls, config: pytest.Config) -> Conformance:
        """Read the options of the run; an error in them is pytest's usage error."""
        config.addinivalue_line("markers", _MARKS)
        try:
            return cls(settings(config))
        except HarnessError as error:
            raise pytest.UsageError(str(error)) from error

    def cases(self, path: Path) -> tuple[LoadedSpec, list[Case]]:
        """Return a spec and those of its cases that a query selects, the valid ones first. Errors:
        SpecError."""
        (spec,) = load_specs([path])
        first = self._operators.setdefault(spec.model.operator, spec)
        if first is not spec and first.path != spec.path:
            load_specs([first.path, path])  # says that the operator has two specs
        plan = expand([spec], self.settings.queries)
        cases = list(Selection(plan, self.settings.queries))
        self._plans.append(plan)
        self._found |= bool(cases)
        return spec, cases

    def refuse(self, file: SpecFile, problem: str) -> None:
        """Record an error of a spec: nothing runs, and every error of all specs is reported.

        A process of pytest-xdist can only say that its collection failed.
        """
        if is_xdist_worker(file.config):
            raise file.CollectError(problem)
        self._problems.append(problem)

    def _check(self) -> None:
        """Raise UsageError where a spec is wrong, or no spec has a case that a query selects."""
        if self._problems:
            raise pytest.UsageError("\n".join(self._problems))
        if self._plans and self.settings.queries and not self._found:
            whole = Plan(
                tuple(spec for plan in self._plans for spec in plan.specs),
                tuple(case for plan in self._plans for case in plan.literals),
                tuple(sweep for plan in self._plans for sweep in plan.sweeps),
            )
            try:
                Selection(whole, self.settings.queries).total()
            except NothingRan as error:
                raise pytest.UsageError(str(error)) from error

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Make environments once, and see whether the targets are here before other processes want them."""
        if is_xdist_worker(session.config) or session.config.option.collectonly:
            return
        try:
            make_ready(self.settings.targets)
            if session.config.pluginmanager.hasplugin("dsession"):
                for target in self.settings.targets:
                    open_pool(target, jobs=1, timeout=self.settings.timeout)[0].close()
        except HarnessError as error:
            raise pytest.UsageError(str(error)) from error

    def pytest_report_header(self) -> str:
        """Say which targets are tested."""
        return f"conformance: {', '.join(target.name for target in self.settings.targets)}"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
        """Say that no case was selected where processes of pytest-xdist looked for them; elsewhere it is a
        usage error, with hints."""
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self.settings.queries:
            queries = " or ".join(query.text for query in self.settings.queries)
            terminalreporter.write_line(f"conformance: no case matches {queries}")

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> SpecFile | None:
        """Collect a spec."""
        if file_path not in self.settings.specs:
            return None
        file = SpecFile.from_parent(parent, path=file_path)
        file.conformance = self
        return file

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Put the cases in the order in which they run, in the places that they have: target by target, valid
        ones first."""
        if self._problems or not self._found:
            self._check()
        order = {target.name: number for number, target in enumerate(self.settings.targets)}
        places = [place for place, item in enumerate(items) if isinstance(item, CaseItem)]
        cases = [item for item in items if isinstance(item, CaseItem)]
        cases.sort(key=lambda item: (order[item.target.name], item.case.validity.value != "valid"))
        for place, item in zip(places, cases, strict=True):
            items[place] = item
        gc.freeze()  # a hundred thousand items stay: the collector need not walk through them again and again

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Start the workers of the first target before the first test, and end all workers after the last
        test, even if the loop is aborted."""
        wanted = [Wanted(item.case, item.target.name) for item in session.items if isinstance(item, CaseItem)]
        asked, alone = self.settings, not is_xdist_worker(session.config)
        self._execution = ItemRuns(
            asked.targets,
            wanted,
            asked.expectations,
            timeout=asked.timeout,
            jobs=asked.jobs,
            blocks=not alone,
        )
        try:
            if alone and not session.config.option.collectonly and not session.testsfailed:
                for name in dict.fromkeys(each.target for each in wanted):
                    self._execution.open(name)
            return (yield)
        except TargetUnavailable as error:
            raise pytest.UsageError(str(error)) from error
        finally:
            self._execution.close()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Report a case by its result; pytest's own protocol is for tests that have fixtures and a setup."""
        if not isinstance(item, CaseItem):
            return None
        assert self._execution is not None
        log = item.ihook
        log.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in reports(item, self._execution):
            log.pytest_runtest_logreport(report=report)
        log.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True
