"""iBCC: Dawid and Skene's model with a prior that favours right labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from annotruth.labels import LabelSummary
from annotruth.models.confusion.dirichlet import DIRICHLET_AXES, DirichletEquations
from annotruth.models.confusion.estimator import LatentClassEstimator
from annotruth.models.options import check_positive


@dataclass(kw_only=True)
class IBCC(LatentClassEstimator):
    r"""iBCC, independent Bayesian classifier combination: confusion matrices with a prior.

    Kim and Ghahramani, "Bayesian Classifier Combination", AISTATS 2012; variational inference as in
    Simpson, Roberts, Psorakis and Smith, "Dynamic Bayesian Combination of Multiple Imperfect
    Classifiers" (2013). Items have one of N classes with shares p, and annotator s gives an item of
    class k the label l with probability :math:`\pi_{s,k,l}`, as in `annotruth.DawidSkene`, with

    .. math:: p \sim \text{Dirichlet}(\alpha, \ldots, \alpha), \qquad
        \pi_{s,k} \sim \text{Dirichlet}(\beta_{k,1}, \ldots, \beta_{k,N}).

    The posterior is approximated by independent classes, shares and matrices:
    :math:`q(p) = \text{Dirichlet}(\nu)`, :math:`q(\pi_{s,k}) = \text{Dirichlet}(\mu_{s,k})`, and
    :math:`T_{e,k} = q(z_e = k)`:

    .. math::
        T_{e,k} &\propto \exp\Bigl(\psi(\nu_k) - \psi(\sum_j \nu_j)
        + \sum_{s \in l_e} \bigl[\psi(\mu_{s,k,r_{e,s}}) - \psi(\sum_l \mu_{s,k,l})\bigr]
        \Bigr) \\
        \nu_k &= \alpha + \sum_e T_{e,k}, \qquad
        \mu_{s,k,l} = \beta_{k,l} + \sum_{e \in l_{s,l}} T_{e,k}.

    The start is the observed shares for T. The evidence lower bound increases with every step, and
    ``tol`` is compared with its change per label. The log-likelihood of the history is that of the
    geometric means of p and :math:`\pi`, with classes summed out.

    The papers leave the prior to the user. The default is that of the comparisons by Li, Rubinstein
    and Cohn (ICML 2019): :math:`\alpha = 1`, :math:`\beta_{k,l} = 1`, and
    :math:`\beta_{k,k} = 4`, three more right labels per annotator and class.

    An item's distribution is the final :math:`T_e`; its label is the class of highest probability,
    and an exact tie goes to the category that comes first on the scale. A known truth fixes T. An
    annotator's reliability is the expected share of their labels that are the item's class,
    :math:`\sum_{e \in l_s} T_{e,r_{e,s}} / |l_s|`; ``confusion_`` has the posterior means of
    :math:`\pi`.

    Labels of an item are independent given its class. Where errors of annotators are correlated,
    probabilities are too high, as in all models of this kind.

    Parameters
    ----------
    alpha
        :math:`\alpha`, pseudo-count of items per class.
    diagonal, off_diagonal
        :math:`\beta_{k,k}` and :math:`\beta_{k,l}`, pseudo-counts of labels per annotator and
        class.
    tol, max_iter
        The stopping rule and the maximum number of iterations; reaching it warns.
    acceleration
        Whether to extrapolate EM's steps (`annotruth.models.squarem`) for fewer passes over the
        labels.
    engine
        Where the passes over the labels run.

    Examples
    --------
    >>> import annotruth as at
    >>> labels = [(item, name, "cat" if item % 2 else "dog") for item in range(6) for name in "abc"]
    >>> labels += [(item, "eve", "cat") for item in range(6)]
    >>> model = at.IBCC().fit(labels)
    >>> model.confusion_[3].round(2).tolist()  # eve: one row per class, one column per label
    [[0.88, 0.12], [0.5, 0.5]]
    """

    name: ClassVar[str] = "ibcc"
    parameter_axes: ClassVar[Mapping[str, str] | None] = DIRICHLET_AXES

    alpha: float = 1.0
    diagonal: float = 4.0
    off_diagonal: float = 1.0

    def _check(self, labels: LabelSummary) -> None:
        check_positive(alpha=self.alpha, diagonal=self.diagonal, off_diagonal=self.off_diagonal)
        super()._check(labels)

    def _equations(self, labels: LabelSummary) -> DirichletEquations:
        return DirichletEquations(
            labels,
            class_prior=self.alpha,
            diagonal=self.diagonal,
            off_diagonal=self.off_diagonal,
        )
