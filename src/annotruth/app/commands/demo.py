"""`annotruth demo`: a fit of simulated labels, beside the truth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from annotruth.app import console, named_files

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from annotruth.models.result import Fit
    from annotruth.simulate import Simulation


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
    table = _items(crowd, fit)
    console.show_table("Items, most difficult first: true and estimated", table, max_rows=8)
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


def _items(crowd: Simulation, fit: Fit) -> pa.Table:
    """Return the estimated score and distribution of each item beside the true ones."""
    import pyarrow as pa

    table = fit.item_table()
    assert crowd.distribution is not None
    assert fit.distribution is not None
    estimated = fit.distribution.dense(fit.data.n_categories)
    columns = {
        "item": table["item"],
        "entropy": table["entropy"],
        "true score": crowd.score,
        "score": table["expectation"],
        "true distribution": [_shares_as_text(row) for row in crowd.distribution],
        "distribution": [_shares_as_text(row) for row in estimated],
    }
    return pa.table(columns).sort_by([("entropy", "descending")])


def _shares_as_text(distribution: NDArray[np.float64]) -> str:
    return " ".join(f"{share:.2f}".removeprefix("0") for share in distribution)
