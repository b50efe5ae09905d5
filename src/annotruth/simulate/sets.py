"""Simulated answers that are sets of labels, with known truth."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import expit, logit

from annotruth.kernels.arrays import Floats
from annotruth.observations import Labels
from annotruth.observations.frames import default_frame
from annotruth.observations.sets import describe_sets, labels_in
from annotruth.simulate.crowds import (
    assign,
    check_counts,
    check_memory,
    check_per_item,
    check_range,
    check_share,
    generator,
)

SPAMMERS = ("random", "always the same set", "always empty", "always everything")
"""What simulated annotators do who do not look at the items, in turn."""

_SLIPS = 0.02  # of irregular annotators
_LABEL_SPREAD, _ANNOTATOR_SPREAD, _CELL_SPREAD = 0.5, 0.7, 0.4  # of log odds
_LEAST, _MOST = 0.005, 0.95

# Memory at the peak of `sets`, measured and rounded down: per answer, per label of an answer, and per
# label of an annotator.
_BYTES_PER_ANSWER, _BYTES_PER_ANSWER_LABEL, _BYTES_PER_ANNOTATOR_LABEL = 100, 40, 25


@dataclass(frozen=True, kw_only=True, eq=False)
class SetSimulation:
    """Simulated sets of labels with the truth they were drawn from.

    Arrays of annotators are in the order of ``answers.annotators``. Annotators who were assigned no
    item are left out.

    Attributes
    ----------
    answers
        The answers, item by item; items, annotators and labels are numbered from 1.
    truth
        Which labels each item has, items x labels.
    sensitivity, specificity
        Every annotator's rates per label, annotators x labels.
    behavior
        "serious", or one of `SPAMMERS`.

    Examples
    --------
    >>> from annotruth import simulate
    >>> made = simulate.sets(n_items=20, n_annotators=6, n_labels=4, answers_per_item=3, seed=0)
    >>> made.answers.n_labels, made.truth.shape
    (60, (20, 4))
    """

    answers: Labels
    truth: NDArray[np.bool_]
    sensitivity: Floats
    specificity: Floats
    behavior: NDArray[np.str_]

    def describe(self) -> str:
        """Return one line on how many answers, items, annotators and labels there are."""
        answers = self.answers
        return describe_sets(
            answers.n_labels, answers.n_items, answers.n_annotators, self.truth.shape[1]
        )

    def tables(self, separator: str = "|") -> dict[str, pa.Table]:
        """Return the answers, the truth and the annotators as tables; sets are text.

        An empty set is the separator alone in answers, as an empty cell there is a missing answer.
        """
        answers = self.answers.to_arrow()
        keys = answers.column("label").to_pylist()
        sets = [separator.join(labels_in(key)) or separator for key in keys]
        place = answers.column_names.index("label")
        return {
            "labels": answers.set_column(place, "label", pa.array(sets, pa.string())),
            "truth": self.truth_table(separator),
            "annotators": pa.table(
                {
                    "annotator": self.answers.annotators,
                    "sensitivity": self.sensitivity.mean(axis=1),
                    "specificity": self.specificity.mean(axis=1),
                    "behavior": self.behavior.tolist(),
                }
            ),
        }

    def truth_table(self, separator: str = "|") -> pa.Table:
        """Return the true sets: item, and label with the separator between labels."""
        names = [str(n + 1) for n in range(self.truth.shape[1])]
        sets = [separator.join(names[n] for n in np.flatnonzero(row)) for row in self.truth]
        return pa.table({"item": self.answers.items, "label": pa.array(sets, pa.string())})


def sets(
    *,
    n_items: int = 200,
    n_annotators: int = 15,
    n_labels: int = 6,
    answers_per_item: int | None = 4,
    prevalence: tuple[float, float] = (0.05, 0.5),
    n_types: int = 3,
    sensitivity: float = 0.75,
    specificity: float = 0.92,
    spammer_share: float = 0.2,
    seed: int | np.random.Generator = 0,
) -> SetSimulation:
    """Simulate answers that are sets of labels.

    Each item is of one of the types, and has each label with a probability of the type. Serious
    annotators give a label that the item has with their sensitivity, and one that it has not with 1 -
    their specificity; both vary by annotator, by label, and by both. Spammers do not look at the
    item (`SPAMMERS`, in turn).

    Parameters
    ----------
    n_items, n_annotators, n_labels, n_types
        Size of the crowd and of its task; with one type, labels are independent.
    answers_per_item
        Number of annotators per item, drawn at random; None: all of them.
    prevalence
        The range of the shares of items that have each label.
    sensitivity, specificity
        Those of a typical annotator.
    spammer_share
        Share of annotators who are spammers, rounded to a whole number of them.
    seed
        The same seed gives the same answers, byte for byte.
    """
    check_counts(1, n_items=n_items, n_annotators=n_annotators, n_types=n_types)
    check_counts(2, n_labels=n_labels)
    check_share(spammer_share=spammer_share, sensitivity=sensitivity, specificity=specificity)
    check_range(prevalence=prevalence)
    check_per_item(n_annotators, answers_per_item=answers_per_item)
    per_item = n_annotators if answers_per_item is None else answers_per_item
    check_memory(
        (_BYTES_PER_ANSWER + _BYTES_PER_ANSWER_LABEL * n_labels) * n_items * per_item
        + _BYTES_PER_ANNOTATOR_LABEL * n_annotators * n_labels
    )
    rng = generator(seed)
    shares = rng.uniform(*prevalence, size=n_labels)
    theta = rng.beta(0.6, 1.8, size=(n_types, n_labels))
    theta = np.clip(theta / theta.mean(axis=0) * shares, _LEAST, _MOST)
    truth = rng.random((n_items, n_labels)) < theta[rng.integers(n_types, size=n_items)]
    hit = _rates(rng, sensitivity, n_annotators, n_labels)
    reject = _rates(rng, specificity, n_annotators, n_labels)
    behavior = np.full(n_annotators, "serious", dtype=object)
    for n, s in enumerate(rng.permutation(n_annotators)[: round(spammer_share * n_annotators)]):
        behavior[s] = SPAMMERS[n % len(SPAMMERS)]
        hit[s] = _own_rates(rng, behavior[s], shares)
        reject[s] = 1.0 - hit[s]
    annotator = assign(rng, n_items, n_annotators, per_item)
    rate = np.where(truth[:, np.newaxis], hit[annotator], 1.0 - reject[annotator])
    given = (rng.random(rate.shape) < rate).reshape(-1, n_labels)
    active = np.unique(annotator)
    rows = pa.table(
        {
            "item": np.repeat(np.arange(1, n_items + 1), per_item),
            "annotator": annotator.ravel() + 1,
            "label": pa.array(
                [(np.flatnonzero(row) + 1).tolist() for row in given], pa.list_(pa.int64())
            ),
        }
    )
    answers = Labels.of(rows, categories=[str(n + 1) for n in range(n_labels)])
    answers = replace(answers, frame=default_frame())
    order = answers.annotators.to_numpy() - 1
    assert len(order) == len(active)
    return SetSimulation(
        answers=answers,
        truth=truth,
        sensitivity=hit[order],
        specificity=reject[order],
        behavior=behavior[order].astype(str),
    )


def _rates(rng: np.random.Generator, typical: float, n_annotators: int, n_labels: int) -> Floats:
    """Return rates around the typical one, annotators x labels."""
    odds = logit(typical) + rng.normal(0.0, _LABEL_SPREAD, n_labels)
    odds = odds + rng.normal(0.0, _ANNOTATOR_SPREAD, (n_annotators, 1))
    rates: Floats = expit(odds + rng.normal(0.0, _CELL_SPREAD, (n_annotators, n_labels)))
    return rates


def _own_rates(rng: np.random.Generator, behavior: str, shares: Floats) -> Floats:
    """Return how often a spammer gives each label."""
    n_labels = len(shares)
    if behavior == "random":
        return np.full(n_labels, np.clip(shares.mean(), 0.1, 0.5))
    rates = np.zeros(n_labels)
    if behavior == "always everything":
        rates[:] = 1.0
    elif behavior == "always the same set":
        rates[rng.permutation(n_labels)[: max(1, n_labels // 3)]] = 1.0
    return rates * (1.0 - _SLIPS) + _SLIPS / 2
