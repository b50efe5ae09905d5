"""The experiments by their name on the command line."""

from __future__ import annotations

import importlib

from annotruth.errors import InputError
from annotruth.paper.experiment import Experiment

# Module and attribute, in the order of the paper; `all` runs these.
EXPERIMENTS = {
    "exp1a": ("exp1a", "EXPERIMENT"),
    "exp1b": ("error_curves", "EXP1B"),
    "exp1c": ("error_curves", "EXP1C"),
    "exp1d": ("exp1d", "EXPERIMENT"),
    "dog": ("classification", "DOG"),
    "face": ("classification", "FACE"),
    "movie": ("movie", "EXPERIMENT"),
}
# Not part of `all`: it was used to choose the defaults of the others.
SETTINGS_GRID = {"settings": ("settings_grid", "EXPERIMENT")}


def find_experiments(name: str) -> list[Experiment]:
    """Return the experiment of that name, or all of them for "all"."""
    known = EXPERIMENTS | SETTINGS_GRID
    if name != "all" and name not in known:
        raise InputError(f"unknown experiment {name!r}: choose {', '.join(known)} or all")
    names = EXPERIMENTS if name == "all" else [name]
    return [_load(*known[each]) for each in names]


def _load(module: str, attribute: str) -> Experiment:
    experiment: Experiment = getattr(
        importlib.import_module(f"annotruth.paper.{module}"), attribute
    )
    return experiment
