"""Scores of a set of comparisons: by our models, and by other packages where they are installed."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from annotruth.errors import AnnotruthWarning
from annotruth.kernels.arrays import Floats
from annotruth.models.pairs.registry import PAIR_MODELS, get_pair_model
from annotruth.models.result import RankFit
from annotruth.observations import LEFT, RIGHT, TIE, Comparisons

REFERENCES = ("bradley-terry", "crowd-bt")
"""The models that others are compared with, where the package has them."""


def compared(model: str) -> list[str]:
    """Return the names of the reference models that are registered, then the model's."""
    return [*(name for name in REFERENCES if name in PAIR_MODELS and name != model), model]


def fit_votes(data: Comparisons, model: str, **options: Any) -> RankFit:
    """Fit a model, without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AnnotruthWarning)
        return get_pair_model(model)(**options).fit(data).result_


def peers() -> dict[str, Callable[[Comparisons], Floats]]:
    """Return the packages that are installed, as functions from comparisons to scores."""
    known = {
        "choix": ("choix: Bradley-Terry", choix_scores),
        "evalica": ("evalica: Bradley-Terry", evalica_scores),
        "crowdkit": ("crowd-kit: NoisyBradleyTerry", crowd_kit_scores),
    }
    return {
        title: scores
        for package, (title, scores) in known.items()
        if importlib.util.find_spec(package) is not None
    }


def choix_scores(data: Comparisons) -> Floats:
    """Return the scores of choix: minorise-maximise, with its regularisation at 0.01; no ties."""
    import choix

    left_wins, decided = data.outcome == LEFT, data.outcome != TIE
    winner = np.where(left_wins, data.left, data.right)[decided]
    loser = np.where(left_wins, data.right, data.left)[decided]
    pairs = list(zip(winner.tolist(), loser.tolist(), strict=True))
    return np.asarray(choix.opt_pairwise(data.n_items, pairs, alpha=0.01))


def evalica_scores(data: Comparisons) -> Floats:
    """Return the logarithms of evalica's scores; items that were not compared score 0."""
    import evalica

    winners = {
        LEFT: evalica.Winner.X,
        RIGHT: evalica.Winner.Y,
        TIE: evalica.Winner.Draw,
    }
    result = evalica.bradley_terry(
        data.left.tolist(), data.right.tolist(), [winners[n] for n in data.outcome.tolist()]
    )
    scores = np.zeros(data.n_items)
    scores[result.scores.index.to_numpy()] = np.log(result.scores.to_numpy())
    return scores


def crowd_kit_scores(data: Comparisons) -> Floats:
    """Return the scores of crowd-kit's NoisyBradleyTerry with its defaults; no ties."""
    import pandas as pd
    from crowdkit.aggregation import NoisyBradleyTerry

    frame = pd.DataFrame(
        {
            "worker": data.annotator_of_comparison(),
            "left": data.left,
            "right": data.right,
            "label": np.where(data.outcome == LEFT, data.left, data.right),
        }
    )[data.outcome != TIE]
    scores = NoisyBradleyTerry(random_state=0).fit_predict(frame)
    dense = np.zeros(data.n_items)
    dense[scores.index.to_numpy()] = scores.to_numpy()
    return dense
