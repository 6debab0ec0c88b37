from __future__ import annotations

import pytest

from harness.model.caseid import parse
from harness.model.facets import Facets, dtype_key, facets, telling, written
from tests.synthetic import cases


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (
            "GatherElements@13:sweep=a;data=float16[3,4];indices=int64[3,2];axis=1",
            Facets("GatherElements", 13, "float16", 2, "indices=int64", ""),
        ),
        ("Round@22:case=nan;X=bfloat16[]", Facets("Round", 22, "bfloat16", 0, "", "")),
        (
            "GatherND@12:sweep=a;data=bool[0,1,2];indices=int64[1];batch_dims=1;initializer=indices",
            Facets("GatherND", 12, "bool", 3, "indices=int64", ""),
        ),
        (
            "Round@11:sweep=a;X=float32[2];variant=toward_zero;shapes=static",
            Facets("Round", 11, "float32", 1, "", "toward_zero"),
        ),
        (
            "Where@9:sweep=a;condition=bool[2];X=float32[2];Y=float32[]",
            Facets("Where", 9, "bool", 1, "X=float32 Y=float32", ""),
        ),
        (
            "Concat@13:sweep=a;inputs.0=int8[2];inputs.1=int8[3];axis=0",
            Facets("Concat", 13, "int8", 1, "", ""),
        ),
        (
            "Squeeze@13:case=a;data=float32[1,2];axes=int64{0}",
            Facets("Squeeze", 13, "float32", 2, "axes=int64{}", ""),
        ),
        (
            "Range@11:case=a;start=int16(0);limit=int16(3);delta=int16(1)",
            Facets("Range", 11, "int16", 0, "limit=int16{} delta=int16{}", ""),
        ),
        (
            "ConstantOfShape@9:case=a;input=int64{2,3};value=float32{1.5}",
            Facets("ConstantOfShape", 9, "int64", 1, "value=float32{}", ""),
        ),
        (
            "Transpose@13:case=a;data=bool[1,2];perm=[1,0];mode=float32",
            Facets("Transpose", 13, "bool", 2, "", ""),
        ),
        (
            "Sequence@1:case=a;x=int8[1];y.0=int16[2];y.1=float16[2]",
            Facets("Sequence", 1, "int8", 1, "y=int16+float16", ""),
        ),
        ("Round@11:case=no_tensor", Facets("Round", 11, "", -1, "", "")),
        ("</script>", Facets("</script>", 0, "", -1, "", "")),
        ("", Facets("", 0, "", -1, "", "")),
    ],
)
def test_facets_of_an_id(case: str, expected: Facets) -> None:
    assert facets(case) == expected


def test_facets_agree_with_the_parser() -> None:
    for (case, *_), _ in zip(cases(), range(4000), strict=False):
        read, parsed = facets(case), parse(case)
        assert (read.operator, read.opset) == (parsed.operator, parsed.opset)
        if parsed.tensors:
            first = next(iter(parsed.tensors.values()))
            assert (read.dtype, read.rank) == (first.dtype, len(first.shape))
            assert read.types == " ".join(
                f"{name}={tensor.dtype}" for name, tensor in list(parsed.tensors.items())[1:]
            )


def test_element_types_sort_by_kind_and_width() -> None:
    given = ["string", "float32", "uint8", "made_up", "int64", "bool", "int8", "bfloat16"]
    assert sorted(given, key=dtype_key) == [
        "bool",
        "int8",
        "int64",
        "uint8",
        "bfloat16",
        "float32",
        "string",
        "made_up",
    ]


def test_types_that_tell_something() -> None:
    cases = (
        "Gather@13:case=a;data=int64[2];indices=int64[1]",
        "Gather@13:case=a;data=int8[2];indices=int64[1]",
        "Add@14:case=a;A=int8[2];B=int8[1]",
        "Add@14:case=a;A=float32[2];B=float32[1]",
        "Squeeze@13:case=a;data=float32[1];axes=int64{0}",
        "Slice@13:case=a;data=int8[4];starts=int64{0};ends=int64{1};axes=int64{0}",
        "Slice@13:case=a;data=int8[4];starts=int32{0};ends=int32{1}",
        "ReduceSum@13:case=a;data=int8[4];axes=int64[1]",
    )
    names = telling(map(facets, cases))
    assert names == {"Gather": {"indices"}, "Slice": {"starts", "ends"}, "ReduceSum": {"axes"}}
    assert [facets(case).shown(names.get(facets(case).operator, ())).types for case in cases] == [
        "indices=int64", "indices=int64", "", "", "", "starts=int64 ends=int64", "starts=int32 ends=int32", "axes=int64",
    ]  # fmt: skip


def test_types_of_several_cases_as_text() -> None:
    assert written(("indices=int64", "indices=int32")) == "indices=int32, int64"
    assert written(("X=float32 Y=float16", "X=int8 Y=int8")) == "X=int8, float32; Y=int8, float16"
    assert written(()) == ""
