"""Environments with other releases: real ones from the package index, made once, whole or not there, and
refused in one line."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.version import Version

from harness.model.cache_folder import CACHE_ENV
from harness.model.errors import HarnessError, UsageError
from harness.targets.runtimes import environments, index, pythons, usage, wanted_release
from tests.needs import need
from tests.running import complaint, harness, lines_of, results_of
from tests.runtimes.conftest import OTHER, RELEASE
from tests.sampled import one_of
from tests.standin import SLOW_ENV

_TARGET = f"cpu@ort-{RELEASE}"


def _run(folder: Path, target: str) -> Path:
    ended = harness("run", "-t", target, "-k", "Round@11:case=documented_onnx", "-o", folder)
    assert ended.code == 0, ended.err
    return folder


@pytest.mark.releases
def test_a_target_of_another_release_says_so_and_proves_where_it_ran(
    with_release: Path, tmp_path: Path
) -> None:
    run = _run(tmp_path / "run", f"{_TARGET},memory_limit=4000000000")
    (info,) = lines_of(run)[0]["targets"].values()
    assert info["onnxruntime"] == RELEASE
    assert info["runtime"] == f"environment with onnxruntime {RELEASE}"
    assert info["options"] == {"memory_limit": "4000000000"}
    results = results_of(run)
    assert results
    assert {(result["outcome"], result["placed_on"]) for result in results.values()} == {
        ("pass", "CPUExecutionProvider")
    }


@pytest.mark.releases
def test_an_installed_release_needs_no_network(with_release: Path, tmp_path: Path, offline: None) -> None:
    _run(tmp_path / "run", _TARGET)


@pytest.mark.slow
def test_targets_and_runtimes_list_what_is_installed(with_standin: Path) -> None:
    shown = harness("targets").out
    assert f"{_TARGET} " in shown
    assert f"onnxruntime {RELEASE}, Python" in shown
    (line,) = [
        line for line in harness("runtimes", "list").out.splitlines() if line.startswith(f"{_TARGET}: ")
    ]
    assert line.endswith(" MB, whole")


@pytest.mark.parametrize("damage", one_of(3, ["changed", "changed in place", "its Python is gone"]))
def test_a_damaged_environment_is_found_before_use_and_made_anew(
    with_standin: Path, tmp_path: Path, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (path,) = with_standin.glob("lib/python*/site-packages/onnxruntime/__init__.py")
    status, content = path.stat(), path.read_bytes()
    if damage == "changed":
        path.write_bytes(content + b"\n")
    elif damage == "changed in place":
        path.write_bytes(content[:-1] + b" ")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    else:
        link = with_standin / "bin" / "python"
        link.unlink()
        link.symlink_to(tmp_path / "nothing")
    assert "; made anew when next used" in harness("runtimes", "list").out
    _, version = environments.prepare(RELEASE)
    assert "made anew" in capsys.readouterr().err
    assert environments.faults(version) == ()
    assert (
        next(with_standin.glob("lib/python*/site-packages/onnxruntime/__init__.py")).read_bytes() == content
    )


def _install(version: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "harness", "runtimes", "install", version]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


@pytest.mark.slow
def test_two_at_once_make_it_once(empty_cache: Path, standins: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SLOW_ENV, "2")
    both = [_install(OTHER), _install(OTHER)]
    told = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], told
    assert sum(err.count("installing") for _, err in told) == 1, told
    assert sorted(path.name for path in empty_cache.iterdir()) == ["install.lock", f"onnxruntime-{OTHER}"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_installation_leaves_nothing_half_made(
    empty_cache: Path, standins: None, monkeypatch: pytest.MonkeyPatch, how: signal.Signals
) -> None:
    monkeypatch.setenv(SLOW_ENV, "600")
    process = _install(OTHER)
    end = time.monotonic() + 300  # of a slow machine
    while not list(empty_cache.glob("*.partial/*")):
        assert time.monotonic() < end
        assert process.poll() is None
        time.sleep(0.002)
    os.killpg(process.pid, how)
    process.communicate(timeout=60)
    assert process.returncode == (130 if how == signal.SIGINT else -how)
    assert environments.installed() == {}
    if how == signal.SIGINT:
        assert [path.name for path in empty_cache.iterdir()] == ["install.lock"]
    assert harness("runtimes", "prune").out.startswith("nothing is installed")
    assert [path.name for path in empty_cache.iterdir()] == ["install.lock"]


@pytest.mark.releases
def test_an_old_release_gets_a_python_and_a_numpy_that_it_can_use(empty_cache: Path) -> None:
    old = any(Version(python.minor) <= Version("3.11") for python in pythons.pythons())
    need("pythons", None if old else "onnxruntime 1.15 needs Python 3.11 or older, and this machine has none")
    environments.prepare("1.15.1")
    (stamp,) = environments.installed().values()
    assert stamp.facts["onnxruntime"] == "1.15.1"
    assert Version(stamp.facts["numpy"]) < Version("2")
    assert Version("3.8") <= Version(stamp.facts["python"]) < Version("3.12")
    assert harness("runtimes", "prune", "1.15.1").out == "removed: 1.15.1\n"
    assert environments.installed() == {}


@pytest.mark.releases
def test_a_release_from_before_providers_could_be_chosen_runs_too(empty_cache: Path, tmp_path: Path) -> None:
    """1.2 has no session entries, prefix of profiles, choice of providers or bound buffers; what it cannot be
    asked is not_run."""
    old = any(Version(python.minor) <= Version("3.8") for python in pythons.pythons())
    need("pythons", None if old else "onnxruntime 1.2 needs Python 3.8, and this machine has none")
    plain, bound = (
        "Round@11:case=documented_onnx;X=float32[5]",
        "Round@11:sweep=in_place;X=float32[5];values=ordinary;in_place=true",
    )
    ended = harness("run", "-t", "cpu@ort-1.2.0", "-k", plain, "-k", bound, "-o", tmp_path / "run")
    assert ended.code == 0, ended.err
    found = results_of(tmp_path / "run")
    assert (found[plain]["outcome"], found[plain]["placed_on"]) == ("pass", "CPUExecutionProvider")
    assert (found[bound]["outcome"], found[bound]["error"]["class"]) == ("not_run", "CannotFeedError")


@pytest.mark.slow
def test_a_release_that_is_not_published_is_refused_before_anything_is_fetched(
    empty_cache: Path, standins: None, tmp_path: Path
) -> None:
    ended = harness("run", "-t", "cpu@ort-1.22.9", "-k", "Round", "-o", tmp_path / "run")
    assert ended.code == 2
    expected = (
        "the package index has no onnxruntime 1.22.9 for this machine; near: 1.22.0, 1.22.1, 1.23.0, 1.23.1"
    )
    assert complaint(ended) == expected
    assert not empty_cache.exists()
    assert not (tmp_path / "run").exists()


def test_a_release_that_cannot_be_installed_offline_is_refused(
    empty_cache: Path, tmp_path: Path, offline: None
) -> None:
    ended = harness("runtimes", "install", OTHER)
    assert ended.code == 3
    assert (
        complaint(ended)
        == f"onnxruntime {OTHER}: the package index does not answer; check the network (installed: none)"
    )
    assert not empty_cache.exists()


def test_a_release_for_other_pythons_names_them(
    empty_cache: Path, standins: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = pythons.pythons()[0]
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path))
    pythons.pythons.cache_clear()
    assert [python.minor for python in pythons.pythons()] == [here.minor]
    ended = harness("runtimes", "install", "1.2.0")
    assert ended.code == 3
    assert (
        complaint(ended)
        == f"onnxruntime 1.2.0 has wheels for Python 3.8, and this machine has {here.minor}: install one of the former"
    )


@pytest.mark.parametrize("text", ["", "x", "1", "1.22.1+cu12", "1.23.0.dev1", "v1.22.1", "1.22.*"])
def test_what_is_no_release_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"is no release of onnxruntime; write for example 1\.22\.1$"):
        wanted_release.parse_version(text)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("1.99.0",), f"no environment for onnxruntime 1.99.0 is installed; installed: {RELEASE}"),
        ((RELEASE, "--all"), "prune: name releases or say --all, not both"),
        (("everything",), "'everything' is no release of onnxruntime; write for example 1.22.1"),
    ],
)
def test_prune_refuses_what_it_does_not_know(
    with_standin: Path, arguments: tuple[str, ...], said: str
) -> None:
    ended = harness("runtimes", "prune", *arguments)
    assert (ended.code, complaint(ended)) == (2, said)
    assert with_standin.exists()


@pytest.fixture
def own_copy(with_standin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use a cache of the test's own, with RELEASE in it; return the environment's folder."""
    folder = tmp_path / "cache" / "runtimes" / with_standin.name
    shutil.copytree(with_standin, folder, symlinks=True)
    monkeypatch.setenv(CACHE_ENV, str(tmp_path / "cache"))
    return folder


@pytest.fixture
def user(own_copy: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a process that uses the environment until it is killed."""
    program = f"from harness.targets.runtimes import environments; environments.prepare({RELEASE!r}); print('uses it', flush=True); input()"
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "uses it\n"
    yield process
    process.kill()
    process.communicate()


def test_an_environment_in_use_is_not_pruned(user: subprocess.Popen[str], own_copy: Path) -> None:
    ended = harness("runtimes", "prune", RELEASE)
    assert (ended.code, complaint(ended)) == (
        3,
        f"onnxruntime {RELEASE} is in use by another process; prune it when that has ended",
    )
    ended = harness("runtimes", "prune")
    assert (ended.code, ended.out) == (0, f"kept, in use by another process: {RELEASE}\n")
    assert environments.faults(Version(RELEASE)) == ()
    user.kill()
    user.wait()
    assert harness("runtimes", "prune").out == f"removed: {RELEASE}\n"
    assert not own_copy.exists()


def test_what_this_process_itself_uses_it_can_prune(own_copy: Path) -> None:
    environments.prepare(RELEASE)
    assert harness("runtimes", "prune", RELEASE).out == f"removed: {RELEASE}\n"
    assert not usage.hold(own_copy)


def test_near_versions_stand_around_the_wanted_one() -> None:
    known = {Version(text) for text in ("1.1.0", "1.2.0", "1.3.0", "1.4.0rc1", "1.4.0", "1.5.0", "1.6.0")}
    assert list(map(str, wanted_release.near(Version("1.3.5"), known))) == [
        "1.2.0",
        "1.3.0",
        "1.4.0",
        "1.5.0",
    ]
    assert list(map(str, wanted_release.near(Version("0.1"), known))) == ["1.1.0", "1.2.0", "1.3.0", "1.4.0"]
    assert list(map(str, wanted_release.near(Version("9.1"), known))) == ["1.3.0", "1.4.0", "1.5.0", "1.6.0"]


@pytest.mark.parametrize(
    ("wanted", "most", "error"),
    [
        ("9.9.9", 4, "the package index has no onnxruntime 9.9.9 for this machine; near: 1.20.0, 1.30.0"),
        ("1.40.0", 9, "onnxruntime 1.40.0 has wheels for Python 3.15, and this machine has "),
        ("1.25.0", 9, "the package index has no onnxruntime 1.25.0 for this machine; near: 1.20.0, 1.30.0"),
    ],
)
def test_a_release_beyond_all_that_is_published_is_refused_after_few_questions(
    monkeypatch: pytest.MonkeyPatch, wanted: str, most: int, error: str
) -> None:
    asked = set[str]()

    def published(project: str, python: str) -> index.Published:
        asked.add(python)
        names = ("1.20.0", "1.30.0", *["1.40.0"][: python == "3.15"])
        return index.Published(tuple(map(Version, names)), True)

    monkeypatch.setattr(environments, "published", published)
    monkeypatch.setattr(
        environments,
        "ask_ahead",
        lambda project, minors: list(map(published, [project] * len(minors), minors)),
    )
    monkeypatch.setattr(environments, "installed", lambda project: {})
    with pytest.raises(HarnessError, match=re.escape(error)):
        environments._choose(Version(wanted), environments.ONNXRUNTIME)
    assert len(asked) <= most
