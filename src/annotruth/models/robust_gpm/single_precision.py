"""RobustGPM's round of opinions in single precision, for labels so many that passes take long."""

from __future__ import annotations

import numpy as np

from annotruth.engines import Input, Pass, Session, Sum
from annotruth.kernels.arrays import Floats, Singles, on_lines
from annotruth.kernels.robust_gpm_single import LOG_ZERO, pad
from annotruth.labels import LabelSummary
from annotruth.models.robust_gpm.steps import Counts, Opinions, Parameters, Swept
from annotruth.models.robust_gpm.strategies import Strategies


def opinions_of(labels: LabelSummary, session: Session, tol: float) -> Opinions:
    """Return the opinions' steps in the precision that the engine chooses."""
    return (QuickOpinions if session.single_precision(tol) else Opinions)(labels, session)


class QuickOpinions(Opinions):
    """Opinions whose tables, counts and weights of ways are singles.

    The log-likelihood and what all annotators share stay doubles. The steps are those of
    `Opinions` to six digits. Work on annotators is cut into pieces that depend on their number
    alone and shared out, so that results are the same on any number of threads.
    """

    def __init__(self, labels: LabelSummary, session: Session) -> None:
        super().__init__(labels, session)
        people, _, kinds = self.counts_shape
        ways = self.ways(self.gate)
        self._count_single = Pass(
            "robust_gpm_single.step",
            inputs=(Input("log_prior"), Input("log_rates", annotator_axis=0)),
            sums=(
                Sum("counts", self.counts_shape, annotator_axis=0, single_precision=True),
                Sum("kinds", (kinds,)),
                Sum("log_likelihood", (1,)),
            ),
        )
        self._plain, self._repeating = _singles(ways.log_plain), _singles(ways.log_repeating)
        # Beside the first of the always serious all others are near 0, and so rounded less.
        apart = ways.log_plain - ways.log_plain[ways.eps.argmax()]
        self._apart = pad(apart.reshape(len(apart), -1).T)
        self._beyond = pad((ways.log_repeating - ways.log_plain).transpose(1, 2, 0))
        self._log_rates = on_lines(self.counts_shape, np.float32)
        self._divergence = np.empty(people)

    def swept(self, at: Parameters, ways: Strategies) -> Swept:
        """Pass the labels once."""
        self._mix(at, ways)
        sums = self.session.run_pass(
            self._count_single, log_prior=self._begin(at.prior), log_rates=self._log_rates
        )
        counts = Counts(sums["counts"], sums["kinds"])
        return Swept(counts, float(sums["log_likelihood"][0]), float(self._divergence.sum()))

    def support(self, at: Parameters, ways: Strategies) -> Floats:
        """Sum each annotator's log-likelihood in every way, from the others' labels."""
        self._mix(at, ways)
        one = Pass(
            "robust_gpm_single.leave_one_out",
            inputs=(
                *(Input("log_prior"), Input("log_rates", annotator_axis=0)),
                *(Input("plain"), Input("repeating"), Input("repeated", annotator_axis=0)),
            ),
            sums=(Sum("log_likelihood", at.weights.shape, annotator_axis=0),),
        )
        plain, repeating = (pad(table.transpose(1, 2, 0)) for table in (ways.plain, ways.repeating))
        sums = self.session.run_pass(
            one,
            log_prior=self._begin(at.prior),
            log_rates=self._log_rates,
            plain=plain,
            repeating=repeating,
            repeated=self.repeated,
        )
        return sums["log_likelihood"]

    def _mix(self, at: Parameters, ways: Strategies) -> None:
        """Tabulate what labels say of kinds, and how far ways are from their prior."""
        weights = np.ascontiguousarray(at.weights, dtype=np.float32)
        log_prior = pad(self.log_prior(at.always, ways), LOG_ZERO)

        self.session.run_over_annotators(
            "robust_gpm_single.mix",
            len(weights),
            weights,
            log_prior,
            self._plain,
            self._repeating,
            self.repeated,
            self._log_rates,
            self._divergence,
        )

    def weights(self, counts: Floats, ways: Strategies, log_prior: Floats) -> Singles:
        """Weigh each annotator's ways by the counts."""
        singles = np.ascontiguousarray(counts, dtype=np.float32)
        prior = pad(log_prior, LOG_ZERO)
        flat = singles.reshape(len(singles), -1)
        weights = np.empty((len(singles), len(ways.eps)), dtype=np.float32)

        self.session.run_over_annotators(
            "robust_gpm_single.strategy_weights",
            len(singles),
            flat,
            self._apart,
            singles,
            prior,
            self._beyond,
            self.repeated,
            weights,
        )
        return weights

    def _begin(self, prior: Floats) -> Singles:
        """Return the log-prior of kinds with what each known truth says, and without."""
        log_prior = np.log(prior)
        return _singles(np.vstack([log_prior + np.log(self.gate), log_prior]))


def _singles(values: Floats) -> Singles:
    out = on_lines(values.shape, np.float32)
    out[:] = values
    return out
