"""Text that tries to be more than text: no rendering lets it colour, reorder, script, break lines or
compute."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from harness.model.header import Header, Origin
from harness.model.result import Diff, Error, Result
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome, Verdict
from harness.results.runfile import RunWriter
from tests import synthetic
from tests.running import harness
from tests.synthetic import end_of

EVIL = "[/red]\n<script>alert(1)</script></td>|`x`\x1b[31m\x9b\u202e\u200b]]>\t\n=cmd|' /C calc'!A0"
TARGET = f"=cpu{EVIL}"
CASE = f"Round@22:case={EVIL};X=float32[1]"
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e]")
MARKUP = re.compile(r"<script>alert|</td></td>|</script></td>")


def result(case: str, outcome: Outcome) -> Result:
    passed = outcome is Outcome.PASS
    verdict = Verdict.EXPECTED if passed else Verdict.REGRESSION
    error = Error(EVIL, EVIL) if outcome is Outcome.REJECTED else None
    diff = Diff(1, 1, 1, (0,), EVIL, f"{EVIL}!") if outcome is Outcome.MISMATCH else None
    return synthetic.result(
        case,
        outcome,
        verdict,
        target=TARGET,
        levels={"directml": EVIL},
        placed_on=None if error else "CPU",
        error=error,
        diff=diff,
    )


def write(folder: Path, *outcomes: Outcome) -> Path:
    folder.mkdir()
    info = TargetInfo("CPU", EVIL, adapter=EVIL, onnxruntime=EVIL, options={EVIL: EVIL})
    header = Header(
        1,
        f"{folder.name}{EVIL}",
        EVIL,
        0,
        {"specs": "a"},
        {TARGET: info},
        {f"Round:case={EVIL}": Origin(EVIL, EVIL)},
    )
    with RunWriter(folder / "run.jsonl", header) as writer:
        results = [result(f"{CASE};n={number}", outcome) for number, outcome in enumerate(outcomes)]
        for one in results:
            writer.add(one)
        writer.close(msgspec.structs.replace(end_of(results), left_out={EVIL: 1}, problems=(EVIL,)))
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("runs")
    return (
        write(folder / "1", Outcome.PASS, Outcome.PASS, Outcome.PASS),
        write(folder / "2", Outcome.PASS, Outcome.REJECTED, Outcome.MISMATCH),
    )


COMMANDS = [
    *(("report", 1, form) for form in ("html", "markdown", "junit", "csv", "directml", "cells", "ctrf")),
    *(("compare", 2, form) for form in ("terminal", "markdown", "html", "json")),
    *(("explain", 1, form) for form in ("terminal", "markdown", "html", "json")),
    *(("history", 2, form) for form in ("terminal", "markdown", "html", "svg")),
]


def _texts(tree: object) -> list[str]:
    """Return all texts of a JSON document."""
    if isinstance(tree, dict):
        return [text for item in tree.items() for part in item for text in _texts(part)]
    if isinstance(tree, list):
        return [text for part in tree for text in _texts(part)]
    return [tree] if isinstance(tree, str) else []


@pytest.mark.parametrize(("command", "number", "form"), COMMANDS)
def test_nothing_that_a_terminal_or_a_browser_obeys(
    runs: tuple[Path, Path], command: str, number: int, form: str
) -> None:
    ended = harness(command, *runs[-number:], "--format", form)
    assert ended.code in (0, 1), ended.err
    shown = re.sub(r"\x1b\[[0-9;]*m", "", ended.out) if form == "terminal" else ended.out
    assert not CONTROL.search(shown)
    if form in ("html", "svg"):
        assert not MARKUP.search(shown)
    if form in ("junit", "svg"):
        ElementTree.fromstring(shown)
    if form == "json":
        assert EVIL in str(json.loads(shown)) or repr(EVIL)[1:-1] in str(json.loads(shown))
    if form == "ctrf":
        assert not [text for text in _texts(json.loads(shown)) if re.search("[\x1b\x9b\u200b\u202e]", text)]
    if form in ("csv", "cells"):
        assert not [
            cell for row in csv.reader(io.StringIO(shown)) for cell in row if cell.startswith(("=", "+", "@"))
        ]


def test_an_id_is_one_line(runs: tuple[Path, Path]) -> None:
    for command, number in (("compare", 2), ("explain", 1)):
        assert r"  Round@22:case=[/red]\n<script>" in harness(command, *runs[-number:]).out
