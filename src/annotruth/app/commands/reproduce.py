"""`annotruth reproduce`: the paper's tables and figures, beside the printed ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from annotruth.app import console, values
from annotruth.errors import InputError, OutputError

if TYPE_CHECKING:
    from annotruth.models.em import ProgressReporter
    from annotruth.paper.experiment import Claim, Experiment, ExperimentRun


def reproduce(
    experiment: str,
    runs: int | None = None,
    data_dir: Path | None = None,
    out: Path = Path("annotruth-reproduction"),
    settings: list[str] | None = None,
    quiet: bool = False,
) -> None:
    """Run an experiment of the GPM paper.

    Prints its table beside the printed one and writes a page, a CSV and, for the figures, a PNG and
    an SVG. `all` runs every experiment whose data are available.

    **Examples**

        annotruth reproduce exp1b --runs 20

        annotruth reproduce exp1a --set mixing=label --set f1=spammer

        annotruth reproduce all --data-dir datasets
    """
    from annotruth.paper.registry import find_experiments, general_claims
    from annotruth.paper.runner import check_runs, run_experiment
    from annotruth.paper.tables import make_report, write_claims, write_report

    if runs is not None:
        check_runs(runs)
    if out.exists() and not out.is_dir():
        raise OutputError(f"cannot write {out}: it is a file; choose another folder with --out")
    chosen = find_experiments(experiment)
    resolved = _resolve_settings(chosen, values.parse_settings(settings))
    missing = {each.name: _describe_missing_data(each, data_dir) for each in chosen}
    ready = [each for each in chosen if missing[each.name] is None]
    if not ready:
        raise InputError(f"{chosen[0].name} needs {missing[chosen[0].name]}")

    finished: dict[str, list[ExperimentRun]] = {}
    claims: list[Claim] = []
    for each in ready:
        with console.progress_line(quiet=quiet) as line:
            finished[each.name] = run_experiment(
                each,
                resolved[each.name],
                n_runs=runs or each.default_runs,
                data=data_dir,
                progress=partial(_show_progress, line, each.name),
            )
        report = make_report(each, resolved[each.name], finished[each.name])
        claims += report.claims
        names = write_report(report, out)
        if not quiet:
            console.show_lines([report.text, "", f"written to {out}: {', '.join(names)}", ""])
    if experiment == "all":
        write_claims([*claims, *general_claims(finished)], out)
        if not quiet:
            console.show_lines(f"written to {out}: claims.md")
    for name, reason in missing.items():
        if reason is not None and not quiet:
            console.print_error(f"left out {name}: it needs {reason}")


def _resolve_settings(
    experiments: Sequence[Experiment], given: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return the settings of every experiment; of several, each takes those it has."""
    if len(experiments) == 1:
        return {each.name: each.resolve(given) for each in experiments}
    known = {name for each in experiments for name in each.settings}
    for name in given:
        if name not in known:
            raise InputError(f"no experiment has a setting {name!r}: {', '.join(sorted(known))}")
    return {
        each.name: each.resolve({n: v for n, v in given.items() if n in each.settings})
        for each in experiments
    }


def _describe_missing_data(experiment: Experiment, folder: Path | None) -> str | None:
    """Return which files an experiment lacks and where to get them; None if it lacks none."""
    required = experiment.required_files
    if required is None:
        return None
    advice = f"get the data from {required.source} and pass their folder with `--data-dir`"
    if folder is None:
        return f"real labels (DIR/{' and DIR/'.join(required.paths)}): {advice}"
    missing = [path for path in required.paths if not (folder / path).is_file()]
    if not missing:
        return None
    return f"{' and '.join(required.paths)} under {folder}, where {missing[0]} is missing: {advice}"


def _show_progress(line: ProgressReporter, name: str, done: int, total: int) -> None:
    line.start(f"{name}: {done} of {total} runs", done=done, total=total)
