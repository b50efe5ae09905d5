r"""Ord-bin: every threshold of the scale as a yes-no question."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from annotruth.engines import Input, Pass, Session, Sum
from annotruth.errors import InputError
from annotruth.kernels.arrays import Codes, Floats
from annotruth.labels import Labels, LabelSummary
from annotruth.models.base import Capabilities, IterativeEstimator
from annotruth.models.distribution import Distribution
from annotruth.models.em import History, Monitor
from annotruth.models.result import Fit
from annotruth.models.squarem import Squarem, probabilities
from annotruth.models.warm_start import off_bounds, with_new_rows

# Tables of this many numbers take 2 GB each.
_MOST_NUMBERS = 2**28
# With more thresholds than this, annotators have means alone and no columns for each.
_MOST_THRESHOLDS = 9


class OrdinalBinaryParameters(NamedTuple):
    """What the annotators share, annotators x thresholds, and how often truths lie above."""

    hit: Floats  # p(label above | truth above): the sensitivity
    miss: Floats
    false_alarm: Floats
    rejection: Floats  # p(label not above | truth not above): the specificity
    prevalence: Floats  # by threshold


_LOG_NAMES = tuple(f"log_{name}" for name in OrdinalBinaryParameters._fields)


@dataclass(kw_only=True)
class OrdinalBinary(IterativeEstimator["OrdinalBinarySteps"]):
    r"""Supervised learning from multiple experts: whom to trust when everyone lies a bit.

    Ord-bin asks of a scale 1..N, at every threshold c from 1 to N - 1, whether the truth
    :math:`z_e` lies above c. Annotator s answers with a sensitivity and a specificity of their
    own at every threshold, and a truth lies above it with probability :math:`p_c`:

    .. math::
        \alpha_{s,c} = p(r_{e,s} > c \mid z_e > c), \qquad
        \beta_{s,c} = p(r_{e,s} \le c \mid z_e \le c), \qquad p_c = p(z_e > c).

    The thresholds are fitted side by side by EM (Raykar, Yu, Zhao, Jerebko, Florin, Hermosillo
    Valadez, Bogoni and Moy, 2009; ordinal labels: Raykar, Yu, Zhao, Hermosillo Valadez, Florin,
    Bogoni and Moy, Learning from crowds, 2010). With :math:`y = [r_{e,s} > c]`:

    .. math::
        \text{E:}\quad \mu_{e,c} &= \frac{a_{e,c}\, p_c}{a_{e,c}\, p_c + b_{e,c} (1 - p_c)},
        \quad a_{e,c} = \prod_{s \in l_e} \alpha^{y} (1 - \alpha)^{1-y},
        \quad b_{e,c} = \prod_{s \in l_e} (1 - \beta)^{y} \beta^{1-y} \\
        \text{M:}\quad \alpha_{s,c} &= \frac{k + \sum_{e \in l_s} \mu_{e,c}\, y}
            {2k + \sum_{e \in l_s} \mu_{e,c}}, \quad
        \beta_{s,c} = \frac{k + \sum_{e \in l_s} (1 - \mu_{e,c}) (1 - y)}
            {2k + \sum_{e \in l_s} (1 - \mu_{e,c})}, \quad
        p_c = \frac{1}{E} \sum_e \mu_{e,c}.

    It starts with the share of an item's labels above c for :math:`\mu_{e,c}`, as the paper
    does. What rises at every step, and stops the loop when it changes by less than ``tol``, is
    the log-posterior of the rates that the step began with, summed over thresholds: the
    log-likelihood plus :math:`k \log \alpha (1 - \alpha) \beta (1 - \beta)`. The thresholds are
    taken as independent, though they are cuts of the same labels; so the log-likelihood, too, is
    a sum over questions and not comparable with that of models of the labels themselves.

    Independent thresholds may contradict each other (:math:`\mu_{e,2} > \mu_{e,1}`), which the
    paper leaves open. Each item's :math:`\mu_e` is replaced by the nearest falling sequence
    in squares (isotonic regression), and :math:`\theta_{e,n} = \mu_{e,n-1} - \mu_{e,n}`. Unlike
    a running minimum it is the same when the scale is read from the other end; its scores were
    also the closer ones to the truth on simulated crowds, film ratings and search grades.

    An item's label is the category of highest probability, an exact tie going to the first of
    the scale; its score is the expectation. A known truth fixes :math:`\mu_e`. Categories
    without an order are taken in the order of the scale, as the comparison in the GPM paper
    does; another order then gives another answer.

    There is no reliability: what comes nearest, the ``informedness``
    :math:`\alpha + \beta - 1`, is the probability of knowing the answer rather than guessing it,
    0 for someone whose labels have nothing to do with the truth and negative for one who inverts
    the scale; but people who are serious and of different opinions have one well below 1. It
    ranks annotators and is no probability of a serious label.

    `predict_proba` predicts a label above c with :math:`\mu_{e,c} \alpha_{s,c} + (1 - \mu_{e,c})
    (1 - \beta_{s,c})`. Where that would rise with c it is made falling, halfway between its
    running minimum from below and its running maximum from above, which are the nearest falling
    sequences under and over it; the differences are the categories.

    It believes in one true category an item and soon is sure of it. Where serious opinions differ,
    as on films, its scores order the items well but lie too far out: the mean is closer.

    Columns of the annotators: ``sensitivity``, ``specificity`` and ``informedness`` are means
    over the thresholds, weighted by :math:`p_c`, :math:`1 - p_c` and :math:`p_c (1 - p_c)`, and
    NaN where these are all 0. Up to 10 categories, ``sensitivity_3`` is how often they say 3
    or higher of an item that is 3 or higher, ``specificity_3`` how often they say less than 3 of
    an item that is less.

    Parameters
    ----------
    prior
        The pseudo-count k: before any label everybody has given k right and k wrong answers on
        either side of each threshold, the paper's Beta(k + 1, k + 1) prior. The paper names no
        value. 0 is maximum likelihood, which takes someone with two labels for infallible; 1 was
        better on five of eight real crowds, by up to 1.7% of the items, worse on three, by up to
        1.3%, and better on every simulated one.
    tol, max_iter
        The stopping rule and its cap; reaching the cap warns.
    acceleration
        Whether to leap ahead along EM's steps (`annotruth.models.squarem`) for fewer passes
        over the labels.
    engine
        Where the passes over the labels run.
    """

    name: ClassVar[str] = "ordinal-binary"
    capabilities: ClassVar[Capabilities] = Capabilities(ordinal_only=True)

    prior: float = 1.0

    def _check(self, labels: LabelSummary) -> None:
        if not 0 <= self.prior < math.inf:
            raise InputError(f"prior must be 0 or more, and finite, not {self.prior}")
        _check_size(labels, self.name)

    def _steps(self, labels: Labels, session: Session) -> OrdinalBinarySteps:
        return OrdinalBinarySteps(labels, session, self.prior)

    def _make_fit(
        self,
        labels: Labels,
        session: Session,
        steps: OrdinalBinarySteps,
        parameters: OrdinalBinaryParameters,
        history: History,
    ) -> Fit:
        return Fit(
            model=self.name,
            settings=self.settings(),
            data=labels,
            history=history,
            distribution=Distribution.of_dense(session.collect("theta")),
            annotator_columns=_columns(labels.scale.names, parameters),
            parameters={"hit": parameters.hit, "false_alarm": parameters.false_alarm},
        )

    def _predict_proba(self, item: Codes, annotator: Codes) -> Floats:
        fit, n = self.result_, self.result_.data.n_categories
        assert fit.distribution is not None
        theta = fit.distribution.rows(item, n)
        hit, false_alarm = (
            fit.parameter(name, fit.data.n_annotators, n - 1) for name in ("hit", "false_alarm")
        )
        mu = 1.0 - theta.cumsum(axis=1)[:, :-1]
        above = mu * hit[annotator] + (1.0 - mu) * false_alarm[annotator]
        above = np.clip(above, 0.0, 1.0)  # sums may round beyond
        under = np.minimum.accumulate(above, axis=1)
        over = np.maximum.accumulate(above[:, ::-1], axis=1)[:, ::-1]
        certain, impossible = np.ones((len(item), 1)), np.zeros((len(item), 1))
        falling = np.hstack([certain, (under + over) / 2.0, impossible])
        rows: Floats = falling[:, :-1] - falling[:, 1:]
        return rows


class OrdinalBinarySteps:
    """Ord-bin's equations over a session; theta is the only item-side array kept after a pass."""

    objective_name = "the log-posterior"

    def __init__(self, labels: Labels, session: Session, prior: float) -> None:
        self._session = session
        self._n_items = labels.n_items
        self._n_categories = labels.n_categories
        self._prior = prior

        thresholds = (labels.n_categories - 1,)
        rates = (labels.n_annotators, *thresholds)
        counts = (
            *(Sum(name, rates) for name in OrdinalBinaryParameters._fields[:4]),
            Sum("prevalence", thresholds),
        )
        log_likelihood = Sum("log_likelihood", thresholds)
        inputs = tuple(map(Input, (*_LOG_NAMES, "log_absence")))
        self._uninformed = OrdinalBinaryParameters(*(np.full(s.shape, 0.5) for s in counts))
        self._start = Pass("ordinal_binary.start", sums=counts)
        self._step = Pass("ordinal_binary.step", (), inputs, (*counts, log_likelihood))
        self._distribution = Pass(
            "ordinal_binary.distribution", ("theta",), inputs, (log_likelihood,)
        )

    def start(self) -> OrdinalBinaryParameters:
        """Return the rates for which mu are the observed shares."""
        return self._updated(self._uninformed, **self._session.run_pass(self._start))

    def resume(self, previous: Fit) -> OrdinalBinaryParameters:
        """Return the rates of a previous fit; new annotators start as in a first fit."""
        start = self.start()
        assert previous.distribution is not None
        shape = (previous.data.n_annotators, self._n_categories - 1)
        hit, false_alarm = (
            with_new_rows(off_bounds(previous.parameter(name, *shape)), getattr(start, name))
            for name in ("hit", "false_alarm")
        )
        theta = previous.distribution.dense(self._n_categories)
        prevalence = off_bounds(1.0 - theta.mean(axis=0).cumsum()[:-1])
        return OrdinalBinaryParameters(hit, 1.0 - hit, false_alarm, 1.0 - false_alarm, prevalence)

    def step(self, old: OrdinalBinaryParameters) -> tuple[OrdinalBinaryParameters, Monitor]:
        """Pass over the labels once, then update the rates."""
        sums = self._session.run_pass(self._step, **_logs(old))
        log_likelihood = float(sums.pop("log_likelihood").sum())
        objective = log_likelihood + self._log_prior(old)
        return self._updated(old, **sums), Monitor(log_likelihood, objective)

    def finalize(self, parameters: OrdinalBinaryParameters) -> float:
        """Compute the distribution of every item; return the log-likelihood."""
        self._session.allocate("theta", per="items", shape=(self._n_categories,))
        sums = self._session.run_pass(self._distribution, **_logs(parameters))
        return float(sums["log_likelihood"].sum())

    def acceleration(self) -> Squarem[OrdinalBinaryParameters]:
        """Extrapolate all rates."""
        return Squarem(_complementary, *(probabilities,) * len(OrdinalBinaryParameters._fields))

    def _updated(
        self,
        old: OrdinalBinaryParameters,
        hit: Floats,
        miss: Floats,
        false_alarm: Floats,
        rejection: Floats,
        prevalence: Floats,
    ) -> OrdinalBinaryParameters:
        return OrdinalBinaryParameters(
            *self._rates(hit, miss, old.hit, old.miss),
            *self._rates(false_alarm, rejection, old.false_alarm, old.rejection),
            prevalence / self._n_items,
        )

    def _rates(
        self, yes: Floats, no: Floats, old_yes: Floats, old_no: Floats
    ) -> tuple[Floats, Floats]:
        """Turn counts into rates; where there is nothing to count, any rate is as likely."""
        total = yes + no + 2 * self._prior
        some = total > 0
        return (
            np.divide(yes + self._prior, total, out=old_yes.copy(), where=some),
            np.divide(no + self._prior, total, out=old_no.copy(), where=some),
        )

    def _log_prior(self, parameters: OrdinalBinaryParameters) -> float:
        if self._prior == 0:
            return 0.0
        *rates, _ = parameters
        return self._prior * sum(float(np.log(rate).sum()) for rate in rates)


def _complementary(
    hit: Floats, miss: Floats, false_alarm: Floats, rejection: Floats, prevalence: Floats
) -> OrdinalBinaryParameters:
    """Return rates whose complements sum to 1: an extrapolation amplifies what rounding left."""
    above, below = hit + miss, false_alarm + rejection
    return OrdinalBinaryParameters(
        hit / above, miss / above, false_alarm / below, rejection / below, prevalence
    )


def _logs(parameters: OrdinalBinaryParameters) -> dict[str, Floats]:
    """Return the logarithms that the kernels take; that of 0 is -inf."""
    with np.errstate(divide="ignore"):
        logs = dict(zip(_LOG_NAMES, map(np.log, parameters), strict=True))
        return {**logs, "log_absence": np.log1p(-parameters.prevalence)}


def _columns(names: list[str], parameters: OrdinalBinaryParameters) -> dict[str, Floats]:
    """Tell what annotators do: over all thresholds, and at each where these are few."""
    sensitivity, specificity, p = parameters.hit, parameters.rejection, parameters.prevalence
    columns = {
        "sensitivity": _weighted(sensitivity, p),
        "specificity": _weighted(specificity, 1.0 - p),
        "informedness": _weighted(sensitivity + specificity - 1.0, p * (1.0 - p)),
    }
    if 1 < len(p) <= _MOST_THRESHOLDS:
        for c, upper in enumerate(names[1:]):
            columns[f"sensitivity_{upper}"] = sensitivity[:, c]
            columns[f"specificity_{upper}"] = specificity[:, c]
    return columns


def _weighted(values: Floats, weights: Floats) -> Floats:
    total = weights.sum()
    mean: Floats = values @ weights / total if total > 0 else np.full(len(values), np.nan)
    return mean


def _check_size(labels: LabelSummary, name: str) -> None:
    """Refuse tables that would not fit in memory."""
    for n_rows, rows in ((labels.n_items, "items"), (labels.n_annotators, "annotators")):
        if n_rows * labels.n_categories > _MOST_NUMBERS:
            gigabytes = n_rows * labels.n_categories * 8 / 1e9
            raise InputError(
                f"{name} keeps a number for each of {n_rows:,} {rows} x "
                f"{labels.n_categories:,} categories, {gigabytes:,.1f} GB, and takes at most "
                f"{_MOST_NUMBERS * 8 / 1e9:.1f}: merge categories, or choose the model gpm"
            )
