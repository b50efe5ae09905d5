"""Public sets of pair comparisons, and crowds made of them by adding spammers."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.csv
from numpy.typing import NDArray

from annotruth.errors import InputError
from annotruth.io.readers import read_comparisons
from annotruth.kernels.arrays import Floats
from annotruth.observations import LEFT, RIGHT, Comparisons

SPAMMERS = {
    "clean": (),
    "always left": ("always left",),
    "inverted": ("inverted",),
    "random": ("random",),
    "mixed": ("always left", "inverted", "random", "always right"),
}
"""What the spammers do who are added to the passages' annotators."""

SPAMMER_SHARE = 0.8  # spammers added per real annotator


class PassageCrowd(NamedTuple):
    """Comparisons of passages by real annotators and added spammers."""

    data: Comparisons
    behavior: NDArray[np.str_]
    grade: Floats


def load_set(folder: Path, *files: str) -> Comparisons:
    """Return the comparisons of one or more files of a folder."""
    paths = [folder / name for name in files or ("comparisons.csv",)]
    for path in paths:
        if not path.exists():
            raise InputError(
                f"{path} is missing: pass the folder of the public sets by `--data-dir DIR`"
            )
    return read_comparisons(paths)


def passage_crowd(folder: Path, kind: str, seed: int) -> PassageCrowd:
    """Return the passages' comparisons with 80% more annotators, all of them spammers.

    A spammer compares as many pairs as a real annotator, drawn from the pairs that were compared.
    The side of an item is drawn once per pair: the ids of the passages are in the order of their
    grades. An inverted vote is the opposite of a real one. Sides are unknown on the clean set, as
    in the file.
    """
    clean = load_set(folder)
    grades = pyarrow.csv.read_csv(folder / "truth.csv")
    grade_of = dict(zip(grades["item"].to_pylist(), grades["grade"].to_pylist(), strict=True))
    grade = np.array([float(grade_of[item]) for item in clean.items.to_pylist()])
    annotator, outcome = clean.annotator_of_comparison(), clean.outcome.astype(np.int64)
    behavior = ["serious"] * clean.n_annotators
    kinds = SPAMMERS[kind]
    if not kinds:
        return PassageCrowd(clean, np.array(behavior), grade)
    rng = np.random.default_rng(seed)
    pair = np.minimum(clean.left, clean.right) * clean.n_items + np.maximum(clean.left, clean.right)
    _, place = np.unique(pair, return_inverse=True)
    low_is_left = (rng.random(place.max() + 1) < 0.5)[place]
    swap = (clean.left < clean.right) != low_is_left
    left, right = np.where(swap, clean.right, clean.left), np.where(swap, clean.left, clean.right)
    outcome = np.where(swap, 1 - outcome, outcome)
    votes = [(left, right, annotator, outcome)]
    n_added = round(SPAMMER_SHARE * clean.n_annotators)
    sizes = rng.choice(clean.comparisons_per_annotator, n_added)
    for n, size in enumerate(sizes):
        row = rng.integers(clean.n_comparisons, size=size)
        does = kinds[n % len(kinds)]
        choices = {
            "always left": np.full(size, LEFT),
            "always right": np.full(size, RIGHT),
            "random": rng.integers(2, size=size),
            "inverted": 1 - outcome[row],
        }
        person = np.full(size, clean.n_annotators + n)
        votes.append((left[row], right[row], person, choices[does]))
        behavior.append(does)
    columns = [np.concatenate(column) for column in zip(*votes, strict=True)]
    data = Comparisons.from_codes(*columns, items=clean.items, annotators=range(len(behavior)))
    return PassageCrowd(data, np.array(behavior), grade)
