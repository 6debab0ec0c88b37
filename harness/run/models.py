"""`harness model`: takes models apart, judges their calls in a run, and runs whole models on targets."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from harness.compile.model_inputs import ModelInputs, free_dimensions, inner_dimensions, sums, takes_integers
from harness.compile.models import Model, read_model
from harness.model.case import Case, Tensor
from harness.model.errors import NothingRan, TargetUnavailable, UsageError, naming, shown
from harness.model.header import Header
from harness.model.progress import RECORDING
from harness.model.result import Result
from harness.model.verdict import Outcome
from harness.results.model_report import (
    CallRow,
    DefectOfCalls,
    ModelNode,
    ModelReport,
    ModelView,
    RegionRow,
    WholeRun,
)
from harness.results.runfile import RunReader, run_file
from harness.results.summary import count
from harness.run.folders import check_vacant
from harness.run.model_calls import TENSORS, ModelCall, ModelCalls
from harness.run.pipeline import run
from harness.run.probe import open_pool
from harness.run.recording import InputsRefused, RecordedNode, Recording
from harness.run.request import Request
from harness.run.whole_model import RecordedModel, WholeModel
from harness.specs.cache import digests
from harness.specs.expand import expand
from harness.specs.expectations.expectations import load_expectations
from harness.specs.reading.load import load_specs
from harness.targets.registry import parse_target
from harness.targets.windows.releases import release_for_level, usable_levels

SPECS, REPORT = "specs", "model.json"
_COMMENT = "The calls of"
_SIZES = (64, 224, 320, 640, 2, 4, 8, 16, 32, 128, 256, 512)
"""Lengths, heights and widths that are tried where a model does not run with 1: windows and pictures of usual sizes, then those
of texts that a model was traced with, of which exporters make constants."""


class ModelInput(NamedTuple):
    """The inputs of models: a file or folder of tensors, sizes of free dimensions, and the seed of drawn
    inputs, whose integers may be `varied`."""

    data: Path | None = None
    sizes: Mapping[str, int] = MappingProxyType({})
    seed: int = 0
    varied: bool = False


class TakenApart(NamedTuple):
    """Models with their calls and nodes, the inputs that were drawn, the sizes of free dimensions, and why a model of several
    does not run: of such a one the nodes before are known."""

    models: list[RecordedModel]
    calls: list[ModelCall]
    nodes: list[ModelNode]
    drawn: list[str]
    sizes: dict[str, int]
    ended: list[NothingRan]

    def without_a_formula(self) -> NothingRan | None:
        """Return the error of models of which no call has a case."""
        if any(call.case is not None for call in self.calls):
            return None
        why = next((f"; the first {call.operator}: {call.why}" for call in self.calls), "")
        names = ", ".join(str(each.model.path) for each in self.models)
        return NothingRan(f"{names}: no node can be judged{why}")


def take_apart(
    paths: Sequence[Path],
    given: ModelInput,
    folder: Path,
    tell: Callable[[str, int, int], None],
    timeout: float,
) -> TakenApart:
    """Record models and write their distinct calls as specs into a folder; `timeout` is that of a part of a model, in
    seconds. Free dimensions are 2 and 3 and integers varied, or both 1 where that does not run, or others, tried for as long.
    Errors: UsageError, NothingRan."""
    models = [read_model(path) for path in paths]
    known = dict.fromkeys(name for model in models for name in free_dimensions(model))
    if unknown := given.sizes.keys() - known:
        there = f"there are: {', '.join(known)}" if known else "every extent is a number"
        raise UsageError(
            f"{', '.join(map(str, paths))}: no free dimension is named {min(unknown)!r}; {there}"
        )
    first = given._replace(sizes={**_first_sizes(models), **given.sizes})
    varied = [first._replace(varied=True)] if any(map(takes_integers, models)) else []
    for tried in [*varied, *([first] if first != given else [])] if given.data is None else []:
        with suppress(NothingRan if tried.varied else InputsRefused, UsageError):
            found = _taken_apart(models, tried, folder, tell, timeout)
            if not found.ended:
                return found
    try:
        return _taken_apart(models, given, folder, tell, timeout)
    except InputsRefused:
        if given.data is None:
            until = time.monotonic() + timeout
            for sizes in takewhile(lambda _: time.monotonic() < until, _other_sizes(models, given.sizes)):
                with suppress(NothingRan, UsageError):
                    tried = given._replace(sizes={**sizes, **given.sizes})
                    return _taken_apart(models, tried, folder, tell, timeout)
        raise


def _first_sizes(models: Sequence[Model]) -> dict[str, int]:
    """Return sizes of free dimensions with which a wrong axis shows: of one element Softmax is 1 and a mean the element. A length,
    a height or a width is another than a batch."""
    inner = set[str]().union(*map(inner_dimensions, models))
    free = [name for model in models for name in free_dimensions(model)]
    return {name: 3 if name in inner else 2 for name in free if name not in sums(free)}


def _other_sizes(models: Sequence[Model], given: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Yield sizes of free dimensions for models that run neither with 2 and 3 nor with 1: usual ones of lengths, heights and
    widths, then each one larger than the others, as that of a mask of what came before and what is new."""
    inner = sorted(set[str]().union(*map(inner_dimensions, models)) - given.keys())
    for size in _SIZES if inner else ():
        yield dict.fromkeys(inner, size)
    free = dict.fromkeys(name for model in models for name in free_dimensions(model))
    for name in sorted(free.keys() - given.keys() - sums(list(free)).keys()) if len(free) > 1 else ():
        yield {name: 2}


def _taken_apart(
    models: Sequence[Model],
    given: ModelInput,
    folder: Path,
    tell: Callable[[str, int, int], None],
    timeout: float,
) -> TakenApart:
    calls = ModelCalls()
    found = TakenApart([], [], [], [], {}, [])
    pool, _ = open_pool(parse_target("cpu"), jobs=1, timeout=timeout)
    try:
        for model in models:
            inputs = ModelInputs(model, given.sizes, given.seed, varied=given.varied)
            fed = inputs.tensors(given.data)
            found.drawn.extend(inputs.drawn)
            found.sizes.update(inputs.sizes)
            prefix = f"{model.path.stem}:" if len(models) > 1 else ""
            recording = Recording(model, pool, lambda done, total: tell(RECORDING, done, total))
            try:
                recorded = _record(recording, found, calls, model, fed, prefix)
            except InputsRefused as error:
                said = f"{error}{_stopped(model, recording.stopped)}{_hint(inputs.sizes)}"
                found.ended.append(InputsRefused(said))
            except NothingRan as error:
                found.ended.append(NothingRan(f"{error}{_stopped(model, recording.stopped)}"))
            else:
                found.models.append(recorded._replace(resized=_resized(model, inputs.sizes, given)))
    finally:
        pool.close()
    if not found.models:
        raise found.ended[0]
    found.calls.extend(calls.all)
    calls.write(folder, f"{_COMMENT} {', '.join(model.path.name for model in models)}")
    return found


def _stopped(model: Model, node: RecordedNode | None) -> str:
    """Say at which node a model stops, and whether ONNX defines its call."""
    if node is None:
        return ""
    call = ModelCall("stopped", 0, model, node)
    said = f"it stops at node {shown(node.name, 100)}, {shown(call.text, 200)}: {call.validity()}"
    return f"; {' '.join(said.split())}"


def _hint(sizes: Mapping[str, int]) -> str:
    """Say which sizes of free dimensions may be at fault."""
    free = ", ".join(f"{name}={size}" for name, size in sizes.items())
    return free and f"; free dimensions were {free}: set others with --dim NAME=N, or give inputs with --data"


def _resized(model: Model, sizes: Mapping[str, int], given: ModelInput) -> dict[str, Tensor] | None:
    """Draw inputs with every free dimension one larger; None if there is none, or the inputs are given."""
    if not sizes or given.data is not None:
        return None
    larger = {name: size + 1 for name, size in sizes.items() if name not in sums(list(sizes))}
    return ModelInputs(model, larger, given.seed, varied=given.varied).tensors(None)


def _record(
    recording: Recording,
    found: TakenApart,
    calls: ModelCalls,
    model: Model,
    fed: dict[str, Tensor],
    prefix: str,
) -> RecordedModel:
    made: dict[str, int] = {}
    names: dict[str, str] = {}
    first, outputs = len(found.nodes), []
    for recorded in recording.nodes(fed):
        name = prefix + recorded.name
        names |= dict.fromkeys(recorded.node.output, name)
        call = calls.add(model, recorded)
        if call is None:
            continue
        after = tuple(dict.fromkeys(made[key] for key in recorded.node.input if key in made))
        made |= {key: len(found.nodes) for key in recorded.node.output if key}
        found.nodes.append(ModelNode(name, call, after))
        outputs.append(recorded.node.output[0])
    return RecordedModel(
        model, fed, recording.outputs, recording.kept, recording.constant, names, first, outputs
    )


def examine(paths: Sequence[Path], given: ModelInput, asked: Request) -> tuple[ModelView, int]:
    """Run the calls of models on targets, and each model whole; write the model facts beside the run. Return
    it with the exit code. Errors: those of `take_apart` and of a run."""
    specs, fresh = asked.out / SPECS, asked.out / f".{SPECS}.part"
    if not asked.resume:
        check_vacant(asked.out, force=asked.force)
        begun = run_file(asked.out).is_file() or asked.force  # a run may have ended before it wrote a line
        if specs.exists() and not (begun and _of_models(specs)):
            raise UsageError(
                f"{specs}: is not of a run of models, which would replace it: choose another folder with -o"
            )
    elif not run_file(asked.out).is_file():
        raise UsageError(f"{asked.out}: there is no run to resume; leave --resume out")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        found = take_apart(paths, given, fresh, asked.progress, asked.timeout)
        whole = WholeModel(found.models, found.calls, asked)
        for target in asked.targets:
            with suppress(TargetUnavailable):  # the run says why
                whole.on(target)
        regions = whole.regions.write(fresh)
        if not regions and (nothing := found.without_a_formula()):
            raise NothingRan("; ".join((str(nothing), *_levels(whole.runs))))
        if asked.resume and _digest(fresh) != _digest(specs):
            raise UsageError(
                f"{specs}: the calls of another model, or of other inputs or targets: choose another folder with -o, or --force"
            )
        shutil.rmtree(specs, ignore_errors=True)
        fresh.rename(specs)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    done = run(asked._replace(specs=(specs,), heavy=True))
    reader = RunReader(done.path)
    results = list(reader)
    cases = {case.id: case for case in expand(load_specs([specs]))}
    digests = tuple(each.model.digest for each in found.models)
    report = ModelReport(
        models=tuple(map(str, paths)),
        digests=digests,
        seed=given.seed,
        sizes=found.sizes,
        drawn=tuple(found.drawn),
        nodes=tuple(found.nodes),
        calls=tuple(_row(call, cases) for call in found.calls),
        compared=tuple(whole.compared),
        whole=tuple(whole.runs),
        regions=tuple(RegionRow(each.case, tuple(each.places), each.made) for each in regions),
        growth={target: tuple(errors) for target, errors in whole.growth.items()},
        ended=tuple(map(str, found.ended)),
        remarks=(
            *whole.remarks,
            *_too_large(whole.regions.too_large),
            *_other_models(asked.baseline, digests),
        ),
        releases={level: release_for_level(level).onnxruntime for level in usable_levels()},
        known=tuple(_known(asked, reader.header, found.calls, results)),
    )
    view = ModelView(report, reader.header, results, asked.out)
    code = done.exit_code or int(bool(report.ended) or any(each.wrong for each in report.whole))
    with naming(asked.out / REPORT, "written"):
        (asked.out / REPORT).write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1))
    return view, code


def _of_models(specs: Path) -> bool:
    """Say whether a folder's specs are those that `take_apart` writes."""
    begins = [path.read_bytes().startswith(f"# {_COMMENT}".encode()) for path in specs.glob("*.yaml")]
    return (specs / TENSORS).is_file() and all(begins)


def _other_models(baseline: Path | None, digests: Sequence[str]) -> Iterator[str]:
    """Yield a remark where an earlier run is one of other models, whose calls may have the same ids."""
    held = None if baseline is None else (baseline if baseline.is_dir() else baseline.parent) / REPORT
    if held is None or not held.is_file():
        return
    with suppress(OSError, ValueError, KeyError, TypeError):
        if list(json.loads(held.read_bytes())["digests"]) != list(digests):
            yield f"{baseline}: is of other models, or of other weights: it says nothing of these numbers"


def _levels(runs: Sequence[WholeRun]) -> Iterator[str]:
    """Yield for each target what whole models do at each level of optimisation, where no call can be judged."""
    for target in dict.fromkeys(each.target for each in runs):
        levels = (
            f"{each.level} {'fails: ' + each.error if each.error else 'is wrong' if each.wrong else f'{each.apart:.1e}'}"
            for each in runs
            if each.target == target
        )
        yield f"whole on {target}, from the unoptimised run on the CPU: {', '.join(levels)}"


def _digest(folder: Path) -> bytes:
    """Return a digest of the files below a folder."""
    return digests.files(path for path in sorted(folder.rglob("*")) if path.is_file())


def _known(
    asked: Request, header: Header, calls: Sequence[ModelCall], results: Sequence[Result]
) -> Iterator[DefectOfCalls]:
    """Yield the entries of every target that speak of calls, those that hold first: of a call that is correct none holds."""
    entries = load_expectations(asked.expectations)
    cases = [call.case for call in calls if call.case is not None]
    for target, info in header.targets.items():
        correct = {each.case for each in results if each.target == target and each.outcome is Outcome.PASS}
        found = [
            DefectOfCalls(target, entry.name, entry.reason, entry.link, number, entry.releases or {}, holds)
            for entry, number, holds in entries.defects(target, info, cases, correct)
        ]
        yield from sorted(found, key=lambda each: not each.holds)


def _too_large(number: int) -> tuple[str, ...]:
    return (f"{count(number, 'fused region')} too large to be judged",) if number else ()


def _row(call: ModelCall, cases: dict[str, Case]) -> CallRow:
    case = None if call.case is None else cases.get(call.case.id)
    if case is None:
        return CallRow(call.operator, call.text, "", call.why)
    return CallRow(call.operator, call.text, case.id, "", case.levels)
