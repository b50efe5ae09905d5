"""The values of options as they are typed: pairs, lists, bins, settings, engines."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from annotruth.errors import InputError

if TYPE_CHECKING:
    from annotruth.observations.options import ReadOptions

_EXAMPLE_PAIRS = {
    "--columns": "item=image,annotator=worker",
    "--label-studio": "name=sentiment,to_name=text",
    "--outcomes": "0=tie,1=left,2=right",
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


def parse_list(text: str) -> list[str]:
    """Parse ``A,B,C``; an entry that contains a comma is quoted."""
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


def parse_drop(text: str) -> Path | list[str]:
    """Return the path of an existing file, or the ids in ``A,B``."""
    return Path(text) if Path(text).is_file() else parse_list(text)


def parse_bins(text: str) -> int | list[float]:
    """Parse the number of bins, ``10``, or their edges, ``0,20,50,100``."""
    try:
        return int(text) if "," not in text else [float(edge) for edge in text.split(",")]
    except ValueError:
        raise InputError(
            f"--bins takes a number of bins or edges such as 0,20,50,100, not {text!r}"
        ) from None


def engine_option(
    engine: str, master: str | None = None, storage: str | None = None
) -> dict[str, Any]:
    """Return the model's option ``engine`` for ``--engine``; none for memory, the default."""
    if engine == "spark":
        from annotruth.engines.spark import SparkEngine  # slow to load
        from annotruth.engines.spark.cluster import get_session

        return {"engine": SparkEngine(spark=get_session(master, silent=True), storage=storage)}
    if master is not None or storage is not None:
        raise InputError("--master and --storage need --engine spark")
    return {} if engine == "memory" else {"engine": engine}


# Arguments of the functions that fit models, beside options of analyses; they have flags of their
# own, or none.
FUNCTION_ARGUMENTS = frozenset(
    (
        *("annotator_prior", "beside", "budget", "classifier", "data", "gold", "model", "progress"),
        *("read", "target", "value", "warm_start"),
    )
)


def parse_model_options(settings: list[str] | None) -> dict[str, Any]:
    """Parse the options of a model; refuse names of other arguments, such as ``model=gpm``."""
    from annotruth.analyses import OPTIONS  # loads PyArrow
    from annotruth.observations.options import ReadOptions

    options = parse_settings(settings)
    for name in options:
        if name in FUNCTION_ARGUMENTS | OPTIONS | set(ReadOptions.names()):
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


def make_read_options(**flags: Any) -> ReadOptions:
    """Return the `ReadOptions` for the flags as they were typed."""
    from annotruth.observations.options import ReadOptions  # loads PyArrow

    parsers: Mapping[str, Callable[[Any], Any]] = {
        "columns": lambda text: parse_pairs(text, "--columns") or None,
        "outcomes": lambda text: parse_pairs(text, "--outcomes") or None,
        "categories": parse_list,
        "covariates": parse_list,
        "content": parse_list,
        "bins": parse_bins,
        "drop": parse_drop,
    }
    given = {}
    for name, value in flags.items():
        if value is not None:
            given[name] = parsers[name](value) if name in parsers else value
    return ReadOptions(**given)
