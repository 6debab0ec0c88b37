"""Run files: what is written is read again; a cut is no damage, and damage names its line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.model.errors import HarnessFault, UsageError
from harness.model.header import End, Header
from harness.model.result import Diff, Error, Result
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome, Verdict
from harness.results.runfile import RunReader, RunWriter
from tests import synthetic

HEADER = Header(
    1, "20260101T000000Z", "harness run", 0, {"specs": "a"}, {"cpu": TargetInfo("CPUExecutionProvider")}
)
DEEP = b"[" * 100_000 + b"]" * 100_000
END = End(3, 3, {}, {"pass": 1, "mismatch": 1, "rejected": 1}, {"expected": 1, "regression": 2})


def result(number: int, outcome: Outcome = Outcome.PASS, **changes: object) -> Result:
    verdict = Verdict.EXPECTED if outcome is Outcome.PASS else Verdict.REGRESSION
    return synthetic.result(f"Round@22:case=n{number}", outcome, verdict, **changes)


RESULTS = [
    result(0),
    result(
        1,
        Outcome.MISMATCH,
        diff=Diff(1, 1, 4, (2,), "1.0 (0x3f800000)", "2.0 (0x40000000)"),
        seconds=0.5,
    ),
    result(2, Outcome.REJECTED, error=Error("Fail", "two\nlines, \u00e9"), stage="load"),
]


def write(path: Path, *, end: End | None = END) -> bytes:
    with RunWriter(path, HEADER) as writer:
        for one in RESULTS:
            writer.add(one)
        writer.close(end)
    return path.read_bytes()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


def test_what_is_written_is_read(path: Path) -> None:
    write(path)
    for named in (path, path.parent):
        reader = RunReader(named)
        assert reader.header == HEADER
        assert list(reader) == RESULTS
        assert (reader.end, reader.truncated) == (END, False)


def test_keys_of_a_line(path: Path) -> None:
    write(path)
    header, first, second, third, end = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    assert set(header) == {"type", "schema", "run_id", "command", "seed", "hashes", "targets"}
    keys = "type case operator target validity levels outcome verdict stage placed_on error diff seconds"
    assert list(first) == list(second) == list(third) == keys.split()
    assert [one["type"] for one in (header, first, end)] == ["run", "result", "end"]
    assert third["error"] == {"class": "Fail", "message": "two\nlines, \u00e9"}
    assert set(second["diff"]) == {"max_ulp", "differing", "total", "first_index", "expected", "actual"}


@pytest.mark.slow
def test_cut_at_every_byte(path: Path) -> None:
    """Whatever is lost, whole lines before it are kept; a run can be continued exactly where they end."""
    data = write(path)
    lines = data.splitlines(keepends=True)
    starts = [sum(map(len, lines[:n])) for n in range(len(lines) + 1)]
    for at in range(len(data)):
        path.write_bytes(data[:at])
        if at < starts[1]:
            with pytest.raises(
                UsageError, match="the run file is empty" if not at else "the header is cut off"
            ):
                RunReader(path)
            continue
        reader = RunReader(path)
        whole = sum(start <= at for start in starts[2:5])
        assert list(reader) == RESULTS[:whole]
        assert reader.truncated is (at not in starts)
        assert reader.end is None
        assert reader.bytes_read == starts[1 + whole]


@pytest.mark.parametrize(
    ("line", "text", "complaint"),
    [
        (1, b"not json", "1: not the header of a run file"),
        (1, b'{"type":"result"}', "1: not the header of a run file"),
        (1, b"[]", "1: not the header of a run file"),
        (1, b"\xff\xfe", "1: not the header of a run file"),
        (2, b"not json", "2: damaged run file"),
        (2, b"\x00\x00\x00", "2: damaged run file"),
        (2, b"", "2: damaged run file"),
        (3, b"{}", "3: damaged run file"),
        (3, b'{"type":"other"}', "3: damaged run file: Invalid value 'other'"),
        (3, b'{"type":"result","case":"\xff"}', "3: damaged run file"),
        (4, b'{"type":"end"}', "4: damaged run file: Object missing required field"),
        pytest.param(
            1,
            b'{"type":"run","x":' + DEEP + b"}",
            "1: not the header of a run file: nested too deep",
            id="deep header",
        ),
        pytest.param(
            3,
            b'{"type":"result","x":' + DEEP + b"}",
            "3: damaged run file: nested too deep",
            id="deep result",
        ),
    ],
)
def test_damage_names_its_line(path: Path, line: int, text: bytes, complaint: str) -> None:
    lines = write(path).splitlines(keepends=True)
    lines[line - 1] = text + b"\n"
    path.write_bytes(b"".join(lines))
    with pytest.raises(UsageError) as caught:
        list(RunReader(path))
    assert str(caught.value).startswith(f"{path}:{complaint}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (
            '"placed_on":"CPUExecutionProvider"',
            '"placed_on":"DmlExecutionProvider"',
            "pass on DmlExecutionProvider, but cpu is CPUExecutionProvider",
        ),
        (
            '"placed_on":"CPUExecutionProvider"',
            '"placed_on":null',
            "a pass needs a proven provider and has neither diff nor error",
        ),
        ('"target":"cpu"', '"target":"dml"', "target 'dml' is not in the header"),
        ('"operator":"Round"', '"operator":"Abs"', "operator 'Abs' of the case 'Round@22:case=n0'"),
        ('"outcome":"pass"', '"outcome":"passed"', "Invalid enum value 'passed'"),
        ('"outcome":"mismatch"', '"outcome":"pass"', "a pass needs a proven provider"),
        ('"seconds":0.5', '"seconds":"0.5"', "Expected `float`, got `str`"),
        ('"seconds":0.5', '"seconds":-0.5', "Expected `float` >= 0.0 - at `$.seconds`"),
        ('"seconds":0.5', '"seconds":1e308', "Expected `float` <= 1000000000.0 - at `$.seconds`"),
        ('"differing":1', '"differing":-1', "Expected `int` >= 0 - at `$.diff.differing`"),
        ('"first_index":[2]', '"first_index":[-2]', "Expected `int` >= 0 - at `$.diff.first_index[0]`"),
        ('"pass":1', '"pass":-1', "Expected `int` >= 0 - at `$.outcomes[...]`"),
        ('"run":3', '"run":-3', "Expected `int` >= 0 - at `$.run`"),
        ('"seed":0', '"seed":-1', "Expected `int` >= 0 - at `$.seed`"),
        (
            '"case":"Round@22:case=n0"',
            f'"case":"Round@{"9" * 70000}:case=n0"',
            "Expected `str` of length <= 65536 - at `$.case`",
        ),
    ],
)
def test_lines_that_contradict_themselves(path: Path, old: str, new: str, complaint: str) -> None:
    text = write(path).decode()
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        list(RunReader(path))
    assert complaint in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.jsonl")
    for named in (tmp_path, tmp_path / "run.jsonl"):
        with pytest.raises(
            UsageError,
            match=r"run\.jsonl: is no regular file: save it as one, because reports read it more than once",
        ):
            RunReader(named)


def test_a_pass_without_proof_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="a pass needs a proven provider"):
        result(0, placed_on=None)
    with pytest.raises(ValueError, match="a pass needs a proven provider"):
        result(0, error=Error("Fail"))
    with pytest.raises(ValueError, match="a pass needs a proven provider"):
        result(0, diff=Diff(0, 1, 1, (0,), "", ""))


def test_a_line_after_the_end_is_damage(path: Path) -> None:
    data = write(path)
    path.write_bytes(data + data.splitlines(keepends=True)[1])
    with pytest.raises(UsageError, match=r":6: damaged run file: a line after the end"):
        list(RunReader(path))


def test_schema_of_another_version(path: Path) -> None:
    path.write_bytes(write(path).replace(b'"schema":1', b'"schema":2', 1))
    with pytest.raises(
        UsageError, match=r":1: run file schema 2; this harness reads schema 1: use the harness that wrote it"
    ):
        RunReader(path)


def test_missing_file_and_folder_without_a_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere: cannot be read: No such file"):
        RunReader(tmp_path / "nowhere")
    with pytest.raises(UsageError, match=r"run.jsonl: cannot be read: No such file"):
        RunReader(tmp_path)


def _altered(data: bytes) -> bytes:
    return data.replace(
        b'"outcome":"rejected","verdict":"regression"', b'"outcome":"rejected","verdict":"expected"'
    )


def _repeated(data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    return b"".join([*lines[:2], *lines[1:]])


def _shortened(data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    return b"".join([*lines[:2], *lines[3:]])


@pytest.mark.parametrize("damage", [_altered, _repeated, _shortened])
def test_an_end_that_counts_other_results_is_damage(path: Path, damage: Callable[[bytes], bytes]) -> None:
    data = write(path)
    assert len(list(RunReader(path))) == 3
    path.write_bytes(damage(data))
    assert path.read_bytes() != data
    with pytest.raises(
        UsageError,
        match=r"run.jsonl:\d: damaged run file: the end counts \d results [a-z' ]+, the file holds \d",
    ):
        list(RunReader(path))


def test_continuing_replaces_what_follows(path: Path) -> None:
    data = write(path)
    keep = sum(map(len, data.splitlines(keepends=True)[:2]))
    with RunWriter(path, keep=keep) as writer:
        for one in RESULTS[1:]:
            writer.add(one)
        writer.close(END)
    assert path.read_bytes() == data


@pytest.mark.parametrize("keep", [None, 100])
def test_a_second_writer_is_refused_and_harms_nothing(path: Path, keep: int | None) -> None:
    """Two runs with the same -o would leave a file that neither can read."""
    with RunWriter(path, HEADER) as writer:
        writer.add(RESULTS[0])
        writer.flush()
        before = path.read_bytes()
        with pytest.raises(
            UsageError,
            match=r"run.jsonl: another harness is writing it: wait for its end, or choose another folder with -o",
        ):
            RunWriter(path, HEADER, keep=keep)
        assert path.read_bytes() == before
        writer.close(END)
    with RunWriter(path, HEADER) as again:
        again.close(END)


class FullAfter:
    """A file on a disk that is full after some bytes."""

    def __init__(self, path: Path, room: int) -> None:
        self._file = open(path, "r+b", buffering=0)  # noqa: SIM115 - closed by close()
        self._file.seek(0, 2)
        self._room = room
        self.closed = False

    def write(self, data: memoryview) -> int:
        if not self._room:
            raise OSError(28, "No space left on device")
        written = self._file.write(data[: self._room])
        self._room -= written
        return written

    def truncate(self, size: int) -> None:
        self._file.truncate(size)

    def close(self) -> None:
        self._file.close()
        self.closed = True


@pytest.mark.parametrize("room", [0, 1, 50, 300, 700])
def test_a_full_disk_keeps_whole_lines(path: Path, room: int) -> None:
    writer = RunWriter(path, HEADER)
    before = path.stat().st_size
    writer._file.close()
    writer._file = FullAfter(path, room)  # type: ignore[assignment]
    for one in RESULTS:
        writer.add(one)
    with pytest.raises(HarnessFault, match=r"run.jsonl: No space left on device; free some space"):
        writer.flush()
    writer.close()
    reader = RunReader(path)
    kept = list(reader)
    assert kept == RESULTS[: len(kept)]
    assert not reader.truncated
    assert before <= path.stat().st_size <= before + room
