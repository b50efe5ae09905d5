"""GPM's passes on the card: what each kernel of ``kernels/cuda/gpm.cu`` is called with."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from annotruth.engines.gpu.device import UNIT, slope_unit
from annotruth.engines.gpu.session import GPUSession
from annotruth.engines.gpu.streaming import LABELS, reads, updates, writes
from annotruth.kernels.arrays import Floats

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


def start(session: GPUSession, theta: str) -> dict[str, Any]:
    """Set theta to the observed shares, or to certainty where the truth is known."""
    session.run_over_items("gpm.start", *LABELS, writes(theta))
    return {}


def step(session: GPUSession, theta: str, eps: Floats, pi: Floats, chance: float) -> dict[str, Any]:
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


def posterior(
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


def log_likelihood_by_annotator(
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
