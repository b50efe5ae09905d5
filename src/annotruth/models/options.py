"""The options of estimators, with the interface of scikit-learn."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

from annotruth.engines import AUTO, ENGINES
from annotruth.errors import InputError, did_you_mean
from annotruth.observations.keywords import ReadKeywords, ReadKeywordsOfOne
from annotruth.observations.options import ReadOptions
from annotruth.observations.validate import check_option

if TYPE_CHECKING:
    from annotruth.engines import Engine


@dataclass(kw_only=True)
class OptionsBase:
    """Base of all estimators: options are keyword-only fields, as in scikit-learn."""

    name: ClassVar[str]
    """The model's name on the command line."""

    fits: ClassVar[str] = "labels"
    """What the model is fitted to: "labels", "comparisons" or "sets"."""

    def _check_option_types(self) -> None:
        """Refuse options of a wrong type."""
        for option in fields(self):
            check_option(option.name, str(option.type), getattr(self, option.name))

    def settings(self) -> dict[str, Any]:
        """Return the options this estimator was made with; an object, such as an engine, by its class."""
        settings = {}
        for option in fields(self):
            value = getattr(self, option.name)
            is_plain = isinstance(value, str | int | float | None)
            settings[option.name] = value if is_plain else type(value).__name__
        return settings

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the options this estimator was made with (scikit-learn's interface)."""
        return {option.name: getattr(self, option.name) for option in fields(self)}

    def set_params(self, **options: Any) -> Self:
        """Set options (scikit-learn's interface)."""
        self.check_options(options)
        for name, value in options.items():
            setattr(self, name, value)
        return self

    @classmethod
    def check_options(cls, options: Iterable[str]) -> None:
        """Refuse options that the model does not have."""
        known = [option.name for option in fields(cls)]
        for name in options:
            if name not in known:
                has = ", ".join(known) or "none"
                raise InputError(
                    f"{cls.name} has no option {name!r}: it has {has}"
                    f"{did_you_mean(name, [*known, *ReadOptions.names()])}"
                )


class FitKeywords(ReadKeywordsOfOne, total=False):
    """Keywords of `annotruth.fit`: how to read labels, and the options of models."""

    tol: float
    max_iter: int
    acceleration: bool
    engine: str | Engine
    truth: str
    behavior: str
    n_init: int
    seed: int
    alpha: float
    beta: float
    prior: float
    spam_prior: float
    diagonal: float
    off_diagonal: float
    n_subtypes: int
    subtype_prior: float
    pseudo_labels: float
    strength: float
    expertise_shape: float
    difficulty_shape: float
    ambiguity: Any
    n_types: int | None


class AdviceKeywords(FitKeywords, total=False):
    """Keywords of advice on labels: those of `annotruth.fit` that it takes."""

    model: Any
    gold: Any
    annotator_prior: Any
    read: Any
    question: str | None


class RankKeywords(ReadKeywords, total=False):
    """Keywords of `annotruth.rank`: how to read comparisons, and the options of models."""

    tol: float
    max_iter: int
    engine: str | Engine
    seed: int
    regularization: float
    reliability_prior_a: float
    reliability_prior_b: float


def settings_of(fit: Any) -> dict[str, Any]:
    """Return the options that the model of a fit can be made with again."""
    settings = dict(fit.settings)
    engine = str(settings.pop("engine", "")).partition(" ")[0]  # "auto (gpu)" is auto
    # An engine object of the caller's is stored by its class name, and cannot be made again.
    return {**settings, "engine": engine} if engine in (*ENGINES, AUTO) else settings


def check_positive(**options: float) -> None:
    """Refuse options that are not above 0 and finite."""
    for name, value in options.items():
        if not 0 < value < math.inf:
            raise InputError(f"{name} must be above 0, and finite, not {value}")
