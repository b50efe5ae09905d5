"""Side bias of the language models that compared the responses of others."""

from __future__ import annotations

import numpy as np

from benchmarks.honesty.options import PartOptions, PartTable, TargetFigure
from benchmarks.pairs.fits import fit_votes
from benchmarks.pairs.sets import load_set

JUDGES = ("gpt-3", "gpt-4")
COLUMNS = ("side_bias", "side_bias_low", "side_bias_high")


def judges(options: PartOptions) -> list[PartTable]:
    """Report what a model says of two language models among human annotators."""
    files = ["comparisons.csv", *(f"{judge}.csv" for judge in JUDGES)]
    data = load_set(options.data() / "pairs-llmfao", *files)
    table = fit_votes(data, options.model).annotator_table()
    place = table["annotator"].to_pylist()
    outcome, annotator = data.outcome, data.annotator_of_comparison()
    rows = []
    for judge in JUDGES:
        entries = table.slice(place.index(judge), 1).to_pylist()[0]
        own = outcome[annotator == place.index(judge)]
        shares = [TargetFigure(float(np.mean(own == code)), digits=2) for code in range(3)]
        bias = [TargetFigure(entries[name]) if name in entries else "" for name in COLUMNS]
        reliability = (
            TargetFigure(entries["reliability"], digits=2) if "reliability" in entries else ""
        )
        said = [str(entries.get(name, "")) for name in ("behavior", "evidence")]
        rows.append(((judge,), [*shares, *bias, reliability, *said]))
    columns = ("left", "right", "tie", *COLUMNS, "reliability", "behavior", "evidence")
    description = (
        f"Two language models as annotators beside {data.n_annotators - len(JUDGES)} people "
        "(pairs-llmfao): shares of their outcomes, and what the model reports of them; a side bias is "
        "added to the log odds of the left item, with its 95% interval."
    )
    return [PartTable("Language models as annotators", description, ("annotator",), columns, rows)]
