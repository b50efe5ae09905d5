"""Label sets with known classes: which folders qualify, and which sets belong together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from annotruth.errors import InputError
from annotruth.io.parse import read_table
from annotruth.io.readers import read_labels
from annotruth.kernels.arrays import Codes
from annotruth.observations import Labels, ScaleKind
from annotruth.observations.encode import match_ids
from annotruth.observations.scale import parse_numbers
from annotruth.observations.truth import read_truths

# A file of more distinct numbers holds a slider or a score, not classes.
MAX_NUMBERS = 20

GROUPS = {
    "docs": ("face", "duck", "dog", "rte", "web", "product", "fact", "cf", "ms", "sp", "hate-speech"),
}  # fmt: skip
"""Names for several sets; ``docs`` are those of docs/how-good.md."""

# Sets whose labels were collected by the same people or for the same items. Their figures are
# correlated, so the bootstrap draws them together.
_FAMILIES = {
    "Zhou et al. 2012": ("dog", "web"),
    "CrowdScale 2013": ("fact", "cf", "cf_amt", "senti"),
    "Rodrigues et al. 2013": ("ms", "sp", "sp_amt"),
    "Snow et al. 2008": ("rte", "temp", "temporal"),
    "ZenCrowd 2012": ("zencrowd_all", "zencrowd_in", "zencrowd_us", "zc_all", "zc_in", "zc_us"),
    "TREC 2010": ("trec", "trec2010"),
    "Welinder et al. 2010": ("duck", "bluebird"),
}
_FAMILY_OF = {name: family for family, names in _FAMILIES.items() for name in names}


@dataclass(frozen=True, eq=False)
class TruthSet:
    """Labels and the known classes of some of their items.

    Attributes
    ----------
    name, family
        The folder's name, and the family that the bootstrap draws it with.
    labels
        The labels.
    item, truth
        The items with a known class and its code; -1 for a class that no label has.
    """

    name: str
    family: str
    labels: Labels
    item: Codes
    truth: NDArray[np.int32]

    def describe(self) -> str:
        """Return the sizes in one line."""
        return f"{self.labels.describe()}, {len(self.item):,} known classes"


def family_of(name: str) -> str:
    """Return the family of a set; an unknown set is a family of its own."""
    return _FAMILY_OF.get(name.lower().replace("-", "_"), name)


def find_sets(folder: Path, names: tuple[str, ...] | None) -> list[Path]:
    """Return the folders of the named sets, or of all that have labels and a truth."""
    if names is not None:
        names = tuple(name for given in names for name in GROUPS.get(given, (given,)))
        missing = [name for name in names if not (folder / name / "truth.csv").exists()]
        if missing:
            raise InputError(f"no labels.csv and truth.csv in {folder} for {', '.join(missing)}")
        return [folder / name for name in names]
    return sorted(path.parent for path in folder.glob("*/truth.csv") if _has_labels(path.parent))


def _has_labels(folder: Path) -> bool:
    return (folder / "labels.csv").exists()


def load_set(folder: Path, scale: ScaleKind) -> TruthSet:
    """Read one set. Repeated labels all count; truths of items without labels are left out."""
    labels = read_labels(folder / "labels.csv", scale=scale, duplicates="keep")
    ids, values = read_truths(read_table(folder / "truth.csv"), role="truth")
    item = match_ids(ids, labels.items)
    matched = np.flatnonzero(item >= 0)
    codes = labels.scale.codes_of(values)
    return TruthSet(folder.name, family_of(folder.name), labels, item[matched], codes[matched])


def why_left_out(found: TruthSet) -> str | None:
    """Return why a set is not one of classes; None if it is.

    A set is left out if its labels are more than `MAX_NUMBERS` different numbers (a slider or a
    score), or if most of the known truths are not among the labels.
    """
    labels = found.labels
    if not len(found.item):
        return "no truth is of a labelled item"
    if labels.n_categories > MAX_NUMBERS and parse_numbers(labels.scale.categories) is not None:
        return f"{labels.n_categories} different numbers: a score, not classes"
    if np.mean(found.truth >= 0) < 0.5:
        return "most truths are not among the labels"
    return None
