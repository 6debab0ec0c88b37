"""The onnxruntime-directml releases that run here, with the DirectML, feature level, Windows Python and NumPy
of each.

In `releases.json` the DirectML version is the version resource of the DLL inside the wheel, `level` the
maximum that Microsoft's history gives that version, and `answers` the maximum that the DLL itself reported
when it ran here. They differ for DirectML 1.9, which is documented with 5_1 and answers 5_0. Releases before
1.10 need a decompressor that Wine lacks.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import msgspec
from packaging.version import InvalidVersion, Version

from harness.model.errors import UsageError


class DirectmlRelease(msgspec.Struct, frozen=True):
    """One onnxruntime-directml release; `level` is the documented and `answers` the measured maximum level of
    its DirectML.dll."""

    onnxruntime: str
    directml: str
    level: str
    answers: str
    python: str
    numpy: str


@cache
def releases() -> tuple[DirectmlRelease, ...]:
    """Return all releases that run, oldest first."""
    rows = msgspec.json.decode(
        files("harness.targets.windows").joinpath("releases.json").read_bytes(),
        type=tuple[DirectmlRelease, ...],
    )
    return tuple(sorted(rows, key=lambda row: Version(row.onnxruntime)))


def default_release() -> DirectmlRelease:
    """Return the newest release."""
    return releases()[-1]


def release(version: str | None = None) -> DirectmlRelease:
    """Return the release with an exact version, `1.22` standing for the newest 1.22.x, or the newest of all
    for None."""
    if version is None:
        return default_release()
    try:
        wanted = Version(version).release
    except InvalidVersion:
        wanted = ()
    for row in reversed(releases()):
        if wanted and Version(row.onnxruntime).release[: max(len(wanted), 2)] == wanted:
            return row
    known = ", ".join(row.onnxruntime for row in releases())
    raise UsageError(
        f"onnxruntime-directml {version!r} is not a release that runs here; those that do: {known}"
    )


def usable_levels() -> tuple[str, ...]:
    """Return the feature levels that some release is documented with as its maximum, lowest first."""
    return tuple(
        sorted({row.level for row in releases()}, key=lambda level: tuple(map(int, level.split("_"))))
    )


def release_for_level(level: str) -> DirectmlRelease:
    """Return the newest release whose DirectML.dll is documented with exactly this maximum level.

    A minimum level asked of a newer DLL restricts nothing, so a level is tested with the DLL that ends there.
    """
    for row in reversed(releases()):
        if row.level == level:
            return row
    usable = usable_levels()
    meant = level.replace(".", "_")
    if meant in usable:
        raise UsageError(f"no level {level!r}; did you mean 'level-{meant}'?")
    raise UsageError(
        f"no usable release has {level} as its maximum level (documented, not run); usable: {', '.join(usable)}"
    )
