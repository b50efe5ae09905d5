"""The command line: its commands, exit codes, and error messages of one line."""

from __future__ import annotations

import atexit
import errno
import gc
import inspect
import io
import itertools
import re
import sys
from collections.abc import Callable
from typing import Annotated, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

from annotruth.app import console
from annotruth.app.commands.agreement import agreement
from annotruth.app.commands.compare import compare
from annotruth.app.commands.fit import fit
from annotruth.app.commands.mcp import mcp
from annotruth.app.commands.next import next_, plan
from annotruth.app.commands.open import open_
from annotruth.app.commands.rank import rank
from annotruth.app.commands.report import report
from annotruth.app.commands.reproduce import reproduce
from annotruth.app.commands.serve import serve
from annotruth.app.commands.serve_admin import GROUP_HELPS, SERVE_COMMANDS
from annotruth.app.commands.simulate import demo, simulate
from annotruth.app.commands.update import update
from annotruth.app.help import brief_help, front_page
from annotruth.app.options import FIRST_OPTIONS, HELP_ALL, OPTION_GROUPS, with_options
from annotruth.errors import (
    AnnotruthError,
    describe_exhaustion,
    did_you_mean,
    messages_for,
    shorten,
)

_INTERRUPTED = 130  # what Typer turns Ctrl-C into

# Errors of named files before they are opened: commands ask first whether a file exists.
_FILE_ERRORS = {
    errno.ENAMETOOLONG: "the name is too long: choose a shorter one",
    errno.EACCES: "permission denied: choose a place that you may read and write",
}

# What Typer says of values, and what we say.
_PLAIN_WORDS = {
    ": Value error, ": ": ",
    "Input should be a valid integer, unable to parse string as an integer": "give a whole number",
    "Input should be a valid number, unable to parse string as a number": "give a number",
    "Input should be": "it must be",
    "Missing option '--target'": "Missing option --target, such as `--target accuracy=0.9`",
}

_NO_CHOICE = re.compile(r"'([^']*)' is not one of (.*)")
_QUOTED = re.compile("'([^']*)'")

# The commands in the groups of the front page.
_COMMANDS: dict[str, tuple[Callable[..., None], ...]] = {
    "Recover what is right": (open_, fit, rank, update, report, compare, agreement),
    "Decide what to label next": (next_, plan),
    "Try it without data": (demo, simulate, reproduce),
    "Serve people and programs": (mcp,),
}


def _show_nothing(ctx: object) -> None:
    """Stand in for the method that shows the type of an argument in the help."""


class _CheckedOptions:
    """What commands and groups of commands add to Typer's: options in groups, and a check of values."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters in the order of their groups, prepared for the help.

        The help shows no type for an argument, no value for a flag, and no brackets around choices.
        """
        order = ["", *OPTION_GROUPS]
        parameters = {}
        for parameter in super().get_params(ctx):  # type: ignore[misc]
            group = OPTION_GROUPS.get(parameter.name)
            parameters[parameter] = order.index(parameter.name if group else "")
            if parameter.param_type_name == "argument":
                parameter.display_type_rich = _show_nothing
                continue
            parameter.rich_help_panel = group
            if parameter.metavar is None:
                value = parameter.display_type(ctx).strip("<>")
                parameter.metavar = "" if parameter.is_flag else value
        return sorted(parameters, key=parameters.__getitem__)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse what was typed; refuse empty values, as of a variable that is not set.

        Errors refer to the help of this command, which Typer leaves out of some.
        """
        if not (args or ctx.resilient_parsing) and getattr(self, "no_args_is_help", False):
            typer.echo(ctx.get_help())
            raise typer.Exit(2)
        names: set[str] = set()
        for option in self.get_params(ctx):
            if option.param_type_name == "option" and not option.is_flag:
                names.update(option.opts)
        try:
            for word, value in itertools.pairwise([*args, "-"]):
                name = word.removesuffix("=")
                if name in names and (name != word or not value):
                    message = "it is empty: give a value, or leave it out"
                    raise typer.BadParameter(message, param_hint=f"'{name}'")
            return super().parse_args(ctx, args)  # type: ignore[misc, no-any-return]
        except typer.TyperException as error:
            if getattr(error, "ctx", None) is None:
                error.ctx = ctx  # type: ignore[attr-defined]
            raise


class GroupedOptions(_CheckedOptions, TyperCommand):
    """A command whose help lists its options in groups, with values as one types them."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help; of a command with many options, those that most users need."""
        first = FIRST_OPTIONS.get(self.name or "")
        if first and HELP_ALL not in ctx.meta:
            formatter.write(brief_help(self, ctx, first))
        else:
            super().format_help(ctx, formatter)

    def get_usage(self, ctx: Any) -> str:
        """Return the usage line, with arguments that are not in braces."""
        return super().get_usage(ctx).replace("{", "").replace("}", "")


class FrontPage(_CheckedOptions, TyperGroup):
    """The command line as a whole, with its options as those of commands."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help; that of `annotruth` alone fits one screen."""
        if ctx.parent is None:
            formatter.write(front_page(self, ctx))
        else:
            super().format_help(ctx, formatter)


_SHARED: dict[str, Any] = {
    "cls": FrontPage,
    "no_args_is_help": True,
    "context_settings": {"help_option_names": ["-h", "--help"]},
    "rich_markup_mode": "markdown",
}

app = typer.Typer(
    name="annotruth",
    help="Recover the truth from labels given by unreliable annotators.",
    pretty_exceptions_enable=False,
    **_SHARED,
)


def _add_command(to: typer.Typer, command: Callable[..., None], name: str, **options: Any) -> None:
    text, examples = _help_of(command)
    to.command(name, cls=GroupedOptions, help=text, epilog=examples, **options)(
        with_options(command)
    )


def _help_of(command: Callable[..., None]) -> tuple[str, str | None]:
    """Return the help of a command, and the examples, which follow the options."""
    text, _, examples = inspect.cleandoc(command.__doc__ or "").partition("**Examples**")
    lines = filter(None, map(str.strip, examples.splitlines()))
    shown = "\n".join(["**Examples**", "```text", *lines, "```"])
    return text.strip(), shown if examples else None


for _group, _commands in _COMMANDS.items():
    for _command in _commands:
        _add_command(app, _command, _command.__name__.rstrip("_"), rich_help_panel=_group)

_text, _examples = _help_of(serve)
_options = {**_SHARED, "no_args_is_help": False}
_service = typer.Typer(invoke_without_command=True, help=_text, epilog=_examples, **_options)
_service.callback()(with_options(serve))
for _group, _commands in SERVE_COMMANDS.items():
    _under = typer.Typer(help=GROUP_HELPS[_group], **_SHARED) if _group else _service
    for _command in _commands:
        _add_command(_under, _command, _command.__name__.removeprefix(f"{_group}_").rstrip("_"))
    if _group:
        _service.add_typer(_under, name=_group)
app.add_typer(_service, name="serve", rich_help_panel="Serve people and programs")


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
    # Scanning the objects that imports create takes a fifth of a start, and none of them is garbage
    # before the process ends.
    gc.set_threshold(100_000)
    atexit.register(gc.freeze)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # where the terminal's encoding lacks one
    with messages_for("command line"):
        code = _run()
    if code == _INTERRUPTED:
        console.exit_interrupted()
    sys.exit(code or 0)


def _run() -> int | None:
    """Run the command that was typed; return the exit code."""
    code: int | None
    try:
        code = app(prog_name="annotruth", standalone_mode=False)
    except AnnotruthError as error:
        console.print_error(error)
        code = 2
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        command = "annotruth" if context is None else context.command_path
        if message := _message(error):
            console.print_error(f"{message} Try '{command} --help'.")
        code = error.exit_code
    except (MemoryError, RecursionError) as error:
        console.print_error(describe_exhaustion(error))
        code = 2
    except OSError as error:
        if error.errno in _FILE_ERRORS and error.filename is not None:
            name = str(error.filename)
            name = shorten(name) if error.errno == errno.ENAMETOOLONG else name
            console.print_error(f"{name}: {_FILE_ERRORS[error.errno]}")
            return 2
        # Errors of named files are AnnotruthErrors; this one is of stdout or of the machine.
        sys.stdout = cast(Any, None)  # or Python fails again at exit, when it flushes stdout
        console.print_error(f"cannot continue: {error}")
        code = 1
    except KeyboardInterrupt:
        code = _INTERRUPTED
    return code


def _message(error: typer.TyperException) -> str:
    """Return what is wrong with the command as it was typed; nothing after the help was shown."""
    message = error.format_message().rstrip(".")
    for text, plain in _PLAIN_WORDS.items():
        message = message.replace(text, plain)
    if wrong := _NO_CHOICE.search(message):
        return f"{message}{did_you_mean(wrong[1], _QUOTED.findall(wrong[2]))}.".replace("?.", "?")
    if similar := getattr(error, "possibilities", None):  # an unknown option
        message = message.partition(" (Possible")[0]
        return f"{message}. Did you mean {similar[0]}?"
    return message and (message if message.endswith("?") else f"{message}.")
