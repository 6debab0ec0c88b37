"""`harness windows install|status|remove|lock`, and the lines of `harness setup` about DirectML on this
machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

from harness.commands.options import NamedPath, flag
from harness.model.cache_folder import CACHE_ENV
from harness.model.errors import TargetUnavailable, naming
from harness.targets.components import problems, stamps
from harness.targets.windows import install as installation
from harness.targets.windows import packages, sandbox
from harness.targets.windows.fetch import MIRROR_ENV, find_mirrors, note
from harness.targets.windows.lock import LOCK_FILE, dump, load
from harness.targets.windows.releases import (
    default_release,
    release,
    release_for_level,
    releases,
    usable_levels,
)
from harness.targets.windows.runtime import BOOT

_SCRIPT = BOOT.with_name("script.py")
_mirror = click.option(
    "--mirror",
    metavar="ADDRESS",
    help=f"Debian mirror; default: {MIRROR_ENV}, else the one in apt's configuration.",
)


@click.group("windows")
def windows() -> None:
    """The Windows runtime on Linux: the real DirectML provider without Windows or a GPU."""


@windows.command("install", short_help="Download, verify and set up what is missing.")
@click.option("--ort", metavar="VERSION", help="Release of onnxruntime-directml; default: the newest.")
@flag("--levels", help="Install the newest usable release of every feature level.")
@click.option(
    "--from",
    "source",
    type=click.Choice(installation.SOURCES),
    help="Use Wine from Debian 13's own packages, which apt installs for root, or from a private tree; "
    "default: the one in use, else the packages if installed as pinned, else a tree.",
)
@_mirror
def install_command(
    ort: str | None, levels: bool, source: installation.Source | None, mirror: str | None
) -> None:
    """Download, verify and install the missing components: 1.3 GB in the user's cache, without root."""
    chosen = (
        [release_for_level(level).onnxruntime for level in usable_levels()]
        if levels
        else [release(ort).onnxruntime]
    )
    with note:
        for version in chosen:
            installation.install(version, source=source, mirror=mirror)
    click.echo(f"onnxruntime-directml {', '.join(chosen)} can run here ({installation.cache_dir()})")


@windows.command("status", short_help="Show what is installed and whether it is whole.")
@flag("--deep", help="Hash the large files too.")
def status_command(deep: bool) -> None:
    """Show the installed components and whether they are intact; exit code 3 if `dml` cannot run."""
    for line in status_lines(deep=deep):
        click.echo(line)
    installation.require_linux()
    sandbox.launcher()
    installation.verify()


@windows.command("remove", short_help="Delete everything that was installed in the cache.")
def remove_command() -> None:
    """Delete everything that was installed in the cache, but no system package."""
    place, source = installation.cache_dir(), installation.installed_source()
    click.echo(f"removed {place}" if installation.remove() else f"nothing is installed in {place}")
    if source == "apt":
        click.echo(f"the system's packages stay: {', '.join(packages.decisive_versions(load()))}")


@windows.command(
    "python",
    short_help="Run a Python script in the Windows runtime.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("script", type=NamedPath())
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option("--ort", metavar="VERSION", help="An onnxruntime-directml release; default: the newest.")
def python_command(script: Path, arguments: tuple[str, ...], ort: str | None) -> None:
    """Run a Python SCRIPT with onnxruntime-directml and numpy in the Windows runtime, and return its exit
    code.

    Example: `harness windows python repro.py`. The script sees no other file of this machine.
    """
    from harness.targets.windows import runtime

    with naming(script, "read"):
        text = script.read_bytes()
    argv, environment = runtime.launch(_SCRIPT, ort=ort, args=[script.name, *arguments])
    sys.exit(subprocess.run(argv, env=environment, input=text).returncode)


@windows.command("lock", short_help="Pin today's packages and wheels: for maintainers.")
@click.option(
    "-o",
    "--output",
    type=NamedPath(dir_okay=False),
    default=Path(installation.__file__).with_name(LOCK_FILE),
    show_default=True,
)
@_mirror
def lock_command(output: Path, mirror: str | None) -> None:
    """Pin today's packages and wheels: for maintainers, on Debian, with osslsigncode."""
    from harness.targets.windows.refresh import refresh

    fresh = refresh(find_mirrors(mirror), releases())
    output.write_bytes(dump(fresh))
    click.echo(
        f"{output}: {len(fresh.debian.packages)} packages with Wine {fresh.debian.wine}, {len(fresh.wheels)} wheels"
    )


def status_lines(*, deep: bool = False) -> list[str]:
    """Return the installed components: one line for the machine, one per component, one per release."""
    base = installation.cache_dir()
    try:
        tool = sandbox.launcher()
    except TargetUnavailable as exc:
        tool = str(exc)
    lines = [f"cache: {base}", f"sandbox: {tool}", f"wine: {_wine()}"]
    for name, stamp in stamps(base).items():
        wrong = problems(base / name, deep=deep)
        lines.append(f"{name}: {stamp.bytes / 1e6:.0f} MB, {wrong[0] if wrong else 'whole'}")
    ready = [row.onnxruntime for row in releases() if installation.installed(row.onnxruntime)]
    lines.append(f"onnxruntime-directml installed: {', '.join(ready) or 'none'}")
    lines.append(
        f"others on demand: {', '.join(row.onnxruntime for row in releases() if row.onnxruntime not in ready) or 'none'}"
    )
    return lines


def _wine() -> str:
    """Say which Wine is used."""
    source, locked = installation.installed_source(), load()
    if source == "apt":
        return "Debian's packages, " + ", ".join(
            f"{name} {version}" for name, version in packages.decisive_versions(locked).items()
        )
    return f"{locked.debian.wine} in a private tree" if source else "none installed"


def setup_lines() -> list[str]:
    """Install the parts of DirectML that this machine supports. Return one line for each that can or cannot
    run; never raise for the machine."""
    if sys.platform == "win32":
        return ["dml: this interpreter's onnxruntime-directml; nothing to install"]
    try:
        with note:
            found = installation.install(progress=note)
    except TargetUnavailable as exc:
        return [f"dml: not on this machine: {exc}", "cpu runs without it"]
    except OSError as exc:  # a disk that fills up meanwhile, a folder without permission
        where = f"{exc.filename or installation.cache_dir()}: {exc.strerror or exc}"
        return [
            f"dml: not on this machine: {where}; make room or set {CACHE_ENV} to another folder",
            "cpu runs without it",
        ]
    row = default_release()
    return [
        f"dml: onnxruntime-directml {row.onnxruntime}, DirectML {row.directml}, level {row.level}, on a software device "
        f"under Wine {load().debian.wine}{' of the system' if installation.installed_source() == 'apt' else ''}",
        f"dml@ort-VERSION, dml@level-LEVEL: {', '.join(other.onnxruntime for other in releases())}, fetched when first used",
        f"installed in {found.root.parent.parent}; `harness windows remove` deletes it",
    ]
