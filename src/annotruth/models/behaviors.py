"""What annotators do, in a word."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from annotruth.arrays import Floats
from annotruth.models.result import SPAMMER_BELOW


def behavior_names(categories: Sequence[str], eps: Floats, pi: Floats) -> list[str]:
    """Say what each annotator mostly does: serious, or what they do instead.

    ``pi`` is annotators x categories, or empty where behavior is uniform, which cannot tell one
    irregularity from another. A learned one is "repeated" when it puts on one label more than
    half of what lies between chance and certainty.
    """
    if not len(pi):
        return ["serious" if e >= SPAMMER_BELOW else "irregular" for e in eps]
    clear = (1.0 + 1.0 / len(categories)) / 2.0
    top, share = pi.argmax(axis=1), pi.max(axis=1)
    instead = np.where(share > clear, [f"repeated {categories[n]}" for n in top], "random")
    return ["serious" if e >= SPAMMER_BELOW else word for e, word in zip(eps, instead, strict=True)]
