"""`annotruth simulate`: simulated labels with known truth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from annotruth.app import options

if TYPE_CHECKING:
    import pyarrow as pa

    from annotruth.simulate import Simulation


def simulate(
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Write the tables to this folder.")
    ],
    generator: Annotated[
        Literal["crowd", "gaussian"],
        typer.Option(
            metavar="NAME",
            help="Truth of an item: a distribution from a Beta (crowd), or a score with Gaussian "
            "noise (gaussian).",
        ),
    ] = "crowd",
    n_items: Annotated[int, typer.Option("--items", metavar="N", help="Number of items.")] = 150,
    n_annotators: Annotated[
        int, typer.Option("--annotators", metavar="N", help="Number of annotators.")
    ] = 25,
    n_categories: Annotated[
        int, typer.Option("--categories", metavar="N", help="Number of categories, 1 to N.")
    ] = 5,
    behavior: Annotated[
        Literal["random", "repeated", "inverted", "mixed"],
        typer.Option(
            metavar="NAME",
            help="Behavior of annotators when they are not serious: random, repeated, inverted or "
            "mixed.",
        ),
    ] = "mixed",
    spammers: Annotated[
        float,
        typer.Option(
            metavar="SHARE", help="Share of annotators with a reliability below one half."
        ),
    ] = 0.2,
    labels_per_item: Annotated[
        int | None,
        typer.Option(metavar="N", help="Annotators per item, drawn at random.", show_default="all"),
    ] = None,
    seed: options.SeedOption = 0,
    quiet: options.QuietOption = False,
) -> None:
    """Simulate a crowd whose truth is known.

    Writes `labels.csv` (item, annotator, label), `truth.csv` (item, label, score and the true
    distribution) and `annotators.csv` (annotator, reliability, behavior).

    **Examples**

        annotruth simulate --out crowd --items 1000 --labels-per-item 5 --behavior random

        annotruth fit crowd/labels.csv --truth crowd/truth.csv
    """
    from annotruth import simulate as generators
    from annotruth.app import console
    from annotruth.io.writers import write_tables

    generate = generators.crowd if generator == "crowd" else generators.gaussian
    simulation = generate(
        n_items=n_items,
        n_annotators=n_annotators,
        n_categories=n_categories,
        behavior=behavior,
        spammer_share=spammers,
        labels_per_item=labels_per_item,
        seed=seed,
    )
    write_tables(simulated_tables(simulation), out)
    if not quiet:
        console.show_lines(f"{simulation.labels.describe()}, written to {out}")


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
