"""The real runtime for tests marked `windows_runtime`, and the programs that can separate it from this
machine."""

from __future__ import annotations

import pytest

from harness.targets.windows import runtime, sandbox
from tests.needs import need


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip before any fixture starts a worker."""
    if item.get_closest_marker("windows_runtime") is not None:
        need("windows", runtime.unavailable())


@pytest.fixture(params=sandbox.TOOLS)
def tool(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let workers start through each program that can make a sandbox; one that does not work on this machine
    skips."""
    name: str = request.param
    package = {"bwrap": "bubblewrap", "unshare": "util-linux"}[name]
    lacking = (
        None
        if sandbox.works(name)
        else f"{name} does not work here: install the package {package}, and allow user namespaces"
    )
    need({"bwrap": "bubblewrap"}.get(name, name), lacking)
    monkeypatch.setattr(sandbox, "launcher", lambda: name)
    return name
