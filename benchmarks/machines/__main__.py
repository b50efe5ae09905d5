"""Print what is found of machines: `python -m benchmarks.machines [--data-dir DIR] [--runs N]`.

Simulated machines, independent and dependent: how often independence is rejected, and the correlation
that is found. Copies of a machine: how far they move the consensus. The two language models of llmfao
beside its people.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import annotruth as at
from annotruth.io.readers import load_comparisons
from annotruth.observations.options import ReadOptions

_NAMES = ("cat", "dog", "fox")


def class_rows(
    seed: int, n_items: int, per_item: int, correlation: float
) -> list[tuple[str, str, str]]:
    """Return labels of 20 people who are right 75% of the time, and of 3 machines, 80%."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n_items)

    def draw(accuracy: float) -> Any:
        wrong = (truth + rng.integers(1, 3, size=n_items)) % 3
        return np.where(rng.random(n_items) < accuracy, truth, wrong)

    people = [draw(a) for a in np.clip(rng.normal(0.75, 0.1, 20), 0.4, 0.97)]
    shared = draw(0.8)
    machines = [
        np.where(rng.random(n_items) < np.sqrt(correlation), shared, draw(0.8)) for _ in range(3)
    ]
    rows = []
    for e in range(n_items):
        rows += [
            (f"i{e}", f"p{s}", _NAMES[people[s][e]])
            for s in rng.choice(20, per_item, replace=False)
        ]
        rows += [(f"i{e}", f"machine-{k + 1}", _NAMES[m[e]]) for k, m in enumerate(machines)]
    return rows


def opinion_labels(seed: int, n_items: int, per_item: int, correlation: float) -> at.Labels:
    """Return ratings of a simulated crowd and of 3 machines."""
    crowd = at.simulate.crowd(n_items=n_items, n_annotators=20, labels_per_item=per_item, seed=seed)
    return at.simulate.with_machines(crowd, correlation=correlation, seed=seed)


def simulate_dependence(runs: int) -> None:
    """Print how often three machines are found to depend on one another, and their correlation."""
    machines = [f"machine-{k}" for k in (1, 2, 3)]
    print("scale     items x labels  correlation  any pair flagged  found (mean, sd)  covered")
    for name, make in (("classes", class_rows), ("opinions", opinion_labels)):
        for n_items, per_item in ((100, 3), (300, 3), (300, 5)):
            for correlation in (0.0, 0.3, 0.6):
                flagged, found, covered = [], [], []
                for seed in range(runs):
                    labels: Any = make(seed, n_items, per_item, correlation)
                    table = at.fit(labels, machines=machines).further_table(
                        "machines", "dependence"
                    )
                    rows = table.to_pylist()
                    flagged.append(any(row["dependent"] for row in rows))
                    found += [row["correlation"] for row in rows]
                    covered += [row["low"] <= correlation <= row["high"] for row in rows]
                print(
                    f"{name:9} {n_items:5} x {per_item}        {correlation:.1f}          "
                    f"{np.mean(flagged):.2f}              {np.mean(found):+.2f}, "
                    f"{np.std(found):.2f}        {np.mean(covered):.2f}",
                    flush=True,
                )


def copy_llmfao(folder: Path) -> None:
    """Print the language models of llmfao beside its people, and what copies of one do."""
    files = [str(folder / f"{name}.csv") for name in ("comparisons", "gpt-3", "gpt-4")]
    fit = at.rank(files, machines=["gpt-3", "gpt-4"])
    print("\n".join(line for line in fit.summary().splitlines() if "gpt-" in line))
    table = load_comparisons(files[:1] + files[2:], ReadOptions()).to_arrow().to_pylist()
    people = [row for row in table if str(row["annotator"]) != "gpt-4"]
    votes = [row for row in table if str(row["annotator"]) == "gpt-4"]
    scores = {}
    for n in (0, 1, 5):
        names = [f"gpt-4 copy {k}" for k in range(n)]
        rows = people + [{**row, "annotator": name} for name in names for row in votes]
        scores[n] = at.rank(rows, machines=names) if n else at.rank(rows)
    plain = at.rank(rows)

    def moved(a: at.Fit[Any], b: at.Fit[Any]) -> float:
        return float(np.abs(a.scores.mean - b.scores.mean).max())

    print(f"scores moved by one copy of gpt-4: {moved(scores[0], scores[1]):.3f}")
    print(f"five copies against one copy: {moved(scores[1], scores[5]):.1e}")
    print(f"five copies as votes against one copy: {moved(scores[1], plain):.3f}")


def main() -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--runs", type=int, default=40)
    options = parser.parse_args()
    if options.data_dir is not None:
        copy_llmfao(options.data_dir / "pairs-llmfao")
    simulate_dependence(options.runs)


if __name__ == "__main__":
    main()
