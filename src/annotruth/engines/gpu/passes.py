"""Passes on the card: the functions of CUDA files that they run, and with what.

An argument of a function has the name of an item-side array, an input or a sum of the pass, of a unit,
or of something that all labels have, such as ``begin``. What the type says in C++, it is converted to.
Sums are integers, in units by which they are divided.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from annotruth.engines.gpu.device import (
    LABELS_AT_ONCE,
    category_shift,
    check_room,
    cuda_source,
    unit_of,
)
from annotruth.engines.protocol import Pass
from annotruth.kernels.arrays import Floats
from annotruth.kernels.shared import AGREEMENT_BINS

if TYPE_CHECKING:
    from annotruth.engines.gpu.session import GPUSession, LabelBlock

IN_MEMORY = (
    *(f"held_out.{name}" for name in ("hash_annotators", "hash_items", "assign_folds")),
    *("held_out.count_drawn", "held_out.agree", "robust_gpm.count_agreements"),
    *(f"item_states.{name}" for name in ("summarize", "posterior", "score")),
)
"""The passes of robust-gpm that run in memory: each few times in a fit, or over a sample of the labels."""

_LEAST = 1e-37  # no probability counts as less
_PARAMETER = re.compile(r"(?:const )?(\w+)(\*?) (?:__restrict__ )?(\w+)")
_TYPES = {
    "double": np.float64,
    "float": np.float32,
    "i64": np.int64,
    "int": np.int32,
    "u32": np.uint32,
    "u64": np.uint64,
}


@cache
def _parameters(kernel: str) -> list[tuple[str, Any, bool]]:
    """Return the names and types of a CUDA function's parameters, and which are arrays.

    The type ``real``, which depends on the session, is None.
    """
    family, function = kernel.split(".")
    signature = rf"__global__ void (?:__launch_bounds__\(\d+\)\s+)?{function}\(([^)]*)\)"
    found = re.search(signature, cuda_source(family))
    assert found is not None
    matches = [_PARAMETER.fullmatch(each.strip()) for each in found[1].split(",")]
    assert None not in matches
    return [(one[3], _TYPES.get(one[1]), bool(one[2])) for one in matches if one is not None]


class CardPass:
    """One run of a pass: its arguments by name, and the sums that CUDA functions add to."""

    def __init__(self, session: GPUSession, one: Pass, inputs: Mapping[str, Any]) -> None:
        self.session, self.one = session, one
        self.xp = session.device.xp
        self.inputs = dict(inputs)
        self._axes = {each.name: each.annotator_axis for each in one.inputs}
        self.sums = {each.name: self.xp.zeros(each.shape, np.uint64) for each in one.sums}

    def on_card(self, name: str) -> Any:
        """Return an input; one with an annotator axis is brought to the card."""
        value, axis = self.inputs[name], self._axes[name]
        if axis is not None and not isinstance(value, self.xp.ndarray):
            value = self.inputs[name] = self.session.to_engine(value, axis)
        return value

    def run(
        self,
        kernel: str,
        *defines: str,
        block: LabelBlock | None = None,
        launch: Mapping[str, int] = MappingProxyType({}),
        **others: Any,
    ) -> None:
        """Run ``family.function`` over labels.

        ``launch`` are options of `CUDADevice.run`, and ``others`` arguments that the pass does not have.
        """
        session, block = self.session, block or self.session.all_labels
        state = self.one.named_state({name: name for name in self.one.state})

        def argument(name: str, dtype: Any, *, is_array: bool) -> Any:
            if name in others or name in self.sums:
                value = (others if name in others else self.sums)[name]
            elif name in self.inputs:
                value = self.on_card(name)
            elif name in state:
                return session.card_array(state[name], dtype)
            else:
                value = getattr(session if name.endswith("unit") else block, name)
            if not is_array:
                return dtype(value)
            if value is None or not value.size:
                return np.uint64(0)
            return self.xp.ascontiguousarray(self.xp.asarray(value, dtype))

        values = [
            argument(name, dtype or session.real, is_array=is_array)
            for name, dtype, is_array in _parameters(kernel)
        ]
        n_categories = block.n_categories
        layout = f"N_CATEGORIES={n_categories}", f"CATEGORY_SHIFT={category_shift(n_categories)}"
        single = ("SINGLE",) if session.real is np.float32 else ()
        family, function = kernel.split(".")
        session.device.run(family, function, (*layout, *single, *defines), values, **launch)

    def results(self, **units: float) -> dict[str, Floats]:
        """Return the sums as numbers; those of an axis of annotators stay on the card."""
        results = {}
        for each in self.one.sums:
            is_log = each.name.startswith("log") or each.name == "totals"
            unit = units.get(each.name, self.session.log_unit if is_log else self.session.unit)
            values = self.sums[each.name].view(np.int64) / float(unit)
            is_small = each.annotator_axis is None
            results[each.name] = self.session.device.to_host(values) if is_small else values
        return results


def _run_as_is(one: CardPass) -> dict[str, Floats]:
    """Run the CUDA function that has the name of the pass."""
    one.run(one.one.kernel)
    return one.results(slope=one.session.slope_unit)


_THREADS = 1024
_BYTES_PER_ANNOTATOR = 8  # in shared memory: a word and a sum
# With fewer labels than this by the annotators whose sums fit into shared memory, more threads help
# more than shared memory does.
_LEAST_SHARED = 0.3
_EPS_BITS, _SUM_BITS, _LONG_UNIT = 23, 31, 2.0**32
_EXPONENT_OF_1 = 127  # of a float


def _gpm_step(one: CardPass) -> dict[str, Floats]:
    """Take one EM step; in single precision as ``kernels/cuda/gpm_single.cu`` describes it."""
    session, xp = one.session, one.xp
    if session.real is np.float64:
        return _run_as_is(one)
    n_labels = session.labels_per_annotator
    # How many bits after the point each annotator's sum has.
    scale = xp.clip(_SUM_BITS - xp.ceil(xp.log2(n_labels + 1)), 0, _EPS_BITS - 1)
    serious, n_shared = xp.zeros(len(n_labels), np.uint32), _annotators_in_shared_memory(session)
    macros = {
        "ALL_SHARED": n_shared == len(n_labels),
        "UNIFORM": not one.inputs["pi"].size,
        "KNOWN": session.all_labels.known is not None,
    }
    one.run(
        "gpm_single.step",
        *(name for name, is_defined in macros.items() if is_defined),
        words=_words(one.on_card("eps"), scale, xp),
        n_shared=n_shared,
        serious=serious,
        launch={
            "blocks": session.device.n_processors,
            "threads": _THREADS,
            "shared_bytes": n_shared * _BYTES_PER_ANNOTATOR,
        },
    )
    sums = one.results(irregular=_LONG_UNIT, totals=session.log_unit / np.log(2.0))
    # Rounding may put the sum of an annotator who is always serious above the number of labels.
    return {**sums, "serious": xp.minimum(serious / 2.0**scale, n_labels)}


def _words(eps: Any, scale: Any, xp: Any) -> Any:
    """Return each annotator's reliability and the precision of sums, as the kernel takes them."""
    fixed = xp.clip(xp.rint(eps * 2.0**_EPS_BITS), 0, 2**_EPS_BITS - 1).astype(np.uint32)
    exponent = (scale + _EXPONENT_OF_1).astype(np.uint32)
    return fixed << np.uint32(32 - _EPS_BITS) | exponent


def _annotators_in_shared_memory(session: GPUSession) -> int:
    """Return how many of the busiest annotators have their sums in shared memory."""
    n_labels = session.labels_per_annotator
    most = min(len(n_labels), session.device.shared_bytes // _BYTES_PER_ANNOTATOR)
    share = float(n_labels[:most].sum()) / session.labels.n_labels
    return most if share >= _LEAST_SHARED else 0


class _Posterior:
    """The posteriors of items over the states of a pass, and what kernels need beside them."""

    def __init__(self, one: CardPass, held: int | None = None) -> None:
        self._one = one
        self._block = one.session.kept_labels(held) if held is not None else None
        n_items = (self._block or one.session.all_labels).n_items
        if "prior" in one.inputs:
            prior, confusion = one.inputs["prior"], one.on_card("confusion")
            if one.one.kernel.startswith("dawid_skene"):  # labels x annotators x classes
                confusion = confusion.transpose(1, 0, 2)
            known = np.maximum(prior, _LEAST) * one.inputs["known_truth"]
            with np.errstate(divide="ignore"):
                log_prior = np.log(np.vstack([prior, known]))
            log_confusion = one.xp.log(one.xp.maximum(confusion, _LEAST))
            self._others = {"log_prior": log_prior, "log_confusion": log_confusion}
            self._n_states = len(prior)
        else:  # of the start: there are observed shares
            subtypes = one.inputs.get("subtypes", np.ones((AGREEMENT_BINS, 1)))
            self._others = {"subtypes": subtypes, "n_bins": AGREEMENT_BINS}
            self._n_states = one.session.labels.n_categories * subtypes.shape[1]
        if "posterior" not in one.one.state:
            self._others["posterior"] = one.xp.empty((n_items, self._n_states))

    def run(self, function: str, *defines: str, **others: Any) -> None:
        """Run a function of the CUDA file."""
        states = f"N_STATES={self._n_states}"
        others = {**self._others, **others}
        self._one.run(f"latent.{function}", states, *defines, block=self._block, **others)

    def write(self, **sums: Any) -> None:
        """Write the posteriors; sums that the pass does not have, or that are given, are not used."""
        classes, log_likelihood = (self._one.xp.zeros(n, np.uint64) for n in (self._n_states, 1))
        unused = {"classes": classes, "log_likelihood": log_likelihood}
        self.run("posterior", **{**unused, **self._one.sums, **sums})

    def count(self) -> dict[str, Floats]:
        """Add up the posteriors by annotator and label, and return all sums."""
        if not self._one.one.kernel.startswith("dawid_skene"):
            self.run("count")
            return self._one.results()
        counts = self._one.xp.ascontiguousarray(self._one.sums["counts"].transpose(1, 0, 2))
        self.run("count", counts=counts)
        self._one.sums["counts"] = self._one.xp.ascontiguousarray(counts.transpose(1, 0, 2))
        return self._one.results()


def _start(one: CardPass) -> dict[str, Floats]:
    """Add up with observed shares or known truths as the posteriors of classes."""
    posterior = _Posterior(one, one.inputs.get("held"))
    posterior.run("observed")
    return posterior.count()


def _step(one: CardPass) -> dict[str, Floats]:
    """Compute the items' posteriors; add up what the M-step needs."""
    posterior = _Posterior(one, one.inputs.get("held"))
    posterior.write()
    return posterior.count()


def _write_posterior(one: CardPass) -> dict[str, Floats]:
    """Write the items' posteriors."""
    _Posterior(one).write()
    return one.results()


def _leave_one_out(one: CardPass) -> dict[str, Floats]:
    """Add up each annotator's leave-one-out log-likelihood under every response strategy."""
    posterior = _Posterior(one)
    posterior.write(log_likelihood=one.xp.zeros(1, np.uint64))
    posterior.run("leave_one_out", f"N_STRATEGIES={one.inputs['other'].shape[2]}")
    return one.results()


def _summarize(one: CardPass) -> dict[str, Floats]:
    """Summarize the items' posteriors, and write how likely each label was serious."""
    _Posterior(one).run("summarize")
    return one.results()


def _agreement(one: CardPass) -> dict[str, Floats]:
    """Count the items by the share of their most frequent label."""
    block = one.session.kept_labels(one.inputs["held"])
    states = f"N_STATES={one.session.labels.n_categories}"
    one.run("latent.agreement", states, block=block, n_bins=AGREEMENT_BINS)
    return one.results(items=1.0)


def _count_compared(one: CardPass) -> dict[str, Floats]:
    """Count the labels that can be compared with others."""
    one.run(one.one.kernel)
    return one.results(counts=1.0)


def _compare(one: CardPass) -> dict[str, Floats]:
    """Add up how far annotators agree with others, as products of two values of a table."""
    labels = one.session.labels
    largest = max(
        float(np.abs(one.inputs["table" if "table" in one.inputs else "agreement"]).max()), 1.0
    )
    bits = int(np.ceil(np.log2(largest**2)))
    unit = unit_of(bits, int(labels.labels_per_annotator.max()))
    states = (f"N_STATES={len(one.inputs['prior'])}",) if "prior" in one.inputs else ()
    one.run(one.one.kernel, *states, moment_unit=unit)
    return one.results(moments=unit, sums=unit)


def _strategies(one: CardPass) -> dict[str, Floats]:
    """Add up each annotator's log-likelihood in every response strategy, given the others' labels.

    What the others say is a number per label and state, and so computed for some of the items at a time.
    """
    n_states = len(one.inputs["prior"])
    sizes = {
        "n_variants": len(one.inputs["serious"]),
        "n_behaviors": one.inputs["careless"].shape[1],
        "n_strategies": len(one.inputs["reliability"]),
    }
    for block in one.session.parts(LABELS_AT_ONCE):
        check_room(one.session.device, 4 * block.n_labels * n_states, "what others say of labels")
        cavity = one.xp.empty((block.n_labels, n_states), np.float32)
        for function in ("cavities", "log_likelihood"):
            states = f"N_STATES={n_states}"
            one.run(f"people.{function}", states, block=block, cavity=cavity, **sizes)
    return one.results()


PASSES: dict[str, Callable[[CardPass], dict[str, Floats]]] = {
    **dict.fromkeys(
        (
            *(f"gpm.{name}" for name in ("start", "posterior", "log_likelihood_by_annotator")),
            *("squarem.copy_cells", "squarem.extrapolate_cells"),
        ),
        _run_as_is,
    ),
    "gpm.step": _gpm_step,
    "dawid_skene.start": _start,
    "dawid_skene.step": _step,
    "dawid_skene.posterior": _write_posterior,
    "robust_gpm.step": _step,
    "robust_gpm.posterior": _write_posterior,
    "robust_gpm.leave_one_out": _leave_one_out,
    "robust_gpm.summarize": _summarize,
    "held_out.agreement": _agreement,
    "people.count_compared": _count_compared,
    "people.moments": _compare,
    "people.agreement": _compare,
    "people.log_likelihood": _strategies,
    "held_out.start": _start,
    "held_out.step": _step,
}
"""The passes that run on the card, by their kernels."""
