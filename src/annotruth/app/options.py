"""The options that commands share: their flags, and parsing their values."""

from __future__ import annotations

import csv
import functools
import inspect
import io
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from annotruth.app import console
from annotruth.app.read_flags import READ_FLAGS
from annotruth.errors import InputError
from annotruth.models.registry import DEFAULT_MODEL, MODELS

if TYPE_CHECKING:
    from annotruth.observations.options import ReadOptions


ALL_QUESTIONS = "all"
"""The value of ``--question`` for every question of LABELS."""

LABELS_HELP = (
    "CSV, TSV, Parquet, Arrow or JSON lines, also compressed, with columns item, annotator, label; "
    "or a matrix, or what a platform exports; an Excel, SQLite or DuckDB file, a URL (https, s3, "
    "gs), or that of a database with --query. Several files of one kind are read one after the "
    "other: name them, a folder, or a quoted pattern such as 'day-*.csv'; - is standard input."
)
FitOrLabels = Annotated[
    list[str],
    typer.Argument(
        metavar="FIT|LABELS",
        help="A folder that `annotruth fit --save` or `annotruth rank --save` wrote, or labels in any "
        "format that `annotruth fit` reads, also several files.",
    ),
]


ModelOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"One of {', '.join(MODELS)}; or auto: the model that predicts held-out labels best.",
        show_default=DEFAULT_MODEL,
    ),
]


def out_option(tables: str, *, first: str) -> Any:
    """Return the option ``--out`` of a command that writes tables, of which ``first`` is the main one.

    In every command, it names a folder for all tables, or a file for the first.
    """
    return typer.Option(
        "--out",
        "-o",
        metavar="PATH",
        help=f"Write the tables of {tables} to this folder; if it ends in .csv, .parquet or .json, "
        f"only that of {first} to this file.",
    )


KeepOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write which annotators to keep, to drop and to ask, with the reason, here: .csv, "
        ".parquet or .json.",
    ),
]
TruthOption = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Known truths (item, label) to measure the fit against."),
]
GoldOption = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Known truths (item, label) that the fit may use."),
]
AnnotatorPriorOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="What is known about annotators: their table from an earlier fit (robust-gpm).",
    ),
]
ClassifierOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A classifier's probabilities: item and one column per category, such as p_cat, p_dog "
        "(robust-gpm, dawid-skene). The labels decide how much they count.",
    ),
]
TraitsOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Traits of annotators, for --by: annotator and further columns, such as gender.",
    ),
]
ByOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="A column of --annotators whose values are groups: each group's opinion per item, and "
        "which items and groups differ (robust-gpm). Repeat it for combinations.",
    ),
]
MachinesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--machine",
        metavar="NAME",
        help="The id of an annotator that is a machine, such as a language model. Repeat it for "
        "several. They are compared with people; those that err together count less.",
    ),
]
MachineMarginOption = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        help="By how much a machine may be worse than a person to replace one: 0.1 for crowd "
        "workers, 0.15 for trained annotators, 0.2 for experts.",
        show_default="0.1",
    ),
]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="An option of the model, such as tol=1e-6."),
]
SeedOption = Annotated[
    int,
    typer.Option(metavar="N", help="Seed of the random numbers; the same gives the same result."),
]
MasterOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Where Spark runs: local[4], spark://host:7077, yarn, or sc://host for Connect.",
        show_default="as Spark is configured, else this machine",
    ),
]
StorageOption = Annotated[
    str | None,
    typer.Option(metavar="URL", help="A folder that all of Spark's machines can reach."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]


Command = Callable[..., None]
"""A command as it is declared: a function whose parameters are its arguments and options."""


def takes_read_options(
    flags: Mapping[str, tuple[Any, Any]] = READ_FLAGS, *, without: Collection[str] = ()
) -> Callable[[Command], Command]:
    """Give a command the flags for reading labels in place of its parameter ``read``.

    The command itself receives a `ReadOptions`. ``without`` names options that it does not take.
    """
    flags = {name: flag for name, flag in flags.items() if name not in without}
    return expands_parameter("read", flags, make_read_options)


def expands_parameter(
    name: str, flags: Mapping[str, tuple[Any, Any]], make: Callable[[dict[str, Any]], object]
) -> Callable[[Command], Command]:
    """Give a command several flags in place of one parameter.

    Parameters
    ----------
    name
        The parameter.
    flags
        The type and the default of each flag.
    make
        Makes the parameter's value of the values of the flags.
    """
    added = [
        inspect.Parameter(flag, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for flag, (kind, default) in flags.items()
    ]

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def with_flags(**given: Any) -> None:
            values = {flag: given.pop(flag) for flag in flags}
            quiet = bool(given.get("quiet") or given.get("as_json"))
            with console.progress_line(quiet=quiet):  # PyArrow takes a moment to load
                value = make(values)
            command(**{name: value}, **given)

        # Typer resolves the types in the module of the command, where ReadOptions is not imported,
        # as that would load PyArrow.
        hints = get_type_hints(command, localns={"ReadOptions": object}, include_extras=True)
        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(command).parameters.values():
            if parameter.name == name:
                parameters += added
            else:
                kind = inspect.Parameter.KEYWORD_ONLY
                parameters.append(parameter.replace(kind=kind, annotation=hints[parameter.name]))
        with_flags.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        with_flags.__annotations__ = {each.name: each.annotation for each in parameters}
        return with_flags

    return decorate


def make_read_options(flags: Mapping[str, Any]) -> ReadOptions:
    """Return the `ReadOptions` for the flags as they were typed."""
    from annotruth.observations.options import ReadOptions

    parsers: Mapping[str, Callable[[Any], Any]] = {
        "scale": lambda choice: choice.value,
        "duplicates": lambda choice: choice.value,
        "columns": lambda text: parse_pairs(text, "--columns") or None,
        "categories": parse_list,
        "covariates": lambda text: tuple(parse_list(text) or ()),
        "content": lambda text: tuple(parse_list(text) or ()),
        "bins": parse_bins,
        "drop": parse_drop,
    }
    return ReadOptions(
        **{name: parsers.get(name, _unchanged)(value) for name, value in flags.items()}
    )


def _unchanged(value: Any) -> Any:
    return value


_EXAMPLE_PAIRS = {
    "--columns": "item=image,annotator=worker",
    "--label-studio": "name=sentiment,to_name=text",
    "--set": "tol=1e-6",
    "--target": "accuracy=0.9",
}


def parse_pairs(text: str | None, option: str) -> dict[str, str]:
    """Parse ``a=x,b=y``; a pair that contains a comma is quoted."""
    pairs: dict[str, str] = {}
    for pair in _split_at_commas(text or ""):
        name, equals, value = (each.strip() for each in pair.partition("="))
        if not equals or not name or not value:
            raise InputError(
                f"{option} takes NAME=VALUE, such as `{option} {_EXAMPLE_PAIRS[option]}`, not {pair!r}"
            )
        if name in pairs:
            raise InputError(f"{option} names {name!r} twice: keep one")
        pairs[name] = value
    return pairs


def parse_list(text: str | None) -> list[str] | None:
    """Parse ``A,B,C``; an entry that contains a comma is quoted."""
    if text is None:
        return None
    return [entry for entry in _split_at_commas(text) if entry]


def _split_at_commas(text: str) -> list[str]:
    """Return what is between commas, with the quotes of CSV."""
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), skipinitialspace=True))
    except csv.Error as error:
        raise InputError(
            f"{text[:60]!r} cannot be parsed ({error}): separate entries by commas"
        ) from error
    return [entry.strip() for row in rows for entry in row]


def parse_drop(text: str | None) -> Path | tuple[str, ...]:
    """Return the path of an existing file, or the ids in ``A,B``."""
    if text is not None and Path(text).is_file():
        return Path(text)
    return tuple(parse_list(text) or ())


def parse_bins(text: str | None) -> int | list[float] | None:
    """Parse the number of bins, ``10``, or their edges, ``0,20,50,100``."""
    if text is None:
        return None
    try:
        return int(text) if "," not in text else [float(edge) for edge in text.split(",")]
    except ValueError:
        raise InputError(
            f"--bins takes a number of bins or edges such as 0,20,50,100, not {text!r}"
        ) from None


def engine_option(engine: str, master: str | None, storage: str | None) -> dict[str, Any]:
    """Return the model's option ``engine`` for ``--engine``; none for memory, the default."""
    if engine == "spark":
        from annotruth.app.on_spark import make_engine

        return {"engine": make_engine(master, storage)}
    if master is not None or storage is not None:
        raise InputError("--master and --storage need --engine spark")
    return {} if engine == "memory" else {"engine": engine}


# Arguments of the functions that fit models; they have flags of their own, or none.
FUNCTION_ARGUMENTS = frozenset(
    (
        *("annotator_prior", "annotators", "budget", "by", "classifier", "data", "gold"),
        *(
            "beside",
            "machine_margin",
            "machines",
            "model",
            "progress",
            "read",
            "target",
            "value",
            "warm_start",
        ),
    )
)


def parse_model_options(settings: list[str] | None) -> dict[str, Any]:
    """Parse the options of a model; refuse names of other arguments, such as ``model=gpm``."""
    options = parse_settings(settings)
    for name in options:
        if name in FUNCTION_ARGUMENTS or name in READ_FLAGS:
            raise InputError(
                f"--set is for options of the model, such as tol=1e-6, and {name!r} is none: pass it "
                "with a flag of its own (see `--help`)"
            )
    return options


def parse_settings(settings: list[str] | None) -> dict[str, Any]:
    """Parse settings, such as ``tol=1e-6``; numbers become numbers."""
    options: dict[str, Any] = {}
    for setting in settings or []:
        for name, value in parse_pairs(setting, "--set").items():
            options[name.replace("-", "_")] = _parse_value(value)
    return options


def _parse_value(text: str) -> Any:
    constants = {"true": True, "false": False, "none": None}
    if text.lower() in constants:
        return constants[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
