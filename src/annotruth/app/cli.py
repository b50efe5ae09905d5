"""The command line: its commands, its exit codes, and one line for whatever goes wrong."""

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
from annotruth.app.commands.reproduce import reproduce
from annotruth.app.commands.simulate import simulate
from annotruth.app.commands.update import update
from annotruth.errors import AnnotruthError

app = typer.Typer(
    name="annotruth",
    help="Recover the truth from labels that many unreliable people gave.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
_INTERRUPTED = 130  # what Typer turns Ctrl-C into

for command in (fit, update, compare, next_, plan, simulate, reproduce, demo):
    app.command(command.__name__.rstrip("_"))(command)


def _version(asked: bool) -> None:
    if asked:
        import annotruth

        typer.echo(f"annotruth {annotruth.__version__}")
        raise typer.Exit


@app.callback()
def _annotruth(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line: 0 done, 2 bad input (one line on stderr), 1 anything else."""
    from annotruth.app import console

    _look_for_garbage_seldom()
    try:
        code = app(standalone_mode=False)
    except AnnotruthError as error:
        console.complain(error)
        code = 2
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        command = "annotruth" if context is None else context.command_path
        if said := error.format_message().rstrip("."):  # nothing is said after the help itself
            console.complain(f"{said}. Try '{command} --help'.")
        code = error.exit_code
    except OSError as error:
        # Files have their own messages; this is a failure of the output or of the machine.
        sys.stdout = cast(Any, None)  # or Python tries, and fails, once more at exit
        console.complain(f"cannot go on: {error}")
        code = 1
    if code == _INTERRUPTED:
        console.complain("interrupted; no file was left half-written")
        code = 1
    sys.exit(code or 0)


def _look_for_garbage_seldom() -> None:
    """Leave what libraries make when they load alone: looking through it takes a fifth of a start.

    None of it is garbage before the end, and then it goes with the process.
    """
    gc.set_threshold(100_000)
    atexit.register(gc.freeze)
