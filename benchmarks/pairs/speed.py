"""Seconds for scores from integer codes: 10,000,000 votes on 1,000 items, beside evalica."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter, process_time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from annotruth.models.pairs.registry import make_pair_estimator
from annotruth.observations import Comparisons
from benchmarks.honesty.options import PartOptions, PartTable, Target, TargetFigure

N_VOTES, N_ITEMS, N_ANNOTATORS = 10_000_000, 1_000, 20_000
TIE_SHARE = 0.1
PEERS = ("evalica, index given", "evalica, as documented")
TARGETS = {
    "bradley-terry, without annotators": Target(low=10.0),
    "bradley-terry": Target(low=10.0),
    "pair-gpm": Target(low=0.2),
}


class Votes(NamedTuple):
    """Codes of votes, in random order, and the scores they were drawn from."""

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    annotator: NDArray[np.int32]
    nobody: NDArray[np.int32]
    """Annotators' codes where there are none: zeros."""
    outcome: NDArray[np.int8]
    winner: NDArray[np.uint8]
    """The outcome in the codes of evalica."""
    scores: NDArray[np.float64]


def draw_votes(n_votes: int = N_VOTES, seed: int = 0) -> Votes:
    """Return votes of Bradley and Terry's model with a tenth of ties."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=N_ITEMS)
    left = rng.integers(N_ITEMS, size=n_votes, dtype=np.int32)
    right = (left + rng.integers(1, N_ITEMS, size=n_votes, dtype=np.int32)) % N_ITEMS
    right_won = rng.random(n_votes) > expit(scores[left] - scores[right])
    outcome = np.where(rng.random(n_votes) < TIE_SHARE, 2, right_won).astype(np.int8)
    annotator = rng.integers(N_ANNOTATORS, size=n_votes, dtype=np.int32)
    winner = np.array([1, 2, 0], dtype=np.uint8)[outcome]
    nobody = np.zeros_like(annotator)
    return Votes(left, right.astype(np.int32), annotator, nobody, outcome, winner, scores)


def fit_ours(
    votes: Votes, model: str, *, with_annotators: bool, with_intervals: bool = False
) -> NDArray[np.float64]:
    """Return the scores of one of our models, from codes; without annotators, as evalica has none."""
    comparisons = Comparisons.from_codes(
        votes.left,
        votes.right,
        votes.annotator if with_annotators else votes.nobody,
        votes.outcome,
        items=np.arange(N_ITEMS),
        annotators=np.arange(N_ANNOTATORS if with_annotators else 1),
    )
    scores = make_pair_estimator(model, {}).fit(comparisons).result_.scores
    if with_intervals:
        assert np.isfinite(scores.interval).all()
    return scores.mean


def fit_evalica(votes: Votes, *, with_index: bool) -> NDArray[np.float64]:
    """Return evalica's scores; with an index of the items it need not find them."""
    import evalica
    import pandas as pd

    index = pd.Index(range(N_ITEMS)) if with_index else None
    found = evalica.bradley_terry(votes.left, votes.right, votes.winner, index=index)
    scores: NDArray[np.float64] = np.log(found.scores.loc[list(range(N_ITEMS))].to_numpy())
    return scores


def speed(options: PartOptions) -> list[PartTable]:
    """Time each contender in turn, after one fit that compiles the kernels."""
    votes = draw_votes(seed=options.seed)
    contenders: dict[str, Callable[[], NDArray[np.float64]]] = {
        PEERS[0]: lambda: fit_evalica(votes, with_index=True),
        PEERS[1]: lambda: fit_evalica(votes, with_index=False),
        "bradley-terry, without annotators": lambda: fit_ours(
            votes, "bradley-terry", with_annotators=False
        ),
        "bradley-terry": lambda: fit_ours(votes, "bradley-terry", with_annotators=True),
        "bradley-terry, with intervals": lambda: fit_ours(
            votes, "bradley-terry", with_annotators=True, with_intervals=True
        ),
    }
    if options.model != "bradley-terry":
        contenders[options.model] = lambda: fit_ours(votes, options.model, with_annotators=True)
    few = draw_votes(n_votes=1_100_000, seed=options.seed)
    for model in {"bradley-terry", options.model}:
        fit_ours(few, model, with_annotators=True)
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    processor: dict[str, list[float]] = {name: [] for name in contenders}
    found = {}
    for _ in range(options.runs_or(3)):
        for name, fit in contenders.items():
            start, start_processor = perf_counter(), process_time()
            found[name] = fit()
            seconds[name].append(perf_counter() - start)
            processor[name].append(process_time() - start_processor)
    rows = []
    for name, times in seconds.items():
        ratios = [median(seconds[peer]) / median(times) for peer in PEERS]
        target = TARGETS.get(name)
        correlation = float(np.corrcoef(found[name], votes.scores)[0, 1])
        figures = [
            TargetFigure(median(times), digits=2),
            *(TargetFigure(ratio, target, digits=1) for ratio in ratios),
            TargetFigure(median(processor[name]), digits=2),
            *(
                TargetFigure(median(processor[peer]) / median(processor[name]), digits=1)
                for peer in PEERS
            ),
            TargetFigure(correlation, digits=4),
        ]
        rows.append(((name,), figures))
    return [
        PartTable(
            f"{N_VOTES:,} votes on {N_ITEMS:,} items, from integer codes",
            "Median seconds on the clock and of all processors, contenders in turn. Targets, on the "
            "clock: Bradley-Terry at least 10 times as fast as "
            "evalica, and pair-gpm at most 5 times its time.",
            ("contender",),
            (
                "seconds",
                *(f"{peer}: times as fast" for peer in PEERS),
                "processor seconds",
                *(f"{peer}: times as few" for peer in PEERS),
                "correlation with the truth",
            ),
            rows,
        )
    ]
