"""annotruth's own models in crowd-kit's interface."""

from __future__ import annotations

from annotruth.crowdkit.model import ModelAggregator
from annotruth.models import gpm, robust_gpm


class _StoppingRule(ModelAggregator):
    """An aggregator whose options are the stopping rule of EM."""

    def __init__(
        self, n_iter: int = 1000, tol: float = 1e-4, random_state: int | None = None
    ) -> None:
        self.n_iter = n_iter
        self.tol = tol
        self.random_state = random_state


class GPM(_StoppingRule):
    """`annotruth.GPM`, for many labels per task.

    Parameters
    ----------
    n_iter, tol
        The maximum number of iterations, and the stopping rule of `annotruth.GPM`.
    random_state
        Has no effect: nothing is random.

    Examples
    --------
    >>> import pandas as pd
    >>> from annotruth.crowdkit import GPM
    >>> votes = [(f"t{t}", f"w{w}", "ab"[t % 2]) for t in range(4) for w in range(3)]
    >>> frame = pd.DataFrame(votes, columns=["task", "worker", "label"])
    >>> GPM().fit_predict(frame).tolist()
    ['a', 'b', 'a', 'b']
    """

    def _model(self) -> gpm.GPM:
        return gpm.GPM(max_iter=self.n_iter, tol=self.tol)


class RobustGPM(_StoppingRule):
    """`annotruth.RobustGPM`, the default model of annotruth.

    Parameters
    ----------
    n_iter, tol
        The maximum number of iterations, and the stopping rule of `annotruth.RobustGPM`.
    random_state
        Has no effect: results do not depend on a seed.

    Examples
    --------
    >>> import pandas as pd
    >>> from annotruth.crowdkit import RobustGPM
    >>> votes = [(f"t{t}", f"w{w}", "ab"[t % 2]) for t in range(4) for w in range(3)]
    >>> frame = pd.DataFrame(votes, columns=["task", "worker", "label"])
    >>> RobustGPM().fit_predict(frame).tolist()
    ['a', 'b', 'a', 'b']
    """

    def _model(self) -> robust_gpm.RobustGPM:
        return robust_gpm.RobustGPM(max_iter=self.n_iter, tol=self.tol)
