"""The vocabulary of the project as types: cases, what targets did with them, and the lines of a run file.

Everything here is frozen, knows no other module but `dtypes`, and is what the stages pass to each other.
"""

from __future__ import annotations

import inspect
import textwrap
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np

from harness.model.dtypes import DTYPES, Array

SCHEMA = 1
BEYOND = "beyond"
"""The level of a case that no published DirectML table allows."""


class Validity(str, Enum):
    """What the ONNX operator specification says of a case."""

    VALID = "valid"
    INVALID = "invalid"
    UNSPECIFIED = "unspecified"


class Outcome(str, Enum):
    """What was measured; a closed set."""

    PASS = "pass"
    MISMATCH = "mismatch"
    REJECTED = "rejected"
    ACCEPTED_INVALID = "accepted_invalid"
    UNSUPPORTED = "unsupported"
    NOT_PLACED = "not_placed"
    CRASH = "crash"
    TIMEOUT = "timeout"
    UNAVAILABLE = "unavailable"
    ORACLE_ERROR = "oracle_error"
    NOT_RUN = "not_run"


NOT_EXECUTED = frozenset({Outcome.UNAVAILABLE, Outcome.NOT_RUN})
"""Outcomes of cases that no target answered."""

CPU, DML, DIRECTML = "CPUExecutionProvider", "DmlExecutionProvider", "DirectML"
"""What a target's `provider` says: two of ONNX Runtime's, and DirectML's own API."""


class Verdict(str, Enum):
    """The outcome against what was expected of it."""

    EXPECTED = "expected"
    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    CHANGED = "changed"
    NEW = "new"
    MISSING = "missing"


Stage = Literal["load", "run", "compare"]
"""The last stage a case reached: session creation, `session.run`, or the comparison with the oracle."""

Optimization = Literal["off", "basic", "extended", "all"]


Count = Annotated[int, msgspec.Meta(ge=0)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Magnitude = Annotated[float, msgspec.Meta(ge=0)]
CaseId = Annotated[str, msgspec.Meta(max_length=4096)]
"""Limits that a run file is held to when it is read; what the harness measures lies far within them."""


class Tensor(NamedTuple):
    """A tensor: the name of its element type in `dtypes.DTYPES` and its elements."""

    dtype: str
    array: Array


class TensorValue(NamedTuple):
    """A tensor as the value of an attribute: element type, shape, and its elements as Python numbers or texts
    in row-major order."""

    dtype: str
    shape: tuple[int, ...]
    elements: tuple[int | float | bool | str, ...]

    @property
    def tensor(self) -> Tensor:
        """The same as a tensor."""
        return Tensor(self.dtype, np.array(self.elements, DTYPES[self.dtype].storage).reshape(self.shape))


Value = int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | TensorValue
"""The value of an attribute: INT, FLOAT, STRING, INTS, FLOATS, STRINGS or TENSOR."""


class TensorSpec(msgspec.Struct, frozen=True, gc=False):
    """Name, element type and shape of one input; `values` names how its elements are chosen (`values.py`).

    `elements` are those of an input that decides shapes (`axes`, `pads`): they stand in the id, in place of
    the shape.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    values: str = "random"
    elements: tuple[int | float | bool, ...] | None = None


Shapes = Literal["symbolic", "static", "undeclared"]
"""What a graph says of the shapes of its inputs: ranks, extents, or nothing but element types."""
CONSTANTS = "constants"
"""As an initializer: every input whose elements decide shapes."""


class Options(msgspec.Struct, frozen=True, gc=False):
    """How a case's graph is built and run; a default is not written into the case's id.

    `initializer` names the input that is one, or `constants`. `outputs` is the number of outputs that the
    node has where that is not the operator's usual one.
    """

    shapes: Shapes = "symbolic"
    initializer: str | None = None
    in_place: bool = False
    optimization: Optimization = "off"
    neighbours: bool = False
    variant: str | None = None
    outputs: int | None = None


class DirectmlTensor(msgspec.Struct, frozen=True, gc=False):
    """What a case writes into one DML_BUFFER_TENSOR_DESC instead of what lowering would; None leaves a member
    alone."""

    dtype: str | None = None
    sizes: tuple[int, ...] | None = None
    strides: tuple[int, ...] | None = None
    bytes: int | None = None
    alignment: int | None = None
    flags: int | None = None


class DirectmlOptions(msgspec.Struct, frozen=True, gc=False):
    """What only a call of DirectML's own API can ask for; a case that has these is expressed for the target
    `directml` alone.

    `operator` is a DML_OPERATOR_TYPE; `dimension_count` the DimensionCount that shapes are padded to with
    leading 1s; `in_place` names the input tensor that OutputTensor aliases; `layout` names by tensor how its
    elements lie in the buffer (`directml/layout.py`). `attributes` and `tensors` replace members of the
    descriptions, which is how a case breaks a rule.
    """

    operator: str | None = None
    dimension_count: int | None = None
    in_place: str | None = None
    layout: tuple[tuple[str, str], ...] = ()
    attributes: tuple[tuple[str, Value], ...] = ()
    tensors: tuple[tuple[str, DirectmlTensor], ...] = ()


class Case(msgspec.Struct, frozen=True):
    """One concrete operator call.

    `inputs` are those that are present, in the order of the specification. `literals` holds written-out input
    elements (None for an input that is filled) and `documented` the documented result of each output (None
    for one that is not documented). `rule` says for an invalid case which rule it breaks and for an
    unspecified one what the sources leave open. `levels` are derived (`levels.py`) from the DirectML
    operators of `lowers_to`. With `directml`, validity is what Microsoft's documents say of the call;
    without, what ONNX says.
    """

    id: str
    operator: str
    opset: int
    attributes: dict[str, Value]
    inputs: tuple[TensorSpec, ...]
    options: Options = Options()
    validity: Validity = Validity.VALID
    rule: str | None = None
    source: str | None = None
    literals: tuple[Array | None, ...] | None = None
    documented: tuple[Array | None, ...] | None = None
    levels: dict[str, str] = {}
    lowers_to: tuple[str, ...] = ()
    directml: DirectmlOptions | None = None

    @property
    def beyond(self) -> bool:
        """Say whether no published level allows the lowered call."""
        return BEYOND in self.levels.values()


class Error(msgspec.Struct, frozen=True):
    """A target's error: the class is compared between releases, the message is only shown."""

    class_: str = msgspec.field(name="class")
    message: str = ""


class Diff(msgspec.Struct, frozen=True):
    """How an output differs from the oracle's.

    `max_ulp` is the largest distance between finite values of a float tensor in units of the last place, None
    where that has no meaning; `expected` and `actual` are the two elements at `first_index` (or the two
    shapes or dtypes), written out. Where the expected result has a bound, `error` and `bound` are those at
    `first_index`; `error` is None where the output is NaN or infinite.
    """

    max_ulp: Count | None
    differing: Count
    total: Count
    first_index: tuple[Count, ...] | None
    expected: str
    actual: str
    error: Magnitude | msgspec.UnsetType | None = msgspec.UNSET
    bound: Magnitude | msgspec.UnsetType = msgspec.UNSET
    output: Count | msgspec.UnsetType = msgspec.UNSET
    """The position of the output that differs; absent for the first."""


class Accuracy(msgspec.Struct, frozen=True):
    """How near an output with a bound came to it, whether it kept to it or not.

    `ratio` is the largest error divided by its bound and `ulp` the largest error in units of the last place
    of the output's type, both over the elements where value and output are finite and something is claimed.
    Of `compared` elements, nothing is claimed of `unclaimed`.
    """

    ratio: Magnitude
    ulp: Magnitude
    unclaimed: Count
    compared: Count

    @property
    def claims(self) -> bool:
        """Say whether the comparison tested anything: there was an element with a claim, or no element at
        all."""
        return not self.compared or self.unclaimed < self.compared


class Repeats(msgspec.Struct, frozen=True):
    """How an unexpected result came out when its case was repeated: in `runs` repeats, of which `failed` did,
    and runs by outcome.

    The run that selected the case counts in none of them, since it failed by choice of the case; older files
    count it too.
    """

    runs: Count
    failed: Count
    outcomes: dict[str, Count]


class Result(msgspec.Struct, frozen=True, tag_field="type", tag="result"):
    """One line of a run file: what one target did with one case. A pass without a proven provider cannot be
    made.

    `repeats` stands only in a result that was repeated; outcome, error and difference are always those of the
    first run.
    """

    case: CaseId
    operator: str
    target: str
    validity: Validity
    levels: dict[str, str]
    outcome: Outcome
    verdict: Verdict
    stage: Stage | None = None
    placed_on: str | None = None
    error: Error | None = None
    diff: Diff | None = None
    seconds: Seconds = 0.0
    repeats: Repeats | msgspec.UnsetType = msgspec.UNSET
    call: str | msgspec.UnsetType = msgspec.UNSET
    """What a case was lowered to, on `directml` alone: the operator, and each tensor's data type and
    DimensionCount."""
    output: str | msgspec.UnsetType = msgspec.UNSET
    """A hash of outputs that are not the oracle's, by which targets are compared bit for bit; 16 hexadecimal
    digits."""

    accuracy: Accuracy | msgspec.UnsetType = msgspec.UNSET
    """How near the outputs came to their bounds, where results have one."""

    expectation: Count | msgspec.UnsetType = msgspec.UNSET
    """The number, in the header's `expectations`, of the entry that it was judged by; absent for a valid or
    invalid case that conforms."""

    @property
    def beyond(self) -> bool:
        """Say whether no published level allows the lowered call."""
        return BEYOND in self.levels.values()

    @property
    def flaky(self) -> bool:
        """Say whether the case was repeated and did not always do the same."""
        return isinstance(self.repeats, Repeats) and bool(self.repeats.outcomes.keys() - {self.outcome.value})

    @property
    def tests_nothing(self) -> bool:
        """Say whether it passes only because nothing is claimed of its outputs: it counts apart, as no
        pass."""
        return (
            self.outcome is Outcome.PASS and isinstance(self.accuracy, Accuracy) and not self.accuracy.claims
        )

    def __post_init__(self) -> None:
        if self.outcome is Outcome.PASS and (
            not self.placed_on or self.diff is not None or self.error is not None
        ):
            raise ValueError("a pass needs a proven provider and has neither diff nor error")


class TargetInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """A target as the run's header records it; fields that its runtime cannot tell stay None.

    `unavailable` is the reason why it did not run, with the remedy. `artifact_limit_bytes` bounds the tensors
    kept of failing cases. `plugin` is the file name of a provider's own library, `plugin_vendor` what it says
    of its maker, `package` and `package_version` where the library is from, and `device_metadata` what
    provider and hardware say of the device.
    """

    provider: str
    runtime: str = "this interpreter"
    unavailable: str | None = None
    onnxruntime: str | None = None
    python: str | None = None
    numpy: str | None = None
    platform: str | None = None
    directml: str | None = None
    directml_sha256: str | None = None
    adapter: str | None = None
    vendor: str | None = None
    luid: str | None = None
    driver: str | None = None
    max_feature_level: str | None = None
    device_dtypes: tuple[str, ...] = ()
    plugin: str | None = None
    plugin_sha256: str | None = None
    plugin_vendor: str | None = None
    package: str | None = None
    package_version: str | None = None
    device_metadata: dict[str, str] = {}
    options: dict[str, str] = {}
    artifact_limit_bytes: int | None = None


class Origin(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a spec says of one of its entries: the document it is from, and the rule that its cases break or
    that is left open."""

    source: str | None = None
    rule: str | None = None


class Against(msgspec.Struct, frozen=True):
    """The earlier run that a run is judged against.

    `targets` names for each target of the run the earlier one's, `differing` what is not the same: `specs`,
    `oracle`, `seed`.
    """

    run_id: str
    targets: dict[str, str]
    differing: tuple[str, ...] = ()


class ShardOf(msgspec.Struct, frozen=True):
    """A shard of a run: number `index` of `of`, counted from 1."""

    index: Annotated[int, msgspec.Meta(ge=1)]
    of: Annotated[int, msgspec.Meta(ge=1)]


Select = Literal["default", "all", "pairwise", "thorough"]
"""Which cases of the sweeps: what the specs say, the whole product also where they keep as few as show every
pair, few of each sweep, or every triple where a spec asks for pairs of its factors."""


class Asked(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a run was asked for beside its targets and seed: what `--resume` goes on with. Paths are as the
    command line had them.

    Without `specs` and `expectations` it is the harness's own ones; `reruns` is how often unexpected results
    are repeated.
    """

    specs: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    select: Select = "default"
    shard: ShardOf | None = None
    expectations: tuple[str, ...] = ()
    baseline: str | None = None
    timeout: Seconds = 30.0
    reruns: Count = 0


class Merged(msgspec.Struct, frozen=True, omit_defaults=True):
    """The runs that a merged run is made of, by run id, and the numbers of the shards that it lacks."""

    runs: tuple[str, ...]
    missing: tuple[Count, ...] = ()


class Expectation(msgspec.Struct, frozen=True, omit_defaults=True):
    """A reviewed entry as the run's header states it, for reports to show why a deviation is known.

    `expect` are the outcomes that it allows; of a `pending` one, which nobody has reviewed yet, any is.
    """

    expect: tuple[Outcome, ...]
    reason: str
    link: str
    title: str | None = None
    documents: str | None = None
    pending: bool = False

    @property
    def name(self) -> str:
        """Its title, else the first words of its reason."""
        return self.title or textwrap.shorten(self.reason, 60, placeholder="…")


class Header(msgspec.Struct, frozen=True, tag_field="type", tag="run", omit_defaults=True):
    """The first line of a run file.

    `origins` are by operator and entry as ids begin, for instance `GatherND:sweep=tuple_empty`; entries that
    say nothing are left out. `targets_left_out` are those that a run of the default targets does without,
    each with the reason. `selection` is None in files that are older than this key. `expectations` are the
    entries that hold on one of the targets and speak of one of the run's operators, by their place among all
    entries.
    """

    schema: int
    run_id: str
    command: str
    seed: Count
    hashes: dict[str, str]
    targets: dict[str, TargetInfo]
    origins: dict[str, Origin] = {}
    baseline: Against | None = None
    selection: Asked | None = None
    targets_left_out: dict[str, str] = {}
    merged: Merged | None = None
    expectations: dict[Count, Expectation] = {}


def in_another_order(one: Header, other: Header) -> bool:
    """Say whether two headers give an entry's number to different ones, so that their results cannot stand in
    one file."""
    return any(other.expectations.get(number, entry) != entry for number, entry in one.expectations.items())


class End(msgspec.Struct, frozen=True, tag_field="type", tag="end"):
    """The last line of a complete run file.

    `selected` and `run` count results (cases x targets, without those that a target's API cannot express);
    `left_out` counts cases by reason; `problems` are stale, unmatched or expired expectations, which fail the
    run.
    """

    selected: Count
    run: Count
    left_out: dict[str, Count]
    outcomes: dict[str, Count]
    verdicts: dict[str, Count]
    problems: tuple[str, ...] = ()
    seconds: Seconds = 0.0


CANNOT_BE_ASKED = {
    "UnknownVersionError": "opset or IR version newer than the release",
    "CannotFeedError": "element type that its Python cannot pass",
}
"""Errors of the worker itself, by class: why the target's release has no way to be asked."""
NOT_EXPRESSIBLE = "NotExpressible"
"""The error class of a case that a target's API has no words for."""


def inexpressible(result: Result) -> bool:
    """Say whether a target's API cannot express a case: it was not run, that is expected, and it counts in no
    rate.

    What only this release cannot be asked (an opset that it does not load) is not run as well, but selected,
    and its rate says so.
    """
    return (
        result.outcome is Outcome.NOT_RUN
        and result.error is not None
        and result.error.class_ == NOT_EXPRESSIBLE
    )


ORACLE_ERROR = "OracleError"
"""The error class of a case whose formula failed, or gave what the case cannot have."""


CONFORMING = {Validity.VALID: Outcome.PASS, Validity.INVALID: Outcome.REJECTED}
"""The outcome that conforms, by validity; anything an unspecified case does is recorded and never a
failure."""


def conforms(validity: Validity, outcome: Outcome) -> bool:
    """Say whether an outcome is what the ONNX operator specification asks for."""
    return validity is Validity.UNSPECIFIED or CONFORMING[validity] is outcome


def fails(validity: Validity, outcome: Outcome, verdict: Verdict) -> bool:
    """Say whether a result deviates and nobody expected that. What an unspecified case does is recorded and
    never a failure."""
    if validity is Validity.UNSPECIFIED:
        return False
    if verdict is Verdict.NEW:
        return outcome not in NOT_EXECUTED and not conforms(validity, outcome)
    return verdict in (Verdict.REGRESSION, Verdict.CHANGED)


def unexpected(validity: Validity, outcome: Outcome, verdict: Verdict, *, baseline: bool) -> bool:
    """Say whether a result turns a run red: by the exit code, in JUnit and CTRF, and in every total of
    unexpected results.

    An improvement does where it contradicts an expectation, which is wrong by then; against an earlier run
    (`baseline`) it is welcome.
    """
    improved = verdict is Verdict.IMPROVEMENT and validity is not Validity.UNSPECIFIED and not baseline
    return improved or fails(validity, outcome, verdict)


def run_json_schema() -> str:
    """Return the JSON Schema of a run file's lines, as the text of `docs/run.schema.json`."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of a run file",
        **msgspec.json.schema(_Line),
    }
    return msgspec.json.format(msgspec.json.encode(_dedented(schema)), indent=2).decode() + "\n"


def _dedented(schema: Any) -> Any:
    """Return a schema whose descriptions, which are docstrings, have no indentation: Python 3.13 takes it
    away, older ones do not."""
    if isinstance(schema, dict):
        return {
            key: inspect.cleandoc(value) if key == "description" else _dedented(value)
            for key, value in schema.items()
        }
    return [_dedented(value) for value in schema] if isinstance(schema, list) else schema


_Line = Header | Result | End


if __name__ == "__main__":
    print(run_json_schema(), end="")
