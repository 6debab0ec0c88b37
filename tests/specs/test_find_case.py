"""A case by its id, or by a query that only one case matches."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model.errors import UsageError
from harness.specs.find_case import find_case
from harness.specs.reading.load import LoadedSpec, load_specs
from harness.triage.recorded import recorded_failure
from tests.running import SPECS, harness, results_of, script_of

EQUATION = "Einsum@12:case=documented_transpose;Inputs.0=float32[2,3];equation=ij-%3Eji"


@pytest.fixture(scope="module")
def specs() -> list[LoadedSpec]:
    return load_specs([SPECS / "Einsum.yaml", SPECS / "Round.yaml"])


@pytest.mark.parametrize(
    "text",
    [
        EQUATION,
        "Einsum@12:case=documented_transpose",
        " Einsum@12:case=documented_transpose",
        "Einsum@1**2:case=documented_transpose",
    ],
)
def test_a_case_is_found(specs: list[LoadedSpec], text: str) -> None:
    assert find_case(specs, text).case.id == EQUATION


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (EQUATION + "k", f"the nearest is {EQUATION!r}"),
        ("Einsum", "cases match 'Einsum': name one of them"),
        ("Einsum@12:case=nothing", "no case has the id"),
        ("nonsense -> text", "is not an operator"),
        ("Einsum@12:case=documented_transpose;equation=ij->ji", "is not a key=value"),
    ],
)
def test_what_is_no_case_is_refused(specs: list[LoadedSpec], text: str, what: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_case(specs, text)
    assert what in str(caught.value)


def test_a_failure_is_found_by_an_id_with_an_equation(tmp_path: Path) -> None:
    script = script_of(tmp_path, [(EQUATION.partition(";")[0], "bit")])
    asked = ("-t", f"fake,script={script}", "-k", "Einsum@12:case=documented_transpose")
    harness("run", SPECS / "Einsum.yaml", *asked, "-o", tmp_path / "run")
    assert {result["outcome"] for result in results_of(tmp_path / "run").values()} == {"mismatch"}
    assert recorded_failure(tmp_path / "run", EQUATION, None, ()).case.id == EQUATION
