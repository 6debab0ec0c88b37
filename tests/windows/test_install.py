"""What an installation is made of: packages and wheels are unpacked safely, components verified, nothing half
done stays."""

from __future__ import annotations

import errno
import fcntl
import io
import os
import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from harness.commands import windows as commands
from harness.model.cache_folder import CACHE_ENV
from harness.model.errors import HarnessFault, TargetUnavailable
from harness.targets.components import seal
from harness.targets.windows import install, sandbox, system, wheels
from harness.targets.windows.lock import load
from harness.targets.windows.releases import default_release, release
from tests.running import raising


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv(CACHE_ENV, str(tmp_path / "cache"))
    install.verify.cache_clear()
    yield tmp_path / "cache" / "windows"
    install.verify.cache_clear()


class Entry(NamedTuple):
    name: str
    kind: bytes = tarfile.REGTYPE
    content: bytes = b""
    link: str = ""


def make_deb(path: Path, *entries: Entry) -> Path:
    """Write an ar archive with a control and a data member, as dpkg does."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:xz") as archive:
        for entry in entries:
            item = tarfile.TarInfo(entry.name)
            item.type, item.size, item.linkname, item.mode, item.mtime = (
                entry.kind,
                len(entry.content),
                entry.link,
                0o644,
                1000,
            )
            archive.addfile(item, io.BytesIO(entry.content))
    members = [(b"debian-binary", b"2.0\n"), (b"control.tar.xz", b"odd"), (b"data.tar.xz", data.getvalue())]
    body = b"".join(
        b"%-16s%-12d%-6d%-6d%-8s%-10d`\n" % (n, 0, 0, 0, b"100644", len(c)) + c + b"\n" * (len(c) % 2)
        for n, c in members
    )
    path.write_bytes(b"!<arch>\n" + body)
    return path


def test_a_package_is_unpacked_into_merged_usr(tmp_path: Path) -> None:
    deb = make_deb(
        tmp_path / "a.deb",
        Entry("./lib/x/", tarfile.DIRTYPE),
        Entry("./lib/x/file", content=b"1"),
        Entry("./lib/x/hard", tarfile.LNKTYPE, link="./lib/x/file"),
        Entry("./usr/bin/soft", tarfile.SYMTYPE, link="../lib/x/file"),
        Entry("./usr/share/doc/a/README", content=b"left out"),
        Entry("./usr/lib/x86_64-linux-gnu/libvulkan_radeon.so", content=b"left out"),
        Entry("./usr/lib/x86_64-linux-gnu/libvulkan_lvp.so", content=b"kept"),
        Entry("./dev/null", tarfile.CHRTYPE),
    )
    root = tmp_path / "root"
    system.unpack_package(deb, root)
    files = sorted(str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir())
    assert files == [
        "usr/bin/soft",
        "usr/lib/x/file",
        "usr/lib/x/hard",
        "usr/lib/x86_64-linux-gnu/libvulkan_lvp.so",
    ]
    assert (root / "usr/bin/soft").read_bytes() == b"1"
    assert (root / "usr/lib/x/file").stat().st_mtime == 1000


@pytest.mark.parametrize("name", ["./../escaped", "./usr/../../escaped", "./out/escaped"])
def test_a_package_cannot_leave_its_tree(name: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    deb = make_deb(
        tmp_path / "a.deb", Entry("./out", tarfile.SYMTYPE, link=str(tmp_path)), Entry(name, content=b"1")
    )
    with pytest.raises(HarnessFault, match="outside of its tree"):
        system.unpack_package(deb, root)
    assert not (tmp_path / "escaped").exists()


def test_what_is_no_package_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "a.deb").write_bytes(b"<html>")
    with pytest.raises(HarnessFault, match=r"a\.deb is no Debian package"):
        system.unpack_package(tmp_path / "a.deb", tmp_path / "root")


def test_identical_files_become_links(tmp_path: Path) -> None:
    for folder in ("prefix/system32", "dlls"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "same.dll").write_bytes(b"same")
        (tmp_path / folder / "other.dll").write_bytes(folder.encode())
    assert system.link_identical(tmp_path / "prefix", tmp_path / "dlls", "/inside") == 1
    assert os.readlink(tmp_path / "prefix/system32/same.dll") == "/inside/same.dll"
    assert not (tmp_path / "prefix/system32/other.dll").is_symlink()


def test_a_wheel_keeps_its_packages_also_the_older_layout(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
        for name in (
            "p/__init__.py",
            "p/tests/t.py",
            "p/x.pyi",
            "p-1.data/purelib/p/q.py",
            "p-1.data/scripts/s.exe",
            "p-1.dist-info/METADATA",
        ):
            archive.writestr(name, "")
    wheels.unpack_wheel(tmp_path / "a.whl", tmp_path / "out")
    files = sorted(
        str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file()
    )
    assert files == ["p-1.dist-info/METADATA", "p/__init__.py", "p/q.py"]


def fake_component(folder: Path, kind: str) -> None:
    name = {
        "system": "root/usr/lib/wine/wine64",
        "python": "python.exe",
        "numpy": "numpy/version.py",
        "onnxruntime": "onnxruntime/__init__.py",
    }
    path = folder / name[kind]
    path.parent.mkdir(parents=True)
    path.write_text(kind)
    seal(folder, install.KEYS[kind])


def fake_installation(base: Path, version: str | None = None) -> dict[str, Path]:
    names = install.component_names(load(), release(version))
    for kind, name in names.items():
        if not (base / name).exists():
            fake_component(base / name, kind)
    return {kind: base / name for kind, name in names.items()}


def test_nothing_installed_says_how_to_get_it() -> None:
    with pytest.raises(
        TargetUnavailable,
        match=r"onnxruntime-directml 1\.24\.4 is not installed: run `harness setup`$",
    ):
        install.verify()
    with pytest.raises(TargetUnavailable, match=r"run `harness windows install --ort 1\.12\.1`$"):
        install.verify("1.12.1")


def test_a_whole_installation_is_found(cache_folder: Path) -> None:
    paths = fake_installation(cache_folder)
    found = install.verify()
    assert (found.onnxruntime, found.python, found.root) == (
        paths["onnxruntime"],
        paths["python"],
        paths["system"] / "root",
    )
    assert found.onnxruntime.name.startswith(f"onnxruntime-{default_release().onnxruntime}-")


@pytest.mark.parametrize("damage", ["gone", "changed", "same size and time"])
def test_a_damaged_file_is_found_before_use(damage: str, cache_folder: Path) -> None:
    path = fake_installation(cache_folder)["python"] / "python.exe"
    status = path.stat()
    if damage == "gone":
        path.unlink()
    else:
        path.write_text("nohtyp" if damage != "changed" else "another")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(
        TargetUnavailable,
        match=r"damaged \(python-3\.12-.*/python\.exe (is gone|has changed)\): run `harness windows install`",
    ):
        install.verify()


def test_components_are_shared_between_releases(cache_folder: Path) -> None:
    fake_installation(cache_folder, "1.10.0")
    shared = install.component_names(load(), release("1.12.1"))
    assert [
        (cache_folder / shared[kind]).exists() for kind in ("system", "python", "numpy", "onnxruntime")
    ] == [True, True, True, False]


def test_installing_again_keeps_what_is_whole_and_sweeps_the_rest(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "launcher", lambda: "bwrap")
    fake_installation(cache_folder)
    for stale in ("downloads/debian", "system-000000000000", "numpy-1.partial", "shaders"):
        (cache_folder / stale).mkdir(parents=True)
    messages: list[str] = []
    install.install(progress=messages.append)
    assert messages == []
    assert sorted(path.name.split("-")[0] for path in cache_folder.iterdir()) == [
        *("install.lock", "numpy", "onnxruntime", "python", "shaders", "system"),
    ]


def test_too_little_room_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "launcher", lambda: "bwrap")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 5 * 10**8))  # type: ignore[attr-defined]
    with pytest.raises(
        TargetUnavailable, match=r"needs 2\.2 GB in .* and 0\.5 GB are free: make room or set HARNESS_CACHE"
    ):
        install.install()


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "launcher", lambda: "bwrap")
    (tmp_path / "file").touch()
    monkeypatch.setenv(CACHE_ENV, str(tmp_path / "file"))
    with pytest.raises(
        TargetUnavailable, match=r"cannot write to .*: set HARNESS_CACHE to a folder of your own"
    ):
        install.install()


def test_a_second_installation_waits_for_the_first(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "launcher", lambda: "bwrap")
    fake_installation(cache_folder)
    with (cache_folder / "install.lock").open("w") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        messages: list[str] = []

        def note(message: str) -> None:
            messages.append(message)
            fcntl.flock(first, fcntl.LOCK_UN)

        install.install(progress=note)
    assert messages == ["another installation is under way, waiting for it"]


def test_remove_leaves_nothing(cache_folder: Path) -> None:
    paths = fake_installation(cache_folder)
    paths["python"].chmod(0o500)
    assert install.remove() is True
    assert not cache_folder.parent.exists()
    assert install.remove() is False


def test_status_lists_components_and_ends_with_the_remedy(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "launcher", lambda: "unshare")
    fake_installation(cache_folder)
    result = CliRunner().invoke(commands.windows, ["status"])
    assert result.exit_code == 0
    assert "sandbox: unshare" in result.output
    assert "onnxruntime-directml installed: 1.24.4" in result.output
    shutil.rmtree(cache_folder)
    install.verify.cache_clear()
    result = CliRunner().invoke(commands.windows, ["status"])
    assert isinstance(result.exception, TargetUnavailable)
    assert "others on demand: 1.10.0" in result.output


def test_setup_says_what_this_machine_cannot_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "launcher", raising(TargetUnavailable(sandbox.remedy())))
    assert commands.setup_lines() == [f"dml: not on this machine: {sandbox.remedy()}", "cpu runs without it"]


def test_setup_says_where_a_disk_was_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        install, "install", raising(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/some/place"))
    )
    reason = "/some/place: No space left on device; make room or set HARNESS_CACHE to another folder"
    assert commands.setup_lines() == [f"dml: not on this machine: {reason}", "cpu runs without it"]
