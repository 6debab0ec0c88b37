"""What ssh would start on a Windows PC, started in the Windows runtime: the bootstrap, the modules in memory,
the frames."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from harness.targets import remote
from harness.targets.launches import launch
from harness.targets.pool import WorkerPool
from harness.targets.registry import parse_target
from harness.targets.windows import runtime
from harness.worker import worker
from tests.targets.test_remote import answers, big, chosen, greet

pytestmark = pytest.mark.windows_runtime
ROUND = "Round@11:sweep=sizes"


def in_windows(*tail: str) -> tuple[list[str], dict[str, str]]:
    """Return the command that runs the Windows Python of the Windows runtime with other arguments."""
    argv, env = runtime.launch(Path(worker.__file__))
    at = next(n for n, word in enumerate(argv) if word.endswith("python.exe"))
    return [*argv[: at + 1], *tail], env


def test_the_windows_python_is_prepared_over_stdin() -> None:
    """In-memory modules, binary streams, and the description of the device."""
    argv, env = in_windows("-c", remote._READ_LINE)
    hello = json.loads(greet(argv, env))
    assert hello["platform"].startswith("Windows")
    assert "DmlExecutionProvider" in hello["providers"]
    assert hello["device"]["max_feature_level"]


def test_the_bootstrap_works_in_cmd() -> None:
    """As the ssh server of Windows calls it: cmd.exe /c "…", with nothing escaped."""
    inner = 'cmd.exe /c "' + remote.interpreter(r"Z:\windows\python\python.exe") + '"'
    argv, env = in_windows("-c", f"import subprocess,sys;sys.exit(subprocess.call({inner!r}))")
    assert json.loads(greet(argv, env))["platform"].startswith("Windows")


def test_cases_on_directml_through_the_bootstrap(monkeypatch: pytest.MonkeyPatch) -> None:
    """The frames of a whole unit, failed sessions and large tensors, as they would come from a Windows PC."""
    argv, env = in_windows("-c", remote._READ_LINE)
    with monkeypatch.context() as patch:
        patch.setattr("shutil.which", lambda name: name)  # the command is replaced
        there = launch(parse_target("dml@ssh:pc"))._replace(
            argv=argv, env=env, provider_options=runtime.PROVIDER_OPTIONS
        )
    given = [
        *chosen(ROUND + ";X=float16"),
        big(1 << 20, 11),
        *chosen(ROUND + ";X=float64"),
        *chosen(ROUND + ";X=float32"),
    ]
    pool = WorkerPool(there, size=1, timeout=60)
    found = answers(pool, given)
    assert pool.restarts == 0
    for unit in given:
        for prepared in unit.cases:
            execution = found[prepared.case.id]
            x = prepared.inputs[0].array
            if x.dtype == np.float64:
                assert execution.error is not None, execution
                assert execution.stage == "load"
            else:
                assert execution.outputs is not None, execution
                with np.errstate(invalid="ignore"):
                    np.testing.assert_array_equal(execution.outputs[0].array, np.rint(x))
