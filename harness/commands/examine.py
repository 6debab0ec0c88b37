"""Checks specs against the oracle for `harness check`: finds documented results that it contradicts, and bits
that other readers take for numbers.

A run reports the same as `oracle_error` once a target has run the case; this check needs no target.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from harness.compile.prepare import with_inputs
from harness.model import onnx_schemas
from harness.model.case import Case
from harness.model.signatures import signature
from harness.run.oracle import OracleError, contradiction, oracle
from harness.specs.find_case import problem_of
from harness.specs.reading.load import LoadedSpec

_HEX = re.compile(r"(?<![\w\"'.])0[xX][0-9a-fA-F]+(?![\w\"'])")
_ASIDE = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'|(?:^|\s)#.*')
_FEW = 3


def contradictions(specs: Iterable[LoadedSpec], cases: Iterable[Case]) -> list[str]:
    """Return where the oracle contradicts the result that a literal case documents, each entry once, by file
    and line."""
    by_operator = {spec.model.operator: spec for spec in specs}
    documented = (case for case in cases if case.documented is not None)
    return list(dict.fromkeys(line for case in documented for line in _of(by_operator[case.operator], case)))


def _of(spec: LoadedSpec, case: Case) -> Iterator[str]:
    prepared = with_inputs(case)
    try:
        expected = oracle(prepared, "")
    except OracleError as error:
        yield problem_of(spec, case, str(error))
        return
    if expected is None:
        return  # the formula says nothing of it
    if (wrong := contradiction(case, prepared.call, expected)) is not None:
        yield problem_of(spec, case, wrong, "output")


def opsets_without_a_version(specs: Iterable[LoadedSpec]) -> Iterator[str]:
    """Yield a warning for each opset of a spec in which its operator has the same version as before."""
    for spec in specs:
        versions = onnx_schemas.operator_versions().get(spec.model.operator, ())
        for opset in spec.model.opsets if isinstance(spec.model.opsets, tuple) else ():
            has = max((version for version in versions if version <= opset), default=opset)
            if signature(spec.model.operator) is None and has < opset and opset > onnx_schemas.OLDEST_OPSET:
                yield (
                    f"{spec.source.label}: warning: {spec.model.operator} has no version {opset}: opset {opset} runs version {has}"
                )


def unquoted_bits(specs: Iterable[LoadedSpec]) -> Iterator[str]:
    """Yield a warning for each line with a bit pattern without quotes, which YAML calls an integer."""
    for spec in specs:
        for number, line in enumerate(spec.path.read_text(encoding="utf-8").splitlines(), start=1):
            plain = _ASIDE.sub(lambda found: " " * len(found[0]), line)
            if numbers := _HEX.findall(plain):
                few = ", ".join(numbers[:_FEW]) + (" and more" if len(numbers) > _FEW else "")
                what = f"{few} is bits here and the number {int(numbers[0], 16):,} to other readers of YAML"
                yield f'{spec.source.label}:{number}: warning: {what}; write "{numbers[0]}"'
