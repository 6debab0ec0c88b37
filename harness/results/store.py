"""Runs as columns in an object store or on a web server, which fsspec opens by their URLs. Only commands that are given a
URL load this module."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any
from urllib.parse import urlsplit

from harness.model.errors import UsageError
from harness.results.columns import SUFFIX, Stored, public

try:
    from fsspec import AbstractFileSystem, url_to_fs
except ImportError as error:
    raise UsageError(
        "a URL of runs needs fsspec: python -m pip install 'onnxruntime-conformance-harness[objects]'"
    ) from error


class Store(AbstractFileSystem):  # type: ignore[misc] # untyped
    """The files that were found, as a filesystem of DuckDB: SQL reaches nothing beside them."""

    protocol = "run"
    cachable = False

    def __init__(self) -> None:
        """Begin without a file."""
        super().__init__()
        self._found: dict[str, tuple[Any, str, Stored]] = {}

    def below(self, url: str) -> list[Stored]:
        """Find the file of columns that a URL names, or those at any depth below it. Errors: UsageError where they cannot
        be listed."""
        found = []
        with _one_line(url):
            filesystem, root = url_to_fs(url)
            one = urlsplit(url).path.endswith(SUFFIX)
            for path in [root] if one else filesystem.find(root):
                if one or path.endswith(SUFFIX):
                    name, size = f"{self.protocol}://{len(self._found)}", filesystem.info(path)["size"]
                    found.append(Stored(url if one else filesystem.unstrip_protocol(path), name, size, self))
                    self._found[name] = filesystem, path, found[-1]
        return found

    def glob(self, path: str, **_: Any) -> list[str]:
        """Return a name: each is its own pattern."""
        return [path]

    def size(self, path: str) -> int:
        """Return how many bytes a file had when it was found."""
        return self._found[path][2].size

    def modified(self, path: str) -> datetime:
        """Return one time for all: a file is as it was found."""
        return datetime.fromtimestamp(0, timezone.utc)

    def end(self, path: str) -> bytes:
        """Return the last eight bytes of a file. Errors: UsageError."""
        stored = self._found[path][2]
        # `cat_file` would read the whole file where a server knows no ranges
        with _one_line(stored.url), self.open(path) as file:
            file.seek(max(0, stored.size - 8))
            return bytes(file.read(8))

    def open(self, path: str, mode: str = "rb", **_: Any) -> Any:
        """Open a file to read what is asked of it and no more."""
        filesystem, of_store = self._found[path][:2]
        return filesystem.open(of_store, mode="rb", cache_type="none")


@contextlib.contextmanager
def _one_line(url: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # each filesystem has its own
        # fsspec raises FileNotFoundError for a server that does not answer, too
        first = error.__cause__ or error if isinstance(error, FileNotFoundError) else error
        absent = isinstance(first, FileNotFoundError) or getattr(first, "status", 0) == 404
        said = public(str(first).partition("\n")[0]) or type(first).__name__
        raise UsageError(
            f"{public(url)}: {'does not exist' if absent else f'cannot be read: {said}'}"
        ) from error
