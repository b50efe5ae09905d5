"""Accuracy and calibration on simulated crowds, beside the posterior with the true parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from annotruth.kernels.arrays import Floats
from benchmarks.honesty.crowds import (
    Design,
    NominalCrowd,
    class_prior,
    dawid_skene_rows,
    draw_labels,
    one_coin_rows,
    one_variant,
)
from benchmarks.honesty.measures import (
    calibrated_error,
    calibration_error,
    negative_log_likelihood,
)
from benchmarks.honesty.options import (
    PartOptions,
    PartTable,
    Target,
    TargetFigure,
    fit_model,
    probabilities,
)
from benchmarks.truth.scoring import shared_credit

N_CLASSES = (2, 3, 5, 10)
N_ITEMS = (300, 3000)
LABELS_PER_ITEM = (3, 5, 10)
N_ANNOTATORS = (15, 40, 100)
BALANCED = (True, False)
DEFAULT_RUNS = 36
ORACLE = "true parameters"
OTHERS = ("dawid-skene", "majority")
CALIBRATION = Target(high=0.03)
COLUMNS = ("accuracy", "NLL", "ECE", "calibrated", "bias", "per run", "3 labels")

DIFFICULTIES = (0.0, 0.4, 0.8)
LOOKALIKE_SHARE = 0.3
LOOKALIKE_STRENGTH = 0.6


@dataclass(frozen=True)
class Setting:
    """The size of a crowd, and whether its classes are equally frequent."""

    design: Design
    balanced: bool


@dataclass(frozen=True, eq=False)
class Scored:
    """The items of one run as one method sees them."""

    setting: Setting
    confidence: Floats
    correct: Floats
    loss: Floats


def dawid_skene(setting: Setting, rng: np.random.Generator) -> NominalCrowd:
    """Return annotators with confusion matrices of their own."""
    return one_variant(_prior(setting), dawid_skene_rows(setting.design, rng))


def one_coin(setting: Setting, rng: np.random.Generator) -> NominalCrowd:
    """Return annotators with one accuracy each."""
    return one_variant(_prior(setting), one_coin_rows(setting.design, rng))


def unequal_difficulty(setting: Setting, rng: np.random.Generator) -> NominalCrowd:
    """Return a crowd whose labels are uniform with a probability that depends on the item."""
    rows = dawid_skene_rows(setting.design, rng)
    uniform = 1 / setting.design.n_classes
    return NominalCrowd(
        prior=_prior(setting),
        rows=np.stack([(1 - d) * rows + d * uniform for d in DIFFICULTIES]),
        variant_weights=np.full(len(DIFFICULTIES), 1 / len(DIFFICULTIES)),
    )


def confusable_pairs(setting: Setting, rng: np.random.Generator) -> NominalCrowd:
    """Return a crowd in which some items look like the other class of a pair to everybody."""
    rows = dawid_skene_rows(setting.design, rng)
    classes = np.arange(setting.design.n_classes)
    partner = np.minimum(classes ^ 1, setting.design.n_classes - 1)
    mixed = (1 - LOOKALIKE_STRENGTH) * rows + LOOKALIKE_STRENGTH * rows[:, partner]
    return NominalCrowd(
        prior=_prior(setting),
        rows=np.stack([rows, mixed]),
        variant_weights=np.array([1 - LOOKALIKE_SHARE, LOOKALIKE_SHARE]),
    )


def fifth_spammers(setting: Setting, rng: np.random.Generator) -> NominalCrowd:
    """Return a crowd of which a fifth ignores the item: half label at random, half repeat a class."""
    rows = dawid_skene_rows(setting.design, rng)
    n_annotators, n_classes = rows.shape[:2]
    n_spammers = n_annotators // 5
    rows[:n_spammers] = 1 / n_classes
    repeated = rng.integers(n_classes, size=n_spammers // 2)
    rows[: repeated.size] = np.eye(n_classes)[repeated][:, np.newaxis]
    return one_variant(_prior(setting), rows)


def _prior(setting: Setting) -> Floats:
    return class_prior(setting.design.n_classes, balanced=setting.balanced)


CrowdMaker = Callable[[Setting, np.random.Generator], NominalCrowd]
WELL_SPECIFIED: dict[str, CrowdMaker] = {"Dawid-Skene": dawid_skene, "one coin": one_coin}
MISSPECIFIED: dict[str, CrowdMaker] = {
    "unequal difficulty": unequal_difficulty,
    "confusable pairs": confusable_pairs,
    "a fifth spammers": fifth_spammers,
}


def calibration(options: PartOptions) -> list[PartTable]:
    """Fit well-specified crowds, for which there is a target."""
    runs = options.runs_or(DEFAULT_RUNS)
    scored = _score_all(WELL_SPECIFIED, N_CLASSES, options, runs)
    return [
        _table("Calibration, well specified", scored, options, runs, CALIBRATION),
        *_by_factor(scored, options),
    ]


def misspecified(options: PartOptions) -> list[PartTable]:
    """Fit crowds whose items or annotators break the assumptions, for information."""
    runs = options.runs_or(DEFAULT_RUNS)
    scored = _score_all(MISSPECIFIED, (2, 5), options, runs)
    return [_table("Calibration, misspecified", scored, options, runs, None)]


Cell = tuple[str, int, int]
ScoredCells = dict[Cell, dict[str, list[Scored]]]


def _score_all(
    makers: dict[str, CrowdMaker], n_classes: Sequence[int], options: PartOptions, runs: int
) -> ScoredCells:
    methods = dict.fromkeys((options.model, *OTHERS))
    scored: ScoredCells = {}
    for number, (kind, k, n_items) in enumerate(product(makers, n_classes, N_ITEMS)):
        by_method: dict[str, list[Scored]] = {name: [] for name in (ORACLE, *methods)}
        for run, setting in enumerate(settings(k, n_items, runs)):
            rng = np.random.default_rng([options.seed, run, number, k, n_items])
            crowd = makers[kind](setting, rng)
            drawn = draw_labels(crowd, setting.design, rng)
            assert drawn.posterior is not None
            found = {ORACLE: drawn.posterior}
            found |= {name: probabilities(fit_model(drawn.labels, name)) for name in methods}
            for name, p in found.items():
                by_method[name].append(
                    Scored(
                        setting,
                        p.max(axis=1),
                        shared_credit(p, drawn.truth.astype(np.int32)),
                        negative_log_likelihood(drawn.truth, p),
                    )
                )
        scored[kind, k, n_items] = by_method
    return scored


def settings(n_classes: int, n_items: int, runs: int) -> list[Setting]:
    """Return one setting per run.

    18 runs have all combinations of labels per item, annotators and balance; few runs already vary
    all three.
    """
    return [
        Setting(
            Design(
                n_items=n_items,
                n_annotators=N_ANNOTATORS[(run + run // 3) % 3],
                n_classes=n_classes,
                labels_per_item=LABELS_PER_ITEM[run % 3],
            ),
            BALANCED[run % 2],
        )
        for run in range(runs)
    ]


def _table(
    title: str, scored: ScoredCells, options: PartOptions, runs: int, target: Target | None
) -> PartTable:
    rows = [
        (
            (kind, str(k), f"{n_items:,}", name),
            _figures(runs_of, target if name == options.model else None),
        )
        for (kind, k, n_items), by_method in scored.items()
        for name, runs_of in by_method.items()
    ]
    aim = "" if target is None else f" (target {target})"
    return PartTable(
        title=f"{title}: {options.model}",
        description=(
            f"{runs} crowds per row, of {N_ANNOTATORS} annotators and {LABELS_PER_ITEM} labels per "
            "item, with balanced and unbalanced classes in turn. Accuracy, negative log-likelihood of "
            f"probabilities mixed with 1% of uniform, calibration error over 15 bins of all items of all runs{aim}. The "
            "calibration error of a finite sample is biased upwards: `calibrated` is what a "
            "calibrated forecaster with the same confidences would get on average. Bias is mean "
            "confidence minus accuracy. Per run: the mean over runs of the calibration error of "
            "one run, less that of a calibrated forecaster. Last, the calibration error of the "
            "runs with 3 labels per item."
        ),
        heads=("crowd", "classes", "items", "method"),
        columns=COLUMNS,
        rows=rows,
    )


def _by_factor(scored: ScoredCells, options: PartOptions) -> list[PartTable]:
    """Return one table: the model's runs pooled by every factor of the design in turn."""
    runs_of = [run for cell in scored.values() for run in cell[options.model]]
    factors: dict[str, Callable[[Setting], str]] = {
        "items": lambda s: f"{s.design.n_items:,}",
        "classes": lambda s: str(s.design.n_classes),
        "labels per item": lambda s: str(s.design.labels_per_item),
        "annotators": lambda s: str(s.design.n_annotators),
        "balanced": lambda s: "yes" if s.balanced else "no",
    }
    rows = []
    for factor, level_of in factors.items():
        for level in dict.fromkeys(level_of(run.setting) for run in runs_of):
            chosen = [run for run in runs_of if level_of(run.setting) == level]
            rows.append(((factor, level), _figures(chosen, CALIBRATION)))
    return [
        PartTable(
            title=f"Calibration by factor: {options.model}",
            description="The same runs, pooled by one factor of the design at a time.",
            heads=("factor", "level"),
            columns=COLUMNS,
            rows=rows,
        )
    ]


def _figures(runs_of: Sequence[Scored], target: Target | None) -> list[TargetFigure | str]:
    if not runs_of:
        return [""] * len(COLUMNS)
    confidence = np.concatenate([run.confidence for run in runs_of])
    correct = np.concatenate([run.correct for run in runs_of])
    few = [run for run in runs_of if run.setting.design.labels_per_item == LABELS_PER_ITEM[0]]
    excess = [
        calibration_error(run.confidence, run.correct) - calibrated_error(run.confidence)
        for run in runs_of
    ]
    return [
        TargetFigure(float(correct.mean())),
        TargetFigure(float(np.concatenate([run.loss for run in runs_of]).mean())),
        TargetFigure(calibration_error(confidence, correct), target),
        TargetFigure(calibrated_error(confidence)),
        f"{confidence.mean() - correct.mean():+.3f}",
        TargetFigure(float(np.mean(excess))),
        TargetFigure(_pooled_error(few)) if few else "",
    ]


def _pooled_error(runs_of: Sequence[Scored]) -> float:
    return calibration_error(
        np.concatenate([run.confidence for run in runs_of]),
        np.concatenate([run.correct for run in runs_of]),
    )
