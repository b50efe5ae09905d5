"""What the paper says as a whole, or without an experiment of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from annotruth.paper import classes, exp1d
from annotruth.paper.base import Claim, Record
from annotruth.paper.findings import all_of, lead, negative, verdict
from annotruth.paper.tables import Figure

Runs = Mapping[str, Sequence[Record]]

# Where models are compared: the experiment, and what decides.
_BY_ITEMS = ("dog", "face")
_BY_RUNS = ("exp1d", "movie")
NAMES = classes.MODELS | exp1d.MODELS


def general_claims(runs: Runs) -> list[Claim]:
    """Judge the sentences that rest on several experiments, given the runs of each."""
    return [
        _compared(
            runs,
            "the model always shows superior performance to the other models",
            "Abstract, Introduction, Conclusion",
            "gpm",
            ["dawid-skene", "glad", "ordinal-binary", "ordinal-mixture", "subject-bias"],
        ),
        _compared(
            runs,
            "Majority and Mean fail where annotators are not equally reliable: GPM is ahead of them",
            "Introduction, Exp1-d",
            "gpm",
            ["majority", "mean"],
        ),
        _compared(
            runs,
            "GPM is more robust than D&S on dog and face",
            "Face Emotion Identification",
            "gpm",
            ["dawid-skene"],
            among=_BY_ITEMS,
        ),
        _compared(
            runs,
            "D&S is generally more reliable and robust than GLAD",
            "Related work",
            "dawid-skene",
            ["glad"],
        ),
        *STATEMENTS,
    ]


def _compared(
    runs: Runs,
    text: str,
    place: str,
    model: str,
    others: Sequence[str],
    among: Sequence[str] = (*_BY_RUNS, *_BY_ITEMS),
) -> Claim:
    """Judge whether a model is ahead of others wherever both were compared."""
    leads: dict[tuple[str, str], Figure] = {}
    for name in among:
        for other in others:
            records = runs.get(name, [])
            if not records or not {model, other} <= records[0].results.keys():
                continue
            if name in _BY_ITEMS:
                leads[name, other] = classes.ahead(records, model, other)
            else:
                leads[name, other] = negative(lead(records, "rmse", model, other))
    if not leads:
        return Claim(text, place, "no experiment that compares them was run", "not tested")
    verdicts = {key: verdict(gap) for key, gap in leads.items()}
    told = "; ".join(
        f"{name}, over {NAMES[other]}: {gap} ({verdicts[name, other]})"
        for (name, other), gap in leads.items()
    )
    found = f"lead of {NAMES[model]} (in accuracy on dog and face, in RMSE elsewhere): {told}"
    return Claim(text, place, found, all_of(*verdicts.values()))


STATEMENTS = (
    Claim(
        "higher values of the Hellinger distance indicate better performance",
        "Evaluation metrics",
        "the distance of a distribution from itself is 0, so lower is better; the printed formula "
        "also lacks its square",
        "does not hold",
    ),
    Claim(
        "the E-step weighs a label's being serious by its probability under theta alone",
        "Parameter estimation, E-step",
        "the likelihood calls for eps times theta; with it the printed accuracy of 0.6370 on face "
        "comes out",
        "does not hold",
    ),
    Claim(
        "EM is very sensitive to its start",
        "Parameter estimation",
        "the estimator has the paper's start alone",
        "not tested",
    ),
    Claim(
        "GLAD's probability of a right answer falls to 0.5 and not to 1/N as items get harder",
        "Related work",
        "a statement on the formula of a binary model",
        "not tested",
    ),
)
