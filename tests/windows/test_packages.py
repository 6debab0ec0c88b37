"""The machine's own packages in place of the private tree: used where they are the pinned ones, never
installed or removed unasked."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.commands import windows as commands
from harness.model.cache_folder import CACHE_ENV
from harness.model.errors import TargetUnavailable
from harness.targets.components import seal
from harness.targets.windows import install, packages, sandbox
from harness.targets.windows.lock import load
from harness.targets.windows.releases import default_release
from harness.targets.windows.system import UNIX_LIBRARIES
from harness.worker.windows import winecompat
from tests.running import raising

WANTED = packages.decisive_versions(load())
TRIXIE = {"ID": "debian", "VERSION_CODENAME": "trixie", "PRETTY_NAME": "Debian GNU/Linux 13 (trixie)"}
NOBLE = {"ID": "ubuntu", "VERSION_CODENAME": "noble", "PRETTY_NAME": "Ubuntu 24.04 LTS"}
PINS = " ".join(f"{name}={version}" for name, version in WANTED.items())


class Machine:
    """A machine's dpkg and apt-get, answering from files; every call of apt-get is noted in `calls`."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = folder / "machine"
        self.patch = monkeypatch
        bin_ = self.root / "bin"
        bin_.mkdir(parents=True)
        scripts = {
            "dpkg-query": f"cat {self.root}/installed",
            "dpkg": f"cat {self.root}/verify",
            "apt-get": f'echo "$*" >> {self.root}/calls; case "$*" in update*|*update) cp {self.root}/next {self.root}/refusal;; esac; '
            f'[ -s {self.root}/refusal ] && case "$*" in *install*) cat {self.root}/refusal >&2; exit 100;; esac; '
            f'case "$*" in *simulate*|*update*) ;; *) cp {self.root}/after {self.root}/installed;; esac',
        }
        for name, text in scripts.items():
            (bin_ / name).write_text(f"#!/bin/sh\n{text}\n")
            (bin_ / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(bin_) + os.pathsep + os.environ["PATH"])
        rows = "".join(f"{name}\tamd64\tinstalled\t{version}\n" for name, version in WANTED.items())
        for name, text in {
            "installed": rows,
            "after": rows,
            "verify": "",
            "refusal": "",
            "next": "",
            "calls": "",
        }.items():
            self.write(name, text)
        self.library = self.root / UNIX_LIBRARIES / "ntdll.so"
        self.library.parent.mkdir(parents=True)
        self.library.write_bytes(b"\0%b\0" % winecompat.WINE_BUILDS[0].encode())
        obstacle = packages.obstacle
        monkeypatch.setattr(packages, "obstacle", lambda lock: obstacle(lock, self.root))
        self.system(TRIXIE)

    def write(self, name: str, text: str) -> None:
        (self.root / name).write_text(text)

    def system(self, facts: dict[str, str]) -> None:
        self.patch.setattr(platform, "freedesktop_os_release", lambda: facts)

    def user(self, number: int) -> None:
        self.patch.setattr(os, "geteuid", lambda: number)

    @property
    def calls(self) -> list[str]:
        return (self.root / "calls").read_text().splitlines()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


@pytest.fixture
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv(CACHE_ENV, str(tmp_path / "cache"))
    monkeypatch.setattr(sandbox, "launcher", lambda: "bwrap")
    install.verify.cache_clear()
    yield tmp_path / "cache" / "windows"
    install.verify.cache_clear()


def test_wine_mesa_and_its_compiler_decide_results() -> None:
    names = {name.rstrip("0123456789") for name in WANTED}
    assert names - {"wine"} == {"libllvm", "libwine", "mesa-vulkan-drivers"}
    assert WANTED["wine64"] == WANTED["libwine"] == load().debian.wine


def test_the_compatibility_layer_knows_the_pinned_wine() -> None:
    assert f"(Debian {WANTED['libwine']})" in winecompat.WINE_BUILDS[0]


def test_exactly_the_pinned_packages_serve(machine: Machine) -> None:
    assert packages.obstacle(load()) is None


def test_another_system_is_named(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.system(NOBLE)
    assert packages.obstacle(load()) == "this is Ubuntu 24.04 LTS, not Debian trixie"
    machine.system({**TRIXIE, "VERSION_CODENAME": "forky", "PRETTY_NAME": "Debian GNU/Linux forky/sid"})
    assert packages.obstacle(load()) == "this is Debian GNU/Linux forky/sid, not Debian trixie"

    monkeypatch.setattr(platform, "freedesktop_os_release", raising(OSError))
    assert packages.obstacle(load()) == "this is not Debian trixie"


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (f"libwine\tamd64\tinstalled\t{WANTED['libwine']}\n", "", "libwine is not installed"),
        ("libwine\tamd64\tinstalled", "libwine\ti386\tinstalled", "libwine is not installed"),
        ("libwine\tamd64\tinstalled", "libwine\tamd64\tconfig-files", "libwine is not installed"),
        (
            WANTED["mesa-vulkan-drivers"],
            "25.0.8-1",
            f"mesa-vulkan-drivers 25.0.8-1 is installed, not {WANTED['mesa-vulkan-drivers']}",
        ),
    ],
)
def test_a_package_that_differs_is_named(before: str, after: str, reason: str, machine: Machine) -> None:
    rows = (machine.root / "installed").read_text()
    assert before in rows
    machine.write("installed", rows.replace(before, after))
    assert packages.obstacle(load()) == reason


@pytest.mark.parametrize(
    "content", [b"wine-10.0 (Debian 10.0~repack-60)\0", winecompat.WINE_BUILDS[0].encode() + b"+local\0", b""]
)
def test_a_wine_of_another_build_under_the_right_version_is_refused(content: bytes, machine: Machine) -> None:
    machine.library.write_bytes(content)
    assert packages.obstacle(load()) == f"{machine.library} is not of {winecompat.WINE_BUILDS[0]}"
    machine.library.unlink()
    assert packages.obstacle(load()) == f"{machine.library} is not of {winecompat.WINE_BUILDS[0]}"


def test_a_file_that_dpkg_finds_changed_is_named_and_left_out_documentation_is_not(machine: Machine) -> None:
    machine.write("verify", "missing     /usr/share/doc/libwine/copyright\n")
    assert packages.obstacle(load()) is None
    machine.write("verify", "??5??????   /usr/lib/wine/wine64\n")
    assert packages.obstacle(load()) == "/usr/lib/wine/wine64 is not as its package has it (dpkg --verify)"


def test_an_ordinary_user_gets_one_command_and_nothing_is_installed(machine: Machine) -> None:
    machine.user(1000)
    machine.write("installed", "")
    with pytest.raises(TargetUnavailable) as caught:
        packages.provide(load(), [].append)
    line = f"sudo apt-get install --no-install-recommends --no-remove {PINS}"
    first = next(iter(WANTED))
    assert str(caught.value) == f"{first} is not installed: run `{line}`, then repeat; or use `--from tree`"
    assert all("--simulate" in call for call in machine.calls)
    machine.write("refusal", "E: Unable to locate package wine64\n")
    with pytest.raises(TargetUnavailable, match=r"run `sudo apt-get update && sudo apt-get install "):
        packages.provide(load(), [].append)


def test_root_who_asks_gets_the_pinned_versions(machine: Machine) -> None:
    machine.user(0)
    machine.write("installed", "")
    messages: list[str] = []
    packages.provide(load(), messages.append)
    line = f"install --no-install-recommends --no-remove {PINS} -qq -y"
    assert machine.calls == [f"{line} --simulate", line]
    assert messages == [
        f"apt-get install --no-install-recommends --no-remove {PINS} (1.5 GB, a minute or two)"
    ]


def test_changed_files_of_the_right_version_are_installed_again(machine: Machine) -> None:
    machine.user(1000)
    machine.library.write_bytes(b"")
    with pytest.raises(
        TargetUnavailable, match=r"apt-get install --no-install-recommends --no-remove --reinstall wine64="
    ):
        packages.provide(load(), [].append)


def test_apt_is_asked_again_after_an_update(machine: Machine) -> None:
    machine.user(0)
    machine.write("installed", "")
    machine.write("refusal", "E: Unable to locate package wine64\n")
    messages: list[str] = []
    packages.provide(load(), messages.append)
    assert messages[0] == "apt-get update"
    assert [call.split()[-1] for call in machine.calls] == ["--simulate", "update", "--simulate", "-y"]


def test_apt_that_moved_on_is_refused_before_anything_is_installed(machine: Machine) -> None:
    machine.user(0)
    machine.write("installed", "")
    for name in ("refusal", "next"):
        machine.write(name, "E: Version '10.0~repack-6' for 'libwine' was not found\n")
    with pytest.raises(TargetUnavailable) as caught:
        packages.provide(load(), [].append)
    reason = "apt does not install what the lock pins (Version '10.0~repack-6' for 'libwine' was not found)"
    assert str(caught.value) == f"{reason}: use `harness windows install --from tree`"
    assert [call for call in machine.calls if "install" in call and "--simulate" not in call] == []


def test_asked_for_on_another_system_it_is_refused(machine: Machine) -> None:
    machine.system(NOBLE)
    with pytest.raises(
        TargetUnavailable,
        match=r"^this is Ubuntu 24\.04 LTS, not Debian trixie: its packages cannot serve; use .*--from tree",
    ):
        packages.provide(load(), [].append)
    assert machine.calls == []


def component(base: Path, source: install.Source, usr: Path | None = None) -> Path:
    """Make a whole installation of the default release with Wine from a source; return the folder of that
    Wine."""
    for kind, name in install.component_names(load(), default_release(), source).items():
        folder = base / name
        if folder.exists():
            continue
        keys = install.KEYS[kind]
        if kind == "system" and usr is not None:
            packages.make_root(folder, usr)
            keys = tuple(pattern.removeprefix("root/") for pattern in keys)
        else:
            path = folder / ("root/usr/lib/wine/wine64" if kind == "system" else "python.exe")
            path.parent.mkdir(parents=True)
            path.write_text(kind)
        seal(folder, keys)
    return base / install.component_names(load(), default_release(), source)["system"]


@pytest.fixture
def usr(tmp_path: Path) -> Path:
    path = tmp_path / "usr"
    (path / "lib/wine").mkdir(parents=True)
    (path / "lib/wine/wine64").write_text("the system's")
    return path


def choose(base: Path, asked: install.Source | None = None) -> tuple[install.Source, list[str]]:
    messages: list[str] = []
    return install._choose(base, load(), asked, messages.append), messages


def test_without_a_wish_packages_serve_where_they_can_and_a_tree_says_why_not(
    machine: Machine, cache_folder: Path
) -> None:
    machine.user(0)
    assert choose(cache_folder) == ("apt", [])
    assert choose(cache_folder, "apt") == ("apt", [])
    assert choose(cache_folder, "tree") == ("tree", [])
    machine.write("installed", "")
    reason = (
        f"a private tree, not Debian's own packages: {next(iter(WANTED))} is not installed (`--from apt`)"
    )
    assert choose(cache_folder) == ("tree", [reason])
    machine.system(NOBLE)
    assert choose(cache_folder) == ("tree", [])
    assert machine.calls == []


def test_what_is_in_use_and_whole_is_kept(machine: Machine, cache_folder: Path, usr: Path) -> None:
    machine.patch.setattr(packages, "obstacle", lambda lock: None)
    tree = component(cache_folder, "tree")
    assert choose(cache_folder) == ("tree", [])
    component(cache_folder, "apt", usr)
    (tree / "root/usr/lib/wine/wine64").write_text("damaged")
    assert choose(cache_folder) == ("apt", [])


def test_the_other_wine_goes_when_one_is_chosen(machine: Machine, cache_folder: Path, usr: Path) -> None:
    tree, borrowed = component(cache_folder, "tree"), component(cache_folder, "apt", usr)
    found = install.install(source="apt", progress=[].append)
    assert (found.root, tree.exists(), install.installed_source()) == (borrowed / "root", False, "apt")
    component(cache_folder, "tree")
    found = install.install(source="tree", progress=[].append)
    assert (found.root, borrowed.exists(), install.installed_source()) == (tree / "root", False, "tree")
    assert (usr / "lib/wine/wine64").read_text() == "the system's"


def test_an_upgraded_package_is_found_before_use(cache_folder: Path, usr: Path) -> None:
    component(cache_folder, "apt", usr)
    install.verify()
    (usr / "lib/wine/wine64").write_text("the upgrade")
    install.verify.cache_clear()
    with pytest.raises(
        TargetUnavailable,
        match=r"damaged \(packages-\w+/usr/lib/wine/wine64 has changed\): run `harness windows install`$",
    ):
        install.verify()


def test_removing_leaves_the_systems_packages(cache_folder: Path, usr: Path) -> None:
    component(cache_folder, "apt", usr)
    result = CliRunner().invoke(commands.windows, ["remove"])
    assert result.output.splitlines() == [
        f"removed {cache_folder}",
        f"the system's packages stay: {', '.join(WANTED)}",
    ]
    assert not cache_folder.exists()
    assert (usr / "lib/wine/wine64").read_text() == "the system's"


def test_status_says_which_wine_is_used(cache_folder: Path, usr: Path) -> None:
    component(cache_folder, "apt", usr)
    versions = ", ".join(f"{name} {version}" for name, version in WANTED.items())
    assert (
        f"wine: Debian's packages, {versions}"
        in CliRunner().invoke(commands.windows, ["status"]).output.splitlines()
    )
    install.remove()
    assert "wine: none installed" in CliRunner().invoke(commands.windows, ["status"]).output.splitlines()
    component(cache_folder, "tree")
    line = f"wine: {load().debian.wine} in a private tree"
    assert line in CliRunner().invoke(commands.windows, ["status"]).output.splitlines()


@pytest.mark.parametrize("tool", ["bwrap", "unshare"])
def test_the_sandbox_shows_usr_read_only_and_nothing_else_of_the_machine(
    tool: str, tmp_path: Path, usr: Path
) -> None:
    packages.make_root(tmp_path / "c", usr)
    line = sandbox.command(tmp_path / "c/root", ["prog"], [], template=tmp_path / "p", tool=tool)
    if tool == "bwrap":
        assert line[line.index(str(usr)) - 1 : line.index(str(usr)) + 2] == ["--ro-bind", str(usr), "/usr"]
    else:
        assert [str(usr), "/usr", False] in json.loads(line[line.index("--") + 6])
    assert sandbox.files_of(tmp_path / "c/root") == tmp_path / "c"


@pytest.mark.windows_runtime
def test_wine_runs_from_a_usr_outside_of_its_tree(tool: str, tmp_path: Path) -> None:
    found = install.verify()
    packages.make_root(tmp_path / "c", sandbox.files_of(found.root).resolve() / "usr")
    binds = [
        sandbox.Bind(found.python, "/windows/python"),
        sandbox.Bind(Path(winecompat.__file__).parent, "/windows/boot"),
    ]
    text = r"import sys; sys.path.insert(0, r'Z:\windows'); from boot.winecompat import wine_build; print(wine_build())"
    argv = [sandbox.WINE, "/windows/python/python.exe", "-c", text]
    line = sandbox.command(tmp_path / "c/root", argv, binds, template=found.prefix, tool=tool)
    done = subprocess.run(line, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() in winecompat.WINE_BUILDS, done.stderr
