"""Restricts targets that a run file names: anybody may have written the file, so it cannot choose what this
machine starts.

A host, an interpreter, a library, an option of a plugin's own or a script comes only from the command line.
The rest names a provider, a release and numbers: the same program on this machine whoever wrote the file.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from harness.model.errors import UsageError
from harness.targets.registry import parse_target, started_by
from harness.targets.target import Target


def recorded_target(path: Path, name: str, repeated: str | None) -> Target:
    """Parse a target from a run file; `repeated` is the target of the command line, None where the user named
    none.

    Raises UsageError for one that would start what the file chooses, and for what is no target, with the
    file's name.
    """
    if name == repeated:
        return parse_target(name)
    chosen = started_by(name)
    if chosen:
        raise UsageError(
            f"{path}: the {' and '.join(chosen)} of its target would be the file's choice; "
            f"if it is yours, repeat it: -t {shlex.quote(name)}"
        )
    try:
        return parse_target(name)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error
