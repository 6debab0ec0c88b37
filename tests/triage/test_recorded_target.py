"""A run file from a stranger starts nothing: neither a host nor a program nor a script that it names."""

from __future__ import annotations

import json
import os
import shlex
import stat
from pathlib import Path

import pytest

from harness.model.errors import UsageError
from harness.triage.recorded import recorded_target
from tests.running import ROUND, complaint, harness, script_of
from tests.sampled import one_of

FEW = "Round@22:case=documented_half;X=float16[6]"
ABSENT = Path("run.jsonl")


@pytest.fixture
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a run of one failure, and an `ssh` before all others that notes with what it was
    started."""
    script = script_of(tmp_path, [("Round", "bit")])
    assert harness("run", ROUND, "-t", f"fake,script={script}", "-k", FEW, "-o", tmp_path / "run").code == 1
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(
        f'#!/bin/sh\necho "$@" >> {shlex.quote(str(tmp_path / "started"))}\nexit 255\n', encoding="utf-8"
    )
    ssh.chmod(ssh.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{ssh.parent}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def name_target(folder: Path, name: str) -> Path:
    """Let a run be of another target."""
    path = folder / "run" / "run.jsonl"
    header, *rest = (json.loads(line) for line in path.read_bytes().splitlines())
    (info,) = header["targets"].values()
    info["provider"] = "CPUExecutionProvider"
    for line in rest:
        if line["type"] == "result":
            line["target"], line["placed_on"] = name, "CPUExecutionProvider"
    header["targets"] = {name: info}
    path.write_text("".join(f"{json.dumps(line)}\n" for line in (header, *rest)), encoding="utf-8")
    return path


COMMANDS = [("reduce", FEW, "--run", "run"), ("repro", "run", FEW, "-o", "out")]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize(
    ("name", "what"),
    one_of(
        2,
        [
            ("cpu@ssh:stranger", "host"),
            ("cpu@ssh:stranger,python=touch started;", "host and python"),
            ("cpu@ssh:-oProxyCommand=touch started", "host"),
            ("fake,script=started", "script"),
            ("directml,dll=started", "dll"),
            ("cpu,python=started", "python"),
            ("plugin=./started", "plugin"),
            ("ggml,option.cache_dir=started", "option"),
        ],
    ),
)
def test_what_a_file_names_is_not_started(
    prepared: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], name: str, what: str
) -> None:
    monkeypatch.chdir(prepared)
    name_target(prepared, name)
    ended = harness(*command, "--spec", ROUND)
    assert ended.code == 2
    assert complaint(ended) == (
        f"run: the {what} of its target would be the file's choice; if it is yours, repeat it: -t {shlex.quote(name)}"
    )
    assert not (prepared / "started").exists()
    assert not (prepared / "out").exists()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_what_the_user_repeats_is_started(
    prepared: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.chdir(prepared)
    name_target(prepared, "cpu@ssh:mine")
    ended = harness(*command, "--spec", ROUND, "-t", "cpu@ssh:mine")
    assert (prepared / "started").read_text(encoding="utf-8").count(" -- mine ") >= 1
    assert "ssh:mine cannot be reached" in ended.err


def test_resuming_a_prepared_run_starts_what_the_command_line_says(
    prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(prepared)
    path = name_target(prepared, "cpu@ssh:stranger")
    before = path.read_bytes()
    ended = harness("run", ROUND, "-t", "cpu", "-k", FEW, "-o", "run", "--resume")
    assert ended.code == 2
    assert not (prepared / "started").exists()
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", ["cpu", "cpu,threads=4", "cpu@ort-1.22.1", "cpu,memory_limit=3000000000"])
def test_numbers_and_releases_may_come_from_a_file(name: str) -> None:
    assert recorded_target(ABSENT, name, None).name == name


@pytest.mark.parametrize("name", ["gpu", "cpu,threads=0", "cpu@ort-x", ""])
def test_what_is_no_target_is_said_of_the_file(name: str) -> None:
    with pytest.raises(UsageError, match=r"^run\.jsonl: "):
        recorded_target(ABSENT, name, None)
