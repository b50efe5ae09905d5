"""Labels of annotators in order of time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.latent_classes import LabelEvidence


@dataclass(frozen=True, eq=False)
class Sequences:
    """Labels sorted by annotator and, within one, in order of time; and sequences of them."""

    # S and I of each label, as in `annotruth.models.latent_classes.LabelEvidence`
    serious: Floats
    irregular: Floats
    # the labels of sequence i are ``begin[i]:end[i]``: those of an annotator, or a part of them
    begin: Codes
    end: Codes

    @classmethod
    def of(cls, evidence: LabelEvidence, order: Codes, begin: Codes, end: Codes) -> Sequences:
        """Return sequences of labels, whose places in the layout are ``order``."""
        return cls(evidence.if_serious[order], evidence.if_irregular[order], begin, end)

    @property
    def n(self) -> int:
        """The number of sequences."""
        return len(self.begin)

    @property
    def lengths(self) -> Codes:
        """The number of labels of each sequence."""
        return self.end - self.begin

    def take(self, chosen: NDArray[np.integer[Any]] | NDArray[np.bool_]) -> Sequences:
        """Return some of the sequences, of the same labels."""
        return Sequences(self.serious, self.irregular, self.begin[chosen], self.end[chosen])

    def positions(self) -> Codes:
        """Return the position of each label in its sequence, from 0, sequence after sequence."""
        if not self.n:
            return np.empty(0, dtype=np.int64)
        ends = np.cumsum(self.lengths)
        positions: Codes = np.arange(ends[-1]) - np.repeat(ends - self.lengths, self.lengths)
        return positions

    def places(self) -> Codes:
        """Return the place of each label of the sequences, sequence after sequence."""
        return np.repeat(self.begin, self.lengths) + self.positions()
