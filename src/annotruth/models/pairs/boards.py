r"""One ranking per value of a column, such as a category or language, partially pooled.

The score of item i on board k is :math:`v_{ik} \sim N(\theta_i, \tau^2)`. Votes follow Davidson's model
with the side bias and the tie rate of all votes, and count as much as they are probably serious; where
whole contexts vary more than votes, all count less by that factor. Given tau, scores are the mode of the
posterior (Newton's steps), and tau is that of the largest marginal likelihood (Laplace). A board with
few votes is therefore close to the others, and one with many is that of its own votes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from scipy.special import ndtr

from annotruth.errors import InputError, counted, listed, option, shorten
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.base_fit import table_of
from annotruth.models.distribution import Z_95
from annotruth.models.fits.further import FurtherResults
from annotruth.models.pairs.bradley_terry import MIN_CLUSTERS, BradleyTerry
from annotruth.models.pairs.graph import net_sums_of_contexts
from annotruth.observations.encode import encode_column
from annotruth.observations.frames import as_arrow
from annotruth.observations.pairs.table import LEFT, RIGHT, TIE, Comparisons

if TYPE_CHECKING:
    from annotruth.models.result import RankFit

BOARDS = "boards"
"""The kind of these further results."""

MAX_BOARDS, MAX_ITEMS = 100, 500
_SPREADS = (0.02, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0)
_STEPS = 12
_LEVEL = 0.05  # of false discoveries among differences
_MAX_LINES, _MAX_NAMES = 6, 3


class BoardVotes(NamedTuple):
    """Votes added up by board, left and right item, and outcome: boards x items x items x 3."""

    counts: Floats
    n_votes: Codes
    side_bias: float
    log_tie: float


class Pooled(NamedTuple):
    """Scores of boards and of all boards, their covariances, and the log marginal likelihood."""

    scores: Floats
    covariance: Floats
    center: Floats
    log_marginal: float


def check_by(data: Comparisons, by: str, model: str) -> None:
    """Refuse a column that makes no boards, before anything is fitted."""
    if model == "thurstone":
        raise InputError(
            f"boards ({option('by')}) are in log odds, and thurstone has none: use pair-gpm"
        )
    if data.n_items > MAX_ITEMS:
        raise InputError(
            f"boards ({option('by')}) take at most {MAX_ITEMS} items, and there are {data.n_items:,}"
        )
    n = len(data.further[by].drop_null().unique())
    if not 2 <= n <= MAX_BOARDS:
        raise InputError(
            f"column {by!r} has {counted(n, 'value')}: boards ({option('by')}) take a column with 2 "
            f"to {MAX_BOARDS} values, such as a category or language"
        )


def make_boards(fit: RankFit, by: str) -> FurtherResults:
    """Return the boards of a fit, one per value of a column of its comparisons."""
    data = fit.data
    check_by(data, by, fit.model)
    column = encode_column(pa.chunked_array([data.further[by]]))
    values = column.values.to_pylist()
    names = {k: str(each) for k, each in enumerate(values) if each is not None}
    kept = sorted(names, key=lambda k: names[k])
    place = np.full(len(values), -1)
    place[kept] = np.arange(len(kept))
    board, boards = place[column.codes], [names[k] for k in kept]
    votes = _add_up(fit, board, len(kept))
    tried = [(pool(votes, spread), spread) for spread in _SPREADS]
    found, spread = max(tried, key=lambda each: each[0].log_marginal)
    differences = _differences(found, data, boards)
    tables = {"boards": _board_table(found, votes, data, boards), "board_differences": differences}
    facts = {
        "by": by,
        "n_boards": len(boards),
        "spread": spread,
        "n_without": int(np.count_nonzero(board < 0)),
        "n_differences": len(differences),
    }
    return FurtherResults(tables, facts, _lines(by, boards, found, votes, data, differences))


def _add_up(fit: RankFit, board: Codes, n_boards: int) -> BoardVotes:
    """Return the counts of votes, weighted, with the side bias and the tie rate of all."""
    data, n = fit.data, fit.data.n_items
    weight = np.ones(data.n_comparisons) if fit.p_serious is None else fit.p_serious.copy()
    if data.annotator_weight is not None:
        weight *= data.annotator_weight[data.annotator_of_comparison()]
    has = board >= 0
    key = ((board * n + data.left) * n + data.right) * 3 + data.outcome
    size = n_boards * n * n * 3
    counts: Floats = np.bincount(key[has], weight[has], size).astype(np.float64)
    counts = counts.reshape(n_boards, n, n, 3)
    side_bias, log_tie = _habits(counts.sum(axis=0), fit.scores.mean, sides=data.sides_known)
    votes = BoardVotes(counts, np.bincount(board[has], minlength=n_boards), side_bias, log_tie)
    return votes._replace(counts=counts / _design_effect(fit, votes, weight))


def _habits(counts: Floats, scores: Floats, *, sides: bool) -> tuple[float, float]:
    """Return the side bias and the log tie rate by which votes are likeliest, given the scores."""
    has_ties = counts[..., TIE].sum() > 0.0
    side_bias, log_tie = 0.0, 0.0 if has_ties else -np.inf
    n_pair = counts.sum(axis=-1)
    for _ in range(_STEPS):
        p = BradleyTerry.probabilities(scores[:, np.newaxis] - scores + side_bias, log_tie)
        net = (p[..., LEFT] - p[..., RIGHT]) / 2.0
        if sides:
            slope = (counts[..., LEFT] - counts[..., RIGHT]).sum() / 2.0 - (n_pair * net).sum()
            known = (n_pair * ((p[..., LEFT] + p[..., RIGHT]) / 4.0 - net**2)).sum()
            side_bias += float(np.clip(slope / (known + 1e-9), -1.0, 1.0))
        if has_ties:
            slope = counts[..., TIE].sum() - (n_pair * p[..., TIE]).sum()
            known = (n_pair * p[..., TIE] * (1.0 - p[..., TIE])).sum()
            log_tie += float(np.clip(slope / (known + 1e-9), -1.0, 1.0))
    return side_bias, log_tie


def _design_effect(fit: RankFit, votes: BoardVotes, weight: Floats) -> float:
    """Return by how much sums over contexts vary more than those of independent votes; 1 or more."""
    data = fit.data
    if data.context is None or data.contexts is None or len(data.contexts) < MIN_CLUSTERS:
        return 1.0
    scores = fit.scores.mean
    p = BradleyTerry.probabilities(
        scores[data.left] - scores[data.right] + votes.side_bias, votes.log_tie
    )
    chosen = np.array([0.5, -0.5, 0.0])[data.outcome]
    slope = weight * (chosen - (p[:, LEFT] - p[:, RIGHT]) / 2.0)
    n_contexts = len(data.contexts)
    shape = n_contexts, data.n_items
    sums = net_sums_of_contexts(data.context, data.left, data.right, slope, shape)
    by_vote = 2.0 * float((slope**2).sum())
    by_context = float((sums**2).sum()) * n_contexts / (n_contexts - 1.0)
    return max(by_context / by_vote, 1.0) if by_vote > 0.0 else 1.0


def pool(votes: BoardVotes, spread: float) -> Pooled:
    """Return the scores of all boards, given how much an item's scores vary over them."""
    n_boards, n = votes.counts.shape[:2]
    precision = 1.0 / spread**2
    center, scores = np.zeros(n), np.zeros((n_boards, n))
    centering = np.eye(n) - 1.0 / n
    center_variance = 1.0
    eye = np.eye(n)
    inverse: Floats = np.empty((n_boards, n, n))
    marginal: Floats = np.empty((n, n))
    value = -math.inf
    for _ in range(_STEPS):
        slope, information, log_likelihood = _derivatives(votes, scores)
        inverse = np.linalg.inv(information + precision * eye).astype(np.float64)
        response = slope + np.einsum("kij,kj->ki", information, scores)
        shrunk = np.einsum("kij,kj->ki", inverse, response)
        marginal = (precision * (eye - precision * inverse)).sum(axis=0) + eye / center_variance
        center = centering @ np.linalg.solve(marginal, precision * shrunk.sum(axis=0))
        scores = shrunk + precision * inverse @ center
        scores -= scores.mean(axis=1, keepdims=True)
        center_variance = float((1.0 + center @ center) / n)
        value = log_likelihood - precision / 2.0 * float(((scores - center) ** 2).sum())
    value += 0.5 * float(np.linalg.slogdet(inverse * precision)[1].sum())
    value -= 0.5 * (float(np.linalg.slogdet(marginal)[1]) + n * math.log(center_variance))
    value -= float(center @ center) / (2.0 * center_variance)
    of_center = np.linalg.inv(marginal)
    covariance = inverse + precision**2 * inverse @ of_center @ inverse
    return Pooled(scores, centering @ covariance @ centering, center, value)


def _derivatives(votes: BoardVotes, scores: Floats) -> tuple[Floats, Floats, float]:
    """Return the slopes of boards' scores, their information, and the log-likelihood."""
    counts = votes.counts
    n_pair = counts.sum(axis=-1)
    difference = scores[:, :, np.newaxis] - scores[:, np.newaxis] + votes.side_bias
    p = BradleyTerry.probabilities(difference, votes.log_tie)
    net = (p[..., LEFT] - p[..., RIGHT]) / 2.0
    residual = (counts[..., LEFT] - counts[..., RIGHT]) / 2.0 - n_pair * net
    weight = n_pair * ((p[..., LEFT] + p[..., RIGHT]) / 4.0 - net**2)
    weight = weight + weight.transpose(0, 2, 1)
    information = -weight
    diagonal = np.arange(counts.shape[1])
    information[:, diagonal, diagonal] += weight.sum(axis=2)
    with np.errstate(divide="ignore"):
        log_p = np.where(counts > 0.0, np.log(p), 0.0)
    return residual.sum(axis=2) - residual.sum(axis=1), information, float((counts * log_p).sum())


def _board_table(
    found: Pooled, votes: BoardVotes, data: Comparisons, boards: list[str]
) -> pa.Table:
    """Return one row per board and item, the best of each board first."""
    order = np.argsort(-found.scores, axis=1, kind="stable")
    board = np.repeat(np.arange(len(boards)), data.n_items)
    item = order.ravel()
    score = found.scores[board, item]
    sd = np.sqrt(np.diagonal(found.covariance, axis1=1, axis2=2))[board, item]
    compared = votes.counts.sum(axis=3)
    n = (compared.sum(axis=1) + compared.sum(axis=2))[board, item] > 0.0
    return table_of(
        {
            "board": [boards[k] for k in board],
            "n_comparisons": votes.n_votes[board],
            "item": data.items.take(as_arrow(item)),
            "rank": np.tile(np.arange(1, data.n_items + 1), len(boards)),
            "score": score,
            "low": score - Z_95 * sd,
            "high": score + Z_95 * sd,
            "difference": score - found.center[item],
            "compared": n,
        }
    )


def _differences(found: Pooled, data: Comparisons, boards: list[str]) -> pa.Table:
    """Return pairs of items whose order on a board is really the reverse of that over all boards.

    5% are false discoveries (Benjamini and Hochberg); the clearest come first.
    """
    from scipy.stats import false_discovery_control  # imported here because that takes long

    i, j = np.triu_indices(data.n_items, 1)
    variance = np.diagonal(found.covariance, axis1=1, axis2=2)
    sd = np.sqrt(
        np.maximum(variance[:, i] + variance[:, j] - 2.0 * found.covariance[:, i, j], 1e-12)
    )
    difference = found.scores[:, i] - found.scores[:, j]
    overall = found.center[i] - found.center[j]
    reverse = difference * overall < 0.0
    p_value = np.where(reverse, ndtr(-np.abs(difference) / sd), 1.0)
    q_value = false_discovery_control(p_value.ravel())
    order = np.argsort(p_value, axis=None, kind="stable")
    kept = order[q_value[order] <= _LEVEL]
    k, pair = np.divmod(kept, len(i))
    first = difference[k, pair] > 0.0
    better, worse = np.where(first, i[pair], j[pair]), np.where(first, j[pair], i[pair])
    value, margin = np.abs(difference[k, pair]), Z_95 * sd[k, pair]
    return table_of(
        {
            "board": pa.array([boards[each] for each in k.tolist()], pa.string()),
            "item": data.items.take(as_arrow(better)),
            "other": data.items.take(as_arrow(worse)),
            "difference": value,
            "low": value - margin,
            "high": value + margin,
            "overall": -np.abs(overall[pair]),
            "q_value": q_value[kept],
        }
    )


def _lines(
    by: str,
    boards: list[str],
    found: Pooled,
    votes: BoardVotes,
    data: Comparisons,
    differences: pa.Table,
) -> list[str]:
    """Return what the summary says: the first items of each board, and where the order differs."""

    def name(item: int) -> str:
        return shorten(str(data.items[item].as_py()), 40)

    lines = [f"boards by {shorten(by, 40)}, those with few votes drawn towards all:"]
    largest = np.argsort(-votes.n_votes, kind="stable")[:_MAX_LINES]
    for k in largest.tolist():
        best = np.argsort(-found.scores[k], kind="stable")[:_MAX_NAMES]
        lines.append(
            f"  {shorten(boards[k], 40)} ({counted(int(votes.n_votes[k]), 'comparison')}): "
            f"{', '.join(name(item) for item in best.tolist())} first"
        )
    if len(boards) > len(largest):
        lines.append(f"  and {counted(len(boards) - len(largest), 'further board')}")
    if not len(differences):
        return [*lines, f"  the order of no two items clearly differs by {shorten(by, 40)}"]
    pairs = (row.values() for row in differences.select(["board", "item", "other"]).to_pylist())
    words = listed((f"{i} before {j} ({board})" for board, i, j in pairs), _MAX_NAMES)
    return [*lines, f"  the order differs from that of all votes: {words}"]
