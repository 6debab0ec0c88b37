"""Runs the worker on another machine, over ssh: it needs only Python and an onnxruntime there, and leaves no
file.

The command line carries only a line reader, in a form that cmd.exe, PowerShell and POSIX shells read alike;
the program follows on stdin.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import zlib
from functools import cache
from pathlib import Path
from typing import NamedTuple

from harness.model.errors import TargetUnavailable, UsageError

CONFIG_ENV = "HARNESS_SSH_CONFIG"
"""Names a configuration file for ssh, in place of the user's own."""
START_SECONDS = 90.0
# no quote of either kind, no dollar, backslash or percent sign; and it reads no byte beyond the first line
_READ_LINE = "import sys;exec(sys.stdin.buffer.raw.readline())"
_LOADER = """\
import json, os, sys, zlib
if sys.platform == "win32":
    import msvcrt
    msvcrt.setmode(0, os.O_BINARY)
data = b""
while len(data) < {size}:
    more = os.read(0, {size} - len(data))
    if not more:
        os._exit(1)
    data += more
sources = json.loads(zlib.decompress(data).decode())
exec(compile(sources["remote_boot"], "remote_boot.py", "exec", dont_inherit=True), {{"__name__": "__main__", "sources": sources}})
"""
_OPTIONS = (
    "BatchMode=yes",
    "ConnectTimeout=20",
    "ServerAliveInterval=15",
    "ServerAliveCountMax=3",
    "Compression=no",
    "RequestTTY=no",
    "RemoteCommand=none",
    "ControlMaster=no",
    "ControlPath=none",
    "ForwardAgent=no",
    "ForwardX11=no",
    "ClearAllForwardings=yes",
)
_WINDOWS_MODULES = ("boot", "com", "device", "winecompat")
_NAME = r"\w(?:[\w.+-]*\w)?"
_HOST = rf"(?:ssh://)?(?:{_NAME}@)?(?:{_NAME}|\[[0-9A-Fa-f:.]+(?:%\w+)?\]|[0-9A-Fa-f:.]+(?:%\w+)?)(?::[0-9]{{1,5}})?/?"
"""A name or an address, an IPv6 one in brackets or not, after a user, before a port."""
_SSH_FAILED = "exit code 255"
_LOST = (
    "client_loop:",
    "Timeout, server",
    "Connection to",
    "Connection reset",
    "Connection closed",
    "packet_write",
    "Broken pipe",
)
_REMEDIES = {
    "resolve hostname": "check the name, or add it to ssh's configuration",
    "Permission denied": "ssh must log in without asking: install a key there (ssh-copy-id) or start ssh-agent",
    "Host key verification": "log in once by hand and accept the machine's key",
    "Connection refused": "start an ssh server there",
    "timed out": "check that the machine is on and reachable",
    "No route": "check that the machine is on and reachable",
}


class Ssh(NamedTuple):
    """What the pool has to know about workers behind a connection: how to put their failures."""

    host: str
    python: str
    wheel: str

    def refusal(self, how: str, printed: str) -> str:
        """Say in one line why no worker greeted, and what to do."""
        last = printed.splitlines()[-1].strip() if printed else ""
        if last.startswith("harness: "):
            reason = last.removeprefix("harness: ")
            return f"ssh:{self.host}: {reason}; install it there ({self.python} -m pip install {self.wheel}) or choose another python=…"
        if how.startswith("garbled frames"):
            return f"ssh:{self.host} prints something before the worker starts ({how}); silence its shell's start-up files"
        if how.startswith("no greeting"):
            return (
                f"ssh:{self.host}: {how}: {last or 'the machine is busy, or its Python waits for something'}"
            )
        if how == _SSH_FAILED:
            remedy = next((remedy for words, remedy in _REMEDIES.items() if words in last), "")
            return f"ssh:{self.host} cannot be reached: {last or how}; {remedy or f'try: ssh -o BatchMode=yes {self.host}'}"
        remedy = "install Python 3.8 or later there or name it with python=…"
        return f"ssh:{self.host}: {self.python!r} did not start ({last or how}); {remedy}"

    def final(self, how: str, printed: str) -> bool:
        """Say whether ssh or the machine has answered, so that asking again would be answered alike."""
        last = printed.splitlines()[-1] if printed else ""
        if how == _SSH_FAILED:
            return any(words in last for words in _REMEDIES)
        return not how.startswith(("SIG", "signal"))

    def broken(self, how: str, printed: str) -> bool:
        """Say whether the connection ended, and not the worker."""
        last = printed.splitlines()[-1] if printed else ""
        return how == _SSH_FAILED and any(words in last for words in _LOST)


def check_host(host: str) -> str:
    """Return a host as ssh takes it; raise UsageError for what could be an option to ssh, or mean something
    to a shell."""
    if not re.fullmatch(_HOST, host):
        raise UsageError(
            f"target: {host!r} is not a host; write for instance cpu@ssh:user@pc or cpu@ssh:ssh://user@pc:2222"
        )
    return host


def command(host: str, python: str) -> list[str]:
    """Return the command that starts an interpreter there, which then reads `program()` from stdin."""
    ssh = shutil.which("ssh")
    if ssh is None:
        raise TargetUnavailable(f"target ssh:{host}: there is no ssh here; install openssh-client")
    config = os.environ.get(CONFIG_ENV)
    options = [part for option in _OPTIONS for part in ("-o", option)]
    return [ssh, *(("-F", config) if config else ()), *options, "-T", "--", host, interpreter(python)]


def interpreter(python: str) -> str:
    """Return the command line of an interpreter that runs the first line of its stdin, for any shell."""
    return f'{python} -c "{_READ_LINE}"'


@cache
def program() -> bytes:
    """Return what goes to the interpreter's stdin before the first frame: one line, and the sources that it
    reads."""
    here = Path(__file__).resolve().parent.parent / "worker"
    files = {name: here / f"{name}.py" for name in ("remote_boot", "worker")}
    files.update((name, here / "windows" / f"{name}.py") for name in _WINDOWS_MODULES)
    sources = {name: path.read_text(encoding="utf-8") for name, path in files.items()}
    packed = zlib.compress(json.dumps(sources).encode(), 9)
    return f"exec({_LOADER.format(size=len(packed))!r})\n".encode() + packed
