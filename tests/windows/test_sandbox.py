"""Command lines of the sandbox, and the one line for a machine that cannot make one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.model.errors import TargetUnavailable
from harness.targets.windows import sandbox
from harness.targets.windows.sandbox import SYSCTLS, Bind, command, remedy


@pytest.fixture(autouse=True)
def _forget_launcher() -> Iterator[None]:
    sandbox.launcher.cache_clear()
    yield
    sandbox.launcher.cache_clear()


def build(tool: str, **options: Path | None) -> list[str]:
    arguments = {"template": Path("/c/prefix"), **options}
    return command(
        Path("/c/my root"),
        ["prog", "an argument"],
        [Bind(Path("/w/x.py"), "/windows/worker.py")],
        tool=tool,
        **arguments,
    )


def test_bubblewrap_shares_nothing_and_dies_with_its_parent() -> None:
    line = build("bwrap")
    assert line[0] == "bwrap"
    assert {"--die-with-parent", "--unshare-all", "--new-session"} <= set(line)
    assert line[line.index("--ro-bind") + 1 :][:2] == ["/c/my root", "/"]
    assert line[line.index("/prefix") - 1 : line.index("/prefix") + 1] == ["--tmpfs", "/prefix"]
    assert line[line.index("/w/x.py") - 1 : line.index("/w/x.py") + 2] == [
        "--ro-bind",
        "/w/x.py",
        "/windows/worker.py",
    ]
    assert line[-2:] == ["prog", "an argument"]


def test_unshare_kills_its_child_and_mounts_what_is_bound() -> None:
    line = build("unshare")
    assert line[:4] == ["setpriv", "--pdeathsig", "KILL", "unshare"]
    assert "--kill-child=KILL" in line
    tree, mounts = line[line.index("--") + 5 :][:2]
    assert tree == "/c/my root"
    assert json.loads(mounts)[0] == [None, "/prefix", True]
    assert ["/w/x.py", "/windows/worker.py", False] in json.loads(mounts)
    assert line[-2:] == ["prog", "an argument"]


@pytest.mark.parametrize("tool", ["bwrap", "unshare"])
def test_the_environment_is_closed(tool: str) -> None:
    line = build(tool)
    start = line.index("-i")
    assert line[start - 1] == "/usr/bin/env"
    assert "WINEPREFIX=/prefix" in line[start:]
    assert not [part for part in line if part.startswith("HOME=") and part != "HOME=/tmp"]


def test_the_template_is_made_in_a_writable_prefix() -> None:
    line = command(Path("/r"), ["prog"], [], template=None, prefix=Path("/p"), tool="bwrap")
    assert line[line.index("/p") - 1 : line.index("/p") + 2] == ["--bind", "/p", "/prefix"]
    assert "/template" not in " ".join(line)


def test_without_any_tool_the_error_is_one_line_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TargetUnavailable) as caught:
        sandbox.launcher()
    assert str(caught.value) == remedy()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("name", "forbids", "allows"), SYSCTLS)
def test_what_forbids_user_namespaces_is_named_with_its_remedy(
    name: str, forbids: str, allows: str, tmp_path: Path
) -> None:
    for other, _, allowing in SYSCTLS:
        setting = tmp_path / other.replace(".", "/")
        setting.parent.mkdir(exist_ok=True)
        setting.write_text(f"{forbids if other == name else allowing}\n")
    line = remedy(tmp_path)
    assert line.startswith(f"{name}={forbids} forbids user namespaces")
    assert line.endswith(f"sudo sysctl -w {name}={allows}")


def test_without_a_tool_the_remedy_is_to_install_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert remedy(tmp_path).endswith("install the package bubblewrap")


def test_where_nothing_forbids_it_a_container_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bwrap").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "in a container" in remedy(tmp_path)


def test_a_tool_that_fails_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, status in (("bwrap", 1), ("setpriv", 0)):
        (tmp_path / name).write_text(f"#!/bin/sh\nexit {status}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path) + os.pathsep + os.environ["PATH"])
    assert sandbox.launcher() == "unshare"
