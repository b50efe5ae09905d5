"""`annotruth simulate`: labels with known truth."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import pyarrow as pa

    from annotruth.simulate import Simulation


class Generator(StrEnum):
    """How the truth of an item looks."""

    crowd = "crowd"
    gaussian = "gaussian"


class BehaviorChoice(StrEnum):
    """What annotators do when they are not serious."""

    random = "random"
    repeated = "repeated"
    inverted = "inverted"
    mixed = "mixed"


def simulate(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where to write the files.")],
    generator: Annotated[
        Generator,
        typer.Option(help="crowd: opinions differ as a Beta; gaussian: one score, noisy votes."),
    ] = Generator.crowd,
    items: Annotated[int, typer.Option(help="How many items.")] = 150,
    annotators: Annotated[int, typer.Option(help="How many annotators.")] = 25,
    categories: Annotated[int, typer.Option(help="How many categories, 1 to N.")] = 5,
    behavior: Annotated[
        BehaviorChoice, typer.Option(help="What a label is when it is not serious.")
    ] = BehaviorChoice.mixed,
    spammers: Annotated[
        float, typer.Option(help="Share of annotators with a reliability below one half.")
    ] = 0.2,
    labels_per_item: Annotated[
        int | None, typer.Option(help="Annotators an item, drawn at random; all if not given.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same files.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
) -> None:
    """Simulate a crowd whose truth is known.

    Writes `labels.csv` (item, annotator, label), `truth.csv` (item, label, score and the true
    distribution) and `annotators.csv` (annotator, reliability, behavior).

    **Example**

        annotruth simulate --out crowd --items 1000 --labels-per-item 5 --behavior random

        annotruth fit crowd/labels.csv --truth crowd/truth.csv
    """
    from annotruth import simulate as simulation
    from annotruth.app import console
    from annotruth.io.writers import write_tables

    make = simulation.crowd if generator is Generator.crowd else simulation.gaussian
    made = make(
        n_items=items,
        n_annotators=annotators,
        n_categories=categories,
        behavior=behavior.value,
        spammer_share=spammers,
        labels_per_item=labels_per_item,
        seed=seed,
    )
    write_tables(simulated_tables(made), out)
    if not quiet:
        console.show_lines(f"{made.labels.describe()}, written to {out}")


def simulated_tables(made: Simulation) -> dict[str, pa.Table]:
    """Return the labels and the truth behind them as tables."""
    import pyarrow as pa

    labels = made.labels
    truth = {
        "item": labels.items,
        "label": labels.scale.categories.take(pa.array(made.label)),
        "score": made.score,
    }
    if made.distribution is not None:
        truth |= {f"p_{name}": made.distribution[:, n] for n, name in enumerate(labels.scale.names)}
    annotators = {
        "annotator": labels.annotators,
        "reliability": made.reliability,
        "behavior": made.behavior.tolist(),
    }
    return {
        "labels": labels.to_arrow(),
        "truth": pa.table(truth),
        "annotators": pa.table(annotators),
    }
