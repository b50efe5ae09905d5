"""peerannot's Dawid-Skene, where it is installed.

It holds the labels in a dense table, items x annotators x categories, and looks at all of it for
every item: time and memory grow with the square of the labels. A million labels by 5,000
annotators would take a table of 2.5 GB and eight times that while annotators are judged.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd

NAME = "peerannot DawidSkene"
MOST = 100_000  # labels it can do
MISSING = "peerannot is left out: it is not installed"

Answers = dict[int, dict[int, int]]


def installed() -> bool:
    return importlib.util.find_spec("peerannot") is not None


def answers_of(frame: pd.DataFrame) -> Answers:
    """The labels in its form, the answers of a task by worker."""
    answers: Answers = {}
    for task, worker, label in frame.itertuples(index=False):
        answers.setdefault(int(task), {})[int(worker)] = int(label)
    return answers


def model_of(answers: Answers) -> Callable[[int], None]:
    """Make its model of the answers; what is returned runs so many iterations, from the start."""
    n_workers = 1 + max(worker for given in answers.values() for worker in given)
    n_classes = 1 + max(label for given in answers.values() for label in given.values())
    model = _loaded()(answers, n_workers=n_workers, n_classes=n_classes)

    def run(n_iter: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it did not converge in so few, and says so
            _, done = model.run(epsilon=0.0, maxiter=n_iter)
        assert done == n_iter

    return run


@cache
def _loaded() -> Any:
    """Load the model alone: its package loads torch besides, for models of images."""
    spec = importlib.util.find_spec("peerannot")
    assert spec is not None
    assert spec.origin is not None
    models = ModuleType("peerannot.models")
    models.__path__ = [str(Path(spec.origin).parent / "models")]
    sys.modules.setdefault(models.__name__, models)
    module: Any = importlib.import_module("peerannot.models.aggregation.dawid_skene")
    module.tqdm = partial(module.tqdm, disable=True)
    return module.DawidSkene
