"""Passes of gpm, dawid-skene and SQUAREM on the card, on labels that may be copied to it in partitions.

What each function of ``kernels/cuda/gpm.cu``, ``dawid_skene.cu`` and ``squarem.cu`` is called with. The
array ``rows`` of Dawid and Skene's model is not used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from annotruth.engines.gpu.device import UNIT, slope_unit
from annotruth.engines.gpu.label_arrays import SORTED
from annotruth.engines.gpu.streaming import (
    BEGIN,
    LABELS,
    CardPartition,
    first_label,
    n_items,
    n_labels,
    reads,
    updates,
    writes,
)
from annotruth.kernels.arrays import Floats

if TYPE_CHECKING:
    from annotruth.engines.gpu.session import GPUSession

_EPS_BITS = 23
_EXPONENT_OF_1 = 127  # of a float
# With fewer labels than this by the annotators whose sums fit into shared memory, more threads help
# more than shared memory does.
_LEAST_SHARED = 0.3
_THREADS = 1024


class _Sums(NamedTuple):
    """How mu is added up by annotator: as integers that stay below 2**bits."""

    dtype: type
    bits: int
    most_scale: int
    """How many bits after the point mu has when it is rounded."""
    bytes_per_annotator: int
    """In shared memory: a word and a sum."""


_SINGLE = _Sums(np.uint32, bits=31, most_scale=_EPS_BITS - 1, bytes_per_annotator=8)
_DOUBLE = _Sums(np.uint64, bits=62, most_scale=52, bytes_per_annotator=24)


def _gpm_start(session: GPUSession, theta: str) -> dict[str, Any]:
    """Set theta to the observed shares, or to certainty where the truth is known."""
    session.run_over_items("gpm.start", *LABELS, writes(theta))
    return {}


def _gpm_step(
    session: GPUSession, theta: str, eps: Floats, pi: Floats, chance: float
) -> dict[str, Any]:
    """Take one EM step."""
    kind = _sums(session)
    serious = session.sums(session.n_annotators, dtype=kind.dtype)
    totals = session.sums(2)
    irregular = session.sums(*pi.shape) if len(pi) else None
    n_shared = _annotators_in_shared_memory(session)
    scale, real = _scale(session), session.real
    defines = {
        "ALL_SHARED": n_shared == session.n_annotators,
        "UNIFORM": irregular is None,
        "KNOWN": session.has_known_truths,
    }
    session.run_over_items(
        "gpm.step",
        *LABELS,
        updates(theta),
        _words(session, eps, scale),
        session.by_annotator(pi, dtype=real),
        real(chance),
        np.uint32(n_shared),
        session.log_unit,
        sums=(serious, irregular, totals),
        threads=_THREADS,
        blocks=session.device.n_processors,
        shared_bytes=n_shared * kind.bytes_per_annotator,
        defines=tuple(name for name, is_defined in defines.items() if is_defined),
    )
    unit = 2.0 ** scale[:, None] if session.is_double else UNIT
    # Rounding may put the sum of an annotator who is always serious above the number of labels.
    return {
        "serious": np.minimum(serious / 2.0**scale, session.labels_per_annotator),
        "irregular": pi if irregular is None else irregular / unit,
        "totals": session.small_floats(totals, session.log_unit) * np.log(2.0),
    }


def _gpm_posterior(
    session: GPUSession, theta: str, p_serious: str, eps: Floats, pi: Floats, chance: float
) -> dict[str, Any]:
    """Compute mu of every label and the log-likelihood."""
    totals, real = session.sums(1), session.real
    session.run_over_items(
        "gpm.posterior",
        *LABELS,
        reads(theta),
        writes(p_serious),
        _words(session, eps, _scale(session)),
        session.by_annotator(pi, dtype=real),
        real(chance),
        session.log_unit,
        sums=(totals,),
    )
    return {"log_likelihood": session.small_floats(totals, session.log_unit) * np.log(2.0)}


def _gpm_log_likelihood_by_annotator(
    session: GPUSession, theta: str, eps: Floats, pi: Floats, chance: float
) -> dict[str, Any]:
    """Add up, by annotator, the log-likelihood at ``eps`` and its slope in eps."""
    log_likelihood, slope = session.sums(session.n_annotators), session.sums(session.n_annotators)
    unit, real = slope_unit(int(session.labels_per_annotator[0])), session.real
    session.run_over_items(
        "gpm.log_likelihood_by_annotator",
        *LABELS,
        reads(theta),
        session.by_annotator(eps, dtype=real),
        session.by_annotator(pi, dtype=real),
        real(chance),
        session.log_unit,
        unit,
        sums=(log_likelihood, slope),
    )
    return {
        "log_likelihood": session.floats(log_likelihood, session.log_unit) * np.log(2.0),
        "slope": session.floats(slope, unit),
    }


def _sums(session: GPUSession) -> _Sums:
    return _DOUBLE if session.is_double else _SINGLE


def _scale(session: GPUSession) -> Any:
    """Return how many bits after the point each annotator's sum has."""
    xp, kind = session.device.xp, _sums(session)
    n_bits = xp.ceil(xp.log2(session.labels_per_annotator + 1))
    return xp.clip(kind.bits - n_bits, 0, kind.most_scale)


def _words(session: GPUSession, eps: Floats, scale: Any) -> Any:
    """Return each annotator's reliability and the precision of sums, as kernels take them."""
    xp, reliability = session.device.xp, session.by_annotator(eps, dtype=np.float64)
    if session.is_double:
        return xp.stack([reliability, 2.0**scale], axis=1)
    fixed = xp.clip(xp.rint(reliability * 2.0**_EPS_BITS), 0, 2**_EPS_BITS - 1).astype(np.uint32)
    exponent = (scale + _EXPONENT_OF_1).astype(np.uint32)
    return fixed << np.uint32(32 - _EPS_BITS) | exponent


def _annotators_in_shared_memory(session: GPUSession) -> int:
    """Return how many of the busiest annotators have their sums in shared memory."""
    most = min(
        session.n_annotators, session.device.shared_bytes // _sums(session).bytes_per_annotator
    )
    share = float(session.labels_per_annotator[:most].sum()) / session.n_labels
    return most if share >= _LEAST_SHARED else 0


_POSTERIOR = "posterior of a step"
_READ_AT_ONCE = 4  # classes, where there are few
_SHARE_UNIT = 2.0**31  # of sums of posteriors


def _dawid_skene_start(session: GPUSession, rows: str) -> dict[str, Any]:
    """Add up with the observed shares or known truths as posteriors."""
    classes = session.sums(session.n_categories)
    session.run_over_items(
        "dawid_skene.observed", *LABELS, writes(_posteriors(session)), sums=(classes,)
    )
    return _counted(session, classes)


def _dawid_skene_step(
    session: GPUSession, rows: str, prior: Floats, known_truth: Floats, confusion: Floats
) -> dict[str, Any]:
    """Take one E-step and add up what the M-step needs.

    ``known_truth`` is not used: a known truth has its own class only.
    """
    kernel = "e_step" if session.is_dense else "posterior"
    classes, totals = _run_posterior(session, kernel, _posteriors(session), prior, confusion)
    # The sums are read when all kernels have been started.
    return _counted(session, classes) | {"log_likelihood": _log_likelihood(session, totals)}


def _dawid_skene_posterior(
    session: GPUSession,
    rows: str,
    posterior: str,
    prior: Floats,
    known_truth: Floats,
    confusion: Floats,
) -> dict[str, Any]:
    """Compute the posterior of every item, and the log-likelihood."""
    _, totals = _run_posterior(session, "posterior", posterior, prior, confusion)
    return {"log_likelihood": _log_likelihood(session, totals)}


def _posteriors(session: GPUSession) -> str:
    """Return the name of the array for the posteriors of a step, which is made if it is not there."""
    if not session.has(_POSTERIOR):
        session.allocate(_POSTERIOR, per="items", shape=(_width(session),))
    return _POSTERIOR


def _width(session: GPUSession) -> int:
    """Return the length of rows of classes; if classes are few, without the first, and padded."""
    n = session.n_categories
    return max(n - 1 + (1 - n) % _READ_AT_ONCE, _READ_AT_ONCE) if session.is_dense else n


def _run_posterior(
    session: GPUSession, kernel: str, posterior: str, prior: Floats, confusion: Floats
) -> tuple[Any, Any]:
    """Write the posteriors; return their sums by class and that of log-likelihoods, on the card."""
    classes, totals = session.sums(session.n_categories), session.sums(1)
    if session.is_dense:
        table = _ratios(session, confusion, totals)
    else:
        table = session.by_annotator(confusion, axis=1, dtype=session.real)
    session.run_over_items(
        f"dawid_skene.{kernel}",
        *LABELS,
        writes(posterior),
        np.uint32(session.n_annotators),
        session.device.xp.asarray(prior.astype(session.real)),
        table,
        session.log_unit,
        sums=(classes, totals),
    )
    return classes, totals


def _log_likelihood(session: GPUSession, totals: Any) -> Floats:
    log_likelihood: Floats = session.small_floats(totals, session.log_unit) * np.log(2.0)
    return log_likelihood


def _ratios(session: GPUSession, confusion: Floats, totals: Any) -> Any:
    """Return probabilities of labels divided by those in the first class, in padded rows.

    What the first class contributes to the log-likelihood is added to ``totals``.
    """
    table = session.by_annotator(confusion, axis=1, dtype=np.float64)
    ratios = session.device.xp.empty((*table.shape[:-1], _width(session)), session.real)
    n_rows = np.int64(table.shape[0] * table.shape[1])
    session.run(
        "dawid_skene.divide",
        *(table, _labels_per_row(session), n_rows, session.log_unit, ratios, totals),
    )
    return ratios


def _labels_per_row(session: GPUSession) -> Any:
    """Return how many labels each row has, labels x annotators."""

    def make() -> Any:
        counts = session.to_engine(session.labels.labels_per_category)
        return session.device.xp.ascontiguousarray(counts.T.astype(np.uint32))

    return session.cached("labels per row", make)


def _counted(session: GPUSession, classes: Any) -> dict[str, Any]:
    """Add up the posteriors of the last E-step by label and annotator."""
    counts = session.sums(session.n_categories, session.n_annotators, session.n_categories)
    session.sort_labels()
    session.run_over_items(
        "dawid_skene.count",
        *map(reads, SORTED),
        n_labels,
        reads(_posteriors(session)),
        sums=(counts,),
    )
    return {
        "counts": session.floats(counts, _SHARE_UNIT),
        "classes": session.small_floats(classes, _SHARE_UNIT),
    }


def _copy_cells(session: GPUSession, x: str, copy: str) -> dict[str, Any]:
    """Copy an array of one number per cell."""

    def n_entries(partition: CardPartition) -> np.int64:
        return (
            n_items(partition) * session.n_categories if session.is_dense else n_labels(partition)
        )

    session.run_over_items("squarem.copy_cells", n_entries, reads(x), writes(copy))
    return {}


def _extrapolate_cells(
    session: GPUSession, x: str, x0: str, x1: str, limit: float
) -> dict[str, Any]:
    """Extrapolate the items' distributions."""
    session.run_over_items(
        "squarem.extrapolate_cells",
        reads(BEGIN),
        first_label,
        n_items,
        updates(x),
        updates(x0),
        reads(x1),
        session.real(limit),
    )
    return {}


PASSES: dict[str, Callable[..., dict[str, Any]]] = {
    "gpm.start": _gpm_start,
    "gpm.step": _gpm_step,
    "gpm.posterior": _gpm_posterior,
    "gpm.log_likelihood_by_annotator": _gpm_log_likelihood_by_annotator,
    "dawid_skene.start": _dawid_skene_start,
    "dawid_skene.step": _dawid_skene_step,
    "dawid_skene.posterior": _dawid_skene_posterior,
    "squarem.copy_cells": _copy_cells,
    "squarem.extrapolate_cells": _extrapolate_cells,
}
"""The passes, by their kernels: called with the session, the names of item-side arrays, and inputs."""
