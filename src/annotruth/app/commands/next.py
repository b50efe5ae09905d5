"""`annotruth next` and `annotruth plan`: which items need labels, whom to ask, and how many a target needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from annotruth.app import console, named_files, values
from annotruth.app.outputs import Outputs, advice_arguments
from annotruth.errors import InputError, counted

if TYPE_CHECKING:
    import pyarrow as pa

    from annotruth.analyses.advice.advice import Advice
    from annotruth.analyses.advice.pairs.advice import PairAdvice
    from annotruth.observations.options import ReadOptions

_MAX_ROWS = 10


def next_(
    *,
    context: typer.Context,
    data: list[str],
    budget: int | None = None,
    model: str | None = None,
    read: ReadOptions,
    gold: str | None = None,
    annotator_prior: str | None = None,
    settings: list[str] | None = None,
    outputs: Outputs,
    as_json: bool = False,
    quiet: bool = False,
) -> None:
    """List which items need labels, whom to ask and whom to drop.

    Takes the folder of a saved fit, or labels, which it fits first. A label is worth as much as it
    is expected to bring an item's distribution closer to the truth; an item on which annotators
    are known to be divided needs no more labels. Ask in rounds: new labels change the advice.

    Of a saved ranking or a file of pair comparisons, list which pairs to compare next and whom to
    ask: those whose comparison is expected to make the order of the items most certain.

    **Examples**

        annotruth next labels.csv

        annotruth next labels.csv --budget 500 --out next.csv --keep people.csv

        annotruth next fit --out relabel.xlsx

        annotruth next fit --assign tasks.json

        annotruth next fit --assign batch.csv --assign-format mturk

        annotruth fit labels.csv --save fit && annotruth next fit

        annotruth next answers.csv --scale nominal --gold known.csv --json

        annotruth next ranking --budget 100
    """
    known = {"--gold": gold, "--annotator-prior": annotator_prior}
    inputs = {flag: [path] for flag, path in known.items()}
    outputs.check(
        {"FIT|LABELS": named_files.input_files(data), **inputs},
        tables=("items", "annotators", "assignments", "comparisons"),
    )
    with console.running(quiet=quiet, as_json=as_json) as progress:
        from annotruth import advising, ranking  # slow to load
        from annotruth.analyses.advice.pairs.advice import PairAdvice
        from annotruth.report.sections import next_command

        source = named_files.one_or_several(data)
        shared: dict[str, Any] = {"model": model, "progress": progress, "read": read}
        shared |= values.parse_model_options(settings)

        def of_labels() -> Advice:
            return advising.next_labels(
                source, budget, gold=gold, annotator_prior=annotator_prior, **shared
            )

        def of_comparisons() -> PairAdvice:
            if outputs.task_format not in (None, "csv", "parquet"):
                raise InputError(
                    "comparisons are assigned in a table: name a .csv or .parquet file (`--assign`), "
                    "and leave out --assign-format"
                )
            return ranking.next_comparisons(source, budget, **shared)

        of_labels_only = {**known, "--predictions": outputs.predictions}
        advice = named_files.choose_path(read, model, of_labels_only, of_labels, of_comparisons)
    assigned: pa.Table | None = None
    if isinstance(advice, PairAdvice):
        assigned = advice.comparison_table().drop_columns(["gain", "why"])
    elif outputs.assign is not None:
        assigned = advice.assignment_table()
    paths = outputs.write_advice(advice, assigned, named_files.heading(data))
    if as_json:
        missing = {} if assigned is None else {"unassigned": assigned["annotator"].null_count}
        console.show_json(advice.to_dict() | missing)
    elif not quiet:
        step = ""
        if not advice.fit.is_void and outputs.assign is None and advice.n_add:
            arguments = advice_arguments(data, context)
            arguments += "" if budget is None else f" --budget {budget}"
            step = f"Next: {next_command(arguments).text}"
        _show_summary(advice.summary().split("\n"), step)
        if isinstance(advice, PairAdvice):
            _show_pairs(advice)
        elif not advice.fit.is_void:
            _show(advice, assigned)
        for path in paths:
            console.show_lines(f"written to {path}")


def _show_summary(lines: list[str], step: str) -> None:
    """Print what to do and to type before what it follows from; a warning is first."""
    warning = [line for line in lines if line.startswith("WARNING: ")]
    heading, *todo = lines[len(warning) :]
    console.show_lines([*warning, *todo, *filter(None, [step]), heading])


def _show(advice: Advice, assigned: pa.Table | None) -> None:
    if advice.n_add:
        console.show_lines("")
        to_label = _to_label(advice.item_table())
        console.show_table("Items with the highest gain", to_label, max_rows=_MAX_ROWS)
    _show_annotators(advice)
    if assigned is not None and len(assigned):
        console.show_lines("")
        console.show_table("Assignments, highest gain first", assigned, max_rows=_MAX_ROWS)
        if missing := assigned["annotator"].null_count:
            why = advice.of_annotators.why_nobody("labelled the item")
            console.show_lines(f"{counted(missing, 'label')} without an annotator: {why}")


def _to_label(items: pa.Table) -> pa.Table:
    import pyarrow.compute as pc

    some = items.filter(pc.greater(items["add"], 0)).sort_by([("gain", "descending")])
    return _gains_as_text(some, 3).select(["item", "n_labels", "add", "gain", "why"])


def _gains_as_text(table: pa.Table, digits: int) -> pa.Table:
    """Return a table with gains of more digits than the two that tables are printed with."""
    gain = [f"{value:.{digits}f}" for value in table["gain"].slice(0, _MAX_ROWS).to_pylist()]
    gain += [""] * (len(table) - len(gain))  # which are not printed
    return table.set_column(table.column_names.index("gain"), "gain", [gain])


def _show_pairs(advice: PairAdvice) -> None:
    table = advice.comparison_table()
    if len(table):
        console.show_lines("")
        shown = _gains_as_text(table, 4)
        console.show_table("Comparisons with the highest gain", shown, max_rows=_MAX_ROWS)
        if missing := table["annotator"].null_count:
            where = "" if advice.context is None else " in this context"
            why = advice.of_annotators.why_nobody(f"compared the two items{where}")
            console.show_lines(f"{counted(missing, 'comparison')} without an annotator: {why}")
    _show_annotators(advice)


def _show_annotators(advice: Advice | PairAdvice) -> None:
    console.show_lines("")
    people = advice.annotator_table().sort_by([("information", "ascending")])
    shown = people.select([*people.column_names[:4], "information"])  # reasons are too long
    console.show_table("Annotators, least informative first", shown, max_rows=_MAX_ROWS)


def plan(
    *,
    data: list[str],
    target: str,
    model: str | None = None,
    read: ReadOptions,
    gold: str | None = None,
    annotator_prior: str | None = None,
    settings: list[str] | None = None,
    seed: int = 0,
    as_json: bool = False,
    quiet: bool = False,
) -> None:
    """Estimate how many labels a target needs.

    Takes the folder of a saved fit, or labels or pair comparisons, which it fits first, and
    simulates more of them from what the fit says of items and annotators, spent evenly or where
    they gain most. The plan is as good as the model: where annotators agree on a wrong label, it
    cannot know.

    **Examples**

        annotruth plan labels.csv --target accuracy=0.9

        annotruth plan fit --target hellinger=0.15

        annotruth plan ratings.csv --scale ordinal --target score=0.5 --json

        annotruth plan ranking --target tau=0.9
    """
    name, value = _parse_target(target)
    with console.running(quiet=quiet, as_json=as_json) as progress:
        from annotruth import advising, ranking  # slow to load

        source = named_files.one_or_several(data)
        shared: dict[str, Any] = {"model": model, "seed": seed, "progress": progress, "read": read}
        shared |= values.parse_model_options(settings)
        planned = named_files.choose_path(
            read,
            model,
            {"--gold": gold, "--annotator-prior": annotator_prior},
            lambda: advising.plan_labels(
                source, name, value, gold=gold, annotator_prior=annotator_prior, **shared
            ),
            lambda: ranking.plan_comparisons(source, name, value, **shared),
        )
    if as_json:
        console.show_json(planned.to_dict())
    elif not quiet:
        console.show_lines(planned.summary())


def _parse_target(target: str) -> tuple[str, float]:
    pairs = values.parse_pairs(target, "--target")
    try:
        ((name, value),) = pairs.items()
        return name, float(value)
    except ValueError:
        raise InputError(
            f"--target takes one NAME=NUMBER, such as accuracy=0.9, not {target!r}"
        ) from None
