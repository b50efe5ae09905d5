"""`annotruth simulate` and `annotruth demo`: simulated labels with known truth, and a fit beside it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from annotruth.app import console, named_files
from annotruth.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from annotruth.models.result import Fit
    from annotruth.simulate import ComparisonSimulation, SetSimulation, Simulation

_NAMES_OF_SETS = {"n_categories": "n_labels", "labels_per_item": "answers_per_item"}


def simulate(
    out: Path,
    generator: Literal["crowd", "gaussian", "comparers", "sets"] = "crowd",
    n_items: int | None = None,
    n_annotators: int | None = None,
    n_categories: int | None = None,
    behavior: str | None = None,
    spammers: float = 0.2,
    labels_per_item: int | None = None,
    comparisons_per_annotator: int | None = None,
    side_bias: float | None = None,
    tie_rate: float | None = None,
    seed: int = 0,
    force: bool = False,
    quiet: bool = False,
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
    from annotruth.io.writers import write_tables

    named_files.check_existing("--out", out, "crowd", force=force)
    given = {
        "n_items": n_items,
        "n_annotators": n_annotators,
        "n_categories": n_categories,
        "labels_per_item": labels_per_item,
        "comparisons_per_annotator": comparisons_per_annotator,
        "side_bias": side_bias,
        "tie_rate": tie_rate,
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


def demo(seed: int = 0, report: Path = Path("annotruth-demo.html"), force: bool = False) -> None:
    """Fit a simulated crowd, compare with the truth, write a report.

    **Examples**

        annotruth demo

        annotruth demo --seed 1 --report crowd.html
    """
    named_files.check_existing("--report", report, "page", force=force)
    with console.progress_line(quiet=False) as progress:
        from annotruth import api, simulate  # slow to load

        crowd = simulate.crowd(behavior="random", spammer_share=0.2, seed=seed)
        fit = api.fit(crowd.labels, progress=progress)
        progress.start("writing report")
        fit.report(report, source="A simulated crowd")
    console.show_lines(
        ["A simulated crowd: a fifth of the annotators click at random most of the time.", ""]
    )
    console.show_lines(fit.summary())
    console.show_lines("")
    table = _annotators(crowd, fit)
    console.show_table("Annotators, least reliable first", table, max_rows=12)
    console.show_lines("")
    console.show_lines(_errors(crowd, fit))
    console.show_lines(f"report written to {report}")


def _errors(crowd: Simulation, fit: Fit) -> list[str]:
    """Return how close the fit comes to the truth, in two lines."""
    from annotruth import metrics

    assert crowd.distribution is not None
    assert fit.distribution is not None
    assert fit.reliability is not None
    recovered = fit.distribution.dense(fit.data.n_categories)
    correlation = metrics.plcc(crowd.reliability, fit.reliability)
    distance = metrics.hellinger(crowd.distribution, recovered).mean()
    observed = metrics.hellinger(crowd.distribution, fit.data.observed_shares()).mean()
    return [
        f"reliability: correlation with the truth {correlation:.3f}",
        f"distributions: mean Hellinger distance {distance:.3f}, observed shares {observed:.3f}",
    ]


def _annotators(crowd: Simulation, fit: Fit) -> pa.Table:
    """Return the estimates for each annotator beside the true reliability."""
    import pyarrow as pa

    table = fit.annotator_table()
    columns = {"annotator": table["annotator"], "true": pa.array(crowd.reliability)}
    names = ("reliability", "low", "high", "behavior", "evidence")
    columns |= {name: table[name] for name in names}
    return pa.table(columns).sort_by("reliability")
