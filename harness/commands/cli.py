"""The command line. Exit codes: 0 as expected, 1 unexpected results, 2 usage or spec error, 3 a named target
is unavailable or placement is unproven, 4 nothing ran, 5 fault in the harness; 130 after Ctrl-C. Results go
to stdout, progress and errors to stderr.
"""

from __future__ import annotations

import sys
import traceback
from importlib import import_module
from typing import Any

import click

from harness.commands.error_line import LEFT, fail, nowhere
from harness.commands.help_texts import GROUPS, IN_ONE_LINE, dressed
from harness.model import interrupt
from harness.model.errors import HarnessError, HarnessFault, UsageError, limit
from harness.render import plain_signs

_MODULES = {"compile": "compile_", "import": "import_", "list": "listing", "targets": "target_list"}
"""The modules of those commands whose own name their module cannot have."""


class _Commands(click.Group):
    """Loads the module of a command only when it is called: no report needs the Windows runtime's code."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.commands = {name: click.Command(name) for name in IN_ONE_LINE}
        """Their names alone, which click lists and compares with a misspelt one."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without loading any."""
        for group, names in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(name, IN_ONE_LINE[name]) for name in names])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; click itself would end with 1 where the reader of its output leaves, which says
        that results are unexpected."""
        try:
            done = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            nowhere(sys.stdout)
            sys.exit(LEFT)
        return done

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.commands:
            return None
        module = vars(import_module(f"harness.commands.{_MODULES.get(name, name)}"))
        commands = {each.name: each for each in module.values() if isinstance(each, click.Command)}
        return dressed(name, commands[name])


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="onnxruntime-conformance-harness", prog_name="harness")
def cli() -> None:
    """Bit-exact conformance runs for ONNX Runtime execution providers.

    \b
    Get started:
      harness setup       install DirectML where this machine supports it
      harness run         run every spec on every available target
      harness run -h      show options and examples of a command
    """


def main() -> None:
    """Run the command line. Every error is one line and an exit code; only a defect of the harness itself
    shows a traceback above it."""
    interrupt.install()
    plain_signs.install()
    try:
        cli.main(standalone_mode=False, prog_name="harness")
    except HarnessError as error:
        fail(str(error), error.exit_code)
    except click.ClickException as error:
        try:
            error.show()
        except OSError:
            nowhere(sys.stderr)
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt) as error:
        if isinstance(error.__cause__, EOFError):  # click takes it for Ctrl-D; here a module was cut off
            traceback.print_exception(error.__cause__)
            fail(f"a fault in the harness: {error.__cause__}", HarnessFault.exit_code)
        fail("interrupted", interrupt.EXIT_CODE)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except Exception as error:  # noqa: BLE001 - Python's own exit code for it would say "unexpected results"
        if interrupt.behind(error):
            fail("interrupted", interrupt.EXIT_CODE)
        if (what := limit(error)) is not None:
            nowhere(sys.stdout)  # where it may be that nothing can be written
            fail(what, UsageError.exit_code)
        traceback.print_exc()
        fail(f"a fault in the harness: {type(error).__name__}: {error}", HarnessFault.exit_code)
