"""Runs as columns: the same lines when read again, the same bytes of every report, and files that are none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from harness.commands.report import FORMATS
from harness.model.case import Validity
from harness.model.caseid import parse
from harness.model.errors import UsageError
from harness.model.facets import Facets, facets
from harness.model.result import Accuracy, Diff, Error, Memory, NanBits, Repeats, Result
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome, Verdict
from harness.results import columns
from harness.results.runfile import RunReader, lines, run_file
from harness.results.tables import Tables
from tests.histories import CASE
from tests.histories import write_run as write_history
from tests.running import complaint, harness
from tests.sampled import one_of
from tests.synthetic import (
    ABSENT,
    CPU,
    DML,
    ENTRIES,
    explained,
    header,
    results,
    write_explained,
    write_results,
)

FIXTURES = Path(__file__).parents[1] / "fixtures" / "columns"
LARGEST = 2**64 - 1


def _full(number: int, **changes: object) -> Result:
    """Return a result with every key."""
    made = Result(
        f"GatherND@13:sweep=s{number};data=float8e4m3fn[2,0];indices=int64{{0,2}};k=int32(3);axis=-1;equation=a-%3Eb",
        "GatherND",
        "cpu",
        Validity.VALID,
        {"zeta": "x", "directml": "2_1", "a\"'\0;": ""},
        Outcome.MISMATCH,
        Verdict.REGRESSION,
        "compare",
        "CPUExecutionProvider",
        Error("Fäil", 'two\nlines, "\u2028" \0 \U0001f600 \\u0041 null', by="core"),
        Diff(LARGEST, 1, 2, (0, 3), "nan", "-0.0", 5e-324, 1.7976931348623157e308, 1, 0.1),
        123456.789,
        Repeats(3, 2, {"pass": 1, "mismatch": 2}),
        "DML_OPERATOR_GATHER_ND1 FLOAT32[4]",
        "0123456789abcdef",
        Accuracy(1e22, 1e-7, 0, LARGEST),
        False,
        Memory(1, 2, 3, 4),
        NanBits("float16", 1, 2, 3),
        4,
        (5, 6),
        3,
        ("A", "B"),
        (),
        ("A",),
        7,
    )
    return msgspec.structs.replace(made, **changes)


EVERY_KEY = [
    _full(0),
    _full(1, diff=Diff(None, 1, 2, None, "", "", None, 0.5, largest_error=None)),
    _full(2, diff=Diff(None, 0, 0, (), "", "", None), error=None, stage=None, levels={}),
    _full(3, diff=Diff(0, 0, 0, None, "", "", largest_error=0.0), error=Error("E"), seconds=1e-9),
    _full(4, diff=None, repeats=Repeats(0, 0, {}), empty=True, transformers=(), seconds=5e-324),
    Result("Round@22:a", "Round", "cpu", Validity.INVALID, {}, Outcome.CRASH, Verdict.NEW),
    Result("Round@", "Round", "cpu", Validity.UNSPECIFIED, {}, Outcome.PASS, Verdict.EXPECTED, placed_on=CPU.provider),
]  # fmt: skip


def columns_of(run: Path) -> Path:
    """Write a run as columns, beside it."""
    out = run.with_name("run.parquet")
    assert harness("report", run, "-o", out).code in (0, 4)
    return out


def read(path: Path) -> list[str]:
    """Return the lines of a run, each number written in one way."""
    return [json.dumps(json.loads(line)) for line in lines(path)]


def rows(path: Path, sql: str) -> list[tuple[object, ...]]:
    import duckdb

    with duckdb.connect() as engine:
        return engine.execute(sql.replace("results", f"'{path}'")).fetchall()


def test_every_line_comes_back(tmp_path: Path) -> None:
    """Of results with every key, of one with none, of hundreds as a run has them, and of several groups of rows."""
    several = list(results(700, faults=0.3))
    run = write_results(
        tmp_path / "run.jsonl", EVERY_KEY + several, {**header().targets, "gone": ABSENT}, expectations=ENTRIES | {7: ENTRIES[3]}
    )  # fmt: skip
    written = read(run)
    assert read(columns_of(run)) == written
    assert len(written) == 2 + len(EVERY_KEY) + len(several)


def test_keys_of_this_version() -> None:
    """A key of a result that `EVERY_KEY` lacks would not be tested above."""
    unset = {
        name for name in Result.__struct_fields__ if getattr(EVERY_KEY[0], name) in (None, msgspec.UNSET)
    }
    assert not unset
    for part in (Diff, Error):
        of_part = [getattr(EVERY_KEY[0], part.__name__.lower())]
        assert not [
            name
            for each in of_part
            for name in part.__struct_fields__
            if getattr(each, name) is msgspec.UNSET
        ]


@pytest.mark.parametrize("cut", [1, 30])
def test_a_run_that_was_cut_off(tmp_path: Path, cut: int) -> None:
    """Between two lines, and within one."""
    run = write_results(tmp_path / "run.jsonl", list(results(50)))
    *whole, last, _ = run.read_bytes().splitlines(keepends=True)
    run.write_bytes(b"".join(whole) + last[: len(last) - cut + (cut == 1)])
    found = columns_of(run)
    for path in (run, found):
        reader = RunReader(path)
        assert len(list(reader)) == 99 + (cut == 1)
        assert (reader.end, reader.truncated) == (None, cut > 1)
    told = [harness("report", path, "--format", "markdown") for path in (run, found)]
    assert told[0] == told[1]._replace(err=told[0].err)
    assert told[0].code == 4


def test_what_follows_from_a_result(tmp_path: Path) -> None:
    found = list(results(200, faults=0.3))
    path = columns_of(write_results(tmp_path / "run.jsonl", found))
    expected = [
        (
            result.reading.value,
            parse(result.case).opset,
            result.case.partition(":")[2].partition(";")[0],
            ",".join(dtype for _, dtype in parse(result.case).dtypes()),
        )
        for result in found
    ]
    assert rows(path, "SELECT reading, opset, origin, types FROM results") == expected


def _counted_apart(result: Result, number: int) -> Result:
    """Give a pass a nearness to its bound, and what is known one of two entries, so that neighbours differ in these
    alone."""
    if result.expectation == 3:
        return msgspec.structs.replace(result, expectation=(3, 13)[number % 7 > 3])
    if result.outcome is not Outcome.PASS:
        return result
    near = Accuracy((37 * number % 101) / 101, float(53 * number % 97), (0, 4)[number % 5 == 0], 4)
    return msgspec.structs.replace(result, accuracy=near)


@pytest.mark.parametrize("targets", [{"cpu": CPU, "dml": DML}, {"cpu": CPU}], ids=["two", "one"])
def test_reports_of_columns_beside_a_long_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, targets: dict[str, TargetInfo]
) -> None:
    """They count rows that are alike together, and have the bytes of those that count line by line: with several
    targets, known deviations, bounds and unexpected results."""
    for place in ("results.counted.LONG", "render.html.WHOLE", "render.page_cases.WHOLE"):
        monkeypatch.setattr(f"harness.{place}", 0)
    monkeypatch.setattr(columns, "_SORTED", 100)
    taken: list[int] = []
    add = Tables.add

    def counted(tables: Tables, result: Result, number: int = 1) -> tuple[int, int]:
        taken.append(number)
        return add(tables, result, number)

    monkeypatch.setattr(Tables, "add", counted)
    alike = [
        msgspec.structs.replace(result, case=result.case.replace("sweep=", f"sweep=s{number}_"))
        for number in range(12)
        for result in explained(list(results(60, targets, faults=0.1)))
    ]
    found = list(map(_counted_apart, alike, range(len(alike))))
    run = write_results(tmp_path / "run.jsonl", found, targets, expectations=ENTRIES)
    said = {}
    for beside in (False, True):
        if beside:
            columns_of(run)
        for format in ("csv", "markdown", "html"):
            taken.clear()
            said[format, beside] = harness("report", run, "--format", format).out
            assert len(taken) < sum(taken) if beside else len(taken) == sum(taken)
    for format in ("csv", "markdown", "html"):
        assert said[format, True] == said[format, False]


def test_the_inputs_of_an_id(tmp_path: Path) -> None:
    """What they say makes the facets that tables count by."""
    found = list(results(200, faults=0.3))
    run = write_results(tmp_path / "run.jsonl", [_full(0), *found], expectations={7: ENTRIES[3], **ENTRIES})
    said = dict(rows(columns_of(run), 'SELECT "case", inputs FROM results'))
    assert said[_full(0).case] == "data=float8e4m3fn[n,n];indices=int64{;k=int32("
    alike: dict[object, Facets] = {}
    for case, inputs in said.items():
        read = facets(str(case))
        assert alike.setdefault((read.operator, read.opset, read.variant, inputs), read) == read


def test_the_documented_columns(tmp_path: Path) -> None:
    path = columns_of(write_results(tmp_path / "run.jsonl", list(results(1))))
    found = {str(row[0]): str(row[1]) for row in rows(path, "DESCRIBE FROM results")}
    assert {name: kind.replace('"', "") for name, kind in found.items()} == {
        name: kind.replace('"', "") for name, kind in columns.columns().items()
    }
    page = (Path(__file__).parents[2] / "docs" / "run-file.md").read_text(encoding="utf-8")
    assert [name for name in found if f"`{name}`" not in page] == []


_ASKED = [
    *(("report", "RUN", "--format", name) for name in FORMATS if name != "parquet"),
    ("report", "RUN", "--format", "junit", "--only", "unexpected"),
    *(("compare", "BASE", "RUN", "--format", name) for name in ("json", "html", "markdown")),
    ("compare", "RUN", "BASE", "--format", "json"),
    *(("explain", "RUN", "--known", "--format", name) for name in ("json", "html")),
    ("explain", "RUN", "--against", "BASE", "--format", "json"),
    ("annotate", "RUN"),
    *(("history", "RUN", "--case", "CASE", "--format", name) for name in ("json", "svg")),
]


@pytest.mark.parametrize("asked", one_of(4, map(" ".join, _ASKED)))
def test_every_report_has_the_same_bytes(tmp_path: Path, asked: str) -> None:
    folders = []
    for name in ("lines", "columns"):
        folder = tmp_path / name
        folder.mkdir()
        write_explained(folder / "run.jsonl", 400, faults=0.2)
        write_results(folder / "base.jsonl", list(results(400, faults=0.1, seed=8)))
        folders.append(folder)
    case = next(iter(RunReader(folders[0]))).case
    for name in ("run", "base"):
        kept = folders[1] / f"{name}.jsonl"
        assert harness("report", kept, "-o", kept.with_suffix(".parquet")).code == 0
        kept.unlink()
    told = []
    for folder in folders:
        places: dict[str, str | Path] = {
            "RUN": folder, "CASE": case, "BASE": next(folder.glob("base.*")),
        }  # fmt: skip
        ended = harness(*(places.get(word, word) for word in asked.split()))
        told.append((ended.code, ended.out.replace(str(folder), "FOLDER").replace(".parquet", ".jsonl")))
    assert run_file(folders[1]).name == "run.parquet"
    assert told[0] == told[1]
    assert told[0][1]


@pytest.mark.slow
def test_a_comparison_reads_what_differs_some_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the order of HEAD, then of BASE, whatever the order of BASE: with results that differ, and that only one run
    has. The columns have three groups, which two threads read."""
    monkeypatch.setattr(columns, "_GROUP", 2048)
    first = list(results(4400, faults=0.1))
    second = list(results(4500, faults=0.5))[::-1][:-30]
    runs = [
        write_results(tmp_path / f"{name}.jsonl", found)
        for name, found in (("base", first), ("head", second))
    ]
    said = {}
    for together in (20_000, 70):
        monkeypatch.setattr(columns, "_SORTED", together)
        said[together] = harness("compare", *runs, "--format", "json").out
    assert said[70] == said[20_000]
    changes = json.loads(said[70])["changes"]
    assert len(changes) > 50
    places = {result.case: place for place, result in enumerate(second)}
    for kind in {change["change"] for change in changes} - {"missing"}:
        at = [places[change["case"]] for change in changes if change["change"] == kind]
        assert at == sorted(at)
    assert {"fix", "regression", "missing"} <= {change["change"] for change in changes}


def test_a_site_has_the_same_bytes(tmp_path: Path) -> None:
    run = write_explained(tmp_path / "run.jsonl", 400, faults=0.2)
    for source in (run, columns_of(run)):
        assert harness("site", source, "-o", tmp_path / f"of{source.suffix}").code == 0
    one, other = (tmp_path / f"of{suffix}" for suffix in (".jsonl", ".parquet"))
    names = sorted(path.relative_to(one) for path in one.rglob("*") if path.is_file())
    assert names
    for name in names:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


@pytest.mark.parametrize(
    ("age", "of", "said"),
    [(1, "same", "1000"), (-1, "same", "40"), (1, "other", "40"), (1, "damaged", "run.parquet: damaged columns: ")],
)  # fmt: skip
def test_columns_beside_a_run_stand_for_it(tmp_path: Path, age: int, of: str, said: str) -> None:
    """Columns of the same header that are no older are asked in place of the lines; here they have more rows, which
    no run writes."""
    folder = tmp_path / "run"
    folder.mkdir()
    run = write_results(folder / "run.jsonl", list(results(20)))
    (tmp_path / "other").mkdir()
    other = write_results(tmp_path / "other" / "run.jsonl", list(results(500)))
    if of == "other":
        other = write_history(tmp_path, 1, {CASE: "p"})
    beside = columns_of(other).rename(folder / "run.parquet")
    if of == "damaged":
        beside.write_bytes(beside.read_bytes()[:-100])
    then = run.stat().st_mtime + age
    os.utime(beside, (then, then))
    ended = harness("query", "SELECT count(*) AS n FROM results", folder, "--format", "csv")
    assert said in ended.out + ended.err


def test_files_of_earlier_versions() -> None:
    """`python -m tests.results.test_columns` writes the file of a new version; those of earlier ones stay."""
    found = sorted(FIXTURES.glob("*.parquet"))
    assert f"version-{columns.VERSION}.parquet" in {path.name for path in found}
    for path in found:
        assert read(path) == read(path.with_suffix(".jsonl"))


def test_a_column_that_an_earlier_version_lacked(tmp_path: Path) -> None:
    run = write_results(tmp_path / "run.jsonl", list(results(20, faults=0.3)))
    without = tmp_path / "without.parquet"
    _rewritten(columns_of(run), without, "* EXCLUDE (culprit, nans)")
    assert read(without) == read(run)


def _rewritten(path: Path, to: Path, selected: str, more: str = "", **marks: str | None) -> Path:
    import duckdb

    with duckdb.connect() as engine:
        found = engine.execute(f"SELECT key, value FROM parquet_kv_metadata('{path}')").fetchall()
        kept = {bytes(key).decode(): bytes(value).decode() for key, value in found} | {
            f"harness.{name}": value for name, value in marks.items()
        }
        said = ", ".join(f"'{key}': '{value}'" for key, value in kept.items() if value is not None)
        engine.execute(
            f"COPY (SELECT {selected} FROM '{path}' {more.replace('PATH', str(path))}) TO '{to}' (FORMAT parquet, KV_METADATA {{{said}}})"
        )
    return to


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def _magic(path: Path) -> None:
    path.write_bytes(columns.MAGIC)


def _bytes(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4:400] = b"\xff" * 396
    path.write_bytes(data)


def _with(selected: str = "*", more: str = "", **marks: str | None) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        os.replace(_rewritten(path, path.with_name("changed"), selected, more, **marks), path)

    return change


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_cut, ": damaged columns: "),
        (_magic, ": damaged columns: "),
        (_bytes, ": damaged columns: "),
        (_with(columns=None), ": a Parquet file, but not the columns of a run"),
        (_with(header=None), ": a Parquet file, but not the columns of a run"),
        (_with(columns="2"), ": columns of version 2; this harness reads 1: use the harness that wrote them"),
        (_with(header="{}"), ":1: not the header of a run file: "),
        (_with(end="{}"), ": damaged columns: Object missing required field `selected`"),
        (_with("1 AS one"), ": a Parquet file, but not the columns of a run"),
        (_with("* EXCLUDE (verdict)"), ": damaged columns: no column `verdict`"),
        (_with("* REPLACE ('passed' AS outcome)"), ":2: damaged run file: Invalid enum value 'passed'"),
        (_with("* REPLACE ('else' AS target)"), ":2: damaged run file: target 'else' is not in the header"),
        (_with("* REPLACE (1.5 AS diff)"), ": damaged columns: "),
        (_with("* REPLACE (-1 AS seconds)"), ":2: damaged run file: Expected `float` >= 0.0"),
        (_with(more="LIMIT 39"), ": damaged columns: the end counts "),
        (_with("r.*", "r, range(5000)"), ": damaged columns: 200,000 rows in "),
    ],
)  # fmt: skip
def test_files_that_are_no_columns(tmp_path: Path, damage: Callable[[Path], None], said: str) -> None:
    path = columns_of(write_results(tmp_path / "run.jsonl", list(results(20, faults=0.3))))
    damage(path)
    ended = harness("report", path, "--format", "csv")
    assert (ended.code, ended.out) == (2, "")
    assert f"{path}{said}" in complaint(ended)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_cut, ""),
        (_magic, ""),
        (_bytes, ""),
        (_with(header=None), "a Parquet file, but not the columns of a run"),
        (_with(end="{}"), "damaged columns: Object missing required field `selected`"),
        (_with("1 AS one"), "a Parquet file, but not the columns of a run"),
        (_with("r.*", "r, range(5000)"), ": damaged columns: 200,000 rows in "),
        (_with("* EXCLUDE (verdict)"), "damaged columns: no column `verdict`"),
        (_with("* REPLACE ('passed' AS outcome)"), "damaged columns: 'passed' is not a valid Outcome"),
        (_with("* REPLACE ('fine' AS reading)"), "damaged columns: 'fine' is not a valid Reading"),
        (_with("* REPLACE ('else' AS validity)"), "damaged columns: 'else' is not a valid Validity"),
        (_with("* REPLACE ('else' AS target)"), ":2: damaged run file: target 'else' is not in the header"),
        (_with("* REPLACE ('X' AS placed_on)"), "damaged columns: pass on X, but "),
        (_with("* REPLACE (1.5 AS error)"), "damaged columns: "),
        (_with(more="LIMIT 39"), "damaged columns: the end counts "),
        (_with("* REPLACE ('A@1:x' AS \"case\")"), ":2: damaged run file: operator 'GatherElements' of the case"),
        (_with("* REPLACE (10 AS opset)", more="UNION ALL FROM 'PATH'", end="null"), "damaged run file: "),
    ],
)  # fmt: skip
def test_history_reads_no_damaged_columns(tmp_path: Path, damage: Callable[[Path], None], said: str) -> None:
    """It asks them in place, where no line is read; the other run is shown."""
    write_history(tmp_path / "whole", 1, {CASE: "p"})
    path = columns_of(write_results(tmp_path / "run.jsonl", list(results(20, faults=0.3))))
    damage(path)
    ended = harness("history", path, tmp_path / "whole")
    assert ended.code == 2
    assert complaint(ended).startswith(f"left out: {path}:")
    assert said in complaint(ended)
    assert "1 run of 1 target" in ended.out


_ONE = """* REPLACE (if(row_number() OVER () = 40, 'A@1:', '') || "case" AS "case")"""


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_with("* REPLACE ('passed' AS outcome)"), ":2: damaged run file: Invalid enum value 'passed'"),
        (_with("* REPLACE ('else' AS validity)"), ":2: damaged run file: Invalid enum value 'else'"),
        (_with("* REPLACE ('else' AS target)"), ":2: damaged run file: target 'else' is not in the header"),
        (_with("* REPLACE ('X' AS placed_on)"), ":2: damaged run file: pass on X, but "),
        (_with(more="LIMIT 39"), ": damaged columns: the end counts "),
        (_with("* REPLACE (if(target = 'cpu', 'A@1:', '') || \"case\" AS \"case\")"), ":2: damaged run file: operator 'GatherElements' of"),
        (_with(_ONE), ":41: damaged run file: operator 'GatherElements' of"),
        (_with(more="UNION ALL FROM 'PATH'", end="null"), ":42: damaged run file: "),
        (_with("* REPLACE (NULL AS operator)"), ":2: damaged run file: Expected `str`, got `null`"),
        (_with("* REPLACE (-1 AS seconds, NULL AS diff)"), ":2: damaged run file: Expected `float`"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("targets", one_of(2, [{"cpu": CPU, "dml": DML}, {"cpu": CPU}]))
def test_compare_reads_no_damaged_columns(
    tmp_path: Path, damage: Callable[[Path], None], said: str, targets: dict[str, TargetInfo]
) -> None:
    """A target that the other run lacks is read too."""
    (tmp_path / "other").mkdir()
    other = write_results(tmp_path / "other" / "run.jsonl", list(results(20, targets)), targets)
    path = columns_of(write_results(tmp_path / "run.jsonl", list(results(20, faults=0.3))))
    damage(path)
    for runs in ((path, other), (other, path)):
        ended = harness("compare", *runs)
        assert (ended.code, ended.out) == (2, "")
        assert f"{path}{said}" in complaint(ended)


def test_compare_reads_no_difference_without_elements(tmp_path: Path) -> None:
    """The last of three results that are counted alike."""
    wrong = next(each for each in results(20, {"cpu": CPU}, faults=0.3) if each.diff is not None)
    alike = [msgspec.structs.replace(wrong, case=f"{wrong.case};number={number}") for number in range(3)]
    path = columns_of(write_results(tmp_path / "run.jsonl", alike, {"cpu": CPU}))
    (tmp_path / "other").mkdir()
    other = write_results(tmp_path / "other" / "run.jsonl", alike, {"cpu": CPU})
    assert harness("compare", path, other).code == 0
    _with("* REPLACE (if(\"case\" LIKE '%=2', struct_pack(differing := 1, total := 1), diff) AS diff)")(path)
    ended = harness("compare", other, path)
    assert (ended.code, ended.out) == (2, "")
    assert f"{path}:4: damaged run file: Expected `str`, got `null`" in complaint(ended)


def test_names_that_look_like_patterns_or_partitions(tmp_path: Path) -> None:
    folder = tmp_path / "outcome=none" / "a[b]*?'"
    folder.mkdir(parents=True)
    run = write_results(folder / "run.jsonl", list(results(20)))
    assert read(columns_of(run)) == read(run)


def test_columns_are_not_text(tmp_path: Path) -> None:
    run = write_results(tmp_path / "run.jsonl", list(results(1)))
    ended = harness("report", run, "--format", "parquet")
    assert (ended.code, complaint(ended)) == (2, "parquet is not text: say where to write it with -o FILE")


def test_nothing_is_left_of_a_damaged_run(tmp_path: Path) -> None:
    run = write_results(tmp_path / "run.jsonl", list(results(5)))
    run.write_bytes(run.read_bytes() + b"{}\n")
    ended = harness("report", run, "-o", tmp_path / "out" / "x.parquet")
    assert ended.code == 2
    assert list((tmp_path / "out").iterdir()) == []


def test_a_number_that_no_column_holds(tmp_path: Path) -> None:
    run = write_results(
        tmp_path / "run.jsonl", [_full(0, function_nodes=2**64)], expectations={7: ENTRIES[3]}
    )
    with pytest.raises(UsageError, match=r"x\.parquet: cannot be written: .* 18446744073709551616"):
        columns.write(RunReader(run), tmp_path / "x.parquet")


def test_files_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    run = RunReader(write_results(tmp_path / "run.jsonl", list(results(1))))
    with pytest.raises(UsageError, match=r"x\.parquet: cannot be read: .*No such file"):
        next(columns.lines(tmp_path / "x.parquet"))
    with pytest.raises(UsageError, match=r"x\.parquet: cannot be written: .*No such file"):
        columns.write(run, tmp_path / "none" / "x.parquet")


def test_without_duckdb(tmp_path: Path) -> None:
    """Neither is it loaded for runs that are lines, nor is its absence a traceback."""
    run = write_results(tmp_path / "run.jsonl", list(results(5)))
    path = columns_of(run)
    code = "import sys; sys.modules['duckdb'] = None; from harness.__main__ import main; main()"
    for asked, ended_with in ((run, 0), (path, 2)):
        ended = subprocess.run(
            [sys.executable, "-c", code, "report", str(asked), "--format", "csv"],
            capture_output=True,
            text=True,
        )
        assert ended.returncode == ended_with, ended.stderr
        if ended_with:
            assert ended.stderr == f"harness: {columns.LACKING}\n"


def _write_fixture() -> None:
    FIXTURES.mkdir(exist_ok=True)
    found = [*EVERY_KEY, *results(20, faults=0.3)]
    path = FIXTURES / f"version-{columns.VERSION}.jsonl"
    columns.write(
        RunReader(write_results(path, found, expectations={7: ENTRIES[3]})), path.with_suffix(".parquet")
    )


if __name__ == "__main__":
    _write_fixture()
