"""peerannot's Dawid-Skene, where it is installed.

It stores the labels in a dense table, items x annotators x categories, and reads all of it for
every item, so time and memory grow with the square of the labels. A million labels by 5,000
annotators would need a table of 2.5 GB, and eight times that in the M-step.
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
MAX_LABELS = 100_000  # more do not fit into memory
MISSING = "peerannot is left out: it is not installed"

LabelsByTask = dict[int, dict[int, int]]


def installed() -> bool:
    return importlib.util.find_spec("peerannot") is not None


def labels_by_task(frame: pd.DataFrame) -> LabelsByTask:
    """Return the labels in peerannot's form: by task, then by worker."""
    labels: LabelsByTask = {}
    for task, worker, label in frame.itertuples(index=False):
        labels.setdefault(int(task), {})[int(worker)] = int(label)
    return labels


def make_model(labels: LabelsByTask) -> Callable[[int], None]:
    """Return a function that runs a given number of iterations from the start."""
    n_workers = 1 + max(worker for by_worker in labels.values() for worker in by_worker)
    n_classes = 1 + max(label for by_worker in labels.values() for label in by_worker.values())
    model = _load_class()(labels, n_workers=n_workers, n_classes=n_classes)

    def run(n_iter: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns that it did not converge
            _, n_done = model.run(epsilon=0.0, maxiter=n_iter)
        assert n_done == n_iter

    return run


@cache
def _load_class() -> Any:
    """Return the model's class without importing its package, which needs torch."""
    spec = importlib.util.find_spec("peerannot")
    assert spec is not None
    assert spec.origin is not None
    models = ModuleType("peerannot.models")
    models.__path__ = [str(Path(spec.origin).parent / "models")]
    sys.modules.setdefault(models.__name__, models)
    module: Any = importlib.import_module("peerannot.models.aggregation.dawid_skene")
    module.tqdm = partial(module.tqdm, disable=True)
    return module.DawidSkene
