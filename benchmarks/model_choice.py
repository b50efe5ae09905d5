"""Whether the model that predicts held-out labels best is also the most accurate.

Prints Markdown tables of every model's held-out score on real labels and, where the truth is
known, of its accuracy and error.
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

# The scale of each dataset, which a file of numbers does not state.
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
Cells = dict[str, dict[str, str]]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.model_choice", description=__doc__)
    parser.add_argument("--data-dir", type=Path, required=True, help="folder of real labels")
    parser.add_argument("--sets", default=",".join(SCALES), help="names, separated by commas")
    options = parser.parse_args()

    names = options.sets.split(",")
    tables: dict[str, Cells] = {}
    for name in names:
        folder = options.data_dir / name
        # Only adult has repeated labels of one annotator on one item.
        duplicates = "last" if name == "adult" else "refuse"
        labels = read_labels(folder / "labels.csv", scale=SCALES[name], duplicates=duplicates)
        choice = choose(labels)
        print(f"{name}: {choice.why}", file=sys.stderr)
        scores = tables.setdefault("held-out score", {})
        scores[name] = {m: f"{heldout.score:.4f}" for m, heldout in choice.scores.items()}
        if (folder / "truth.csv").exists():
            for measure, row in against_truth(labels, folder / "truth.csv", choice).items():
                tables.setdefault(measure, {})[name] = row
        for rows in tables.values():
            if name in rows:
                rows[name][choice.model] = f"**{rows[name].get(choice.model, '')}**"
    for measure, rows in tables.items():
        head = [measure, *rows]
        body = [[m, *(row.get(m, "") for row in rows.values())] for m in PREFERENCE]
        compared = [line for line in body if any(line[1:])]
        print(f"\n{markdown_table(head, compared, n_left=1)}")
    return 0


def against_truth(labels: Labels, truth: Path, choice: Choice) -> Cells:
    """Return accuracy of classes and RMSE of grades for every model that was compared."""
    figures: Cells = {"accuracy": {}, "rmse": {}}
    has_classes = labels.n_categories < 20
    for model in choice.scores:
        measured = evaluate(fit_model(labels, model), truth, scores=not has_classes)
        for measure, row in figures.items():
            if measure in measured:
                row[model] = f"{measured[measure]:.4f}"
    return {measure: row for measure, row in figures.items() if row}


if __name__ == "__main__":
    sys.exit(main())
