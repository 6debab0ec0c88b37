"""The default specs by class of operators: a bare loop over the calls that a run keeps, the first run, and the second.

The bare loop creates the sessions of what the first run kept and runs their cases, nothing else, in one process; of a deployed
graph as many sessions and runs as its deployment makes. Cases whose inputs are made again each time, and those that are judged
each time or end their process, are in the runs alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.stages import usage_of
from harness.model.cache_folder import CACHE_ENV, cache_folder
from harness.operators import OPERATORS
from harness.results.runfile import RunReader
from harness.run import block_files
from harness.specs.reading.load import default_folder, load_specs
from harness.targets.execution import Graph, KeptCase
from harness.worker import worker

_GRAPHS = "graphs of operators"


def table() -> Iterator[str]:
    """Yield a Markdown table of the processor time of the default specs on the CPU provider."""
    yield "| class | results | bare loop: cases | µs a case | first run, µs a result | second run | second run / bare loop |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    plans = cache_folder("plans")
    all_results = all_used = all_bare = 0.0
    for name, specs in _classes().items():
        with tempfile.TemporaryDirectory() as folder:
            cache = Path(folder) / "cache"
            cache.mkdir()
            (cache / "plans").symlink_to(plans)
            environment = {CACHE_ENV: str(cache)}
            command = [sys.executable, "-m", "harness", "run", *map(str, specs), "-t", "cpu", "--force"]
            usages = [usage_of([*command, "-o", f"{folder}/run"], environment) for _ in range(2)]
            first, second = (usage.ru_utime + usage.ru_stime for usage in usages)
            results = sum(1 for _ in RunReader(Path(folder) / "run"))
            printed = subprocess.run(
                [sys.executable, "-m", "benchmarks.classes"],
                check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment},
            ).stdout.split()  # fmt: skip
        cases, bare = int(printed[0]), float(printed[1])
        all_results, all_used, all_bare = all_results + results, all_used + second, all_bare + bare
        yield (
            f"| {name} | {results:,} | {cases:,} | {bare / cases * 1e6:,.0f} | {first / results * 1e6:,.0f} | "
            f"{second / results * 1e6:,.0f} | {second / bare:.1f} |"
        )
    yield f"| all | {all_results:,.0f} | | | | {all_used / all_results * 1e6:,.0f} | {all_used / all_bare:.1f} |"


def _classes() -> dict[str, list[Path]]:
    """Return the default specs by the folder of the family of their operator."""
    found: dict[str, list[Path]] = {}
    for spec in load_specs([default_folder()]):
        room = type(OPERATORS[spec.model.operator].family).__module__.split(".")[2]
        found.setdefault(_GRAPHS if spec.graph is not None else room.replace("_", " "), []).append(spec.path)
    return dict(sorted(found.items()))


def main() -> None:
    """Run the bare loop; print the number of its cases and the seconds of processor time that they took."""
    worker.np = np
    ort = worker.load()
    ort.set_default_logger_severity(4)
    levels = {
        "off": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
        "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
        "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
        "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
    }
    number, seconds = 0, 0.0
    for graph, cases in _groups():
        unit = {"inputs": graph.inputs}
        names = [name for name, _ in graph.inputs]
        feeds = []
        for case in cases:
            assert case.sent is not None
            arrays, _ = worker.decode_inputs(unit, memoryview(case.sent.payload), 0, case.sent.shapes)
            feeds.append(dict(zip(names, arrays, strict=True)))
        options = ort.SessionOptions()
        options.graph_optimization_level = levels[graph.optimization]
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        number += len(cases)
        sessions, runs = _calls(dict(graph.deployed))
        started = time.process_time()
        try:
            for _ in range(sessions):
                session = ort.InferenceSession(
                    graph.model, options, providers=["CPUExecutionProvider"], enable_fallback=0
                )
            for feed in feeds:
                for _ in range(runs):
                    session.run(None, feed)
        except Exception:  # noqa: BLE001 - a refusal is an answer too
            pass
        seconds += time.process_time() - started
    print(number, seconds)


def _calls(deployed: Mapping[str, Any]) -> tuple[int, int]:
    """Return the number of sessions of a graph and of runs of each case: a deployed one has a run before with other
    elements, saved it has another session, with threads that share a session rounds of each and a run alone."""
    if not deployed:
        return 1, 1
    outlived = deployed.get("binding") == "outlived"
    rounds = 1 if outlived else worker._ROUNDS
    runs = 2 + int(deployed["concurrent"]) * rounds if "concurrent" in deployed else 2
    sessions = 1 + ("saved" in deployed) + ("initializers" in deployed) + (runs if outlived else 0)
    return sessions, runs


def _groups() -> Iterator[tuple[Graph, list[KeptCase]]]:
    """Yield the graphs of all kept blocks with the cases that are sent as they are and run after no other call."""
    for path in sorted(cache_folder("blocks").iterdir()):
        for group in block_files.read(path) or ():
            cases = [case for case in group.cases if case.sent is not None and case.sent.before is None]
            if group.graph is not None and cases:
                yield group.graph, cases


if __name__ == "__main__":
    main()
