"""`annotruth simulate`: simulated labels with known truth."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from annotruth.app import options
from annotruth.app.named_files import check_existing
from annotruth.app.output_flags import ForceOption
from annotruth.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from annotruth.simulate import ComparisonSimulation, SetSimulation, Simulation

_NAMES_OF_SETS = {"n_categories": "n_labels", "labels_per_item": "answers_per_item"}


def simulate(
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Write the tables to this folder.")
    ],
    generator: Annotated[
        Literal["crowd", "gaussian", "comparers", "sets"],
        typer.Option(
            metavar="NAME",
            help="Truth of an item: a distribution from a Beta (crowd), a score with Gaussian noise "
            "(gaussian), or a set of labels (sets); or pair comparisons of items with scores "
            "(comparers).",
        ),
    ] = "crowd",
    n_items: Annotated[
        int | None,
        typer.Option(
            "--items",
            metavar="N",
            help="Number of items.",
            show_default="150, comparers 30, sets 200",
        ),
    ] = None,
    n_annotators: Annotated[
        int | None,
        typer.Option(
            "--annotators",
            metavar="N",
            help="Number of annotators.",
            show_default="25, comparers 40, sets 15",
        ),
    ] = None,
    n_categories: Annotated[
        int | None,
        typer.Option(
            "--categories",
            metavar="N",
            help="Number of categories, 1 to N; of sets, number of labels.",
            show_default="5, sets 6",
        ),
    ] = None,
    behavior: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Behavior of annotators when they are not serious: random, repeated, inverted or "
            "mixed; of comparers also 'always left', 'always right', 'always tie' or 'favours one "
            "item', but not repeated. Not for sets.",
            show_default="mixed",
        ),
    ] = None,
    spammers: Annotated[
        float,
        typer.Option(
            metavar="SHARE", help="Share of annotators with a reliability below one half."
        ),
    ] = 0.2,
    labels_per_item: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Annotators per item, drawn at random.", show_default="all, sets 4"
        ),
    ] = None,
    comparisons_per_annotator: Annotated[
        int | None,
        typer.Option(metavar="N", help="Comparers: pairs per annotator.", show_default="40"),
    ] = None,
    side_bias: Annotated[
        float | None,
        typer.Option(
            metavar="X", help="Comparers: added log odds of the left item.", show_default="0"
        ),
    ] = None,
    tie_rate: Annotated[
        float | None,
        typer.Option(
            metavar="X", help="Comparers: how often equal items tie; 1: a third.", show_default="0"
        ),
    ] = None,
    n_groups: Annotated[
        int | None,
        typer.Option(
            "--groups", metavar="K", help="Comparers: number of taste groups.", show_default="1"
        ),
    ] = None,
    seed: options.SeedOption = 0,
    force: ForceOption = False,
    quiet: options.QuietOption = False,
) -> None:
    """Simulate a crowd whose truth is known.

    Writes `labels.csv` (item, annotator, label), `truth.csv` (item, label, score and the true
    distribution) and `annotators.csv` (annotator, reliability, behavior). With
    `--generator comparers`, writes `votes.csv` (left, right, annotator, winner), `truth.csv` (item,
    score) and `annotators.csv`. With `--generator sets`, labels of `labels.csv` and `truth.csv` are sets
    with `|` between labels, and `annotators.csv` has sensitivity, specificity and behavior.

    **Examples**

        annotruth simulate --out crowd --labels-per-item 5 --behavior random

        annotruth fit crowd/labels.csv --truth crowd/truth.csv

        annotruth simulate --out pairs --generator comparers --tie-rate 0.3

        annotruth simulate --out tags --generator sets --categories 8
    """
    from annotruth.app import console
    from annotruth.io.writers import write_tables

    check_existing("--out", out, "crowd", force=force)
    given = {
        "n_items": n_items,
        "n_annotators": n_annotators,
        "n_categories": n_categories,
        "labels_per_item": labels_per_item,
        "comparisons_per_annotator": comparisons_per_annotator,
        "side_bias": side_bias,
        "tie_rate": tie_rate,
        "n_groups": n_groups,
        "behavior": behavior,
    }
    simulation = _generate(generator, given, spammer_share=spammers, seed=seed)
    tables, description = _tables_of(simulation)
    write_tables(tables, out)
    if not quiet:
        console.show_lines(f"{description}, written to {out}")


def _generate(
    generator: str, given: Mapping[str, Any], **shared: Any
) -> Simulation | ComparisonSimulation | SetSimulation:
    """Return the simulation by the generator of a name, with the options that were given."""
    from annotruth import simulate as generators

    generate: Callable[..., Simulation | ComparisonSimulation | SetSimulation] = getattr(
        generators, generator
    )
    chosen = _options_of(generate, given)
    try:
        return generate(**chosen, **shared)
    except MemoryError:
        raise InputError(
            "there is not enough memory for such a crowd: ask for fewer items, annotators or categories"
        ) from None


def _tables_of(
    simulation: Simulation | ComparisonSimulation | SetSimulation,
) -> tuple[dict[str, pa.Table], str]:
    """Return the tables to write, and what they hold in words."""
    from annotruth import simulate as generators

    if isinstance(simulation, generators.ComparisonSimulation):
        return simulation.tables(), simulation.comparisons.describe()
    if isinstance(simulation, generators.SetSimulation):
        return simulation.tables(), simulation.describe()
    return simulated_tables(simulation), simulation.labels.describe()


def _options_of(generate: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given, by parameter; refuse those of another generator."""
    known = inspect.signature(generate).parameters
    chosen = {}
    for name, value in given.items():
        if value is None:
            continue
        parameter = name if name in known else _NAMES_OF_SETS.get(name, name)
        if parameter not in known:
            flag = "--" + name.removeprefix("n_").replace("_", "-")
            raise InputError(f"{flag} is not for `--generator {generate.__name__}`: leave it out")
        chosen[parameter] = value
    if "behavior" in known:
        chosen.setdefault("behavior", "mixed")
    return chosen


def simulated_tables(simulation: Simulation) -> dict[str, pa.Table]:
    """Return the labels and the truth as tables."""
    import pyarrow as pa

    labels = simulation.labels
    truth = {
        "item": labels.items,
        "label": labels.scale.categories.take(pa.array(simulation.label)),
        "score": simulation.score,
    }
    if simulation.distribution is not None:
        truth |= {
            f"p_{name}": simulation.distribution[:, n] for n, name in enumerate(labels.scale.names)
        }
    annotators = {
        "annotator": labels.annotators,
        "reliability": simulation.reliability,
        "behavior": simulation.behavior.tolist(),
    }
    return {
        "labels": labels.to_arrow(),
        "truth": pa.table(truth),
        "annotators": pa.table(annotators),
    }
