"""Builds command lines that run a program inside the private tree, with its own root, processes and network;
killing the launcher ends everything.

A tree without programs of its own shows the machine's /usr (`packages`).

The sandbox uses bubblewrap where it works, else util-linux' `unshare` with enter.py; both as an ordinary user.
The machine's root is detached, and no program inside has a capability or can gain one. Nothing inside can
write except to /prefix and /tmp (both in memory), the shader cache and what the caller binds writable. The
wine prefix is a read-only template: each sandbox links its drive and copies its registry, so that any number
of workers share one installation without seeing each other.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from shutil import which
from typing import NamedTuple

from harness.model.errors import TargetUnavailable
from harness.targets.programs import captured

WINE = "/usr/lib/wine/wine64"
WINESERVER = "/usr/lib/wine/wineserver64"
USR = "usr"
"""A link of this name beside a tree says which folder of the machine is shown as its /usr."""
CPU_FACTS = "sys/devices/system/cpu"
"""Where Wine reads which instructions and caches the processor has."""
MOUNT_POINTS = (
    "proc",
    "dev",
    "tmp",
    "prefix",
    "template",
    "shaders",
    "windows/python",
    "windows/numpy",
    "windows/onnxruntime",
    "windows/boot",
    CPU_FACTS,
)
MOUNT_FILES = ("windows/worker.py",)
TOOLS = ("bwrap", "unshare")
"""Programs that can make a sandbox, the preferred one first."""
ENVIRONMENT = {
    "PATH": "/usr/lib/wine:/usr/bin:/bin",
    "HOME": "/tmp",
    "XDG_RUNTIME_DIR": "/tmp",
    "LANG": "C.UTF-8",
    "WINEPREFIX": "/prefix",
    "WINESERVER": WINESERVER,
    "WINEDEBUG": "-all",
    "WINEDLLOVERRIDES": "mscoree,mshtml,winedbg.exe,winemenubuilder.exe=",
    "VK_DRIVER_FILES": "/usr/share/vulkan/icd.d/lvp_icd.json",
    "VKD3D_CONFIG": "virtual_heaps",  # the first session in 20 instead of 302 ms
    "VKD3D_DEBUG": "none",
    "VKD3D_SHADER_DEBUG": "none",
    "MESA_SHADER_CACHE_DIR": "/shaders",  # the first use of a shader in 25 instead of 300 ms
    "LP_NUM_THREADS": "0",  # tiny tensors: no thread pool in the software device
    "OPENBLAS_NUM_THREADS": "1",
}
_ENTER = Path(__file__).with_name("enter.py")
_BWRAP = (
    "bwrap", "--die-with-parent", "--new-session", "--unshare-all", "--unshare-user", "--uid", "0", "--gid", "0", "--cap-drop", "ALL",
)  # fmt: skip
# setpriv: the sandbox dies with the process that started it; --kill-child: and with the launcher itself
_UNSHARE = (
    "setpriv", "--pdeathsig", "KILL", "unshare", "--user", "--map-root-user", "--mount", "--pid", "--net", "--ipc", "--uts",
    "--fork", "--kill-child=KILL", "--",
)  # fmt: skip
_LINK_PREFIX = (
    "cp /template/*.reg /template/.update-timestamp /prefix/ && mkdir /prefix/dosdevices && ln -s /template/drive_c /prefix/drive_c"
    ' && ln -s ../drive_c /prefix/dosdevices/c: && ln -s / /prefix/dosdevices/z: && exec "$@"'
)
SYSCTLS = (
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),  # Ubuntu 23.10 and later
    ("kernel.unprivileged_userns_clone", "0", "1"),  # Debian's own
    ("user.max_user_namespaces", "0", "10000"),
)
"""Settings that forbid an ordinary user a user namespace: name, value that forbids, value that allows."""


class Bind(NamedTuple):
    """A file or folder of this machine and its absolute path inside."""

    source: Path
    inside: str
    writable: bool = False


@cache
def launcher() -> str:
    """Return `bwrap` or `unshare`, whichever works here; raises TargetUnavailable with the remedy when
    neither does."""
    for name in TOOLS:
        if works(name):
            return name
    raise TargetUnavailable(remedy())


def works(tool: str) -> bool:
    """Say whether a program of TOOLS is here and can make the namespaces and mounts of a sandbox."""
    with tempfile.TemporaryDirectory() as tree:
        for name in MOUNT_POINTS[:3]:
            Path(tree, name).mkdir()
        probe = (
            [*_BWRAP, "--ro-bind", "/", "/", "--proc", "/proc", "--remount-ro", "/proc", "true"]
            if tool == "bwrap"
            else _unshare(Path(tree), [], [], prefix_in_memory=False)
        )
        return which(probe[0]) is not None and captured(probe).returncode == 0


def remedy(settings: Path = Path("/proc/sys")) -> str:
    """Say in one line what forbids a user namespace on this machine, and the command that allows it."""
    for name, forbids, allows in SYSCTLS:
        try:
            value = (settings / name.replace(".", "/")).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if value == forbids:
            return f"{name}={value} forbids user namespaces on this machine; allow them with: sudo sysctl -w {name}={allows}"
    if not which("bwrap") and not which("setpriv"):
        return "bubblewrap, which separates Windows from this machine, is not installed; install the package bubblewrap"
    return (
        "neither bubblewrap nor unshare can make a user namespace here, as in a chroot or in a container without the right to: start the "
        "container with --security-opt seccomp=unconfined, or run the harness outside of it"
    )


def command(
    root: Path,
    argv: Sequence[str],
    binds: Sequence[Bind],
    *,
    template: Path | None,
    prefix: Path | None = None,
    tool: str | None = None,
) -> list[str]:
    """Return the command that runs `argv` in the tree at `root`.

    With a `template` each run gets its own prefix in memory; with a `prefix` that folder itself is written
    to, which is how the template is made. Killing the process that this command starts, or its parent's
    death, ends everything inside.
    """
    shown = [Bind((files_of(root) / USR).readlink(), f"/{USR}")] if files_of(root) != root else []
    binds = [*shown, Bind(Path("/", CPU_FACTS), f"/{CPU_FACTS}"), *binds]
    environment = ["/usr/bin/env", "-i", *(f"{key}={value}" for key, value in ENVIRONMENT.items())]
    if template is not None:
        binds.append(Bind(template, "/template"))
        inner = [*environment, "/bin/sh", "-c", _LINK_PREFIX, "sh", *argv]
    else:
        assert prefix is not None
        binds.append(Bind(prefix, "/prefix", writable=True))
        inner = [*environment, *argv]
    build = _bwrap if (tool or launcher()) == "bwrap" else _unshare
    return build(root, inner, binds, prefix_in_memory=template is not None)


def files_of(root: Path) -> Path:
    """Return the folder whose `usr` a sandbox of this tree mounts as /usr."""
    return root.parent if root.with_name(USR).is_symlink() else root


def _bwrap(root: Path, inner: Sequence[str], binds: Sequence[Bind], *, prefix_in_memory: bool) -> list[str]:
    line = [*_BWRAP, "--ro-bind", str(root), "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]
    if prefix_in_memory:
        line += ["--tmpfs", "/prefix"]
    for bind in binds:
        line += ["--bind" if bind.writable else "--ro-bind", str(bind.source), bind.inside]
    return [*line, "--remount-ro", "/proc", "--chdir", "/tmp", "--", *inner]


def _unshare(root: Path, inner: Sequence[str], binds: Sequence[Bind], *, prefix_in_memory: bool) -> list[str]:
    mounts = [
        *([(None, "/prefix", True)] if prefix_in_memory else []),
        *((str(source), *rest) for source, *rest in binds),
    ]
    return [*_UNSHARE, sys.executable, "-I", "-S", str(_ENTER), str(root), json.dumps(mounts), *inner]
