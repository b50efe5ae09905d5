"""The arrays that everything here passes around, by what they hold."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
"""Probabilities, scores, sums."""

Codes: TypeAlias = NDArray[np.int64]
"""Places in a list: of items, annotators, categories, cells."""
