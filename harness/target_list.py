"""`harness targets`: what can run here and, where not, why and how to get it."""

from __future__ import annotations

import sys

from rich.table import Table

from harness.errors import TargetUnavailable
from harness.pool import Hello, Pool
from harness.render.console import Console
from harness.runtimes import environments
from harness.targets import launch, parse_target
from harness.windows import install
from harness.windows.releases import releases

_SHOWN = ("cpu", "dml", "directml")


def show_targets() -> None:
    """Start a worker of every target and show what it says."""
    table = Table("target", "here", "what", box=None, pad_edge=False)
    for name in _SHOWN:
        target = parse_target(name)
        try:
            pool = Pool(launch(target), size=1, timeout=30)
            try:
                hello = pool.probe()
            finally:
                pool.close()
            if target.provider not in hello.providers:
                table.add_row(name, "no", f"onnxruntime {hello.onnxruntime} has no {target.provider}")
            else:
                table.add_row(name, "yes", _describe(hello))
        except TargetUnavailable as error:
            table.add_row(name, "no", str(error))
    for version, stamp in environments.installed().items():
        wrong = environments.faults(version)
        facts = f"onnxruntime {version}, Python {stamp.facts['python']}, NumPy {stamp.facts['numpy']}"
        table.add_row(f"cpu@ort-{version}", "no" if wrong else "yes", f"{wrong[0]}; made anew when next used" if wrong else facts)
    for row in releases()[:-1]:
        if sys.platform != "win32" and install.installed(row.onnxruntime):
            table.add_row(f"dml@ort-{row.onnxruntime}", "yes", f"onnxruntime-directml {row.onnxruntime}, DirectML {row.directml}")
    table.add_row("cpu@ort-VERSION", "", "any release of the package index, installed when first used: harness runtimes")
    table.add_row("cpu@ssh:HOST, dml@ssh:HOST", "", "another machine with Python and an onnxruntime wheel: docs/remote.md")
    Console().print(table)


def _describe(hello: Hello) -> str:
    facts = [f"onnxruntime {hello.onnxruntime}"] if hello.onnxruntime else []
    facts += [f"Python {hello.python}", f"NumPy {hello.numpy}", hello.platform]
    labels = {"directml": "DirectML", "adapter": "on", "driver": "driver", "max_feature_level": "feature level"}
    facts += [f"{label} {hello.device[key]}" for key, label in labels.items() if hello.device.get(key)]
    return ", ".join(facts)
