"""What advice rests on: how uncertain a fit's items are, and what more labels would gain."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from annotruth.advice.items import ItemAssessment
from annotruth.advice.latent_classes import LatentClassBasis
from annotruth.kernels.arrays import Floats
from annotruth.models.latent_classes import LatentClasses
from annotruth.models.registry import MODELS, get_model
from annotruth.models.result import Fit


class Basis(Protocol):
    """What advice asks of a fit."""

    @property
    def label_gain(self) -> Floats:
        """What one label by each annotator gains, up to a factor."""

    def assess(self, ask: NDArray[np.bool_]) -> ItemAssessment:
        """Return how uncertain each item is and what one label by those to ask would gain."""


def basis_of(fit: Fit) -> Basis:
    """Return the basis of a fit: its model's latent classes, or what every fit has.

    Nothing is fitted: parameters, distributions and labels are those of the fit.
    """
    classes = _latent_classes(fit)
    if classes is not None:
        return LatentClassBasis(fit, classes)
    from annotruth.advice.generic import OpinionBasis, ScoreBasis, one_coin_classes

    if fit.distribution is None:
        return ScoreBasis(fit)
    if fit.data.scale.is_ordinal:
        return OpinionBasis(fit)
    return LatentClassBasis(fit, one_coin_classes(fit))


def _latent_classes(fit: Fit) -> LatentClasses | None:
    """Return what the model supplies; a model that is not registered supplies nothing."""
    if fit.model not in MODELS:
        return None
    # The engine of the fit may not be at hand; the tolerance says which arithmetic it used.
    options = {name: value for name, value in fit.settings.items() if name != "engine"}
    return get_model(fit.model)(**options).load_fit(fit).latent_classes()
