"""Settings of a pytest run, read from options and ini keys before collection."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from harness.model.errors import SpecError, UsageError
from harness.model.query import Query, parse_all
from harness.run.folders import processors
from harness.specs.expectations.expectations import Expectations, load_expectations
from harness.specs.reading.load import default_folder, yaml_files
from harness.targets.fake_script import check_scripts
from harness.targets.registry import parse_targets
from harness.targets.target import Target


class Settings(NamedTuple):
    """`specs` are the files to collect, as absolute paths; `timeout` is in seconds a case, `jobs` how many
    workers a target has."""

    targets: tuple[Target, ...]
    queries: tuple[Query, ...]
    specs: frozenset[Path]
    expectations: Expectations
    timeout: float
    jobs: int


def settings(config: pytest.Config) -> Settings:
    """Read options and ini keys, and let pytest look where the specs are. Errors: HarnessError."""
    option, ini = config.getoption, config.getini
    timeout, jobs = option("harness_timeout"), option("harness_jobs")
    if (timeout is not None and not 0.1 <= timeout <= 1e6) or (jobs is not None and not 1 <= jobs <= 256):
        raise UsageError("--harness-timeout is 0.1 to 1000000 seconds, --harness-jobs 1 to 256 processes")
    targets = parse_targets(option("harness_targets") or ini("harness_targets") or ["cpu"])
    check_scripts(targets)
    return Settings(
        targets,
        parse_all(option("harness_queries")),
        frozenset(_specs(config, _absolute(option("harness_specs")), list(ini("harness_specs")))),
        load_expectations(_absolute(option("harness_expectations")) or list(ini("harness_expectations"))),
        timeout or 30.0,
        jobs or (1 if is_xdist_worker(config) else processors()),
    )


def _specs(config: pytest.Config, named: list[Path], own: list[Path]) -> list[Path]:
    """Return the spec files of options, ini key and, with `--harness`, arguments; where these are none, the
    harness's own."""
    asked = bool(config.getoption("harness"))
    given = config.args_source is pytest.Config.ArgsSource.ARGS
    if asked and not given:
        named = named or own or [default_folder()]
    config.args = [*(config.args if given or not asked else ()), *map(str, named)]
    problems = [f"{path}: no such file or folder of specs" for path in (*named, *own) if not path.exists()]
    found = yaml_files([path for path in (*named, *own) if path.exists()], problems)
    if asked and given:
        arguments = (config.invocation_params.dir / argument.partition("::")[0] for argument in config.args)
        found += yaml_files(
            [path for path in arguments if path.is_dir() or path.suffix == ".yaml"], problems, empty=True
        )
    if problems:
        raise SpecError(problems)
    if not found:
        raise UsageError("--harness: no argument is a spec, or a folder with *.yaml files")
    return [Path(os.path.abspath(path)) for path in found]


def _absolute(given: Sequence[str]) -> list[Path]:
    return [Path(os.path.abspath(path)) for path in given]


def is_xdist_worker(config: pytest.Config) -> bool:
    """Say whether this process is one of several that pytest-xdist gives items to; it has one processor."""
    return hasattr(config, "workerinput")
