"""Generates a case for each kind of elements and of shapes that an input could have, for each input as an initializer, for each
number of an attribute that breaks a rule, and for each kind of session, where no case of its operator has it.

It is an existing valid case with an input changed, and with it those that share its extents, or with an attribute changed; or an
existing case in another session: after another call, or, for each rule that an invalid case breaks, with undeclared shapes. The
cells are those of `kind_matrix`, by which `harness coverage --kinds` counts: what is generated and what is counted cannot differ. An
integer of an attribute makes an invalid case, a float of one a valid or an invalid case. Of the others, a changed call that breaks a
rule becomes no case. A valid call of which the formula claims no result becomes none either, and its cell stays open.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import islice
from math import prod

import msgspec
import numpy as np

from harness.model.case import CONSTANTS, Case, Options, Tensor, TensorSpec, Validity
from harness.model.caseid import CaseKey, option_terms
from harness.model.expected import Approx
from harness.model.reference.kernels import registered
from harness.model.target_info import CPU, DML, TargetInfo
from harness.operators.base import Call, Operator
from harness.operators.directml.levels import levels, levels_of
from harness.specs.coverage import kinds
from harness.specs.coverage.changed_calls import Witness, can_change, changed_calls
from harness.specs.coverage.kind_matrix import SeenKinds, count_kinds, mode_cells
from harness.specs.coverage.kinds import Cell, Mode
from harness.specs.coverage.left_out import reasons
from harness.specs.reading.literal_cases import identified
from harness.specs.reading.load import LoadedSpec
from harness.specs.sweeps import sessions
from harness.specs.sweeps.calls import call_of, case_inputs

_WITH_EXTENTS = (*kinds.EMPTY, *kinds.RANKS, *reversed(kinds.EXTENTS))
_OTHERS = (kinds.INITIALIZER, kinds.LEFT_OUT, *kinds.NUMBERS)
GENERATED = (*kinds.FLOATS, *kinds.INTEGERS, *_WITH_EXTENTS, *_OTHERS)
"""The kinds that cases are generated of, an extent before those that it has as well."""
PREFIX = "kind_"
"""What the names of generated cases begin with: the query `case=kind_*` selects them."""
_TRIED = 12
"""Changed calls whose results are asked of the formula for a cell, and as many again where none has any."""
_BASES = 200
"""Bases that are changed for a kind of a float attribute."""
_SEVERAL, _LARGE, _LONG = 3, 10_000, 50_000
"""Elements of an input whose first differs from its last; elements of which no result is computed here, and where an
extent is long."""
_TOGETHER = ":sweep=together"
"""What the ids of sweeps have whose cases are no bases: with every input and attribute at once, other deviations would hide the kind's."""
_USUAL = "float32"
_BEYOND = (*kinds.INTEGERS, "inf", "-inf", "largest")
"""Kinds that make an output too large to compute where elements alone decide how large it is."""
_SIGNED = {"-inf": "minus_inf", "-0": "minus_zero"}


def kind_cases(spec: LoadedSpec, cases: Iterable[Case]) -> Iterator[Case]:
    """Yield the generated cases of a spec whose other cases are `cases`."""
    seen, written = SeenKinds(spec), {each.name for each in spec.model.cases}
    order = _Order(seen)
    for case in cases:
        if case.directml is None and case.options.variant is None:
            seen.add(case)
    while made_now := list(_made_of_missing(seen, order, written)):
        yield from made_now
    yield from _made_in_modes(seen, order)
    ranked = order.bases()
    for kind in kinds.SESSIONS:
        if ("", kind) not in seen.judged and kind not in reasons(spec.model.operator):
            yield from _in_session(seen, ranked, kind)


class _Order:
    """The order in which valid cases are changed."""

    def __init__(self, seen: SeenKinds) -> None:
        self.seen = seen
        self.keys: list[tuple[tuple[object, ...], tuple[object, ...]]] = []
        """What orders each, and what orders them by the fewest types, inputs and attributes."""

    def bases(self, *, fewest: bool = False) -> list[Witness]:
        """Return the valid cases so far in one of the two orders of `_ranks`, but those of everything together."""
        valid = [each for each in self.seen.valid if _TOGETHER not in each.case.id]
        self.keys.extend(_ranks(self.seen.operator, each) for each in valid[len(self.keys) :])
        return [valid[n] for n in sorted(range(len(valid)), key=lambda n: self.keys[n][fewest])]


def _made_of_missing(seen: SeenKinds, order: _Order, written: Container[str]) -> Iterator[Case]:
    """Yield a case for each missing cell that a valid case can be changed to have, and count its cells: of a case of
    rank 5 a later round makes those without elements in its other dimensions."""
    ranked, plain = order.bases(), order.bases(fewest=True)
    missing = (cell for cell in count_kinds(seen).missing if cell[1] in GENERATED)
    for cell in sorted(missing, key=lambda cell: kinds.EXTENTS.get(cell[1], 0), reverse=True):
        if cell in seen.judged or _name(cell) in written:
            continue
        made = _made(seen, ranked if seen.number_type(*cell) in (None, "FLOAT") else plain, cell)
        if made is not None:
            seen.count(made)
            yield made


def _made_in_modes(seen: SeenKinds, order: _Order) -> Iterator[Case]:
    """Yield a case for each mode of the operator and each kind of elements that cases have in other modes alone."""
    bases: dict[Mode, list[Witness]] = {}
    for witness in order.bases():
        for mode in kinds.modes_of(witness.case):
            bases.setdefault(mode, []).append(witness)
    for mode, cell in mode_cells(seen):
        if cell not in seen.by_mode.get(mode, ()) and (made := _made(seen, bases.get(mode, ()), cell)):
            seen.count(made)
            yield made


def _in_session(seen: SeenKinds, ranked: Iterable[Witness], kind: str) -> Iterator[Case]:
    """Yield a valid case in a session that ran another call before, or each broken rule once with undeclared shapes."""
    if kind == kinds.UNDECLARED:
        for case in seen.refused.values():
            yield _with_options(case, kind, msgspec.structs.replace(case.options, shapes="undeclared"))
        return
    for base in ranked:
        case, call = base.case, base.call
        options = msgspec.structs.replace(case.options, after=kind.removeprefix("after "))
        given = all(map(prod, call.shapes)) and case.literals is None
        if given and sessions.refusal(seen.operator, call, options, by_inputs=True) is None:
            made = _with_options(case, kind, options)
            if (earlier := sessions.earlier_case(made)) and _broken(seen.operator, *earlier) is None:
                yield made
                return


def _broken(operator: Operator, case: Case, call: Call) -> str | None:
    """Return the rule that a call with the elements of a case breaks."""
    return operator.broken(call, dict(zip(call.inputs, case_inputs(call, case, 0), strict=True)))


def _with_options(case: Case, kind: str, options: Options) -> Case:
    """Return a case with other options under the name of a kind."""
    key = CaseKey.of(case.id.removesuffix(option_terms(case.options)))
    terms = ";".join((f"case={_name(('', kind))}", *key.terms[1:]))
    return msgspec.structs.replace(
        case,
        id=f"{key.head}:{terms}{option_terms(options)}",
        options=options,
        source=f"{kind}, a kind of session that no other case has; made from {key.origin}",
    )


def is_of_kind(case: Case) -> bool:
    """Say whether a case is generated here."""
    return CaseKey.of(case.id).origin.startswith(f"case={PREFIX}")


@np.errstate(all="ignore")
def _made(seen: SeenKinds, ranked: Iterable[Witness], cell: Cell) -> Case | None:
    """Return a case that has a cell, None where no base that is tried gives one."""
    name, kind = cell
    number = seen.number_type(name, kind)
    own = [
        each
        for each in ranked
        if can_change(each, name, kind)
        and not (kind in _BEYOND and each.call.constants and not any(each.call.shapes))
    ]
    if kind in (*kinds.RANKS, *kinds.EXTENTS, kinds.INITIALIZER, kinds.LEFT_OUT):
        own.sort(
            key=lambda each: _flat(each, name) or not all(given.array.size for given in each.tensors.values())
        )
    elif number == "FLOAT":
        own = sorted(own, key=lambda each: name not in each.case.attributes)[:_BASES]
        own.sort(key=lambda each: (_few(each), not each.finite))
    elif number:
        own.sort(key=lambda each: name not in each.case.attributes)
    elif kind in kinds.FLOATS + kinds.INTEGERS:
        own.sort(key=lambda each: (_few(each, name), not each.finite))
    changed = (
        (each, rule)
        for base in own
        for each, rule in changed_calls(seen.operator, base, name, kind)
        if seen.makes_case(name, rule, number)
    )
    for each, rule in _tried(changed):
        if rule or _claimed(seen, each.call, each.tensors, _LONG if kind in kinds.EXTENTS else _LARGE):
            made = _written_out(seen, each, cell)
            if cell in seen.cells(made) and seen.makes_case(name, made.rule, number):
                return made
    return None


def _tried(changed: Iterator[tuple[Witness, str | None]]) -> Iterator[tuple[Witness, str | None]]:
    """Yield the first changed calls and then as many of the others, spread over all: neighbours in the order have like shapes, and
    a formula that claims nothing of one claims nothing of the next."""
    yield from islice(changed, _TRIED)
    others = list(changed)
    yield from others[:: len(others) // _TRIED + 1]


def _ranks(operator: Operator, base: Witness) -> tuple[tuple[object, ...], tuple[object, ...]]:
    """Return what orders bases in two ways: those that providers have kernels for first, then those whose inputs have elements, whose
    attributes are finite, and those of the usual type, then those that leave out the least, or that give the fewest element types,
    inputs and attributes."""
    case, call = base.case, base.call
    types = {name.split(".")[0]: each.dtype for name, each in call.inputs.items()}
    asked = (registered(TargetInfo(each), case.operator, case.opset, types) for each in (CPU, DML))
    lacking = [answer not in ("yes", "device") for answer in asked]
    options = case.options
    plain = Options(outputs=options.outputs, omit=options.omit, optionals=options.optionals)
    given, unlike = len(types) + len(case.attributes), len(set(types.values()))
    first = (
        lacking[0],
        not all(map(prod, call.shapes)),
        any(isinstance(each, float) and not np.isfinite(each) for each in case.attributes.values()),
        any(types.get(each) or case.attributes.get(each) for each in operator.seldom),
        _USUAL not in types.values(),
    )
    last = lacking[1], options != plain, -case.opset, sum(map(prod, call.shapes))
    return (*first, -given, *last), (*first, unlike, given, *last)


def _flat(base: Witness, name: str) -> bool:
    """Say whether an input is a scalar."""
    return not any(tensor.array.ndim for tensor in base.by_input.get(name, ()))


def _few(base: Witness, name: str | None = None) -> bool:
    """Say whether an input, or each one, has too few elements for a first and a last one."""
    own = base.tensors.values() if name is None else base.by_input.get(name, ())
    return max((tensor.array.size for tensor in own), default=0) < _SEVERAL


def _claimed(seen: SeenKinds, call: Call, tensors: Mapping[str, Tensor], most: int) -> bool:
    """Say whether the formula claims anything of a call; none is asked of one whose outputs are large."""
    operator = seen.operator
    try:
        shapes = operator.family.output_shapes(operator, call)
        if any(prod(map(abs, shape)) > most for shape in (*shapes, *call.shapes)):
            return False
        levels(operator, call, seen.spec.directml, False)
        expected = operator.oracle(call, tensors, "opencl")
    except Exception:  # noqa: BLE001 - whatever a formula or a lowering raises: the call has no result
        return False
    return any(not isinstance(each, Approx) or each.claims for each in expected)


def _written_out(seen: SeenKinds, base: Witness, cell: Cell) -> Case:
    """Return a changed case as a literal one, invalid by the rule that it breaks, if it breaks one: more than in its call, since
    the elements of a literal case are known."""
    case, tensors = base.case, base.tensors
    specs = tuple(
        TensorSpec(each, given.dtype, given.array.shape, "literal") for each, given in tensors.items()
    )
    origin = CaseKey.of(case.id).origin
    made = Case(
        id=_name(cell),
        operator=case.operator,
        opset=case.opset,
        attributes=case.attributes,
        inputs=specs,
        options=_options(case.options, cell, tensors),
        source=f"{' '.join(cell)}, a kind of input that no other case has; made from {origin}",
        literals=tuple(np.asarray(given.array) for given in tensors.values()),
        lowers_to=seen.spec.directml,
        validity=Validity.VALID,
    )
    made = identified(made)
    call = call_of(made)
    rule = seen.operator.broken(call, tensors)
    validity = Validity.VALID if rule is None else Validity.INVALID
    return msgspec.structs.replace(made, levels=levels_of(made, call), rule=rule, validity=validity)


def _name(cell: Cell) -> str:
    name, kind = cell
    written = _SIGNED.get(kind, kind).lower().replace(" ", "_")
    return f"{PREFIX}{name}_{written}" if name else f"{PREFIX}{written}"


def _options(base: Options, cell: Cell, tensors: Iterable[str]) -> Options:
    """Return the options of a base that a changed case keeps."""
    return Options(
        initializer=_initializer(base, cell, tensors),
        shapes=base.shapes,
        outputs=base.outputs,
        omit=base.omit,
        optionals=base.optionals,
    )


def _initializer(options: Options, cell: Cell, tensors: Iterable[str]) -> str | None:
    """Return the inputs that are initializers: those of the base without the changed one, or that one as well."""
    name, kind = cell
    if options.initializer == CONSTANTS:
        return options.initializer
    given = (options.initializer or "").split(",")
    kept = [
        each
        for each in tensors
        if (kind == kinds.INITIALIZER if each.split(".")[0] == name else each in given)
    ]
    return ",".join(kept) or None
