"""The feature level of a case, from Microsoft's published tables.

The tables, in short (MicrosoftDocs/sdk-api, the operators' DESC pages):
    GATHER_ELEMENTS, GATHER_ND   2_1: DimensionCount 4; 8- to 32-bit types; indices UINT32
                                 3_0: 1 to 8; indices also INT32, INT64, UINT64, negative ones with signed
                                 types 4_1: also FLOAT64, INT64, UINT64 data
    GATHER_ND1                   3_0: 1 to 8, with BatchDimensionCount; 4_1: also 64-bit data
    ELEMENT_WISE_ROUND           2_1: FLOAT32, FLOAT16; DimensionCount 4; 3_0: 1 to 8
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from harness.model.case import Case, DirectmlOptions, TensorSpec
from harness.model.dtypes import DTYPES
from harness.model.errors import SpecError
from harness.model.reference.directml import directml_operator, operator_names
from harness.operators import OPERATORS
from harness.operators.base import Call, TensorType
from harness.operators.directml.levels import level_made, levels, levels_of
from harness.operators.directml.lowering import lower
from harness.specs.expand import expand
from harness.specs.reading.load import default_folder, load_specs
from harness.specs.sweeps.calls import call_of

LOWERED = {
    "GatherElements": ("DML_OPERATOR_GATHER_ELEMENTS",),
    "GatherND": ("DML_OPERATOR_GATHER_ND", "DML_OPERATOR_GATHER_ND1"),
    "Round": ("DML_OPERATOR_ELEMENT_WISE_ROUND",),
}


def level(
    operator: str, *inputs: tuple[str, tuple[int, ...]], values: str = "in_range", **attributes: int
) -> str:
    names = ("X",) if operator == "Round" else ("data", "indices")
    specs = tuple(
        TensorSpec(name, dtype, shape, values if name == "indices" else "random")
        for name, (dtype, shape) in zip(names, inputs, strict=True)
    )
    case = Case("id", operator, 13, attributes, specs, lowers_to=LOWERED[operator])
    return levels_of(case, call_of(case))["directml"]


def ones(rank: int) -> tuple[int, ...]:
    return (1,) * rank


@pytest.mark.parametrize("rank", range(10))
@pytest.mark.parametrize(
    ("dtype", "index", "values", "wanted"),
    [
        ("float32", "int32", "in_range", "2_1"),
        ("float16", "int32", "boundary", "3_0"),
        ("uint8", "int32", "last", "2_1"),
        ("int8", "int32", "repeated", "2_1"),
        ("uint16", "int32", "first", "2_1"),
        ("int16", "int32", "mixed", "3_0"),
        ("uint32", "int32", "negative", "3_0"),
        ("int32", "int64", "in_range", "3_0"),
        ("bool", "int32", "in_range", "2_1"),
        ("bool", "int64", "in_range", "3_0"),
        ("float64", "int32", "in_range", "4_1"),
        ("int64", "int32", "in_range", "4_1"),
        ("uint64", "int64", "negative", "4_1"),
        ("bfloat16", "int32", "in_range", "beyond"),
        ("string", "int64", "in_range", "beyond"),
        ("complex64", "int32", "in_range", "beyond"),
        ("complex128", "int32", "in_range", "beyond"),
    ],
)
def test_gather_elements(dtype: str, index: str, values: str, wanted: str, rank: int) -> None:
    if rank > 8:
        wanted = "beyond"
    elif rank > 4 and wanted == "2_1":
        wanted = "3_0"
    assert level("GatherElements", (dtype, ones(rank)), (index, ones(rank)), values=values, axis=0) == wanted


@pytest.mark.parametrize(
    ("data", "indices", "values", "batch", "wanted"),
    [
        (
            ("float32", (2, 3)),
            ("int64", (5, 1)),
            "in_range",
            0,
            "3_0",
        ),  # ONNX has only int64 indices here, and 2_1 only UINT32
        (("float32", (2, 3)), ("int32", (5, 1)), "in_range", 0, "2_1"),
        (("float32", (2, 3, 4, 5)), ("int32", (5, 1)), "in_range", 0, "2_1"),
        (("float32", (2, 3, 4, 5)), ("int32", (5, 6, 1)), "in_range", 0, "3_0"),  # the output has rank 5
        (("float32", (2, 3)), ("int64", (5, 1)), "negative", 0, "3_0"),
        (("float32", (2, 3)), ("int32", (2, 1)), "in_range", 1, "3_0"),  # batched: GATHER_ND1
        (("uint8", (2, 3)), ("int64", (2, 1)), "boundary", 1, "3_0"),
        (("float64", (2, 3)), ("int64", (2, 1)), "boundary", 1, "4_1"),
        (("int64", (2, 3)), ("int64", (2, 1)), "in_range", 0, "4_1"),
        (("float16", ones(8)), ("int64", (1, 1)), "in_range", 0, "3_0"),
        (("float16", ones(8)), ("int64", (1, 1, 1)), "in_range", 0, "beyond"),  # the output has rank 9
        (("float16", ones(8)), ("int64", (1, 1, 2)), "in_range", 0, "3_0"),
        (("float16", ones(9)), ("int64", (9,)), "in_range", 0, "beyond"),
        (("float16", (3,)), ("int64", ones(9)), "in_range", 0, "beyond"),
        (("bfloat16", (2, 3)), ("int64", (5, 1)), "in_range", 0, "beyond"),
        (("string", (2, 3)), ("int64", (2, 1)), "in_range", 1, "beyond"),
    ],
)
def test_gather_nd(
    data: tuple[str, tuple[int, ...]],
    indices: tuple[str, tuple[int, ...]],
    values: str,
    batch: int,
    wanted: str,
) -> None:
    assert (
        level("GatherND", data, indices, values=values, **({"batch_dims": batch} if batch else {})) == wanted
    )


@pytest.mark.parametrize(
    ("dtype", "rank", "wanted"),
    [
        *((dtype, rank, "2_1") for dtype in ("float32", "float16") for rank in (0, 1, 2, 3, 4)),
        *((dtype, rank, "3_0") for dtype in ("float32", "float16") for rank in (5, 6, 7, 8)),
        ("float32", 9, "beyond"),
        ("float64", 1, "beyond"),
        ("float64", 4, "beyond"),
        ("bfloat16", 4, "beyond"),
    ],
)
def test_round(dtype: str, rank: int, wanted: str) -> None:
    assert level("Round", (dtype, ones(rank))) == wanted


@pytest.mark.parametrize(
    ("indices", "wanted"),
    [([0, 1], "2_1"), ([0, -1], "3_0"), ([], "beyond")],
)
def test_written_indices_say_themselves_whether_one_is_negative(indices: list[int], wanted: str) -> None:
    written = np.array(indices, np.int32)
    specs = (
        TensorSpec("data", "float32", (2,), "literal"),
        TensorSpec("indices", "int32", written.shape, "literal"),
    )
    case = Case(
        "id",
        "GatherElements",
        13,
        {"axis": 0},
        specs,
        literals=(np.zeros(2, np.float32), written),
        lowers_to=LOWERED["GatherElements"],
    )
    assert levels_of(case, call_of(case)) == {"directml": wanted}


def test_sizes_that_the_document_forbids_hold_no_level() -> None:
    """ONNX allows indices that are smaller off the axis; DML_GATHER_ELEMENTS_OPERATOR_DESC asks for those of
    data."""
    assert level("GatherElements", ("float32", (3, 4)), ("int32", (2, 4)), axis=0) == "2_1"
    assert level("GatherElements", ("float32", (3, 4)), ("int32", (3, 3)), axis=0) == "beyond"
    assert level("GatherElements", ("float32", (3, 4)), ("int32", (3, 3)), axis=-1) == "2_1"
    assert level("GatherElements", ("float32", (3, 4)), ("int32", (0, 4)), axis=0) == "beyond"


def made(dtype: str, index: str, rank: int, **options: object) -> tuple[str, str]:
    """Return the level of a GatherElements case, and that of the call that it is lowered to."""
    specs = (TensorSpec("data", dtype, ones(rank)), TensorSpec("indices", index, ones(rank), "in_range"))
    case = Case("id", "GatherElements", 13, {"axis": 0}, specs, lowers_to=LOWERED["GatherElements"])
    if options:
        case = msgspec.structs.replace(case, directml=DirectmlOptions(**options))  # type: ignore[arg-type]
    own = levels_of(case, call_of(case))["directml"]
    return own, level_made(lower(case, call_of(case)).encode(), own)["directml"]


@pytest.mark.parametrize("rank", range(1, 9))
def test_the_level_of_a_call_is_that_of_what_it_says(rank: int) -> None:
    """2_1 has 4 dimensions and UINT32 indices: only the call that says so holds it, though a case that could
    be padded to it does."""
    assert made("float32", "int32", rank) == ("2_1" if rank <= 4 else "3_0", "3_0")
    assert made("float32", "int64", rank) == ("3_0", "3_0")
    assert made("int64", "int32", rank) == ("4_1", "4_1")
    for written in ({"dimension_count": rank}, {"dimension_count": None}):
        own = "2_1" if rank == 4 else "3_0"
        assert made("float32", "uint32", rank, **written) == (own, own)
    if rank <= 4:
        assert made("float32", "uint32", rank, dimension_count=4) == ("2_1", "2_1")


BY_DIRECTML = {entry.directml: name for name, entry in DTYPES.items() if entry.directml and name != "bool"}


def lowest_level(lowered: str, data: str, index: str, rank: int) -> str:
    """Return the level of a call of DirectML's own API as it is written: its data types, and tensors of so
    many dimensions."""
    operator = OPERATORS["GatherElements" if lowered.endswith("ELEMENTS") else "GatherND"]
    inputs = {
        "data": TensorType(BY_DIRECTML.get(data, data), ones(rank)),
        "indices": TensorType(BY_DIRECTML[index], ones(rank)),
    }
    asked = DirectmlOptions(operator=lowered, dimension_count=rank)
    return levels(
        operator, Call(inputs, {"axis": 0} if "ELEMENTS" in lowered else {}), (lowered,), False, asked
    )["directml"]


@pytest.mark.parametrize(
    "operator", ["DML_OPERATOR_GATHER_ELEMENTS", "DML_OPERATOR_GATHER_ND", "DML_OPERATOR_GATHER_ND1"]
)
def test_the_published_tables_cell_by_cell(operator: str) -> None:
    """Each dtype, index dtype and rank of each published table is allowed at that level; one rank more is
    not."""
    published = directml_operator(operator).tables
    for own, table in published.items():
        most = table["InputTensor"].dims[1]
        for data in table["InputTensor"].dtypes:
            for index in table["IndicesTensor"].dtypes:
                found = lowest_level(operator, data, index, most)
                assert found <= own  # an earlier table may allow it already
                if own == min(published):
                    assert found == own
        assert lowest_level(operator, "FLOAT32", "INT64", 9) == "beyond"
    assert lowest_level(operator, "bfloat16", "INT64", 4) == "beyond"
    assert lowest_level(operator, "FLOAT32", "FLOAT32", 4) == "beyond"


def test_what_a_table_introduces() -> None:
    """Written down from the documents by hand, so that a slip in the data file shows."""
    names = {name for names in LOWERED.values() for name in names}
    assert {name: list(directml_operator(name).tables) for name in names} == {
        "DML_OPERATOR_GATHER_ELEMENTS": ["2_1", "3_0", "4_1"],
        "DML_OPERATOR_GATHER_ND": ["2_1", "3_0", "4_1"],
        "DML_OPERATOR_GATHER_ND1": ["3_0", "4_1"],
        "DML_OPERATOR_ELEMENT_WISE_ROUND": ["2_1", "3_0"],
    }


def test_known_operators_are_those_of_the_specs() -> None:
    assert {name for names in LOWERED.values() for name in names} <= set(operator_names())


def test_equal_levels_share_one_mapping() -> None:
    """A run has a million results and a handful of levels."""
    specs = (TensorSpec("X", "float32", (2,)),)
    cases = [Case(name, "Round", 22, {}, specs, lowers_to=LOWERED["Round"]) for name in ("a", "b")]
    a, b = (levels_of(case, call_of(case)) for case in cases)
    assert a is b


def test_a_spec_that_lowers_to_an_unknown_operator_is_refused(tmp_path: Path) -> None:
    text = (default_folder() / "Round.yaml").read_text(encoding="utf-8")
    path = tmp_path / "Round.yaml"
    path.write_text(
        text.replace("DML_OPERATOR_ELEMENT_WISE_ROUND}", "DML_OPERATOR_ELEMENT_WISE_ROUN}"), encoding="utf-8"
    )
    with pytest.raises(SpecError, match="did you mean 'DML_OPERATOR_ELEMENT_WISE_ROUND'"):
        expand(load_specs([path]))
