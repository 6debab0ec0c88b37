"""Targets whose options hold a path, as reports name them."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.results.tables import short_names
from tests.running import ROUND, harness, results_of, script_of


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("cpu", "cpu"),
        ("dml,device_id=1", "dml,device_id=1"),
        ("fake,script=b.yaml", "fake,script=b.yaml"),
        ("fake,script=/a folder/(x)/b.yaml", "fake,script=…/b.yaml"),
        ("fake,script=../b.yaml", "fake,script=…/b.yaml"),
        (r"directml,dll=C:\a\DirectML.dll,debug=1", "directml,dll=…/DirectML.dll,debug=1"),
        ("directml,device_id=1,dll=/a/DirectML.dll", "directml,device_id=1,dll=…/DirectML.dll"),
        ("dml@ssh:user@pc,python=C:/Python312/python.exe", "dml@ssh:user@pc,python=…/python.exe"),
        ("fake,script=/a/", "fake,script=/a/"),
    ],
)
def test_only_the_last_part_of_a_path_is_shown(target: str, name: str) -> None:
    assert short_names([target]) == {target: name}


def test_names_that_would_be_the_same_stay_whole() -> None:
    alike = "directml,dll=/1.13/DirectML.dll", "directml,dll=/1.15/DirectML.dll"
    assert short_names([*alike, "fake,script=/a/b.yaml"]) == {
        **dict(zip(alike, alike, strict=True)),
        "fake,script=/a/b.yaml": "fake,script=…/b.yaml",
    }


def test_reports_name_the_file_and_the_run_file_where_it_lies(tmp_path: Path) -> None:
    script = script_of(tmp_path, [("Round@22:X=float16[0];shapes=static", "shape")])
    whole = f"fake,script={script.resolve()}"
    out = tmp_path / "out"
    ended = harness("run", ROUND, "-t", whole, "-t", "cpu", "-k", "Round@22:sweep=empty;X=float16", "-o", out)
    assert ended.code == 1
    short = f"fake,script=…/{script.name}"
    assert len(results_of(out, whole)) == 8
    judged = ended.out.partition("Find what the failures")[0]  # the commands after it need the whole name
    for said in (judged, (out / "report.md").read_text("utf-8")):
        assert short in said
        assert f"mismatch, another shape on {short}" in " ".join(said.split())
        assert whole not in said
    page = (out / "report.html").read_text("utf-8")
    assert short in page
    assert str(script.parent) not in page
    assert (
        "target=fake%2Cscript%3D%E2%80%A6%2F" in page
    )  # every link asks for the name that the page's data has


@pytest.mark.slow
def test_runs_of_two_files_of_one_name_are_compared(tmp_path: Path) -> None:
    for folder, kind in (("base", "ulp"), ("head", "shape")):
        (tmp_path / folder).mkdir()
        script = script_of(tmp_path / folder, [("Round@22:X=float16[0];shapes=static", kind)])
        asked = ("-t", f"fake,script={script}", "-k", "Round@22:sweep=empty;X=float16")
        harness("run", ROUND, *asked, "-o", tmp_path / folder / "run")
    ended = harness("compare", tmp_path / "base/run", tmp_path / "head/run")
    assert ended.code in (0, 1), ended.err
    assert f"{tmp_path}/base/" in "".join(ended.out.split())
