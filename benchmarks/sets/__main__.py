"""Sets of labels: micro-F1 beside crowd-kit's BinaryRelevance(DawidSkene).

``python -m benchmarks.sets [--data-dir DIR] [--seeds N]`` prints a table for simulated crowds, and with
the folder of the public sets one for the emotions of headlines. Without crowd-kit, its interface in
annotruth is used.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import annotruth as at
from annotruth.kernels.arrays import Floats
from annotruth.observations.sets import Members, members
from annotruth.sets.fit import set_metrics

REGIMES: Mapping[str, Mapping[str, Any]] = {
    "200 items, 6 labels, 15 annotators, 4 answers": {},
    "3 labels, 10 annotators, 3 answers": {
        "n_labels": 3,
        "n_annotators": 10,
        "answers_per_item": 3,
    },
    "10 labels, 30 annotators, 5 answers": {
        "n_labels": 10,
        "n_annotators": 30,
        "answers_per_item": 5,
    },
    "8 rare labels (2% to 8%)": {"prevalence": (0.02, 0.08), "n_labels": 8},
    "40% spammers": {"spammer_share": 0.4},
    "no spammers": {"spammer_share": 0.0},
    "100 items, 5 annotators, 3 answers": {
        "n_items": 100,
        "n_annotators": 5,
        "answers_per_item": 3,
    },
    "100 items, 30 annotators, 3 answers": {
        "n_items": 100,
        "n_annotators": 30,
        "answers_per_item": 3,
    },
    "600 items, 5 answers": {"n_items": 600, "answers_per_item": 5},
    "independent labels, 20 annotators, 5 answers": {
        "n_types": 1,
        "n_labels": 3,
        "n_annotators": 20,
        "answers_per_item": 5,
        "spammer_share": 0.3,
    },
}
_QUESTIONS, _HEADLINES = 7, 100  # of the set emotion-0-100
_THRESHOLDS = (1, 10, 20, 30, 40, 50)
_N_BOOTSTRAP = 2000


class Compared(NamedTuple):
    """Metrics of both, and what else is measured of ours."""

    theirs: Mapping[str, float]
    ours: Mapping[str, float]
    confidence: float
    their_sets: Members
    found: float = np.nan
    wrong: float = np.nan
    seconds: float = 0.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sets")
    parser.add_argument("--data-dir", type=Path, help="the folder of the public sets")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"BinaryRelevance(DawidSkene) of {_aggregators()[2]}\n")
    print_simulated(options.seeds, options.first_seed)
    if options.data_dir is not None:
        print_emotions(options.data_dir / "emotion-0-100")


def print_simulated(n_seeds: int, first_seed: int) -> None:
    print("| simulated sets | micro-F1 | BR(DS) | wins | macro-F1 | BR(DS) | exact | BR(DS) | mean confidence "
          "| spammers found | others called so | s |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for name, options in REGIMES.items():
        rows = [_simulated(options, seed) for seed in range(first_seed, first_seed + n_seeds)]
        wins = sum(row.ours["f1_micro"] >= row.theirs["f1_micro"] for row in rows)
        figures = [
            _mean(row.ours["f1_micro"] for row in rows),
            _mean(row.theirs["f1_micro"] for row in rows),
            f"{wins} of {n_seeds}",
            *(
                _mean(getattr(row, whose)[metric] for row in rows)
                for metric in ("f1_macro", "exact_match")
                for whose in ("ours", "theirs")
            ),
            _mean(row.confidence for row in rows),
            _mean(row.found for row in rows),
            _mean(row.wrong for row in rows),
            _mean(row.seconds for row in rows),
        ]
        print(f"| {name} | {' | '.join(figures)} |", flush=True)


def _simulated(options: Mapping[str, Any], seed: int) -> Compared:
    made = at.simulate.sets(seed=seed, **options)
    compared, fit = _compare(made.answers, made.truth)
    spammers = made.behavior != "serious"
    assert fit.spammer is not None
    found = fit.spammer[spammers].mean() if spammers.any() else np.nan
    return compared._replace(found=found, wrong=fit.spammer[~spammers].mean())


def print_emotions(folder: Path) -> None:
    """Print the figures of headlines whose emotions ten annotators each marked on sliders.

    Items of the set are one of 7 questions on one of 100 headlines, numbered question by question, and
    each annotator of a headline gave all of them. The question whose values may be negative is not an
    emotion and is left out. The set of an answer, and the true set, are the emotions from a
    threshold on: the sets are derived, and every threshold is shown.
    """
    labels, truth = (pd.read_csv(folder / f"{name}.csv") for name in ("labels", "truth"))
    for table in (labels, truth):
        table["question"], table["headline"] = divmod(table["item"] - 1, _HEADLINES)
    negative = set(truth[truth["label"] < 0]["question"]) | set(
        labels[labels["label"] < 0]["question"]
    )
    print("\n| emotions of 100 headlines | labels per headline | micro-F1 | BR(DS) | macro-F1 | BR(DS) | exact "
          "| BR(DS) | mean confidence | types | difference of micro-F1, 95% interval |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    all_sets = []
    questions = [q for q in range(_QUESTIONS) if q not in negative]
    for threshold in _THRESHOLDS:
        marked = labels[labels["question"].isin(questions)]
        rows = [
            (headline, annotator, given.loc[given["label"] >= threshold, "question"].tolist())
            for (headline, annotator), given in marked.groupby(["headline", "annotator"])
        ]
        answers = at.Labels.of(rows, categories=questions)
        true = np.zeros((answers.n_items, len(questions)), dtype=bool)
        place = {item: k for k, item in enumerate(answers.items.to_pylist())}
        present = truth[(truth["label"] >= threshold) & truth["question"].isin(questions)]
        for headline, question in zip(present["headline"], present["question"], strict=True):
            true[place[headline], questions.index(question)] = True
        compared, fit = _compare(answers, true)
        figures = [
            f"{true.sum(axis=1).mean():.2f}",
            *(
                f"{getattr(compared, whose)[metric]:.3f}"
                for metric in ("f1_micro", "f1_macro", "exact_match")
                for whose in ("ours", "theirs")
            ),
            f"{compared.confidence:.3f}",
            str(len(fit.parameters["types"])),
            _difference([(true, fit.sets, compared.their_sets)]),
        ]
        all_sets.append((true, fit.sets, compared.their_sets))
        print(f"| from {threshold} on | {' | '.join(figures)} |", flush=True)
    true, ours, theirs = (np.concatenate(some) for some in zip(*all_sets, strict=True))
    both = (set_metrics(true, sets)["f1_micro"] for sets in (ours, theirs))
    figures = [f"{value:.3f}" for value in (true.sum(axis=1).mean(), *both)]
    print(f"| all of them | {' | '.join(figures)} | | | | | | | {_difference(all_sets)} |")


def _difference(sets: list[tuple[Members, Members, Members]]) -> str:
    """Return our micro-F1 less theirs, with an interval by a bootstrap of the items of all."""
    rng, found = np.random.default_rng(0), []
    n_items = len(sets[0][0])
    for draw in range(_N_BOOTSTRAP + 1):
        items = np.arange(n_items) if draw == 0 else rng.integers(n_items, size=n_items)
        true, ours, theirs = (
            np.concatenate([each[items] for each in some]) for some in zip(*sets, strict=True)
        )
        found.append(_micro_f1(true, ours) - _micro_f1(true, theirs))
    low, high = np.quantile(found[1:], [0.025, 0.975])
    return f"{found[0]:+.3f} ({low:+.3f} to {high:+.3f})"


def _micro_f1(true: Members, found: Members) -> float:
    return float(2.0 * (true & found).sum() / max(true.sum() + found.sum(), 1))


def _compare(answers: at.Labels, truth: Members) -> tuple[Compared, at.Fit]:
    start = time.perf_counter()
    fit = at.SetModel().fit(answers)
    seconds = time.perf_counter() - start
    their_sets = binary_relevance(answers)
    theirs, ours = (set_metrics(truth, sets) for sets in (their_sets, fit.sets))
    confidence = float(fit.confidence.mean())
    return Compared(theirs, ours, confidence, their_sets, seconds=seconds), fit


def binary_relevance(answers: at.Labels) -> Members:
    """Return the sets of crowd-kit's BinaryRelevance(DawidSkene)."""
    relevance, dawid_skene, _ = _aggregators()
    given = members(answers.scale)[answers.category_of_label()]
    frame = pd.DataFrame(
        {
            "task": answers.item_of_label(),
            "worker": answers.annotator,
            "label": [np.flatnonzero(row).tolist() for row in given],
        }
    )
    found = relevance(dawid_skene(n_iter=100)).fit_predict(frame)
    sets = np.zeros((answers.n_items, given.shape[1]), dtype=bool)
    for item, labels in found.items():
        sets[item, labels] = True
    return sets


def _aggregators() -> tuple[Any, Any, str]:
    try:
        from crowdkit.aggregation import BinaryRelevance, DawidSkene

        return BinaryRelevance, DawidSkene, "crowd-kit"
    except ImportError:
        from annotruth import crowdkit

        return crowdkit.BinaryRelevance, crowdkit.DawidSkene, "annotruth.crowdkit"


def _mean(values: Any) -> str:
    numbers: Floats = np.array(list(values))
    return "" if np.isnan(numbers).all() else f"{np.nanmean(numbers):.3f}"


if __name__ == "__main__":
    main()
