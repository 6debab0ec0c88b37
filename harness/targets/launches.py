"""How the worker of a target is started: its interpreter, its environment, its provider's options."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from harness.model.errors import TargetUnavailable
from harness.model.target_info import CPU, DIRECTML, DML
from harness.targets import plugins, remote
from harness.targets.batches import FAKE
from harness.targets.fake_script import SCRIPT
from harness.targets.launching import Launch
from harness.targets.runtimes import environments
from harness.targets.target import DML_OPTIONS, Target, session_config, session_threads, wheel
from harness.targets.windows import runtime

THIS_INTERPRETER = "this interpreter"
WINDOWS_RUNTIME = THIS_INTERPRETER if sys.platform == "win32" else "Windows runtime"
_WORKER = Path(__file__).resolve().parent.parent / "worker" / "worker.py"


def make_ready(targets: Sequence[Target]) -> None:
    """Make the environments of other releases, once, before several processes want them; UsageError for a
    release that is not published.

    Where this machine cannot have one, `launch` says so.
    """
    for target in targets:
        if target.provider == CPU and target.release is not None and target.host is None:
            with contextlib.suppress(TargetUnavailable):
                environments.prepare(target.release)
        if target.plugin is not None and target.plugin.project is not None:
            with contextlib.suppress(TargetUnavailable):
                environments.prepare(target.plugin.release, project=target.plugin.project)


def launch(target: Target) -> Launch:
    """Say how to start a worker for a target; raise TargetUnavailable with the reason and the remedy."""
    if target.provider == FAKE:
        script = {SCRIPT: str(Path(target.options["script"]).resolve())} if "script" in target.options else {}
        module = "harness.targets.fake"
        server = [sys.executable, "-m", "harness.worker.fork_server", module]
        return Launch(
            [sys.executable, "-m", module],
            {"OPENBLAS_NUM_THREADS": "1", **script},  # a process that forks has no other threads
            FAKE, {}, {}, forks=server if sys.platform == "linux" else (),
        )  # fmt: skip
    config = session_config(target)
    if target.plugin is not None:
        command, variables, where = plugins.prepared(target.plugin, target.name)
        return Launch(
            command, {**variables, "OMP_NUM_THREADS": "1"}, target.provider, {}, config, runtime=where or THIS_INTERPRETER,
            link=plugins.Refusals(target.name),
        )  # fmt: skip
    limit = int(target.options["memory_limit"]) if "memory_limit" in target.options else None
    threads = session_threads(target)
    chosen = {key: value for key, value in target.options.items() if key in DML_OPTIONS}
    if target.host is not None:
        python = target.options.get("python", "python")
        return Launch(
            remote.command(target.host, python), None, target.provider, chosen, config, remote.START_SECONDS, limit,
            f"ssh:{target.host}", remote.program(), remote.Ssh(target.host, python, wheel(target)), threads,
        )  # fmt: skip
    if target.provider == DIRECTML:
        dll = Path(target.options["dll"]) if "dll" in target.options else None
        arguments = [
            f"{key}={target.options[key]}" for key in ("device_id", "debug") if key in target.options
        ]
        argv, env = runtime.launch(
            _WORKER, ort=target.release, args=arguments, through="directml_worker.py", dll=dll
        )
        return Launch(argv, env, DIRECTML, {}, {}, runtime.START_SECONDS, runtime=WINDOWS_RUNTIME)
    if target.provider == DML:
        if target.options.get("graph_fusion") == "1" and sys.platform != "win32":
            raise TargetUnavailable(
                f"target {target.name!r}: DirectML fuses nodes on Windows alone; the compiler of its graphs fails in the Windows "
                "runtime on Linux: leave graph_fusion=1 out, or name a Windows PC (dml@ssh:HOST)"
            )
        argv, env = runtime.launch(_WORKER, ort=target.release)
        options = {**(runtime.PROVIDER_OPTIONS if sys.platform != "win32" else {}), **chosen}
        return Launch(argv, env, DML, options, config, runtime.START_SECONDS, limit, WINDOWS_RUNTIME)
    env = {
        "OMP_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": "1",
    }  # before 1.7 the pool of a session was OpenMP's
    if "library" in target.options:
        env["HARNESS_CUSTOM_OPERATORS"] = str(Path(target.options["library"]).resolve())
    name, argv = THIS_INTERPRETER, [sys.executable, str(_WORKER)]
    forks: Sequence[str] = ()
    if target.release is not None:
        interpreter, version = environments.prepare(target.release)
        name, argv = f"environment with onnxruntime {version}", [str(interpreter), "-I", str(_WORKER)]
    elif find_spec("onnxruntime") is None:
        raise TargetUnavailable(
            f"target {target.name!r}: onnxruntime is not installed in this interpreter; run: python -m pip install onnxruntime"
        )
    elif sys.platform == "linux" and limit is None:  # a limit holds from the start
        forks = [sys.executable, str(_WORKER.with_name("fork_server.py"))]
    return Launch(argv, env, CPU, {}, config, memory_limit=limit, runtime=name, threads=threads, forks=forks)
