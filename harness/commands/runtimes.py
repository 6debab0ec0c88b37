"""`harness runtimes list|install|prune`: manages environments with other releases of onnxruntime."""

from __future__ import annotations

import click

from harness.commands.options import flag
from harness.model.errors import UsageError
from harness.targets.runtimes import environment_folder, environments, wanted_release
from harness.targets.runtimes.projects import PROJECTS


@click.group("runtimes")
def runtimes() -> None:
    """Manage environments with other releases of onnxruntime, for targets such as cpu@ort-1.22.1, and with
    plugins, such as ggml@0.2.0."""


@runtimes.command("list", short_help="Show which releases are installed and whole.")
def list_command() -> None:
    """Show which releases are installed, with what, and whether they are whole."""
    for line in lines():
        click.echo(line)


@runtimes.command("install", short_help="Create the environments of releases now.")
@click.argument("versions", nargs=-1, required=True, metavar="VERSION...")
def install_command(versions: tuple[str, ...]) -> None:
    """Create the environments of releases now, for instance before you lose the network. A target otherwise
    creates its own on first use.

    VERSION is 1.22.1 for a release of onnxruntime, ggml or ggml@0.2.0 for a release of a plugin's package.
    """
    for project, text in [wanted_release.parse_label(text) for text in versions]:
        _, version = environments.prepare(text, project=project)
        click.echo(f"{project.target_name(version)} {'is installed' if project.module else 'can run here'}")


@runtimes.command("prune", short_help="Delete the environments of some releases, or all.")
@click.argument("versions", nargs=-1, metavar="[VERSION]...")
@flag("--all", "all_", help="Delete all of them, the default without VERSION.")
def prune_command(versions: tuple[str, ...], all_: bool) -> None:
    """Delete the environments of some releases, or all of them, except those that another process uses."""
    if versions and all_:
        raise UsageError("prune: name releases or say --all, not both")
    gone, kept = environments.prune(versions)
    if gone or not kept:
        click.echo(
            f"removed: {', '.join(gone)}"
            if gone
            else f"nothing is installed in {environment_folder.cache_dir()}"
        )
    if kept:
        click.echo(f"kept, in use by another process: {', '.join(kept)}")


def lines() -> list[str]:
    """Return the folder of the environments and one line for each: release, Python, NumPy, size on disk, and
    defects."""
    found = [f"cache: {environment_folder.cache_dir()}"]
    for project in PROJECTS:
        for version, stamp in environments.installed(project).items():
            wrong = environments.faults(version, project)
            state = f"{wrong[0]}; made anew when next used" if wrong else "whole"
            facts = f"Python {stamp.facts.get('python')}, NumPy {stamp.facts.get('numpy')}"
            if project.module:
                facts = f"onnxruntime {stamp.facts.get('onnxruntime')}, {facts}"
            found.append(f"{project.target_name(version)}: {facts}, {stamp.bytes / 1e6:.0f} MB, {state}")
    if len(found) > 1:
        return found
    return [
        *found,
        "none installed; a target such as cpu@ort-1.22.1 makes its own when first used, or now: harness runtimes install 1.22.1",
    ]
