"""Scores of a set of comparisons by our models."""

from __future__ import annotations

import warnings
from typing import Any

from annotruth.errors import AnnotruthWarning
from annotruth.models.pairs.registry import PAIR_MODELS, get_pair_model
from annotruth.models.result import RankFit
from annotruth.observations import Comparisons

REFERENCES = ("bradley-terry", "crowd-bt")
"""The models that others are compared with."""


def compared(model: str) -> list[str]:
    """Return the names of the reference models that are registered, then the model's."""
    return [*(name for name in REFERENCES if name in PAIR_MODELS and name != model), model]


def fit_votes(data: Comparisons, model: str, **options: Any) -> RankFit:
    """Fit a model, without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AnnotruthWarning)
        return get_pair_model(model)(**options).fit(data).result_
