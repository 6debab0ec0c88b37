"""Proves that known deviations hide no others: plants other wrong outputs in the cases of entries, and counts those
that no result would report as unexpected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.compile.prepare import refusal
from harness.model.case import Case, Tensor, Validity
from harness.model.dtypes import DTYPES, Array
from harness.model.expected import Approx, Expected, nearest
from harness.model.float_formats import FORMATS, decode, encode
from harness.model.result import Memory
from harness.model.verdict import Outcome, unexpected
from harness.model.wrong_elements import WrongElements
from harness.run.deviation import Given, remembers
from harness.run.judge import judge, verdict
from harness.run.oracle import OracleError, oracle
from harness.run.probe import Probe, Probes
from harness.run.target_info import target_info
from harness.specs.expectations.expectations import Expectations
from harness.specs.expectations.target_expectations import Located, TargetExpectations
from harness.targets.target import Target

Outputs = tuple[Tensor, ...]


def planted(outputs: Outputs, expected: tuple[Expected, ...] | None) -> Iterator[tuple[str, Outputs]]:
    """Yield outputs that differ from those given, each with its name.

    The first output of whose elements something is claimed changes: every element, one element, one NaN where none
    is due, the other sign, ten times the difference from what is expected, another rank, another element type. Elements
    of which nothing is claimed stay. A change that leaves the elements as they are, or that the type cannot hold, is left out; a NaN
    stays a NaN whatever its bits are.
    """
    matched = expected if expected is not None and len(expected) == len(outputs) else (None,) * len(outputs)
    claimed = [_claimed(each, wanted) for each, wanted in zip(outputs, matched, strict=True)]
    place = next((n for n, each in enumerate(claimed) if each.any()), None)
    if place is None:
        return
    given = outputs[place]
    for name, array in _values(given, matched[place]):
        elements = array.astype(given.array.dtype).reshape(given.array.shape)
        changed = Tensor(given.dtype, np.where(claimed[place], elements, given.array))
        if not _same(changed, given):
            yield name, (*outputs[:place], changed, *outputs[place + 1 :])
    other = "int32" if given.dtype != "int32" else "float32"
    for name, tensor in (
        ("another rank", Tensor(given.dtype, given.array[None])),
        ("another type", Tensor(other, np.zeros(given.array.shape, DTYPES[other].storage))),
    ):
        yield name, (*outputs[:place], tensor, *outputs[place + 1 :])


def _claimed(given: Tensor, wanted: Expected | None) -> NDArray[np.bool_]:
    """Return the elements about which the entry states something."""
    if isinstance(wanted, Approx) and wanted.bound.shape == given.array.shape:
        return np.isfinite(wanted.bound)
    return np.ones(given.array.shape, bool)


def _same(one: Tensor, other: Tensor) -> bool:
    """Say whether two tensors of one type hold the same values, signs of zeros included."""
    left, right = _numbers(one), _numbers(other)
    if left.dtype.kind not in "fc":
        return bool(np.array_equal(left, right))
    signs = np.signbit(left.real) == np.signbit(right.real)
    return bool((np.isnan(left) & np.isnan(right) | (left == right) & signs).all())


def _values(given: Tensor, wanted: Expected | None) -> Iterator[tuple[str, Array]]:
    """Yield the elements changed in value."""
    dtype = given.dtype
    numbers = _numbers(given)
    with np.errstate(all="ignore"):
        other = _other(numbers)
        yield "every element", _stored(dtype, other)
        one = numbers.copy()
        one[-1] = other[-1]
        yield "one element", _stored(dtype, one)
        alike = wanted is not None and (wanted.dtype, wanted.shape) == (dtype, given.array.shape)
        right = _numbers(nearest(wanted)) if wanted is not None and alike else numbers
        if DTYPES[dtype].is_float:
            places = np.flatnonzero(~np.isnan(numbers) & ~np.isnan(right))
            nan = numbers.copy()
            nan[places[len(places) // 2 :][:1]] = np.nan
            yield "NaN", _stored(dtype, nan)
        if numbers.dtype.kind in "if":
            yield "another sign", _stored(dtype, np.where(numbers == 0, numbers, -numbers))
            if wanted is not None and alike:
                wrong = WrongElements(wanted, given).places.reshape(-1)
                far = wrong & np.isfinite(numbers) & np.isfinite(right)
                away = np.where(far, right + 10 * (numbers - right), numbers)
                yield "ten times the difference", _stored(dtype, away.astype(numbers.dtype))


def _numbers(tensor: Tensor) -> Array:
    """Return the elements in a row, floats as float64."""
    array = decode(tensor.dtype, tensor.array) if tensor.dtype in FORMATS else tensor.array
    return array.reshape(-1)


def _stored(dtype: str, numbers: Array) -> Array:
    return encode(dtype, numbers) if dtype in FORMATS else numbers


def _other(numbers: Array) -> Array:
    """Return another value for each element."""
    if numbers.dtype.kind == "O":
        return np.array([f"{text}?" for text in numbers], object)
    if numbers.dtype == np.bool_:
        return ~numbers
    if numbers.dtype.kind in "iu":
        return numbers * 3 + 7
    changed = np.where(np.isfinite(numbers), numbers * 3 + 7, 1)
    return np.where(changed == numbers, 1, changed).astype(numbers.dtype)


TRIED = 40
"""Cases of an entry that run on a target."""
PLANTED = 6
"""Of these, deviating and conforming ones in which outputs are planted, each."""
LEAST_RED = 0.95
"""The part of the planted outputs that has to be unexpected."""
TOGETHER = 16
"""Entries whose valid cases run before their other cases: each change starts new workers."""
_STATED = (Outcome.MISMATCH, Outcome.ACCEPTED_INVALID, Outcome.REJECTED, Outcome.UNSUPPORTED)


_WRITTEN = Memory(unwritten=0, outside=0, unstable=0, total=0)
"""What becomes of elements that a target writes itself."""


class Masking(NamedTuple):
    """The planted outputs in the cases of an entry, by name, the number that stays green, and an example."""

    located: Located
    planted: Counter[str]
    green: Counter[str]
    example: str


def maskings(
    target: Target, expectations: Expectations, cases: Iterable[Case], tell: Callable[[int, int], None]
) -> Iterator[Masking]:
    """Yield the planted outputs in the cases of each entry that states an outcome of its own and holds on a target;
    `tell` of how many entries of how many. Raises TargetUnavailable."""
    with Probes(target) as probes:
        info = target_info(probes.target, probes.hello, probes.runtime)
        known = expectations.for_target(target.name, info)
        provider = probes.target.provider
        matched: dict[int, list[Case]] = {}
        for case in cases:
            for position in known.matching(case.id):
                entry = known.entries[position].entry
                if entry.expect in _STATED and not known.entries[position].general:
                    matched.setdefault(position, []).append(case)
        chosen: dict[int, list[Case]] = {}
        for position, found in sorted(matched.items()):
            expressible = [case for case in found if refusal(case, provider) is None]
            chosen[position] = expressible[:: max(1, len(expressible) // TRIED)][:TRIED]
        entries = list(chosen.items())
        for first in range(0, len(entries), TOGETHER):
            tell(first, len(entries))
            batch = entries[first : first + TOGETHER]
            ran = iter(probes.run(case for _, asked in batch for case in asked))
            for position, asked in batch:
                yield _masking(known, position, islice(ran, len(asked)), provider)


def _masking(known: TargetExpectations, position: int, ran: Iterable[Probe], provider: str) -> Masking:
    located = known.entries[position]
    done, green = Counter[str](), Counter[str]()
    example = ""
    kept = Counter[bool]()
    for probe in ran:
        case, outcome = probe.prepared.case, probe.judgement.outcome
        if case.validity is Validity.UNSPECIFIED or outcome not in (*_STATED, Outcome.PASS):
            continue
        deviates = outcome is located.entry.expect
        if kept[deviates] >= PLANTED or known.entry(case.id, beyond=case.beyond, outcome=outcome) not in (
            located.entry,
            None,
        ):
            continue
        kept[deviates] += 1
        for name, outputs in _planted(probe, provider):
            red = _is_red(known, probe, outputs, provider)
            if red is None or (name != "another type" and _unjudged(located, case)):
                continue
            done[name] += 1
            if not red:
                green[name] += 1
                example = example or case.id
    return Masking(located, done, green, example)


def _unjudged(located: Located, case: Case) -> bool:
    """Say whether nothing is known of the elements: those of an invalid case that is accepted, without a
    formula."""
    return case.validity is Validity.INVALID and located.entry.gives is None


def _planted(probe: Probe, provider: str) -> Iterator[tuple[str, Outputs]]:
    """Plant in the outputs of a target, or in the expected ones if it gave none."""
    expected = probe.judgement.expected
    outputs = probe.execution.outputs
    if outputs is None and probe.prepared.case.validity is Validity.VALID:
        try:
            expected = oracle(probe.prepared, provider)
        except OracleError:
            return
        outputs = None if expected is None else tuple(map(nearest, expected))
    if outputs is not None:
        yield from planted(outputs, expected)


def _is_red(known: TargetExpectations, probe: Probe, outputs: Outputs, provider: str) -> bool | None:
    """Say whether outputs would be unexpected of a case; None where they are right."""
    case = probe.prepared.case
    nodes = tuple((provider, operator) for operator in probe.graph.tested)
    execution = probe.execution._replace(outputs=outputs, error=None, stage="compare", nodes=nodes)
    judgement = judge(probe.prepared, probe.graph, execution, provider)
    if judgement.outcome is Outcome.PASS:
        return None
    given = Given(probe.prepared, outputs, judgement, provider)
    entry = known.entry(
        case.id,
        beyond=case.beyond,
        outcome=judgement.outcome,
        allows=lambda each: given.allows(each) and remembers(each, _WRITTEN, judgement.diff),
    )
    found = verdict(case.validity, judgement.outcome, None if entry is None else entry.expect)
    return unexpected(case.validity, judgement.outcome, found, baseline=False)
