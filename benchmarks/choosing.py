"""Does the model that predicts held-out labels best find the truth best? Markdown tables.

Held-out scores of every model on real labels, and beside them what each model gets right
where the truth is known.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from annotruth import choose, evaluate
from annotruth.io.readers import read_labels
from annotruth.labels import Labels, ScaleKind
from annotruth.paper.measures import fit_model
from annotruth.paper.tables import markdown_table
from annotruth.selection.choose import PREFERENCE, Choice

# What the labels are, which a file of numbers does not say.
SCALES: dict[str, ScaleKind] = {
    "face": "nominal",
    "dog": "nominal",
    "duck": "nominal",
    "product": "nominal",
    "rte": "nominal",
    "web": "ordinal",
    "adult": "ordinal",
    "emotion-0-100": "ordinal",
    "ftv": "ordinal",
    "movielens-100k": "ordinal",
}
Rows = dict[str, dict[str, str]]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.choosing", description=__doc__)
    parser.add_argument("--data-dir", type=Path, required=True, help="folder of real labels")
    parser.add_argument("--sets", default=",".join(SCALES), help="names with commas between")
    options = parser.parse_args()

    names = options.sets.split(",")
    tables: dict[str, Rows] = {}
    for name in names:
        folder = options.data_dir / name
        # In adult some annotators labelled an item again; elsewhere nobody should have.
        duplicates = "last" if name == "adult" else "refuse"
        labels = read_labels(folder / "labels.csv", scale=SCALES[name], duplicates=duplicates)
        choice = choose(labels)
        print(f"{name}: {choice.why}", file=sys.stderr)
        scores = tables.setdefault("held-out score", {})
        scores[name] = {m: f"{own.score:.4f}" for m, own in choice.scores.items()}
        if (folder / "truth.csv").exists():
            for measure, row in against_truth(labels, folder / "truth.csv", choice).items():
                tables.setdefault(measure, {})[name] = row
        for rows in tables.values():
            if name in rows:
                rows[name][choice.model] = f"**{rows[name].get(choice.model, '')}**"
    for measure, rows in tables.items():
        head = [measure, *rows]
        body = [[m, *(row.get(m, "") for row in rows.values())] for m in PREFERENCE]
        print(f"\n{markdown_table(head, [line for line in body if any(line[1:])], n_left=1)}")
    return 0


def against_truth(labels: Labels, truth: Path, choice: Choice) -> Rows:
    """Measure every model that could be compared: accuracy of classes, error of grades."""
    found: Rows = {"accuracy": {}, "rmse": {}}
    few = labels.n_categories < 20
    for model in choice.scores:
        measured = evaluate(fit_model(labels, model), truth, scores=not few)
        for measure, row in found.items():
            if measure in measured:
                row[model] = f"{measured[measure]:.4f}"
    return {measure: row for measure, row in found.items() if row}


if __name__ == "__main__":
    sys.exit(main())
