"""Cases as ONNX backend tests: ONNX's own loader and comparison take the folders, and the tolerances accept
what the oracle accepts and little else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

from harness.model.case import Tensor
from harness.model.diff import compare
from harness.model.expected import Approx, Exact, OneOf
from harness.model.float_formats import FORMATS, encode
from harness.run.exporting import NoTolerance, tolerance
from tests.running import complaint, harness

QUERIES = (
    "Gather@13:case=*",
    "Softmax@13:case=*",
    "Conv@11:case=documented_with_padding",
    "Conv@11:sweep=windows;initializer=W;X=float32",
    "Tanh@13:sweep=sizes;input=float16",
    "Split@13:sweep=given_sizes;input=int64",
    "Where@16:sweep=dtype_rank;X=string",
)


def load(path: Path) -> Any:
    return numpy_helper.to_array(onnx.load_tensor(str(path)))


def run(folder: Path) -> tuple[list[Any], list[Any]]:
    """Return what a test expects and what ONNX Runtime's CPU provider gives."""
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    data = folder / "test_data_set_0"
    fed = {value.name: load(data / f"input_{n}.pb") for n, value in enumerate(session.get_inputs())}
    wanted = [load(data / f"output_{n}.pb") for n in range(len(session.get_outputs()))]
    return wanted, session.run(None, fed)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("exported")
    arguments = [part for query in QUERIES for part in ("-k", query)]
    ended = harness("export", *arguments, root / "simple", "--limit", "60")
    assert ended.code == 0, ended.err
    return root


def test_onnx_loads_and_compares_them_as_its_own(exported: Path) -> None:
    tests = load_model_tests(str(exported), "simple")
    assert len(tests) == len(list((exported / "simple").glob("*/model.onnx"))) > 40
    compared = wrong_seen = 0
    for test in tests:
        folder = Path(str(test.model_dir))
        settings = msgspec.json.decode((folder / "data.json").read_bytes())
        assert (test.rtol, test.atol) == (settings["rtol"], settings["atol"])
        strings = "string[" in settings["case"]
        if strings:
            continue  # NumPy has another type for what the runtime gives
        wanted, given = run(folder)
        Runner.assert_similar_outputs(wanted, given, test.rtol, test.atol, str(folder))
        compared += 1
        if wanted[0].size and wanted[0].dtype.kind == "f" and np.isfinite(wanted[0].flat[0]):
            wrong = [np.array(each) for each in given]
            wrong[0].reshape(-1)[0] += 0.25 + abs(wrong[0].reshape(-1)[0])
            with pytest.raises(AssertionError):
                Runner.assert_similar_outputs(wanted, wrong, test.rtol, test.atol, str(folder))
            wrong_seen += 1
    assert compared > 30
    assert wrong_seen > 10


def test_the_manifest_lists_every_test_with_its_case(exported: Path) -> None:
    manifest = msgspec.json.decode((exported / "simple" / "manifest.json").read_bytes())
    folders = {path.name for path in (exported / "simple").iterdir() if path.is_dir()}
    assert {test["test"] for test in manifest["tests"]} == folders
    assert len({test["case"] for test in manifest["tests"]}) == len(folders)
    exact = {
        test["case"].partition("@")[0]
        for test in manifest["tests"]
        if test["rtol"] == test["atol"] == 0
        and "nan_everywhere" not in test["case"]  # NaN has no tolerance
        and "_none_in_" not in test["case"]  # an output without elements needs no tolerance
    }
    assert "Gather" in exact
    assert "Softmax" not in exact


def approx(dtype: str, value: Any, bound: Any) -> Approx:
    return Approx(dtype, np.array(value, np.float64), np.array(bound, np.float64))


class TestTolerances:
    @pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
    @pytest.mark.parametrize("seed", range(4))
    def test_whatever_is_within_the_bound_is_accepted(self, dtype: str, seed: int) -> None:
        random = np.random.default_rng(seed)
        value = random.normal(size=50) * 10.0 ** random.integers(-3, 4, 50)
        bound = np.abs(value) * 2.0 ** -float(random.integers(3, 7)) + 10.0 ** -float(random.integers(2, 9))
        expected = approx(dtype, value, bound)
        found = tolerance([expected])
        for sign in (-1, 1):
            actual = Tensor(dtype, encode(dtype, value + sign * 0.7 * bound))
            assert compare(expected, actual).diff is None
            wide = [_wide(each) for each in (actual, found.tensors[0])]
            assert np.all(np.abs(wide[0] - wide[1]) <= found.atol + found.rtol * np.abs(wide[1]))
        assert found.looseness < 1000

    def test_relative_bounds_give_rtol_and_absolute_ones_atol(self) -> None:
        value = [1.0, 2.0, 64.0]
        relative = tolerance([approx("float64", value, np.array(value) / 1024)])
        assert relative.rtol == pytest.approx(1 / 1024)
        assert relative.atol == pytest.approx(0, abs=1e-15)
        assert relative.looseness == pytest.approx(1)
        absolute = tolerance([approx("float64", value, [0.5, 0.5, 0.5])])
        assert (absolute.rtol, absolute.atol) == (0, pytest.approx(0.5))
        assert absolute.looseness == pytest.approx(1)

    def test_exact_results_have_none(self) -> None:
        found = tolerance([Exact(Tensor("float32", np.array([1, np.nan, np.inf], "f4")))])
        assert (found.rtol, found.atol, found.looseness) == (0, 0, 1)

    def test_one_of_several_numbers_takes_their_distance(self) -> None:
        candidates = tuple(Tensor("int8", np.array(each, "i1")) for each in ([4, 5], [4, 6]))
        found = tolerance([OneOf(candidates)])
        assert 1 <= found.atol + found.rtol * 5 < 1.01

    @pytest.mark.parametrize(
        ("expected", "told"),
        [
            (approx("float32", [1.0], [np.inf]), "nothing is claimed of some elements"),
            (approx("float16", [65500.0], [30.0]), "an element may also be infinite"),
            (
                OneOf(tuple(Tensor("bool", np.array([each])) for each in (True, False))),
                "one of several results, which are no numbers",
            ),
            (
                OneOf(tuple(Tensor("float32", np.array([each], "f4")) for each in (np.nan, 1))),
                "one of several results, of which not all are finite",
            ),
        ],
    )
    def test_what_no_tolerance_expresses(self, expected: Any, told: str) -> None:
        with pytest.raises(NoTolerance, match=told):
            tolerance([expected])


def _wide(tensor: Tensor) -> Any:
    from harness.model.float_formats import decode

    assert tensor.dtype in FORMATS
    return decode(tensor.dtype, tensor.array)


def test_without_a_query_it_says_what_to_name(tmp_path: Path) -> None:
    ended = harness("export", tmp_path / "tests")
    assert ended.code == 2
    assert (
        complaint(ended)
        == "say which cases: -k QUERY, or --spec FILE; every case would be some 100,000 folders"
    )


def test_a_folder_that_holds_something_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x", encoding="utf-8")
    ended = harness("export", "-k", "Gather@13:case=scalar_index", tmp_path)
    assert ended.code == 2
    assert complaint(ended).startswith(f"{tmp_path}: holds something already; --force")
    assert harness("export", "-k", "Gather@13:case=scalar_index", tmp_path, "--force").code == 0
    assert (tmp_path / "mine.txt").exists()


def test_cases_without_an_expected_output_are_counted(tmp_path: Path) -> None:
    ended = harness("export", "-k", "Gather@13:case=float_indices", tmp_path / "tests")
    assert ended.code == 4
    assert ended.out == "left out: 1: invalid: there is no output to expect\n"
    assert complaint(ended).startswith("no selected case can be exported")
    assert not (tmp_path / "tests").exists()
