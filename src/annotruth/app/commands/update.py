"""`annotruth update`: add labels to a saved fit."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from annotruth.app import console, named_files
from annotruth.app.console import print_result
from annotruth.app.outputs import Outputs, Paths, save_fit
from annotruth.bindings import bound_for

if TYPE_CHECKING:
    from annotruth.observations.options import ReadOptions


def update(
    *,
    fit: Path,
    labels: list[str],
    refit: bool = False,
    read: ReadOptions,
    gold: str | None = None,
    truth: str | None = None,
    outputs: Outputs,
    as_json: bool = False,
    quiet: bool = False,
    verbose: bool = False,
) -> None:
    """Add labels to a saved fit, save it in place, show what changed.

    With `--save DIR`, the new fit is saved there, and FIT stays as it is. All labels are fitted;
    the result is that of `annotruth fit` with all of them.

    LABELS may be an export of all labels: those that are in the fit already (same item, annotator
    and label) are left out and counted. Labels that changed since are refused, unless you pass
    `--duplicates last` (they replace the old ones). With `--duplicates keep`, every row is a vote,
    also a repeated one. If there is nothing new, nothing is saved in place. Comparisons are all
    votes, unless all of those in the fit are among them: then only the others are new.

    **Examples**

        annotruth update fit monday.csv --report monday.html --keep people.csv

        annotruth update fit monday.csv --save fit-monday --gold gold.csv

        annotruth update fit export.csv --duplicates last --drop people.csv

        annotruth update fit corrections.csv --duplicates last --refit
    """
    from annotruth.models.storage import load_fit, locked

    if outputs.save is not None and os.path.realpath(outputs.save) == os.path.realpath(fit):
        outputs = replace(outputs, save=None)
    in_place = outputs.save is None
    folder = fit if outputs.save is None else outputs.save
    files: Paths = {"FIT": named_files.saved_files(fit)}
    inputs: Paths = {
        "LABELS": named_files.input_files(labels),
        "--gold": [gold],
        "--truth": [truth],
    }
    outputs.check(inputs if in_place else {**inputs, **files}, files if in_place else {})
    if named_files.is_ranking([str(fit)]):
        named_files.refuse_label_flags({"--gold": gold, **outputs.of_labels_only()})
    # In place, nobody else may save between loading and saving, or one of the updates is lost.
    with (
        locked(folder, on_wait=console.waiting_line(folder, quiet=quiet)),
        console.running(quiet=quiet, as_json=as_json) as progress,
    ):
        from annotruth import api  # slow to load
        from annotruth.analyses.advice import changes

        progress.start(f"reading {fit.name}")
        before = load_fit(fit)
        data = named_files.one_or_several(labels)
        after, n_repeated = bound_for(before.kind, "update")(
            before, data, gold=gold, refit=refit, read=read, progress=progress
        )
        updated = outputs.priced(after)
        compare = changes.changes if before.kind == "labels" else changes.rank_changes
        changed = compare(before, after, n_repeated=n_repeated)
        metrics = None if truth is None else api.evaluate(after, truth, max_size=read.max_size)
        written = outputs.write(
            updated,
            progress,
            source=folder.resolve().name,
            arguments=shlex.quote(str(folder)),
            truth=truth,
            changes=changed,
            quiet=quiet,
        )
        if in_place and updated is before:
            written.lines.append(f"nothing new: {fit} stays as it is")
        elif in_place:
            progress.start("saving the fit")
            save_fit(updated, fit, quiet=quiet)
            written.lines.append(f"saved in place: {fit}; --save DIR leaves it as it is")
        named = shlex.quote(str(folder))
        first = outputs.first_lines(after, progress, named, truth, shown=not (quiet or as_json))
    if not (as_json or quiet):
        if first is not None:
            console.show_first_lines(first)
        console.show_lines(changed.summary())
    print_result(
        after,
        metrics,
        written.lines,
        as_json=as_json,
        quiet=quiet,
        verbose=verbose,
        more=changed.to_dict(),
    )
    written.raise_failures()
