"""The table of changes between releases in docs/triage.md: each row has its reduced case, and the repro ends
as the row says."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.version import Version

from benchmarks.evidence import DOCS, Row, problems, rows
from harness.model.cache_folder import CACHE_ENV
from harness.specs.expand import expand
from harness.specs.reading.load import load_specs
from harness.specs.reading.write import reduced_from
from tests.running import SPECS

ROWS = rows((DOCS / "triage.md").read_text(encoding="utf-8"))
FILES = sorted((DOCS / "evidence").glob("*.yaml"))


def test_every_row_has_its_case_and_every_case_its_row() -> None:
    assert {row.file for row in ROWS} == set(FILES)
    assert len(ROWS) >= 10


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_first_release_is_the_one_since_which_the_repro_ends_otherwise(row: Row) -> None:
    (before, code), (after, later) = row.ended
    assert Version(before) < Version(after)
    if row.since == "none":
        assert code == later == 1
    else:
        assert row.since == after


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_case_is_a_spec_of_one_case_made_from_one_of_the_default_specs(file: Path) -> None:
    (case,) = expand(load_specs([file]))
    origin = reduced_from(file.read_text(encoding="utf-8"))
    assert origin in {each.id for each in expand(load_specs([SPECS / f"{case.operator}.yaml"]))}


@pytest.mark.releases
@pytest.mark.usefixtures("python_3_11")
@pytest.mark.parametrize(
    ("name", "lie"),
    [("more_tuples_than_batches-1.24.3", None), ("one_tuple_for_two_batches-1.24.3", ("1.24.3", 1))],
    ids=["true", "lie"],
)
def test_a_repro_ends_as_its_row_says(
    name: str, lie: tuple[str, int] | None, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On two of the releases; `python -m benchmarks.evidence` does the same for all rows. A row that says
    what is not so is told."""
    monkeypatch.setenv(CACHE_ENV, str(cache))
    (row,) = (row for row in ROWS if row.name == name)
    if lie is None:
        assert problems(row, tmp_path / "repro") == []
    else:
        (wrong,) = problems(row._replace(ended=(row.ended[0], lie)), tmp_path / "repro")
        assert wrong.startswith(f"{name}: on 1.24.3 the repro ends with 0, not 1: case:      GatherND@12:")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")
