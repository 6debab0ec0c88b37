"""Wine and Mesa as installed by this machine's apt, in place of the private tree, on the Debian release of
the lock.

    <component>/root/     mount points and links, no program: the sandbox shows the machine's /usr in it, read-only
    <component>/usr       a link to /usr, through which key files are stamped and compared as those of the private tree are
    <component>/prefix/   the wine prefix

Packages that decide a result must have the locked version: Wine, Mesa and the compiler under Mesa. The
libraries around them may have security updates. Only `provide` installs a package, when the user asked for
it; nothing here removes one.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path

from harness.model.errors import TargetUnavailable
from harness.targets.programs import captured
from harness.targets.windows.fetch import Progress
from harness.targets.windows.lock import Lock
from harness.targets.windows.sandbox import USR
from harness.targets.windows.system import UNIX_LIBRARIES, make_mount_points
from harness.worker.windows.winecompat import WINE_BUILDS

DECISIVE = ("wine64", "libwine", "mesa-vulkan-drivers", "libllvm")
"""Packages that decide results, by the start of their name."""
NEEDED_BYTES = 1_100_000_000
"""At the height of an installation, when Wine has copied its DLLs into the prefix; 0.2 GB stay."""
_APT = ("apt-get", "install", "--no-install-recommends", "--no-remove")
_FIELDS = "${Package}\\t${Architecture}\\t${db:Status-Status}\\t${Version}\\n"


def decisive_versions(lock: Lock) -> dict[str, str]:
    """Return the locked version of each package that decides results."""
    return {
        package.name: package.version
        for start in DECISIVE
        for package in lock.debian.packages
        if package.name.startswith(start)
    }


def foreign(lock: Lock) -> str | None:
    """Return None on the Debian release of the lock file, otherwise the name of this system."""
    try:
        facts = platform.freedesktop_os_release()
    except OSError:
        return f"this is not Debian {lock.debian.suite}"
    if (facts["ID"], facts.get("VERSION_CODENAME")) == ("debian", lock.debian.suite):
        return None
    return f"this is {facts['PRETTY_NAME']}, not Debian {lock.debian.suite}"


def obstacle(lock: Lock, machine: Path = Path("/")) -> str | None:
    """Return None if the machine's packages suffice, otherwise the reason."""
    wanted = decisive_versions(lock)
    if reason := foreign(lock):
        return reason
    found = _installed(list(wanted))
    for name, version in wanted.items():
        if name not in found:
            return f"{name} is not installed"
        if found[name] != version:
            return f"{name} {found[name]} is installed, not {version}"
    known = [build.encode() + b"\0" for build in WINE_BUILDS]
    library = machine / UNIX_LIBRARIES / "ntdll.so"
    if not library.is_file() or not any(build in library.read_bytes() for build in known):
        return f"{library} is not of {' or '.join(WINE_BUILDS)}"
    for line in _run("dpkg", "--verify", *wanted).stdout.splitlines():
        path = line.split(maxsplit=1)[-1]
        if path.startswith("/usr/lib/"):  # an image without documentation lacks files elsewhere
            return f"{path} is not as its package has it (dpkg --verify)"
    return None


def provide(lock: Lock, progress: Progress) -> None:
    """Let apt install the locked versions, as root; raises TargetUnavailable where it cannot, for an ordinary
    user with the command."""
    if reason := foreign(lock):
        raise TargetUnavailable(
            f"{reason}: its packages cannot serve; use `harness windows install --from tree`"
        )
    wanted = decisive_versions(lock)
    again = (
        ["--reinstall"] if _installed(list(wanted)) == wanted else []
    )  # their files are not what they were
    line = [*_APT, *again, *(f"{name}={version}" for name, version in wanted.items())]
    refusal = _refusal(line)
    if os.geteuid():
        command = ("sudo apt-get update && " if refusal else "") + " ".join(["sudo", *line])
        raise TargetUnavailable(f"{obstacle(lock)}: run `{command}`, then repeat; or use `--from tree`")
    if refusal:
        progress("apt-get update")
        _run("apt-get", "-qq", "update")
        refusal = _refusal(line)
    if not refusal:
        progress(" ".join([*line, "(1.5 GB, a minute or two)"]))
        refusal = _refusal(line, simulate=False)
    if refusal:
        raise TargetUnavailable(
            f"apt does not install what the lock pins ({refusal}): use `harness windows install --from tree`"
        )
    if reason := obstacle(lock):
        raise TargetUnavailable(f"{reason}: use `harness windows install --from tree`")


def make_root(component: Path, usr: Path = Path("/usr")) -> None:
    """Make the tree into which the sandbox binds the machine's /usr."""
    root = component / "root"
    (root / USR).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / name).symlink_to(f"{USR}/{name}")
    make_mount_points(root)
    (component / USR).symlink_to(usr)


def _refusal(line: Sequence[str], *, simulate: bool = True) -> str | None:
    """Install by apt, or simulate it; return apt's reason if it refuses."""
    done = _run(*line, "-qq", "-y", *(["--simulate"] if simulate else []))
    errors = [text.removeprefix("E: ") for text in done.stderr.splitlines() if text.startswith("E: ")]
    return (errors or ["no message"])[0] if done.returncode else None


def _installed(names: Sequence[str]) -> dict[str, str]:
    """Return the version of each of these packages that is installed for x86-64."""
    rows = [row.split("\t") for row in _run("dpkg-query", "-W", f"-f={_FIELDS}", *names).stdout.splitlines()]
    return {
        name: version
        for name, architecture, status, version in rows
        if (architecture, status) == ("amd64", "installed")
    }


def _run(*line: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    try:
        return captured(line, env=environment)
    except OSError as exc:
        raise TargetUnavailable(
            f"{line[0]} cannot be started ({exc.strerror}): use `harness windows install --from tree`"
        ) from exc
