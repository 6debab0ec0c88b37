"""Runs whole models at every level of optimisation, and calls that have no formula."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, get_args

import msgspec
import numpy as np

from harness.compile.models import Model, runnable, whole
from harness.model.case import Optimization, Tensor
from harness.model.dtypes import DTYPES
from harness.model.float_formats import FORMATS, decode, encode
from harness.model.progress import WHOLE
from harness.model.result import CANNOT_BE_ASKED
from harness.model.target_info import DIRECTML
from harness.model.transformers import TRANSFORMERS
from harness.operators.in_models import draws
from harness.results.model_report import ENDLESS, MOVED_FACTOR, ComparedCall, WholeRun
from harness.run.fused_regions import FusedRegions, region_of, regions
from harness.run.held_back import choices
from harness.run.model_calls import ModelCall
from harness.run.recording import execute, executed
from harness.run.request import Request
from harness.targets.batches import FAKE
from harness.targets.execution import Execution, Graph
from harness.targets.launches import launch
from harness.targets.pool import WorkerPool
from harness.targets.target import Target


class RecordedModel(NamedTuple):
    """A model with its inputs, inputs of other sizes of its free dimensions, and its recorded tensors; `names` are
    the names of its nodes by their outputs, `first` is the number of its first node among those of all models,
    `outputs_of_nodes` the first output of each node."""

    model: Model
    fed: Mapping[str, Tensor]
    outputs: Mapping[str, Tensor]
    kept: Mapping[str, Tensor]
    constant: set[str]
    names: Mapping[str, str]
    first: int
    outputs_of_nodes: Sequence[str]
    resized: Mapping[str, Tensor] | None = None


_LEVELS: tuple[Optimization, ...] = get_args(Optimization)
_LARGEST = 1 << 30
"""Bytes of weights up to which a model is sent to a worker whole."""
_ELSEWHERE = "session.disable_cpu_ep_fallback"
_SECONDS = 300.0
_ROUNDED = 1 << 22
"""Elements of a tensor up to which it is moved to see what rounding does: the others are enough."""


def apart(found: Iterable[Tensor], wanted: Iterable[Tensor]) -> float:
    """Return the largest difference of outputs, relative to the largest element of each; infinite if types,
    shapes or the finite elements differ."""
    return max((_apart(one, other) for one, other in zip(found, wanted, strict=True)), default=0.0)


def _apart(one: Tensor, other: Tensor) -> float:
    if one.dtype != other.dtype or one.array.shape != other.array.shape:
        return float("inf")
    if one.dtype == "string" or np.dtype(DTYPES[one.dtype].storage).kind in "bc":
        return 0.0 if np.array_equal(one.array, other.array) else 1.0
    a, b = decode(*one), decode(*other)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if same.all():
        return 0.0
    if not (np.isfinite(a) & np.isfinite(b))[~same].all():
        return float("inf")
    scale = float(np.abs(b[np.isfinite(b)]).max(initial=0.0)) or 1.0
    return float(np.abs(a - b)[~same].max()) / scale


class WholeModel:
    """Runs models whole, and single calls without a formula; the findings collect in its lists."""

    def __init__(self, models: Sequence[RecordedModel], calls: Sequence[ModelCall], asked: Request) -> None:
        self._models = models
        self._calls = calls
        self._asked = asked
        self.runs: list[WholeRun] = []
        self.compared: list[ComparedCall] = []
        self.growth: dict[str, list[float | None]] = {}
        self.remarks: list[str] = []
        self.regions = FusedRegions()
        self._steps = 0

    def on(self, target: Target) -> None:
        """Ask one target, which may use others for the nodes that it does not take."""
        if target.provider in (FAKE, DIRECTML):
            return
        started = launch(target)
        config = {key: value for key, value in started.config.items() if key != _ELSEWHERE}
        alone = WorkerPool(started, size=1, timeout=max(self._asked.timeout, _SECONDS))
        shared = WorkerPool(
            started._replace(config=config), size=1, timeout=max(self._asked.timeout, _SECONDS)
        )
        self._steps = 0
        try:
            for number, call in enumerate(self._calls):
                if call.case is None and call.recorded.outputs and call.complete:
                    self._compare(target, alone, number, call)
            alone.close()
            for recorded in self._models:
                size = sum(each.array.nbytes for each in recorded.model.weights.values())
                if size > _LARGEST:
                    self._remark(
                        f"{recorded.model.path.name}: not run whole: its weights have {size:,} bytes"
                    )
                    continue
                self._levels(target, shared, recorded)
                self._grow(target, shared, recorded)
                self._step(target)
        finally:
            alone.close()
            shared.close()

    def _step(self, target: Target) -> None:
        self._steps += 1
        self._asked.progress(WHOLE + target.name, self._steps, (len(_LEVELS) + 1) * len(self._models))

    def _remark(self, what: str) -> None:
        self.remarks += [] if what in self.remarks else [what]

    def _compare(self, target: Target, pool: WorkerPool, number: int, call: ModelCall) -> None:
        recorded = call.recorded
        names = list(recorded.outputs)
        graph = runnable(
            [recorded.node], recorded.inputs, names, call.model, constants=call.constants, dtypes=call.dtypes
        )
        fed = {name: each for name, each in recorded.inputs.items() if name not in call.constants}
        done = execute(pool, graph, fed, call.name)
        if done.outputs is None:
            self.compared.append(ComparedCall(number, target.name, None, _said(done)))
        else:
            difference = min(apart(done.outputs, recorded.outputs.values()), ENDLESS)
            self.compared.append(ComparedCall(number, target.name, difference))

    def _grow(self, target: Target, pool: WorkerPool, recorded: RecordedModel) -> None:
        """Compare every tensor of the whole model on a target with the CPU's."""
        names = [name for name in recorded.kept if name in recorded.names.keys() - recorded.constant]
        graph = whole(recorded.model, "off", names)
        done = execute(pool, graph, recorded.fed, recorded.model.path.name)
        if not names or done.outputs is None:
            return
        given = [name for name, _ in graph.outputs]
        found = {
            name: min(_apart(each, recorded.kept[name]), ENDLESS)
            for name, each in zip(given, done.outputs, strict=True)
            if name in recorded.kept
        }
        errors = self.growth.setdefault(target.name, [])
        errors += [None] * (recorded.first - len(errors))
        errors += [found.get(name) for name in recorded.outputs_of_nodes]

    def _cut(self, target: str, recorded: RecordedModel, optimized: Execution, level: Optimization) -> None:
        """Take the regions that optimisation changed."""
        model = recorded.model
        values = {**model.weights, **recorded.kept, **recorded.fed}
        for region in regions(list(model.graph.node), recorded.constant, set(recorded.fed), optimized):
            held = region_of(model, values, recorded.constant, region, level)
            if held is not None:
                self.regions.add(held, recorded.names, target)

    def _levels(self, target: Target, pool: WorkerPool, recorded: RecordedModel) -> None:
        model, fed, name = recorded.model, recorded.fed, recorded.model.path.name
        plain = whole(model, "off")
        if not plain.outputs:
            self._remark(f"{name}: gives no tensor, and was not run whole")
            return
        wanted = [recorded.outputs[output] for output, _ in plain.outputs]
        random = any(draws(node.op_type, len(node.input)) for node in model.graph.node)
        if random:
            self._remark(f"{name}: draws numbers, so that its runs were not compared with each other")
        off: Sequence[Tensor] | None = None
        noise = 0.0
        runs, expected = [fed, fed], None
        if recorded.resized is not None:
            expected = execute(pool, plain, recorded.resized, name).outputs
            runs += [recorded.resized, fed] if expected is not None else []
            if expected is None:
                self._remark(f"{name}: does not run on {target.name} with every free dimension one larger")
        for level in _LEVELS:
            graph = plain._replace(optimization=level)
            done, again, *later = executed(pool, graph, runs, name)
            if done.outputs is None:
                searched = off is not None and done.ended != "timeout"
                culprit = self._halved(pool, graph, fed, off or (), noise) if searched else ()
                self.runs.append(
                    WholeRun(target.name, name, level, _said(done), done.ended is not None, culprit=culprit)
                )
                self._step(target)
                continue
            if level == "off":
                off = done.outputs
                noise = self._noise(pool, model, fed, off)
            moved = None if off is None else min(apart(done.outputs, off), ENDLESS)
            nodes = done.nodes or ()
            found = WholeRun(
                target=target.name,
                model=name,
                level=level,
                apart=min(apart(done.outputs, wanted), ENDLESS),
                moved=moved,
                noise=noise,
                elsewhere=dict(Counter(where for where, _ in nodes if where != target.provider)),
                nodes=len(nodes),
                transformers=done.transformers,
                repeats=None
                if random or again.outputs is None
                else max(_from(done.outputs, each) for each in (again, *later[1:])),
                resized=None if random or expected is None else _from(expected, later[0]),
                bound=None if random else self._bound(pool, graph, fed, done),
                seconds=round(done.seconds, 3),
            )
            if level != "off":
                self._cut(target.name, recorded, done, level)
            if (found.wrong or found.moves) and off is not None:
                tried = [
                    name for size in (1, 2)[: 1 + found.wrong] for name in choices(done.transformers, size)
                ]
                culprit = self._culprit(pool, graph, fed, off, tried, noise)
                found = msgspec.structs.replace(found, culprit=culprit)
            self.runs.append(found)
            self._step(target)

    def _bound(
        self, pool: WorkerPool, graph: Graph, fed: Mapping[str, Tensor], done: Execution
    ) -> float | None:
        """Return how far a run with inputs and outputs as OrtValues of the device is; None where a release has none."""
        found = execute(pool, graph._replace(deployed=(("binding", "device"),)), fed, "bound")
        if found.error is not None and found.error.class_ in CANNOT_BE_ASKED:
            return None
        return _from(done.outputs or (), found)

    def _noise(
        self, pool: WorkerPool, model: Model, fed: Mapping[str, Tensor], off: Sequence[Tensor]
    ) -> float:
        """Return the change of the outputs by a rounding of every weight and input, at least one rounding of
        their own; no more than that where their shapes change, or what is finite."""
        generator = np.random.default_rng(self._asked.seed)
        rounded = {name: _rounded(each, generator) for name, each in model.weights.items()}
        done = execute(
            pool,
            whole(model._replace(weights=rounded), "off"),
            {name: _rounded(each, generator) for name, each in fed.items()},
            model.path.name,
        )
        least = max((_epsilon(each.dtype) for each in off), default=0.0)
        moved = math.inf if done.outputs is None else apart(done.outputs, off)
        return max(least, moved) if math.isfinite(moved) else least

    def _culprit(
        self,
        pool: WorkerPool,
        graph: Graph,
        fed: Mapping[str, Tensor],
        off: Sequence[Tensor],
        tried: Iterable[tuple[str, ...]],
        noise: float,
    ) -> tuple[str, ...]:
        """Return the transformers without which the outputs are near those without optimisation; () for none."""
        for chosen in tried:
            done = execute(pool, graph._replace(disabled=chosen), fed, graph.digest)
            if done.outputs is not None and apart(done.outputs, off) <= MOVED_FACTOR * noise:
                return chosen
        return ()

    def _halved(
        self, pool: WorkerPool, graph: Graph, fed: Mapping[str, Tensor], off: Sequence[Tensor], noise: float
    ) -> tuple[str, ...]:
        """Return the transformer without which a model runs that does not; half of those left are tried together."""
        left = [name for (name,) in choices(list(TRANSFORMERS), 1)]
        while left:
            half = tuple(left[: len(left) // 2 or 1])
            runs = self._culprit(pool, graph, fed, off, [half], noise)
            if runs and len(half) == 1:
                return half
            left = list(half) if runs else left[len(half) :]
        return ()


def _from(expected: Sequence[Tensor], done: Execution) -> float:
    """Return how far outputs are from the `expected`; endless where there are none."""
    return ENDLESS if done.outputs is None else min(apart(done.outputs, expected), ENDLESS)


def _said(done: Execution) -> str:
    assert done.error is not None
    class_ = done.error.class_
    what = f"ends the process ({done.ended})" if done.ended else CANNOT_BE_ASKED.get(class_, class_)
    return f"{what}: {done.error.message.strip()}"[:500]


def _epsilon(dtype: str) -> float:
    return float(2.0 ** -(DTYPES[dtype].mantissa or 0) / 2) if DTYPES[dtype].is_float else 0.0


def _rounded(tensor: Tensor, generator: np.random.Generator) -> Tensor:
    """Return a tensor whose elements are each moved by at most one rounding of its type, but for whole numbers, which
    may be exponents or limits: a negative number to the power of 2.0000002 is NaN."""
    if tensor.dtype not in FORMATS or not 0 < tensor.array.size <= _ROUNDED:
        return tensor
    values = decode(tensor.dtype, tensor.array)
    signs = generator.integers(0, 2, tensor.array.shape) * 2 - 1
    moved = np.where(values == np.rint(values), values, values * (1 + signs * 2 * _epsilon(tensor.dtype)))
    return Tensor(tensor.dtype, encode(tensor.dtype, moved))
