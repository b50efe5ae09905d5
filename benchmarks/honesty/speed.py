"""Seconds of a fit of a million and of ten million labels."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from annotruth.observations import Labels
from benchmarks import machine
from benchmarks.honesty.crowds import (
    Design,
    class_prior,
    dawid_skene_rows,
    draw_labels,
    one_variant,
)
from benchmarks.honesty.options import PartOptions, PartTable, Target, TargetFigure, fit_model

BASELINE = "dawid-skene"
N_CLASSES = 5
LABELS_PER_ITEM = 10
LABELS_PER_ANNOTATOR = 200
DEFAULT_RUNS = 3
RATIO = Target(high=10.0)
SECONDS = Target(high=20.0)


def class_labels(n_labels: int, seed: int) -> Labels:
    """Return simulated labels; a million are 100,000 items by 5,000 annotators."""
    design = Design(
        n_items=n_labels // LABELS_PER_ITEM,
        n_annotators=max(LABELS_PER_ITEM, n_labels // LABELS_PER_ANNOTATOR),
        n_classes=N_CLASSES,
        labels_per_item=LABELS_PER_ITEM,
    )
    rng = np.random.default_rng(seed)
    crowd = one_variant(class_prior(N_CLASSES, balanced=True), dawid_skene_rows(design, rng))
    return draw_labels(crowd, design, rng, oracle=False).labels


def speed(options: PartOptions, n_labels: int = 1_000_000) -> list[PartTable]:
    """Time fits of the model and of Dawid-Skene in turn, then one fit of ten times the labels."""
    runs = options.runs_or(DEFAULT_RUNS)
    before = machine.describe()
    for model in (BASELINE, options.model):
        fit_model(class_labels(20_000, options.seed), model)  # compiles the kernels
    labels = class_labels(n_labels, options.seed)
    seconds: dict[str, list[float]] = {BASELINE: [], options.model: []}
    for _ in range(runs):
        for model, samples in seconds.items():
            samples.append(_seconds(labels, model))
    baseline, own = min(seconds[BASELINE]), min(seconds[options.model])
    size = f"{labels.n_labels:,}"
    del labels
    many = class_labels(10 * n_labels, options.seed)
    rows: list[tuple[tuple[str, str], list[TargetFigure | str]]] = [
        ((size, BASELINE), [TargetFigure(baseline), ""]),
        ((size, options.model), [TargetFigure(own), TargetFigure(own / baseline, RATIO, 1)]),
        (
            (f"{many.n_labels:,}", options.model),
            [TargetFigure(_seconds(many, options.model), SECONDS, 1), ""],
        ),
    ]
    return [
        PartTable(
            title=f"Speed: {options.model}",
            description=(
                f"{before}. Fits with default options of labels in memory, {N_CLASSES} classes, "
                f"{LABELS_PER_ITEM} labels per item, {LABELS_PER_ANNOTATOR} labels per annotator; "
                f"the fastest of {runs}, of ten million labels one. Ratio to {BASELINE} (target "
                f"{RATIO}); seconds of ten million labels (target {SECONDS})."
            ),
            heads=("labels", "model"),
            columns=("seconds", "ratio"),
            rows=rows,
        )
    ]


def _seconds(labels: Labels, model: str) -> float:
    start = perf_counter()
    fit_model(labels, model)
    return perf_counter() - start
