"""Figures on the pages that code can count, and the modules that they name."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from harness.model.target_info import CPU
from harness.operators import COLLECTED
from harness.results.summary import REVIEWED
from tests.running import harness

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "reports").glob("*.md")])
_STANDARD = frozenset({"venv", "pip", "pytest", "http.server"})


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_module_that_a_page_runs_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if page.name == "CHANGELOG.md":
        return  # it names what was
    modules = set(re.findall(r"python3? -m ([\w.]+)", text)) - _STANDARD
    assert [name for name in sorted(modules) if find_spec(name.rstrip(".")) is None] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_number_of_operators(page: Path) -> None:
    found = re.findall(r"(\d+) operators\]", page.read_text(encoding="utf-8"))
    assert set(found) <= {str(len(COLLECTED))}


def test_the_number_of_contributed_operators() -> None:
    (number,) = re.findall(r", (\d+) of com\.microsoft", text_of("README.md"))
    assert int(number) == len(list((ROOT / "specs" / "com.microsoft").glob("*.yaml")))


def test_the_rooms() -> None:
    page = text_of("docs/architecture.md")
    (entries,) = re.findall(r"\| entries in `harness/` \| \d+ \| (\d+) \|", page)
    found = [
        each
        for each in (ROOT / "harness").iterdir()
        if each.suffix == ".py" or (each / "__init__.py").exists()
    ]
    assert int(entries) == len(found)


def test_the_releases_whose_entries_were_reviewed() -> None:
    rows = re.findall(r"^\| ([\d.]+) \| [01] \| [\d-]+ \| [\d,]+ \| 0 \|$", text_of("docs/runtimes.md"), re.M)
    assert sorted(set(rows)) == sorted(REVIEWED[CPU])


@pytest.mark.slow
def test_what_can_be_imported_from_onnx(tmp_path: Path) -> None:
    ended = harness("import", "onnx", "-o", tmp_path / "imported")
    said = r"([\d,]+) of [\d,]+ tests can be imported; ([\d,]+) of their outputs agree"
    ((imported, agree),) = re.findall(said, text_of("docs/importing.md"))
    assert f"{imported} cases written" in ended.out
    assert f"{agree} of the {imported} expected outputs agree with the oracle" in ended.out


@pytest.mark.slow
def test_the_coverage_of_an_operator() -> None:
    (example,) = re.findall(r"\$ harness (coverage -k GatherElements)\n(.*?)\n", text_of("docs/specs.md"))
    assert harness(*example[0].split()).out.splitlines()[0] == example[1]
