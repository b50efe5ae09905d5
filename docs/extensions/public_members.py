"""Which methods and attributes the page of a class shows: what users call, nothing internal."""

from functools import cached_property
from types import FunctionType

from sphinx.application import Sphinx
from sphinx.config import Config

import annotruth as at
from annotruth.models.base import Estimator

_OF_ESTIMATORS = (
    *("fit", "partial_fit", "predict", "predict_proba", "score", "load_fit"),
    *("get_params", "set_params", "result_"),
)
_OF_LABELS = (
    *("of", "with_gold", "with_annotator_prior", "with_classifier"),
    *(
        "with_annotator_covariates",
        "with_item_covariates",
        "to_arrow",
        "subset",
        "subset_items",
        "describe",
        "same_as",
    ),
    *("n_items", "n_annotators", "n_labels", "n_categories"),
    *("labels_per_item", "labels_per_annotator"),
)


def setup(app: Sphinx) -> dict[str, bool]:
    """Give the templates of autosummary the members by class."""
    app.connect("config-inited", _add_members)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _add_members(app: Sphinx, config: Config) -> None:
    config.autosummary_context["public_members"] = public_members()


def public_members() -> dict[str, str]:
    """Return the members by the name of the class; other classes show all they have."""
    classes = {
        name: getattr(at, name) for name in at.__all__ if isinstance(getattr(at, name), type)
    }
    chosen = {name: _chosen(each) for name, each in classes.items()}
    return {f"annotruth.{name}": ", ".join(of) for name, of in chosen.items() if of}


def _chosen(cls: type) -> list[str]:
    if issubclass(cls, Estimator):
        return list(_OF_ESTIMATORS)
    if cls is at.Labels:
        return list(_OF_LABELS)
    if cls.__dir__ is object.__dir__:
        return []
    offered = cls.__dir__(None)  # what completion offers, the same for every instance
    kinds = (FunctionType, property, cached_property)
    return [name for name in offered if isinstance(getattr(cls, name, None), kinds)]
