from __future__ import annotations

import pytest

from harness.caseid import parse
from harness.facets import Facets, dtype_key, facets
from tests.synthetic import cases


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("GatherElements@13:sweep=a;data=float16[3,4];indices=int64[3,2];axis=1", Facets("GatherElements", 13, "float16", 2, "int64", "")),
        ("Round@22:case=nan;X=bfloat16[]", Facets("Round", 22, "bfloat16", 0, "", "")),
        (
            "GatherND@12:sweep=a;data=bool[0,1,2];indices=int64[1];batch_dims=1;initializer=indices",
            Facets("GatherND", 12, "bool", 3, "int64", ""),
        ),
        ("Round@11:sweep=a;X=float32[2];variant=toward_zero;shapes=static", Facets("Round", 11, "float32", 1, "", "toward_zero")),
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
            assert read.index_dtype == (parsed.tensors["indices"].dtype if "indices" in parsed.tensors else "")


def test_element_types_sort_by_kind_and_width() -> None:
    given = ["string", "float32", "uint8", "made_up", "int64", "bool", "int8", "bfloat16"]
    assert sorted(given, key=dtype_key) == ["bool", "int8", "int64", "uint8", "bfloat16", "float32", "string", "made_up"]
