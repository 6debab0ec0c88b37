"""The harness from Python: `load` cases, `run` them, `read` a run file, `compare` two. Examples: docs/api.md.

    for case in load(queries=["Round@22:X=float16"]):
        print(case.id, case.validity.value)
    new = run(["cpu"], queries=["Round"], output="new")
    print(new.exit_code, [result.case for result in new.unexpected()])
    print(compare("old", new).total.changes)

The results are the frozen records of `harness.model`, as in a run file. Every error is a
`HarnessError` (`harness.model.errors`): its message is what the command line prints, its `exit_code` the
command's exit code. What a target does is data and raises nothing.

The commands `run` and `list` call nothing else. `compare`, `report` and `explain` call the parts of `compare`
and `read` instead of these functions: a report needs only a run file, and must not import what runs cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from os import PathLike
from pathlib import Path
from typing import NamedTuple, ParamSpec

from harness.model.errors import UsageError
from harness.model.header import End, Header, Select, Shard
from harness.model.query import parse_all
from harness.model.result import Result
from harness.model.verdict import Reading
from harness.results.compare.comparison import Comparison
from harness.results.compare.joined import compare_runs
from harness.results.runfile import RunReader, run_file
from harness.results.tally import Tally, state_of
from harness.run import folders
from harness.run.pipeline import run as run_pipeline
from harness.run.request import Request, new_run_id, nobody
from harness.specs.expand import expand
from harness.specs.reading.load import load_specs
from harness.specs.selection import Selection
from harness.targets.registry import default_targets, parse_targets

__all__ = [
    "AnyPath", "Comparison", "ReadingCount", "Request", "Run", "Selection", "compare", "execute", "load", "read",
    "request", "run",
]  # fmt: skip

AnyPath = str | PathLike[str]
Arguments = ParamSpec("Arguments")


class ReadingCount(NamedTuple):
    """How many results with a reading turn the run red (`unexpected`), and how many do not."""

    known: int
    unexpected: int


@dataclass(frozen=True)
class Run:
    """A run file. Iterating yields its results, one per case and target, in no fixed order; it can be
    iterated repeatedly.

    `header` says what ran where (targets with their versions, seed, hashes). `exit_code` is that of `harness
    run`: 0 as expected, 1 unexpected results, 3 a target is unavailable or placement unproven, 4 nothing ran;
    None for a file that was only read.
    """

    path: Path
    header: Header
    exit_code: int | None = None
    was_complete: bool = False
    """There was nothing left to run of a run that was to be continued."""

    def __iter__(self) -> Iterator[Result]:
        """Yield every result, in constant memory. Errors: UsageError naming file and line of damage."""
        yield from RunReader(self.path)

    @property
    def end(self) -> End | None:
        """The last line: counts by outcome and verdict, and seconds; None for a run that is not complete.
        Reads the whole file."""
        reader = RunReader(self.path)
        for _ in reader:
            pass
        return reader.end

    def readings(self) -> dict[Reading, ReadingCount]:
        """Return how many results have each reading: the same six numbers as in every report, which add up to
        all results but those that a target's API cannot express. Reads the whole file."""
        tally = Tally()
        for result in self:
            tally.add(state_of(result, baseline=self.header.baseline is not None))
        return {reading: ReadingCount(tally.known(reading), tally.red(reading)) for reading in Reading}

    def unexpected(self) -> Iterator[Result]:
        """Yield the results that turn the run red: regressions, changed and new deviations, improvements on
        an expectation."""
        baseline = self.header.baseline is not None
        return (each for each in self if each.unexpected(baseline=baseline))


def load(
    specs: Sequence[AnyPath] = (),
    queries: Sequence[str] = (),
    *,
    everything: bool = False,
    thorough: bool = False,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Selection:
    """Load the cases that any of the queries selects. Iterating yields `Case` records, valid cases first, and
    can be repeated.

    `specs` are spec files and folders of them, by default the harness's own; `queries` are as after `-k`, by
    default every case. With `everything` sweeps keep their whole product; with `thorough` those that cover pairs of
    factors cover triples. `progress` is told how many specs of how many are expanded. `total()` counts the cases without
    keeping them. Shapes are in elements, opsets are numbers; a case has no tensors, only how their elements
    are chosen.

    Errors: SpecError with every problem of every spec, UsageError for a query, NothingRan with what is near
    if no case is selected.
    """
    asked = parse_all(queries)
    loaded = load_specs(_paths(specs), asked)
    plan = expand(loaded, asked, everything=everything, thorough=thorough, tell=progress)
    chosen = Selection(plan, asked)
    chosen.total()
    return chosen


def request(
    targets: Sequence[str] = (),
    queries: Sequence[str] = (),
    specs: Sequence[AnyPath] = (),
    *,
    output: AnyPath | None = None,
    expectations: Sequence[AnyPath] = (),
    shard: tuple[int, int] | None = None,
    select: Select = "default",
    jobs: int | None = None,
    timeout: float = 30.0,
    seed: int = 0,
    baseline: AnyPath | None = None,
    reruns: int = 0,
    no_cache: bool = False,
    min_cases: int = 1,
    resume: bool = False,
    force: bool = False,
    cluster: str | None = None,
    progress: Callable[[str, int, int], None] = nobody,
    command: str = "harness.api",
) -> Request:
    """Check and resolve the arguments of `run` without running; they have the defaults of the command line.

    `targets` are as after `-t`, by default those of this machine. `output` is the folder of the run
    (`reports/<run id>`), `shard` is (number, of), counted from 1; `jobs` workers run at once for a target
    (one a processor), `timeout` is in seconds a case. `reruns` is how often unexpected results are repeated;
    with `no_cache` every case is made and judged anew, whatever earlier runs kept.
    `resume` goes on with the run in `output`, `force` replaces it. `cluster` is the address of a Dask scheduler whose
    nodes run the cases, each with `jobs` workers (one), or `local:N`. `progress` is told the target's name, how
    many of its results there are and how many there will be; before any, how many specs are planned.
    `command` is for the header.

    Errors: UsageError for an unknown target, a bad query, a shard that there is not, an `output` that is a file, or
    both `resume` and `force`.
    """
    if resume and force:
        raise UsageError("--resume goes on with a run and --force replaces it: name one of the two")
    if cluster is not None:
        from harness.run.cluster.scheduler import check_address  # asyncio

        check_address(cluster)
    if shard is not None and not 1 <= shard[0] <= shard[1]:
        raise UsageError(f"shard {shard[0]} of {shard[1]}: shards are counted from 1")
    chosen, left_out = (parse_targets(targets), {}) if targets else default_targets()
    run_id = new_run_id()
    return Request(
        out=folders.run_folder(None if output is None else Path(output), run_id, resume=resume),
        command=command,
        targets=chosen,
        specs=_paths(specs),
        expectations=_paths(expectations),
        queries=parse_all(queries),
        shard=None if shard is None else Shard(*shard),
        select=select,
        jobs=jobs or (folders.processors() if cluster is None else 1),
        timeout=timeout,
        seed=seed,
        min_cases=min_cases,
        resume=resume,
        force=force,
        baseline=None if baseline is None else Path(baseline),
        reruns=reruns,
        no_cache=no_cache,
        run_id=run_id,
        cluster=cluster,
        targets_left_out=left_out,
        progress=progress,
    )


def execute(asked: Request) -> Run:
    """Run a request and write its run file, without reports and summary, which `harness report` writes.

    Errors: SpecError, UsageError, NothingRan; HarnessFault for a full disk or a lost process. Results that
    were there by then are kept.
    """
    done = run_pipeline(asked)
    return Run(done.path, RunReader(done.path).header, done.exit_code, done.was_complete)


def _asked_as(
    read: Callable[Arguments, Request],
) -> Callable[[Callable[[Request], Run]], Callable[Arguments, Run]]:
    """Let a function of a request take what `read` makes one of, so that the arguments are written once."""

    def takes(act: Callable[[Request], Run]) -> Callable[Arguments, Run]:
        @wraps(act)
        def called(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Run:
            return act(read(*args, **kwargs))

        arguments = signature(read)
        called.__signature__ = arguments.replace(return_annotation="Run")  # type: ignore[attr-defined] # `inspect.signature` reads it
        return called

    return takes


@_asked_as(request)
def run(asked: Request) -> Run:
    """Run the cases that queries select on targets, as `harness run` does, and return the run; arguments are
    those of `request`.

    A target that is not on this machine is no error: its results are `unavailable`, and the exit code is 3.

    Errors: those of `request` and `execute`.
    """
    return execute(asked)


def read(path: AnyPath) -> Run:
    """Open a run file, plain or compressed, or the one in a folder. Errors: UsageError if it is no run file
    of this schema."""
    reader = RunReader(Path(path))
    return Run(run_file(Path(path)), reader.header)


def compare(old: AnyPath | Run, new: AnyPath | Run) -> Comparison:
    """Hold the run `new` against `old`, case by case and target by target: counts of changes and, for each
    kind, the results on both sides.

    Errors: UsageError for a damaged run, or runs without a target in common.
    """
    return compare_runs(
        *(RunReader(each.path if isinstance(each, Run) else Path(each)) for each in (old, new))
    )


def _paths(given: Sequence[AnyPath]) -> tuple[Path, ...]:
    return tuple(map(Path, given))
