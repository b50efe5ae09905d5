"""Fits of comparisons with everything a fit can have, made up where the test needs no estimate."""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from annotruth import simulate
from annotruth.models.pairs.bradley_terry import BradleyTerry
from annotruth.models.pairs.summary import TOO_FEW_VOTES
from annotruth.models.result import RankFit
from annotruth.observations import Comparisons


def votes(*rows, sides_known=True) -> Comparisons:
    """Return comparisons of rows (left, right, annotator, outcome)."""
    left, right, annotator, outcome = zip(*rows, strict=True)
    items, codes = np.unique([*left, *right], return_inverse=True)
    people, who = np.unique(annotator, return_inverse=True)
    return Comparisons.from_codes(
        codes[: len(left)],
        codes[len(left) :],
        who,
        [("left", "right", "tie").index(word) for word in outcome],
        items=items.tolist(),
        annotators=people.tolist(),
        sides_known=sides_known,
    )


def plain_fit(*rows, **options) -> RankFit:
    return BradleyTerry().fit(votes(*rows, **options)).result_


def full_fit(**options) -> RankFit:
    """Return Bradley-Terry's scores of a simulated crowd with its true reliabilities."""
    given = {
        "n_items": 12,
        "n_annotators": 20,
        "comparisons_per_annotator": 30,
        "tie_rate": 0.3,
        "side_bias": 0.5,
        "seed": 3,
    }
    made = simulate.comparers(**{**given, **options})
    fit = BradleyTerry().fit(made.comparisons).result_
    n, reliability = fit.data.n_annotators, made.reliability
    behavior = made.behavior.tolist()
    behavior[-1] = TOO_FEW_VOTES
    side = np.linspace(-1.0, 1.0, n)
    return replace(
        fit,
        reliability=reliability,
        low=np.maximum(reliability - 0.1, 0.0),
        high=np.minimum(reliability + 0.1, 1.0),
        behavior=behavior,
        p_serious=np.where(made.serious, 0.9, 0.1),
        coefficients={"length": np.array([0.2, 0.1, 0.3])},
        annotator_columns={
            "sharpness": np.linspace(0.5, 2.0, n),
            "side_bias": side,
            "side_bias_low": side - 0.3,
            "side_bias_high": side + 0.3,
            "evidence": pa.array([f"voted left {s} of 30 times" for s in range(n)]),
        },
    )
