"""What an installation tells: plain lines, not too many of them and with the time left; on a terminal one
line that is written over."""

from __future__ import annotations

import io
import re
import time
from contextlib import redirect_stderr

import msgspec
import pytest

from harness.model.progress import PLANNING, Progress, ProgressStep, Steps
from harness.model.verdict import Outcome, Verdict
from tests import synthetic

_LEFT = re.compile(r"left: 0:\d\d:\d\d")
"""Not the dashes that stand there as long as nothing is known."""


class Clock:
    """Stands in for the monotonic clock, and is set by the test."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(time, "monotonic", made)
    return made


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    for name, value in {"COLUMNS": "120", "TERM": "xterm"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("NO_COLOR", "1")
    return Terminal()


def test_without_a_terminal_a_step_is_a_line_every_few_seconds_with_the_time_left(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with Steps("runtime") as tell:
        tell("installing it")
        for second in range(12):
            tell(ProgressStep("downloading", 100 * second, 2000, "MiB"))
            clock.now += 1
        tell(ProgressStep("downloading", 2000, 2000, "MiB"))
        tell("making it")
    assert capsys.readouterr().err.splitlines() == [
        "runtime: installing it",
        "runtime: downloading: 500 of 2,000 MiB, about 15 s left",
        "runtime: downloading: 1,000 of 2,000 MiB, about 10 s left",
        "runtime: downloading: 2,000 of 2,000 MiB",
        "runtime: making it",
    ]


def test_a_long_time_is_told_in_minutes_and_a_guess_not_at_all(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    tell = Steps("runtime")
    tell(ProgressStep("downloading", 0, 2000, "MiB"))
    clock.now += 6
    tell(ProgressStep("downloading", 0, 2000, "MiB"))
    clock.now += 6
    tell(ProgressStep("downloading", 100, 2000, "MiB"))
    assert capsys.readouterr().err.splitlines() == [
        "runtime: downloading: 0 of 2,000 MiB",
        "runtime: downloading: 100 of 2,000 MiB, about 3 min left",
    ]


def test_on_a_terminal_it_is_one_line_with_the_time_left_that_goes_at_the_end(terminal: Terminal) -> None:
    with redirect_stderr(terminal), Steps("runtime") as tell:
        tell(ProgressStep("downloading", 0, 2000, "MiB"))
        for done in (500, 1000):
            time.sleep(0.02)
            tell(ProgressStep("downloading", done, 2000, "MiB"))
        assert tell._bar is not None
        tell._bar.refresh()
        tell("making it")
        tell._bar.refresh()
    shown = terminal.getvalue()
    last = shown[shown.rindex("1,000/2,000 MiB") :]
    assert _LEFT.search(last)
    assert "runtime: making it" in last
    assert shown.count("\n") == 1  # the line that the bar leaves and takes away again
    assert shown.endswith("\x1b[2K")


def test_a_run_on_a_terminal_tells_the_time_left(terminal: Terminal) -> None:
    with redirect_stderr(terminal), Progress() as progress:
        for done in (0, 50, 100):
            progress.update("cpu", done, 200)
            time.sleep(0.02)
        assert progress._bar is not None
        progress._bar.refresh()
    assert "100/200" in terminal.getvalue()
    assert "50%" in terminal.getvalue()
    assert "0 unexpected" in terminal.getvalue()
    assert _LEFT.search(terminal.getvalue())


def test_a_piped_run_is_a_line_each_ten_percent(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with Progress() as progress:
        for done in range(0, 146, 29):
            progress.update(PLANNING, done, 145)
            clock.now += 6
        for done in range(0, 1001, 50):
            progress.update("cpu", done, 1000)
            clock.now += 6
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == [
        "expanding specs: 20 %, 29 of 145 specs, about 24 s left",
        "expanding specs: 40 %, 58 of 145 specs, about 18 s left",
    ]
    assert lines[5:7] == [
        "cpu: 10 %, 100 of 1,000 cases, 0 unexpected, about 108 s left",
        "cpu: 20 %, 200 of 1,000 cases, 0 unexpected, about 96 s left",
    ]
    assert lines[-1] == "cpu: 100 %, 1,000 of 1,000 cases, 0 unexpected"
    assert len(lines) == 15


def test_a_quick_run_says_nothing(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with Progress() as progress:
        for done in range(11):
            progress.update("cpu", done, 10)
            clock.now += 0.45
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("baseline", "number"), [(False, 4), (True, 3)])
def test_unexpected_results_are_counted_as_they_are_written(
    clock: Clock, capsys: pytest.CaptureFixture[str], baseline: bool, number: int
) -> None:
    results = [
        synthetic.result("Round@22:case=a", outcome, verdict)
        for outcome, verdict in (
            (Outcome.MISMATCH, Verdict.REGRESSION),
            (Outcome.CRASH, Verdict.NEW),
            (Outcome.PASS, Verdict.NEW),
            (Outcome.REJECTED, Verdict.CHANGED),
            (Outcome.PASS, Verdict.IMPROVEMENT),
            (Outcome.REJECTED, Verdict.EXPECTED),
        )
    ]
    with Progress(baseline=baseline) as progress:
        progress.update("cpu", 0, 6)
        clock.now += 6
        progress.watch(b"".join(msgspec.json.encode(result) + b"\n" for result in results))
        progress.update("cpu", 6, 6)
    assert capsys.readouterr().err == f"cpu: 100 %, 6 of 6 cases, {number} unexpected\n"
