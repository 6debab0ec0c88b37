"""Questions to runs in SQL: what they answer, in each format, and what is refused."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from harness.model.verdict import Outcome
from harness.results.runfile import RunReader
from tests.histories import CASE, OTHER, write_days, write_run
from tests.results.test_columns import columns_of
from tests.running import HARNESS, complaint, harness
from tests.synthetic import results, write_results

COUNTS = "SELECT operator, reading, outcome, count(*) AS number FROM results GROUP BY ALL ORDER BY ALL"


@pytest.mark.parametrize("as_columns", [False, True])
def test_counts_are_those_of_the_results(tmp_path: Path, as_columns: bool) -> None:
    run = write_results(tmp_path / "run.jsonl", list(results(200, faults=0.3)))
    counted = Counter((each.operator, each.reading.value, each.outcome.value) for each in RunReader(run))
    ended = harness("query", COUNTS, columns_of(run) if as_columns else run, "--format", "json")
    assert ended.code == 0
    found = [tuple(row.values()) for row in json.loads(ended.out)]
    assert found == [(*key, number) for key, number in sorted(counted.items())]


def test_a_folder_of_runs(tmp_path: Path) -> None:
    """Lines and columns side by side; the first day is columns alone."""
    write_days(tmp_path, CASE, "pmp")
    columns_of(tmp_path / "day01" / "run.jsonl")
    (tmp_path / "day01" / "run.jsonl").unlink()
    ended = harness("query", "SELECT run, outcome FROM results ORDER BY run", tmp_path, "--format", "csv")
    assert ended.out == (
        "run,outcome\n20260101T030405Z-7,pass\n20260102T030405Z-7,mismatch\n20260103T030405Z-7,pass\n"
    )


def test_a_folder_whose_name_is_a_pattern(tmp_path: Path) -> None:
    days = tmp_path / "a*[1]{b}?'"
    write_days(days, CASE, "pm")
    columns_of(days / "day01" / "run.jsonl")
    ended = harness("query", "SELECT run FROM results ORDER BY run", days, "--format", "csv")
    assert ended.out == "run\n20260101T030405Z-7\n20260102T030405Z-7\n"


def test_the_table(tmp_path: Path) -> None:
    path = write_run(tmp_path, 1, {CASE: "p", OTHER: "m"})
    ended = harness(
        "query", "SELECT operator, opset, types, expectation FROM results ORDER BY operator", path
    )
    assert ended.out == (
        "2 rows\n\noperator  opset  types          expectation\n"
        "GatherND     12  float32,int64\nRound        11  float16\n"
    )  # fmt: skip
    many = harness("query", "SELECT range FROM range(1001)", path)
    assert "These are the first 1,000 rows; --format csv and json have all." in many.out
    assert "\n1000" not in many.out
    assert harness("query", "SELECT 1 AS one LIMIT 0", path) == (0, "0 rows\n", "")


def test_the_documented_questions(tmp_path: Path) -> None:
    path = columns_of(write_results(tmp_path / "run.jsonl", list(results(50, faults=0.3))))
    page = (Path(__file__).parents[2] / "docs" / "queries.md").read_text(encoding="utf-8")
    asked = page.split("```sql\n")[1].split("```")[0].splitlines()
    assert len(asked) == 5
    for each in asked:
        assert harness("query", each, path).code == 0, each


def test_values_of_every_type(tmp_path: Path) -> None:
    path = write_run(tmp_path, 1, {CASE: "p"})
    asked = (
        "SELECT 'nan'::DOUBLE AS a, 2::HUGEINT ** 70 AS b, '\\xff'::BLOB AS c, DATE '2026-01-02' AS d, 1.50::DECIMAL(4, 2) AS e, "
        "MAP {1: [NULL, true]} AS f, {'x': 'é' || chr(27)} AS g, '=1+1' AS h, -2 AS i, 18446744073709551615::UBIGINT AS j"
    )
    (row,) = json.loads(harness("query", asked, path, "--format", "json").out)
    assert row == {
        "a": None, "b": 2.0**70, "c": "ff", "d": "2026-01-02", "e": "1.50", "f": {"1": [None, True]}, "g": {"x": "é\x1b"},
        "h": "=1+1", "i": -2, "j": "18446744073709551615",
    }  # fmt: skip
    named, cells = csv.reader(io.StringIO(harness("query", asked, path, "--format", "csv").out))
    assert named == list("abcdefghij")
    assert cells[0] == ""
    assert cells[2:7] == ["ff", "2026-01-02", "1.50", '{"1":[null,true]}', '{"x":"é\\u001b"}']
    assert cells[7:] == ["'=1+1", "-2", "18446744073709551615"]


def _sql_files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("", "Parser Error: Expected a single SELECT statement"),
        ("SELECT 1; SELECT 2", "Parser Error: Expected a single SELECT statement"),
        ("SELECT 1; DROP VIEW results", "Parser Error: Expected a single SELECT statement"),
        ("selec", "Parser Error: "),
        ("SELECT nothing FROM results", "Binder Error: "),
        ("SELECT reding FROM results", 'not found in FROM clause! Candidate bindings: "reading"'),
        ("FROM rsults", 'Table with name rsults does not exist! Did you mean "results"?'),
        ("SELECT ?", "Invalid Input Error: "),
        ("LOAD json", "Parser Error: Expected a single SELECT statement"),
        ("INSTALL httpfs", "Parser Error: Expected a single SELECT statement"),
        ("SET threads = 1", "Parser Error: Expected a single SELECT statement"),
        ("RESET enable_external_access", "Parser Error: Expected a single SELECT statement"),
        ("ATTACH 'FOLDER/new.db'", "Parser Error: Expected a single SELECT statement"),
        ("CREATE TABLE mine AS FROM results", "Parser Error: Expected a single SELECT statement"),
        ("COPY (SELECT 1) TO 'FOLDER/new'", "Parser Error: Expected a single SELECT statement"),
        ("COPY (SELECT 1) TO 'FOLDER/run.parquet' (USE_TMP_FILE false)", "Parser Error: Expected a single"),
        ("EXPORT DATABASE 'FOLDER/new'", "Parser Error: Expected a single SELECT statement"),
        ("WITH t AS (COPY (SELECT 1) TO 'FOLDER/run.parquet' (USE_TMP_FILE false)) SELECT 1", " Error: "),
        ("WITH t AS (COPY (SELECT 1) TO 'FOLDER/new') SELECT 1", " Error: "),
        (
            "SELECT * FROM query('COPY (SELECT 1) TO ''FOLDER/new''')",
            "Parser Error: Expected a single SELECT",
        ),
        ("SELECT (WITH t AS (COPY (SELECT 1) TO 'FOLDER/run.parquet') SELECT 1)", " Error: "),
        ("SELECT 1) AS a; COPY (SELECT 1) TO 'FOLDER/new'; SELECT * FROM (SELECT 1", "Parser Error: "),
        ("SELECT * FROM read_text('/etc/hostname')", "Permission Error: Cannot access file"),
        ("SELECT * FROM '/etc/hostname'", " Error: "),
        ("SELECT * FROM read_csv('FOLDER/secret.csv')", "Permission Error: Cannot access file"),
        ("SELECT * FROM glob('/*')", "Permission Error: Cannot access file"),
        ("SELECT * FROM read_parquet('http://127.0.0.1:9/x.parquet')", " Error: "),
        ("SELECT * FROM 's3://bucket/x.parquet'", " Error: "),
        ("SELECT getenv('HOME')", " Error: "),
        ("SELECT repeat('x', 10000000000)", " Error: "),
        ("SELECT error('ours')", "Invalid Input Error: ours"),
    ],
)
def test_hostile_questions(tmp_path: Path, sql: str, said: str) -> None:
    """One line and exit code 2; no file is read, written or changed."""
    run = columns_of(write_results(tmp_path / "run.jsonl", list(results(5))))
    (tmp_path / "secret.csv").write_text("secret\n1\n")
    before = _sql_files(tmp_path)
    ended = harness("query", sql.replace("FOLDER", str(tmp_path)), run)
    assert (ended.code, ended.out) == (2, "")
    assert complaint(ended).startswith("query: ")
    assert said in complaint(ended)
    assert _sql_files(tmp_path) == before


def test_wrong_use(tmp_path: Path) -> None:
    write_run(tmp_path / "a", 1, {CASE: "p"})
    twice = write_run(tmp_path / "b", 1, {CASE: "p"})
    for asked, code, said in (
        (("SELECT 1", tmp_path), 2, f"{twice}: run 20260101T030405Z-7 is also "),
        (("SELECT 1", tmp_path / "none"), 2, "none: does not exist; name run files or folders"),
        (("SELECT 1", "C://runs"), 2, ": does not exist; name run files or folders"),
        (("SELECT 1", twice, "-o", tmp_path / "x"), 2, "-o writes a file: add --format csv or json"),
        (
            ("SELECT 1 AS a, 2 AS a", twice, "--format", "json"),
            2,
            "two columns are called a: name one of them",
        ),
    ):
        ended = harness("query", *asked)
        assert ended.code == code
        assert said in complaint(ended)


def test_an_incomplete_run_is_named(tmp_path: Path) -> None:
    path = write_run(tmp_path, 1, {CASE: "p"}, whole=False)
    for run in (path, columns_of(path)):
        ended = harness("query", "SELECT outcome FROM results", run, "--format", "csv")
        assert (ended.code, ended.out) == (4, f"outcome\n{Outcome.PASS.value}\n")
        assert complaint(ended) == "incomplete: 20260101T030405Z-7"


@pytest.mark.skipif(os.name == "nt", reason="no SIGPIPE")
def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    path = columns_of(write_run(tmp_path, 1, {CASE: "p"}))
    asked = [*HARNESS, "query", "FROM range(1000000)", path, "--format", "csv"]
    with subprocess.Popen(asked, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline() == b"range\n"
        process.stdout.close()
        assert (process.stderr.read(), process.wait(60)) == (b"", 141)


def test_ctrl_c_ends_a_question_without_end(tmp_path: Path) -> None:
    path = write_run(tmp_path, 1, {CASE: "p"})
    asked = "SELECT count(*) FROM range(1000000000000) r WHERE r.range % 3 = 1"
    process = subprocess.Popen(
        [*HARNESS, "query", asked, path],
        stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    try:
        for _ in range(600):
            if list(tmp_path.glob("harness-columns-*")):
                break
            time.sleep(0.1)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (process.returncode, said) == (130, b"\nharness: interrupted\n")
    assert not list(tmp_path.glob("harness-columns-*"))


def test_what_duckdb_makes_of_ctrl_c_is_an_interruption() -> None:
    """A statement that is interrupted raises a RuntimeError or goes on, as the moment has it: the error is made here."""
    program = (
        "import os, signal; from harness.model import interrupt; interrupt.install()\n"
        "error = RuntimeError('Query interrupted'); print(interrupt.behind(error))\n"
        "try: os.kill(os.getpid(), signal.SIGINT)\n"
        "except KeyboardInterrupt: print(interrupt.behind(error))"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (ended.stdout, ended.stderr) == ("False\nTrue\n", "")
