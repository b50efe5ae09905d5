"""What every fit tells, wherever its labels are: the annotators, and how the iterations went."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotruth.errors import InputError
from annotruth.kernels.arrays import Floats
from annotruth.labels import LabelSummary
from annotruth.labels.buffers import as_arrow
from annotruth.labels.formatting import counted
from annotruth.models.em import History

Column: TypeAlias = Floats | NDArray[np.bool_] | pa.Array
"""A column of a model's own: numbers, yes or no, or text."""

SPAMMER_BELOW = 0.5
"""Reliability under which the paper calls an annotator a spammer."""

TOO_FEW = "too few labels to tell"
"""The behavior of annotators of whom the labels do not tell enough."""


@dataclass(frozen=True, eq=False)
class BaseFit(ABC):
    """What a model found of the annotators, and how.

    What a model cannot give is None, and absent from the tables.

    Attributes
    ----------
    model, settings
        The model's name and the options it was fitted with.
    data
        The labels.
    history
        The history of the iterations and why they ended.
    reliability, low, high
        Each annotator's reliability with its 95% interval.
    behavior
        What each annotator does, in a word.
    annotator_columns
        What else the model knows of them, such as a bias: more columns of the table.
    parameters
        The model's own, by name: what it takes beside the above to predict labels and to go on.
    chosen
        For a model chosen by ``auto``: ``model``, ``why`` and ``scores``, as `Choice.record` tells.
    """

    model: str
    settings: dict[str, Any]
    data: LabelSummary
    history: History
    reliability: Floats | None = None
    low: Floats | None = None
    high: Floats | None = None
    behavior: Sequence[str] | None = None
    annotator_columns: Mapping[str, Column] = field(default_factory=dict)
    parameters: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    chosen: Mapping[str, Any] | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model} on {self.data.describe()}: {self.stop_reason})"

    @property
    @abstractmethod
    def knows_serious(self) -> bool:
        """Whether the model tells how likely each label was serious."""

    @property
    def n_iter(self) -> int:
        """How many iterations were made."""
        return self.history.n_iter

    @property
    def converged(self) -> bool:
        """Whether the stopping rule was met."""
        return self.history.converged

    @property
    def stop_reason(self) -> str:
        """Why the iterations ended."""
        return self.history.stop_reason

    @property
    def log_likelihood(self) -> float | None:
        """Log-likelihood of all labels at the end; None for a model that has none."""
        history = self.history.log_likelihood
        return float(history[-1]) if len(history) else None

    @property
    def spammer(self) -> NDArray[np.bool_] | None:
        """Whether each annotator is a spammer: serious less than half of the time.

        Only models that know serious labels from others can tell; being wrong is no proof.
        """
        if self.reliability is None or not self.knows_serious:
            return None
        return self.reliability < SPAMMER_BELOW

    @property
    def n_spammers(self) -> int | None:
        """How many annotators are spammers."""
        return None if self.spammer is None else int(self.spammer.sum())

    def parameter(self, name: str, *shape: int) -> NDArray[Any]:
        """Return a parameter of the model's own, which must be there and of that shape."""
        values = self.parameters.get(name)
        if values is None or values.shape != shape:
            raise InputError(
                f"this fit of {self.model} has no {name} of {' x '.join(map(str, shape))}: it was "
                "saved by another version; fit the labels again"
            )
        return values

    def annotator_values(self) -> dict[str, Column | Sequence[str]]:
        """Return all that is known of annotators, as columns by name."""
        columns = {
            "reliability": self.reliability,
            "low": self.low,
            "high": self.high,
            "spammer": self.spammer,
            "behavior": self.behavior,
            **self.annotator_columns,
        }
        return {name: column for name, column in columns.items() if column is not None}

    def summary_of_annotators(self) -> list[str]:
        """Tell what was dropped, how the fit went, and what it found of annotators, in lines."""
        data = self.data
        lines = []
        if data.n_dropped:
            what = counted(data.n_dropped, "row had no label and was", "rows had no label and were")
            lines.append(f"{what} dropped")
        if self.n_iter:
            settled = "settled" if self.converged else "NOT settled"
            lines.append(
                f"{settled} after {counted(self.n_iter, 'iteration')} ({self.stop_reason})"
            )
        if self.log_likelihood is not None:
            lines.append(
                f"log-likelihood {self.log_likelihood:,.2f}, "
                f"{self.log_likelihood / data.n_labels:.6f} a label"
            )
        if self.reliability is not None:
            told = f"annotators: median reliability {np.median(self.reliability):.2f}"
            if self.n_spammers is not None:
                told += (
                    f"; {self.n_spammers:,} of {data.n_annotators:,} are spammers "
                    f"(reliability below {SPAMMER_BELOW})"
                )
            if unclear := (self.behavior or []).count(TOO_FEW):
                told += f"; {unclear:,} have {TOO_FEW}"
            lines.append(told)
        return lines


def table_of(columns: Mapping[str, Any]) -> pa.Table:
    """Make a table of columns of numbers, truth values, or texts."""
    return pa.table(
        {
            name: column if isinstance(column, pa.Array) else as_arrow(column)
            for name, column in columns.items()
        }
    )
