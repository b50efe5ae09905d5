"""The experiments by the name they have on the command line; one line each."""

from __future__ import annotations

import importlib

from annotruth.errors import InputError
from annotruth.experiments.base import Experiment

# In the order of the paper; `all` runs them.
EXPERIMENTS = {
    "exp1a": "annotruth.experiments.exp1a",
    "exp1b": "annotruth.experiments.exp1b",
    "exp1c": "annotruth.experiments.exp1c",
    "exp1d": "annotruth.experiments.exp1d",
    "dog": "annotruth.experiments.dog",
    "face": "annotruth.experiments.face",
    "movie": "annotruth.experiments.movie",
}
# Not part of `all`: it chose the defaults of the others.
SWEEP = {"settings": "annotruth.experiments.sweep"}


def experiments_named(name: str) -> list[Experiment]:
    """Return the experiment of that name, or all of them."""
    modules = EXPERIMENTS | SWEEP
    if name != "all" and name not in modules:
        raise InputError(f"unknown experiment {name!r}: choose {', '.join(modules)} or all")
    names = EXPERIMENTS if name == "all" else [name]
    return [importlib.import_module(modules[each]).EXPERIMENT for each in names]
