"""Votes on many prompts: simulated designs, and public sets with held-out ballots and prompts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.pairs.beside import rank_correlation
from annotruth.models.pairs.pair_gpm.estimation import MARGINAL
from annotruth.models.pairs.registry import get_pair_model
from annotruth.observations import LEFT, RIGHT, TIE, Comparisons
from benchmarks.honesty.options import PartOptions, PartTable, Target, TargetFigure
from benchmarks.pairs.fits import fit_votes
from benchmarks.pairs.sets import load_set

DEFAULT_RUNS = 10
KINDS = ("random", "always left", "always right", "always tie", "inverted")
N_ITEMS, SCORE_SD, SHARPNESS_SD, TIE_SD, SIDE_SD, USUAL = 10, 0.7, 0.3, 0.4, 0.2, 0.97
FOLDS, SCORED_FOLDS = 5, 2
Row = tuple[Sequence[str], Sequence[TargetFigure | str]]


@dataclass(frozen=True)
class Design:
    """A crowd to draw: ``ballot`` items are ranked at once (2: single pairs).

    A question is asked of ``1 / (1 - repeat)`` annotators on average. ``few`` is the number of votes
    of a spammer; ``similar`` the standard deviation of the log tie rates of pairs.
    """

    tau: float
    votes: int
    repeat: float
    contexts: int
    ballot: int = 2
    annotators: int = 30
    spammers: float = 0.0
    few: int = 0
    tie_odds: float = 0.6
    similar: float = 0.0
    score_sd: float = SCORE_SD

    def words(self) -> tuple[str, ...]:
        """Return the columns that tell designs apart."""
        kind = "single" if self.ballot == 2 else f"rankings of {self.ballot}"
        kind += ", ties by similarity" if self.similar else ""
        votes = f"{self.votes}" + (f", spammers {self.few}" if self.spammers else "")
        return kind, f"{self.repeat:g}", f"{self.contexts:,}", f"{self.tau:g}", votes


HONEST = [
    Design(tau, votes, repeat, 30 * votes if repeat == 0.0 else 200, ballot)
    for ballot, repeat in ((2, 0.0), (2, 0.5), (5, 0.5))
    for tau in (0.0, 1.0, 2.0)
    for votes in (30, 100)
] + [Design(tau, 300, 0.5, 500, similar=1.2, tie_odds=1.0, score_sd=0.4) for tau in (0.0, 2.0)]
FEW_CONTEXTS = [
    Design(tau, 60, 0.5, contexts) for contexts in (13, 50, 400) for tau in (0.0, 0.5, 1.0, 2.0)
]
SPAM = [
    Design(tau, 100, repeat, 4000 if repeat == 0.0 else 200, 2, 50, 0.2, few)
    for repeat in (0.0, 0.5)
    for tau in (0.0, 1.0, 2.0)
    for few in (30, 60, 200)
]


@dataclass(frozen=True, eq=False)
class Drawn:
    """Votes with the truth: log odds of decided votes in a new context, and what each annotator is."""

    data: Comparisons
    scores: Floats
    kind: NDArray[np.str_]


def draw(design: Design, seed: int) -> Drawn:
    """Draw a crowd of a design."""
    rng = np.random.default_rng(seed)
    n = design.annotators
    theta = rng.normal(0.0, design.score_sd, N_ITEMS)
    theta -= theta.mean()
    effect = rng.normal(0.0, design.tau, (design.contexts, N_ITEMS))
    kind = np.full(n, "serious", dtype="U16")
    spammers = rng.permutation(n)[: round(design.spammers * n)]
    kind[spammers] = np.resize(np.array(KINDS), len(spammers))
    sharpness = np.exp(rng.normal(0.0, SHARPNESS_SD, n))
    sharpness[kind == "inverted"] *= -1.0
    sharpness[kind == "random"] = 0.0
    side = np.where(kind == "random", 0.0, rng.normal(0.0, SIDE_SD, n))
    tie = np.where(kind == "random", 1.0, design.tie_odds * np.exp(rng.normal(0.0, TIE_SD, n)))
    similar = np.exp(rng.normal(0.0, design.similar, (N_ITEMS, N_ITEMS)))
    similar = np.triu(similar) + np.triu(similar, 1).T
    per_ballot = design.ballot * (design.ballot - 1) // 2
    n_votes = np.where(kind == "serious", design.votes, design.few or design.votes)
    who = rng.permutation(np.repeat(np.arange(n), np.maximum(n_votes // per_ballot, 1)))
    n_questions = max(int(len(who) * (1.0 - design.repeat)), 1)
    context = rng.integers(design.contexts, size=n_questions)
    if design.repeat == 0.0 and design.contexts >= n_questions:
        context = rng.permutation(design.contexts)[:n_questions]
    items = np.argsort(rng.random((n_questions, N_ITEMS)), axis=1)[:, : design.ballot]
    turns = -(-len(who) // n_questions)
    question = np.concatenate([rng.permutation(n_questions) for _ in range(turns)])[: len(who)]
    rows: list[tuple[int, int, int, int, int]] = []
    for s, q in zip(who.tolist(), question.tolist(), strict=True):
        shown = rng.permutation(items[q])
        at = theta[shown] + effect[context[q], shown]
        if design.ballot == 2:
            d = sharpness[s] * (at[0] - at[1]) + side[s]
            odds = np.array([np.exp(d / 2), np.exp(-d / 2), tie[s] * similar[shown[0], shown[1]]])
            outcomes = [_choose(rng, odds, str(kind[s]))]
        else:
            outcomes = _rank(rng, sharpness[s] * at, _threshold(tie[s]))
        pairs = [(a, b) for a in range(len(shown)) for b in range(a + 1, len(shown))]
        for (a, b), outcome in zip(pairs, outcomes, strict=True):
            rows.append((int(shown[a]), int(shown[b]), s, outcome, int(context[q])))
    left, right, annotator, outcome_, contexts = (
        np.array(each) for each in zip(*rows, strict=True)
    )
    data = Comparisons.from_codes(
        left, right, annotator, outcome_, items=range(N_ITEMS), annotators=range(n)
    )
    values, code = np.unique(contexts, return_inverse=True)
    data = replace(data, contexts=pa.array(values), context=code.astype(np.int32)[data.row])
    # Neighbours in a ranking that are closer than t tie: the others differ more.
    sharper = 1.0
    if design.ballot > 2:
        sharper = float(np.mean(2.0 / (1.0 + np.exp(-_threshold(tie[kind == "serious"])))))
    scores = sharper * theta / np.sqrt(1.0 + MARGINAL * (sharper * design.tau) ** 2)
    return Drawn(data, scores, kind)


def _choose(rng: np.random.Generator, odds: Floats, kind: str) -> int:
    if kind.startswith("always"):
        odds = np.full(3, (1.0 - USUAL) / 2.0)
        odds[KINDS.index(kind) - 1] = USUAL
    return int(rng.choice(3, p=odds / odds.sum()))


def _threshold(tie: Any) -> Any:
    """Return the differences in a ranking below which neighbours tie."""
    return 0.5 * tie


def _rank(rng: np.random.Generator, strength: Floats, threshold: float) -> list[int]:
    """Return the outcomes of all pairs of a ranking; neighbours closer than a threshold tie."""
    noisy = strength + rng.gumbel(size=len(strength))
    order = np.argsort(-noisy)
    rank = np.zeros(len(order), dtype=np.int64)
    rank[order[1:]] = np.cumsum(-np.diff(noisy[order]) > threshold)
    n = len(order)
    return [
        LEFT if rank[a] < rank[b] else RIGHT if rank[a] > rank[b] else TIE
        for a in range(n)
        for b in range(a + 1, n)
    ]


def simulated_prompts(options: PartOptions) -> list[PartTable]:
    """Measure honest people accused, spammers found and coverage on simulated designs."""
    seeds = range(options.seed, options.seed + options.runs_or(DEFAULT_RUNS))
    heads = ("votes", "repeat", "contexts", "tau", "per annotator")
    tables = []
    for title, designs in (("Honest", HONEST), ("Few contexts", FEW_CONTEXTS), ("Spammers", SPAM)):
        rows: list[Row] = [
            (design.words(), _figures(design, seeds, options.model)) for design in designs
        ]
        tables.append(
            PartTable(
                f"Simulated prompts: {title.lower()}",
                f"{len(seeds)} crowds per row: share of honest annotators accused, crowds in which more "
                "than 5% are, spammers found, random ones, and coverage of 95% intervals of scores and "
                "ranks in a new context.",
                heads,
                ("accused", "crowds > 5%", "found", "random found", "scores", "ranks"),
                rows,
            )
        )
    return tables


def _figures(design: Design, seeds: range, model: str) -> list[TargetFigure | str]:
    accused, crowds, found, of_random, scores, ranks = [], 0, [], [], [], []
    for seed in seeds:
        drawn = draw(design, seed)
        fit = fit_votes(drawn.data, model)
        honest = drawn.kind == "serious"
        spammer = np.zeros(len(honest), bool) if fit.spammer is None else np.asarray(fit.spammer)
        accused.append(spammer[honest].mean())
        crowds += bool(spammer[honest].mean() > 0.05)
        found += spammer[~honest].tolist()
        of_random += spammer[drawn.kind == "random"].tolist()
        low, high = fit.scores.interval.T
        scores += ((low <= drawn.scores) & (drawn.scores <= high)).tolist()
        true_rank = 1 + (drawn.scores > drawn.scores[:, np.newaxis]).sum(axis=1)
        ranks += ((fit.ranking.low <= true_rank) & (true_rank <= fit.ranking.high)).tolist()
    goal = None
    if design.few == 60 and (design.repeat > 0.0 or design.tau == 0.0):
        goal = Target(low=0.8 if design.tau == 0.0 else 0.9)
    covered = Target(0.9, 0.99) if not design.spammers else None
    return [
        TargetFigure(float(np.mean(accused)), Target(high=0.01 if design.spammers else 0.005), 4),
        TargetFigure(float(crowds), Target(high=0.0), 0),
        TargetFigure(float(np.mean(found)), goal, 2) if found else "",
        TargetFigure(float(np.mean(of_random)), None, 2) if of_random else "",
        TargetFigure(float(np.mean(scores)), covered, 3),
        TargetFigure(float(np.mean(ranks)), covered, 3),
    ]


def public_prompts(options: PartOptions) -> list[PartTable]:
    """Measure sets with contexts: voters, win rates, held-out ballots and contexts, halves."""
    rows: list[Row] = []
    names = ("bradley-terry", options.model)
    for name in ("pairs-wmt16-eng-fin", "pairs-llmfao", "pairs-pandalm"):
        data = load_set(options.data() / name)
        begin = process_time()
        fit = fit_votes(data, options.model)
        seconds = process_time() - begin
        r = rank_correlation(fit.scores.mean, win_rates(data))
        bias = 0.0 if fit.side_bias is None else float(fit.side_bias[0])
        figures: list[TargetFigure | str] = [
            f"{fit.n_spammers} of {data.n_annotators}",
            TargetFigure(bias, digits=3),
            TargetFigure(r, digits=3),
            TargetFigure(seconds, digits=1),
        ]
        for cells in (_ballots, _contexts):
            scores = [held_out(data, model, cells(data), options.seed) for model in names]
            figures += [TargetFigure(score, digits=4) for score in scores]
        rows.append(((name,), figures))
    columns = ["flagged", "side bias", "correlation with win rates", "processor seconds"]
    for what in ("ballots", "contexts"):
        columns += [f"held-out {what}: {name}" for name in names]
    return [
        PartTable(
            "Public sets with contexts",
            f"Log-likelihood per vote, {SCORED_FOLDS} of {FOLDS} folds; a ballot is all votes of an "
            "annotator in a context.",
            ("set",),
            tuple(columns),
            rows,
        ),
    ]


def win_rates(data: Comparisons) -> Floats:
    """Return the share of each item's comparisons that it won; a tie is half a win."""
    won = np.where(data.outcome == TIE, 0.5, data.outcome == LEFT)
    wins = np.bincount(data.left, won, data.n_items) + np.bincount(
        data.right, 1.0 - won, data.n_items
    )
    return wins / np.maximum(data.comparisons_per_item, 1)


def _ballots(data: Comparisons) -> Codes:
    assert data.context is not None
    return data.annotator_of_comparison() * (int(data.context.max()) + 1) + data.context


def _contexts(data: Comparisons) -> Codes:
    assert data.context is not None
    return data.context.astype(np.int64)


def held_out(data: Comparisons, model: str, cell: Codes, seed: int) -> float:
    """Return the log-likelihood per vote of whole cells that a model was not fitted to."""
    _, place = np.unique(cell, return_inverse=True)
    fold = (np.random.default_rng(seed).permutation(place.max() + 1) % FOLDS)[place]
    n_outcomes = 3 if data.has_ties else 2
    log_p = []
    for number in range(SCORED_FOLDS):
        estimator = get_pair_model(model)()
        estimator.load_fit(fit_votes(data.subset(fold != number), model))
        new = fold == number
        p = predict(estimator, data, new)[np.arange(new.sum()), data.outcome[new]]
        log_p.append(np.log(0.99 * p + 0.01 / n_outcomes))
    return float(np.concatenate(log_p).mean())


def predict(estimator: Any, data: Comparisons, new: NDArray[np.bool_]) -> Floats:
    """Return the probabilities of the outcomes of some comparisons, in their contexts."""
    annotator = data.annotator_of_comparison()
    codes = (data.left[new].astype(np.int64), data.right[new].astype(np.int64), annotator[new])
    probability: Floats = estimator.predict_proba(*codes, None, _contexts(data)[new])
    return probability


PROMPT_PARTS: dict[str, Callable[[PartOptions], list[PartTable]]] = {
    "prompts": public_prompts,
    "simulated-prompts": simulated_prompts,
}
