"""What `harness check` says of literal cases: the oracle is asked, without a target."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.commands.examine import opsets_without_a_version
from harness.model import onnx_schemas
from harness.specs.reading.load import load_specs
from tests.running import ROUND, complaint, harness, results_of

pytestmark = pytest.mark.usefixtures("in_folder")
SPEC = """\
operator: Round
opsets: [22]
lowers_to: {directml: DML_OPERATOR_ELEMENT_WISE_ROUND}
because: "rounding is exact"
cases:
  - name: right
    inputs: {X: {dtype: float32, values: [0.5, 1.5]}}
    output: [0, 2]
  - name: mine
    inputs: {X: {dtype: float32, values: %s}}
    output: %s
"""


@pytest.mark.parametrize(
    ("values", "output", "said"),
    [
        ("[0.5]", "[7]", "the formula gives 0.0 (0x00000000) at [0], the spec says 7.0 (0x40e00000)"),
        (
            "[0.5, 1.5, 2.5]",
            "[0, 1, 3]",
            "the formula gives 2.0 (0x40000000) at [1], the spec says 1.0 (0x3f800000); 2 of 3 elements differ",
        ),
        ("[0.5, 1.5]", "[[0, 2]]", "the formula gives float32[2], the spec says float32[1,2]"),
        ("[-0.4]", "[0]", "the formula gives -0.0 (0x80000000) at [0], the spec says 0.0 (0x00000000)"),
    ],
)
def test_an_output_that_the_oracle_contradicts(values: str, output: str, said: str) -> None:
    Path("mine.yaml").write_text(SPEC % (values, output))
    ended = harness("check", "mine.yaml")
    assert (ended.code, ended.err) == (1, f"mine.yaml:11: cases[1].output: {said}\n")


BOUNDED = """\
operator: Exp
opsets: [13]
cases:
  - name: mine
    inputs: {input: {dtype: float32, values: [0, 1]}}
    output: [1, 3]
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            SPEC % ("[0.5]", "[7]"),
            "mine.yaml:11: cases[1].output: the formula gives 0.0 (0x00000000) at [0], the spec says 7.0 (0x40e00000)",
        ),
        (
            BOUNDED,
            "mine.yaml:6: cases[0].output: the formula gives 2.7182818284590451 ± 7.15e-07 at [1], the spec says 3.0 (0x40400000); "
            "1 of 2 elements differ",
        ),
    ],
    ids=["exact", "with a bound"],
)
def test_a_run_says_of_an_author_s_mistake_what_check_says(text: str, said: str) -> None:
    """It is red, and no regression of the target."""
    Path("mine.yaml").write_text(text)
    assert harness("check", "mine.yaml").err == f"{said}\n"
    ended = harness("run", "mine.yaml", "-t", "fake", "-o", "run")
    assert ended.code == 1
    (result,) = (each for each in results_of(Path("run")).values() if each["outcome"] != "pass")
    assert result["error"] == {"class": "OracleError", "message": said}
    assert "\noracle error 1 × " in ended.out
    assert (
        "Correct the spec or the formula that contradict each other:\n  harness check mine.yaml\n"
        in ended.out
    )
    assert "harness repro" not in ended.out
    assert "harness expect update" not in ended.out
    junit = harness("report", "run", "--format", "junit").out
    assert f'message="oracle error: oracle_error · OracleError: {said}"' in junit
    for words in (junit, (Path("run") / "report.md").read_text(encoding="utf-8")):
        assert "actual" not in words
        assert "| regression |" not in words


def test_bits_without_quotes_are_numbers_to_others() -> None:
    text = SPEC % ("[0x3f000000, 0x1, '0x3f000000', \"0x40000000\"]", "[0, 0, 0, 2]  # 0xff")
    Path("mine.yaml").write_text(text)
    ended = harness("check", "mine.yaml")
    said = "mine.yaml:10: warning: 0x3f000000, 0x1 is bits here and the number 1,056,964,608 to other readers of YAML; "
    assert (ended.code, ended.err) == (0, f'{said}write "0x3f000000"\n')


def test_an_opset_that_no_run_can_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """ONNX has it and the harness does not know its IR version: the run would end in a fault."""
    monkeypatch.setattr(onnx_schemas, "IR_VERSIONS", {11: 6, 21: 10})
    Path("mine.yaml").write_text(SPEC % ("[0.5]", "[0]"))
    said = "mine.yaml:2: opsets[0]: a run cannot do opset 22: its IR version is not known; allowed: 11, 21"
    for command in (["check"], ["run", "-t", "fake"], ["list"]):
        ended = harness(command[0], "mine.yaml", *command[1:])
        assert (ended.code, complaint(ended)) == (2, said)


@pytest.mark.parametrize(("opsets", "warned"), [("[11, 22]", []), ("[11, 22, 23]", [23]), ("all", [])])
def test_an_opset_without_a_version_of_the_operator_is_told_of(
    tmp_path: Path, opsets: str, warned: list[int]
) -> None:
    text = ROUND.read_text(encoding="utf-8").replace("opsets: [11, 22]", f"opsets: {opsets}", 1)
    (tmp_path / "Round.yaml").write_text(text, encoding="utf-8")
    told = list(opsets_without_a_version(load_specs([tmp_path / "Round.yaml"])))
    expected = "Round.yaml: warning: Round has no version 23: opset 23 runs version 22"
    assert [line.endswith(expected) for line in told] == [True] * len(warned)
