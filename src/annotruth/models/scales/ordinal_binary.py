"""Ord-bin: every threshold of the scale as a binary classification."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from annotruth.engines import Input, Pass, Session, Sum
from annotruth.errors import InputError
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.base import IterativeEstimator
from annotruth.models.em import Monitor
from annotruth.models.registry import Capabilities
from annotruth.models.squarem import Squarem, probabilities
from annotruth.observations import Labels, LabelSummary

_MAX_NUMBERS = 2**28  # in one array: 2 GB
_MAX_THRESHOLDS = 9  # with more, annotators have no columns per threshold, only means


class OrdinalBinaryParameters(NamedTuple):
    """Rates of the annotators, annotators x thresholds, and the prevalence per threshold."""

    hit: Floats  # p(label above | truth above): the sensitivity
    miss: Floats
    false_alarm: Floats
    rejection: Floats  # p(label not above | truth not above): the specificity
    prevalence: Floats  # p(truth above), per threshold


_LOG_NAMES = tuple(f"log_{name}" for name in OrdinalBinaryParameters._fields)


@dataclass(kw_only=True)
class OrdinalBinary(IterativeEstimator["OrdinalBinarySteps"]):
    r"""Ord-bin: sensitivity and specificity of annotators at every threshold of the scale.

    Raykar, Yu, Zhao, Jerebko, Florin, Hermosillo Valadez, Bogoni and Moy, "Supervised learning from
    multiple experts: whom to trust when everyone lies a bit" (2009); for ordinal labels: Raykar, Yu,
    Zhao, Hermosillo Valadez, Florin, Bogoni and Moy, "Learning from crowds" (2010). On a scale 1..N,
    each threshold c from 1 to N - 1 divides the truths :math:`z_e` into those above c and those not
    above. Annotator s has a sensitivity and a specificity at every threshold:

    .. math::
        \alpha_{s,c} = p(r_{e,s} > c \mid z_e > c), \qquad
        \beta_{s,c} = p(r_{e,s} \le c \mid z_e \le c), \qquad p_c = p(z_e > c).

    The thresholds are fitted in parallel by EM. With :math:`y = [r_{e,s} > c]`:

    .. math::
        \text{E:}\quad \mu_{e,c} &= \frac{a_{e,c}\, p_c}{a_{e,c}\, p_c + b_{e,c} (1 - p_c)},
        \quad a_{e,c} = \prod_{s \in l_e} \alpha^{y} (1 - \alpha)^{1-y},
        \quad b_{e,c} = \prod_{s \in l_e} (1 - \beta)^{y} \beta^{1-y} \\
        \text{M:}\quad \alpha_{s,c} &= \frac{k + \sum_{e \in l_s} \mu_{e,c}\, y}
            {2k + \sum_{e \in l_s} \mu_{e,c}}, \quad
        \beta_{s,c} = \frac{k + \sum_{e \in l_s} (1 - \mu_{e,c}) (1 - y)}
            {2k + \sum_{e \in l_s} (1 - \mu_{e,c})}, \quad
        p_c = \frac{1}{E} \sum_e \mu_{e,c}.

    The start, as in the paper: :math:`\mu_{e,c}` is the share of the item's labels above c. The
    objective, whose change below ``tol`` stops the loop, is the log-posterior of the rates that the
    step began with, summed over thresholds: the log-likelihood plus
    :math:`k \log \alpha (1 - \alpha) \beta (1 - \beta)`. Thresholds are treated as independent,
    although they are cuts of the same labels; so the log-likelihood is a sum over binary problems,
    and not comparable with that of models of the labels themselves.

    Independent thresholds may contradict each other, which the paper leaves open. Each item's
    :math:`\mu_e` is replaced by the closest non-increasing sequence in least squares, and
    :math:`\theta_{e,n} = \mu_{e,n-1} - \mu_{e,n}`.

    An item's score is the expectation. Nominal categories are taken in the order of the scale, as in the
    comparison of the GPM paper; the result then depends on that order. There is no reliability: the closest quantity is the ``informedness``
    :math:`\alpha + \beta - 1`, 0 for labels that are independent of the truth and negative for an
    inverted scale. `predict_proba` predicts a label above c with probability :math:`\mu_{e,c}
    \alpha_{s,c} + (1 - \mu_{e,c}) (1 - \beta_{s,c})`, made non-increasing in c.

    The model assumes one true category per item, and is soon certain of it. Where serious opinions
    differ, as on films, its scores rank items well but are too extreme: the mean is closer.

    Columns of the annotators: ``sensitivity``, ``specificity`` and ``informedness`` are means
    over the thresholds, weighted by :math:`p_c`, :math:`1 - p_c` and :math:`p_c (1 - p_c)`, and
    NaN where all weights are 0. With up to 10 categories, ``sensitivity_3`` is the rate of labels
    of 3 or higher on items of 3 or higher, ``specificity_3`` the rate of labels below 3 on items
    below 3.

    Parameters
    ----------
    prior
        The pseudo-count k: every annotator starts with k correct and k wrong labels on either side
        of each threshold. With 0, maximum likelihood, someone with two correct labels is infallible.
    tol, max_iter, acceleration, engine
        As in `annotruth.models.base.EMEstimator`.

    Examples
    --------
    >>> import annotruth as at
    >>> votes = [(item, name, 1 + item % 3) for item in range(30) for name in ("ann", "bob", "cem")]
    >>> votes += [(item, "eve", 3 - item % 3) for item in range(30)]  # inverts the scale
    >>> fit = at.OrdinalBinary().fit(votes).result_
    >>> fit.item_table()["label"].to_pylist()[:3]
    [1, 2, 3]
    >>> fit.annotator_table()["informedness"].to_numpy().round(1).tolist()
    [0.9, 0.9, 0.9, -0.4]
    """

    name: ClassVar[str] = "ordinal-binary"
    capabilities: ClassVar[Capabilities] = Capabilities(ordinal_only=True)
    parameter_axes: ClassVar[Mapping[str, str] | None] = {
        "hit": "annotator threshold",
        "false_alarm": "annotator threshold",
    }
    item_arrays: ClassVar[tuple[str, ...]] = ("theta",)

    prior: float = 1.0

    def _check(self, labels: LabelSummary) -> None:
        if not 0 <= self.prior < math.inf:
            raise InputError(f"prior must be 0 or more, and finite, not {self.prior}")
        _check_size(labels, self.name)

    def _steps(self, labels: Labels, session: Session) -> OrdinalBinarySteps:
        return OrdinalBinarySteps(labels, session, self.prior)

    def _estimates(
        self, steps: OrdinalBinarySteps, parameters: OrdinalBinaryParameters
    ) -> dict[str, Any]:
        return {
            "annotator_columns": _columns(steps.labels.scale.names, parameters),
            "parameters": {"hit": parameters.hit, "false_alarm": parameters.false_alarm},
        }

    def _predict_proba(self, item: Codes, annotator: Codes) -> Floats:
        fit, n = self.result_, self.result_.data.n_categories
        assert fit.distribution is not None
        theta = fit.distribution.rows(item, n)
        hit, false_alarm = (
            fit.parameter(name, fit.data.n_annotators, n - 1) for name in ("hit", "false_alarm")
        )
        mu = 1.0 - theta.cumsum(axis=1)[:, :-1]
        above = mu * hit[annotator] + (1.0 - mu) * false_alarm[annotator]
        above = np.clip(above, 0.0, 1.0)  # rounding
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
        self.labels = labels
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
        """Return the rates of the M-step in which mu are the observed shares."""
        return self._updated(self._uninformed, **self._session.run_pass(self._start))

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
        """Return the rates of counts; without any counts, the old rates, as all are equally likely."""
        total = yes + no + 2 * self._prior
        return (
            np.divide(yes + self._prior, total, out=old_yes.copy(), where=total > 0),
            np.divide(no + self._prior, total, out=old_no.copy(), where=total > 0),
        )

    def _log_prior(self, parameters: OrdinalBinaryParameters) -> float:
        if self._prior == 0:
            return 0.0
        *rates, _ = parameters
        return self._prior * sum(float(np.log(rate).sum()) for rate in rates)


def _complementary(
    hit: Floats, miss: Floats, false_alarm: Floats, rejection: Floats, prevalence: Floats
) -> OrdinalBinaryParameters:
    """Return rates that sum to 1 with their complements, as extrapolation amplifies rounding."""
    above, below = hit + miss, false_alarm + rejection
    return OrdinalBinaryParameters(
        hit / above, miss / above, false_alarm / below, rejection / below, prevalence
    )


def _logs(parameters: OrdinalBinaryParameters) -> dict[str, Floats]:
    """Return the logarithms of the parameters, the inputs of the kernels; that of 0 is -inf."""
    with np.errstate(divide="ignore"):
        logs = dict(zip(_LOG_NAMES, map(np.log, parameters), strict=True))
        return {**logs, "log_absence": np.log1p(-parameters.prevalence)}


def _columns(names: list[str], parameters: OrdinalBinaryParameters) -> dict[str, Floats]:
    """Return the columns of the annotators: means over thresholds, and rates if these are few."""
    sensitivity, specificity, p = parameters.hit, parameters.rejection, parameters.prevalence
    columns = {
        "sensitivity": _weighted_mean(sensitivity, p),
        "specificity": _weighted_mean(specificity, 1.0 - p),
        "informedness": _weighted_mean(sensitivity + specificity - 1.0, p * (1.0 - p)),
    }
    if 1 < len(p) <= _MAX_THRESHOLDS:
        for c, upper in enumerate(names[1:]):
            columns[f"sensitivity_{upper}"] = sensitivity[:, c]
            columns[f"specificity_{upper}"] = specificity[:, c]
    return columns


def _weighted_mean(values: Floats, weights: Floats) -> Floats:
    total = weights.sum()
    mean: Floats = values @ weights / total if total > 0 else np.full(len(values), np.nan)
    return mean


def _check_size(labels: LabelSummary, name: str) -> None:
    """Refuse labels whose arrays would not fit in memory."""
    for n_rows, rows in ((labels.n_items, "items"), (labels.n_annotators, "annotators")):
        if n_rows * labels.n_categories > _MAX_NUMBERS:
            gigabytes = n_rows * labels.n_categories * 8 / 1e9
            raise InputError(
                f"{name} needs an array of {n_rows:,} {rows} x {labels.n_categories:,} categories, "
                f"{gigabytes:,.1f} GB (at most {_MAX_NUMBERS * 8 / 1e9:.1f} GB): merge categories, "
                "or choose the model gpm"
            )
