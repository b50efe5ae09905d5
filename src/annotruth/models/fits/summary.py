"""The summary of a fit: what `annotruth fit` prints."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from annotruth.kernels.arrays import slices
from annotruth.models.base_fit import SPAMMER_BELOW
from annotruth.models.fits.notes import DISPUTED_RULE

if TYPE_CHECKING:
    from annotruth.models.result import Fit


def summary_of(fit: Fit) -> str:
    """Return a few lines: the data, convergence, annotators, items and labels."""
    data = fit.data
    lines = fit.heading_lines()
    if fit.chosen is not None and "instead_of" not in fit.chosen:  # the first line says that
        lines.append(f"chosen: {fit.chosen['why']}")
    if data.read_as:
        lines.append(f"read as: {data.read_as}")
    if data.scale.reason:
        lines.append(data.scale.reason)
    if data.left_out:
        lines.append(data.left_out)
    if data.scale.edges is not None:
        low, high = data.scale.bounds
        lines.append(
            f"labels put into {len(data.scale)} bins from {low:g} to {high:g}; the value of a "
            "bin is its centre"
        )
    lines += fit.summary_lines()
    if data.classifier is not None:
        from annotruth.models.classifier import judge_classifier  # loads SciPy

        lines.append(f"classifier: {judge_classifier(fit).describe()}")
    if fit.distribution is not None:
        lines.append(fit.readout_line())
    if not fit.withholds_figures:
        lines += _figures(fit)
    return "\n".join([*lines, *fit.further_lines()])


def _figures(fit: Fit) -> list[str]:
    """Return the lines on items, scores and labels."""
    data, lines = fit.data, []
    if fit.distribution is not None:
        n_sure = np.count_nonzero(fit.distribution.confidence() > 0.9)
        lines.append(
            f"items: {n_sure:,} of {data.n_items:,} have a top label above 90% "
            f"{'probability' if fit.readout == 'right' else 'of opinion'}; "
            f"mean difficulty (entropy) {fit.distribution.entropy().mean():.2f} "
            f"of at most {math.log(len(data.scale)):.2f}"
        )
    if fit.disputed is not None and (n_disputed := np.count_nonzero(fit.disputed)):
        are = "is" if n_disputed == 1 else "are"
        lines.append(f"items: {n_disputed:,} {are} disputed: {DISPUTED_RULE}")
    if fit.expectation is not None:
        low, median, high = np.quantile(fit.expectation, [0.0, 0.5, 1.0])
        lines.append(f"scores: {low:.2f} to {high:.2f}, median {median:.2f}")
    if fit.p_serious is not None:
        n_irregular = sum(
            np.count_nonzero(fit.p_serious[rows] < SPAMMER_BELOW) for rows in slices(data.n_labels)
        )
        lines.append(f"labels: {n_irregular:,} of {data.n_labels:,} are probably not serious")
    return lines
