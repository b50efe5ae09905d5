"""The shares of items in each shape of opinion, and their prior: neighbouring shapes are alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from annotruth.kernels.arrays import Floats

_PSEUDO_COUNT = 0.2  # items per shape

# Of the second differences of log-shares, where a concentration has this many means.
_DEVIATION, _DEVIATION_MEANS = 0.5, 16

_MAX_NEWTON_STEPS = 20
_TOL = 1e-9  # of the rise of the objective in a Newton step, per item


class ShapeShares:
    r"""The prior of the shares p of items in each shape, and their estimate from expected counts.

    Without a prior, the most likely shares are a few peaks, also where the truth is spread: an item's
    posterior is then too certain. So the second differences of :math:`\log p` along the n means of a
    concentration are Gaussian, with mean 0 and the standard deviation :math:`0.5 \, (16 / n)^{3/2}`,
    which is the same curvature for any n. This prior leaves the mean of the shares free, and that of
    a concentration; 0.2 pseudo-items per shape keep shares away from 0.

    Parameters
    ----------
    n_means
        How many means the shapes of each concentration have, in the order of the shapes.

    Examples
    --------
    >>> import numpy as np
    >>> from annotruth.models.robust_gpm.shape_shares import ShapeShares
    >>> counts = np.array([0.0, 0.0, 30.0, 0.0, 0.0, 0.0])
    >>> shares = ShapeShares([6]).estimate(counts, np.full(6, 1 / 6))
    >>> shares.round(2)
    array([0.  , 0.05, 0.88, 0.05, 0.01, 0.  ])
    """

    def __init__(self, n_means: Sequence[int]) -> None:
        n_shapes = sum(n_means)
        self._precision = np.zeros((n_shapes, n_shapes))
        first = 0
        for n in n_means:
            difference = np.diff(np.eye(n), 2, axis=0)
            deviation = _DEVIATION * (_DEVIATION_MEANS / n) ** 1.5
            block = slice(first, first + n)
            self._precision[block, block] = difference.T @ difference / deviation**2
            first += n

    def log_prior(self, shares: Floats) -> float:
        """Return the log-prior, up to a constant."""
        logs = np.log(shares)
        return float(_PSEUDO_COUNT * logs.sum() - 0.5 * logs @ self._precision @ logs)

    def estimate(self, counts: Floats, start: Floats) -> Floats:
        """Return the shares of the highest posterior, given how many items have each shape.

        Newton's method, which starts at some shares and never lowers the posterior.
        """
        counts = counts + _PSEUDO_COUNT
        total = counts.sum()

        def posterior(logs: Floats) -> float:
            return float(counts @ logs - 0.5 * logs @ self._precision @ logs)

        logs = np.log(start)
        value = posterior(logs)
        for _ in range(_MAX_NEWTON_STEPS):
            shares = np.exp(logs)
            gradient = counts - total * shares - self._precision @ logs
            # Without the term of normalisation, which only adds a constant to the direction.
            curvature = self._precision + np.diag(total * shares)
            direction = np.linalg.solve(curvature, gradient)
            length = 1.0
            while True:
                new = logs + length * direction
                new -= np.logaddexp.reduce(new)
                new_value = posterior(new)
                if new_value >= value or length < _TOL:
                    break
                length /= 2.0
            rise = new_value - value
            if rise <= 0.0:
                break
            logs, value = new, new_value
            if rise < _TOL * total:
                break
        shares = np.exp(logs)
        estimate: Floats = shares / shares.sum()
        return estimate
