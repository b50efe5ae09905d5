"""Simulated pair comparisons: crowds of comparers with known scores and behaviors."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import InputError, option, shown
from annotruth.kernels.arrays import Codes, Floats
from annotruth.observations import LEFT, RIGHT, TIE, Comparisons
from annotruth.observations.pairs.votes import EXCHANGED
from annotruth.simulate.crowds import (
    check_choices,
    check_counts,
    check_memory,
    check_range,
    check_share,
    generator,
)

# What spammers do, in the order of their codes; "mixed" draws one per spammer.
_RANDOM, _ALWAYS_TIE = 0, 3
COMPARER_BEHAVIORS = (
    *("random", "always left", "always right", "always tie", "inverted"),
    "favours one item",
)
_SERIOUS = "serious"

# Memory at the peak of `comparers`, measured and rounded down.
_BYTES_PER_COMPARISON, _BYTES_PER_ANNOTATOR, _BYTES_PER_ITEM = 120, 150, 33


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparisonSimulation:
    """Simulated pair comparisons with the truth they were drawn from.

    Attributes
    ----------
    comparisons
        The comparisons; items, annotators and contexts are numbered from 1.
    scores
        The true score of every item, with mean 0 within each context.
    reliability
        Every annotator's probability of a serious comparison.
    behavior
        "serious", or what a spammer does when not serious.
    sharpness
        By how much every annotator multiplies differences of scores.
    favourite
        The code of the item that every annotator votes for if their behavior is
        "favours one item".
    serious
        Whether each comparison was serious, in the order of the codes in ``comparisons``.
    coefficients
        The effect of each covariate of ``comparisons``.

    Examples
    --------
    >>> from annotruth import simulate
    >>> made = simulate.comparers(n_items=10, n_annotators=5, comparisons_per_annotator=8)
    >>> made.comparisons
    Comparisons(40 comparisons of 10 items by 5 annotators)
    >>> made.scores.shape, made.behavior.tolist()
    ((10,), ['serious', 'serious', 'serious', 'always right', 'serious'])
    """

    comparisons: Comparisons
    scores: Floats
    reliability: Floats
    behavior: NDArray[np.str_]
    sharpness: Floats
    favourite: Codes
    serious: NDArray[np.bool_]
    coefficients: Mapping[str, float]

    @property
    def is_spammer(self) -> NDArray[np.bool_]:
        """Whether each annotator is a spammer."""
        is_spammer: NDArray[np.bool_] = self.behavior != _SERIOUS
        return is_spammer

    def tables(self) -> dict[str, pa.Table]:
        """Return the comparisons and the truth as tables: votes, truth and annotators."""
        data = self.comparisons
        annotators = {
            "annotator": data.annotators,
            "reliability": self.reliability,
            "behavior": self.behavior.tolist(),
            "sharpness": self.sharpness,
        }
        return {
            "votes": data.to_arrow(),
            "truth": pa.table({"item": data.items, "score": self.scores}),
            "annotators": pa.table(annotators),
        }


def comparers(
    *,
    n_items: int = 30,
    n_annotators: int = 40,
    comparisons_per_annotator: int = 40,
    behavior: str = "mixed",
    spammer_share: float = 0.2,
    reliability: tuple[float, float] = (0.9, 1.0),
    spammer_reliability: tuple[float, float] = (0.0, 0.2),
    score_spread: float = 1.0,
    sharpness_spread: float = 0.0,
    side_bias: float = 0.0,
    tie_rate: float = 0.0,
    n_contexts: int = 1,
    coefficients: Mapping[str, float] | None = None,
    seed: int | np.random.Generator = 0,
) -> ComparisonSimulation:
    """Simulate pair comparisons of items with true scores.

    A serious comparison of annotator s follows Davidson's model: with
    ``d = sharpness_s (score_left - score_right) + side_bias + coefficients . covariates``, the
    probabilities of left, right and tie are proportional to ``exp(d/2)``, ``exp(-d/2)`` and
    ``tie_rate``. Any other comparison follows the annotator's behavior. Pairs and their sides are
    drawn at random; an annotator may compare a pair more than once.

    Parameters
    ----------
    n_items, n_annotators, comparisons_per_annotator
        Size of the crowd and of its task.
    behavior : {"random", "always left", "always right", "always tie", "inverted", \
"favours one item", "mixed"}
        What spammers do when they are not serious. "random" draws an outcome, ties among them if
        there are ties; "inverted" is the serious outcome with sides swapped; "favours one item"
        votes for an item whenever it is shown and is random otherwise; "mixed" draws one of these
        per spammer. Annotators who are not spammers are random when not serious.
    spammer_share
        Share of annotators who are spammers, rounded to a whole number of them.
    reliability, spammer_reliability
        Lowest and highest probability of a serious comparison, of annotators and of spammers.
    score_spread
        Standard deviation of the scores.
    sharpness_spread
        Standard deviation of the logarithm of sharpness; 0: all annotators have sharpness 1.
    side_bias
        What is added to the log odds of the left item.
    tie_rate
        0: no ties; 1: a third of the comparisons of equal items are ties.
    n_contexts
        Items are divided evenly into contexts, such as scenes, and compared within them only.
    coefficients
        The effect of each covariate by name; covariates are standard normal.
    seed
        The same seed gives the same comparisons, byte for byte.
    """
    check_choices({"behavior": (*COMPARER_BEHAVIORS, "mixed")}, behavior=behavior)
    check_share(spammer_share=spammer_share)
    check_range(reliability=reliability, spammer_reliability=spammer_reliability)
    spreads = {"score_spread": score_spread, "sharpness_spread": sharpness_spread}
    _check_finite({**spreads, "tie_rate": tie_rate}, lowest=0.0)
    effects = dict(coefficients or {})
    _check_finite({"side_bias": side_bias})
    _check_finite(effects)
    _check_sizes(n_items, n_annotators, comparisons_per_annotator, n_contexts)
    rng = generator(seed)

    context_of_item = np.arange(n_items) % n_contexts
    scores = score_spread * rng.standard_normal(n_items)
    scores -= (np.bincount(context_of_item, scores) / np.bincount(context_of_item))[context_of_item]
    rng.permutation(n_annotators)  # keeps the crowd of each seed
    sharpness = np.exp(sharpness_spread * rng.standard_normal(n_annotators))
    is_spammer = rng.permutation(np.arange(n_annotators) < round(spammer_share * n_annotators))
    low, high = np.array([reliability, spammer_reliability])[is_spammer.astype(int)].T
    eps = low + (high - low) * rng.random(n_annotators)
    behavior_code = _behaviors(rng, is_spammer, behavior, has_ties=tie_rate > 0)

    annotator = np.repeat(np.arange(n_annotators), comparisons_per_annotator)
    left, right = _pairs(rng, len(annotator), n_items, n_contexts)
    covariates = {name: rng.standard_normal(len(annotator)) for name in effects}
    d = sharpness[annotator] * (scores[left] - scores[right]) + side_bias
    d += sum(effect * covariates[name] for name, effect in effects.items())
    serious_outcome = _davidson(rng, d, tie_rate)
    serious = rng.random(len(annotator)) < eps[annotator]

    first = np.arange(n_annotators) * comparisons_per_annotator  # the first of each annotator
    favourite = np.where(rng.integers(2, size=n_annotators) == LEFT, left[first], right[first])
    anything = rng.integers(3 if tie_rate > 0 else 2, size=len(annotator))
    own = favourite[annotator]
    favoured = np.where(left == own, LEFT, np.where(right == own, RIGHT, anything))
    constant = [np.full(len(annotator), outcome) for outcome in (LEFT, RIGHT, TIE)]
    inverted = EXCHANGED[serious_outcome]
    # In the order of COMPARER_BEHAVIORS.
    irregular = np.choose(behavior_code[annotator], (anything, *constant, inverted, favoured))
    comparisons = Comparisons.from_codes(
        left,
        right,
        annotator,
        np.where(serious, serious_outcome, irregular),
        items=pa.array(np.arange(1, n_items + 1)),
        annotators=pa.array(np.arange(1, n_annotators + 1)),
        covariates=covariates,
    )
    if n_contexts > 1:
        context = context_of_item[comparisons.left].astype(np.int32)
        contexts = pa.array(np.arange(1, n_contexts + 1))
        comparisons = replace(comparisons, contexts=contexts, context=context)
    return ComparisonSimulation(
        comparisons=comparisons,
        scores=scores,
        reliability=eps,
        behavior=np.where(is_spammer, np.array(COMPARER_BEHAVIORS)[behavior_code], _SERIOUS),
        sharpness=sharpness,
        favourite=favourite,
        serious=serious,
        coefficients=effects,
    )


def _behaviors(
    rng: np.random.Generator, is_spammer: NDArray[np.bool_], behavior: str, *, has_ties: bool
) -> Codes:
    """Return the code of what each annotator does when not serious."""
    if behavior == "mixed":
        codes = [code for code in range(len(COMPARER_BEHAVIORS)) if has_ties or code != _ALWAYS_TIE]
        drawn = rng.choice(codes, size=len(is_spammer))
    else:
        drawn = np.full(len(is_spammer), COMPARER_BEHAVIORS.index(behavior))
    return np.where(is_spammer, drawn, _RANDOM)


def _pairs(
    rng: np.random.Generator, n_pairs: int, n_items: int, n_contexts: int
) -> tuple[Codes, Codes]:
    """Draw pairs of different items of one context; item e is in context e % n_contexts."""
    left = rng.integers(n_items, size=n_pairs)
    context = left % n_contexts
    n_in_context = (n_items - context + n_contexts - 1) // n_contexts
    step = 1 + (rng.random(n_pairs) * (n_in_context - 1)).astype(np.int64)
    right = (left // n_contexts + step) % n_in_context * n_contexts + context
    return left, right


def _davidson(rng: np.random.Generator, d: Floats, tie_rate: float) -> Codes:
    """Draw outcomes with P(left, right, tie) proportional to (e^{d/2}, e^{-d/2}, tie_rate)."""
    # Divided by the larger of the first two, so that nothing overflows.
    half = np.abs(d) / 2
    better, worse, tie = np.ones_like(d), np.exp(-2 * half), tie_rate * np.exp(-half)
    left, right = np.where(d > 0, better, worse), np.where(d > 0, worse, better)
    drawn = rng.random(len(d)) * (left + right + tie)
    return np.where(drawn < left, LEFT, np.where(drawn < left + right, RIGHT, TIE))


def _check_sizes(
    n_items: int,
    n_annotators: int,
    comparisons_per_annotator: int,
    n_contexts: int,
) -> None:
    """Refuse sizes that no crowd can have, or that do not fit into memory."""
    check_counts(2, n_items=n_items)
    check_counts(
        1,
        n_annotators=n_annotators,
        comparisons_per_annotator=comparisons_per_annotator,
        n_contexts=n_contexts,
    )
    if n_items < 2 * n_contexts:
        raise InputError(
            f"n_contexts is {n_contexts}: {n_items} items make at most {n_items // 2} contexts of "
            "two or more"
        )
    check_memory(
        (_BYTES_PER_COMPARISON * comparisons_per_annotator + _BYTES_PER_ANNOTATOR) * n_annotators
        + _BYTES_PER_ITEM * n_items
    )


def _check_finite(given: Mapping[str, object], *, lowest: float = -np.inf) -> None:
    for name, value in given.items():
        if not (isinstance(value, Real) and lowest <= float(value) and np.isfinite(float(value))):
            what = "a number" if lowest < 0 else "a number of at least 0"
            raise InputError(f"{option(name)} is {shown(value)}: give {what}")
