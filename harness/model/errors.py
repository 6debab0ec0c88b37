"""Errors of the harness or of its input. The behaviour of a target is data and never raises one of these.

HarnessError            exit code
├── UsageError              2      a wrong option, query, run file or folder
│   └── SpecError           2      specs or expectations do not validate; carries every problem found
├── TargetUnavailable       3      a target named on the command line cannot run here
│   └── NodesLost           3      a cluster has no node left that could run it
├── NothingRan              4      no case, or fewer than `--min-cases`
└── HarnessFault            5      a defect or a broken installation of the harness itself, or a full disk
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar, Literal


class HarnessError(Exception):
    """Base of all errors that end a command; the message is one line a user can act on."""

    exit_code: ClassVar[int] = 5


class UsageError(HarnessError):
    """The command line, a file that it names, or the environment is wrong."""

    exit_code = 2


@contextmanager
def naming(path: object, what: Literal["read", "written"]) -> Iterator[None]:
    """Raise a UsageError that names a file or folder in place of an OSError: `PATH: cannot be read: why`."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path}: cannot be {what}: {error.strerror or error}") from error


class SpecError(UsageError):
    """Specs or expectations are wrong; `problems` holds one `file:line: path: what` line each."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))

    def __reduce__(self) -> tuple[type[SpecError], tuple[tuple[str, ...]]]:
        """Let it pass from another process to the first one."""
        return type(self), (self.problems,)


class TargetUnavailable(HarnessError):
    """A target that the user named cannot run on this machine."""

    exit_code = 3


class NodesLost(TargetUnavailable):
    """Every node of a cluster has gone."""


class NothingRan(HarnessError):
    """The selection is empty or smaller than `--min-cases`: 100 % of nothing is not a pass."""

    exit_code = 4


class HarnessFault(HarnessError):
    """The harness itself is at fault."""

    exit_code = 5


_LIMITS = {
    getattr(errno, name, None)
    for name in (
        "ENOSPC",
        "EDQUOT",
        "EMFILE",
        "ENFILE",
        "ENOMEM",
        "EAGAIN",
        "ENAMETOOLONG",
        "EROFS",
        "EFBIG",
        "EIO",
    )
}


def limit(error: BaseException) -> str | None:
    """Say which limit of the machine, or of its names, an error comes from; None for any other."""
    if isinstance(error, MemoryError):
        return "this machine gives no more memory"
    if isinstance(error, OSError) and error.errno in _LIMITS:
        return ": ".join(map(str, filter(None, (error.filename, error.strerror))))
    if isinstance(error, RuntimeError) and str(error) == "can't start new thread":
        return "this machine starts no more threads: allow more processes or memory (ulimit -u, ulimit -v)"
    if isinstance(error, UnicodeEncodeError) and error.reason == "surrogates not allowed":
        return (
            f"{shown(error.object)!r} is not text in UTF-8: rename the file, or set LANG to a locale of UTF-8"
        )
    return None


def shown(text: str, limit: int = 40) -> str:
    """Shorten what the user wrote so that it fits into the line of an error."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
