"""`harness targets`: shows which targets can run here, and for the others why not and how to get them."""

from __future__ import annotations

import sys

import click
from rich.table import Table

from harness.model.errors import TargetUnavailable
from harness.render.console import Console
from harness.targets import plugins
from harness.targets.launches import launch
from harness.targets.launching import Hello
from harness.targets.pool import WorkerPool
from harness.targets.registry import parse_target
from harness.targets.runtimes import environments
from harness.targets.runtimes.projects import PROJECTS
from harness.targets.windows import install
from harness.targets.windows.releases import releases

_SHOWN = ("cpu", "dml", "directml")


@click.command()
def targets() -> None:
    """Show which targets can run here; for the others, show why not and how to get them."""
    table = Table("target", "here", "what", box=None, pad_edge=False)
    for name in _SHOWN:
        table.add_row(name, *_started(name))
    for project in PROJECTS:
        for version, stamp in environments.installed(project).items():
            wrong = environments.faults(version, project)
            facts = f"onnxruntime {stamp.facts['onnxruntime']}, Python {stamp.facts['python']}, NumPy {stamp.facts['numpy']}"
            name = project.target_name(version)
            if project.module and not wrong:  # whether it has a device here only its library can say
                table.add_row(name, *_started(name))
            else:
                table.add_row(
                    name,
                    "no" if wrong else "yes",
                    f"{wrong[0]}; made anew when next used" if wrong else facts,
                )
    for row in releases()[:-1]:
        if sys.platform != "win32" and install.installed(row.onnxruntime):
            table.add_row(
                f"dml@ort-{row.onnxruntime}",
                "yes",
                f"onnxruntime-directml {row.onnxruntime}, DirectML {row.directml}",
            )
    table.add_row(
        "cpu@ort-VERSION",
        "",
        "any release of the package index, installed when first used, or now: harness runtimes install VERSION",
    )
    for name, what in plugins.remedies():
        table.add_row(name, "", what)
    table.add_row(
        "cpu@ssh:HOST, dml@ssh:HOST",
        "",
        "another machine with Python and an onnxruntime wheel: docs/remote.md",
    )
    Console().print(table)


def _started(name: str) -> tuple[str, str]:
    """Start a worker of a target; return whether it is available, and its greeting or the reason."""
    target = parse_target(name)
    try:
        pool = WorkerPool(launch(target), size=1, timeout=30)
        try:
            hello = pool.probe()
        finally:
            pool.close()
    except TargetUnavailable as error:
        return "no", str(error)
    if target.provider not in hello.providers:
        return "no", f"onnxruntime {hello.onnxruntime} has no {target.provider}"
    return "yes", _describe(hello)


def _describe(hello: Hello) -> str:
    facts = [f"onnxruntime {hello.onnxruntime}"] if hello.onnxruntime else []
    facts += [f"Python {hello.python}", f"NumPy {hello.numpy}", hello.platform]
    labels = {
        "directml": "DirectML",
        "adapter": "on",
        "driver": "driver",
        "max_feature_level": "feature level",
    }
    facts += [f"{label} {hello.device[key]}" for key, label in labels.items() if hello.device.get(key)]
    return ", ".join(facts)
