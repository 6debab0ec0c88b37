"""Loads spec files: reads them, checks the format, and checks them against ONNX's definition of the operator.
Reports all problems of all files at once."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import ValidationError

from harness.model import interrupt, onnx_schemas
from harness.model.errors import HarnessError, SpecError
from harness.model.operator_schema import OperatorSchema
from harness.model.query import Query
from harness.model.reference import kernels
from harness.operators import OPERATORS, OWN_MODULES
from harness.specs.cache import kept
from harness.specs.graphs.pattern import Pattern
from harness.specs.reading import source
from harness.specs.reading.check import Checks
from harness.specs.reading.problems import validation_problems
from harness.specs.reading.schema import Spec
from harness.specs.reading.schema_types import ALL, STRICT_TYPES
from harness.specs.reading.source import KeyPath, Source, shown

if TYPE_CHECKING:
    from harness.specs.graphs.schema import GraphSpec

GRAPHS = "graphs"
"""The folder of specs of graphs, in one of specs of operators."""

_Model = TypeVar("_Model")


@dataclass(frozen=True)
class LoadedSpec:
    """A valid spec with the way back to its lines."""

    path: Path
    model: Spec
    source: Source
    graph: Pattern | None = None
    """The graph that it is a spec of, where it is none of an operator."""

    def problem(
        self, path: KeyPath, what: str, *, given: str | None = None, allowed: Iterable[str] = ()
    ) -> str:
        """Return one line for SpecError: `file:line: path: what; did you mean 'x'?; allowed: a, b`."""
        return self.source.problem(path, what, given=given, allowed=allowed)

    @cached_property
    def built_in(self) -> bool:
        """Whether the spec comes with the harness."""
        parent = self.path.resolve().parent
        return default_folder().resolve() in (parent, parent.parent)

    @contextmanager
    def noting(self, path: KeyPath, problems: list[str]) -> Iterator[None]:
        """Report as a problem of the spec an exception that no check foresees; for a spec of the harness's own it is
        a defect."""
        try:
            yield
        except Exception as error:  # anything: operators compute with what a spec says
            if self.built_in or isinstance(error, HarnessError):
                raise
            problems.append(self.problem(path, unforeseen(error)))

    @cached_property
    def opsets(self) -> tuple[int, ...]:
        """The opsets of the spec; `all` are the versions of the operator that opset 7 or a later one uses."""
        given = self.model.opsets
        if given == ALL:
            return onnx_schemas.opsets_of_versions(self.model.operator)
        return tuple(int(opset) for opset in given)

    @property
    def directml(self) -> tuple[str, ...]:
        """The DirectML operators that the operator lowers to: those that the spec claims, by default those that ONNX
        Runtime's provider creates."""
        if self.graph is not None:
            return ()
        claimed = self.model.lowers_to
        return kernels.directml_operators(self.model.operator) if claimed is None else claimed.directml

    def schema(self, opset: int) -> OperatorSchema:
        """Return what ONNX says of the operator at one of the spec's opsets."""
        return onnx_schemas.operator_schema(self.model.operator, opset)


@cache
def default_folder() -> Path:
    """Return the folder of the harness's own specs: inside an installed wheel, otherwise beside the
    package."""
    package = Path(__file__).resolve().parents[2]
    packaged = package / "_specs"
    return packaged if packaged.is_dir() else package.parent / "specs"


def checked(path: Path, label: str, data: bytes, check: Callable[[Source], _Model]) -> tuple[Source, _Model]:
    """Parse the bytes of a file and return it with what `check` makes of it, a model of `Strict` types; both are kept if
    the file comes with the harness. Errors: SpecError."""
    if OWN_MODULES or not path.resolve().is_relative_to(default_folder().resolve()):
        file = source.parse(data, path=path, label=label)
        return file, check(file)
    return kept.checked(data, path=path, label=label, check=check, parts=STRICT_TYPES)


def are_own(paths: Iterable[str]) -> bool:
    """Say whether the named specs are the harness's own; they are if none is named."""
    own = default_folder().resolve()
    return all(Path(path).resolve().is_relative_to(own) for path in paths)


def is_whole(paths: Collection[Path]) -> bool:
    """Say whether these files are all specs that come with the harness, and no others."""
    return {path.resolve() for path in paths} == {path.resolve() for path in spec_files()}


def load_specs(paths: Sequence[Path] = (), queries: Sequence[Query] = ()) -> list[LoadedSpec]:
    """Load spec files, or the `*.yaml` in folders and in those of graphs and domains below; without any, the
    harness's own: of these only the
    operators' that `queries` can select, where each can select one. Raise SpecError with every problem."""
    if queries and not paths:
        paths = _spoken_of(queries)
    specs, problems = load_each(paths)
    if problems:
        raise SpecError(problems)
    return specs


def spec_files(paths: Sequence[Path] = ()) -> list[Path]:
    """Return the files that are loaded of these paths without a query."""
    return yaml_files(paths or [default_folder()], [])


def _spoken_of(queries: Sequence[Query]) -> list[Path]:
    """Return the harness's own specs that queries can select cases of: a file has the name of its operator. A
    query that can select none is answered with what all of them have."""
    files = spec_files()
    named = {path: operator_of(path) for path in files}
    if not all(any(query.speaks_of(operator) for operator in named.values()) for query in queries):
        return files
    return [path for path in files if any(query.speaks_of(named[path]) for query in queries)]


def operator_of(path: Path) -> str:
    """Return the operator, or the graph, of one of the harness's own specs: a folder below has the name of a domain."""
    return f"{path.parent.name}.{path.stem}" if "." in path.parent.name else path.stem


def own_spec(operator: str) -> Path:
    """Return the place of the harness's own spec of an operator."""
    domain, _, name = operator.rpartition(".")
    return default_folder() / domain / f"{name}.yaml"


def load_each(paths: Sequence[Path] = ()) -> tuple[list[LoadedSpec], list[str]]:
    """Return the specs that can be loaded, and the errors of the others."""
    problems: list[str] = []
    specs: list[LoadedSpec] = []
    graphs: dict[str, str] = {}
    for path in yaml_files(paths or [default_folder()], problems):
        if path.name in OPERATORS and not path.exists():
            problems.append(
                f"{source.label_of(path)}: no such file; SPEC is a file or folder, `-k {path.name}` chooses the cases of an operator"
            )
            continue
        try:
            specs.append(spec := _load(path, graphs))
            if spec.graph is not None:
                graphs[spec.model.operator] = spec.source.where("graph")
        except SpecError as error:
            problems.extend(error.problems)
        except Exception as error:  # noqa: BLE001 - anything: a graph's operators compute with what it says
            problems.append(f"{source.label_of(path)}:1: {unforeseen(error)}")
    first: dict[str, LoadedSpec] = {}
    for spec in specs:
        earlier = first.setdefault(spec.model.operator, spec)
        if earlier is not spec:
            problems.append(
                spec.problem(
                    ("operator",),
                    f"{spec.model.operator} already has a spec, {earlier.source.where('operator')}",
                )
            )
    return specs, problems


def unforeseen(error: Exception) -> str:
    """Say what stopped the reading of a spec, and where in the code. Raises the KeyboardInterrupt that it stands for."""
    if interrupt.behind(error):
        raise KeyboardInterrupt from error
    at = traceback.extract_tb(error.__traceback__)[-1]
    where = "/".join(Path(at.filename).parts[-2:])
    return f"this cannot be planned: {type(error).__name__} in {where}:{at.lineno}: {' '.join(str(error).split())}"


def yaml_files(paths: Sequence[Path], problems: list[str], *, empty: bool = False) -> list[Path]:
    """Return the YAML files that the paths name, each once, in order; a folder without any is a problem
    unless `empty`."""
    found: dict[Path, None] = {}
    for path in paths:
        try:
            inside = [path]
            if path.is_dir():
                inside = sorted(p for p in path.iterdir() if p.suffix == ".yaml")
                inside += sorted(each for below in (GRAPHS, "*.*") for each in path.glob(f"{below}/*.yaml"))
        except (OSError, ValueError) as error:
            problems.append(
                f"{source.label_of(path)}: cannot read the folder: {getattr(error, 'strerror', None) or error}"
            )
            continue
        if not inside and not empty:
            problems.append(f"{source.label_of(path)}: no *.yaml file in this folder")
        found.update(dict.fromkeys(inside))
    return list(found)


def _load(path: Path, graphs: Mapping[str, str]) -> LoadedSpec:
    """Return the spec of a file; `graphs` are those of other files, and where they are named."""
    file, model = checked(path, source.label_of(path), source.contents(path), _checked)
    if isinstance(model, Spec):
        return LoadedSpec(path, model, file)
    from harness.specs.graphs.load import load_graph  # a run of operators reads no spec of a graph

    pattern = load_graph(file, model, graphs)
    spec = Spec.model_construct(name=model.graph, opsets=model.opsets, cases=model.cases)
    return LoadedSpec(path, spec, file, pattern)


def _checked(file: Source) -> Spec | GraphSpec:
    """Return what a file says of an operator or a graph. Errors: SpecError with every problem."""
    if not isinstance(file.tree, dict):
        raise SpecError(
            [
                file.problem(
                    (), f"a spec should be a mapping that begins with 'operator:', not {shown(file.tree)}"
                )
            ]
        )
    if "graph" in file.tree:
        from harness.specs.graphs.load import graph_spec  # a run of operators reads no spec of a graph

        return graph_spec(file)
    checks = Checks(file)
    checks.sweep_keys()
    model: Spec | None = None
    try:
        model = Spec.model_validate(file.tree)
    except ValidationError as error:
        checks.problems += validation_problems(file, error, Spec)
    checks.entries(model)
    if checks.problems or model is None:
        raise SpecError(file.by_line(checks.problems))
    return model
