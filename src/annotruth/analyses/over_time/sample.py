"""Labels of some annotators, from which what concerns the whole crowd is learned."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats
from annotruth.observations import Labels

MAX_LABELS = 100_000
"""Of more labels, about so many are used, if these are of enough annotators."""

_MIN_ANNOTATORS = 100


class Sample(NamedTuple):
    """Labels in order of time, of some annotators."""

    place: Codes  # the place of each label among the sorted labels
    sequence: Codes  # the number of its annotator, from 0
    position: Codes  # its position among the annotator's labels, from 0
    # S and I, as in `annotruth.models.latent_classes.LabelEvidence`
    serious: Floats
    irregular: Floats
    # the annotator's reliability at the label without its own evidence: of a constant annotator,
    # and by the model of changes
    constant: Floats
    changing: Floats

    @property
    def difference(self) -> Floats:
        """S - I of each label."""
        return self.serious - self.irregular

    def log_gains(self) -> Floats:
        """Return how much more probable labels are by the model of changes, as logs."""
        changing, constant = (
            np.log(self.irregular + reliability * self.difference)
            for reliability in (self.changing, self.constant)
        )
        gains: Floats = changing - constant
        return gains

    def p_serious(self) -> Floats:
        """Return the probability that each label is serious, by the model of changes."""
        serious = self.changing * self.serious
        p: Floats = serious / (serious + (1.0 - self.changing) * self.irregular)
        return p


def sample_annotators(labels: Labels) -> NDArray[np.bool_]:
    """Return which annotators are in the sample: all, or of many labels every second, third, ..."""
    step = min(-(-labels.n_labels // MAX_LABELS), max(labels.n_annotators // _MIN_ANNOTATORS, 1))
    sampled = np.zeros(labels.n_annotators, dtype=np.bool_)
    sampled[::step] = True
    return sampled
