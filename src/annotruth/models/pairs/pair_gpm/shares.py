"""The probabilities of PairGPM's groups, tie rates and behaviors, as shares of annotators."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from annotruth.engines import Input, Pass, Session, Sum
from annotruth.kernels.arrays import Floats, inner
from annotruth.models.pairs.pair_gpm.parameters import PairGPMParameters
from annotruth.models.pairs.pair_gpm.states import States

COUNTS = ("group_count", "nu_count", "behavior_count")
"""The sums of a pass that count annotators by level."""

_GROUP_PRIOR = 1.0  # pseudo-counts of annotators
_NU_PRIOR = 2.0
_ROUNDS = 20  # of EM in one step


class LevelShares:
    """The M-step of the shares, from the posteriors that a step stores in ``by_level``.

    Shares of similar levels converge slowly by EM. Given everybody's posteriors, its rounds need no
    pass over the comparisons, so that a step takes several.

    Parameters
    ----------
    session
        Where the annotators' posteriors are.
    states, n_groups
        The levels.
    weight
        What each annotator counts; None if all count alike.

    Examples
    --------
    >>> from annotruth.comparisons import Comparisons
    >>> from annotruth.engines import get_engine
    >>> from annotruth.models.pairs.pair_gpm.parameters import states_for
    >>> votes = Comparisons.from_codes([0], [1], [0], [0], items=["a", "b"], annotators=["x"])
    >>> shares = LevelShares(get_engine("memory").open(votes), states_for(votes), n_groups=2)
    >>> shares.prior[:2]
    array([1., 1.])
    """

    def __init__(
        self, session: Session, states: States, n_groups: int, weight: Floats | None = None
    ) -> None:
        n_nu = len(states.nu)
        self._weight = weight
        self._session = session
        self._n_levels = np.array([n_groups, n_nu, len(states.eps)])
        self._bounds = np.cumsum(self._n_levels)[:-1]
        size = int(self._n_levels.sum())
        self.prior = np.concatenate(
            [np.full(n_groups, _GROUP_PRIOR), np.full(n_nu, _NU_PRIOR / n_nu), states.prior]
        )
        self._left_out = np.zeros(size)
        self._count = Pass(
            "pairs.gpm.add_counts",
            state=("by_level",),
            inputs=(Input("ratio"), Input("n_levels")),
            sums=(Sum("counts", (size,)),),
        )
        session.allocate("by_level", per="annotators", shape=(size,))

    def best(self, old: PairGPMParameters) -> list[Floats]:
        """Return new shares of groups, tie rates and behaviors.

        The shares of each are about the best if scores and the other shares stay as they were.
        """
        before = np.concatenate(old[2:])
        shares = before
        for _ in range(_ROUNDS):
            counts = self._session.run_pass(
                self._count, ratio=shares / before, n_levels=self._n_levels
            )["counts"]
            parts = np.split(counts + self.prior + self._left_out, self._bounds)
            shares = np.concatenate([part / part.sum() for part in parts])
        return np.split(shares, self._bounds)

    def log_prior(self, at: PairGPMParameters) -> float:
        """Return the log of the shares' prior; annotators who are left out count with their states."""
        return inner(self.prior + self._left_out, np.log(np.concatenate(at[2:])))

    def behaviors(self) -> Floats:
        """Return the posterior of every annotator's behavior, as of the last pass."""
        by_level: Floats = self._session.collect("by_level")
        return by_level[:, self._bounds[-1] :]

    def leave_out(self, annotators: NDArray[np.bool_]) -> None:
        """Count these annotators from now on by their states in the last pass."""
        by_level = self._session.collect("by_level")[annotators]
        if self._weight is not None:
            by_level = by_level * self._weight[annotators, np.newaxis]
        self._left_out = by_level.sum(axis=0)

    def add_left_out(self, sums: dict[str, Floats]) -> dict[str, Floats]:
        """Return the sums with the counts of annotators who are left out."""
        counts = np.split(self._left_out, self._bounds)
        return sums | {name: sums[name] + n for name, n in zip(COUNTS, counts, strict=True)}
