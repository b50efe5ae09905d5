"""The experiments by their name on the command line, and claims that rest on several, or on none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from annotruth.errors import InputError
from annotruth.paper import error_curves, real_labels, simulated
from annotruth.paper.experiment import Claim, Experiment, ExperimentRun
from annotruth.paper.tables import MeanWithError, combine_verdicts, rmse_lead, verdict_of

# In the order of the paper; `all` runs these.
EXPERIMENTS = {
    each.name: each
    for each in (
        *(simulated.EXP1A, error_curves.EXP1B, error_curves.EXP1C, simulated.EXP1D),
        *(real_labels.DOG, real_labels.FACE, real_labels.MOVIE),
    )
}

# The experiments that compare models: by accuracy over items, and by RMSE over runs.
_BY_ACCURACY = ("dog", "face")
_BY_RMSE = ("exp1d", "movie")
_MODELS = real_labels.CLASS_MODELS | simulated.SCORE_MODELS

# Statement, section, model, the others that it is said to be ahead of, and in which experiments.
_LEADS = (
    (
        "the model always shows superior performance to the other models",
        "Abstract, Introduction, Conclusion",
        "gpm",
        ("dawid-skene", "glad", "ordinal-binary", "ordinal-mixture", "subject-bias"),
        (*_BY_RMSE, *_BY_ACCURACY),
    ),
    (
        "Majority and Mean fail where annotators are not equally reliable: GPM is ahead of them",
        "Introduction, Exp1-d",
        "gpm",
        ("majority", "mean"),
        (*_BY_RMSE, *_BY_ACCURACY),
    ),
    (
        "GPM is more robust than D&S on dog and face",
        "Face Emotion Identification",
        "gpm",
        ("dawid-skene",),
        _BY_ACCURACY,
    ),
    (
        "D&S is generally more reliable and robust than GLAD",
        "Related work",
        "dawid-skene",
        ("glad",),
        (*_BY_RMSE, *_BY_ACCURACY),
    ),
)

_STATEMENTS = (
    Claim(
        "higher values of the Hellinger distance indicate better performance",
        "Evaluation metrics",
        "the distance of a distribution from itself is 0, so lower is better; the printed formula "
        "also lacks its square",
        "does not hold",
    ),
    Claim(
        "the E-step computes the probability of a serious label from theta alone",
        "Parameter estimation, E-step",
        "the likelihood requires eps times theta; with it the printed accuracy of 0.6370 on face "
        "is reproduced",
        "does not hold",
    ),
    Claim(
        "EM is very sensitive to its start",
        "Parameter estimation",
        "the estimator has the paper's start alone",
        "not tested",
    ),
    Claim(
        "GLAD's probability of a correct label falls to 0.5 and not to 1/N as items get harder",
        "Related work",
        "a statement on the formula of a binary model",
        "not tested",
    ),
)


def find_experiments(name: str) -> list[Experiment]:
    """Return the experiment of that name, or all of them for "all"."""
    if name == "all":
        return [*EXPERIMENTS.values()]
    if name not in EXPERIMENTS:
        raise InputError(f"unknown experiment {name!r}: choose {', '.join(EXPERIMENTS)} or all")
    return [EXPERIMENTS[name]]


def general_claims(runs: Mapping[str, Sequence[ExperimentRun]]) -> list[Claim]:
    """Return the claims on several experiments, tested on the runs of each."""
    return [*(_lead_claim(runs, *lead) for lead in _LEADS), *_STATEMENTS]


def _lead_claim(
    runs: Mapping[str, Sequence[ExperimentRun]],
    statement: str,
    source: str,
    model: str,
    others: Sequence[str],
    experiments: Sequence[str],
) -> Claim:
    """Return the claim that a model is ahead of others in every experiment with both."""
    leads: dict[tuple[str, str], MeanWithError] = {}
    for name in experiments:
        own = runs.get(name, [])
        for other in others:
            if not own or not {model, other} <= own[0].results.keys():
                continue
            lead = real_labels.accuracy_lead if name in _BY_ACCURACY else rmse_lead
            leads[name, other] = lead(own, model, other)
    if not leads:
        return Claim(statement, source, "no experiment that compares them was run", "not tested")
    verdicts = {key: verdict_of(lead) for key, lead in leads.items()}
    listed = "; ".join(
        f"{name}, over {_MODELS[other]}: {lead} ({verdicts[name, other]})"
        for (name, other), lead in leads.items()
    )
    evidence = (
        f"lead of {_MODELS[model]} (in accuracy on dog and face, in RMSE elsewhere): {listed}"
    )
    return Claim(statement, source, evidence, combine_verdicts(verdicts.values()))
