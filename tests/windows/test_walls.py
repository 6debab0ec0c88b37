"""The sandbox against a program that wants out, as root and as an ordinary user, with each program that can make one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.targets.windows import sandbox
from tests.needs import need

HOSTILE = Path(__file__).with_name("hostile.py")
PYTHON = "/usr/bin/python3"
NOBODY = "65534"


@pytest.fixture
def tree() -> Iterator[Path]:
    """Make a tree that every user can read, with the mount points of the Windows runtime's."""
    folder = Path(tempfile.mkdtemp(prefix="walls-"))
    (folder / "outside").mkdir()
    (folder / "outside" / "secret").touch()
    shutil.copy(HOSTILE, folder / "outside")
    shutil.copy(sandbox.__file__.replace("sandbox.py", "enter.py"), folder)
    for name in (*sandbox.MOUNT_POINTS, "usr", "bound"):
        (folder / "tree" / name).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (folder / "tree" / name).symlink_to(f"usr/{name}")
    subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("user", ["root", "ordinary"])
def test_nothing_leaves_the_sandbox(
    tool: str, user: str, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = sys.platform == "linux" and os.getuid() == 0
    need("root", "start the tests as root" if user == "root" and not root else None)
    need("unshare", None if Path(PYTHON).exists() else f"install Python at {PYTHON}")
    monkeypatch.setattr(sys, "executable", PYTHON)  # which another user can run
    monkeypatch.setattr(sandbox, "_ENTER", tree / "enter.py")
    line = sandbox.command(
        tree / "tree",
        [PYTHON, "-I", "/tmp/hostile.py", str(tree / "outside" / "secret")],
        [
            sandbox.Bind(Path("/usr"), "/usr"),
            sandbox.Bind(tree / "outside", "/bound"),
            sandbox.Bind(tree / "outside" / "hostile.py", "/tmp/hostile.py"),
        ],
        template=None,
        prefix=tree / "outside",
        tool=tool,
    )
    as_user = (
        ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"] if user != "root" and root else []
    )
    done = subprocess.run([*as_user, *line], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.stderr == ""
    assert json.loads(done.stdout) == {
        "sees": False,
        "ways": [],
        "written": [],
        "settings": [],
        "capabilities": ["0000000000000000"],
        "can gain": False,
        "session": True,
    }
