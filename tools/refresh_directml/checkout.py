"""A git checkout: its files at a revision."""

from __future__ import annotations

import subprocess
from pathlib import Path


class Checkout:
    """A repository on disk, read at one revision; `name` says where it is published."""

    def __init__(self, path: Path, name: str, revision: str = "HEAD") -> None:
        """Look the revision up; subprocess.CalledProcessError where `path` is no checkout of it."""
        self.path, self.name = path, name
        self.commit = self._git("rev-parse", revision).strip()
        self.date = self._git("log", "-1", "--format=%cs", self.commit).strip()

    def _git(self, *arguments: str) -> str:
        ended = subprocess.run(["git", "-C", str(self.path), *arguments], check=True, capture_output=True)
        return ended.stdout.decode("utf-8", "replace")

    def names(self, folder: str) -> list[str]:
        """Return the paths of all files below a folder."""
        return self._git("ls-tree", "-r", "--name-only", self.commit, "--", folder).splitlines()

    def text(self, name: str) -> str:
        """Return a file's text with plain line ends."""
        return self._git("show", f"{self.commit}:{name}").replace("\r\n", "\n").lstrip("\ufeff")

    def source(self, path: str = "") -> str:
        """Write where a fact was read: `owner/name:path@commit (date)`."""
        return f"{self.name}{':' + path if path else ''}@{self.commit} ({self.date})"
