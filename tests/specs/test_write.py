"""Cases written as spec entries: read again they are the same, bit for bit."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from harness.model.case import (
    Case,
    Options,
    TensorSpec,
    Validity,
)
from harness.model.dtypes import Array
from harness.model.query import parse_all
from harness.specs.expand import expand
from harness.specs.reading.load import LoadedSpec, load_specs
from harness.specs.reading.write import entry_lines, spec_text
from harness.specs.selection import Selection
from tests.elements import elements_of
from tests.prepared import OPERATOR_DTYPES, prepare
from tests.running import SPECS


def spec_of(operator: str) -> LoadedSpec:
    return load_specs([SPECS / f"{operator}.yaml"])[0]


def read_again(folder: Path, case: Case) -> Case:
    path = folder / "one.yaml"
    path.write_text(spec_text(spec_of(case.operator), case, "again", ["a comment"]), encoding="utf-8")
    (read,) = expand(load_specs([path]))
    return read


def with_data(operator: str, dtype: str, data: Array) -> Case:
    made = prepare(operator, dtype).case
    assert made.literals is not None
    first = made.inputs[0].name
    literals = (data, *made.literals[1:])
    return msgspec.structs.replace(
        made, inputs=(TensorSpec(first, dtype, data.shape, "literal"), *made.inputs[1:]), literals=literals
    )


@pytest.mark.parametrize(("operator", "dtype"), [pair for pair in OPERATOR_DTYPES if pair[0] != "GatherND"])
def test_elements_are_the_same_bits_again(tmp_path: Path, operator: str, dtype: str) -> None:
    data = elements_of(dtype)
    if operator == "GatherElements":
        data = np.stack([data] * 3, axis=1)
    case = with_data(operator, dtype, data)
    read = read_again(tmp_path, case)
    assert read.literals is not None
    again = read.literals[0]
    assert again is not None
    assert (again.shape, again.dtype) == (data.shape, data.dtype)
    if dtype == "string":
        assert again.tolist() == data.tolist()
    else:
        assert again.tobytes() == data.tobytes()


def test_everything_else_is_the_same_again(tmp_path: Path) -> None:
    options = Options(shapes="static", initializer="indices", optimization="basic", neighbours=True)
    made = prepare(
        "GatherElements",
        "int8",
        options=options,
        validity=Validity.INVALID,
        rule="axis in [-r, r-1]: 'so' #2",
        source='a #1 "source"',
    )
    case = msgspec.structs.replace(made.case, attributes={"axis": 2**40})
    read = read_again(tmp_path, case)
    assert read.id.partition(":")[2].startswith(
        "case=again;data=int8[2,3];indices=int64[2,3];axis=1099511627776;shapes=static"
    )
    for field in ("opset", "attributes", "options", "validity", "rule", "source"):
        assert getattr(read, field) == getattr(case, field), field


def test_empty_scalar_and_filled_tensors(tmp_path: Path) -> None:
    made = prepare("Round", "float32").case
    for array in (np.zeros((0, 3), "f4"), np.array(2.5, "f4"), np.zeros((0,), "f4")):
        inputs = (TensorSpec("X", "float32", array.shape, "literal"),)
        read = read_again(tmp_path, msgspec.structs.replace(made, inputs=inputs, literals=(array,)))
        assert read.inputs[0].shape == array.shape
        assert read.literals is not None
        assert read.literals[0].tobytes() == array.tobytes()
    filled = msgspec.structs.replace(
        made, inputs=(TensorSpec("X", "float32", (70000,), "halves"),), literals=(None,)
    )
    read = read_again(tmp_path, filled)
    assert (read.inputs[0].shape, read.inputs[0].values, read.literals) == ((70000,), "halves", (None,))


def test_long_tensors_are_broken_between_elements(tmp_path: Path) -> None:
    data = np.arange(200, dtype="f4")
    case = with_data("Round", "float32", data)
    lines = entry_lines(case, "long")
    assert max(map(len, lines)) <= 120
    read = read_again(tmp_path, case)
    assert read.literals is not None
    assert read.literals[0].tolist() == data.tolist()


@pytest.mark.slow
def test_calls_of_directml_itself_are_the_same_again(tmp_path: Path) -> None:
    """Members that are replaced, layouts, an operator and a buffer in place are part of the entry."""
    queries = parse_all(["GatherElements:api=directml"])
    found = Selection(expand([spec_of("GatherElements")], queries), queries)
    asked = {repr(case.directml): case for case in found}
    assert {"layout", "tensors", "attributes", "in_place"} <= {
        name
        for case in asked.values()
        for name in case.directml.__struct_fields__
        if getattr(case.directml, name)
    }
    for case in asked.values():
        read = read_again(tmp_path, case)
        assert (read.directml, read.validity, read.levels) == (case.directml, case.validity, case.levels), (
            case.id
        )
