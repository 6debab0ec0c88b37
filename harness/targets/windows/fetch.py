"""Finds the Debian mirror that this machine is configured with, and downloads pinned files from it, resuming
partial ones."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from harness.model.errors import TargetUnavailable, UsageError
from harness.model.plain_file import sha256_of
from harness.model.progress import ProgressStep, Steps
from harness.targets.windows.lock import DebianPackage

MIRROR_ENV = "HARNESS_DEBIAN_MIRROR"
SOURCES = ("/etc/apt/sources.list", "/etc/apt/sources.list.d")
APT_HELPER = "/usr/lib/apt/apt-helper"
BATCH = 24
_PART = ".part"
_TELL_EVERY = 0.5
"""Seconds between two looks at how much apt has downloaded."""
_DEBIAN_SUITE = re.compile(
    r"^(stretch|buster|bullseye|bookworm|trixie|forky|duke|sid|unstable|testing|stable|oldstable)(-security|/updates)?/?$"
)

Progress = Callable[["str | ProgressStep"], None]
note = Steps("windows runtime")
"""Tells the progress of an installation on stderr."""


class Mirrors(NamedTuple):
    """Base addresses of Debian's main and security archives, without a trailing slash."""

    main: str
    security: str

    def url(self, archive: str) -> str:
        """Return the base address of the archive called `main` or `security`."""
        return self.security if archive == "security" else self.main


def require_tool(name: str, remedy: str) -> str:
    """Return the path of a program; raises TargetUnavailable with the remedy where it is missing."""
    found = shutil.which(name)
    if found is None:
        raise TargetUnavailable(f"{name} is missing: {remedy}")
    return found


def find_mirrors(option: str | None = None, sources: Sequence[str] = SOURCES) -> Mirrors:
    """Return the mirrors named by an option, by the environment or by apt's own configuration, in this
    order."""
    named = option or os.environ.get(MIRROR_ENV)
    if named:
        main = named.rstrip("/")
        if not re.match(r"^(https?|file|ftp)://?\S+$", main):
            raise UsageError(f"{named!r} is not the address of a Debian mirror, such as scheme://host/debian")
        return Mirrors(main, f"{main}-security")
    main_found: str | None = None
    security_found: str | None = None
    for address, suite in configured_sources(sources):
        match = _DEBIAN_SUITE.match(suite)
        if match and match[2]:
            security_found = security_found or address
        elif match:
            main_found = main_found or address
    if main_found is None:
        raise TargetUnavailable(
            f"apt's configuration names no Debian mirror: give one with --mirror or {MIRROR_ENV}"
        )
    return Mirrors(main_found, security_found or f"{main_found}-security")


def configured_sources(sources: Sequence[str]) -> list[tuple[str, str]]:
    """Return (address, suite) of each binary source in apt's list and deb822 files."""
    found: list[tuple[str, str]] = []
    for place in map(Path, sources):
        for path in sorted(place.iterdir()) if place.is_dir() else [place] if place.is_file() else []:
            text = path.read_text(encoding="utf-8", errors="replace")
            if path.suffix == ".sources":
                for stanza in re.split(r"\n\s*\n", re.sub(r"(?m)^#.*\n?", "", text)):
                    fields = {
                        key.lower(): value
                        for key, value in re.findall(r"(?m)^([A-Za-z-]+):[ \t]*(.*(?:\n[ \t].*)*)", stanza)
                    }
                    if (
                        fields.get("enabled", "yes").strip().lower() != "no"
                        and "deb" in fields.get("types", "").split()
                    ):
                        found += [
                            (_plain(uri), suite)
                            for uri in fields.get("uris", "").split()
                            for suite in fields.get("suites", "").split()
                        ]
            elif path.suffix == ".list":
                found += [
                    (_plain(uri), suite)
                    for uri, suite in re.findall(r"(?m)^deb\s+(?:\[[^\]]*\]\s+)?(\S+)\s+(\S+)", text)
                ]
    return found


def _plain(uri: str) -> str:
    """Return a plain address for one that points to a file with a list of mirrors."""
    if uri.startswith("mirror+file:"):
        names = Path(uri.removeprefix("mirror+file:")).read_text().split()
        uri = names[0] if names else uri
    return uri.rstrip("/")


def fetch_packages(
    packages: Sequence[DebianPackage], mirrors: Mirrors, folder: Path, progress: Progress
) -> dict[str, Path]:
    """Download packages into a folder and return their paths by name; files with the right hash are kept.

    Raises TargetUnavailable when the mirror cannot be reached or no longer has a pinned version.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = {package.name: folder / f"{package.name}-{package.sha256[:12]}.deb" for package in packages}
    missing = [package for package in packages if not _is_complete(paths[package.name], package)]
    total, done = sum(package.size for package in missing), 0
    helper = APT_HELPER if os.access(APT_HELPER, os.X_OK) else None
    for start in range(0, len(missing), BATCH):
        batch = missing[start : start + BATCH]

        def tell(batch: Sequence[DebianPackage] = batch, done: int = done) -> None:
            here = sum(path.stat().st_size for package in batch for path in _own_files(paths[package.name]))
            progress(ProgressStep("downloading packages", min(done + here, total) >> 20, total >> 20, "MiB"))

        tell()
        if helper:
            _fetch_with_apt(
                helper,
                [(_address(package, mirrors), paths[package.name], package.sha256) for package in batch],
                tell,
            )
        for package in batch:
            if not helper:
                fetch_url(_address(package, mirrors), paths[package.name], package.size, tell)
            if not _is_complete(paths[package.name], package):
                paths[package.name].unlink(missing_ok=True)
                raise TargetUnavailable(
                    f"could not download {package.name} {package.version} with its pinned hash: check the network and the mirror, "
                    "then repeat `harness windows install`; a mirror that has moved on needs a newer lock (`harness windows lock`)"
                )
            done += package.size
    if missing:
        progress(ProgressStep("downloading packages", total >> 20, total >> 20, "MiB"))
    return paths


def _own_files(path: Path) -> list[Path]:
    """Return the file of a download that exists: the complete file, a growing one, or its part."""
    return [found for found in (path, path.with_name(path.name + _PART)) if found.is_file()]


def _address(package: DebianPackage, mirrors: Mirrors) -> str:
    return f"{mirrors.url(package.archive)}/{quote(package.path, safe='/+~')}"


def _is_complete(path: Path, package: DebianPackage) -> bool:
    return path.is_file() and path.stat().st_size == package.size and sha256_of(path) == package.sha256


def _fetch_with_apt(helper: str, wanted: Sequence[tuple[str, Path, str]], tell: Callable[[], None]) -> None:
    """Let apt download: it knows the machine's proxies, retries and resumes; the check of hashes finds
    missing files."""
    items = [part for address, path, sha256 in wanted for part in (address, str(path), f"SHA256:{sha256}")]
    options = ["-qq", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=2"]
    command = [helper, *options, "download-file", *items]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            while process.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_TELL_EVERY)
                tell()
        except BaseException:
            process.kill()
            raise


def fetch_url(address: str, path: Path, size: int, tell: Callable[[], None]) -> None:
    """Download one address, going on from a partial file of the same name with the suffix `.part`; `tell` is
    called now and then."""
    part = path.with_name(path.name + _PART)
    have = part.stat().st_size if part.exists() else 0
    if have >= size:
        part.unlink()
        have = 0
    request = urllib.request.Request(address, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        with (
            urllib.request.urlopen(request, timeout=60) as answer,
            part.open("ab" if have and answer.status == 206 else "wb") as file,
        ):
            while chunk := answer.read(1 << 20):
                file.write(chunk)
                tell()
    except OSError as exc:  # also urllib's own errors
        reason = getattr(exc, "reason", None) or exc
        if isinstance(exc, urllib.error.HTTPError):
            exc.close()
        raise TargetUnavailable(
            f"could not download {path.name}: {reason}; check the network and repeat, what is there is kept"
        ) from exc
    part.replace(path)
