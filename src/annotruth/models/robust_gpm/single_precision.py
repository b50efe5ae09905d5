"""RobustGPM's round of opinions in single precision, for labels so many that passes take long."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from annotruth.engines import Pass, Session, share_out
from annotruth.kernels import strategies as kernels
from annotruth.kernels.arrays import Floats, Singles, on_lines
from annotruth.kernels.simd.simd32 import WIDE
from annotruth.labels import LabelSummary
from annotruth.models.robust_gpm.steps import Aside, Counts, Opinions, Parameters, Swept
from annotruth.models.robust_gpm.strategies import Strategies

MANY = 1 << 17
"""From how many labels on a pass in single precision is worth its rounding."""

_FINEST = 1e-6  # the least tol for it: rounding moves the bound per label by 1e-8
_AT_ONCE = 256  # annotators that one thread takes


def opinions_of(
    labels: LabelSummary, session: Session, tol: float, aside: Aside | None = None
) -> Opinions:
    """Choose the round by how much there is to do, and how finely."""
    quick = labels.n_labels >= MANY and tol >= _FINEST
    return (QuickOpinions if quick else Opinions)(labels, session, aside)


class QuickOpinions(Opinions):
    """Opinions whose tables, counts and weights of ways are singles.

    The log-likelihood and what all annotators share stay doubles. The steps are those of
    `Opinions` to six digits. Work on annotators is cut into pieces that depend on their number
    alone and shared out, so that results are the same on any number of threads.
    """

    def __init__(self, labels: LabelSummary, session: Session, aside: Aside | None = None) -> None:
        super().__init__(labels, session, aside)
        people, _, kinds = self.counts_shape
        ways = self.ways(self.gate)
        self.sweep = Pass(
            "robust_shapes.step",
            (),
            (self.counts_shape, (kinds,), (1,)),
            shared_by=(None, 0),
            sums_by=(0, None, None),
            single=1,
        )
        self._plain, self._repeating = _singles(ways.log_plain), _singles(ways.log_repeating)
        # Beside the first of the always serious all others are near 0, and so rounded less.
        apart = ways.log_plain - ways.log_plain[ways.eps.argmax()]
        self._apart = _filled_up(apart.reshape(len(apart), -1).T)
        self._beyond = _filled_up((ways.log_repeating - ways.log_plain).transpose(1, 2, 0))
        self._log_rates = on_lines(self.counts_shape, np.float32)
        self._divergence = np.empty(people)

    def swept(self, at: Parameters, ways: Strategies) -> Swept:
        """Pass the labels once."""
        self._mix(at, ways)
        counts, kinds, (total,) = self.session.run_pass(
            self.sweep, self._begin(at.prior), self._log_rates
        )
        return Swept(Counts(counts, kinds), float(total), float(self._divergence.sum()))

    def support(self, at: Parameters, ways: Strategies) -> Floats:
        """Sum each annotator's log-likelihood in every way, from the others' labels."""
        self._mix(at, ways)
        sweep = Pass(
            "robust_shapes.support",
            (),
            (at.weights.shape,),
            shared_by=(None, 0, None, None, 0),
            sums_by=(0,),
        )
        by_kind = (_filled_up(table.transpose(1, 2, 0)) for table in (ways.plain, ways.repeating))
        support, *_ = self.session.run_pass(
            sweep, self._begin(at.prior), self._log_rates, *by_kind, self.repeated
        )
        return support

    def _mix(self, at: Parameters, ways: Strategies) -> None:
        """Tabulate what labels say of kinds, and how far ways are from their prior."""
        weights = np.ascontiguousarray(at.weights, dtype=np.float32)
        log_prior = _filled_up(self.log_prior(at.always, ways), kernels.NEVER)

        def mix(lo: int, hi: int) -> None:
            kernels.mix(
                lo,
                hi,
                weights,
                log_prior,
                self._plain,
                self._repeating,
                self.repeated,
                self._log_rates,
                self._divergence,
            )

        self._by_annotators(mix)

    def weights(self, counts: Floats, ways: Strategies, log_prior: Floats) -> Singles:
        """Weigh each annotator's ways by the counts."""
        singles = np.ascontiguousarray(counts, dtype=np.float32)
        prior = _filled_up(log_prior, kernels.NEVER)
        flat = singles.reshape(len(singles), -1)
        weights = np.empty((len(singles), len(ways.eps)), dtype=np.float32)

        def weigh(lo: int, hi: int) -> None:
            sums = flat[lo:hi] @ self._apart
            kernels.weigh(lo, hi, sums, singles, prior, self._beyond, self.repeated, weights)

        self._by_annotators(weigh)
        return weights

    def _begin(self, prior: Floats) -> Singles:
        """Return the log-prior of kinds with what each known truth says, and without."""
        log_prior = np.log(prior)
        return _singles(np.vstack([log_prior + np.log(self.gate), log_prior]))

    def _by_annotators(self, task: Callable[[int, int], None]) -> None:
        """Share out the annotators, some at a time."""
        people = self.counts_shape[0]

        def work(turn: int) -> None:
            task(turn * _AT_ONCE, min((turn + 1) * _AT_ONCE, people))

        share_out(self.session, work, -(-people // _AT_ONCE))


def _singles(values: Floats) -> Singles:
    out = on_lines(values.shape, np.float32)
    out[:] = values
    return out


def _filled_up(values: Floats, value: float = 0.0) -> Singles:
    """Make rows as long as a multiple of 32."""
    *shape, width = values.shape
    out = on_lines((*shape, -(-width // WIDE) * WIDE), np.float32)
    out[..., :width] = values
    out[..., width:] = value
    return out
