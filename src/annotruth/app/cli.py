"""The command line: its commands, exit codes, and error messages of one line."""

from __future__ import annotations

import atexit
import gc
import sys
from typing import Annotated, Any, cast

import typer

from annotruth.app.commands.compare import compare
from annotruth.app.commands.demo import demo
from annotruth.app.commands.fit import fit
from annotruth.app.commands.next import next_
from annotruth.app.commands.plan import plan
from annotruth.app.commands.report import report
from annotruth.app.commands.reproduce import reproduce
from annotruth.app.commands.simulate import simulate
from annotruth.app.commands.update import update
from annotruth.errors import AnnotruthError, describe_exhaustion

app = typer.Typer(
    name="annotruth",
    help="Recover the truth from labels given by unreliable annotators.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
_INTERRUPTED = 130  # what Typer turns Ctrl-C into

for command in (fit, update, report, next_, plan, compare, simulate, reproduce, demo):
    app.command(command.__name__.rstrip("_"))(command)


def _show_version(requested: bool) -> None:
    if requested:
        import annotruth

        typer.echo(f"annotruth {annotruth.__version__}")
        raise typer.Exit


@app.callback()
def _annotruth(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Log the start and end of fits to stderr.")
    ] = False,
) -> None:
    if verbose:
        import logging

        logging.basicConfig(format="annotruth: %(message)s")  # other packages: warnings only
        logging.getLogger("annotruth").setLevel(logging.INFO)


def main() -> None:
    """Run the command line; exit with 0 when done, 2 for bad input, 1 for anything else."""
    from annotruth.app import console

    _reduce_garbage_collection()
    console.escape_unknown_characters()
    try:
        code = app(prog_name="annotruth", standalone_mode=False)
    except AnnotruthError as error:
        console.print_error(error)
        code = 2
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        command = "annotruth" if context is None else context.command_path
        if message := error.format_message().rstrip("."):  # empty after the help was shown
            console.print_error(f"{message}. Try '{command} --help'.")
        code = error.exit_code
    except (MemoryError, RecursionError) as error:
        console.print_error(describe_exhaustion(error))
        code = 2
    except OSError as error:
        # Errors of named files are AnnotruthErrors; this one is of stdout or of the machine.
        sys.stdout = cast(Any, None)  # or Python fails again at exit, when it flushes stdout
        console.print_error(f"cannot continue: {error}")
        code = 1
    if code == _INTERRUPTED:
        console.print_error("interrupted; no file was partly written")
        code = 1
    sys.exit(code or 0)


def _reduce_garbage_collection() -> None:
    """Collect garbage rarely: scanning the objects that imports create takes a fifth of a start.

    None of these objects is garbage before the process ends.
    """
    gc.set_threshold(100_000)
    atexit.register(gc.freeze)
