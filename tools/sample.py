"""Makes `reports/sample/`: a real run of the default specs on the CPU and on every DirectML release that runs
here, small enough for git. Of a run that its page does not hold whole, such as `reports/operators/`, the pages alone
are published.

python -m tools.sample              run, then publish; an interrupted run is continued
python -m tools.sample -k QUERY     only these cases, as of harness run
python -m tools.sample RUN -o DIR   publish an existing run
python -m tools.sample --render     make the reports of the published run again

run.jsonl.xz      the run: in the order of targets and ids, times in two digits, messages without paths and addresses
report.md, report.html
"""

from __future__ import annotations

import lzma
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import click
import msgspec

from harness.commands.options import NamedPath
from harness.commands.report import write_report
from harness.model.errors import HarnessError, HarnessFault, TargetUnavailable, UsageError
from harness.model.header import Header
from harness.model.result import Result
from harness.render.page_cases import WHOLE
from harness.render.text import without_paths
from harness.results.runfile import RunReader, run_file
from harness.run.folders import REPORTS
from harness.targets.windows import runtime
from harness.targets.windows.releases import releases

FOLDER = REPORTS / "sample"
RUN = REPORTS / "sample-run"
"""Where the run goes until it is published; it stays if it breaks off."""
MOST_BYTES = 4 << 20
NAME = "run.jsonl.xz"
FORMATS = {"report.md": "markdown", "report.html": "html"}
_XZ = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 64 << 20}]
_FAST = [{"id": lzma.FILTER_LZMA2, "preset": 0}]
_OF_THIS_MACHINE = ("-o", "--output", "-j", "--jobs", "--timeout")


def targets() -> list[str]:
    """Return the CPU, for each DirectML release the newest ONNX Runtime that has it, and the newest DirectML
    itself.

    Errors: TargetUnavailable with the remedy.
    """
    missing = runtime.unavailable()
    if missing is not None:
        raise TargetUnavailable(f"the sample is a run on DirectML too: {missing}")
    newest = {row.directml: row.onnxruntime for row in releases()}
    return ["cpu", *(f"dml@ort-{version}" for version in newest.values()), "directml"]


def run(select: str, queries: Sequence[str] = ()) -> int:
    """Run everything, or the cases of the queries, or go on with the run that broke off; return its exit
    code."""
    chosen = [part for target in targets() for part in ("-t", target)] + [
        part for query in queries for part in ("-k", query)
    ]
    command = ["run", "--select", select, *chosen, "-o", str(RUN)]
    if (RUN / "run.jsonl").exists():
        command.append("--resume")
    return subprocess.run(
        [sys.executable, "-m", "harness", *command], stdout=subprocess.DEVNULL, check=False
    ).returncode


def publish(source: Path, folder: Path) -> dict[str, int]:
    """Write the published form of a run and its reports; return the bytes of each file.

    Errors: UsageError for a run that is not complete; HarnessFault where the files name this machine or are
    too large: nothing is replaced.
    """
    partial = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        lines = list(published(RunReader(source)))
        whole = len(lines) - len(("header", "end")) <= WHOLE
        with lzma.open(partial / NAME, "wb", format=lzma.FORMAT_XZ, filters=_XZ if whole else _FAST) as file:
            file.writelines(line + b"\n" for line in lines)
        return _replace(partial, folder, [NAME, *FORMATS] if whole else [*FORMATS])
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def render(folder: Path) -> dict[str, int]:
    """Make the reports of the published run again; return the bytes of each file. Errors: as `publish`."""
    partial = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        shutil.copy(run_file(folder), partial / NAME)
        return _replace(partial, folder, [NAME, *FORMATS])
    except OSError as error:
        raise UsageError(
            f"{error.filename}: {error.strerror}; run python -m tools.sample without --render first"
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def published(reader: RunReader) -> Iterator[bytes]:
    """Yield the lines of a run in the order of targets and ids, without what differs only by machine and
    moment."""
    encode = msgspec.json.Encoder().encode
    position = {target: number for number, target in enumerate(reader.header.targets)}
    held = sorted((position[result.target], result.case, encode(_published(result))) for result in reader)
    if reader.end is None:
        raise UsageError(
            f"{reader.path}: the run is not complete: continue it with --resume before it is published"
        )
    yield encode(without_places(reader.header))
    for _, _, line in held:
        yield line
    yield encode(reader.end)


def _published(result: Result) -> Result:
    error = result.error
    if error is not None:
        error = msgspec.structs.replace(error, message=without_paths(error.message))
    return msgspec.structs.replace(result, error=error, seconds=float(f"{result.seconds:.2g}"))


def without_places(header: Header) -> Header:
    """Leave out of the command where its run went and how it was paced."""
    words: list[str] = []
    given = iter(shlex.split(header.command))
    for word in given:
        if word in _OF_THIS_MACHINE:
            next(given, None)
        elif word != "--resume" and not word.startswith(
            tuple(f"{option}=" for option in _OF_THIS_MACHINE if option.startswith("--"))
        ):
            words.append(word)
    return msgspec.structs.replace(header, command=shlex.join(words))


def _replace(partial: Path, folder: Path, names: Sequence[str]) -> dict[str, int]:
    """Render beside the run file, look through all that is published, and put it in the place of what was there."""
    for name, format in FORMATS.items():
        write_report(partial, format, partial / name)
    for name in names:
        opened = lzma.open if name == NAME else open
        with opened(partial / name, "rb") as file:
            text = file.read()
        for word in _private():
            if word.encode() in text:
                raise HarnessFault(f"{folder / name} would name this machine: {word!r} stands in it")
    sizes = {name: (partial / name).stat().st_size for name in names}
    if sum(sizes.values()) > MOST_BYTES:
        raise HarnessFault(
            f"{folder}: {sum(sizes.values()):,} bytes, more than {MOST_BYTES:,}: publish a run with --select pairwise"
        )
    folder.mkdir(exist_ok=True)
    for name in names:
        (partial / name).replace(folder / name)
    return sizes


def _private() -> Iterator[str]:
    """Yield what no published file may say: this machine's name, and folders of its user."""
    if len(socket.gethostname()) > 3 and socket.gethostname() != "localhost":
        yield socket.gethostname()
    for place in (Path.home(), Path.cwd()):
        if place != Path("/"):
            yield f"{place}/"


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.argument("source", required=False, type=NamedPath(), metavar="[RUN]")
@click.option(
    "--select",
    type=click.Choice(["default", "pairwise"]),
    default="pairwise",
    show_default=True,
    help="Which cases.",
)
@click.option(
    "-k", "--query", "queries", multiple=True, metavar="QUERY", help="Only these cases; repeat for more."
)
@click.option(
    "--render", "only_render", is_flag=True, help="Only make the reports of the published run again."
)
@click.option(
    "-o", "--output", type=NamedPath(), default=FOLDER, show_default=True, help="Folder of the sample."
)
def main(source: Path | None, select: str, queries: tuple[str, ...], only_render: bool, output: Path) -> None:
    """Make the sample."""
    if only_render and source is not None:
        raise UsageError("--render makes the reports of the published run: give no other one")
    code = run(select, queries) if source is None and not only_render else 0
    if code not in (0, 1):
        raise HarnessFault(
            f"the run ended with exit code {code}: see above; what is there is continued by the same command"
        )
    sizes = render(output) if only_render else publish(source or RUN, output)
    for name, size in sizes.items():
        click.echo(f"{output / name}  {size:,} bytes")
    if source is None and not only_render:
        with suppress(OSError):
            shutil.rmtree(RUN)
    sys.exit(code)


if __name__ == "__main__":
    try:
        main(standalone_mode=False)
    except HarnessError as error:
        print(f"harness: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
