"""What to alert people to after a fit, and what they were alerted to before.

Every alert is given once. So that estimates near a threshold do not give one alert after the
other, the threshold for taking back what was reported is another one than for reporting it:

- Verdicts are the standing ones (`annotruth.analyses.advice.standing`).
- An item is finished when it needs no more labels. It can be finished again only after it needed
  labels with other labels of its own than when it was reported.
- Agreement is compared with the time since the last change (`agreement_change`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import feather

from annotruth.analyses.advice.advice import Advice
from annotruth.analyses.advice.annotators import verdicts
from annotruth.analyses.advice.standing import Standing, standing_verdicts
from annotruth.errors import counted, shorten
from annotruth.kernels.arrays import Codes
from annotruth.models.result import Fit
from annotruth.observations.encode import match_ids
from annotruth.observations.frames import as_arrow
from annotruth.serve.worker.agreement_change import (
    AgreementChange,
    AgreementState,
    find_agreement_change,
)
from annotruth.serve.worker.fitting import AnyFit

VERDICT, FINISHED, AGREEMENT = "verdict", "finished", "agreement"
"""The kinds of alerts."""

_FILE = "alerted.arrow"
_STATE = b"annotruth"  # the name of the file's metadata
_ITEMS_PER_ALERT = 1_000


class NewAlert(NamedTuple):
    """An alert that has not been stored yet."""

    kind: str  # `VERDICT`, `FINISHED` or `AGREEMENT`
    subject: str  # the annotator; empty for other kinds
    text: str  # one sentence
    detail: dict[str, Any]  # the figures, of JSON types


@dataclass(frozen=True, eq=False)
class Alerted:
    """What people were alerted to so far."""

    # The standing verdicts, by annotator.
    verdicts: Mapping[str, Standing] = field(default_factory=dict)
    # Items, and how many labels each had when it was reported as finished; 0 if it was not.
    items: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))
    n_labels: Codes = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    # Since when agreement is taken as constant.
    agreement: AgreementState = field(default_factory=AgreementState)

    def save(self, folder: Path) -> Path:
        """Write it to the folder of a snapshot; return the file."""
        state = {"verdicts": self.verdicts, "agreement": self.agreement}
        table = pa.table({"item": self.items, "n_labels": self.n_labels})
        table = table.replace_schema_metadata({_STATE: json.dumps(state)})
        feather.write_feather(table, str(folder / _FILE))
        return folder / _FILE

    @classmethod
    def load(cls, folder: Path) -> Alerted:
        """Read it from the folder of a snapshot."""
        table = feather.read_table(str(folder / _FILE), memory_map=False)
        state = json.loads(table.schema.metadata[_STATE])
        return cls(
            {name: _read_standing(each) for name, each in state["verdicts"].items()},
            table["item"].combine_chunks(),
            table["n_labels"].to_numpy().copy(),
            AgreementState(*state["agreement"]),
        )


class AlertsOfFit(NamedTuple):
    """The alerts of a fit, and what people were alerted to with them."""

    alerted: Alerted
    alerts: list[NewAlert]


def find_alerts(fit: AnyFit, advice: Advice | None, seq: Codes, before: Alerted) -> AlertsOfFit:
    """Return what is new in a fit."""
    held, alerts = _find_verdicts(fit, before.verdicts)
    if advice is None:
        return AlertsOfFit(Alerted(held), alerts)
    n_reported, finished = _find_finished(fit, advice, before)
    agreement, change = find_agreement_change(fit.data, seq, before.agreement)
    alerts += _finished_alerts(finished)
    if change is not None and change.fell:
        alerts.append(_agreement_alert(change))
    return AlertsOfFit(Alerted(held, fit.data.items, n_reported, agreement), alerts)


def _read_standing(saved: str | list[Any]) -> Standing:
    """Return a standing verdict of a file; version 0.1.0 saved the verdict alone."""
    return Standing(saved, saved, 0) if isinstance(saved, str) else Standing(*saved)


def _find_verdicts(
    fit: AnyFit, before: Mapping[str, Standing]
) -> tuple[dict[str, Standing], list[NewAlert]]:
    """Return the standing verdicts, and an alert for each that changed.

    A first verdict is no change, unless it is "drop".
    """
    if fit.reliability is None and fit.kind == "comparisons":
        return {}, []
    now, reasons = verdicts(fit)
    names, none = fit.data.annotators.to_pylist(), fit.too_few[0]
    held, alerts = dict(before), []
    for name, standing, reason in zip(
        names, standing_verdicts(fit, names, now, before), reasons, strict=True
    ):
        last = before[name].verdict if name in before else none
        held[name], verdict = standing, standing.verdict
        if verdict != last and (last != none or verdict == "drop"):
            change = verdict if last == none else f"{last} before, {verdict} now"
            detail = {
                "before": None if last == none else last,
                "verdict": verdict,
                "reason": reason,
            }
            text = f"annotator {shorten(name)}: {change}; {reason}"
            alerts.append(NewAlert(VERDICT, name, text, detail))
    return held, alerts


def _find_finished(fit: Fit, advice: Advice, before: Alerted) -> tuple[Codes, list[str]]:
    """Return how many labels items had when reported, 0 for others, and those to report now."""
    data = fit.data
    reported = np.zeros(data.n_items, dtype=np.int64)
    place = _places(before.items, data.items)
    reported[place[place >= 0]] = before.n_labels[place >= 0]
    needs_labels = advice.of_items.needs_labels
    reopened = needs_labels & (reported != data.labels_per_item)
    reported[reopened] = 0
    is_finished = ~needs_labels & (data.known < 0)
    if data.n_categories < 2:  # as long as all labels are equal, every item looks certain
        is_finished[:] = False
    new = np.flatnonzero(is_finished & (reported == 0))
    reported[new] = data.labels_per_item[new]
    finished: list[str] = data.items.take(as_arrow(new)).to_pylist()
    return reported, finished


def _places(before: pa.Array, after: pa.Array) -> Codes:
    """Return the position of each id before among those after, -1 where it is gone."""
    if before.equals(after[: len(before)]):
        return np.arange(len(before))
    return match_ids(before, after)


def _finished_alerts(items: list[str]) -> list[NewAlert]:
    """Return alerts of finished items, many in one."""
    alerts = []
    for start in range(0, len(items), _ITEMS_PER_ALERT):
        some = items[start : start + _ITEMS_PER_ALERT]
        what = f"item {shorten(some[0])} needs" if len(some) == 1 else f"{len(some):,} items need"
        alerts.append(NewAlert(FINISHED, "", f"{what} no more labels", {"items": some}))
    return alerts


def _agreement_alert(change: AgreementChange) -> NewAlert:
    text = (
        f"agreement fell by {-change.change:.0%} ({-change.high:.0%} to {-change.low:.0%}) in the "
        f"latest {counted(change.n_labels, 'label')}, compared with the same annotators before"
    )
    detail = {**change._asdict(), "unit": "share of an item's other labels that are equal"}
    return NewAlert(AGREEMENT, "", text, detail)
