"""Both sides of each constraint, table and buffer rule, from a table and a base call that are written
here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from harness.model.case import DirectmlTensor, Validity
from harness.model.reference.directml import (
    Constraint,
    DirectmlOperator,
    Member,
    TensorSupportEntry,
    directml_operator,
)
from harness.operators.directml.changes import CallChange, broken, buffer_changes, changes, is_paddable, snake
from harness.operators.directml.description import BufferTensor, Description
from harness.operators.directml.layout import buffer_bytes

MEMBERS = (
    Member("ATensor", "input"),
    Member("BTensors", "inputs", count="BCount"),
    Member("OutputTensor", "output"),
)
TABLE = {
    "ATensor": TensorSupportEntry("input", (1, 4), ("FLOAT64", "FLOAT32", "FLOAT16")),
    "BTensors": TensorSupportEntry("inputs", (1, 4), ("FLOAT32", "FLOAT16", "INT32")),
    "OutputTensor": TensorSupportEntry("output", (1, 4), ("FLOAT32", "FLOAT16")),
}


def operator(*constraints: Constraint, **given: Any) -> DirectmlOperator:
    return DirectmlOperator(1, "1_0", MEMBERS, "a page", {"1_0": TABLE}, constraints=constraints, **given)


def tensor(dtype: str, *sizes: int, strides: tuple[int, ...] | None = None) -> BufferTensor:
    return BufferTensor(dtype, sizes, strides, buffer_bytes(dtype, sizes, strides))


def described(**tensors: BufferTensor | tuple[BufferTensor, ...] | None) -> Description:
    names = [name for name, _ in Description("X", 1, (), tensors, {}, (), (), None, ()).views()]
    inputs = tuple(name for name in names if not name.startswith("Output"))
    return Description("X", 1, (), tensors, {}, inputs, tuple(set(names) - set(inputs)), None, ())


BASE = described(
    ATensor=tensor("float32", 2, 3),
    BTensors=(tensor("float32", 2, 3), tensor("float32", 2, 3, strides=(0, 1))),
    OutputTensor=tensor("float32", 2, 3),
)


def applied(change: CallChange, base: Description = BASE) -> Description:
    """Return the base with what a change writes."""

    def one(name: str, given: BufferTensor) -> BufferTensor:
        told = msgspec.structs.asdict(change.tensors.get(name, DirectmlTensor()))
        sizes = (
            given.sizes
            if change.dimension_count is None
            else (1,) * (change.dimension_count - len(given.sizes)) + given.sizes
        )
        return msgspec.structs.replace(
            given, **{"sizes": sizes} | {key: value for key, value in told.items() if value is not None}
        )

    tensors = {
        name: one(name, given)
        if isinstance(given, BufferTensor)
        else tuple(one(f"{name}.{place}", each) for place, each in enumerate(given or ()))
        for name, given in base.tensors.items()
    }
    return msgspec.structs.replace(base, tensors=tensors)


ALIKE = Constraint(("dtype", "dimension_count", "sizes"), ("ATensor", "BTensors", "OutputTensor"))


def made(*constraints: Constraint, base: Description = BASE) -> Iterator[CallChange]:
    return changes(operator(*constraints), base, paddable=True)


@pytest.mark.parametrize("what", ["dtype", "dimension_count", "sizes"])
def test_a_constraint_is_kept_by_the_base_and_broken_by_each_tensor_but_the_first(what: str) -> None:
    alone = Constraint((what,), ALIKE.of)
    found = [change for change in made(alone) if change.section.startswith("tensor constraints")]
    assert [change.name for change in found] == [
        f"api_unlike_{what}_b_tensors_0",
        f"api_unlike_{what}_b_tensors_1",
        f"api_unlike_{what}_output_tensor",
    ]
    for change in found:
        assert change.validity is Validity.INVALID
        assert (
            change.rule
            == "ATensor, BTensors and OutputTensor must have the same "
            + {
                "dtype": "DataType",
                "dimension_count": "DimensionCount",
                "sizes": "Sizes",
            }[what]
        )
        assert len(change.tensors) == 1
        assert next(each for each, _ in broken(operator(ALIKE), applied(change))) == what
    base = next(made(alone))
    assert (base.name, base.validity, applied(base)) == ("api_base", Validity.VALID, BASE)


def test_what_must_be_equal_changes_in_nothing_else() -> None:
    unlike = [each for each in made(ALIKE) if each.name.startswith(("api_unlike_dtype", "api_unlike_sizes"))]
    assert len(unlike) > 1
    for change in unlike:
        kinds = {what for what, _ in broken(operator(ALIKE), applied(change))}
        assert kinds == {change.name.split("_")[2]}


def test_a_tensor_that_is_broadcast_stays_so_with_one_more_dimension() -> None:
    change = next(each for each in made(ALIKE) if each.name == "api_unlike_dimension_count_b_tensors_1")
    assert change.tensors == {"BTensors.1": DirectmlTensor(sizes=(1, 2, 3), strides=(0, 0, 1))}


def test_the_other_data_type_is_one_of_the_tensors_table() -> None:
    changed = {
        name: told.dtype
        for change in made(ALIKE)
        if "unlike_dtype" in change.name
        for name, told in change.tensors.items()
    }
    assert changed == {"BTensors.0": "float16", "BTensors.1": "float16", "OutputTensor": "float16"}


def test_a_wrong_constraint_is_seen_by_the_base_and_gives_no_case() -> None:
    wrong = Constraint(("sizes",), ("ATensor", "OutputTensor"))
    base = described(ATensor=tensor("float32", 2, 3), BTensors=None, OutputTensor=tensor("float32", 2, 1))
    assert list(broken(operator(wrong), base)) == [("sizes", wrong)]
    assert not any("unlike" in change.name for change in made(wrong, base=base))


def test_valid_changes_keep_every_constraint() -> None:
    valid = [change for change in made(ALIKE) if change.validity is Validity.VALID]
    assert [change.name for change in valid] == ["api_base", "api_dimension_count_3", "api_dimension_count_4"]
    assert not any(list(broken(operator(ALIKE), applied(change))) for change in valid)


def test_one_dimension_more_than_any_table_has() -> None:
    (change,) = [
        each for each in changes(operator(), BASE, paddable=False) if each.dimension_count is not None
    ]
    assert (change.name, change.dimension_count, change.rule) == (
        "api_too_many_dimensions",
        5,
        "a tensor has at most 4 dimensions",
    )


def test_a_data_type_that_no_table_has_is_given_to_all_that_must_have_the_same() -> None:
    like = Constraint(("dtype",), ("ATensor", "OutputTensor"))
    found = {each.name: set(each.tensors) for each in made(like) if "undocumented" in each.name}
    assert found == {
        "api_undocumented_int64_a_tensor": {"ATensor", "OutputTensor"},
        "api_undocumented_float64_b_tensors": {"BTensors.0", "BTensors.1"},
        "api_undocumented_int64_b_tensors": {"BTensors.0", "BTensors.1"},
    }
    rules = {each.name: each.rule for each in made(like)}
    assert rules["api_undocumented_int64_a_tensor"] == "ATensor and OutputTensor cannot be INT64"


def test_a_table_without_data_types_says_nothing_of_them() -> None:
    silent = msgspec.structs.replace(
        operator(), tables={"1_0": {name: msgspec.structs.replace(s, dtypes=()) for name, s in TABLE.items()}}
    )
    assert not any("undocumented" in change.name for change in changes(silent, BASE, paddable=True))


def test_leading_dimensions_have_a_meaning_where_the_document_names_them_or_an_array_counts_them() -> None:
    assert is_paddable(directml_operator("DML_OPERATOR_GEMM"), ())
    assert is_paddable(directml_operator("DML_OPERATOR_ELEMENT_WISE_ADD"), ())
    assert not is_paddable(directml_operator("DML_OPERATOR_CONVOLUTION"), ())
    assert not is_paddable(directml_operator("DML_OPERATOR_DEPTH_TO_SPACE"), ())
    assert not is_paddable(directml_operator("DML_OPERATOR_MAX_POOLING"), ())
    assert not is_paddable(directml_operator("DML_OPERATOR_JOIN"), ())
    assert is_paddable(directml_operator("DML_OPERATOR_JOIN"), ("Axis",))


def test_names_of_tensors_in_names_of_cases() -> None:
    assert [snake(name) for name in ("ATensor", "OutputTensors.1")] == ["a_tensor", "output_tensors_1"]


def test_both_sides_of_each_rule_of_buffers() -> None:
    found = {change.name: (change.validity.value, change.tensors) for change in buffer_changes(BASE)}
    assert {name: told for name, (_, told) in found.items()} == {
        "api_larger_buffer": {name: DirectmlTensor(bytes=tensor.bytes + 64) for name, tensor in BASE.views()},
        "api_smaller_input_buffer": {"ATensor": DirectmlTensor(bytes=20)},
        "api_smaller_output_buffer": {"OutputTensor": DirectmlTensor(bytes=20)},
        "api_aligned": {
            "ATensor": DirectmlTensor(alignment=64),
            "OutputTensor": DirectmlTensor(alignment=16),
        },
        "api_alignment_of_the_element": {"ATensor": DirectmlTensor(alignment=4)},
        "api_alignment_of_twice_the_element": {"OutputTensor": DirectmlTensor(alignment=8)},
        "api_alignment_of_3": {"ATensor": DirectmlTensor(alignment=3)},
        "api_alignment_below_the_element": {"ATensor": DirectmlTensor(alignment=2)},
        "api_size_of_zero": {"ATensor": DirectmlTensor(sizes=(0, 3), bytes=24)},
    }
    assert {name for name, (validity, _) in found.items() if validity == "valid"} == {
        "api_larger_buffer",
        "api_aligned",
        "api_alignment_of_the_element",
        "api_alignment_of_twice_the_element",
    }


def test_buffers_of_bytes() -> None:
    base = described(ATensor=tensor("uint8", 3), BTensors=None, OutputTensor=tensor("int64", 3))
    found = {change.name: change for change in buffer_changes(base)}
    assert "api_alignment_below_the_element" not in found  # nothing is below one byte
    assert "api_alignment_of_twice_the_element" not in found  # it is what every tensor has
    rounded = found["api_bytes_not_rounded"]
    assert (rounded.validity, rounded.tensors["ATensor"].bytes) == (Validity.UNSPECIFIED, 3)


def test_a_call_without_inputs_has_the_rules_of_its_output() -> None:
    base = described(ATensor=None, BTensors=None, OutputTensor=tensor("float32", 4))
    found = {change.name: set(change.tensors) for change in buffer_changes(base)}
    assert "api_smaller_input_buffer" not in found
    assert {name for names in found.values() for name in names} == {"OutputTensor"}
