"""`SetModel`: a model of answers that are sets of labels."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from annotruth.engines import Engine, get_engine
from annotruth.errors import InputError, function, option, shown
from annotruth.io.readers import load_labels, reading_stage
from annotruth.kernels.arrays import Floats
from annotruth.models import base_fit
from annotruth.models.em import EMLoop, ProgressCallback, check_loop_options, run_em, start_stage
from annotruth.models.fits.make_fit import MAX_CANONICAL_LABELS, fit_of_original
from annotruth.models.options import OptionsBase
from annotruth.models.result import Fit, is_fit
from annotruth.models.storage.folder import refuse_sets
from annotruth.observations import Labels
from annotruth.observations.sets import members
from annotruth.sets.choice import MAX_TYPES, TypesChoice, choose_types
from annotruth.sets.fit import with_separator
from annotruth.sets.readout import estimate_annotators, joint_sets
from annotruth.sets.steps import SetParameters, SetSteps

_MAX_BYTES = 4e9
_PARAMETER_AXES = {
    **dict.fromkeys(("sensitivity", "specificity"), "annotator label"),
    **dict.fromkeys(("crowd_sensitivity", "crowd_specificity"), "label"),
    "irregular": "annotator",
    "theta": "type label",
    "types": "type",
}


@dataclass(kw_only=True)
class SetModel(OptionsBase):
    r"""A model of answers that are sets of labels.

    Item e has the label l (:math:`t_{e,l} = 1`) or not. Annotator s gives a label that is present with
    probability :math:`a_{s,l}`, the sensitivity, and leaves out one that is absent with probability
    :math:`b_{s,l}`, the specificity, independently given t. Both are pooled over annotators and labels
    (`annotruth.sets.steps`), so that a rare label or an annotator of few answers has the level of others.
    An annotator is serious, or irregular with probability :math:`q_s`: irregular ones give label l at
    a rate of their own, whatever the item is, and count as much less,
    :math:`r_{e,l} = \sum_s (1 - q_s) \log \frac{p_s(x_{e,s,l} \mid t=1)}{p_s(x_{e,s,l} \mid t=0)}`.

    Labels go together or exclude each other through types of items: an item is of type k with probability
    :math:`\pi_k`, and has the label l then with probability :math:`\theta_{k,l}`. One type is independence.
    The number of types is the one that predicts held-out answers best. The equations of the E-step are in
    `annotruth.kernels.reference.sets.presence`. Rates, q and types follow from the expected counts, by EM.

    Annotators may err alike, and their rates are estimates, so that answers say less than independent
    ones of known annotators would. Posterior odds are therefore raised to a power up to 1, the one that
    predicts held-out answers best (`SetParameters.tempered`).

    The answer is the most likely set (`annotruth.sets.readout`), and its confidence is the probability that
    this is exactly the set. :math:`p_l` is the probability that the item has the label l.

    Parameters
    ----------
    n_types
        The number of types of items; None chooses it.
    tol, max_iter
        The stopping rule and the maximum number of iterations; reaching it warns.
    engine
        Where the passes over the answers run: memory or reference.

    Examples
    --------
    >>> import annotruth as at
    >>> made = at.simulate.sets(n_items=60, n_annotators=8, n_labels=3, seed=1)
    >>> fit = SetModel().fit(made.answers)
    >>> fit.items().columns.tolist()
    ['item', 'n_answers', 'labels', 'confidence', 'p_1', 'p_2', 'p_3']
    """

    name: ClassVar[str] = base_fit.SETS
    fits: ClassVar[str] = "sets"

    n_types: int | None = None
    tol: float = 1e-5
    max_iter: int = 500
    engine: str | Engine = "memory"

    def fit(self, answers: Labels, *, progress: ProgressCallback | None = None) -> Fit:
        """Fit the model to labels whose categories are sets (``Labels.of(..., sets=True)``)."""
        self._check_option_types()
        check_loop_options(tol=self.tol, max_iter=self.max_iter)
        self.check_engine()
        _check(answers, self.n_types)
        if answers.n_labels > MAX_CANONICAL_LABELS:
            return self._fit(answers, progress)
        # In canonical order, so that names and the order of rows change nothing.
        reordered = answers.reordered(answers.canonical_orders(keep_categories=True)[0])
        fit = self._fit(reordered.labels, progress)
        item = np.argsort(reordered.order.item)
        return replace(
            fit_of_original(fit, answers, [reordered], _PARAMETER_AXES),
            **{name: getattr(fit, name)[item] for name in ("probability", "sets", "confidence")},
        )

    def check_engine(self) -> None:
        """Refuse an engine that is not on this machine."""
        engine = get_engine(self.engine)
        if engine.name not in ("memory", "reference"):
            raise InputError(
                f"sets of labels are fitted on the engines memory and reference only, not on "
                f"{engine.name}: leave out {option('engine')}"
            )

    def _fit(self, answers: Labels, progress: ProgressCallback | None) -> Fit:
        loop = EMLoop(self.tol, self.max_iter)
        choice = choose_types(answers, self.n_types, loop, engine=self.engine, progress=progress)
        start_stage(progress, f"fitting {self.name}")
        with closing(get_engine(self.engine).open(answers)) as session:
            steps = SetSteps(answers, session)
            parameters, history = run_em(steps, steps.start(), loop, progress=progress)
            if choice.n_types > 1:
                begin = steps.with_types(parameters, choice.n_types)
                parameters, history = run_em(steps, begin, loop, progress=progress)
            own = steps.own_rates()
            people = estimate_annotators(parameters, steps.counts(parameters), own)
            evidence, posterior = steps.tempered(parameters, choice.power)
        member = members(answers.scale).astype(np.float64)
        known = answers.known.astype(np.int64)
        tempered = parameters.tempered(choice.power)
        joint = joint_sets(evidence, known, member, tempered.theta, tempered.types)
        return Fit(
            model=self.name,
            settings=self.settings(),
            data=answers,
            history=history,
            probability=np.clip(posterior, 0.0, 1.0),
            sets=joint.sets,
            confidence=joint.probability,
            p_serious=_p_serious(answers, member, parameters, posterior, people.reliability, own),
            reliability=people.reliability,
            low=people.low,
            high=people.high,
            behavior=people.behavior,
            annotator_columns=people.columns,
            parameters={
                "sensitivity": parameters.present,
                "specificity": parameters.absent,
                "crowd_sensitivity": parameters.sensitivity.crowd(),
                "crowd_specificity": parameters.specificity.crowd(),
                "irregular": parameters.irregular,
                "theta": parameters.theta,
                "types": parameters.types,
            },
            chosen={"why": _why(choice, self.n_types)},
            fitted_at=base_fit.now(),
        )


def fit_sets(request: Any, data: Any) -> Fit:
    """Return the fit of answers, which may have been read already, as `annotruth.fit` was asked for."""
    model, read, refused = request.model, request.read, dict(request.special)
    if not isinstance(data, Labels):  # of answers that were read already, it was refused then
        refused["annotator_prior"] = request.annotator_prior
    for name, value in refused.items():
        if value is not None:
            raise InputError(f"{option(name)} is not for sets of labels: leave it out")
    if model in (None, SetModel.name):
        SetModel.check_options(request.options)
        model = SetModel(**request.options)
    if not isinstance(model, SetModel):
        name = model if isinstance(model, str) else getattr(model, "name", type(model).__name__)
        raise InputError(
            f"these answers are sets of labels, which {name} does not fit: leave out {option('model')}"
        )
    model.check_engine()
    if read.memory is not None:
        raise InputError(_needs_memory())
    if is_fit(data):
        refuse_sets()
    if getattr(data, "kind", "") != "sets":
        start_stage(request.progress, reading_stage(data))
        data = load_labels(data, read, gold=request.gold)
    return with_separator(model.fit(data, progress=request.progress), read.separator)


def _needs_memory() -> str:
    return f"sets of labels need all answers in memory: leave out {option('memory')}"


def _check(answers: Labels, n_types: int | None) -> None:
    kind = getattr(answers, "kind", None)
    if kind not in ("labels", "sets"):
        raise InputError(
            f"answers are {shown(answers)}: give sets of labels, or fit with {function('fit')} and "
            f"{option('sets', True)}"
        )
    if kind == "labels":
        raise InputError(f"these are labels, not sets of labels: pass {option('sets', True)}")
    if answers.on_disk:
        raise InputError(_needs_memory())
    if answers.annotator_prior is not None or answers.classifier is not None:
        raise InputError("sets of labels take no annotator_prior and no classifier: leave them out")
    if n_types is not None and not 1 <= n_types <= MAX_TYPES:
        raise InputError(f"n_types is {n_types}: give a number from 1 to {MAX_TYPES}")
    assert answers.scale.set_labels is not None
    n_bytes = (
        8.0 * len(answers.scale.set_labels) * (4 * answers.n_items + 20 * answers.n_annotators)
    )
    if n_bytes > _MAX_BYTES:
        raise InputError(
            f"{answers.n_items:,} items x {len(answers.scale.set_labels):,} labels need "
            f"{n_bytes / 1e9:.1f} GB (at most {_MAX_BYTES / 1e9:g}): leave out rare labels"
        )


def _p_serious(
    answers: Labels,
    member: Floats,
    parameters: SetParameters,
    posterior: Floats,
    reliability: Floats,
    own: Floats,
) -> Floats:
    """Return the probability that each answer was serious.

    It compares a typical serious annotator's answer to the item with one of the annotator's own rates.
    """
    hit, reject = parameters.sensitivity.crowd(), parameters.specificity.crowd()
    given = member[answers.category_of_label()] > 0.0
    present = posterior[answers.item_of_label()]
    rate = present * hit + (1.0 - present) * (1.0 - reject)
    usual = own[answers.annotator]
    serious = np.where(given, np.log(rate), np.log1p(-rate)).sum(axis=1)
    irregular = np.where(given, np.log(usual), np.log1p(-usual)).sum(axis=1)
    share = np.clip(reliability[answers.annotator], 1e-6, 1.0 - 1e-6)
    p: Floats = expit(np.log(share / (1.0 - share)) + serious - irregular)
    return p


def _why(choice: TypesChoice, n_types: int | None) -> str:
    """Return how types and power were chosen, in one line."""
    what = "1 type of items: labels are independent of each other"
    if choice.n_types > 1:
        what = f"{choice.n_types} types of items, in which labels go together"
    how = f"best for {choice.n_held_out:,} held-out answers"
    if n_types is not None:
        how = "given"
    elif not choice.n_held_out:
        how = "too few answers to hold some out"
    if choice.power < 1.0:
        return f"{what} ({how}); posterior odds to the power {choice.power:g}, by the same answers"
    return f"{what} ({how})"
