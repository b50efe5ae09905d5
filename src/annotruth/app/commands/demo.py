"""`annotruth demo`: the main job on simulated labels, beside the truth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from annotruth.models.result import Fit
    from annotruth.simulate import Simulation


def demo(
    seed: Annotated[int, typer.Option(help="Another seed, another crowd.")] = 0,
    report: Annotated[
        Path,
        typer.Option(metavar="FILE", help="Write a report here: one HTML file, read in a browser."),
    ] = Path("annotruth-demo.html"),
) -> None:
    """Simulate a crowd, fit its labels, print what it found beside the truth, write a report."""
    from annotruth import api, simulate
    from annotruth.app import console

    made = simulate.crowd(behavior="random", spammer_share=0.2, seed=seed)
    with console.progress_line(quiet=False) as progress:  # the first fit of all compiles
        found = api.fit(made.labels, progress=progress)
    console.show_lines(["A simulated crowd: a fifth click at random most of the time.", ""])
    console.show_lines(found.summary())
    console.show_lines("")
    console.show_table("Annotators, least reliable first", _annotators(made, found), max_rows=12)
    console.show_lines("")
    console.show_table("Items, most divided first: true and found", _items(made, found), max_rows=8)

    console.show_lines("")
    console.show_lines(_how_near(made, found))
    found.report(report, source="A simulated crowd")
    console.show_lines(f"report written to {report}")


def _how_near(made: Simulation, found: Fit) -> list[str]:
    """Say how near the fit came to the truth, in two lines."""
    from annotruth import metrics

    assert made.distribution is not None
    assert found.distribution is not None
    assert found.reliability is not None
    recovered = found.distribution.dense(found.data.n_categories)
    correlation = metrics.plcc(made.reliability, found.reliability)
    distance = metrics.hellinger(made.distribution, recovered).mean()
    raw = metrics.hellinger(made.distribution, found.data.observed_shares()).mean()
    return [
        f"reliability: correlation with the truth {correlation:.3f}",
        f"distributions: mean Hellinger distance to the truth {distance:.3f}, raw shares {raw:.3f}",
    ]


def _annotators(made: Simulation, found: Fit) -> pa.Table:
    """Put what was found of each annotator beside the true reliability."""
    import pyarrow as pa

    table = found.annotator_table()
    shown = ("reliability", "low", "high", "behavior", "evidence")
    columns = {"annotator": table["annotator"], "true": pa.array(made.reliability)}
    columns |= {name: table[name] for name in shown}
    return pa.table(columns).sort_by("reliability")


def _items(made: Simulation, found: Fit) -> pa.Table:
    """Put the distribution found for each item beside the true one."""
    import pyarrow as pa

    table = found.item_table()
    assert made.distribution is not None
    assert found.distribution is not None
    shares = found.distribution.dense(found.data.n_categories)
    columns = {
        "item": table["item"],
        "entropy": table["entropy"],
        "true score": made.score,
        "found": table["expectation"],
        "true distribution": [_in_words(row) for row in made.distribution],
        "found distribution": [_in_words(row) for row in shares],
    }
    return pa.table(columns).sort_by([("entropy", "descending")])


def _in_words(distribution: NDArray[np.float64]) -> str:
    return " ".join(f"{share:.2f}".removeprefix("0") for share in distribution)
