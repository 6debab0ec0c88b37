"""The published sample: what is left out of a run, what is refused, and that its reports are those of its run
file."""

from __future__ import annotations

import base64
import re
import socket
import subprocess
import zlib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.commands.report import rendering
from harness.model.errors import HarnessFault, TargetUnavailable, UsageError
from harness.model.result import Error
from harness.model.verdict import Outcome, Verdict
from harness.results.runfile import RunReader
from harness.targets.windows.releases import releases
from tests import synthetic
from tests.synthetic import CPU, DML
from tools import sample

REPOSITORY = Path(__file__).resolve().parents[2]
_DATA = '<script type="application/octet-stream" id="data">'


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    return synthetic.write_run(
        tmp_path / "run/run.jsonl", 300, {"cpu": CPU, "dml": DML}, faults=0.1, whole=True
    ).parent


def with_message(tmp_path: Path, message: str) -> Path:
    result = synthetic.result(
        "Round@22:case=a",
        Outcome.REJECTED,
        Verdict.REGRESSION,
        error=Error("Fail", message),
        seconds=0.0123456,
    )
    return synthetic.write_results(tmp_path / "run.jsonl", [result], {"cpu": CPU})


def test_the_published_run_has_every_result_in_order(run: Path, tmp_path: Path) -> None:
    sizes = sample.publish(run, tmp_path / "sample")
    assert (
        set(sizes)
        == {"run.jsonl.xz", "report.md", "report.html"}
        == {path.name for path in (tmp_path / "sample").iterdir()}
    )
    before, after = RunReader(run), RunReader(tmp_path / "sample")
    first, second = list(before), list(after)
    assert after.end == before.end
    assert [(r.target, r.case) for r in second] == sorted((r.target, r.case) for r in first)
    found = {(r.target, r.case): r for r in second}
    for result in first:
        other = found[result.target, result.case]
        assert other.seconds == pytest.approx(result.seconds, rel=0.05)
        assert (other.outcome, other.verdict, other.diff, other.levels) == (
            result.outcome,
            result.verdict,
            result.diff,
            result.levels,
        )


def test_an_error_keeps_who_refused(tmp_path: Path) -> None:
    result = next(iter(RunReader(with_message(tmp_path, "no"))))
    refused = msgspec.structs.replace(result, error=Error("Fail", "no", "core"))
    run = synthetic.write_results(tmp_path / "refused.jsonl", [refused], {"cpu": CPU})
    sample.publish(run, tmp_path / "sample")
    assert [each.error for each in RunReader(tmp_path / "sample")] == [refused.error]


@pytest.mark.slow
def test_its_reports_are_made_of_it_alone(run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "sample"
    sample.publish(run, folder)
    for name, format in sample.FORMATS.items():
        assert (folder / name).read_text(encoding="utf-8") == "".join(rendering(folder, format))
    (folder / "report.md").write_text("stale", encoding="utf-8")
    before = (folder / "run.jsonl.xz").read_bytes()
    sample.render(folder)
    assert (folder / "report.md").read_text(encoding="utf-8") == "".join(rendering(folder, "markdown"))
    assert (folder / "run.jsonl.xz").read_bytes() == before


def test_where_a_run_went_is_left_out_of_its_command(run: Path) -> None:
    reader = RunReader(run)
    command = "harness run --select pairwise -t cpu -o '/home/somebody/my runs' --jobs=2 -j 4 --resume --output=/x --timeout 9 -k Round"
    header = msgspec.structs.replace(reader.header, command=command)
    assert sample.without_places(header).command == "harness run --select pairwise -t cpu -k Round"


def test_paths_and_addresses_are_left_out_of_messages(tmp_path: Path) -> None:
    run = with_message(
        tmp_path,
        r"D:\a\_work\1\s\core\Provider.cpp(561)\bind.pyd!00006FFFF5B7AD71: (caller: 00006FFFF5B7B8D5) Exception(2) tid(24) bad",
    )
    sample.publish(run, tmp_path / "sample")
    (result,) = RunReader(tmp_path / "sample")
    assert result.error == Error("Fail", "…/Provider.cpp(561) bad")
    assert result.seconds == 0.012


@pytest.mark.parametrize("word", [f"{Path.home()}/", "build-host-7"])
def test_what_names_this_machine_is_refused_and_nothing_replaced(
    word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample, "without_paths", lambda text: text)
    monkeypatch.setattr(socket, "gethostname", lambda: "build-host-7")
    run = with_message(tmp_path, f"something about {word} and more")
    (tmp_path / "sample").mkdir()
    (tmp_path / "sample/run.jsonl.xz").write_bytes(b"the one before")
    with pytest.raises(HarnessFault, match="would name this machine"):
        sample.publish(run, tmp_path / "sample")
    assert (tmp_path / "sample/run.jsonl.xz").read_bytes() == b"the one before"
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".part")] == []


def test_a_sample_that_is_too_large_is_refused(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample, "MOST_BYTES", 1000)
    with pytest.raises(HarnessFault, match=r"bytes, more than 1,000: publish a run with --select pairwise"):
        sample.publish(run, tmp_path / "sample")
    assert not (tmp_path / "sample").exists()


def test_half_a_run_is_refused(tmp_path: Path) -> None:
    synthetic.write_results(tmp_path / "run.jsonl", [], {"cpu": CPU}, end=False)
    with pytest.raises(UsageError, match=r"run\.jsonl: the run is not complete: continue it with --resume"):
        sample.publish(tmp_path / "run.jsonl", tmp_path / "sample")


def test_nothing_to_render_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="without --render first"):
        sample.render(tmp_path / "nowhere")


def test_targets_are_the_cpu_and_every_directml_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.targets.windows.runtime.unavailable", lambda: None)
    cpu, *rest, api = sample.targets()
    assert (cpu, api) == ("cpu", "directml")
    version = {row.onnxruntime: row.directml for row in releases()}
    assert [version[name.removeprefix("dml@ort-")] for name in rest] == list(dict.fromkeys(version.values()))
    assert rest[-1] == f"dml@ort-{releases()[-1].onnxruntime}"


def test_without_directml_there_is_no_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.targets.windows.runtime.unavailable", lambda: "run: harness setup")
    with pytest.raises(TargetUnavailable, match="run: harness setup"):
        sample.targets()


@pytest.mark.parametrize("broken_off", [False, True])
def test_a_run_that_broke_off_is_continued(
    broken_off: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[list[str]] = []

    def started(command: list[str], **_: Any) -> subprocess.CompletedProcess[bytes]:
        given.append(command)
        return subprocess.CompletedProcess(command, 1)

    monkeypatch.setattr(sample, "RUN", tmp_path / "run")
    monkeypatch.setattr(sample, "targets", lambda: ["cpu"])
    monkeypatch.setattr(subprocess, "run", started)
    if broken_off:
        (tmp_path / "run").mkdir()
        (tmp_path / "run/run.jsonl").touch()
    assert sample.run("pairwise") == 1
    assert given[0][3:] == [
        "run",
        "--select",
        "pairwise",
        "-t",
        "cpu",
        "-o",
        str(tmp_path / "run"),
        *(["--resume"] if broken_off else []),
    ]


def test_of_a_long_run_the_pages_alone_are_published(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = sum(1 for _ in RunReader(run))
    for most, names in ((results, {"run.jsonl.xz", *sample.FORMATS}), (results - 1, set(sample.FORMATS))):
        monkeypatch.setattr(sample, "WHOLE", most)
        assert set(sample.publish(run, tmp_path / str(most))) == names
        assert {path.name for path in (tmp_path / str(most)).iterdir()} == names


def test_the_published_page_of_all_operators_has_each_and_is_small() -> None:
    """After a release: see docs/reports.md, The sample."""
    folder = REPOSITORY / "reports/operators"
    page = (folder / "report.html").read_text(encoding="utf-8")
    listed = re.findall(r'<tr data-operator="([^"]+)">', page)
    specs = {path.stem for path in (REPOSITORY / "specs").rglob("*.yaml")}
    assert len(listed) == len(set(listed)) > 270
    assert {name.rpartition(".")[2] for name in listed} <= specs
    assert "onnxruntime 1.32.0" in page
    assert "DmlExecutionProvider" in page
    assert sum(path.stat().st_size for path in folder.iterdir()) <= sample.MOST_BYTES


@pytest.mark.slow
def test_the_published_sample_is_whole_small_and_freshly_rendered() -> None:
    """After a change of the reports: python -m tools.sample --render"""
    folder = REPOSITORY / "reports/sample"
    reader = RunReader(folder)
    assert sum(1 for _ in reader) == sum(reader.end.outcomes.values() if reader.end else ())
    assert "dml" in {target.partition("@")[0] for target in reader.header.targets}
    assert sum(path.stat().st_size for path in folder.iterdir()) <= sample.MOST_BYTES
    for name, format in sample.FORMATS.items():
        kept = (folder / name).read_text(encoding="utf-8")
        assert unpacked(kept) == unpacked("".join(rendering(folder, format))), name


def unpacked(report: str) -> str:
    """Return a report with a page's data as it is before compression, of which every zlib makes other bytes."""
    head, mark, tail = report.partition(_DATA)
    data, end, rest = tail.partition("<")
    packed = zlib.decompress(base64.b64decode(data), wbits=-15).hex() if mark else data
    return head + mark + packed + end + rest
