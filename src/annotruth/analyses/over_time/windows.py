"""Windows of a few consecutive labels of an annotator, for tables of reliability over time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotruth.analyses.over_time.sequences import Sequences
from annotruth.kernels.arrays import Codes

_LABELS_PER_WINDOW, _MAX_WINDOWS = 5, 20


class Windows(NamedTuple):
    """Windows of the labels of sequences, which they divide evenly."""

    # the windows of sequence i are ``begin[i]:end[i]``
    begin: Codes
    end: Codes
    place: Codes  # the place of the first label of each window
    n_labels: Codes  # the number of labels of each window

    @classmethod
    def of(cls, sequences: Sequences) -> Windows:
        """Return the windows of sequences."""
        lengths = sequences.lengths
        n_windows = np.clip(lengths // _LABELS_PER_WINDOW, 1, _MAX_WINDOWS)
        end = np.cumsum(n_windows)
        begin = end - n_windows
        number = np.arange(end[-1]) - np.repeat(begin, n_windows)
        # Window w of m begins at the first position i of n with i m / n >= w.
        first, last = (
            -(-w * np.repeat(lengths, n_windows) // np.repeat(n_windows, n_windows))
            for w in (number, number + 1)
        )
        return cls(begin, end, np.repeat(sequences.begin, n_windows) + first, last - first)

    def take(self, chosen: NDArray[np.integer[Any]]) -> Windows:
        """Return the windows of some of the sequences, numbered as before."""
        return self._replace(begin=self.begin[chosen], end=self.end[chosen])

    def numbers(self) -> Codes:
        """Return the numbers of the windows of the sequences."""
        n_windows = self.end - self.begin
        numbers: Codes = np.arange(n_windows.sum()) + np.repeat(
            self.end - np.cumsum(n_windows), n_windows
        )
        return numbers
