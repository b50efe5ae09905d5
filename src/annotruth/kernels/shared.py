"""What kernels, their NumPy twins and models share; kernels have these constants in C++."""

from __future__ import annotations

from typing import Any

import numpy as np

MARGIN = 0.3
"""The least part of its distance from a bound that SQUAREM leaves to a share or probability."""

VARIANCE_MARGIN = 0.03
"""The same for variances, which return from their bound of 0."""

GLAD_MIN_CURVATURE = 0.1
"""The least curvature that a Newton step of GLAD on b assumes."""

GLAD_MAX_STEP = 1.0
"""The longest Newton step of GLAD on b."""

GLAD_MAX_HALVINGS = 60
"""How often a Newton step of GLAD is halved at most."""

GLAD_ROUNDING = 1e-13
"""A decrease of GLAD's f by less than this, relative to f, is rounding."""

NEVER = -1
"""The fold of labels that are never held out."""

NOT_SAMPLED = -2
"""The fold of labels whose items are left out of all folds."""

AGREEMENT_BINS = 1001
"""How many bins the share of an item's most frequent label is counted in."""

LEAST_LABEL_PROBABILITY = 1e-12
"""The least probability of a label when annotators are assessed, so that it has a logarithm."""

CAVITY_MOMENTS = 7
"""How many moments ``people.moments`` adds up."""

AGREEMENT_MOMENTS = 4
"""How many moments ``people.agreement`` adds up."""

VARIANCE_ROUNDING = 1e-12
"""How much worse than the safe variance that of Fisher scoring may be, relative to the likelihood.

At the optimum they are equal up to rounding, which would choose between them otherwise.
"""


def propose_variances(x: Any, n: Any, w: Any, w2: Any, w2r2: Any, floor: float) -> tuple[Any, Any]:
    r"""Return two new values of a variance x that n votes share, the rest of their variance fixed.

    Takes the sums of :math:`w, w^2, w^2 r^2` over the votes, as numbers or, for many variances,
    arrays. With :math:`R = \sum w^2 r^2 / \sum w`, the values are

    - a safe one, which never decreases the log-likelihood: of EM's
      :math:`x (1 + (R - 1) x \sum w / n)` and MM's :math:`x \sqrt R` the one farther from x. MM
      bounds :math:`-\log` by its tangent and :math:`1 / (x + y)` by convexity;
    - Fisher scoring's :math:`x + \sum (w^2 r^2 - w) / \sum w^2`, which converges fast, reaches the
      optimum in one step if the rest of the variance is 0, and may decrease the log-likelihood.

    Both are at least ``floor``. The bound increases from x to its optimum, so the safe value remains
    safe if it is cut off there.
    """
    ratio = w2r2 / w
    em = 1.0 + (ratio - 1.0) * x * w / n
    mm = np.sqrt(ratio)
    # Both factors are on the same side of 1, so either the maximum or the minimum is 1.
    factor = np.maximum(np.maximum(em, mm), 1.0) * np.minimum(np.minimum(em, mm), 1.0)
    return np.maximum(x * factor, floor), np.maximum(x + (w2r2 - w) / w2, floor)
