"""Every kind of defect has a file and the message that a user gets for it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.model.errors import SpecError
from harness.specs.expand import expand
from harness.specs.expectations.expectations import load_expectations
from harness.specs.reading.load import load_specs
from tests.golden import check_golden
from tests.running import harness

TESTS = Path(__file__).parent.parent
BAD_SPECS = sorted((TESTS / "bad_specs").glob("*.yaml"))
BAD_EXPECTATIONS = sorted((TESTS / "bad_expectations").glob("*.yaml"))


def messages(load: Callable[[list[Path]], object], path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(path.parent)
    with pytest.raises(SpecError) as raised:
        load([Path(path.name)])
    assert raised.value.exit_code == 2
    for line in raised.value.problems:
        assert re.match(rf"{re.escape(path.name)}:[1-9]\d*: \S", line)
        assert line.isprintable()
    text = re.sub(
        r"installed onnx \S+, whose newest is \d+",
        "installed onnx (version), whose newest is (opset)",
        str(raised.value),
    )
    return text + "\n"


@pytest.mark.parametrize("path", BAD_SPECS, ids=lambda path: path.stem)
def test_spec_defect_has_its_message(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_golden(
        path.with_suffix(".expected.txt"),
        messages(lambda paths: expand(load_specs(paths)), path, monkeypatch),
    )


@pytest.mark.parametrize("path", BAD_EXPECTATIONS, ids=lambda path: path.stem)
def test_expectation_defect_has_its_message(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_golden(path.with_suffix(".expected.txt"), messages(load_expectations, path, monkeypatch))


def test_no_message_without_its_defect() -> None:
    for folder, known in (("bad_specs", BAD_SPECS), ("bad_expectations", BAD_EXPECTATIONS)):
        assert {p.name.split(".")[0] for p in (TESTS / folder).iterdir()} == {p.stem for p in known}
    assert len(BAD_SPECS) >= 30


def test_problems_of_every_kind_are_told_together(tmp_path: Path) -> None:
    """What cannot be read, what cannot be planned, and what is wrong with expectations."""
    (tmp_path / "Add.yaml").write_text("operator: Add\nopsets: [99]\n", encoding="utf-8")
    (tmp_path / "Abs.yaml").write_text(
        "operator: Abs\nopsets: [13]\nsweeps:\n  - {name: sizes, X: {dtype: [float32], shape: [[2]], values: [nonsense]}}\n",
        encoding="utf-8",
    )
    (tmp_path / "known").write_text('- {match: "Abs:", expect: slow}\n', encoding="utf-8")
    ended = harness("check", tmp_path, "--expectations", tmp_path / "known")
    assert ended.code == 2
    assert [
        part in ended.err for part in ("Add.yaml:2: opsets[0]", "Abs.yaml:4: sweeps[0]", "known:1: [0]")
    ] == [True] * 3
