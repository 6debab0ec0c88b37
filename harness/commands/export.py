"""`harness export`: writes cases as folders of ONNX backend tests."""

from __future__ import annotations

from pathlib import Path

import click

from harness.commands.options import QUERIES, NamedPath, flag, seed_option, specs_option
from harness.model.errors import NothingRan, UsageError
from harness.model.progress import Progress


@click.command("export")
@click.argument("folder", type=NamedPath(), metavar="DIR")
@QUERIES
@specs_option("Spec files or folders of the cases.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Write the first N tests only.")
@seed_option("Seed of the random inputs.")
@flag("--force", help="Write into a folder that holds something.")
def export_command(
    folder: Path, queries: tuple[str, ...], specs: tuple[Path, ...], limit: int | None, seed: int, force: bool
) -> None:
    """Write the valid cases that a query selects to DIR, each as a folder of an ONNX backend test.

    TEST/model.onnx, TEST/test_data_set_0/input_0.pb and output_0.pb; TEST/data.json holds the rtol and atol
    that follow from the oracle's bound, DIR/manifest.json all of them. Exit code 0: written; 4: no selected
    case can be.
    """
    from harness import api
    from harness.run.exporting import check_folder, export

    if not queries and not specs:
        raise UsageError(
            "say which cases: -k QUERY, or --spec FILE; every case would be some 100,000 folders"
        )
    check_folder(folder, force=force)
    selection = api.load(specs, queries)
    total = min(selection.total(), limit or selection.total())
    with Progress() as progress:
        done = export(
            selection, folder, seed, most=limit, tell=lambda number: progress.update("export", number, total)
        )
    for reason, number in sorted(done.left_out.items(), key=lambda item: (-item[1], item[0])):
        click.echo(f"left out: {number:,}: {reason}")
    if not done.tests:
        raise NothingRan(f"no selected case can be exported; {folder} is not written")
    bounded = sum(1 for test in done.tests if test["rtol"] or test["atol"])
    click.echo(
        f"{folder}: {len(done.tests):,} tests, {bounded:,} of them with a tolerance; {folder / 'manifest.json'} lists them"
    )
