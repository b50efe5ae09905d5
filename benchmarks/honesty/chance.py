"""Labels of pure chance, and crowds in which a third of the annotators is serious."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Floats
from annotruth.models.result import Fit
from annotruth.observations import Labels
from benchmarks.honesty.crowds import (
    Design,
    class_prior,
    draw_design,
    draw_labels,
    draw_rows,
    one_coin_rows,
    one_variant,
    with_classes,
)
from benchmarks.honesty.measures import area_under_curve
from benchmarks.honesty.options import (
    PartOptions,
    PartTable,
    Target,
    TargetFigure,
    fit_model,
    says_chance,
)

N_CLASSES = (2, 5, 10, 26, 60)
N_ANNOTATORS = (10, 20, 50)
N_ITEMS = (100, 200, 500)
LABELS_PER_ITEM = 5
DEFAULT_RUNS = 12
HALF_CHANCE_RUNS = 6

SURE = 0.9
SAYS_SO = Target(low=0.99)
RELIABILITY = Target(high=0.3)
SURE_ITEMS = Target(high=0.01)

SERIOUS_ACCURACY = (0.7, 0.95)
SERIOUS_SHARE = 1 / 3
CALLED_SERIOUS = 0.5
DETECTABLE = 100.0
SILENT = Target(high=0.0)
FINDS = Target(low=0.9)


class ChanceRun(NamedTuple):
    """What a fit claims about labels of pure chance."""

    says_so: bool
    reliability: float
    sure: float


ChanceResults = dict[tuple[str, str, str], list[ChanceRun]]
"""The runs by number of classes, annotators x items, and kind of labels."""


class HalfChanceRun(NamedTuple):
    """How well a fit finds the serious annotators.

    ``best_auc`` is that of every annotator's share of right labels, which only the truth gives.
    ``detectable`` is whether the labels are at least 100 times as likely with the true parameters
    as by chance: without that, not even these give clear evidence of serious annotators.
    """

    says_so: bool
    detectable: bool
    auc: float
    best_auc: float
    above_all: float
    precision: float
    recall: float


def uniform_labels(design: Design, rng: np.random.Generator) -> Labels:
    """Return labels that are uniform on the classes."""
    assigned = draw_design(design, rng)
    label = rng.integers(design.n_classes, size=assigned.n_labels)
    return with_classes(assigned, label, design.n_classes)


def preferred_labels(design: Design, rng: np.random.Generator) -> Labels:
    """Return labels by annotators who ignore the item, but prefer some classes.

    Every annotator's preferences are uniform on the simplex.
    """
    assigned = draw_design(design, rng)
    preferences = rng.dirichlet(np.ones(design.n_classes), size=assigned.n_annotators)
    label = draw_rows(preferences, (assigned.annotator,), rng)
    return with_classes(assigned, label, design.n_classes)


KINDS: dict[str, Callable[[Design, np.random.Generator], Labels]] = {
    "uniform": uniform_labels,
    "own preferences": preferred_labels,
}


def chance(options: PartOptions) -> list[PartTable]:
    """Fit labels of pure chance."""
    runs = options.runs_or(DEFAULT_RUNS)
    sizes = list(product(N_ANNOTATORS, N_ITEMS))
    rows = []
    all_results: ChanceResults = {}
    for kind, n_classes in product(KINDS, N_CLASSES):
        results: ChanceResults = {
            (str(n_classes), f"{size[0]} x {size[1]}", kind): [
                _chance_run(kind, n_classes, size, options.model, (options.seed, run))
                for run in range(runs)
            ]
            for size in sizes
        }
        rows.append(((kind, str(n_classes)), _summarize(results)))
        all_results |= results
    rows.append((("all", "all"), _summarize(all_results)))
    return [
        PartTable(
            title=f"Pure chance: {options.model}",
            description=(
                f"{runs} runs per number of annotators {N_ANNOTATORS} and of items {N_ITEMS}, "
                f"{LABELS_PER_ITEM} labels per item. Share of the fits that say that labels agree "
                f"no better than chance (target {SAYS_SO}); median over annotators of the "
                f"reliability, mean over runs (target {RELIABILITY}); share of items with a "
                f"confidence above {SURE} (target {SURE_ITEMS}). Last, the annotators x items where "
                "each is worst."
            ),
            heads=("labels", "classes"),
            columns=(
                "says so",
                "reliability",
                "sure items",
                "worst says so",
                "worst reliability",
                "worst sure",
            ),
            rows=rows,
        )
    ]


def _chance_run(
    kind: str, n_classes: int, size: tuple[int, int], model: str, seed: tuple[int, int]
) -> ChanceRun:
    design = Design(
        n_items=size[1],
        n_annotators=size[0],
        n_classes=n_classes,
        labels_per_item=LABELS_PER_ITEM,
    )
    rng = np.random.default_rng([*seed, list(KINDS).index(kind), n_classes, *size])
    return measure_chance(fit_model(KINDS[kind](design, rng), model))


def measure_chance(fit: Fit) -> ChanceRun:
    """Return what a fit claims; nan where the model does not estimate it."""
    reliability = np.nan if fit.reliability is None else float(np.median(fit.reliability))
    assert fit.distribution is not None
    return ChanceRun(
        says_chance(fit), reliability, float((fit.distribution.confidence() > SURE).mean())
    )


def _summarize(results: ChanceResults) -> list[TargetFigure | str]:
    means = np.array([np.mean(runs, axis=0) for runs in results.values()])
    sizes = [size for _, size, _ in results]
    says_so, reliability, sure = means.mean(axis=0)
    worst = (means[:, 0].argmin(), means[:, 1].argmax(), means[:, 2].argmax())
    return [
        TargetFigure(says_so, SAYS_SO),
        TargetFigure(reliability, RELIABILITY),
        TargetFigure(sure, SURE_ITEMS),
        *(f"{means[at, n]:.2f} at {sizes[at]}" for n, at in enumerate(worst)),
    ]


def half_chance(options: PartOptions) -> list[PartTable]:
    """Fit labels of crowds in which a third of the annotators is serious."""
    runs = options.runs_or(HALF_CHANCE_RUNS)
    rows = []
    for n_classes, n_annotators, n_items in product(N_CLASSES, N_ANNOTATORS, N_ITEMS):
        results = [
            _half_chance_run(n_classes, n_annotators, n_items, options.model, (options.seed, run))
            for run in range(runs)
        ]
        cells = (str(n_classes), str(n_annotators), str(n_items))
        rows.append((cells, _summarize_half(results)))
    return [
        PartTable(
            title=f"Half chance: {options.model}",
            description=(
                f"A third of the annotators is serious, with accuracies of {SERIOUS_ACCURACY[0]} "
                f"to {SERIOUS_ACCURACY[1]}; the labels of the others are uniform. {runs} runs, "
                f"{LABELS_PER_ITEM} labels per item. Share of the fits that say that labels agree "
                "no better than chance (target 0); share of the runs whose labels are at least "
                f"{DETECTABLE:g} times as likely with the true parameters as by chance: in the "
                "others not even these give clear evidence of serious annotators. Area under the curve of "
                f"reliability for serious annotators (target {FINDS}), beside that of the share of "
                "right labels, which needs the truth; share of the serious whose reliability is "
                f"above that of all others; precision and recall of reliability from "
                f"{CALLED_SERIOUS} on."
            ),
            heads=("classes", "annotators", "items"),
            columns=(
                "says so",
                "detectable",
                "AUC",
                "truth known",
                "above all others",
                "precision",
                "recall",
            ),
            rows=rows,
        )
    ]


def _half_chance_run(
    n_classes: int, n_annotators: int, n_items: int, model: str, seed: tuple[int, int]
) -> HalfChanceRun:
    design = Design(
        n_items=n_items,
        n_annotators=n_annotators,
        n_classes=n_classes,
        labels_per_item=LABELS_PER_ITEM,
    )
    rng = np.random.default_rng([*seed, n_classes, n_annotators, n_items])
    rows = one_coin_rows(design, rng, low=SERIOUS_ACCURACY[0], high=SERIOUS_ACCURACY[1])
    is_serious = np.arange(n_annotators) < round(SERIOUS_SHARE * n_annotators)
    rows[~is_serious] = 1 / n_classes
    crowd = one_variant(class_prior(n_classes, balanced=True), rows)
    drawn = draw_labels(crowd, design, rng)
    fit = fit_model(drawn.labels, model)
    by_chance = -drawn.labels.n_labels * np.log(n_classes)
    detectable = drawn.log_likelihood - by_chance > np.log(DETECTABLE)
    is_right = drawn.labels.category_of_label() == drawn.truth[drawn.labels.item_of_label()]
    share_right = np.bincount(drawn.labels.annotator, is_right) / drawn.labels.labels_per_annotator
    found = measure_half_chance(is_serious[drawn.annotator], share_right, fit)
    return found._replace(detectable=bool(detectable))


def measure_half_chance(
    is_serious: NDArray[np.bool_], share_right: Floats, fit: Fit
) -> HalfChanceRun:
    """Return how well reliabilities find the serious annotators; nan without reliabilities."""
    says_so, reliability = says_chance(fit), fit.reliability
    best_auc = area_under_curve(is_serious, share_right)
    if reliability is None:
        return HalfChanceRun(says_so, True, np.nan, best_auc, np.nan, np.nan, np.nan)
    called = reliability >= CALLED_SERIOUS
    n_found = np.count_nonzero(called & is_serious)
    return HalfChanceRun(
        says_so,
        True,
        area_under_curve(is_serious, reliability),
        best_auc,
        float((reliability[is_serious] > reliability[~is_serious].max()).mean()),
        n_found / called.sum() if called.any() else 0.0,
        n_found / is_serious.sum(),
    )


def _summarize_half(results: Sequence[HalfChanceRun]) -> list[TargetFigure | str]:
    says_so, detectable, auc, *rest = np.mean(results, axis=0)
    return [
        TargetFigure(says_so, SILENT),
        TargetFigure(detectable, digits=2),
        TargetFigure(auc, FINDS),
        *(TargetFigure(figure) for figure in rest),
    ]
