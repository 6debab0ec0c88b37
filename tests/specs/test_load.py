from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.model.case import Validity
from harness.model.errors import SpecError
from harness.model.query import Query
from harness.specs.reading.check import combinations
from harness.specs.reading.load import LoadedSpec, load_specs, spec_files
from tests.running import raising
from tests.specs.examples import GATHER_ELEMENTS, GATHER_ND


def load(folder: Path, **files: str) -> list[LoadedSpec]:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return load_specs([folder])


def problems(paths: list[Path]) -> tuple[str, ...]:
    with pytest.raises(SpecError) as raised:
        load_specs(paths)
    return raised.value.problems


def test_a_spec_is_what_it_says(tmp_path: Path) -> None:
    (spec,) = load(tmp_path, GatherElements=GATHER_ELEMENTS)
    model = spec.model
    assert (model.operator, model.opsets, model.lowers_to.directml) == (
        "GatherElements",
        (11, 13),
        ("DML_OPERATOR_GATHER_ELEMENTS",),
    )
    (case,) = model.cases
    assert case.inputs["data"][0].values == ((1, 2, 3), (4, 5, 6), (7, 8, 9))
    assert (case.attributes, case.validity, case.documents_output) == ({"axis": 0}, Validity.VALID, True)
    (sweep,) = model.sweeps
    assert list(sweep.inputs) == ["data", "indices"]
    assert sweep.inputs["data"].dtype == ("float32", "bfloat16")
    assert sweep.inputs["data"].shape == ((5,), (3, 4))
    assert (sweep.inputs["indices"].dtype, sweep.inputs["indices"].values) == ("all", ("in_range",))
    assert sweep.attributes == {"axis": "all"}
    assert (sweep.options.optimization, sweep.options.initializer, sweep.options.shapes) == (
        ("all",),
        ("indices", None),
        ("symbolic",),
    )


def test_lines_and_problems_of_a_loaded_spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (spec,) = load(tmp_path, GatherElements=GATHER_ELEMENTS)
    assert spec.source.where("cases", 0, "attributes", "axis") == "GatherElements.yaml:8"
    assert (
        spec.problem(("sweeps", 0, "attributes", "axis"), "out of range")
        == "GatherElements.yaml:17: sweeps[0].attributes.axis: out of range"
    )
    assert spec.schema(13).inputs[0].name == "data"


def test_sweep_keys(tmp_path: Path) -> None:
    (spec,) = load(tmp_path, GatherND=GATHER_ND)
    batched, invalid = spec.model.sweeps
    assert batched.opsets == (12, 13)
    assert batched.inputs["indices"].shape == {"outer": ((), (2,)), "tuple": "all"}
    assert (invalid.validity, invalid.rule) == (Validity.INVALID, "every index lies in [-s, s-1]")
    assert invalid.inputs["indices"].shape == {"outer": ((2,),), "tuple": (1, 2)}


def test_an_invalid_entry_may_use_dtypes_that_the_operator_refuses(tmp_path: Path) -> None:
    invalid = """\
operator: GatherND
opsets: [11]
lowers_to: {directml: X}
because: elements are moved
cases:
  - name: narrow_indices
    validity: invalid
    rule: indices are int64
    inputs: {data: {dtype: int8, values: [1]}, indices: {dtype: int32, values: [0]}}
sweeps:
  - name: narrow_indices
    validity: invalid
    rule: indices are int64
    data: {dtype: bfloat16, shape: [[3]]}
    indices: {dtype: [int32, uint8], shape: {outer: [[2]], tuple: 1}}
"""
    (spec,) = load(tmp_path, GatherND=invalid)
    assert spec.model.cases[0].inputs["indices"][0].dtype == "int32"
    assert spec.model.sweeps[0].inputs["indices"].dtype == ("int32", "uint8")
    (tmp_path / "GatherND.yaml").write_text(invalid.replace("invalid", "unspecified"))
    assert [line.split(": ")[1] for line in problems([tmp_path])] == [
        "cases[0].inputs.indices.dtype",
        "sweeps[0].data.dtype",
        "sweeps[0].indices.dtype[0]",
        "sweeps[0].indices.dtype[1]",
    ]


def test_combinations_are_counted_before_they_are_made(tmp_path: Path) -> None:
    (elements,) = load(tmp_path, GatherElements=GATHER_ELEMENTS)
    # opsets x data dtypes x shapes x index dtypes x extents x axes of rank 2 x initializers
    assert (
        combinations(elements.model.sweeps[0], {n: elements.schema(n) for n in (11, 13)})
        == 2 * 2 * 2 * 2 * 2 * 4 * 2
    )
    (tmp_path / "GatherElements.yaml").unlink()
    (nd,) = load(tmp_path, GatherND=GATHER_ND)
    # opsets x all 16 data dtypes x outer shapes x index tuples up to rank 3 x batch_dims
    assert combinations(nd.model.sweeps[0], {n: nd.schema(n) for n in (12, 13)}) == 2 * 16 * 2 * 3 * 2


def test_a_folder_that_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "iterdir", raising(PermissionError(13, "Permission denied")))
    monkeypatch.chdir(tmp_path.parent)
    assert problems([tmp_path]) == (f"{tmp_path.name}: cannot read the folder: Permission denied",)


def test_a_folder_is_its_own_files_in_order(tmp_path: Path) -> None:
    (tmp_path / "expectations").mkdir()
    (tmp_path / "expectations" / "x.yaml").write_text("[]")
    (tmp_path / "notes.txt").write_text("x")
    specs = load(tmp_path, b=GATHER_ND, a=GATHER_ELEMENTS)
    assert [spec.path.name for spec in specs] == ["a.yaml", "b.yaml"]
    assert [spec.path.name for spec in load_specs([tmp_path / "b.yaml", tmp_path])] == ["b.yaml", "a.yaml"]


def test_problems_of_all_files_come_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.yaml").write_text(GATHER_ELEMENTS.replace("float32", "float31"))
    Path("b.yaml").write_text("a: [")
    Path("empty").mkdir()
    lines = problems([Path("a.yaml"), Path("b.yaml"), Path("missing.yaml"), Path("empty")])
    assert [line.split(": ")[0] for line in lines] == [
        "empty",
        "a.yaml:10",
        "a.yaml:15",
        "b.yaml:1",
        "missing.yaml",
    ]
    assert lines[0] == "empty: no *.yaml file in this folder"
    assert "cannot read" in lines[-1]


def test_one_operator_has_one_spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.yaml").write_text(GATHER_ND)
    Path("b.yaml").write_text(GATHER_ND)
    assert problems([Path("a.yaml"), Path("b.yaml")]) == (
        "b.yaml:1: operator: GatherND already has a spec, a.yaml:1",
    )


KEYS = [
    "operator",
    "opsets",
    "cases",
    "sweeps",
    "name",
    "attributes",
    "inputs",
    "data",
    "indices",
    "dtype",
    "values",
    "shape",
    "options",
    "rule",
]
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 2**70)
    | st.sampled_from(["all", "int64", "float16", "GatherND", "x", "", "nan", "0x1"])
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)
PARTS = [
    (),
    ("opsets",),
    ("operator",),
    ("cases",),
    ("cases", 0),
    ("cases", 0, "inputs"),
    ("cases", 0, "inputs", "data"),
    ("cases", 0, "inputs", "data", "values"),
    ("cases", 0, "inputs", "indices", "dtype"),
    ("cases", 0, "attributes"),
    ("cases", 0, "output"),
    ("sweeps", 0),
    ("sweeps", 0, "data", "shape"),
    ("sweeps", 0, "indices"),
    ("sweeps", 0, "options"),
    ("sweeps", 0, "attributes"),
]


def good_tree() -> Any:
    values = [[1, 2], [3, 4]]
    return {
        "operator": "GatherElements",
        "opsets": [11, 13],
        "lowers_to": {"directml": "X"},
        "because": "moved",
        "cases": [
            {
                "name": "a",
                "inputs": {
                    "data": {"dtype": "int8", "values": values},
                    "indices": {"dtype": "int64", "values": [[0, 0]]},
                },
            }
        ],
        "sweeps": [
            {
                "name": "b",
                "data": {"dtype": "all", "shape": [[1]]},
                "indices": {"dtype": "all"},
                "attributes": {},
            }
        ],
    }


def replaced(tree: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    if isinstance(tree, list):
        return [replaced(item, path[1:], value) if i == path[0] else item for i, item in enumerate(tree)]
    return {**tree, path[0]: replaced(tree.get(path[0], {}), path[1:], value)}


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(PARTS), TREES)
def test_any_part_may_be_anything(tmp_path: Path, path: tuple[Any, ...], value: Any) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(json.dumps(replaced(good_tree(), path, value)), encoding="utf-8")
    try:
        (spec,) = load_specs([file])
    except SpecError:
        return
    assert spec.model.cases or spec.model.sweeps


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(0, len(GATHER_ELEMENTS)), st.integers(0, 12), st.text("[]{}:,-#&*!'\"\n ax1\0é", max_size=4)
)
def test_any_edit_is_read_or_refused(tmp_path: Path, start: int, length: int, inserted: str) -> None:
    file = tmp_path / "x.yaml"
    file.write_bytes((GATHER_ELEMENTS[:start] + inserted + GATHER_ELEMENTS[start + length :]).encode())
    try:
        (spec,) = load_specs([file])
    except SpecError:
        return
    assert spec.model.operator == "GatherElements"


class TestOfQueries:
    def test_only_the_operators_that_can_be_selected_are_read_in_the_order_of_the_files(self) -> None:
        queries = [Query.parse(text) for text in ("Round", "Ab*s", "Aco*s", "Abs:case=documented")]
        found = [spec.model.operator for spec in load_specs((), queries)]
        assert found == ["Abs", "Acos", "Round"]

    def test_terms_alone_and_an_unknown_operator_ask_for_every_file(self) -> None:
        everything = spec_files()
        for queries in (["data=float16"], ["Abs", "Rund"]):
            assert [spec.path for spec in load_specs((), list(map(Query.parse, queries)))] == everything

    def test_files_that_are_named_are_all_read(self, tmp_path: Path) -> None:
        (tmp_path / "GatherElements.yaml").write_text(GATHER_ELEMENTS, encoding="utf-8")
        (spec,) = load_specs([tmp_path], [Query.parse("Round")])
        assert spec.model.operator == "GatherElements"
