"""What several test modules ask for by name."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from packaging.version import Version

from harness.targets.runtimes import index, pythons
from tests import needs
from tests.fork_servers import SharedForkServer
from tests.processes import descendants, gone

BROWSER = Path(__file__).with_name("browser")


def pytest_configure() -> None:
    """Refuse an unknown need, and take Ctrl-C again where a shell that started the tests in the background
    ignores it.

    The processes that they interrupt inherit that.
    """
    needs.required()
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Start one process more than there are processors, since many tests wait for other processes; one more for those
    that are left out by default, which wait for Wine, a browser or a network."""
    affinity = getattr(os, "sched_getaffinity", None)
    processors = len(affinity(0)) if affinity else os.cpu_count() or 1
    return processors + (1 if "not slow" in config.getoption("markexpr") else 2)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give tests that share something to one process, unless another distribution is asked for."""
    from tests.groups import Groups

    return Groups(config, log) if config.getoption("dist") == "load" else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs a browser, by its folder; real releases are slow; what needs more than Python is of the system."""
    from tests.groups import SYSTEM, group_of

    for item in items:
        if group_of(item.nodeid) in SYSTEM or item.get_closest_marker("windows_runtime"):
            item.add_marker("system")
        if BROWSER in item.path.parents:
            item.add_marker("browser")
        if item.get_closest_marker("releases"):
            item.add_marker("slow")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip before any fixture installs a release."""
    if item.get_closest_marker("releases"):
        needs.need("index", _index_lacking())


@cache
def _index_lacking() -> str | None:
    """Ask the package index once for what the tests install from it."""
    found = index.published("onnxruntime", "3.11").versions
    index.published.cache_clear()
    index.configuration.cache_clear()
    return (
        None
        if found
        else "the package index shows no onnxruntime: check the network and how pip is configured"
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line each what was needed and missing."""
    for line in needs.summary(report.longrepr[2] for report in terminalreporter.stats.get("skipped", [])):
        terminalreporter.write_line(line)


@pytest.fixture(autouse=True)
def _shared_fork_servers(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let workers of all tests be forked by one process, but for tests that look at their processes."""
    if "started" in request.fixturenames:
        yield
        return
    with mock.patch("harness.targets.pool.ForkServer", SharedForkServer):
        yield


@pytest.fixture
def started() -> Iterator[Callable[[], set[int]]]:
    """Return what lists the processes that the test has started and that still run; none may be left behind
    at its end.

    Others can run below this process all along: the browser of the report's tests does.
    """
    before = descendants(os.getpid())

    def listed() -> set[int]:
        return descendants(os.getpid()) - before

    yield listed
    assert gone(listed()), "a process is left behind"


@pytest.fixture
def python_3_11() -> None:
    """Skip where no Python is 3.11 or later; to look for them takes seconds."""
    if all(Version(python.minor) < Version("3.11") for python in pythons.pythons()):
        pytest.skip("onnxruntime 1.24 needs Python 3.11 or later")


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
