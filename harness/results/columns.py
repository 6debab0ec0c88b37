"""A run's results as columns: a Parquet file that any analytical tool opens, written and read by DuckDB, which is
loaded only then.

A result is one row with a column for each of its keys, and columns for what follows from them (`_DERIVED`). Header and
end are JSON in the file's metadata. Read back, the rows are the lines of the run file again, so whoever reads lines
reads columns.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec
import msgspec.inspect as kinds

from harness.model.compressed import LONGEST_LINE
from harness.model.errors import UsageError
from harness.model.header import End
from harness.model.plain_file import buffered
from harness.model.result import NOT_EXPRESSIBLE, Diff, Result
from harness.model.verdict import Outcome

if TYPE_CHECKING:
    from harness.results.runfile import RunReader

MAGIC = b"PAR1"
"""What a Parquet file begins with."""
SUFFIX = ".parquet"
VERSION = 1
"""The version of the columns; the header has the schema of the results."""
LACKING = "columns, questions in SQL and histories need DuckDB: python -m pip install duckdb"
_INPUTS = r"""regexp_replace(regexp_replace(
    array_to_string(regexp_extract_all("case", ';([^;=]*=[a-z][a-z0-9]*[\[{(][^;]*)', 1), ';'),
    '([{(])[^;]*', '\1', 'g'), '([\[,])[0-9]+', '\1n', 'g')"""
"""The inputs of an id without elements and extents, which decide the facets of a case (`facets`): `X=float32[n,n];axes=int64{`."""
_DERIVED = {
    "reading": "reading",
    "opset": """TRY_CAST(regexp_extract("case", '@([0-9]+):', 1) AS UINTEGER)""",
    "origin": """regexp_extract("case", ':([^;]*)', 1)""",
    "types": """array_to_string(regexp_extract_all("case", ';[^;=]*=([a-z][a-z0-9]*)[\\[{(]', 1), ',')""",
    "inputs": _INPUTS,
}
"""Columns that a reader of lines does not need: what a result means, and the parts of its case's id."""
_FOOTER = 32 << 20
"""A footer with more bytes is hostile: reading it takes twenty times as much memory. The footer of 10^8 results has 12 MiB."""
_OURS = b"harness."
ASKED = f"(outcome <> '{Outcome.NOT_RUN.value}' OR coalesce(error.class, '') <> '{NOT_EXPRESSIBLE}')"
"""Holds for results that a target's API has words for."""
_MEMORY = "1GiB"
_FRUGAL = "SET memory_limit = '128MiB'; SET enable_external_file_cache = false; SET preserve_insertion_order = false"
_GROUP = 50_000
_TOGETHER = 1000
_SORTED = 20_000
"""Lines that are sorted at once."""
_SCALARS: dict[type[kinds.Type], str] = {
    kinds.BoolType: "BOOLEAN", kinds.IntType: "UBIGINT", kinds.FloatType: "DOUBLE"
}  # fmt: skip
_DAMAGED = "damaged columns"
_SAID = re.compile(r".*(?:\n+(?:Did you mean|Candidate bindings).*)?")
"""What an error of DuckDB says, and the near names after it."""
_TRACEBACK = re.compile(r"\ATraceback .*\n(?:[ \t].*\n)*")
"""What DuckDB puts before the error of a store's filesystem."""
_SECRET = re.compile(r"(?<=://)[^/?#]*@|\?\S+")


_T = TypeVar("_T")


class _Field:
    """A key of a result: its type as a column, and whether a line has it where it has no value."""

    def __init__(self, field: kinds.Field) -> None:
        self.name = field.encode_name
        several = field.type.types if isinstance(field.type, kinds.UnionType) else (field.type,)
        self.always = field.required or field.default is not msgspec.NODEFAULT
        self.null = any(isinstance(each, kinds.NoneType) for each in several)
        (kind,) = (each for each in several if not isinstance(each, kinds.NoneType))
        self.members = [_Field(each) for each in kind.fields] if isinstance(kind, kinds.StructType) else None
        if self.members is None:
            self.type = _column_type(kind)
        else:
            self.type = f"STRUCT({', '.join(f'{_name(each.name)} {each.type}' for each in self.members)})"

    def member(self, place: str) -> str:
        """Return SQL for `,"key":value`; NULL where a line lacks the key."""
        value = f"{place}.{_name(self.name)}" if place else _name(self.name)
        text = f"to_json({value})::VARCHAR" if self.members is None else _object(self.members, value)
        if self.null and not self.always:
            text = f"if(isnan({value}), 'null', {text})"
        elif self.always:
            text = f"coalesce({text}, 'null')"
        return f"""',"{self.name}":' || {text}"""


def _column_type(kind: kinds.Type) -> str:
    match kind:
        case kinds.DictType():
            return f"MAP(VARCHAR, {_column_type(kind.value_type)})"
        case kinds.TupleType():
            return f"{_column_type(kind.item_types[0])}[]"
        case kinds.VarTupleType():
            return f"{_column_type(kind.item_type)}[]"
    return _SCALARS.get(type(kind), "VARCHAR")


def _name(name: str) -> str:
    return f'"{name}"'


def sql_text(text: str) -> str:
    """Write a text in SQL."""
    return "'" + text.replace("'", "''") + "'"


def key(*fields: str) -> str:
    """Return SQL for a number of 64 bits that stands for fields. DuckDB's `hash` gives one number to texts that differ in two
    digits eight bytes apart, so texts are hashed at two offsets."""
    hashed = (f"{field}, concat('....', {field}::VARCHAR)" for field in fields)
    return f"hash({', '.join(hashed)})"


def _object(members: list[_Field], place: str) -> str:
    """Return SQL for the JSON of a struct; `concat` leaves out what is NULL."""
    inside = ", ".join(each.member(place) for each in members)
    return f"if({place} IS NULL, NULL, '{{' || substr(concat({inside}), 2) || '}}')"


def columns() -> dict[str, str]:
    """Return the columns with their types, in the order of the file."""
    of_lines = {each.name: each.type for each in _fields()}
    return of_lines | dict.fromkeys(_DERIVED, "VARCHAR") | {"opset": "UINTEGER"}


def _fields() -> list[_Field]:
    described = kinds.type_info(Result)
    assert isinstance(described, kinds.StructType)
    return [_Field(each) for each in described.fields]


class Stored(NamedTuple):
    """A file of columns in a store, where others have a `Path` (`harness.results.store`)."""

    url: str
    name: str
    """Its name in SQL."""
    size: int
    filesystem: Any
    """The filesystem of fsspec that opens this name."""

    def __str__(self) -> str:
        return public(self.url)

    def is_dir(self) -> bool:
        """Say what a `Path` says."""
        return False


def public(text: str) -> str:
    """Remove user, password and query from the URLs of a text."""
    return _SECRET.sub("", text) if "://" in text else text


def there(path: Path | Stored) -> bool:
    """Say whether a file holds columns; one that cannot be read does not."""
    if isinstance(path, Stored):
        return True
    try:
        with buffered(path, len(MAGIC)) as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


@contextlib.contextmanager
def _faults(what: str, *more: type[Exception]) -> Iterator[Any]:
    """Yield the module of DuckDB. Its errors, a value that no column has, and exceptions of the types `more` become a
    UsageError that begins with `what`."""
    try:
        import duckdb
    except ImportError as error:
        raise UsageError(LACKING) from error
    try:
        yield duckdb
    except (duckdb.Error, ValueError, KeyError, *more) as error:
        said = _TRACEBACK.sub("", str(error))
        why = what if said == str(error) else what.replace(_DAMAGED, "cannot be read")
        if isinstance(error, OSError):  # without its number and its own name of the file
            said = error.strerror or said
        raise UsageError(f"{why}: {public(_SAID.findall(said)[0].replace(chr(10), ' '))}") from error


@contextlib.contextmanager
def _engine(fault: str, *more: type[Exception]) -> Iterator[Any]:
    """Open DuckDB without a file of its own (`_faults`)."""
    with _faults(fault, *more) as duckdb, duckdb.connect() as found:
        found.execute("SET autoinstall_known_extensions = false; SET autoload_known_extensions = false")
        # one thread: lines are made in Python, which more do not speed up, and each has buffers of its own
        found.execute(f"SET threads = 1; SET memory_limit = '{_MEMORY}'; SET temp_directory = ''")
        found.execute("SET parquet_metadata_cache = true")  # a file is opened several times
        yield found


def _size(path: Path | Stored) -> int:
    return path.size if isinstance(path, Stored) else path.stat().st_size


def _end(path: Path | Stored) -> bytes:
    """Return the last bytes of a file: the length of its footer, and `MAGIC`."""
    if isinstance(path, Stored):
        return bytes(path.filesystem.end(path.name))
    with open(path, "rb") as file:
        file.seek(max(0, _size(path) - 8))
        return file.read()


def _pattern(path: Path | Stored) -> str:
    """Return the pattern in SQL that matches one file."""
    return path.name if isinstance(path, Stored) else glob.escape(str(path))


def _source(path: Path | Stored, more: str = "") -> str:
    """Return SQL for a file's rows."""
    return f"read_parquet({sql_text(_pattern(path))}, hive_partitioning = false{more})"


def _cast(path: Path | Stored, types: dict[str, str], has: Collection[str], *, numbered: bool = False) -> str:
    """Return SQL for columns of a file that has these types or others; a struct may lack members, and the file columns:
    `has` names those that are there. Numbered rows have `row` beside them, from 0 on."""
    found = {name: _name(name) if name in has else "NULL" for name in types}
    found |= {
        name: text for name, text in _DERIVED.items() if name in types and name not in has and text != name
    }
    selected = ", ".join(f"CAST({found[name]} AS {type}) AS {_name(name)}" for name, type in types.items())
    if numbered:
        return f"SELECT {selected}, file_row_number AS row FROM {_source(path, ', file_row_number = true')}"
    return f"SELECT {selected} FROM {_source(path)}"


def _line(has: Collection[str], place: str = "") -> str:
    """Return SQL for the line of a result of which a table, `place`, has these columns."""
    line = ", ".join(each.member(place) for each in _fields() if each.name in has)
    return f"""encode(concat('{{"type":"result"', {line}, '}}', chr(10)))"""


def write(run: RunReader, out: Path) -> None:
    """Write a run as columns. Errors: UsageError for a damaged run, or a count that no column holds."""
    of_lines = {each.name: each.type for each in _fields()} | {"reading": "VARCHAR"}
    columns = ", ".join(f"{_name(name)}: {sql_text(type)}" for name, type in of_lines.items())
    selected = ", ".join(_name(name) for name in of_lines if name not in _DERIVED)
    derived = ", ".join(f"{sql} AS {_name(name)}" for name, sql in _DERIVED.items())
    with _engine(f"{out}: cannot be written", OSError) as sql:
        descriptor, name = tempfile.mkstemp(prefix=f".{out.name}.", suffix=".jsonl", dir=out.parent)
        try:
            with open(descriptor, "wb", buffering=1 << 20) as file:
                file.writelines(_rows(run))
            metadata = {
                "harness.columns": str(VERSION),
                "harness.header": msgspec.json.encode(run.header).decode(),
                "harness.end": msgspec.json.encode(run.end).decode(),
                "harness.cut": str(run.truncated).lower(),
            }
            marks = ", ".join(f"{sql_text(key)}: {sql_text(value)}" for key, value in metadata.items())
            sql.execute(
                f"COPY (SELECT {selected}, {derived} FROM read_json({sql_text(glob.escape(name))},"
                f" format = 'newline_delimited', columns = {{{columns}}}, maximum_object_size = {LONGEST_LINE}, hive_partitioning = false))"
                f" TO {sql_text(str(out))} (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {_GROUP}, KV_METADATA {{{marks}}})"
            )
        finally:
            os.unlink(name)


def _rows(run: RunReader) -> Iterator[bytes]:
    encode = msgspec.json.Encoder().encode
    for result in run:
        line = encode(result if result.diff is None else _with_nan(result, result.diff))
        yield b'%s,"reading":"%s"}\n' % (line[:-1], result.reading.value.encode())


def _with_nan(result: Result, diff: Diff) -> Result:
    """Return a result whose errors that are None, beside those that it lacks, are NaN."""
    nan: dict[str, Any] = {name: "nan" for name in ("error", "largest_error") if getattr(diff, name) is None}
    return msgspec.structs.replace(result, diff=msgspec.structs.replace(diff, **nan)) if nan else result


def _marks(sql: Any, path: Path | Stored) -> dict[str, str]:
    """Return the metadata of a file that are the harness's; the first that is read of it."""
    if isinstance(path, Stored) and path.filesystem.protocol not in sql.list_filesystems():
        sql.register_filesystem(path.filesystem)
    with _faults(f"{path}: cannot be read", OSError):
        size, end = _size(path), _end(path)
    if (footer := int.from_bytes(end[-8:-4], "little")) > _FOOTER and end[-4:] == MAGIC:
        raise UsageError(f"{path}: {_DAMAGED}: a footer of {footer:,} of {size:,} bytes")
    found = sql.execute("SELECT key, value FROM parquet_kv_metadata(?)", [_pattern(path)]).fetchall()
    return {
        bytes(key)[len(_OURS) :].decode(): bytes(value).decode()
        for key, value in found
        if key.startswith(_OURS)
    }


def _names(sql: Any, path: Path | Stored) -> set[str]:
    """Return the names of a file's columns."""
    return {row[0] for row in sql.execute(f"DESCRIBE FROM {_source(path)}").fetchall()}


def _plausible(sql: Any, path: Path | Stored) -> None:
    """Raise UsageError for a file with more rows than bytes, which is hostile: its ids alone need more."""
    (rows,) = sql.execute(f"SELECT count(*) FROM {_source(path)}").fetchone()
    if rows > (size := _size(path)):
        raise UsageError(f"{path}: damaged columns: {rows:,} rows in {size:,} bytes")


def lines(path: Path | Stored) -> Iterator[bytes]:
    """Yield the lines of the run file that the columns are of. Errors: UsageError that names the file."""
    with _engine(f"{path}: {_DAMAGED}") as sql:
        marks, has = _marks(sql, path), _names(sql, path)
        version = marks.get("columns")
        if not version or "header" not in marks or "case" not in has:
            raise UsageError(f"{path}: a Parquet file, but not the columns of a run")
        if version != str(VERSION):
            raise UsageError(
                f"{path}: columns of version {version[:20]}; this harness reads {VERSION}: use the harness that wrote them"
            )
        _plausible(sql, path)
        yield marks["header"].encode() + b"\n"
        found = [each for each in _fields() if each.name in has]
        wanted = _cast(path, {each.name: each.type for each in found}, has)
        for (line,) in rows_of(sql, f"SELECT {_line(has)} FROM ({wanted})"):
            yield line
        if marks.get("end", "null") != "null":
            yield marks["end"].encode() + b"\n"
        if marks.get("cut") == "true":
            yield b"{"


def _beside(sql: Any, run: RunReader) -> Path:
    """Return the columns of the same run beside its lines, which are not older; else the lines."""
    found = newer(run)
    if found is None:
        return run.path
    with _faults(f"{found}: {_DAMAGED}"):
        same = _marks(sql, found).get("header") == msgspec.json.encode(run.header).decode()
    return found if same else run.path


def newer(run: RunReader) -> Path | None:
    """Return the columns beside a run's lines that are not older, of whatever run; None where there are none."""
    found = run.path.parent / f"run{SUFFIX}"
    return found if there(found) and found.stat().st_mtime_ns >= run.path.stat().st_mtime_ns else None


class Answer(NamedTuple):
    """The rows that a question in SQL has, read as they are needed, and the ids of the runs that have no end."""

    names: tuple[str, ...]
    rows: Iterator[tuple[Any, ...]]
    incomplete: tuple[str, ...]


class RunColumns(NamedTuple):
    """A run of a dataset: SELECTs of its results, with `run` and with `row`, and SQL for the line of each in a table
    `results`."""

    sql: Any
    selected: str
    numbered: str
    line: str
    end: End | None
    cut: bool

    def rows(self, selected: str, more: str = "") -> list[tuple[Any, ...]]:
        """Return what a SELECT of its results finds."""
        return list(rows_of(self.sql, f"SELECT {selected} FROM ({self.selected}) {more}"))

    def taken(self, table: str, selected: str, row: str = "row") -> Iterator[tuple[Any, ...]]:
        """Yield columns of a table, and the lines of the results that its column `row` names, in the order of its column
        `n`, which counts from 0. Some are sorted at a time, since lines take memory."""
        (number,) = self.sql.execute(f"SELECT count(*) FROM {table}").fetchone()
        for start in range(0, number, _SORTED):
            some = f"SELECT * FROM {table} WHERE n >= {start} AND n < {start + _SORTED} AND {row} IS NOT NULL"
            least, most = self.sql.execute(f"SELECT min({row}), max({row}) FROM ({some})").fetchone()
            if least is None:
                continue
            rows = f"SELECT * FROM ({self.numbered}) WHERE row >= {least} AND row <= {most}"
            yield from rows_of(
                self.sql,
                f"SELECT {selected}, {self.line} FROM ({some}) AS taken JOIN ({rows}) AS results ON taken.{row} = results.row"
                " ORDER BY n",
            )


class Dataset:
    """Runs as one table, `results`, with the column `run`. A run of lines without columns beside it is written as columns
    in a folder that is removed at the end."""

    def __init__(self, what: str, *, scanned: bool = False) -> None:
        """Open an empty one; `what` is what an error begins with that no run is at fault for. One that is `scanned`
        takes one thread and little memory, and keeps what is more in a temporary file; questions of users take both."""
        self._what = what
        self._settings = _FRUGAL if scanned else "RESET threads"
        self._opened = contextlib.ExitStack()
        self._parts: list[str] = []
        self.paths: list[str] = []
        """What questions may read: a path with signs of a pattern as it is and as it is written in `read_parquet`."""

    def __enter__(self) -> Dataset:
        with contextlib.ExitStack() as opening:
            folder = opening.enter_context(tempfile.TemporaryDirectory(prefix="harness-columns-"))
            self.folder = Path(folder)
            self.sql = opening.enter_context(_engine(self._what))
            self.sql.execute(f"{self._settings}; SET temp_directory = {sql_text(folder)}")
            self._opened = opening.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._opened.__exit__(*error)

    @contextlib.contextmanager
    def part(self, run: RunReader) -> Iterator[RunColumns]:
        """Yield a run, which belongs to the dataset if nothing is raised. Errors: UsageError for a damaged run."""
        path: Path | Stored = run.path if there(run.path) else _beside(self.sql, run)
        with _faults(f"{path}: {_DAMAGED}"):
            if path == run.path and not there(path):
                path = self.folder / f"{len(self._parts)}{SUFFIX}"
                write(run, path)
            marks, has = _marks(self.sql, path), _names(self.sql, path)
            _plausible(self.sql, path)
            if lacking := [each.name for each in _fields() if each.always and each.name not in has]:
                raise UsageError(f"{path}: damaged columns: no column `{lacking[0]}`")
            end = msgspec.json.decode(marks.get("end", "null"), type=End | None)
            selected = f"SELECT {sql_text(run.header.run_id)} AS run, * FROM ({_cast(path, columns(), has)})"
            numbered, cut = _cast(path, columns(), has, numbered=True), marks.get("cut") == "true"
            yield RunColumns(self.sql, selected, numbered, _line(has, "results"), end, cut)
        self.paths += [_pattern(path)] if isinstance(path, Stored) else {str(path), _pattern(path)}
        self._parts.append(selected)
        self.sql.execute(f"CREATE OR REPLACE VIEW results AS {' UNION ALL BY NAME '.join(self._parts)}")


def rows_of(sql: Any, question: str) -> Iterator[Any]:
    """Yield what a SELECT finds."""
    with sql.cursor() as cursor:
        cursor.execute(question)
        while batch := cursor.fetchmany(_TOGETHER):
            yield from batch


@contextlib.contextmanager
def ask(runs: Sequence[RunReader], question: str) -> Iterator[Answer]:
    """Ask runs a question that is one SELECT and reaches no file, no network and no setting.

    Errors: UsageError for any other SQL, and for a damaged run.
    """
    from concurrent.futures import ThreadPoolExecutor

    incomplete = []
    with Dataset("query") as data, ThreadPoolExecutor(1) as pool:
        for run in runs:
            with data.part(run) as part:
                incomplete += [] if part.end else [run.header.run_id]
        sql = data.sql
        paths = ", ".join(map(sql_text, data.paths))
        sql.execute(f"RESET memory_limit; SET allowed_paths = [{paths}]")
        sql.execute("SET enable_external_access = false; SET lock_configuration = true")
        # `query` takes one SELECT alone, and no WITH that writes, which counts as one, stands in a subquery
        sql.execute(f"EXPLAIN SELECT * FROM query({sql_text(question)})")

        def call(function: Callable[[], _T]) -> _T:
            """Call in another thread: DuckDB heeds no signal."""
            future = pool.submit(function)
            try:
                return future.result()
            except BaseException:
                sql.interrupt()
                raise

        def rows() -> Iterator[tuple[Any, ...]]:
            while batch := call(lambda: sql.fetchmany(_TOGETHER)):
                yield from batch

        call(lambda: sql.execute(question))
        yield Answer(tuple(each[0] for each in sql.description), rows(), tuple(incomplete))
