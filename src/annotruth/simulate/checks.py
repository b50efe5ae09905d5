"""Checks of the options that all generators share, and their seeds."""

from collections.abc import Mapping, Sequence
from numbers import Real

import numpy as np

from annotruth.errors import InputError
from annotruth.labels.validate import check_seed, is_integer


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
            raise InputError(f"unknown {option} {name!r}: choose {', '.join(choices[option])}")


def check_counts(minimum: int, **given: object) -> None:
    """Refuse numbers of something that are not whole, or below the minimum."""
    for name, count in given.items():
        if not is_integer(count) or count < minimum:
            raise InputError(f"{name} is {count!r}: give a whole number of at least {minimum}")


def check_share(**given: object) -> None:
    """Refuse shares outside 0 to 1."""
    for name, share in given.items():
        # Written as what is allowed, so that nan is refused too.
        if not (isinstance(share, Real) and 0 <= float(share) <= 1):
            raise InputError(f"{name} is {share!r}: give a number from 0 to 1")
