"""Compare models on label sets with known classes; prints Markdown tables.

Reads every folder under --data-dir that has labels.csv (item,annotator,label) and truth.csv
(item,label) of classes. With --out, also writes results.csv, results.json and calibration.svg.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from annotruth.errors import InputError
from benchmarks import machine
from benchmarks.pages import replace_tables
from benchmarks.truth import contenders, summary
from benchmarks.truth.calibration import calibration_chart
from benchmarks.truth.scoring import Score
from benchmarks.truth.sets import GROUPS, TruthSet, find_sets, load_set, why_left_out

REFERENCE = "majority"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.truth", description=__doc__)
    parser.add_argument("--data-dir", type=Path, required=True, help="folder of label sets")
    parser.add_argument("--models", type=names, default=contenders.OURS, help="separated by commas")
    parser.add_argument(
        "--sets", type=names, help=f"separated by commas; {', '.join(GROUPS)} stands for several"
    )
    parser.add_argument(
        "--peers", type=names, nargs="?", const=contenders.CROWD_KIT, default=(),
        help="also run crowd-kit's models: all, or those named",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, help="folder for the results and the chart")
    parser.add_argument(
        "--docs", type=Path, help="docs folder whose how-good.md and chart are brought up to date"
    )
    parser.add_argument(
        "--scale", choices=("nominal", "auto"), default="nominal",
        help="auto reads numbers as ordered categories (default: nominal)",
    )  # fmt: skip
    options = parser.parse_args(arguments)

    try:
        sets = load_sets(options.data_dir, options.sets, options.scale)
    except InputError as error:
        parser.error(str(error))
    compared, unknown = contenders.ours(options.models)
    for name in unknown:
        note(f"{name} is left out: annotruth has no such model")
    if options.peers and contenders.has_crowd_kit():
        compared |= contenders.crowd_kit(options.peers)
    elif options.peers:
        note("crowd-kit is left out: it is not installed")

    scores = run(compared, sets)
    found = summary.differences(scores, sets, REFERENCE)
    print_results(scores, sets, found)
    if options.out is not None:
        about = {"machine": machine.describe(), "scale": options.scale}
        summary.write_results(options.out, scores, sets, found, about)
        chart = calibration_chart(scores)
        if chart is not None:
            chart.save(options.out / "calibration.svg")
    if options.docs is not None:
        update_docs(options.docs, scores, sets, found)
    return 0


def update_docs(
    folder: Path,
    scores: dict[str, dict[str, Score]],
    sets: list[TruthSet],
    found: dict[str, dict[str, summary.Difference]],
) -> None:
    """Replace the tables of how-good.md and the chart."""
    tables = {
        "sets": summary.set_description(sets),
        "means": summary.mean_table(scores, sets),
        "differences": summary.difference_table(found),
        **{name: summary.set_table(scores, sets, name) for name in ("accuracy", "nll", "ece")},
        "machine": machine.describe(),
    }
    replace_tables(folder / "how-good.md", tables)
    chart = calibration_chart(scores)
    if chart is not None:
        chart.save(folder / "pictures" / "calibration.svg")


def load_sets(folder: Path, chosen: tuple[str, ...] | None, scale: str) -> list[TruthSet]:
    """Read the named sets, or all sets of classes."""
    sets = []
    for path in find_sets(folder, chosen):
        try:
            found = load_set(path, "nominal" if scale == "nominal" else "auto")
        except InputError as error:
            if chosen is not None:
                raise
            note(f"{path.name} is left out: {error}")
            continue
        reason = None if chosen is not None else why_left_out(found)
        if reason is None:
            sets.append(found)
        else:
            note(f"{path.name} is left out: {reason}")
    if not sets:
        raise InputError(f"no set with labels.csv and truth.csv of classes in {folder}")
    return sets


def run(
    compared: dict[str, contenders.Contender], sets: list[TruthSet]
) -> dict[str, dict[str, Score]]:
    """Fit every model to every set; a failure is reported and leaves a gap."""
    scores: dict[str, dict[str, Score]] = {name: {} for name in compared}
    for found in sets:
        for name, contender in compared.items():
            try:
                score = contender(found)
            except Exception as error:  # noqa: BLE001 (other packages fail in many ways)
                text = " ".join(str(error).split())[:120]
                note(f"{found.name}: {name} failed: {type(error).__name__}: {text}")
                continue
            scores[name][found.name] = score
            nll = "" if score.nll is None else f", negative log-likelihood {score.nll:.4f}"
            note(f"{found.name}: {name}: accuracy {score.accuracy:.4f}{nll}, {score.seconds:.1f} s")
    return {name: by_set for name, by_set in scores.items() if by_set}


def print_results(
    scores: dict[str, dict[str, Score]],
    sets: list[TruthSet],
    found: dict[str, dict[str, summary.Difference]],
) -> None:
    print(f"{machine.describe()}\n\n{summary.set_description(sets)}")
    print(f"\n## Means over {len(sets)} sets\n\n{summary.mean_table(scores, sets)}")
    for measure, title in summary.MEASURES.items():
        print(f"\n## {title.capitalize()}\n\n{summary.set_table(scores, sets, measure)}")
    if found:
        n = len({one.family for one in sets})
        print(f"\n## Difference to {REFERENCE}, 95% intervals over {n} families\n")
        print(summary.difference_table(found))


def names(text: str) -> tuple[str, ...]:
    """Parse names separated by commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
