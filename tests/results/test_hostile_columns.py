"""Hostile files of columns: every command that reads runs answers each with one line and exit code 2, or reads it rightly.
Damage at random is that of `tests.campaign`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pytest

from tests.campaign import parquet
from tests.campaign.parquet import GROUPS, I32, I64, LIST, METADATA, ROWS, SCHEMA, STRUCT, TEXT, Value
from tests.results.test_columns import columns_of
from tests.running import harness
from tests.synthetic import CPU, results, write_results

COLUMNS, CHUNK = 1, 3
"""Fields of a group of rows, and of its columns."""
CODEC, VALUES, PAGES, DICTIONARY = 4, 5, 9, 11
"""Fields of a column: its compression, the number of its values, where its first page and its dictionary lie."""
DICTIONARY_PAGE = 7
"""Field of a page's head."""

_OF_2 = (
    "nested more than 500 levels deep",
    "Column has 4611686018427387904 values",
    "negative number of rows",
)
"""What DuckDB says since 2.0, which needs Python 3.11."""

Damage = Callable[[bytes], bytes]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the columns of a run, with pages that are not compressed, beside a folder with the run's lines."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "lines").mkdir()
    run = write_results(
        folder / "lines" / "run.jsonl", list(results(60, {"cpu": CPU}, faults=0.3)), {"cpu": CPU}
    )
    written = columns_of(run).rename(folder / "written.parquet")
    path = folder / "run.parquet"
    with duckdb.connect() as sql:
        sql.execute(f"COPY (FROM '{written}') TO '{path}' (COMPRESSION uncompressed)")
    footer = parquet.footer(path.read_bytes())
    footer.held[METADATA] = parquet.footer(written.read_bytes()).held[METADATA]
    path.write_bytes(parquet.with_footer(path.read_bytes(), footer))
    return path


def _footed(change: Callable[[Any], None]) -> Damage:
    def damage(data: bytes) -> bytes:
        footer = parquet.footer(data)
        change(footer.held)
        return parquet.with_footer(data, footer)

    return damage


def _chunks(held: Any) -> list[Any]:
    """Return the columns of the first group of rows."""
    return [each.held[CHUNK].held for each in held[GROUPS].held[0].held[COLUMNS].held]


def _number(field: int, number: int) -> Damage:
    """Give every column of the first group a number in a field."""

    def change(held: Any) -> None:
        for chunk in _chunks(held):
            chunk[field] = Value(chunk[field].type, number)

    return _footed(change)


def _dictionaries(change: Callable[[Any], None]) -> Damage:
    """Change the heads of all dictionaries, in as many bytes as they have."""

    def damage(data: bytes) -> bytes:
        made = bytearray(data)
        for chunk in _chunks(parquet.footer(data).held):
            if DICTIONARY in chunk:
                at = chunk[DICTIONARY].held
                head, length = parquet.value_at(data, at)
                change(head.held)
                written = parquet.written(head, length)
                made[at : at + length] = written
        return bytes(made)

    return damage


def _groups(held: Any) -> None:
    held[GROUPS].held.extend(
        [Value(STRUCT, {1: Value(LIST, []), 2: Value(I64, 0), 3: Value(I64, 0)})] * 20_000
    )


def _nested(held: Any) -> None:
    schema = held[SCHEMA].held
    schema[0].held[5] = Value(I32, schema[0].held[5].held + 1)
    schema.extend([Value(STRUCT, {3: Value(I32, 1), 4: Value(TEXT, b"d"), 5: Value(I32, 1)})] * 20_000)
    schema.append(Value(STRUCT, {1: Value(I32, 1), 3: Value(I32, 1), 4: Value(TEXT, b"leaf")}))


def _mark(name: bytes, text: bytes | None) -> Damage:
    def change(held: Any) -> None:
        held[METADATA].held[:] = [each for each in held[METADATA].held if each.held[1].held != name]
        if text is not None:
            held[METADATA].held.append(Value(STRUCT, {1: Value(TEXT, name), 2: Value(TEXT, text)}))

    return _footed(change)


def _endless(held: Any) -> None:
    held[GROUPS].held[0].held[3] = Value(I64, 2**62)


def _renamed(held: Any) -> None:
    for each in held[SCHEMA].held[1:]:
        each.held[4] = Value(TEXT, b"x" + each.held[4].held)


def _empty(head: Any) -> None:
    head[DICTIONARY_PAGE].held[1] = Value(I32, 0)


@pytest.mark.parametrize(
    ("damage", "said"),
    {
        "a dictionary without values": (_dictionaries(_empty), "dictionary offset out of range"),
        "many groups without columns": (_footed(_groups), "index 0 within vector of size 0"),
        "schema nested deep": (_footed(_nested), "nested more than 500 levels deep"),
        "values without end": (_number(VALUES, 2**62), "Column has 4611686018427387904 values"),
        "a page beyond the file": (_number(PAGES, 2**62), "outside file"),
        "an unknown compression": (_number(CODEC, 77), "codec"),
        "rows without end": (_footed(_endless), "4,611,686,018,427,387,904 rows in "),
        "fewer than no rows": (_footed(lambda held: held.update({ROWS: Value(I64, -5)})), "negative number of rows"),
        "columns of others": (_footed(_renamed), "a Parquet file, but not the columns of a run"),
        "no header": (_mark(b"harness.header", None), "a Parquet file, but not the columns of a run"),
        "a header that is none": (_mark(b"harness.header", b"{"), ":1: "),
        "a version that is none": (_mark(b"harness.columns", b"\x1b[31m"), "columns of version \\x1b[31m; this harness reads 1"),
        "an end that is none": (_mark(b"harness.end", b"{"), "Input data was truncated"),
        "a text that is none": (_mark(b"harness.cut", b"\xff"), "can't decode byte 0xff"),
        "a large footer": (lambda data: _mark(b"more", bytes(33 << 20))(data), "damaged columns: a footer of 34,"),
    }.values(),
)  # fmt: skip
def test_answers(whole: Path, tmp_path: Path, damage: Damage, said: str) -> None:
    """In one line each; the sites' second line says that there is no site."""
    if said in _OF_2 and int(duckdb.__version__.partition(".")[0]) < 2:
        pytest.skip("DuckDB 1 reads some of these files, and crashes on a schema nested deep")
    path = tmp_path / "run.parquet"
    path.write_bytes(damage(whole.read_bytes()))
    for asked in (
        ("report", path, "--format", "csv"), ("compare", path, whole), ("compare", whole, path), ("history", "--flips", path),
        ("site", path, "-o", tmp_path / "site"), ("query", "SELECT * FROM results", path, "--format", "csv"),
    ):  # fmt: skip
        ended = harness(*asked)
        lines = ended.err.splitlines()
        assert (ended.code, ended.out, len(lines)) == (2, "", 1 + (asked[0] == "site")), (asked[0], ended.err)
        assert said in lines[0], asked[0]
        assert lines[0].startswith("harness: ")
    assert not (tmp_path / "site").exists()


@pytest.mark.slow
def test_what_is_whole_is_read(whole: Path, tmp_path: Path) -> None:
    """The file that the others are made of, a header that is long, and numbers that nothing depends on."""
    lines = whole.parent / "lines" / "run.jsonl"
    path = tmp_path / "run.parquet"
    commands = (("report", "--format", "csv"), ("history", "--flips"))
    known = [harness(*asked, lines) for asked in commands]
    for damage in (
        bytes,
        _mark(b"more", bytes(8 << 20)),
        _footed(lambda held: held.update({ROWS: Value(I64, 2**62)})),
    ):
        path.write_bytes(damage(whole.read_bytes()))
        assert [harness(*asked, path) for asked in commands] == known


@pytest.mark.slow
def test_texts_of_ids(tmp_path: Path) -> None:
    """Escapes and HTML reach terminal and page as they do from lines: `tests.render.test_hostile`."""
    found = [
        msgspec.structs.replace(
            each, case=each.case + ";k='\x1b[31m\u202e</script><script>alert(1)</script>\x07'"
        )
        for each in results(20, {"cpu": CPU}, faults=0.5)
    ]
    run = write_results(tmp_path / "run.jsonl", found, {"cpu": CPU})
    (tmp_path / "columns").mkdir()
    path = columns_of(run).rename(tmp_path / "columns" / "run.parquet")
    for asked in (
        ("report", "--format", "html"),
        ("report", "--format", "csv"),
        ("compare", run),
        ("history", "--flips"),
    ):
        ended = harness(*asked, path)
        assert ended == harness(*asked, run)
        assert "\x1b[31m" not in ended.out + ended.err
        assert "<script>alert" not in ended.out
    shown = harness("query", 'SELECT "case", 1 AS "\x1b[31m" FROM results', path)
    assert "alert(1)" in shown.out
    assert "\x1b[31m" not in shown.out


def test_a_large_footer_of_a_sparse_file(tmp_path: Path) -> None:
    """Its part of the file says nothing: 10 GiB of zeros take no room."""
    path = tmp_path / "run.parquet"
    with open(path, "wb") as file:
        file.write(b"PAR1")
        file.truncate(10 << 30)
        file.seek(-8, 2)
        file.write((33 << 20).to_bytes(4, "little") + b"PAR1")
    ended = harness("query", "SELECT 1", path)
    assert (ended.code, ended.out) == (2, "")
    assert "damaged columns: a footer of 34,603,008 of 10,737,418,240 bytes" in ended.err


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_of_the_largest_footer(whole: Path, tmp_path: Path) -> None:
    """Of so many groups that it is just not refused: less than 1 GiB."""

    def change(held: Any) -> None:
        (first,) = held[GROUPS].held
        held[GROUPS].held.extend([first] * ((31 << 20) // len(parquet.compact(first))))

    path = tmp_path / "run.parquet"
    path.write_bytes(_footed(change)(whole.read_bytes()))
    code = (
        "import atexit, pathlib, sys; from harness.__main__ import main\n"
        "atexit.register(lambda: print(pathlib.Path('/proc/self/status').read_text(), file=sys.stderr)); main()"
    )
    asked = ("query", "SELECT count(*) FROM results", str(path))
    ended = subprocess.run([sys.executable, "-c", code, *asked], capture_output=True, text=True, timeout=60)
    (most,) = (line.split()[1] for line in ended.stderr.splitlines() if line.startswith("VmHWM:"))
    assert ended.returncode == 0
    assert 300 << 10 < int(most) < 1 << 20  # KiB
