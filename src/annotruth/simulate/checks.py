"""Checks of the options that all generators share, and their seeds."""

from collections.abc import Mapping, Sequence
from numbers import Real

import numpy as np

from annotruth.errors import InputError, shown
from annotruth.io.content import available_memory
from annotruth.observations.disk import format_size
from annotruth.observations.validate import check_seed, is_integer

_MOST = 10**9  # more are a mistake in typing, whatever the memory
_FLAGS = {
    "n_items": "--items",
    "n_annotators": "--annotators",
    "n_categories": "--categories",
    "n_labels": "--categories",
    "labels_per_item": "--labels-per-item",
    "answers_per_item": "--labels-per-item",
    "comparisons_per_annotator": "--comparisons-per-annotator",
    "spammer_share": "--spammers",
    "side_bias": "--side-bias",
    "tie_rate": "--tie-rate",
}


def generator(seed: int | np.random.Generator) -> np.random.Generator:
    """Return the generator of random numbers of a seed, or the one that was given."""
    if isinstance(seed, np.random.Generator):
        return seed
    check_seed(seed)
    return np.random.default_rng(seed)


def check_choices(choices: Mapping[str, Sequence[str]], **given: str) -> None:
    """Refuse a value of an option that is not one of its choices."""
    for option, name in given.items():
        if name not in choices[option]:
            raise InputError(f"unknown {option} {shown(name)}: choose {', '.join(choices[option])}")


def check_counts(minimum: int, **given: object) -> None:
    """Refuse numbers of something that are not whole, below the minimum, or above a billion."""
    for name, count in given.items():
        if not (is_integer(count) and minimum <= count <= _MOST):
            raise InputError(
                f"{named(name)} is {shown(count)}: give a whole number from {minimum} to {_MOST:,}"
            )


def check_per_item(n_annotators: int, **given: int | None) -> None:
    """Refuse numbers of annotators per item that are not from 1 to all of them; None is all."""
    for name, count in given.items():
        if count is not None and not (is_integer(count) and 1 <= count <= n_annotators):
            raise InputError(
                f"{named(name)} is {shown(count)}: give a whole number from 1 to the number of "
                f"annotators ({n_annotators}), or leave it out for all"
            )


def check_share(**given: object) -> None:
    """Refuse shares outside 0 to 1."""
    for name, share in given.items():
        # Written as what is allowed, so that nan is refused too.
        if not (isinstance(share, Real) and 0 <= float(share) <= 1):
            raise InputError(f"{named(name)} is {shown(share)}: give a number from 0 to 1")


def check_range(**given: tuple[float, float]) -> None:
    """Refuse pairs that are not the lowest and the highest of shares."""
    for name, value in given.items():
        try:
            low, high = value
            is_valid = bool(0 <= low <= high <= 1)
        except (TypeError, ValueError):
            is_valid = False
        if not is_valid:
            raise InputError(f"{name} is {shown(value)}: give the lowest and highest, from 0 to 1")


def check_memory(n_bytes: int) -> None:
    """Refuse a crowd that needs more memory than there is, before any of it is drawn."""
    available = available_memory()
    if n_bytes > available:
        raise InputError(
            f"such a crowd needs about {format_size(n_bytes)} of memory, and {format_size(available)} "
            "are free: ask for fewer items, annotators, labels per item or categories"
        )


def named(option: str) -> str:
    """Return an option with its flag of `annotruth simulate`, if that has another name."""
    flag = _FLAGS.get(option)
    return option if flag is None else f"{option} (`{flag}`)"
