"""What an id says of a case, and terms about it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from harness.model.errors import UsageError
from harness.results.rules.feature_table import FeatureTable
from harness.results.rules.features import features, names_asked, numbers_asked, split
from harness.results.rules.terms import Term, say
from tests.plans import plan_in_parts
from tools.attribute_defaults import FILE, defaults

BATCHES = "GatherND@12:sweep=batch;data=float16[2,3,4];indices=int64[3,5,2];batch_dims=1;values=mixed"


def test_shapes_attributes_and_their_relations() -> None:
    found = features(BATCHES)
    wanted = {
        "operator": "GatherND",
        "opset": 12,
        "sweep": "batch",
        "data": "float16",
        "dtype": "float16",
        "data.kind": "float",
        "data.bits": 16,
        "data.rank": 3,
        "rank": 3,
        "data.elements": 24,
        "data.multiple_of_4": "yes",
        "indices": "int64",
        "indices.shape": "[3,5,2]",
        "batch_dims": 1,
        "batch_sizes": "differ",
        "tuple": 2,
        "slice_rank": 0,
        "result_rank": 2,
        "values": "mixed",
        "shapes": "symbolic",
        "initializer": "none",
        "in_place": "false",
        "variant": "none",
    }
    assert {name: found.get(name) for name in wanted} == wanted


@pytest.mark.parametrize(
    ("case", "wanted"),
    [
        ("GatherND@11:case=a;data=float32[3];indices=int64[2,1]", {"batch_dims": 0, "batch_sizes": "equal"}),
        (
            "GatherND@12:case=a;data=float32[3];indices=int64[2,1];batch_dims=-1",
            {"batch_dims": -1, "batch_dims_in_range": "no"},
        ),
        (
            "GatherND@12:case=a;data=float32[3];indices=int64[2,0]",
            {"tuple": 0, "indices.empty": "yes", "tuples": 2},
        ),
        (
            "GatherElements@13:case=a;data=bool[3,4];indices=int32[3,2];axis=-1",
            {"axis": -1, "axis.last": "yes", "along_axis": "fewer"},
        ),
        (
            "GatherElements@13:case=a;data=bool[3,4];indices=int32[2,4];axis=1",
            {"off_axis": "fewer", "along_axis": "same"},
        ),
        (
            "GatherElements@13:case=a;data=bool[3,4];indices=int32[2,5]",
            {"axis": 0, "axis.last": "no", "off_axis": "more"},
        ),
        (
            "GatherElements@13:case=a;data=bool[3];indices=int32[2,5];axis=7",
            {"ranks": "differ", "axis_in_range": "no"},
        ),
        (
            "Round@22:case=a;X=float64[];values=ordinary;in_place=true",
            {"X.rank": 0, "X.elements": 1, "in_place": "true", "rank": 0},
        ),
        ("Round@22:case=a;X=bool[0,3]", {"X.smallest": 0, "X.empty": "yes", "X.bits": 8}),
        ("something else", {"operator": "something else", "omitted": "none", "axis": None}),
        ("Softmax@11:case=a;input=float32[2,3,4]", {"axis": 1, "axis.last": "no", "input.along_axis": 3}),
        (
            "Softmax@13:case=a;input=float32[2,3,4]",
            {"axis": -1, "axis.last": "yes", "axis.normalised": 2, "input.along_axis": 4},
        ),
        (
            "Squeeze@13:case=a;data=int8[1,2];axes=int64{0,-1}",
            {"axes": "[0,-1]", "axes.count": 2, "axes.negative": "yes", "axes.all": "yes"},
        ),
        (
            "Squeeze@11:case=a;data=int8[1,2];axes=[1]",
            {"axes": "[1]", "axes.count": 1, "axes.last": 1, "axes.last_dimension": "yes"},
        ),
        (
            "Squeeze@11:case=a;data=int8[1,2];axes=[0,0]",
            {"axes.repeated": "yes", "axes.last_dimension": "no", "axes_in_range": "yes"},
        ),
        ("Squeeze@11:case=a;data=int8[1,2];axes=[2]", {"axes_in_range": "no", "axes.repeated": None}),
        ("Squeeze@11:case=a;data=int8[1,2];axes=[]", {"axes": "[]", "axes.count": 0, "axes.first": None}),
        (
            "Transpose@13:case=a;data=bool[1,2,3];perm=[1,0,2]",
            {"perm.ascending": "no", "perm.all": "yes", "perm.first": 1},
        ),
        (
            "TopK@11:case=a;X=float32[4];K=int64{3};axis=0",
            {"K": "[3]", "K.dtype": "int64", "K.first": 3, "along_axis": None},
        ),
        (
            "CumSum@14:case=a;x=int32[2,3];axis=int32(1)",
            {"axis": 1, "axis.dtype": "int32", "axis.last": "yes", "reverse": 0},
        ),
        ("Elu@6:case=a;X=float16[2];alpha=-0.5", {"alpha": "-0.5", "alpha.sign": -1}),
        ("Elu@6:case=a;X=float16[2]", {"alpha": "1.0", "alpha.sign": 1}),
        (
            "Clip@13:case=a;input=float32[2];min=float32(-1.5)",
            {"min": "-1.5", "min.sign": -1, "omitted": "max"},
        ),
        (
            "Clip@13:case=a;input=float32[2];max=float32[]",
            {"max": "float32", "omitted": "min", "max.rank": 0},
        ),
        (
            "Concat@13:case=a;inputs.0=int8[2];inputs.1=int8[3];inputs.2=int8[2];axis=0",
            {"inputs.count": 3, "along_axis": "more", "inputs.2.along_axis": 2},
        ),
        (
            "Add@14:case=a;A=int8[2,3];B=int8[3]",
            {"ranks": "differ", "rank_gap": -1, "broadcast": "second", "broadcast_last": "none"},
        ),
        (
            "Add@14:case=a;A=int8[1,3];B=int8[2,1]",
            {"ranks": "equal", "broadcast": "both", "broadcast_last": "second", "extents": "both"},
        ),
        (
            "Add@14:case=a;A=int8[2,3];B=int8[2,2]",
            {"broadcast": "impossible", "broadcast_last": None, "extents": "fewer"},
        ),
        ("Add@14:case=a;A=int8[2,3];B=int8[2,3];B.values=zero", {"broadcast": "none", "B.values": "zero"}),
        (
            "Where@16:case=a;condition=bool[2];X=int8[2];Y=int8[]",
            {"ranks": "equal", "Y.ranks": "differ", "Y.broadcast": "second"},
        ),
        (
            "ScatterND@18:case=a;data=int8[2,3];indices=int64[4,2];updates=int8[4]",
            {"tuple": 2, "tuples": 4, "slice_rank": 0, "reduction": "none"},
        ),
    ],
)
def test_every_kind_of_case(case: str, wanted: dict[str, object]) -> None:
    found = features(case)
    assert {name: found.get(name) for name in wanted} == wanted


@pytest.mark.slow
def test_the_table_says_of_every_case_what_the_case_says() -> None:
    ids = [case.id for case in plan_in_parts("one of each family")][::41]
    table = FeatureTable()
    for case in ids:
        table.add(case, "2_1")
    rows = range(len(ids))
    values = table.values(list(rows))  # type: ignore[arg-type]
    terms = list(table.candidates(values, values))
    assert len(terms) > 500
    described = [features(case) for case in ids]
    for term in terms:
        assert table.mask(term, list(rows)).tolist() == [term.holds(of) for of in described], str(term)  # type: ignore[arg-type]


def test_the_least_integer_leaves_a_column_its_order() -> None:
    table = FeatureTable()
    for axis in (-(2**63), -1, 0, 1, 2):
        table.add(f"GatherElements@13:case=a;data=int8[2,3];indices=int64[2,3];axis={axis}", "2_1")
    rows = np.arange(len(table))
    assert table.mask(Term.parse("axis<=0"), rows).tolist() == [True, True, True, False, False]
    assert table.mask(Term.parse("axis=-9223372036854775808"), rows).tolist() == [
        True,
        False,
        False,
        False,
        False,
    ]
    values = table.values(rows)
    assert Term.parse("axis>=0") in list(table.candidates(values, values))


@pytest.mark.parametrize(
    "text",
    [
        "data.rank>=3",
        "axis<=-1",
        "values!=mixed",
        "operator=GatherND",
        "data.shape=[2,3]",
        "batch_sizes=differ",
    ],
)
def test_a_term_is_read_as_it_is_written(text: str) -> None:
    assert str(Term.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "write column=value, with =, !=, >= or <=, for example 'rank>=3'"),
        ("data.rank>3", "write column=value"),
        ("rank", "write column=value"),
        ("data>=float16", ">= compares integers"),
        ("data=a;b", "write column=value"),
    ],
)
def test_what_is_no_term_is_refused(text: str, what: str) -> None:
    with pytest.raises(UsageError, match="bad term") as caught:
        Term.parse(text)
    assert what in str(caught.value)


def test_a_rule_reads_as_a_sentence() -> None:
    terms = [
        Term.parse(text)
        for text in ("batch_sizes=differ", "data.empty=no", "batch_dims>=1", "operator=GatherND", "opset!=11")
    ]
    assert (
        say(terms) == "GatherND and opset!=11 and batch_dims>=1 and batch sizes differ and data is not empty"
    )
    relations = (
        "axis_in_range=no",
        "axes.last_dimension=yes",
        "off_axis=fewer",
        "along_axis=same",
        "omitted=min",
        "broadcast=both",
        "omitted=none",
    )
    assert [Term.parse(text).words for text in relations] == [
        "axis out of range", "axes holds the last dimension", "the second input is smaller off the axis", "extents agree along the axis",
        "min omitted", "both are broadcast", "no input omitted",
    ]  # fmt: skip
    assert say([]) == "every case"


def test_the_defaults_are_those_of_the_installed_onnx() -> None:
    known = json.loads(FILE.read_text(encoding="utf-8"))["operators"]
    for operator, versions in defaults().items():
        for since, values in versions.items():
            if since in known.get(operator, {}):
                assert known[operator][since] == values, (operator, since)
    assert (known["GatherND"]["12"], known["Softmax"]["13"], known["Elu"]["6"]) == (
        {"batch_dims": 0},
        {"axis": -1},
        {"alpha": "1.0"},
    )


@pytest.mark.parametrize(
    "case",
    [
        "Einsum@12:case=a;x=int8[2];equation=i,j->ij",
        "Cast@9:case=a;x=int8[2];note=a*",
        "A@1:case=b;x=int8[1];words=[a=b]",
    ],
)
def test_what_a_query_cannot_hold_is_not_asked(case: str) -> None:
    numbers, names = split(case)
    asked = {**numbers_asked(numbers), **names_asked(names)}
    assert not {"equation", "note", "words"} & asked.keys()
    assert asked["x.rank"] == 1
