"""Tensors of failing cases beside the run file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness.model.case import Tensor
from harness.model.errors import HarnessFault
from harness.model.expected import Approx, Exact, OneOf
from harness.model.result_key import artifact_name
from harness.run import artifacts
from harness.run.artifacts import Artifacts, expected_arrays
from harness.run.judge import judge
from harness.targets.fake import alter
from tests.prepared import PROVIDER, answered, graph_of, placed, prepare, right_output


def keep(folder: Path, dtype: str = "float32", kept: Artifacts | None = None) -> Path:
    """Keep the tensors of a case that mismatches; return where they would stand."""
    prepared = prepare("GatherElements", dtype)
    execution = answered(alter(right_output(prepared), "bit"), placed("GatherElements"))
    (kept or Artifacts(folder)).keep(
        "fake", prepared, execution, judge(prepared, graph_of(prepared), execution, PROVIDER), expected=False
    )
    return folder / artifact_name(prepared.case.id, "fake")


def test_inputs_expected_and_actual(tmp_path: Path) -> None:
    prepared = prepare("GatherElements", "float32")
    with np.load(keep(tmp_path / "artifacts")) as held:
        assert set(held) == {"input_data", "input_indices", "expected", "actual"}
        assert held["input_data"].tobytes() == prepared.inputs[0].array.tobytes()
        assert held["expected"].tobytes() == right_output(prepared).array.tobytes()
        assert (held["expected"].view(np.uint32) != held["actual"].view(np.uint32)).sum() == 1


def test_strings_are_left_out(tmp_path: Path) -> None:
    with np.load(keep(tmp_path / "artifacts", "string")) as held:
        assert set(held) == {"input_indices"}


def test_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "LIMIT_BYTES", 100)
    assert not keep(tmp_path / "artifacts").exists()


def test_a_full_disk_leaves_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, data: bytes) -> None:
        path.write_text("half", encoding="utf-8")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(HarnessFault, match=r"\.npz: No space left on device; make room"):
        keep(tmp_path / "artifacts")
    assert not list((tmp_path / "artifacts").iterdir())


def test_what_is_kept_of_an_expected_result() -> None:
    low, high = (Tensor("int8", np.array([n], np.int8)) for n in (1, 2))
    assert expected_arrays(low) == {"expected": low.array} == expected_arrays(Exact(low))
    assert expected_arrays(OneOf((low, high, low))) == {
        "expected": low.array,
        "expected_2": high.array,
        "expected_3": low.array,
    }
    approx = Approx("float16", np.array([1.0]), np.array([0.5]))
    assert expected_arrays(approx) == {"expected": approx.value, "bound": approx.bound}
