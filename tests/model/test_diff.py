"""The comparison, against an element-by-element definition in Python integers."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.case import Tensor
from harness.model.diff import OutputComparison, compare, describe, differing, ulps, write_element
from harness.model.dtypes import DTYPES
from harness.model.expected import Approx, Exact, OneOf
from harness.model.float_formats import FORMATS, decode, encode
from harness.model.result import Accuracy, Diff

FLOATS = {name: entry for name, entry in DTYPES.items() if entry.is_float}
SHAPES = st.sampled_from([(), (0,), (1,), (3,), (2, 3), (2, 0, 3), (1, 2, 1, 3)])


def bits_of(tensor: Tensor) -> list[int]:
    return [int(n) for n in tensor.array.reshape(-1).view(f"u{DTYPES[tensor.dtype].itemsize}")]


def from_bits(dtype: str, *bits: int) -> Tensor:
    return Tensor(dtype, np.array(bits, f"u{DTYPES[dtype].itemsize}").view(DTYPES[dtype].storage))


def infinity(dtype: str) -> int:
    mantissa, width = DTYPES[dtype].mantissa, DTYPES[dtype].itemsize * 8
    assert mantissa is not None
    return ((1 << (width - 1 - mantissa)) - 1) << mantissa


def same_bits(dtype: str, a: int, b: int) -> bool:
    """Equal bits, or both NaN."""
    without_sign = (1 << (DTYPES[dtype].itemsize * 8 - 1)) - 1
    return a == b or min(a & without_sign, b & without_sign) > infinity(dtype)


def wrong_elements(expected: Tensor, actual: Tensor) -> list[bool]:
    """Say for each element whether it differs, one at a time."""
    entry = DTYPES[expected.dtype]
    if entry.is_float:
        return [
            not same_bits(expected.dtype, a, b)
            for a, b in zip(bits_of(expected), bits_of(actual), strict=True)
        ]
    if entry.storage[0] == "c":
        part = {8: "float32", 16: "float64"}[entry.itemsize]
        halves = [
            Tensor(part, np.ascontiguousarray(t.array).reshape(-1).view(DTYPES[part].storage))
            for t in (expected, actual)
        ]
        flat = wrong_elements(*halves)
        return [flat[n] or flat[n + 1] for n in range(0, len(flat), 2)]
    return [
        a != b
        for a, b in zip(expected.array.reshape(-1).tolist(), actual.array.reshape(-1).tolist(), strict=True)
    ]


@st.composite
def tensors(draw: st.DrawFn, dtype: str, shape: tuple[int, ...]) -> Tensor:
    """Any bit patterns, special values often."""
    count = int(np.prod(shape, dtype=int))
    entry = DTYPES[dtype]
    if entry.storage == "O":
        array = np.empty(count, object)
        array[:] = draw(st.lists(st.sampled_from(["", "a", "b", "\u00e9"]), min_size=count, max_size=count))
    elif dtype == "bool":
        array = np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)), bool)
    elif entry.is_float:
        sign = 1 << (entry.itemsize * 8 - 1)
        top = infinity(dtype)
        special = st.sampled_from([n | s for n in (0, 1, top - 1, top, top + 1, top + 2) for s in (0, sign)])
        bits = draw(st.lists(special | st.integers(0, 2 * sign - 1), min_size=count, max_size=count))
        array = np.array(bits, f"u{entry.itemsize}").view(entry.storage)
    else:
        parts = draw(
            st.lists(
                st.integers(0, 2) | st.integers(0, 255),
                min_size=count * entry.itemsize,
                max_size=count * entry.itemsize,
            )
        )
        array = np.array(parts, np.uint8).view(entry.storage)
    return Tensor(dtype, array.reshape(shape))


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    """Two tensors of one dtype and shape, each element of the second often that of the first."""
    dtype, shape = draw(st.sampled_from(sorted(DTYPES))), draw(SHAPES)
    a, b = draw(tensors(dtype, shape)), draw(tensors(dtype, shape))
    kept = np.array(
        draw(st.lists(st.booleans(), min_size=a.array.size, max_size=a.array.size)), bool
    ).reshape(shape)
    mixed = b.array.copy()
    mixed[kept] = a.array[kept]
    return a, Tensor(dtype, mixed)


@given(pairs())
def test_compare_is_the_element_by_element_definition(pair: tuple[Tensor, Tensor]) -> None:
    expected, actual = pair
    wrong = wrong_elements(expected, actual)
    diff = compare(expected, actual)
    if not any(wrong):
        assert diff is None
        return
    assert diff is not None
    assert (diff.differing, diff.total) == (sum(wrong), len(wrong))
    assert diff.first_index == tuple(
        int(i) for i in np.unravel_index(wrong.index(True), expected.array.shape)
    )
    assert diff.expected != diff.actual  # two different elements look different
    assert differing(expected, actual).reshape(-1).tolist() == wrong


@given(pairs())
def test_differing_is_symmetric(pair: tuple[Tensor, Tensor]) -> None:
    there, back = compare(*pair), compare(*reversed(pair))
    assert (there is None) is (back is None)
    if there is not None and back is not None:
        assert (there.differing, there.total, there.first_index, there.max_ulp) == (
            back.differing,
            back.total,
            back.first_index,
            back.max_ulp,
        )
        assert (there.expected, there.actual) == (back.actual, back.expected)


@given(
    st.sampled_from(sorted(DTYPES)).flatmap(lambda dtype: SHAPES.flatmap(lambda shape: tensors(dtype, shape)))
)
def test_a_tensor_equals_itself(tensor: Tensor) -> None:
    assert compare(tensor, tensor) is None
    assert compare(tensor, Tensor(tensor.dtype, tensor.array.copy())) is None


@given(st.data(), st.sampled_from(sorted(FLOATS)))
def test_neighbours_are_one_ulp_apart(data: st.DataObject, dtype: str) -> None:
    """Between finite neighbours of one sign: the bits are neighbours too."""
    sign = 1 << (DTYPES[dtype].itemsize * 8 - 1)
    bits = data.draw(st.integers(0, infinity(dtype) - 2)) | data.draw(st.sampled_from([0, sign]))
    diff = compare(from_bits(dtype, bits), from_bits(dtype, bits + 1))
    assert diff is not None
    assert (diff.max_ulp, diff.differing, diff.total, diff.first_index) == (1, 1, 1, (0,))


@given(st.data(), st.sampled_from(sorted(FLOATS)))
def test_ulps_are_the_distance_of_ordered_integers(data: st.DataObject, dtype: str) -> None:
    sign = 1 << (DTYPES[dtype].itemsize * 8 - 1)
    finite = st.integers(0, infinity(dtype) - 1).flatmap(lambda n: st.sampled_from([n, n | sign]))
    a, b = data.draw(finite), data.draw(finite)
    ordered = [-(n & ~sign) - 1 if n & sign else n for n in (a, b)]  # -0.0 is one below 0.0
    assert ulps(from_bits(dtype, a), from_bits(dtype, b)).tolist() == [abs(ordered[0] - ordered[1])]


@pytest.mark.parametrize("dtype", FLOATS)
class TestFloats:
    def test_sign_of_zero_matters(self, dtype: str) -> None:
        sign = 1 << (DTYPES[dtype].itemsize * 8 - 1)
        for pair in ((0, sign), (sign, 0)):
            diff = compare(*(from_bits(dtype, bits) for bits in pair))
            assert diff is not None
            assert (diff.max_ulp, diff.differing) == (1, 1)
        assert compare(from_bits(dtype, sign), from_bits(dtype, sign)) is None

    def test_nan_equals_any_nan(self, dtype: str) -> None:
        sign, top = 1 << (DTYPES[dtype].itemsize * 8 - 1), infinity(dtype)
        nans = [top + 1, top + 2, sign - 1, sign | top | 1, sign | (sign - 1)]
        for a in nans:
            for b in nans:
                assert compare(from_bits(dtype, a), from_bits(dtype, b)) is None

    def test_nan_equals_nothing_else(self, dtype: str) -> None:
        sign, top = 1 << (DTYPES[dtype].itemsize * 8 - 1), infinity(dtype)
        for other in (0, sign, 1, top - 1, top, sign | top):
            diff = compare(from_bits(dtype, top + 1), from_bits(dtype, other))
            assert diff is not None
            assert diff.max_ulp is None

    def test_infinities(self, dtype: str) -> None:
        """The largest finite value and infinity are neighbours as bits; they differ, and by no number of
        ULPs."""
        sign, top = 1 << (DTYPES[dtype].itemsize * 8 - 1), infinity(dtype)
        assert compare(from_bits(dtype, top), from_bits(dtype, top)) is None
        for a, b in ((top, top - 1), (top, sign | top), (sign | top, sign | (top - 1))):
            diff = compare(from_bits(dtype, a), from_bits(dtype, b))
            assert diff is not None
            assert (diff.max_ulp, diff.differing) == (None, 1)

    def test_max_ulp_is_of_the_finite_pairs(self, dtype: str) -> None:
        diff = compare(from_bits(dtype, 5, infinity(dtype), 9, 0), from_bits(dtype, 5, 0, 2, 1))
        assert diff is not None
        assert (diff.max_ulp, diff.differing, diff.total, diff.first_index) == (7, 3, 4, (1,))

    def test_elements_are_written_with_their_bits(self, dtype: str) -> None:
        digits = DTYPES[dtype].itemsize * 2
        sign = 1 << (DTYPES[dtype].itemsize * 8 - 1)
        assert write_element(dtype, from_bits(dtype, sign).array[0]) == f"-0.0 (0x8{'0' * (digits - 1)})"
        assert write_element(dtype, from_bits(dtype, infinity(dtype) + 1).array[0]).startswith("nan (0x")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("other", DTYPES)
def test_another_dtype_differs_even_with_equal_bytes(dtype: str, other: str) -> None:
    made = [Tensor(name, np.zeros((2, 3), DTYPES[name].storage)) for name in (dtype, other)]
    diff = compare(*made)
    if dtype == other:
        assert diff is None
        return
    assert diff is not None
    assert (diff.expected, diff.actual) == (f"{dtype}[2,3]", f"{other}[2,3]")
    assert (diff.max_ulp, diff.differing, diff.total, diff.first_index) == (None, 6, 6, None)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "other"),
    [
        ((6,), (2, 3)),
        ((2, 3), (3, 2)),
        ((), (1,)),
        ((1,), ()),
        ((0,), (0, 3)),
        ((2,), (1, 2)),
        ((0, 2), (2, 0)),
        ((1, 1), (1, 2)),
    ],
)
def test_another_shape_differs_even_with_equal_bytes(
    dtype: str, shape: tuple[int, ...], other: tuple[int, ...]
) -> None:
    diff = compare(*(Tensor(dtype, np.zeros(extents, DTYPES[dtype].storage)) for extents in (shape, other)))
    assert diff is not None
    assert diff.first_index is None
    assert diff.expected == f"{dtype}[{','.join(map(str, shape))}]"
    assert diff.actual == f"{dtype}[{','.join(map(str, other))}]"


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_parts_are_floats(dtype: str) -> None:
    nan, storage = math.nan, DTYPES[dtype].storage
    given = np.array([complex(1, 2), complex(nan, 0.0), complex(0.0, math.inf)], storage)
    for position, other in (
        (0, complex(1, -2)),
        (1, complex(nan, -0.0)),
        (1, complex(0.0, nan)),
        (2, complex(-0.0, math.inf)),
    ):
        changed = given.copy()
        changed[position] = other
        diff = compare(Tensor(dtype, given), Tensor(dtype, changed))
        assert diff is not None
        assert (diff.differing, diff.first_index, diff.max_ulp) == (1, (position,), None)
    payload = given.copy()
    payload.view(f"u{DTYPES[dtype].itemsize // 2}")[2] ^= 1
    assert compare(Tensor(dtype, given), Tensor(dtype, payload)) is None


def test_strings() -> None:
    given = np.array([["a", "b"], ["", "\u00e9"]], object)
    for other in ("B", "a", "", "b ", "\u00e9"):
        changed = given.copy()
        changed[0, 1] = other
        diff = compare(Tensor("string", given), Tensor("string", changed))
        assert diff is not None
        assert (diff.differing, diff.total, diff.first_index) == (1, 4, (0, 1))
        assert (diff.expected, diff.actual) == ("'b'", repr(other))
    assert (
        compare(Tensor("string", given), Tensor("string", np.array([["a", "b"], ["", "\u00e9"]], object)))
        is None
    )


def test_scalars_have_an_empty_index() -> None:
    diff = compare(Tensor("int8", np.array(1, np.int8)), Tensor("int8", np.array(-1, np.int8)))
    assert diff is not None
    assert (diff.first_index, diff.expected, diff.actual, diff.max_ulp) == ((), "1", "-1", None)


def test_memory_layout_does_not_matter() -> None:
    plain = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert compare(Tensor("float32", plain), Tensor("float32", np.asfortranarray(plain))) is None
    diff = compare(
        Tensor("float32", plain), Tensor("float32", np.asfortranarray(plain) + np.eye(3, 4, dtype=np.float32))
    )
    assert diff is not None
    assert (diff.differing, diff.first_index) == (3, (0, 0))


def test_describe() -> None:
    assert describe(Tensor("bfloat16", np.zeros((2, 0), np.uint16))) == "bfloat16[2,0]"
    assert describe(Tensor("bool", np.zeros((), bool))) == "bool[]"


@given(pairs())
def test_what_is_exact_is_compared_as_a_tensor(pair: tuple[Tensor, Tensor]) -> None:
    expected, actual = pair
    assert compare(Exact(expected), actual) == OutputComparison(compare(expected, actual), None)


@given(pairs())
def test_one_candidate_is_exact(pair: tuple[Tensor, Tensor]) -> None:
    expected, actual = pair
    found, exact = compare(OneOf((expected,)), actual).diff, compare(expected, actual)
    assert (found is None) is (exact is None)
    if found is not None and exact is not None:
        assert (found.differing, found.total, found.first_index, found.expected, found.actual) == (
            *(exact.differing, exact.total, exact.first_index, exact.expected, exact.actual),
        )


class TestOneOf:
    LOW, HIGH = (Tensor("int8", np.array(v, np.int8)) for v in ([1, 2, 3], [2, 2, 4]))

    def test_each_element_chooses(self) -> None:
        for found in ([1, 2, 3], [2, 2, 4], [1, 2, 4], [2, 2, 3]):
            assert compare(
                OneOf((self.LOW, self.HIGH)), Tensor("int8", np.array(found, np.int8))
            ) == OutputComparison(None)

    def test_anything_else_is_wrong_also_between_and_beside(self) -> None:
        for place, element in ((0, 0), (0, 3), (1, 1), (1, 3), (2, 2), (2, 5), (0, 4)):
            found = self.LOW.array.copy()
            found[place] = element
            diff = compare(OneOf((self.LOW, self.HIGH)), Tensor("int8", found)).diff
            assert diff is not None
            assert (diff.differing, diff.total, diff.first_index, diff.max_ulp) == (1, 3, (place,), None)
            assert diff.expected == (
                "2" if place == 1 else f"{self.LOW.array[place]} or {self.HIGH.array[place]}"
            )
            assert diff.actual == str(element)

    def test_distances_are_those_to_the_nearest(self) -> None:
        candidates = tuple(from_bits("float32", *bits) for bits in ((10, 100, 7), (20, 100, 7)))
        diff = compare(OneOf(candidates), from_bits("float32", 17, 98, 0x7F800000)).diff
        assert diff is not None
        assert (diff.max_ulp, diff.differing) == (3, 3)
        assert (
            diff.expected
            == f"{write_element('float32', candidates[0].array[0])} or {write_element('float32', candidates[1].array[0])}"
        )

    def test_nan_zero_and_strings_as_for_tensors(self) -> None:
        nan = from_bits("float16", 0x7E00, 0)
        zero = from_bits("float16", 0x3C00, 0)
        assert compare(OneOf((nan, zero)), from_bits("float16", 0xFE01, 0)).diff is None
        diff = compare(OneOf((nan, zero)), from_bits("float16", 0x7C00, 0x8000)).diff
        assert diff is not None
        assert (diff.differing, diff.max_ulp) == (2, 1)
        texts = tuple(Tensor("string", np.array([t], object)) for t in ("a", "b"))
        assert compare(OneOf(texts), texts[1]).diff is None
        assert compare(OneOf(texts), Tensor("string", np.array(["c"], object))).diff == Diff(
            None, 1, 1, (0,), "'a' or 'b'", "'c'"
        )

    def test_dtype_and_shape(self) -> None:
        for other in (Tensor("uint8", self.LOW.array.view(np.uint8)), Tensor("int8", self.LOW.array[None])):
            diff = compare(OneOf((self.LOW, self.HIGH)), other).diff
            assert diff is not None
            assert (diff.first_index, diff.expected) == (None, "int8[3]")


def approx(dtype: str, value: Any, bound: Any) -> Approx:
    return Approx(dtype, np.array(value, np.float64, ndmin=1), np.array(bound, np.float64, ndmin=1))


def held(dtype: str, *values: float) -> Tensor:
    return Tensor(dtype, encode(dtype, np.array(values)))


def neighbour(dtype: str, value: float, steps: int) -> float:
    """Return the value so many representable ones further from zero."""
    unsigned = f"u{DTYPES[dtype].itemsize}"
    bits = encode(dtype, np.array([value])).view(unsigned).astype(np.int64) + steps
    return float(decode(dtype, bits.astype(unsigned).view(DTYPES[dtype].storage))[0])


@pytest.mark.parametrize("dtype", FLOATS)
class TestApprox:
    @pytest.mark.parametrize("value", [1.0, -3.0, 1 / 3, -1e-3, 12345.678])
    @pytest.mark.parametrize("share", [0.6, 1.0, 3.4, 40.0])
    def test_the_last_value_inside_passes_and_the_next_is_red(
        self, dtype: str, value: float, share: float
    ) -> None:
        form = FORMATS[dtype]
        bound = share * float(form.ulp(np.array([value]))[0])
        expected = approx(dtype, value, bound)
        inside = float(form.rounded(np.array([value]))[0])
        for step in (1, -1):
            element = inside
            while abs(neighbour(dtype, element, step) - value) <= bound:
                element = neighbour(dtype, element, step)
            passed = compare(expected, held(dtype, element))
            assert passed.diff is None
            assert passed.accuracy is not None
            assert passed.accuracy.ratio == abs(element - value) / bound <= 1
            outside = neighbour(dtype, element, step)
            failed = compare(expected, held(dtype, outside))
            assert failed.diff is not None
            assert (failed.diff.differing, failed.diff.error, failed.diff.bound) == (
                1,
                abs(outside - value),
                bound,
            )
            assert failed.accuracy is not None
            assert failed.accuracy.ratio == abs(outside - value) / bound > 1

    def test_without_error_the_value_itself(self, dtype: str) -> None:
        expected = approx(dtype, [1.5, 0.0], [0.0, 0.0])
        assert compare(expected, held(dtype, 1.5, -0.0)) == OutputComparison(
            None, Accuracy(0.0, 0.0, 0, 2)
        )  # the sign of zero is not judged
        for wrong in (neighbour(dtype, 1.5, 1), neighbour(dtype, 1.5, -1), -1.5, np.inf, np.nan):
            assert compare(expected, held(dtype, wrong, 0.0)).diff is not None
        assert compare(expected, held(dtype, 1.5, FORMATS[dtype].quantum)).diff is not None

    def test_nan_is_required_and_forbidden(self, dtype: str) -> None:
        expected = approx(dtype, [np.nan, 1.0], [0.0, 0.5])
        assert compare(expected, held(dtype, np.nan, 1.0)).diff is None
        for wrong in ((0.0, 1.0), (np.inf, 1.0), (np.nan, np.nan)):
            diff = compare(expected, held(dtype, *wrong)).diff
            assert diff is not None
            assert (diff.differing, diff.error) == (1, None)

    def test_infinities_are_required_and_forbidden(self, dtype: str) -> None:
        expected = approx(dtype, [np.inf, -np.inf, 1.0], [0.0, 0.0, 0.5])
        assert compare(expected, held(dtype, np.inf, -np.inf, 1.0)).diff is None
        largest = FORMATS[dtype].largest
        for wrong in (
            (largest, -np.inf, 1.0),
            (-np.inf, -np.inf, 1.0),
            (np.inf, np.nan, 1.0),
            (np.inf, -np.inf, np.inf),
        ):
            diff = compare(expected, held(dtype, *wrong)).diff
            assert diff is not None
            assert diff.differing == 1

    def test_an_infinite_bound_claims_nothing_and_is_counted(self, dtype: str) -> None:
        expected = approx(dtype, [np.nan, 1.0, np.inf, 2.0], [np.inf, np.inf, np.inf, 0.5])
        for found in ((0.0, np.nan, -5.0, 2.0), (np.inf, -np.inf, np.nan, 2.25)):
            comparison = compare(expected, held(dtype, *found))
            assert comparison.diff is None
            assert comparison.accuracy is not None
            assert (
                comparison.accuracy.unclaimed,
                comparison.accuracy.compared,
                comparison.accuracy.claims,
            ) == (3, 4, True)
        empty = compare(approx(dtype, [1.0], [np.inf]), held(dtype, 7.0))
        assert empty == OutputComparison(None, Accuracy(0.0, 0.0, 1, 1))
        assert empty.accuracy is not None
        assert not empty.accuracy.claims

    def test_overflow(self, dtype: str) -> None:
        """Near the end of the range an infinity is admissible; beyond it, required."""
        form = FORMATS[dtype]
        top, step = form.largest, float(form.ulp(np.array([form.largest]))[0])
        near = approx(dtype, [top, -top], [step, step])
        assert compare(near, held(dtype, np.inf, -np.inf)).diff is None
        assert compare(near, held(dtype, top, -top)).diff is None
        assert compare(near, held(dtype, -np.inf, -top)).diff is not None
        short = approx(dtype, [top], [step / 4])  # rounds to the largest value, not beyond
        assert compare(short, held(dtype, np.inf)).diff is not None
        if dtype != "float64":
            beyond = approx(dtype, [2 * top], [step])
            assert compare(beyond, held(dtype, np.inf)).diff is None
            assert compare(beyond, held(dtype, top)).diff is not None
            assert compare(beyond, held(dtype, -np.inf)).diff is not None

    def test_the_first_wrong_element_is_told(self, dtype: str) -> None:
        expected = approx(dtype, [[1.0, 2.0], [4.0, 8.0]], np.full((2, 2), 0.25))
        diff = compare(expected, Tensor(dtype, encode(dtype, np.array([[1.25, 2.25], [3.5, 16.0]])))).diff
        assert diff is not None
        assert (diff.differing, diff.total, diff.first_index, diff.error, diff.bound) == (
            2,
            4,
            (1, 0),
            0.5,
            0.25,
        )
        assert diff.expected == "4 ± 0.25"
        assert diff.actual.startswith("3.5 (0x")
        assert diff.max_ulp == 1 << (FORMATS[dtype].precision - 1)  # from 8 to 16

    def test_dtype_and_shape(self, dtype: str) -> None:
        other = "float32" if dtype != "float32" else "float64"
        for found in (held(other, 1.0), held(dtype, 1.0, 1.0)):
            comparison = compare(approx(dtype, 1.0, np.inf), found)
            assert comparison.diff is not None
            assert comparison.accuracy is None
            assert (comparison.diff.first_index, comparison.diff.expected) == (None, f"{dtype}[1]")


def test_accuracy_in_units_of_the_last_place() -> None:
    accuracy = compare(
        approx("float32", [1.0, 2.0], [1e-6, 1e-5]), held("float32", 1.0 + 2.0**-22, 2.0)
    ).accuracy
    assert accuracy == Accuracy(ratio=2.0**-22 / 1e-6, ulp=2.0, unclaimed=0, compared=2)


def test_errors_and_bounds_stand_only_where_there_is_a_bound() -> None:
    """The lines of run files without them are what they were."""
    exact = compare(Exact(held("float32", 1.0)), held("float32", 2.0)).diff
    assert exact is not None
    assert msgspec.json.decode(msgspec.json.encode(exact)) == {
        "max_ulp": 1 << 23,
        "differing": 1,
        "total": 1,
        "first_index": [0],
        "expected": "1.0 (0x3f800000)",
        "actual": "2.0 (0x40000000)",
    }
    bounded = compare(approx("float32", [1.0], [0.5]), held("float32", np.inf))
    assert bounded.diff is not None
    line = msgspec.json.encode(bounded.diff)
    assert msgspec.json.decode(line)["bound"] == 0.5
    assert msgspec.json.decode(line)["error"] is None
    assert msgspec.json.decode(line, type=Diff) == bounded.diff
    zero = compare(approx("float32", [1.0], [0.0]), held("float32", 2.0)).accuracy
    assert zero is not None
    assert (
        msgspec.json.decode(msgspec.json.encode(zero), type=Accuracy) == zero
    )  # no infinity, which JSON lacks


def test_a_bool_that_is_neither_0_nor_1_is_told_from_true() -> None:
    """As memory that nobody wrote holds it."""
    expected, actual = (
        Tensor("bool", np.array([[1, 0, byte]], np.uint8).view(np.bool_)) for byte in (1, 0xCD)
    )
    diff = compare(expected, actual)
    assert diff is not None
    assert (diff.differing, diff.expected, diff.actual) == (1, "True", "True (0xcd)")


def test_no_bound_excuses_an_element_beyond_the_limits_of_its_function() -> None:
    near = msgspec.structs.replace(approx("float32", [1.0, 0.9999999], [1e-6, 1e-6]), limits=(-1.0, 1.0))
    assert compare(near, held("float32", 1.0, 1.0)).diff is None
    diff = compare(near, held("float32", 1.0, neighbour("float32", 1.0, 1))).diff
    assert diff is not None
    assert (diff.differing, diff.first_index) == (1, (1,))
    assert diff.expected.endswith(" within [-1, 1]")


def test_limits_may_follow_the_elements_of_the_input() -> None:
    each = (np.array([-9.0, 0.0]), np.array([0.0, 8.0]))
    near = msgspec.structs.replace(approx("float32", [0.0, 8.0], [1e-5, 1e-5]), limits=each)
    assert compare(near, held("float32", -0.0, 8.0)).diff is None
    assert compare(near, held("float32", 1e-30, 8.0)).diff is not None
