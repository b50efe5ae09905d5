"""`annotruth reproduce`: the paper's tables and figures, beside the printed ones."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from annotruth.paper.base import Claim, Experiment, Record


def reproduce(
    experiment: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="exp1a, exp1b, exp1c, exp1d, dog, face, movie, all, or settings.",
        ),
    ],
    runs: Annotated[
        int | None,
        typer.Option(help="How often a simulation is repeated (100; settings: 20)."),
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the real labels, for dog, face and movie."),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where pages, tables, pictures and runs go.")
    ] = Path("annotruth-reproduction"),
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A setting that the paper leaves open, or a size."
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
) -> None:
    """Run an experiment of the paper and print its table beside the printed one.

    Writes a page, a CSV and, for the figures, a PNG and an SVG. An interrupted command goes on
    where it stopped; other settings start afresh. `all` runs every experiment whose data are
    there; `settings` shows how near each choice that the paper leaves open comes to its tables.

    **Examples**

        annotruth reproduce exp1b --runs 20

        annotruth reproduce exp1a --set mixing=label --set f1=spammer

        annotruth reproduce all --data-dir datasets
    """
    from annotruth.app import console, options
    from annotruth.errors import InputError
    from annotruth.paper import reports
    from annotruth.paper.claims import general_claims
    from annotruth.paper.registry import experiments_named
    from annotruth.paper.runner import run_experiment

    if runs is not None and runs < 1:
        raise InputError(f"--runs is {runs}: give a whole number of at least 1")
    chosen = experiments_named(experiment)
    resolved = _resolved(chosen, options.parse_settings(settings))
    absent = {each.name: _absent_data(each, data_dir) for each in chosen}
    ready = [each for each in chosen if absent[each.name] is None]
    if not ready:
        raise InputError(f"{chosen[0].name} needs {absent[chosen[0].name]}")

    records: dict[str, list[Record]] = {}
    claims: list[Claim] = []
    for each in ready:
        mine = resolved[each.name]
        with _progress(each.name, quiet=quiet) as progress, _kept_when_interrupted(out):
            records[each.name] = run_experiment(
                each,
                mine,
                runs=runs or each.default_runs,
                folder=out,
                data=data_dir,
                progress=progress,
            )
        report = reports.report(each, mine, records[each.name])
        claims += report.claims
        names = reports.write(report, out)
        if not quiet:
            console.show_lines([report.text(), "", f"written to {out}: {', '.join(names)}", ""])
    if experiment == "all":
        reports.write_claims([*claims, *general_claims(records)], out)
        if not quiet:
            console.show_lines(f"written to {out}: claims.md")
    for name, reason in absent.items():
        if reason is not None and not quiet:
            console.complain(f"left out {name}: it needs {reason}")


def _resolved(
    experiments: Sequence[Experiment], given: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return the settings of every experiment; a given one is for those who know it."""
    if len(experiments) > 1:
        from annotruth.errors import InputError

        known = {name for each in experiments for name in each.settings}
        for name in given:
            if name not in known:
                raise InputError(
                    f"no experiment has a setting {name!r}: {', '.join(sorted(known))}"
                )
        return {
            each.name: each.resolve({n: v for n, v in given.items() if n in each.settings})
            for each in experiments
        }
    return {each.name: each.resolve(given) for each in experiments}


def _absent_data(experiment: Experiment, folder: Path | None) -> str | None:
    """Say what an experiment lacks and where to get it; None when it has all it needs."""
    if experiment.data is None:
        return None
    files = " and ".join(experiment.data.files)
    advice = f"get the data from {experiment.data.source} and give their folder with --data-dir"
    if folder is None:
        return f"real labels (DIR/{' and DIR/'.join(experiment.data.files)}): {advice}"
    gone = [file for file in experiment.data.files if not (folder / file).is_file()]
    return f"{files} under {folder}, where {gone[0]} is not: {advice}" if gone else None


@contextmanager
def _progress(name: str, *, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Show on one line of stderr how many runs are done, if somebody is looking."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("runs"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def _kept_when_interrupted(out: Path) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        from annotruth.app import console

        console.complain(
            f"interrupted; finished runs are kept in {out}, and the same command goes on from there"
        )
        raise typer.Exit(1) from None
