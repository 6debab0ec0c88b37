from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import msgspec
import pytest

from harness.commands.report import write_reports
from harness.model.errors import UsageError
from harness.render import page_cases
from harness.render.html import read_page
from harness.results.runfile import RunReader
from tests import many
from tests.render.test_payload import decoded_text
from tests.synthetic import write_results

NAMES = ("Abs", "ABS", "../../outside", '"];alert(1);["', "com.microsoft.Gelu")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of operators that no file can be called after, or that one file system takes for the same."""
    found = list(many.results(len(NAMES), 40))
    named = [
        msgspec.structs.replace(each, operator=name, case=each.case.replace(each.operator, name, 1))
        for each in found
        for name in [NAMES[int(each.operator.removeprefix("Operator"))]]
    ]
    path = tmp_path / "run" / "run.jsonl"
    path.parent.mkdir()
    return write_results(path, named, many.TARGETS)


def test_slices_hold_every_result_of_their_operator(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_cases, "WHOLE", 100)
    folder = tmp_path / "made" / "here"
    write_reports(*read_page(run), folder)
    found: dict[str, list[tuple[str, str]]] = {name: [] for name in NAMES}
    wanted: dict[str, list[tuple[str, str]]] = {name: [] for name in NAMES}
    for each in RunReader(run):
        wanted[each.operator].append((each.case, each.target))
    files = sorted((folder / page_cases.FOLDER).iterdir())
    assert sorted(path.name for path in tmp_path.rglob("*.js")) == [path.name for path in files]
    assert len({path.name.lower() for path in files}) == len(NAMES)
    for file in files:
        key, text = re.fullmatch(
            r'\(globalThis\.slices \?\?= \{\}\)\[("(?:[^"\\]|\\.)*")\] = "([\w+/=]+)";\n', file.read_text()
        ).groups()  # type: ignore[union-attr]
        data = decoded_text(text)
        number, starts = -1, [0]
        for length in data["length"]:
            starts.append(starts[-1] + length)
        for step, state in zip(data["case"], data["state"], strict=True):
            number = (number + step) & 0xFFFFFFFF
            case = ";".join(data["parts"][part] for part in data["part"][starts[number] : starts[number + 1]])
            found[json.loads(key)].append((case, data["states"][state][0]))
    assert found == wanted


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full")
def test_a_full_disk(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is no damage of the run that is read."""
    monkeypatch.setattr(page_cases, "WHOLE", 100)
    folder = tmp_path / "made"
    (folder / page_cases.FOLDER).mkdir(parents=True)
    (folder / page_cases.FOLDER / "ABS.js").symlink_to("/dev/full")
    monkeypatch.setattr("harness.commands.report.remove_slices", lambda _: None)
    with pytest.raises(
        UsageError, match=f"^{re.escape(str(folder))}: cannot be written: No space left on device$"
    ):
        write_reports(*read_page(run), folder)


def test_a_single_file_says_what_it_lacks(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_cases, "WHOLE", 100)
    cases = read_page(run)[1]
    fails = sum(each.fails for each in RunReader(run))
    known = sum(each.reading in page_cases.DEFECTS and not each.fails for each in RunReader(run))
    assert len(cases.held) == fails + known < 600
    assert cases.about({}) == (
        f"This page holds {fails + known} of 600 results: what is not as expected, wrong, crashed or accepted. "
        "For all of them, write a folder: harness report RUN -o DIR."
    )
