from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.commands.report import FORMATS, rendering, report, write_report
from harness.model.errors import UsageError
from harness.results.runfile import RunReader
from tests import synthetic
from tests.histories import CASE, cpu, write_days, write_run
from tests.running import ROUND, without_onnxruntime


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    synthetic.write_run(tmp_path / "run" / "run.jsonl", 50)
    return tmp_path / "run"


@pytest.mark.parametrize("format", [each for each in FORMATS if each != "parquet"])  # no text
def test_every_format_from_a_folder_or_a_file_to_a_file_or_standard_output(
    run: Path, tmp_path: Path, format: str
) -> None:
    out = tmp_path / "out" / "report"
    write_report(run, format, out)
    printed = CliRunner().invoke(report, [str(run / "run.jsonl"), "--format", format], catch_exceptions=False)
    assert printed.exit_code == 0
    assert printed.stdout_bytes == out.read_bytes()
    assert b"\r" not in out.read_bytes() or format == "ctrf"
    assert [each.name for each in out.parent.iterdir()] == ["report"]


@pytest.mark.parametrize(("name", "format"), [("r.html", "html"), ("r.md", "markdown"), ("r.csv", "csv")])
def test_the_end_of_the_name_says_the_format(run: Path, tmp_path: Path, name: str, format: str) -> None:
    out = tmp_path / name
    assert CliRunner().invoke(report, [str(run), "-o", str(out)], catch_exceptions=False).exit_code == 0
    assert out.read_text(encoding="utf-8") == "".join(rendering(run, format))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent", "--format", "csv"], "absent: cannot be read: No such file or directory"),
        (
            ["{run}"],
            r"say what to render: --format html\|markdown\|junit\|ctrf\|csv\|cases\|directml\|cells",
        ),
        (["absent"], "absent: cannot be read: No such file or directory"),
        (["{run}", "-o", "x.pdf"], r"-o x\.pdf: no report ends with \.pdf, only with \.html, \.md, "),
        (["{run}", "--format", "csv", "-o", "{run}/run.jsonl/x"], "cannot be written"),
    ],
)
def test_bad_input_is_one_clear_line(run: Path, arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        CliRunner().invoke(report, [part.format(run=run) for part in arguments], catch_exceptions=False)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("format", "what"), [("html", "an HTML page"), ("markdown", "a Markdown file"), ("junit", "an XML file")]
)
def test_a_report_in_place_of_a_run_is_called_what_it_is(
    run: Path, tmp_path: Path, format: str, what: str
) -> None:
    write_report(run, format, tmp_path / "out")
    with pytest.raises(UsageError, match=f"out: is {what}, not a run: name its run.jsonl or the folder"):
        RunReader(tmp_path / "out")


def test_a_spec_in_place_of_a_run_is_called_what_it_is() -> None:
    with pytest.raises(UsageError, match=r"Round\.yaml: is a spec or another YAML file, not a run: name its"):
        RunReader(ROUND)


def test_a_damaged_run_leaves_the_old_report(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.csv"
    out.write_text("old")
    (run / "run.jsonl").write_bytes(
        (run / "run.jsonl").read_bytes().replace(b'"outcome":"pass"', b'"outcome":"fine"', 1)
    )
    with pytest.raises(UsageError, match="damaged run file"):
        write_report(run, "csv", out)
    assert out.read_text() == "old"
    assert not list(tmp_path.glob("*.part"))


def test_a_report_needs_no_onnxruntime(run: Path) -> None:
    without_onnxruntime(
        "from harness.commands.report import write_report\n"
        f"for f in {FORMATS!r}: write_report(Path({str(run)!r}), f, Path({str(run)!r}) / f)"
    )


def test_a_file_in_place_of_a_folder_is_named(run: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    for out in (tmp_path / "file" / "report", tmp_path / "file" / "deeper" / "report"):
        with pytest.raises(UsageError) as caught:
            write_report(run, "markdown", out)
        assert str(caught.value) == f"{out}: cannot be written: {tmp_path / 'file'} is no folder"
    assert (tmp_path / "file").read_text() == "kept"


def test_a_page_with_a_history_draws_how_its_numbers_went(tmp_path: Path) -> None:
    days = write_days(tmp_path / "days", CASE, "pmm")
    out = tmp_path / "r.html"
    asked = [str(days / "day03"), "--history", str(days), "-o", str(out)]
    assert CliRunner().invoke(report, asked, catch_exceptions=False).exit_code == 0
    assert 'aria-label="defects: 0 in 2026-01-01 03:04, 1 in 2026-01-03 03:04"' in out.read_text("utf-8")


def test_runs_of_other_targets_draw_nothing(run: Path, tmp_path: Path) -> None:
    other = write_run(tmp_path, 1, {CASE: "p"}, {"npu": cpu("1.23.0")})
    shown = CliRunner().invoke(report, [str(other), "--history", str(run), "--format", "html"])
    assert shown.exit_code == 0
    assert 'class="trend"' not in shown.stdout


def test_a_history_is_for_a_page(run: Path) -> None:
    refused = CliRunner().invoke(report, [str(run), "--history", str(run), "--format", "junit"])
    assert isinstance(refused.exception, UsageError)
    assert "--history is for html" in str(refused.exception)


def test_a_folder_gets_page_and_markdown(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "made"
    assert CliRunner().invoke(report, [str(run), "-o", str(out)], catch_exceptions=False).exit_code == 0
    assert {each.name: each.read_text(encoding="utf-8") for each in out.iterdir()} == {
        "report.html": "".join(rendering(run, "html")),
        "report.md": "".join(rendering(run, "markdown")),
    }
    with pytest.raises(UsageError, match="--only unexpected is for junit and ctrf"):
        CliRunner().invoke(report, [str(run), "-o", str(out), "--only", "unexpected"], catch_exceptions=False)
