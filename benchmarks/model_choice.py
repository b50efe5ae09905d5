"""Whether the model that predicts held-out labels best is also the closest to the truth.

Prints Markdown tables: every model's held-out score beside its accuracy and the negative
log-likelihood of the truth (as in benchmarks.truth) on sets of classes, its error on sets of
grades, and the regret: how far the chosen model is behind the best one, on average over the sets.
With --crowds, also the regret on simulated crowds of classes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from annotruth import choose, evaluate, held_out
from annotruth.io.readers import read_labels
from annotruth.models.registry import MODELS, get_model
from annotruth.paper.measures import fit_model
from annotruth.paper.tables import markdown_table
from annotruth.selection.choose import Choice, decide, registry_rank
from benchmarks.choice_crowds import KINDS, draw_crowd
from benchmarks.truth.contenders import ours
from benchmarks.truth.sets import GROUPS, load_set

GRADES = ("web", "adult", "emotion-0-100", "ftv", "movielens-100k")
CHOSEN = "auto"
OWN = "own predictions"
SEED = 5

Figures = dict[str, dict[str, float]]
"""By set, then by model."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.model_choice", description=__doc__)
    parser.add_argument("--data-dir", type=Path, help="folder of real labels")
    parser.add_argument("--crowds", type=int, default=0, help="simulated crowds of each kind")
    parser.add_argument("--classes", default=",".join(GROUPS["docs"]), help="sets of classes")
    parser.add_argument("--grades", default=",".join(GRADES), help="sets of grades or scores")
    parser.add_argument("--models", help="names, separated by commas (default: all)")
    options = parser.parse_args()
    models = tuple(MODELS) if options.models is None else tuple(options.models.split(","))

    if options.crowds:
        print_simulated(models, options.crowds)
    if options.data_dir is None:
        return 0
    classes = [options.data_dir / name for name in options.classes.split(",") if name]
    chosen, scores, accuracy, nll = compare_classes(classes, models)
    for title, figures in (
        ("held-out score", scores), ("accuracy", accuracy), ("negative log-likelihood", nll)
    ):  # fmt: skip
        print_table(title, figures, chosen)
    if classes:
        print_regret(accuracy, nll, {CHOSEN: chosen})

    grades = [options.data_dir / name for name in options.grades.split(",") if name]
    chosen, scores, rmse = compare_grades(grades, models)
    print_table("held-out score", scores, chosen)
    print_table("rmse", rmse, chosen)
    return 0


def compare_classes(
    folders: Sequence[Path], models: Sequence[str]
) -> tuple[dict[str, str], Figures, Figures, Figures]:
    """Return the chosen models, held-out scores, accuracies and likelihoods on sets of classes."""
    usable = for_classes(models)
    contenders, _ = ours(usable)
    chosen: dict[str, str] = {}
    scores, accuracy, nll = Figures(), Figures(), Figures()
    for folder in folders:
        found = load_set(folder, "nominal")
        choice = choose(found.labels, usable)
        note(f"{found.name}: {choice.why}")
        chosen[found.name], scores[found.name] = choice.model, held_out_scores(choice)
        measured = {name: contenders[name](found) for name in choice.scores}
        accuracy[found.name] = {name: score.accuracy for name, score in measured.items()}
        nll[found.name] = {
            name: score.nll for name, score in measured.items() if score.nll is not None
        }
    return chosen, scores, accuracy, nll


def for_classes(models: Sequence[str]) -> list[str]:
    return [name for name in models if not get_model(name).capabilities.ordinal_only]


def print_simulated(models: Sequence[str], n_crowds: int) -> None:
    """Print the regret on simulated crowds, also of a choice by the models' own predictions."""
    usable = for_classes(models)
    contenders, _ = ours(usable)
    accuracy, nll = Figures(), Figures()
    rules: dict[str, dict[str, str]] = {CHOSEN: {}, OWN: {}}
    for kind, about in KINDS.items():
        rng = np.random.default_rng(SEED)
        names = [f"{kind} {number}" for number in range(n_crowds)]
        for name in names:
            found = draw_crowd(kind, rng)
            own = {model: held_out(model, found.labels) for model in usable}
            ranked = dict(sorted(own.items(), key=lambda pair: -pair[1].score))
            rules[OWN][name], _ = decide(ranked)
            rules[CHOSEN][name] = choose(found.labels, usable).model
            measured = {model: contenders[model](found) for model in usable}
            accuracy[name] = {model: score.accuracy for model, score in measured.items()}
            nll[name] = {model: score.nll or 0.0 for model, score in measured.items()}
        print(f"\n{kind}: {about}; {n_crowds} crowds")
        print_regret(*({name: all_[name] for name in names} for all_ in (accuracy, nll)), rules)
    print(f"\nAll {len(accuracy)} crowds")
    print_regret(accuracy, nll, rules)


def compare_grades(
    folders: Sequence[Path], models: Sequence[str]
) -> tuple[dict[str, str], Figures, Figures]:
    """Return the chosen models, held-out scores and, with a truth, errors on sets of grades."""
    chosen: dict[str, str] = {}
    scores, rmse = Figures(), Figures()
    for folder in folders:
        labels = read_labels(folder / "labels.csv", scale="ordinal", duplicates="last")
        choice = choose(labels, models)
        note(f"{folder.name}: {choice.why}")
        chosen[folder.name], scores[folder.name] = choice.model, held_out_scores(choice)
        if (folder / "truth.csv").exists():
            fits = {name: fit_model(labels, name) for name in choice.scores}
            measured = {
                name: evaluate(fit, folder / "truth.csv", scores=True) for name, fit in fits.items()
            }
            rmse[folder.name] = {name: one["rmse"] for name, one in measured.items()}
    return chosen, scores, rmse


def held_out_scores(choice: Choice) -> dict[str, float]:
    return {name: result.score for name, result in choice.scores.items()}


def regret(figures: Figures, taken: Mapping[str, str], *, higher_is_better: bool) -> list[float]:
    """Return how far the taken model of each set is behind the best one; 0 if it is the best."""
    sign = 1.0 if higher_is_better else -1.0
    return [
        max(sign * value for value in by_model.values()) - sign * by_model[taken[name]]
        for name, by_model in figures.items()
    ]


def print_regret(accuracy: Figures, nll: Figures, chosen: Mapping[str, Mapping[str, str]]) -> None:
    """Print the mean regret of rules of choice, and of always taking the same model."""
    rules = dict(chosen)
    everywhere = [
        name for name in sorted(MODELS, key=registry_rank)
        if all(name in by_model for by_model in nll.values())
    ]  # fmt: skip
    rules |= {f"always {name}": dict.fromkeys(accuracy, name) for name in everywhere}
    body = []
    for rule, taken in rules.items():
        losses = (
            regret(accuracy, taken, higher_is_better=True),
            regret(nll, taken, higher_is_better=False),
        )
        body.append([rule, *(f"{f(loss):.4f}" for loss in losses for f in (np.mean, np.max))])
    head = ["rule", "accuracy, mean regret", "largest", "negative log-likelihood, mean", "largest"]
    print(f"\n{markdown_table(head, body, n_left=1)}")


def print_table(title: str, figures: Figures, chosen: Mapping[str, str]) -> None:
    """Print one row per model, one column per set, the chosen ones in bold."""
    compared = {model for by_model in figures.values() for model in by_model}
    body = []
    for model in sorted(compared, key=registry_rank):
        cells = (
            (f"{by_model[model]:.4f}" if model in by_model else "", chosen[name] == model)
            for name, by_model in figures.items()
        )
        body.append(
            [model, *(f"**{text}**" if marked and text else text for text, marked in cells)]
        )
    if body:
        print(f"\n{markdown_table([title, *figures], body, n_left=1)}")


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
