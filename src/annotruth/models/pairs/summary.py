"""The summary of a fit of comparisons, and what is said before it where the votes say little."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from annotruth.errors import counted, listed, shorten, shown
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.models.distribution import Z_95
from annotruth.models.fits.notes import CHANCE
from annotruth.models.fits.tables import annotator_line, row_lines
from annotruth.models.pairs.beside import contradictions
from annotruth.models.pairs.registry import get_pair_model
from annotruth.observations.pairs.table import OUTCOMES, TIE, Comparisons
from annotruth.observations.scale import is_text
from annotruth.observations.validate import find_spelling_variants

if TYPE_CHECKING:
    from annotruth.kernels.arrays import Codes
    from annotruth.models.result import RankFit

SPREAD = "spread"
"""The parameter of models whose scores differ between contexts: by how much."""

MIN_CONTEXTS = 5
"""From so many contexts on, intervals take these as a sample."""

TOO_FEW_VOTES = "too few votes to tell"
"""The behavior of annotators with too few comparisons to estimate it."""

NOT_SHARED = "unknown: nobody else compared on the same prompts"
"""The behavior of annotators whose contexts nobody else evaluated, and who may be serious or not."""

CHANCE_RANKING = f"comparisons {CHANCE}: ranks and reliabilities below say next to nothing"

ONE_ANNOTATOR = "all comparisons are by one annotator: there is nobody to compare with"

_MAX_NAMES = 5
_MAX_GROUPED, _MAX_TIE_GROUPS = 60, 4  # items, and groups of these, that are listed in words
_LEVEL = 0.05  # of significance
_DEPENDENT = 1e-10  # of a direction of standardised covariates: its share of their squares
_TAKES_PART = 1e-3  # of a covariate in such a direction
_MAX_SPELLINGS = 100_000  # ids; more take long to compare


def notices(fit: RankFit) -> list[str]:
    """Return why the results say little, or less than they seem to; empty if nothing is known."""
    data, lines = fit.data, []
    if data.n_annotators == 1:
        lines.append(ONE_ANNOTATOR)
    if same := only_outcome(data):
        lines.append(same)
    if fit.verdict == "chance":
        lines.append(CHANCE_RANKING)
    if fit.n_parts > 1:
        sizes = np.bincount(fit.part)
        lines.append(
            f"the graph of comparisons falls into {fit.n_parts:,} parts, the largest of "
            f"{counted(int(sizes.max()), 'item')}: scores and ranks can be compared within a part "
            "only; comparisons between the parts would join them"
        )
    per_item = data.comparisons_per_item
    for n, text in ((0, "never compared"), (1, "compared only once")):
        if n_items := int(np.count_nonzero(per_item == n)):
            few = counted(n_items, "item was", "items were")
            whose = "its score" if n_items == 1 else "their scores"
            lines.append(f"{few} {text}: little is known of {whose}")
    lines += [*contradictions(fit), *_context_notices(fit)]
    lines += [*_covariate_notices(fit), *_spelling_notices(data)]
    return lines


def _context_notices(fit: RankFit) -> list[str]:
    """Return what contexts and rankings do to the intervals of a model that takes part in them."""
    data = fit.data
    if data.contexts is None or SPREAD not in fit.parameters or fit.verdict == "chance":
        return []
    n = len(data.contexts)
    if 1 < n < MIN_CONTEXTS:
        line = (
            f"there are only {n} contexts: intervals are those of further votes on these, not of new "
            "contexts; compare the items in more of them"
        )
        return [line]
    return []


def _covariate_notices(fit: RankFit) -> list[str]:
    """Return of which covariates the comparisons say nothing, and which they cannot separate."""
    data = fit.data
    columns = {k: values for k, values in data.covariates.items() if k in fit.coefficients}
    zero = [name for name, values in columns.items() if not values.any()]
    lines = [
        f"covariate {shorten(name, 40)} is 0 in every comparison: nothing is known of it"
        for name in zero
    ]
    if data.sides_known:
        columns["the side bias"] = np.ones(data.n_comparisons)
    scaled = [values / np.abs(values).max() for name, values in columns.items() if name not in zero]
    if len(scaled) < 2:
        return lines
    matrix = np.stack(scaled, axis=1)
    matrix /= np.sqrt((matrix**2).sum(axis=0))
    share, direction = np.linalg.eigh(matrix.T @ matrix)
    mixed = (np.abs(direction[:, share < _DEPENDENT]) > _TAKES_PART).any(axis=1)
    if mixed.any():
        names = np.array([shorten(name, 40) for name in columns if name not in zero])[mixed]
        lines.append(
            f"the influences of {listed(names)} cannot be separated, as one of them follows from the "
            "others: leave out a covariate"
        )
    return lines


def _spelling_notices(data: Comparisons) -> list[str]:
    """Return which items, and which annotators, may be one that is spelled in two ways."""
    lines = []
    for ids, what in ((data.items, "item"), (data.annotators, "annotator")):
        if not is_text(ids.type) or len(ids) > _MAX_SPELLINGS:
            continue
        if pair := find_spelling_variants(ids.to_pylist()):
            lines.append(
                f"{what}s {shown(pair[0])} and {shown(pair[1])} differ only in spaces, capitals or "
                f"Unicode form: spell them alike if they are one {what}"
            )
    return lines


def only_outcome(data: Comparisons) -> str:
    """Return what it means that all outcomes are the same; empty if they are not."""
    first = int(data.outcome[0])
    if (data.outcome != first).any():
        return ""
    if first == TIE:
        return "every comparison is a tie: the items cannot be ranked"
    if data.sides_known and data.n_comparisons > 1:
        return (
            f"everybody always chose the {OUTCOMES[first]} item: this may be the side, not the "
            "items; show each pair on both sides"
        )
    return ""


def leaders(fit: RankFit, part: int = 0) -> Codes:
    """Return the items of a part that may be first: the 95% interval of their rank has 1."""
    first = np.flatnonzero((fit.ranking.low == 1) & (fit.part == part))
    return first[np.argsort(-fit.scores.mean[first], kind="stable")]


def leader_line(fit: RankFit, part: int = 0) -> str:
    """Return who leads, or who is tied for first."""
    first = leaders(fit, part)
    names = [shorten(str(fit.data.items[int(k)].as_py()), 40) for k in first[:_MAX_NAMES]]
    best = int(first[0])
    score, (low, high) = fit.scores.mean[best], fit.scores.interval[best]
    if len(first) == 1:
        return f"{names[0]} leads: score {score:.2f} (95% interval {low:.2f} to {high:.2f})"
    more = f" and {len(first) - len(names):,} more" if len(first) > len(names) else ""
    return (
        f"tied for first: {', '.join(names)}{more} (1 is in the 95% intervals of their ranks); "
        f"{names[0]} is best with probability {fit.ranking.p_best[best]:.2f}"
    )


def tie_groups(fit: RankFit, part: int = 0) -> list[list[str]]:
    """Return the items of a part, best first, in groups that cannot be separated.

    A group ends where the best of it and the next item are separated: the 95% interval of the
    difference of their scores does not have 0.
    """
    members = np.flatnonzero(fit.part == part)
    order = members[np.argsort(-fit.scores.mean[members], kind="stable")]
    groups: list[list[int]] = []
    for item in order.tolist():
        if groups and not _separated(fit, groups[-1][0], item):
            groups[-1].append(item)
        else:
            groups.append([item])
    names = fit.data.items
    return [[shorten(str(names[k].as_py()), 40) for k in group] for group in groups]


def _separated(fit: RankFit, better: int, worse: int) -> bool:
    """Whether two items differ: the 95% interval of the difference of their scores is above 0."""
    covariance, sd = fit.scores.covariance, fit.scores.sd
    variance = float(sd[better] ** 2 + sd[worse] ** 2)
    if covariance.ndim == 2:
        variance -= 2.0 * float(covariance[better, worse])
    difference = float(fit.scores.mean[better] - fit.scores.mean[worse])
    return difference > Z_95 * float(np.sqrt(max(variance, 0.0)))


def tie_group_line(fit: RankFit) -> str:
    """Return the first groups of items in words, such as "A leads; B and C cannot be separated"."""
    if fit.n_parts > 1 or fit.verdict == "chance" or not 2 < fit.data.n_items <= _MAX_GROUPED:
        return ""
    groups = tie_groups(fit)
    words = []
    for number, group in enumerate(groups[:_MAX_TIE_GROUPS]):
        if len(group) == 1:
            words.append(f"{group[0]} leads" if number == 0 else f"then {group[0]}")
        else:
            start = "" if number == 0 else "then "
            words.append(f"{start}{listed(group)} cannot be separated")
    if len(groups) > len(words):
        words.append(f"and {counted(len(groups) - len(words), 'further group')}")
    return f"order: {'; '.join(words)}"


def preference(fit: RankFit, difference: float) -> float:
    """Return how often the better of two items is preferred at a difference of scores, ties apart."""
    if not fit.is_thurstone:
        return float(1.0 / (1.0 + np.exp(-difference)))
    tie = fit.parameters.get("tie")
    threshold = None if tie is None else float(tie[0])
    model: Any = get_pair_model(fit.model)
    better, worse, _ = model.probabilities(np.array([difference]), threshold)[0]
    return float(better / (better + worse))


def score_unit(fit: RankFit) -> str:
    """Return what scores and side biases are measured in."""
    return "standard deviations" if fit.is_thurstone else "log odds"


def score_line(fit: RankFit) -> str:
    """Return what a difference of scores means."""
    of = " of a perceived difference" if fit.is_thurstone else ""
    return (
        f"scores are {score_unit(fit)}{of}: with a difference of 1, an annotator prefers the better "
        f"item {preference(fit, 1.0):.0%} of the time, ties apart"
    )


def context_lines(fit: RankFit) -> list[str]:
    """Return whether scores differ between contexts, and whether votes follow from rankings."""
    data, lines = fit.data, []
    spread = fit.parameters.get(SPREAD)
    if spread is None or fit.verdict == "chance":
        return []
    n = counted(len(data.contexts or ()), "context")
    if spread[0] > 0.0:
        lines.append(
            f"{n}: which item is better depends on the context; scores are log odds in a new one, and "
            "intervals take contexts as a sample"
        )
    elif "context_free" in fit.parameters:
        lines.append(f"{n}: scores do not depend on them, as far as they are shared by annotators")
    if "ranked" in fit.parameters:
        lines.append("votes follow from rankings: they count less than independent ones")
    return lines


def side_line(fit: RankFit) -> str:
    """Return the crowd's side bias in words; empty where sides are not known."""
    if fit.side_bias is None:
        return ""
    bias, low, high = fit.side_bias
    interval = f"{bias:+.2f} {score_unit(fit)} (95% interval {low:+.2f} to {high:+.2f})"
    if low <= 0.0 <= high:
        return f"side bias: not clearly different from 0, {interval}"
    side = "left" if bias > 0 else "right"
    share = preference(fit, abs(bias))
    return (
        f"side bias: between equal items the {side} one is preferred {share:.0%} of the time, "
        f"ties apart, {interval}"
    )


def annotator_lines(fit: RankFit) -> list[str]:
    """Return the lines on annotators: reliability, spammers with behaviors, too few votes."""
    if fit.reliability is None:
        return [f"annotators: {fit.model} says nothing about them; pair-gpm does"]
    line, spammer, behavior = annotator_line(fit), fit.spammer, fit.behavior
    assert spammer is not None
    if not behavior or not spammer.any():
        return [line]
    kinds = Counter(behavior[s] for s in np.flatnonzero(spammer).tolist())
    listed = ", ".join(f"{n:,} {kind}" for kind, n in kinds.most_common())
    return [line, f"behavior of spammers: {listed}"]


def side_preferences(fit: RankFit) -> list[str]:
    """Return the side that each annotator clearly prefers: "left", "right" or "".

    The annotator's own side bias must differ from 0 at the level of 5% for all annotators together
    (Bonferroni). Nothing is said of spammers, whose behavior says it.
    """
    from scipy.special import ndtri  # slow to load

    n = fit.data.n_annotators
    names = ("side_bias", "side_bias_low", "side_bias_high")
    if fit.spammer is None or any(name not in fit.annotator_columns for name in names):
        return [""] * n
    bias, low, high = (np.asarray(fit.annotator_columns[name]) for name in names)
    half_width = (high - low) / 2.0 * ndtri(1.0 - _LEVEL / (2 * n)) / ndtri(1.0 - _LEVEL / 2)
    side = np.where(np.abs(bias) <= half_width, "", np.where(bias > 0, *OUTCOMES[:2]))
    side[fit.spammer] = ""
    return [str(each) for each in side]


def _preference_lines(fit: RankFit) -> list[str]:
    """Return who clearly prefers a side, those with the strongest side bias first."""
    sides = side_preferences(fit)
    found = [s for s, side in enumerate(sides) if side]
    if not found:
        return []
    bias = np.asarray(fit.annotator_columns["side_bias"])
    found.sort(key=lambda s: -abs(bias[s]))
    named = ", ".join(
        f"{shorten(str(fit.data.annotators[s].as_py()), 40)} ({sides[s]}, {bias[s]:+.2f} log odds)"
        for s in found[:_MAX_NAMES]
    )
    more = f" and {len(found) - _MAX_NAMES:,} more" if len(found) > _MAX_NAMES else ""
    people = counted(len(found), "annotator clearly prefers", "annotators clearly prefer")
    return [f"{people} a side: {named}{more}"]


def summary_lines(fit: RankFit) -> list[str]:
    """Return the lines of the summary."""
    data = fit.data
    lines = [f"WARNING: {notice}" for notice in notices(fit)]
    lines.append(f"{fit.model} on {data.describe()}")
    if data.read_as:
        lines.append(f"read as: {data.read_as}")
    if data.left_out:
        lines.append(data.left_out)
    lines += row_lines(fit, "outcome")
    lines += fit.history.lines(data.n_comparisons, "comparison")
    lines += _leader_lines(fit)
    if line := tie_group_line(fit):
        lines.append(line)
    lines += context_lines(fit)
    if not data.sides_known:
        lines.append("side bias: not known, as the comparisons do not say which side items were on")
    elif line := side_line(fit):
        lines.append(line)
    for name, (value, low, high) in fit.coefficients.items():
        lines.append(
            f"covariate {shorten(name, 40)}: {value:+.3g} log odds per unit "
            f"(95% interval {low:+.3g} to {high:+.3g})"
        )
    if data.covariates and not fit.coefficients:
        lines.append(f"covariates: {fit.model} does not use them; pair-gpm does")
    lines += annotator_lines(fit)
    lines += _preference_lines(fit)
    if fit.p_serious is not None:
        n = int(np.count_nonzero(fit.p_serious < SPAMMER_BELOW))
        lines.append(f"comparisons: {n:,} of {data.n_comparisons:,} are probably not serious")
    return lines


def _leader_lines(fit: RankFit) -> list[str]:
    """Return who leads in each part, the largest first."""
    if fit.n_parts == 1:
        return [leader_line(fit)]
    sizes = np.bincount(fit.part)
    largest = np.argsort(-sizes, kind="stable")[:_MAX_NAMES].tolist()
    lines = [
        f"part {part + 1} ({counted(int(sizes[part]), 'item')}): {leader_line(fit, part)}"
        for part in largest
    ]
    more = fit.n_parts - len(largest)
    return [*lines, f"and {counted(more, 'further part')}"] if more else lines
