"""Passes of RobustGPM on the card: the functions of CUDA files that they run, and with what.

An argument of a function has the name of an item-side array, an input or a sum of the pass, or of
something that all labels have, such as ``begin``. What the type says in C++, it is converted to. Sums
are integers, in units by which they are divided.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from annotruth.engines.gpu.device import UNIT, cuda_source
from annotruth.engines.gpu.label_arrays import (
    LabelBlock,
    all_labels,
    kept_labels,
    sampled_labels,
)
from annotruth.engines.protocol import Pass
from annotruth.kernels import find_kernel
from annotruth.kernels.arrays import contiguous
from annotruth.kernels.shared import AGREEMENT_BINS

if TYPE_CHECKING:
    from annotruth.engines.gpu.session import GPUSession

LEAST_CLASSES = 32
"""From so many latent classes on, they are divided among the threads of a warp (``opinions.cu``)."""

_TYPES = {
    "double": np.float64,
    "float": np.float32,
    "i64": np.int64,
    "int": np.int32,
    "signed char": np.int8,
    "u32": np.uint32,
    "u64": np.uint64,
}
_PARAMETER = re.compile(r"(?:const )?(signed char|\w+)(\*?) (?:__restrict__ )?(\w+)")


@cache
def _parameters(kernel: str) -> list[tuple[str, Any, bool]]:
    """Return the names and types of a CUDA function's parameters, and which are arrays."""
    family, function = kernel.split(".")
    found = re.search(rf"__global__ void {function}\(([^)]*)\)", cuda_source(family))
    assert found is not None
    matches = map(_PARAMETER.match, re.split(r",\s+", found[1]))
    return [(one[3], _TYPES[one[1]], bool(one[2])) for one in matches if one is not None]


class LatentPass:
    """One run of a pass: its arguments by name, and the sums that CUDA functions add to."""

    def __init__(self, session: GPUSession, one: Pass, inputs: Mapping[str, Any]) -> None:
        self.session, self.one, self.inputs = session, one, inputs
        self._axes = {each.name: each.annotator_axis for each in one.inputs}
        self._sums = {each.name: session.sums(*each.shape) for each in one.sums}

    def run(self, kernel: str, block: LabelBlock, *defines: str, **others: Any) -> None:
        """Run ``family.function`` over labels; ``others`` are arguments that the pass does not have."""

        def argument(name: str, dtype: Any, *, is_array: bool) -> Any:
            if name in others:
                return others[name] if is_array else dtype(others[name])
            if name in self._sums:
                return self._sums[name]
            if name in self.one.state and not (name == "fold" and block.fold is not None):
                array = self.session.array(name, dtype)
                return block.of_items(array) if name == "item_hash" else array
            if name not in self.inputs:
                value = self.session.log_unit if name == "log_unit" else getattr(block, name)
                return value if is_array else dtype(value)
            if not is_array:
                return dtype(self.inputs[name])
            of_annotators = self._axes[name] is not None
            convert = self.session.by_annotator if of_annotators else self.session.table
            return convert(self.inputs[name], dtype=dtype)

        values = [argument(name, dtype, is_array=it) for name, dtype, it in _parameters(kernel)]
        self.session.run(kernel, *values, defines=defines)

    def results(self, log_base: float = math.e, **units: float) -> dict[str, Any]:
        """Return the sums as numbers; probabilities and logs have units of their own."""
        results = {}
        for each in self.one.sums:
            is_log = each.name.startswith("log")
            unit = units.get(each.name, float(self.session.log_unit) if is_log else UNIT)
            of_annotators = each.annotator_axis is not None
            convert = self.session.floats if of_annotators else self.session.small_floats
            factor = math.log(log_base) if is_log else 1.0
            results[each.name] = convert(self._sums[each.name], unit) * factor
        return results


class CardPosterior:
    """The posteriors of items over the classes of a pass, and what kernels need beside them.

    ``many``: Whether classes are divided among threads; by default, if they are many. Each of the two
      files has the same functions.
    """

    def __init__(self, one: LatentPass, block: LabelBlock, *, many: bool | None = None) -> None:
        session, prior = one.session, one.inputs["prior"]
        n, confusion = len(prior), session.by_annotator(one.inputs["confusion"])
        self._one, self._block, self._n_classes = one, block, n
        if n >= LEAST_CLASSES if many is None else many:
            self._family, self.log_base, self._defines = "opinions", math.e, f"N_CLASSES={n}"
            log_prior = np.log(prior)
            rows = np.vstack([log_prior + np.log(one.inputs["known_truth"]), log_prior])
            log_prior = session.table(rows, np.float32)
            self._tables = {"log_prior": log_prior, "log_confusion": np.log(confusion)}
        else:
            self._family, self.log_base, self._defines = "robust_gpm", 2.0, f"N_STATES={n}"
            self._tables = {"confusion": confusion}

    def write(self, to: Any = None, *, scratch: bool = False) -> None:
        """Write the posteriors; add them and the log-likelihood up, to nothing if ``scratch``."""
        session, n = self._one.session, self._n_classes
        self._tables["posterior"] = session.empty(self._block.n_items, n) if to is None else to
        sums = {"classes": session.sums(n), "log_likelihood": session.sums(1)} if scratch else {}
        self.run("posterior", **sums)

    def run(self, function: str, *defines: str, **others: Any) -> None:
        """Run a function of the classes' CUDA file."""
        kernel, others = f"{self._family}.{function}", {**self._tables, **others}
        self._one.run(kernel, self._block, self._defines, *defines, **others)


def _step(one: LatentPass, block: LabelBlock, *, many: bool | None = None) -> dict[str, Any]:
    """Compute the items' posteriors; add up what the M-step needs."""
    posterior = CardPosterior(one, block, many=many)
    posterior.write()
    posterior.run("count")
    return one.results(posterior.log_base)


def _write_posterior(one: LatentPass) -> dict[str, Any]:
    """Write the items' posteriors."""
    CardPosterior(one, _all(one)).write(one.session.array(*one.one.state), scratch=True)
    return {}


def _leave_one_out(one: LatentPass) -> dict[str, Any]:
    """Add up each annotator's leave-one-out log-likelihood under every response strategy."""
    posterior = CardPosterior(one, _all(one))
    posterior.write(scratch=True)
    posterior.run("leave_one_out", f"N_STRATEGIES={one.inputs['other'].shape[2]}")
    return one.results(log_base=2.0)


def _summarize(one: LatentPass) -> dict[str, Any]:
    """Summarize the items' posteriors, and write how likely each label was serious."""
    CardPosterior(one, _all(one), many=True).run("summarize")
    return one.results()


def _agreement(one: LatentPass) -> dict[str, Any]:
    """Count the items by the share of their most frequent label."""
    states = f"N_STATES={one.session.n_categories}"
    one.run("robust_gpm.agreement", _kept(one), states, n_bins=AGREEMENT_BINS)
    return one.results(items=1.0)


def _start(one: LatentPass) -> dict[str, Any]:
    """Add up with observed shares or known truths as the posteriors of classes."""
    block = _kept(one)
    n = one.session.n_categories * one.inputs["subtypes"].shape[1]
    others = {"posterior": one.session.empty(block.n_items, n), "n_bins": AGREEMENT_BINS}
    one.run("robust_gpm.observed", block, f"N_STATES={n}", **others)
    one.run("robust_gpm.count", block, f"N_STATES={n}", **others)
    return one.results()


def _score(one: LatentPass) -> dict[str, Any]:
    """Add up the log-probabilities of held-out labels by several predictors, and their products."""
    session, held = one.session, one.inputs["held"]
    block, xp = _sampled(one), session.device.xp
    is_held = block.fold == np.int8(held)
    place, item = xp.flatnonzero(is_held), block.item_of_label()
    # Labels are predicted from the others of their item.
    n_kept = xp.bincount(item[~is_held], minlength=block.n_items)
    item = item[place].astype(np.int64)
    has_others = n_kept[item] > 0
    place, item = place[has_others].astype(np.int64), item[has_others]
    n_models, n_correlations = len(one.inputs["first_state"]) - 1, len(one.inputs["correlations"])
    values = xp.zeros((len(place), n_models * n_correlations), np.float64)
    sizes = {"n_held": len(place), "n_models": n_models, "n_correlations": n_correlations}
    arrays = {"place": place, "item": item, "values": values}
    states = f"N_STATES={len(one.inputs['prior'])}"
    one.run("item_states.score", block, states, **arrays, **sizes)
    values = session.device.to_host(values)
    total = np.append(float(len(values)), values.sum(axis=0))
    return {"total": total, "products": values.T @ values}


def _run_as_is(one: LatentPass, block: LabelBlock, **units: float) -> dict[str, Any]:
    """Run the CUDA function that has the name of the pass."""
    kernel, defines, others = one.one.kernel, [], {}
    if "prior" in one.inputs:
        macro = "N_GROUPS" if "first_draw" in one.inputs else "N_STATES"
        defines = [f"{macro}={len(one.inputs['prior'])}"]
    if "first_draw" in one.inputs:
        others = {"n_draws": one.one.sums[0].shape[-1]}
    one.run(kernel, block, *defines, **others)
    return one.results(**units)


def _run_in_memory(one: LatentPass) -> dict[str, Any]:
    """Run the kernel over the labels in memory: few passes per fit."""
    session = one.session
    on_card = session.device.xp.ndarray
    inputs = {
        name: contiguous(session.to_host(value) if isinstance(value, on_card) else value)
        for name, value in one.inputs.items()
    }
    sums = {each.name: np.zeros(each.shape) for each in one.one.sums}
    kernel = find_kernel(one.one.kernel)
    kernel(session.labels.block(), 0, session.n_items, **inputs, **sums)
    axes = {each.name: each.annotator_axis for each in one.one.sums}
    return {
        name: values if axes[name] is None else session.to_engine(values)
        for name, values in sums.items()
    }


def _all(one: LatentPass) -> LabelBlock:
    return all_labels(one.session)


def _sampled(one: LatentPass) -> LabelBlock:
    return sampled_labels(one.session, "fold")


def _kept(one: LatentPass) -> LabelBlock:
    return kept_labels(one.session, "fold", one.inputs["held"])


PASSES: dict[str, Callable[[LatentPass], dict[str, Any]]] = {
    "robust_gpm.step": lambda one: _step(one, _all(one)),
    "robust_gpm.posterior": _write_posterior,
    "robust_gpm.leave_one_out": _leave_one_out,
    "robust_gpm.summarize": _summarize,
    "robust_gpm.count_agreements": _run_in_memory,
    "held_out.agreement": _agreement,
    "held_out.start": _start,
    "held_out.step": lambda one: _step(one, _kept(one), many=False),
    "held_out.hash_annotators": lambda one: _run_as_is(one, _all(one), hash=1.0),
    "held_out.hash_items": lambda one: _run_as_is(one, _all(one)),
    "held_out.assign_folds": lambda one: _run_as_is(one, _all(one)),
    "held_out.count_drawn": lambda one: _run_as_is(one, _sampled(one), counts=1.0),
    "held_out.agree": lambda one: _run_as_is(one, _sampled(one)),
    "item_states.summarize": lambda one: _run_as_is(one, _all(one)),
    "item_states.posterior": lambda one: _run_as_is(one, _all(one)),
    "item_states.score": _score,
    "people.moments": _run_in_memory,
    "people.log_likelihood": _run_in_memory,
    "people.count_compared": _run_in_memory,
    "people.agreement": _run_in_memory,
}
"""The passes over latent classes and states, by their kernels."""


def run_latent(session: GPUSession, one: Pass, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Run a pass of `PASSES`, and return its sums by name."""
    return PASSES[one.kernel](LatentPass(session, one, inputs))
