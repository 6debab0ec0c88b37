"""What several test modules ask for by name."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator

import pytest

from tests import needs
from tests.processes import descendants, gone


def pytest_configure() -> None:
    """Refuse an unknown need, and take Ctrl-C again where a shell that started the tests in the background ignores it.

    The processes that they interrupt inherit that.
    """
    needs.required()
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line each what was needed and missing."""
    for line in needs.summary(report.longrepr[2] for report in terminalreporter.stats.get("skipped", [])):
        terminalreporter.write_line(line)


@pytest.fixture
def started() -> Iterator[Callable[[], set[int]]]:
    """Return what lists the processes that the test has started and that still run; none may be left behind at its end.

    Others can run below this process all along: the browser of the report's tests does.
    """
    before = descendants(os.getpid())

    def listed() -> set[int]:
        return descendants(os.getpid()) - before

    yield listed
    assert gone(listed()), "a process is left behind"
