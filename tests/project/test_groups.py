"""What must not run side by side is in one group."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.groups import GROUPS, group_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("sign", "group"),
    [
        ("mark.windows_runtime", "the Windows runtime"),
        ("open_page", "the browser"),
        ("mark.releases", "the network"),
        ("sshd.server(", "the ssh server"),
    ],
)
def test_whoever_shares_something_is_in_its_group(sign: str, group: str) -> None:
    files = [
        path
        for path in (ROOT / "tests").rglob("test_*.py")
        if sign in path.read_text(encoding="utf-8") and path != Path(__file__)
    ]
    found = {
        path.relative_to(ROOT).as_posix(): group_of(f"{path.relative_to(ROOT).as_posix()}::test")
        for path in files
    }
    assert found
    assert set(found.values()) == {group}, found


def test_every_path_is_there_and_every_other_test_a_group_of_its_own() -> None:
    assert all((ROOT / path.partition("::")[0]).exists() for path in GROUPS)
    assert group_of("tests/commands/test_cli.py::test_check") == "tests/commands/test_cli.py::test_check"
