"""Runs conformance within pytest: collects specs, runs the cases that pytest selects, and reports each case
as a test."""

from __future__ import annotations

import gc
from collections.abc import Generator
from pathlib import Path

import pytest

from harness.commands.pytest_plugin.execution import ItemRuns, Wanted
from harness.commands.pytest_plugin.items import MARK, CaseItem, SpecFile
from harness.commands.pytest_plugin.reports import reports
from harness.commands.pytest_plugin.settings import Settings, is_xdist_worker, settings
from harness.model.case import Case
from harness.model.errors import HarnessError, NothingRan, TargetUnavailable
from harness.run.probe import open_pool
from harness.specs.expand import Plan, expand
from harness.specs.reading.load import LoadedSpec, load_specs
from harness.specs.selection import Selection
from harness.targets.launches import make_ready

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
