"""README: its links lead somewhere, its numbers are those of the repository, its example is what a run prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from packaging.version import Version

from harness.operators import COLLECTED
from harness.targets.windows.releases import releases
from tests.running import harness

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
NUMBERS = {10: "ten", 11: "eleven", 12: "twelve", 13: "thirteen"}


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/commands.md",
        "docs/queries.md",
        "docs/reports.md",
        "docs/specs.md",
        "docs/findings.md",
    ],
)
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    files = set(re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text))
    assert [file for file in sorted(files) if not ((ROOT / page).parent / file).exists()] == []


@pytest.mark.parametrize("page", ["README.md", "docs/specs.md"])
def test_the_number_of_operators(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert set(re.findall(r"(\d+) operators\]", text)) == {str(len(COLLECTED))}
    folders = (ROOT / "specs", ROOT / "specs" / "com.microsoft", ROOT / "specs" / "ai.onnx.ml")
    assert sum(len(list(folder.glob("*.yaml"))) for folder in folders) == len(COLLECTED)


def test_the_releases_of_directml() -> None:
    found = sorted({release.directml for release in releases()}, key=Version)
    assert f"all {NUMBERS[len(found)]} DirectML releases" in README
    assert f"DirectML {found[0]} to {found[-1]}" in README


def test_the_example_is_what_a_run_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    (block,) = re.findall(r"```console\n\$ (harness run .*?)\n(.*?)…\n", README, re.S)
    ended = harness(*block[0].split()[1:], "-o", tmp_path / "run")
    date = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC")
    text = date.sub("DATE", "\n".join(line.rstrip() for line in ended.out.splitlines()))
    expected = date.sub("DATE", block[1])
    assert (ended.code, text[: len(expected)]) == (0, expected)
