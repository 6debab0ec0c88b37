"""A connection to a SQLite file that anybody may have written or damaged: limits the work by the file's size,
and accepts only the expected tables.

A damaged tree of pages can lead back into itself, and then has more rows than there are bytes; a manipulated
file can replace a table by a view that never ends.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

from harness.model.errors import UsageError

_STEP = 1000
_STEPS = 500_000
_STEPS_A_BYTE = 4
"""Steps of SQLite's machine for a byte of the file: reading a whole history takes 0.4, adding to one 1.2."""
_STEPS_A_RESULT = 1000
_LONGEST_VALUE = 64 << 20
_LIMIT_LENGTH = getattr(sqlite3, "SQLITE_LIMIT_LENGTH", 0)


class NoHistory(UsageError):
    """The database cannot be used; what was to be added to it is not at fault."""


class BoundedConnection:
    """A connection; `path` None is SQLite's own temporary database. Errors of SQLite within `told` are
    NoHistory."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._left = 0
        self._exhausted = False
        if path is not None:
            with contextlib.suppress(OSError, ValueError):
                if not stat.S_ISREG(path.stat().st_mode):
                    raise NoHistory(
                        f"{path}: is no regular file: save it as one, or name a file that does not exist yet"
                    )
        with self.told():
            self.sql = sqlite3.connect("" if path is None else path, isolation_level=None, timeout=5)
            if path is not None:
                self.sql.set_progress_handler(self._tick, _STEP)
                self.sql.execute("PRAGMA trusted_schema = OFF")
                if hasattr(self.sql, "setlimit"):
                    self.sql.setlimit(_LIMIT_LENGTH, _LONGEST_VALUE)

    @contextlib.contextmanager
    def told(self, results: int = 0) -> Iterator[None]:
        """Turn the database's errors into one line; what is done within may take as long as file and so many
        new results explain."""
        size = 0
        if self._path is not None:
            with contextlib.suppress(OSError):
                size = os.stat(self._path).st_size
        self._left = _STEPS + _STEPS_A_BYTE * size + _STEPS_A_RESULT * results
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            why = "it leads back into itself; make it anew from the runs" if self._exhausted else error
            raise NoHistory(
                f"{self._path or 'the temporary database'}: cannot be used as a history: {why}"
            ) from error

    def _tick(self) -> bool:
        self._left -= _STEP
        self._exhausted = self._exhausted or self._left < 0
        return self._exhausted

    def tables(self) -> set[str]:
        """Return the statements that made everything in the database, their white space as single spaces."""
        made = self.sql.execute(
            "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_autoindex_%'"
        )
        return {" ".join(str(sql).split()) for _, _, sql in made}


def statements(script: str) -> set[str]:
    """Return the statements of a script that makes tables as `BoundedConnection.tables` does."""
    return {text for part in script.split(";") if (text := " ".join(part.split()))}
