"""Which release a text such as `1.22`, `1.22.1` or `ggml@0.2.0` asks for, and which ones are near it."""

from __future__ import annotations

from collections.abc import Sequence

from packaging.version import InvalidVersion, Version

from harness.model.errors import UsageError
from harness.targets.runtimes.projects import ONNXRUNTIME, PLUGINS, Project


def parse_version(text: str, project: Project = ONNXRUNTIME) -> Version:
    """Parse a release such as `1.22.1`, or `1.22` for the newest 1.22.x. Errors: UsageError for any other
    text."""
    version = version_of(text)
    if (
        version is None
        or version.local
        or version.is_devrelease
        or not text[0].isdigit()
        or len(version.release) < 2
    ):
        example = "1.22.1" if project is ONNXRUNTIME else "0.2.0"
        raise UsageError(f"{text!r} is no release of {project.name}; write for example {example}")
    return version


def parse_label(text: str) -> tuple[Project, str | None]:
    """Parse how commands call an environment: `1.22.1`, `ggml@0.2.0`, or `ggml` for its newest release; raise
    UsageError for others."""
    name, at, version = text.partition("@")
    project = PLUGINS.get(name)
    if project is None:
        parse_version(text)
        return ONNXRUNTIME, text
    if at:
        parse_version(version, project)
    return project, version if at else None


def version_of(text: str) -> Version | None:
    """Return the version that a text stands for, None if it is none."""
    try:
        return Version(text)
    except InvalidVersion:
        return None


def fitting(wanted: Version | None, versions: Sequence[Version]) -> list[Version]:
    """Return the versions that a wanted one stands for; `1.22` stands for every stable 1.22.x, None for every
    stable one."""
    if wanted is None:
        return [version for version in versions if not version.is_prerelease]
    if is_exact(wanted):
        return [version for version in versions if version == wanted]
    return [
        version for version in versions if version.release[:2] == wanted.release and not version.is_prerelease
    ]


def is_exact(wanted: Version) -> bool:
    """Say whether a wanted version stands for itself alone."""
    return len(wanted.release) > 2 or wanted.is_prerelease


def near(wanted: Version, versions: set[Version]) -> list[Version]:
    """Return the four versions around a wanted one, oldest first."""
    ordered = sorted(version for version in versions if not version.is_prerelease)
    place = sum(version < wanted for version in ordered)
    start = max(0, min(place - 2, len(ordered) - 4))
    return ordered[start : start + 4]
