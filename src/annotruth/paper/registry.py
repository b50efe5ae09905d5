"""The experiments by the name they have on the command line; one line each."""

from __future__ import annotations

import importlib

from annotruth.errors import InputError
from annotruth.paper.base import Experiment

# In the order of the paper; `all` runs them.
EXPERIMENTS = {
    "exp1a": "annotruth.paper.exp1a",
    "exp1b": "annotruth.paper.exp1b",
    "exp1c": "annotruth.paper.exp1c",
    "exp1d": "annotruth.paper.exp1d",
    "dog": "annotruth.paper.dog",
    "face": "annotruth.paper.face",
    "movie": "annotruth.paper.movie",
}
# Not part of `all`: it chose the defaults of the others.
SWEEP = {"settings": "annotruth.paper.sweep"}


def experiments_named(name: str) -> list[Experiment]:
    """Return the experiment of that name, or all of them."""
    modules = EXPERIMENTS | SWEEP
    if name != "all" and name not in modules:
        raise InputError(f"unknown experiment {name!r}: choose {', '.join(modules)} or all")
    names = EXPERIMENTS if name == "all" else [name]
    return [importlib.import_module(modules[each]).EXPERIMENT for each in names]
