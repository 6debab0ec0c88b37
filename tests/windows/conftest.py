"""The real runtime for tests marked `windows_runtime`; a machine without it says so in the summary, and fails where it is required.

`HARNESS_REQUIRE_WINDOWS=1`, which CI sets, turns the skip into a failure.
"""

from __future__ import annotations

import os

import pytest

from harness.windows import runtime

REQUIRE_ENV = "HARNESS_REQUIRE_WINDOWS"


@pytest.fixture(autouse=True)
def _needs_runtime(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("windows_runtime") is None:
        return
    reason = runtime.unavailable()
    if reason is None:
        return
    if os.environ.get(REQUIRE_ENV):
        pytest.fail(f"{REQUIRE_ENV} is set and {reason}")
    pytest.skip(reason)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = [report for report in terminalreporter.stats.get("skipped", []) if "windows_runtime" in report.keywords]
    if skipped:
        terminalreporter.write_line(f"{len(skipped)} tests of the Windows runtime did not run: {skipped[0].longrepr[2]}")
