"""Claims of the paper that rest on several experiments, or on none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from annotruth.paper import classification, exp1d
from annotruth.paper.claim_tests import (
    combine_verdicts,
    negate,
    paired_difference,
    verdict_of,
)
from annotruth.paper.experiment import Claim, ExperimentRun
from annotruth.paper.tables import MeanWithError

RunsByExperiment = Mapping[str, Sequence[ExperimentRun]]

# The experiments that compare models: by accuracy over items, and by RMSE over runs.
_BY_ACCURACY = ("dog", "face")
_BY_RMSE = ("exp1d", "movie")
MODELS = classification.MODELS | exp1d.MODELS


def general_claims(runs: RunsByExperiment) -> list[Claim]:
    """Return the claims on several experiments, tested on the runs of each."""
    return [
        _lead_claim(
            runs,
            "the model always shows superior performance to the other models",
            "Abstract, Introduction, Conclusion",
            "gpm",
            ["dawid-skene", "glad", "ordinal-binary", "ordinal-mixture", "subject-bias"],
        ),
        _lead_claim(
            runs,
            "Majority and Mean fail where annotators are not equally reliable: GPM is ahead of them",
            "Introduction, Exp1-d",
            "gpm",
            ["majority", "mean"],
        ),
        _lead_claim(
            runs,
            "GPM is more robust than D&S on dog and face",
            "Face Emotion Identification",
            "gpm",
            ["dawid-skene"],
            experiments=_BY_ACCURACY,
        ),
        _lead_claim(
            runs,
            "D&S is generally more reliable and robust than GLAD",
            "Related work",
            "dawid-skene",
            ["glad"],
        ),
        *STATEMENTS,
    ]


def _lead_claim(
    runs: RunsByExperiment,
    statement: str,
    source: str,
    model: str,
    others: Sequence[str],
    experiments: Sequence[str] = (*_BY_RMSE, *_BY_ACCURACY),
) -> Claim:
    """Return the claim that a model is ahead of others in every experiment with both."""
    leads: dict[tuple[str, str], MeanWithError] = {}
    for name in experiments:
        own = runs.get(name, [])
        for other in others:
            if not own or not {model, other} <= own[0].results.keys():
                continue
            if name in _BY_ACCURACY:
                leads[name, other] = classification.accuracy_lead(own, model, other)
            else:
                leads[name, other] = negate(paired_difference(own, "rmse", model, other))
    if not leads:
        return Claim(statement, source, "no experiment that compares them was run", "not tested")
    verdicts = {key: verdict_of(lead) for key, lead in leads.items()}
    listed = "; ".join(
        f"{name}, over {MODELS[other]}: {lead} ({verdicts[name, other]})"
        for (name, other), lead in leads.items()
    )
    evidence = f"lead of {MODELS[model]} (in accuracy on dog and face, in RMSE elsewhere): {listed}"
    return Claim(statement, source, evidence, combine_verdicts(verdicts.values()))


STATEMENTS = (
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
