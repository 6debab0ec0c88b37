"""Builds the private tree: unpacks Debian packages without root or maintainer scripts, and makes the wine
prefix from it."""

from __future__ import annotations

import filecmp
import os
import re
import shutil
import tarfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

from harness.model.errors import HarnessFault
from harness.model.progress import ProgressStep
from harness.targets.programs import captured, last_line
from harness.targets.windows.fetch import Progress
from harness.targets.windows.sandbox import MOUNT_FILES, MOUNT_POINTS, WINE, command, files_of

UNIX_LIBRARIES = "usr/lib/x86_64-linux-gnu/wine/x86_64-unix"
WINDOWS_DLLS = "usr/lib/x86_64-linux-gnu/wine/x86_64-windows"
_LEFT_OUT = re.compile(
    r"usr/share/(doc|man|locale|lintian|bug|info|icons|mime|help|gnome|bash-completion|iso-codes|zoneinfo|X11|fonts)/"
    r"|usr/lib/x86_64-linux-gnu/wine/i386|usr/lib/x86_64-linux-gnu/libvulkan_(?!lvp)|usr/lib/x86_64-linux-gnu/(dri|gconv)/"
)
_MERGED = re.compile(r"^(bin|sbin|lib|lib64)(?=/|$)")


def unpack(packages: Sequence[Path], root: Path, progress: Progress) -> None:
    """Unpack .deb files into a tree with merged /usr, without documentation and files that no worker opens."""
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    ordered = sorted(packages, key=lambda path: path.stat().st_size, reverse=True)
    sizes = [path.stat().st_size for path in ordered]
    with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
        done = 0
        for size, _ in zip(sizes, pool.map(lambda path: unpack_package(path, root), ordered), strict=True):
            done += size
            progress(ProgressStep("unpacking packages", done >> 20, sum(sizes) >> 20, "MiB"))
    make_mount_points(root)
    _mark_zlib(root)


def make_mount_points(root: Path) -> None:
    """Make the places at which the sandbox mounts, and the one user."""
    for name in MOUNT_POINTS:
        (root / name).mkdir(parents=True, exist_ok=True)
    for name in MOUNT_FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    (root / "etc").mkdir(exist_ok=True)
    (root / "etc/passwd").write_text("root:x:0:0:root:/tmp:/bin/sh\n")


def unpack_package(package: Path, root: Path) -> None:
    """Unpack the files of one .deb, an ar archive that holds a compressed tar archive."""
    with package.open("rb") as file:
        if file.read(8) != b"!<arch>\n":
            raise HarnessFault(f"{package.name} is no Debian package")
        while header := file.read(60):
            size = int(header[48:58])
            if header[:8] == b"data.tar":
                with tarfile.open(fileobj=file, mode="r|*") as archive:
                    for member in archive:
                        _place(archive, member, root)
                return
            file.seek(size + size % 2, os.SEEK_CUR)
    raise HarnessFault(f"{package.name} holds no files")


def _place(archive: tarfile.TarFile, member: tarfile.TarInfo, root: Path) -> None:
    """Write one member of a package into the tree."""
    name = _MERGED.sub(r"usr/\1", member.name.removeprefix("./").rstrip("/"))
    if not name or name == "." or _LEFT_OUT.match(name + "/"):
        return
    path = root / name
    if ".." in path.parts or not os.path.realpath(path.parent).startswith(os.path.realpath(root)):
        raise HarnessFault(f"a package wants to write outside of its tree: {member.name}")
    if member.isdir():
        path.mkdir(parents=True, exist_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(path):
        if path.is_dir() and not path.is_symlink():
            return
        path.unlink()
    if member.issym():
        path.symlink_to(member.linkname)
    elif member.islnk():
        os.link(root / _MERGED.sub(r"usr/\1", member.linkname.removeprefix("./")), path)
    elif member.isfile():
        source: IO[bytes] | None = archive.extractfile(member)
        assert source is not None
        with path.open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
        path.chmod(member.mode & 0o777 | 0o600)
        os.utime(path, (member.mtime, member.mtime))


def _mark_zlib(root: Path) -> None:
    """Repeat the one step of libwine's installation script that matters: mark zlib1.dll as a Wine builtin."""
    data = (root / "usr/x86_64-w64-mingw32/lib/zlib1.dll").read_bytes()
    marked = data[:64] + b"Wine builtin DLL".ljust(32, b"\0") + data[96:]
    target = root / WINDOWS_DLLS / "zlib1.dll"
    target.unlink(missing_ok=True)
    target.write_bytes(marked)


def make_prefix(root: Path, prefix: Path) -> None:
    """Let Wine make its prefix, then replace DLLs that equal the tree's by links to them (772 MB become
    19)."""
    prefix.mkdir()
    script = f"{WINE} wineboot -i && {WINE} reg add 'HKCU\\Environment' /v TEMP /d 'Z:\\tmp' /f && "
    script += f"{WINE} reg add 'HKCU\\Environment' /v TMP /d 'Z:\\tmp' /f && $WINESERVER -w"
    line = command(root, ["/bin/sh", "-c", script], [], template=None, prefix=prefix)
    done = captured(line, timeout=300)
    if done.returncode or not (prefix / "system.reg").is_file():
        raise HarnessFault(f"Wine could not make its prefix (exit code {done.returncode}): {last_line(done)}")
    link_identical(prefix / "drive_c/windows", files_of(root) / WINDOWS_DLLS, f"/{WINDOWS_DLLS}")


def link_identical(folder: Path, originals: Path, inside: str) -> int:
    """Replace files that equal the original of the same name by links to its path inside the sandbox; return
    how many."""
    linked = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            path, original = Path(parent, name), originals / name
            if not path.is_symlink() and original.is_file() and filecmp.cmp(path, original, shallow=False):
                path.unlink()
                path.symlink_to(f"{inside}/{name}")
                linked += 1
    return linked
