"""A real ssh server on loopback with keys and configuration of its own: nothing of the user's is read or
written."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

_PRIVILEGE_SEPARATION = Path("/run/sshd")


class Server(NamedTuple):
    """A running server: the configuration for clients, in which it is called `loopback`, and its process."""

    config: Path
    pid: int


def missing() -> str | None:
    """Return why there can be no server here, or None."""
    if sys.platform == "win32":
        return "the server of these tests needs a POSIX system"
    lacking = [name for name in ("sshd", "ssh", "ssh-keygen") if _which(name) is None]
    return f"{', '.join(lacking)} is missing: install openssh-server and openssh-client" if lacking else None


def _which(name: str) -> str | None:
    return shutil.which(
        name, path=os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"])
    )


@contextmanager
def server(folder: Path) -> Iterator[Server]:
    """Run a server on a free port of 127.0.0.1 that lets this user in with a key made for it."""
    for name in ("host_key", "user_key"):
        subprocess.run(
            [_which("ssh-keygen") or "", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)],
            check=True,
        )
    shutil.copy(folder / "user_key.pub", folder / "authorized_keys")
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host_key\nAuthorizedKeysFile {folder}/authorized_keys\n"
        f"PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
        f"PermitRootLogin prohibit-password\nMaxStartups 100\nPrintMotd no\n",
        encoding="utf-8",
    )
    host_key = (folder / "host_key.pub").read_text(encoding="utf-8")
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {host_key}", encoding="utf-8")
    common = (
        f"  HostName 127.0.0.1\n  Port {port}\n  User {getpass.getuser()}\n  IdentitiesOnly yes\n  IdentityAgent none\n"
        f"  GlobalKnownHostsFile none\n"
    )
    config = folder / "ssh_config"
    config.write_text(
        f"Host loopback\n{common}  IdentityFile {folder}/user_key\n  UserKnownHostsFile {folder}/known_hosts\n"
        f"Host no-key\n{common}  IdentityFile {folder}/no_such_key\n  UserKnownHostsFile {folder}/known_hosts\n"
        f"Host strange-key\n{common}  IdentityFile {folder}/user_key\n  UserKnownHostsFile {folder}/none\n  StrictHostKeyChecking yes\n"
        f"Host nobody-listens\n  HostName 127.0.0.1\n  Port 9\n",
        encoding="utf-8",
    )
    made = False
    if os.getuid() == 0 and not _PRIVILEGE_SEPARATION.exists():
        _PRIVILEGE_SEPARATION.mkdir(mode=0o755)
        made = True
    command = [_which("sshd") or "", "-D", "-e", "-f", str(folder / "sshd_config")]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        _wait(process, port, folder / "log")
        yield Server(config, process.pid)
    finally:
        process.terminate()
        process.wait(60)
        if made:
            _PRIVILEGE_SEPARATION.rmdir()


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise RuntimeError(f"the ssh server did not start: {log.read_text(encoding='utf-8')}")
