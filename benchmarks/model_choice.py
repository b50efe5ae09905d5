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

from annotruth import choose, evaluate
from annotruth.io.readers import read_labels
from annotruth.models.registry import MODELS, get_model
from annotruth.paper.measures import fit_model
from annotruth.paper.tables import markdown_table
from annotruth.selection.choose import Choice, registry_rank
from benchmarks.choice_crowds import KINDS, draw_crowd
from benchmarks.pages import replace_tables
from benchmarks.truth.contenders import ours
from benchmarks.truth.sets import GROUPS, load_set

GRADES = ("web", "adult", "emotion-0-100", "ftv", "movielens-100k")
CHOSEN = "auto"
SEED = 5

Figures = dict[str, dict[str, float]]
"""By set, then by model."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.model_choice", description=__doc__)
    parser.add_argument("--data-dir", type=Path, help="folder of real labels")
    parser.add_argument("--crowds", type=int, default=0, help="simulated crowds of each kind")
    parser.add_argument("--classes", default=",".join(GROUPS["docs"]), help="sets of classes")
    parser.add_argument("--grades", default=",".join(GRADES), help="sets of grades or scores")
    parser.add_argument(
        "--docs", type=Path, help="docs folder whose page on model choice is brought up to date"
    )
    parser.add_argument("--models", help="names, separated by commas (default: all)")
    options = parser.parse_args()
    models = tuple(MODELS) if options.models is None else tuple(options.models.split(","))

    tables: dict[str, str] = {}
    if options.crowds:
        tables["crowds"] = simulated_table(models, options.crowds)
    if options.data_dir is not None:
        classes, grades = (
            [options.data_dir / name for name in names.split(",") if name]
            for names in (options.classes, options.grades)
        )
        tables |= class_tables(classes, models) if classes else {}
        tables |= grade_tables(grades, models) if grades else {}
    for table in tables.values():
        print(f"\n{table}")
    if options.docs is not None:
        replace_tables(options.docs / "development" / "model-choice.md", tables)
    return 0


def class_tables(folders: Sequence[Path], models: Sequence[str]) -> dict[str, str]:
    """Return the tables of sets of classes by name."""
    chosen, scores, accuracy, nll = compare_classes(folders, models)
    return {
        "scores": score_table("held-out score", scores, chosen),
        "accuracy": score_table("accuracy", accuracy, chosen),
        "nll": score_table("negative log-likelihood", nll, chosen),
        "regret": regret_table(accuracy, nll, {CHOSEN: chosen}),
    }


def grade_tables(folders: Sequence[Path], models: Sequence[str]) -> dict[str, str]:
    """Return the tables of sets of grades by name."""
    chosen, scores, rmse = compare_grades(folders, models)
    return {
        "grades": score_table("held-out score", scores, chosen),
        "rmse": score_table("rmse", rmse, chosen),
    }


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


def simulated_table(models: Sequence[str], n_crowds: int) -> str:
    """Return mean regrets on simulated crowds of each kind."""
    usable = for_classes(models)
    contenders, _ = ours(usable)
    columns: dict[str, list[str]] = {}
    means: dict[str, list[tuple[float, float]]] = {}
    for kind, about in KINDS.items():
        note(f"{kind}: {about}")
        rng = np.random.default_rng(SEED)
        accuracy, nll = Figures(), Figures()
        chosen: dict[str, str] = {}
        for name in map(str, range(n_crowds)):
            found = draw_crowd(kind, rng)
            chosen[name] = choose(found.labels, usable).model
            measured = {model: contenders[model](found) for model in usable}
            accuracy[name] = {model: score.accuracy for model, score in measured.items()}
            nll[name] = {model: score.nll or 0.0 for model, score in measured.items()}
        for rule, losses in regrets(accuracy, nll, {CHOSEN: chosen}).items():
            pair = (float(np.mean(losses[0])), float(np.mean(losses[1])))
            means.setdefault(rule, []).append(pair)
    for rule, pairs in means.items():
        columns[rule] = [f"{a:.4f} / {b:.4f}" for a, b in (*pairs, np.mean(pairs, axis=0))]
    body = [[rule, *cells] for rule, cells in columns.items()]
    return markdown_table(["rule", *KINDS, "mean"], body, n_left=1)


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


def regrets(
    accuracy: Figures, nll: Figures, chosen: Mapping[str, Mapping[str, str]]
) -> dict[str, tuple[list[float], list[float]]]:
    """Return the regrets of rules of choice, and of always taking the same model."""
    everywhere = [
        name for name in sorted(MODELS, key=registry_rank)
        if all(name in by_model for by_model in nll.values())
    ]  # fmt: skip
    rules = {**chosen, **{f"always {name}": dict.fromkeys(nll, name) for name in everywhere}}
    return {
        rule: (
            regret(accuracy, taken, higher_is_better=True),
            regret(nll, taken, higher_is_better=False),
        )
        for rule, taken in rules.items()
    }


def regret_table(accuracy: Figures, nll: Figures, chosen: Mapping[str, Mapping[str, str]]) -> str:
    """Return the mean and the largest regret of every rule."""
    body = [
        [rule, *(f"{f(loss):.4f}" for loss in losses for f in (np.mean, np.max))]
        for rule, losses in regrets(accuracy, nll, chosen).items()
    ]
    head = ["rule", "accuracy, mean regret", "largest", "negative log-likelihood, mean", "largest"]
    return markdown_table(head, body, n_left=1)


def score_table(title: str, figures: Figures, chosen: Mapping[str, str]) -> str:
    """Return one row per model, one column per set, the chosen ones in bold."""
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
    return markdown_table([title, *figures], body, n_left=1)


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
