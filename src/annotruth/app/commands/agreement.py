"""`annotruth agreement`: how far the annotators of a file agree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from annotruth.app import console, named_files
from annotruth.app.outputs import write_out

if TYPE_CHECKING:
    from annotruth.observations.options import ReadOptions


def agreement(
    *,
    labels: list[str],
    same_people: bool = False,
    read: ReadOptions,
    out: Path | None = None,
    force: bool = False,
    as_json: bool = False,
    quiet: bool = False,
) -> None:
    """Show how far annotators agree beyond chance, with 95% intervals.

    Krippendorff's alpha, Fleiss' and Cohen's kappa, Gwet's AC1 and AC2 with weights that suit the
    scale, the share of pairs of labels that are equal, intraclass correlations of numbers, and, with
    `--duplicates keep`, whether annotators agree with themselves. No model is fitted.

    **Examples**

        annotruth agreement labels.csv

        annotruth agreement votes.csv --scale ordinal --out agreement.csv

        annotruth agreement retest.csv --duplicates keep --json
    """
    tables = named_files.table_files(out, names=("agreement",))
    named_files.check_outputs({"FIT|LABELS": named_files.input_files(labels)}, {"--out": tables})
    named_files.check_out(out, force=force)
    with console.running(quiet=quiet, as_json=as_json):
        from annotruth.analyses.agreement import agreement as measure  # slow to load

        found = measure(named_files.one_or_several(labels), same_people=same_people, read=read)
        if out is not None:
            write_out({"agreement": found.table}, out, extra={}, safe_cells=False)
    if as_json:
        console.show_json(found.to_dict())
    elif not quiet:
        console.show_lines([found.data.describe(), *found.notes, ""])
        rows = found.table.to_pylist()
        over = next((row["interval_over"] for row in rows if row["interval_over"]), "items")
        names = [f"{row['coefficient']}, {row['weights']}" for row in rows]
        shown = found.table.select(["value", "low", "high", "n_labels", "n_items"])
        shown = shown.add_column(0, "coefficient", [names])
        title = f"Agreement, with 95% intervals over {over}"
        console.show_table(title, shown, max_rows=len(shown), digits=3)
        if out is not None:
            console.show_lines(f"results written to {out}")
