"""Renamed or reordered labels, which should change nothing, and exact ties."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.result import Fit
from annotruth.observations import Labels
from benchmarks.honesty.chance import uniform_labels
from benchmarks.honesty.crowds import (
    AnyCodes,
    Design,
    class_prior,
    class_scale,
    dawid_skene_rows,
    draw_labels,
    one_variant,
)
from benchmarks.honesty.options import (
    PartOptions,
    PartTable,
    Target,
    TargetFigure,
    fit_model,
    probabilities,
)

DEFAULT_RUNS = 3
SAME = Target(high=1e-6)
N_PAIRS = 4
"""Pairs of mirrored annotators in crowds with ties."""


class Triples(NamedTuple):
    """Labels as codes, one entry per label."""

    item: AnyCodes
    annotator: AnyCodes
    category: AnyCodes

    def to_labels(self, n_classes: int) -> Labels:
        """Return the labels; every code of an item and annotator has one."""
        return Labels.from_codes(
            *self,
            items=[f"i{n}" for n in range(int(self.item.max()) + 1)],
            annotators=[f"a{n}" for n in range(int(self.annotator.max()) + 1)],
            scale=class_scale(n_classes),
        )


class Permutation(NamedTuple):
    """The new codes of items, annotators and classes, and the new order of rows."""

    item: Codes
    annotator: Codes
    category: Codes
    row: Codes


PERMUTED = ("item", "annotator", "category", "row")


def dawid_skene_crowd(n_classes: int, rng: np.random.Generator) -> Labels:
    """Return labels of annotators with confusion matrices of their own, unbalanced classes."""
    design = Design(n_items=200, n_annotators=20, n_classes=n_classes, labels_per_item=5)
    crowd = one_variant(class_prior(n_classes, balanced=False), dawid_skene_rows(design, rng))
    return draw_labels(crowd, design, rng, oracle=False).labels


def chance_crowd(n_classes: int, rng: np.random.Generator) -> Labels:
    """Return uniform labels."""
    design = Design(n_items=100, n_annotators=10, n_classes=n_classes, labels_per_item=5)
    return uniform_labels(design, rng)


CROWDS: dict[str, Callable[[np.random.Generator], Labels]] = {
    "Dawid-Skene, 2 classes": lambda rng: dawid_skene_crowd(2, rng),
    "Dawid-Skene, 5 classes": lambda rng: dawid_skene_crowd(5, rng),
    "Dawid-Skene, 26 classes": lambda rng: dawid_skene_crowd(26, rng),
    "chance, 5 classes": lambda rng: chance_crowd(5, rng),
}


def triples_of(labels: Labels) -> Triples:
    """Return the codes of all labels."""
    return Triples(labels.item_of_label(), labels.annotator, labels.category_of_label())


def draw_permutation(labels: Labels, changed: str, rng: np.random.Generator) -> Permutation:
    """Return a permutation of the named kind of codes, or of all with "all"."""
    sizes = (labels.n_items, labels.n_annotators, labels.n_categories, labels.n_labels)
    return Permutation(
        *(
            rng.permutation(size) if changed in (name, "all") else np.arange(size)
            for name, size in zip(PERMUTED, sizes, strict=True)
        )
    )


def permute(triples: Triples, by: Permutation) -> Triples:
    """Return the labels with new codes, in a new order."""
    return Triples(
        by.item[triples.item[by.row]],
        by.annotator[triples.annotator[by.row]],
        by.category[triples.category[by.row]],
    )


def largest_change(before: Fit, after: Fit, by: Permutation) -> tuple[float, float]:
    """Return the largest change of the items' probabilities and of the reliabilities."""
    p = probabilities(after)[by.item][:, by.category]
    change = float(np.abs(p - probabilities(before)).max())
    if before.reliability is None or after.reliability is None:
        return change, 0.0
    moved = after.reliability[by.annotator] - before.reliability
    return change, float(np.abs(moved).max())


def mirrored_crowd(n_classes: int, rng: np.random.Generator) -> tuple[Labels, Codes]:
    """Return labels whose mirror image is themselves, and the items that are their own image.

    The mirror exchanges classes 0 and 1 and the two annotators of every pair. Every item of a
    Dawid-Skene crowd comes with its image. Last come the items which one annotator of a pair
    gave class 0 and the other class 1: they are their own image, so 0 and 1 are equally probable,
    whatever the model, if it treats classes and annotators alike.
    """
    design = Design(n_items=60, n_annotators=2 * N_PAIRS, n_classes=n_classes, labels_per_item=4)
    crowd = one_variant(class_prior(n_classes, balanced=True), dawid_skene_rows(design, rng))
    drawn = triples_of(draw_labels(crowd, design, rng, oracle=False).labels)
    exchanged = np.arange(n_classes)
    exchanged[:2] = 1, 0
    pair = np.arange(N_PAIRS)
    tied = 2 * design.n_items + np.repeat(pair, 2)
    triples = Triples(
        np.concatenate([drawn.item, drawn.item + design.n_items, tied]),
        np.concatenate([drawn.annotator, drawn.annotator ^ 1, np.arange(2 * N_PAIRS)]),
        np.concatenate([drawn.category, exchanged[drawn.category], np.tile([0, 1], N_PAIRS)]),
    )
    return triples.to_labels(n_classes), 2 * design.n_items + pair


def tie_gap(p: Floats, tied: Codes) -> float:
    """Return the largest difference between classes 0 and 1 over the tied items."""
    return float(np.abs(p[tied, 0] - p[tied, 1]).max())


def symmetry(options: PartOptions) -> list[PartTable]:
    """Fit renamed and reordered labels, and exact ties."""
    runs = options.runs_or(DEFAULT_RUNS)
    return [_permutations(options, runs), _ties(options, runs)]


def _permutations(options: PartOptions, runs: int) -> PartTable:
    rows = []
    for number, (name, make) in enumerate(CROWDS.items()):
        largest = dict.fromkeys((*PERMUTED, "all"), (0.0, 0.0))
        for run in range(runs):
            rng = np.random.default_rng([options.seed, run, number])
            labels = make(rng)
            triples, n_classes = triples_of(labels), labels.n_categories
            before = fit_model(triples.to_labels(n_classes), options.model)
            for changed, so_far in largest.items():
                by = draw_permutation(labels, changed, rng)
                after = fit_model(permute(triples, by).to_labels(n_classes), options.model)
                change = largest_change(before, after, by)
                largest[changed] = (max(so_far[0], change[0]), max(so_far[1], change[1]))
        rows += [
            ((name, changed), [_tiny(p), _tiny(reliability)])
            for changed, (p, reliability) in largest.items()
        ]
    return PartTable(
        title=f"Symmetry: {options.model}",
        description=(
            f"Largest change, over {runs} runs, of an item's probabilities and of a reliability "
            f"when codes are permuted or rows are reordered (target {SAME})."
        ),
        heads=("crowd", "permuted"),
        columns=("probability", "reliability"),
        rows=rows,
    )


def _ties(options: PartOptions, runs: int) -> PartTable:
    rows = []
    for n_classes in (2, 3, 5):
        gaps = []
        for run in range(runs):
            rng = np.random.default_rng([options.seed, run, n_classes])
            labels, tied = mirrored_crowd(n_classes, rng)
            gaps.append(tie_gap(probabilities(fit_model(labels, options.model)), tied))
        rows.append(((f"mirrored crowd, {n_classes} classes",), [_tiny(max(gaps))]))
    alone = Triples(np.zeros(2, dtype=np.int64), np.arange(2), np.arange(2)).to_labels(2)
    gap = tie_gap(probabilities(fit_model(alone, options.model)), np.array([0]))
    rows.append((("one item, two labels",), [_tiny(gap)]))
    return PartTable(
        title=f"Ties: {options.model}",
        description=(
            "Items that are their own image when two classes and the two annotators of every pair "
            "are exchanged, in labels that are their own image: largest difference between the "
            f"probabilities of the two classes (target {SAME})."
        ),
        heads=("labels",),
        columns=("difference",),
        rows=rows,
    )


def _tiny(value: float) -> TargetFigure:
    return TargetFigure(value, SAME, digits=1, kind="e")
