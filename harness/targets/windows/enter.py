"""Makes a sandbox in the namespaces that `unshare` made, enters it for good and runs a program there:
python -I -S enter.py TREE JSON PROGRAM [argument …]; without a program it only tries.

JSON lists the mounts after /proc, /dev and /tmp: [source, path inside, writable], source null for memory. The machine's
root is detached. No capability remains, and no program that is run inside can gain one. Standard library and x86-64 Linux only.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys

_NOSUID, _NOEXEC, _RDONLY, _BIND, _RECURSIVE = 2, 8, 1, 4096, 16384
_DETACH = 2
_CAPBSET_DROP, _SET_NO_NEW_PRIVS = 24, 38
_PIVOT_ROOT, _MOUNT_SETATTR = 155, 442
_HERE, _AT_RECURSIVE = -100, 0x8000
_DEVICES = ("null", "zero", "full", "random", "urandom")
_LIBC = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: int | str | bytes | None) -> None:
    """Call a function of the C library; an OSError names it."""
    passed = [
        ctypes.c_long(each) if isinstance(each, int) else each and os.fsencode(each) for each in arguments
    ]
    if getattr(_LIBC, name)(*passed) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), name)


def _mount(kind: str, inside: str, flags: int = 0, options: str = "") -> None:
    _call("mount", kind, inside, kind, flags | _NOSUID, options)


def _bind(source: str, inside: str, *, writable: bool = False) -> None:
    if not os.path.lexists(inside):  # in memory; the tree itself has its mount points
        open(inside, "xb").close()
    _call("mount", source, inside, None, _BIND | _RECURSIVE, None)
    if not writable:  # nor what is mounted below
        attributes = _RDONLY.to_bytes(8, "little") + bytes(24)
        _call("syscall", _MOUNT_SETATTR, _HERE, inside, _AT_RECURSIVE, attributes, len(attributes))


def main(tree: str, mounts: str, *program: str) -> None:
    """Leave the machine for a tree and run the program there."""
    _bind(tree, tree)
    os.chdir(tree)
    _mount("proc", "proc", _RDONLY | _NOEXEC)
    _mount("tmpfs", "dev", 0, "mode=755")
    for device in _DEVICES:
        _bind(f"/dev/{device}", f"dev/{device}", writable=True)
    _mount("tmpfs", "tmp", 0, "mode=1777")
    for source, inside, writable in json.loads(mounts):
        if source is None:
            _mount("tmpfs", inside.lstrip("/"), 0, "mode=700")
        else:
            _bind(source, inside.lstrip("/"), writable=writable)
    _call("syscall", _PIVOT_ROOT, ".", ".")  # the machine's root now lies over the tree
    _call("umount2", ".", _DETACH)
    os.chdir("/tmp")
    with open("/proc/sys/kernel/cap_last_cap", "rb") as last:
        for capability in range(int(last.read()) + 1):
            _call("prctl", _CAPBSET_DROP, capability, 0, 0, 0)
    _call("prctl", _SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    os.setsid()  # away from the terminal
    if program:  # which starts without a capability, since none can be had
        os.execv(program[0], program)


if __name__ == "__main__":
    main(*sys.argv[1:])
