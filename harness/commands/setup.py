"""`harness setup`: installs what this machine supports."""

from __future__ import annotations

import click


@click.command()
def setup() -> None:
    """Install everything that this machine supports, and report what it does not support."""
    from harness.commands.windows import setup_lines

    click.echo("cpu: this interpreter's onnxruntime; nothing to install")
    for line in setup_lines():
        click.echo(line)
