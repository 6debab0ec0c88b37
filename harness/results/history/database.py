"""Stores many runs in one SQLite database: a row of three integers for each result, everything else once.

Without a file the database is SQLite's own temporary one: in memory up to `CACHE`, and beyond that in a file
that is removed at the end.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import msgspec

from harness.model.case import BEYOND, Validity
from harness.model.errors import UsageError
from harness.model.header import Header
from harness.model.plain_file import PlainFile
from harness.model.result import Result, inexpressible
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome, Reading
from harness.results.compare.comparison import twice
from harness.results.runfile import RunReader
from harness.results.summary import missing

APPLICATION = 0x4F52_5448
"""What marks a file as a history, in SQLite's `application_id`."""
VERSION = 2
CACHE = 64 << 20
"""Bytes of the database that are kept in memory."""
INVALID = "invalid"
"""Stands in place of a level for the cases that the specification forbids."""
UNSPECIFIED = "unspecified"
"""The same for those that it leaves open."""
_KNOWN = 100_000
_ERROR = 200
_TOGETHER = 1000
_TABLES = """
CREATE TABLE runs (no INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, header BLOB NOT NULL, whole INTEGER NOT NULL);
CREATE TABLE points (no INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs, target TEXT NOT NULL);
CREATE TABLE cases (no INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE TABLE states (
    no INTEGER PRIMARY KEY, validity TEXT NOT NULL, outcome TEXT NOT NULL, error TEXT NOT NULL, reading TEXT NOT NULL,
    UNIQUE (validity, outcome, error, reading)
);
CREATE TABLE results (
    case_no INTEGER NOT NULL, point INTEGER NOT NULL, state INTEGER NOT NULL, PRIMARY KEY (case_no, point)
) WITHOUT ROWID;
CREATE TABLE counts (
    point INTEGER NOT NULL, level TEXT NOT NULL, reading TEXT NOT NULL, number INTEGER NOT NULL,
    PRIMARY KEY (point, level, reading)
) WITHOUT ROWID;
"""


class NoHistory(UsageError):
    """The database cannot be used; what was to be added to it is not at fault."""


class RecordedResult(NamedTuple):
    """What a target did with a case in one run."""

    validity: Validity
    outcome: Outcome
    error: str
    """The error's class, or empty."""


class Rate(NamedTuple):
    """Results that are correct, of those that are judged."""

    correct: int
    judged: int


def rate_of(readings: Mapping[Reading, int]) -> Rate:
    """Return which part of these results is correct."""
    judged = sum(number for reading, number in readings.items() if reading is not Reading.NOT_JUDGED)
    return Rate(readings.get(Reading.CORRECT, 0), judged)


class Point(NamedTuple):
    """One target of one run; `whole` is False for a run that was cut off, or merged without a shard. `counts` are by level and reading, of
    valid cases and of those that are `INVALID` or `UNSPECIFIED`."""

    number: int
    header: Header
    whole: bool
    target: str
    counts: dict[str, dict[Reading, int]]

    @property
    def rates(self) -> dict[str, Rate]:
        """The rates by level, and of `INVALID` cases."""
        return {level: rate_of(of) for level, of in self.counts.items() if level != UNSPECIFIED}

    @property
    def readings(self) -> Counter[Reading]:
        """How many results have each reading."""
        total: Counter[Reading] = Counter()
        for of in self.counts.values():
            total.update(of)
        return total

    @property
    def info(self) -> TargetInfo:
        return self.header.targets[self.target]


class Added(NamedTuple):
    """What `HistoryDatabase.add` did with a run: `known` means that it was in the database already."""

    run_id: str
    known: bool
    whole: bool


class HistoryDatabase:
    """Runs and their results. Errors: NoHistory for a file that is no history, or cannot be read or
    written."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        with self._one_line():
            if path is not None and path.exists():
                PlainFile(path).close()  # a pipe or device would block
            self._sql = sqlite3.connect("" if path is None else path, isolation_level=None, timeout=5)
            try:
                self._open()
            except BaseException:
                self._sql.close()
                raise
        self._cases: dict[str, int] = {}
        self._states: dict[tuple[object, ...], int] = {}

    def _open(self) -> None:
        sql = self._sql
        marks = (
            sql.execute("PRAGMA application_id").fetchone()[0],
            sql.execute("PRAGMA user_version").fetchone()[0],
        )
        if marks == (0, 0) and not sql.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            sql.executescript(
                f"BEGIN IMMEDIATE; {_TABLES} PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}; COMMIT;"
            )
        elif marks[0] != APPLICATION:
            raise NoHistory(
                f"{self.path}: a database of another program; name a file that does not exist yet, or a history's"
            )
        elif marks[1] != VERSION:
            raise NoHistory(
                f"{self.path}: a history of version {marks[1]}; this harness reads {VERSION}: make it anew from the runs"
            )
        elif self._tables() != {" ".join(each.split()) for each in _TABLES.split(";") if each.strip()}:
            raise NoHistory(
                f"{self.path}: damaged history: its tables are not those of a history; make it anew from the runs"
            )
        elif sql.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise NoHistory(
                f"{self.path}: damaged history: pages are lost or linked twice; make it anew from the runs"
            )
        sql.execute(f"PRAGMA cache_size = -{CACHE >> 10}")

    def _tables(self) -> set[str]:
        """Return the statements that made the tables; a view in place of one may never end."""
        made = self._sql.execute("SELECT sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_autoindex_%'")
        return {" ".join(str(sql).split()) for (sql,) in made}

    @contextlib.contextmanager
    def _one_line(self) -> Iterator[None]:
        """Turn errors of SQLite into one line."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError, OSError) as error:
            raise NoHistory(
                f"{self.path or 'the temporary database'}: cannot be used as a history: {error}"
            ) from error

    @contextlib.contextmanager
    def _read(self) -> Iterator[None]:
        """Turn content that no history has into one line."""
        try:
            with self._one_line():
                yield
        except (msgspec.MsgspecError, ValueError, KeyError, TypeError) as error:
            raise NoHistory(
                f"{self.path}: damaged history: {type(error).__name__}: {error}; make it anew from the runs"
            ) from error

    def close(self) -> None:
        """Close the database; every run added is in it."""
        self._sql.close()

    def __enter__(self) -> HistoryDatabase:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, reader: RunReader) -> Added:
        """Add a run whole or not at all; one that is there already is left, and one that was incomplete when it
        was added is read again.

        Errors: UsageError for a damaged run, or a case that is in it twice; NoHistory for another run with
        the same id.
        """
        header = msgspec.json.encode(reader.header)
        with self._one_line():
            found = self._sql.execute(
                "SELECT no, header, whole FROM runs WHERE id = ?", (reader.header.run_id,)
            ).fetchone()
            if found and found[1] != header:
                raise NoHistory(
                    f"{reader.path}: run {reader.header.run_id} is in {self.path} with another header: one of them was changed"
                )
            if found and found[2]:
                return Added(reader.header.run_id, known=True, whole=True)
            self._sql.execute("BEGIN IMMEDIATE")
            try:
                if found:
                    self._remove(found[0])
                whole = self._add(reader, header)
                self._sql.execute("COMMIT")
            except BaseException:
                self._cases.clear()
                self._states.clear()
                with contextlib.suppress(sqlite3.Error):
                    self._sql.execute("ROLLBACK")
                raise
        return Added(reader.header.run_id, known=False, whole=whole)

    def _remove(self, run: int) -> None:
        points = "(SELECT no FROM points WHERE run = ?)"
        for statement in (
            f"DELETE FROM results WHERE point IN {points}",
            f"DELETE FROM counts WHERE point IN {points}",
        ):
            self._sql.execute(statement, (run,))
        self._sql.execute("DELETE FROM points WHERE run = ?", (run,))
        self._sql.execute("DELETE FROM runs WHERE no = ?", (run,))

    def _add(self, reader: RunReader, header: bytes) -> bool:
        run = self._sql.execute(
            "INSERT INTO runs (id, header, whole) VALUES (?, ?, 0)", (reader.header.run_id, header)
        ).lastrowid
        points = {
            target: self._sql.execute(
                "INSERT INTO points (run, target) VALUES (?, ?)", (run, target)
            ).lastrowid
            for target in reader.header.targets
        }
        counts: Counter[tuple[int | None, str, str]] = Counter()
        pending: list[tuple[int, Result, int | None]] = []
        for number, result in enumerate(reader, start=2):
            if inexpressible(result):
                continue
            point = points[result.target]
            pending.append((number, result, point))
            if len(pending) >= _TOGETHER:
                self._insert(reader, pending)
                pending.clear()
            valid = result.validity is Validity.VALID
            level = result.levels.get("directml", BEYOND) if valid else result.validity.value
            counts[point, level, result.reading.value] += 1
        self._insert(reader, pending)
        self._sql.executemany(
            "INSERT INTO counts VALUES (?, ?, ?, ?)",
            ((*key, number) for key, number in counts.items()),
        )
        whole = not missing(reader.header, reader.end, counts.total())
        self._sql.execute("UPDATE runs SET whole = ? WHERE no = ?", (whole, run))
        return whole

    def _insert(self, reader: RunReader, pending: list[tuple[int, Result, int | None]]) -> None:
        with self._one_line():
            rows = [(self._case(result.case), point, self._state(result)) for _, result, point in pending]
            before = self._sql.total_changes
            try:
                self._sql.executemany("INSERT INTO results VALUES (?, ?, ?)", rows)
            except sqlite3.IntegrityError as error:
                number, result, _ = pending[self._sql.total_changes - before]
                raise twice(reader, number, result) from error

    def _case(self, case: str) -> int:
        number = self._cases.get(case)
        if number is None:
            if len(self._cases) >= _KNOWN:
                self._cases.clear()
            number = self._cases[case] = self._number("cases", "id", (case,))
        return number

    def _state(self, result: Result) -> int:
        did = RecordedResult(
            result.validity, result.outcome, result.error.class_[:_ERROR] if result.error else ""
        )
        state = (*did, result.reading)
        number = self._states.get(state)
        if number is None:
            if len(self._states) >= _KNOWN:
                self._states.clear()
            values = did.validity.value, did.outcome.value, did.error, result.reading.value
            number = self._states[state] = self._number("states", "validity, outcome, error, reading", values)
        return number

    def _number(self, table: str, columns: str, values: tuple[str, ...]) -> int:
        marks = ", ".join("?" * len(values))
        found = self._sql.execute(f"SELECT no FROM {table} WHERE ({columns}) = ({marks})", values).fetchone()
        if found is None:
            return int(
                self._sql.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", values).lastrowid or 0
            )
        return int(found[0])

    def points(self) -> list[Point]:
        """Return every target of every run, in the order of the run ids: they begin with the time in UTC."""
        with self._read():
            counts: dict[int, dict[str, dict[Reading, int]]] = {}
            for point, level, reading, number in self._sql.execute(
                "SELECT point, level, reading, number FROM counts"
            ):
                counts.setdefault(point, {}).setdefault(_text(level), {})[Reading(reading)] = int(number)
            found = self._sql.execute(
                "SELECT p.no, header, whole, target FROM points p JOIN runs r ON p.run = r.no ORDER BY r.id, p.no"
            )
            points = [
                Point(
                    number,
                    msgspec.json.decode(header, type=Header),
                    bool(whole),
                    target,
                    counts.get(number, {}),
                )
                for number, header, whole, target in found
            ]
            for point in points:
                _ = point.info
            return points

    def results(
        self, wanted: Callable[[str], bool], case: str | None = None
    ) -> Iterator[tuple[str, dict[int, RecordedResult]]]:
        """Yield each wanted case, in no promised order, with what was done with it by the numbers of points;
        `case` names the only one."""
        with self._read():
            states = {
                number: RecordedResult(Validity(validity), Outcome(outcome), _text(error))
                for number, validity, outcome, error in self._sql.execute(
                    "SELECT no, validity, outcome, error FROM states"
                )
            }
            one = "" if case is None else "WHERE c.id = ?"
            rows = self._sql.execute(
                f"SELECT c.id, r.point, r.state FROM results r JOIN cases c ON c.no = r.case_no {one} ORDER BY r.case_no, r.point",
                () if case is None else (case,),
            )
            for name, found in groupby(rows, key=lambda row: row[0]):
                if wanted(_text(name)):
                    yield name, {point: states[state] for _, point, state in found}

    def operators(self) -> dict[str, dict[int, Rate]]:
        """Return for each operator, by the numbers of points, how many of its results are correct, and judged."""
        with self._read():
            states = {
                number: Reading(reading)
                for number, reading in self._sql.execute("SELECT no, reading FROM states")
            }
            rows = self._sql.execute(
                "SELECT substr(c.id, 1, instr(c.id, '@') - 1) AS operator, r.point, r.state, count(*) "
                "FROM results r JOIN cases c ON c.no = r.case_no GROUP BY operator, r.point, r.state ORDER BY operator"
            ).fetchall()
            found: dict[str, dict[int, Counter[Reading]]] = {}
            for operator, point, state, number in rows:
                found.setdefault(_text(operator), {}).setdefault(point, Counter())[states[state]] += number
        return {
            operator: {point: rate for point, readings in of.items() if (rate := rate_of(readings)).judged}
            for operator, of in found.items()
        }


def _text(value: object) -> str:
    """Return what a column of text holds; damage can put anything there. Errors: TypeError."""
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} where a text should be")
    return value
