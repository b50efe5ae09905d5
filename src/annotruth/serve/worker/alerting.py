"""What to alert people to after a fit, and what they were alerted to before.

Every alert is given once. So that estimates near a threshold do not give one alert after the
other, the threshold for taking back what was reported is another one than for reporting it:

- Verdicts are the standing ones (`annotruth.analyses.advice.standing`).
- An item is finished when it needs no more labels. It can be finished again only after it needed
  labels with other labels of its own than when it was reported.
- Agreement is compared with the time since the last change (`find_agreement_change`).
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
from scipy.special import stdtrit

from annotruth.analyses.advice.advice import Advice
from annotruth.analyses.advice.annotators import verdicts
from annotruth.analyses.advice.standing import Standing, standing_verdicts
from annotruth.errors import counted, shorten
from annotruth.kernels.arrays import Codes, Floats
from annotruth.models.result import Fit
from annotruth.observations import Labels
from annotruth.observations.encode import match_ids
from annotruth.observations.frames import as_arrow
from annotruth.serve.worker.fitting import AnyFit

ALPHA = 0.05
"""How likely an alert is as long as nothing changes."""

_SMALLEST_WINDOW = 3  # as a power of 4: of fewer labels, an item or two would decide
_TIMES_BEFORE = 16

VERDICT, FINISHED, AGREEMENT = "verdict", "finished", "agreement"
"""The kinds of alerts."""

_FILE = "alerted.arrow"
_STATE = b"annotruth"  # the name of the file's metadata
_ITEMS_PER_ALERT = 1_000


class AgreementState(NamedTuple):
    """Since when agreement is taken as constant, and how often it was looked at since."""

    since: int = 0  # the number of the first event of that time
    looks: int = 0  # how often the labels since then were compared


class AgreementChange(NamedTuple):
    """A change of agreement that is larger than its uncertainty."""

    change: float  # the mean change of the annotators' agreement with others; below 0 if it fell
    low: float  # the interval of the change, at the level of the test
    high: float
    n_labels: int  # the number of the latest labels that show it

    @property
    def fell(self) -> bool:
        """Whether agreement is lower than before."""
        return self.change < 0.0


class _Rows(NamedTuple):
    """Labels of items with others, in the order of their events."""

    agreement: Floats
    item: Codes
    annotator: Codes
    seq: Codes

    def latest(self, n: int) -> _Rows:
        """Return at most the last n."""
        return _Rows(self.agreement[-n:], self.item[-n:], self.annotator[-n:], self.seq[-n:])


def find_agreement_change(
    labels: Labels, seq: Codes, state: AgreementState
) -> tuple[AgreementState, AgreementChange | None]:
    r"""Return the state after another look, and a change of agreement if there is one.

    ``seq`` holds the number of the event of each row of the labels.

    The agreement :math:`a_i` of a label is the share of the item's other labels that are equal to it. The
    change from labels E to the n latest ones, S, is :math:`d = \frac{1}{n} \sum_{i \in S} (a_i - \bar a_{s(i)})`
    with :math:`\bar a_s` the mean of annotator s in E: each annotator is compared with themself, so that a
    change of shifts is no change. It is linear, :math:`d = \sum_i c_i a_i`, and labels of one item depend
    on each other, so its variance is :math:`\sum_g u_g^2` over items g, :math:`u_g = \sum_{i \in g} c_i (a_i - m_i)`,
    with :math:`m_i` the annotator's mean in E, plus d in S. It has the t distribution of about
    :math:`(\sum_g u_g^2)^2 / \sum_g u_g^4` degrees of freedom, so that small windows need large changes.

    Windows of 64, 256, 1024, ... labels, at most half of all, are compared at every snapshot, each with at
    most 16 times as many labels before it. The k-th look since the last change spends the error rate
    :math:`\alpha / (k (k + 1))`, in equal parts for the windows and both directions: labels of constant
    agreement give an alert with probability :math:`\alpha` at most, however often one looks. After a
    change, the labels that follow are compared with each other only.
    """
    rows = _latest_rows(labels, seq, state.since)
    n = len(rows.seq)
    sizes = [4**k for k in range(_SMALLEST_WINDOW, n.bit_length() // 2)]
    sizes = [size for size in sizes if 2 * size <= n]
    if not sizes:
        return state, None
    looks = state.looks + 1
    level = ALPHA / (looks * (looks + 1)) / len(sizes)
    found = [_compare(rows.latest((1 + _TIMES_BEFORE) * size), size, level) for size in sizes]
    clear = [each for each in found if each is not None and (each.high < 0.0 or each.low > 0.0)]
    if not clear:
        return AgreementState(state.since, looks), None
    change = max(clear, key=lambda each: abs(each.change) / (each.high - each.low))
    return AgreementState(int(seq.max()) + 1), change


def _latest_rows(labels: Labels, seq: Codes, since: int) -> _Rows:
    """Return the labels from an event on whose item has another label."""
    of_label = seq[labels.row]
    n_of_item = labels.labels_per_item
    cell = labels.cell_of_label()
    item = labels.item_of_cell()[cell]
    chosen = np.flatnonzero((of_label >= since) & (n_of_item[item] > 1))
    chosen = chosen[np.argsort(of_label[chosen], kind="stable")]
    same = np.diff(labels.cell_ptr)[cell[chosen]] - 1
    others = n_of_item[item[chosen]] - 1
    return _Rows(
        same / others,
        item[chosen].astype(np.int64),
        labels.annotator[chosen].astype(np.int64),
        of_label[chosen],
    )


def _compare(rows: _Rows, size: int, level: float) -> AgreementChange | None:
    is_late = np.arange(len(rows.seq)) >= len(rows.seq) - size
    n_annotators = int(rows.annotator.max()) + 1
    n_early, n_late = (
        np.bincount(rows.annotator[part], minlength=n_annotators) for part in (~is_late, is_late)
    )
    has_both = ((n_early > 0) & (n_late > 0))[rows.annotator]
    a, item, annotator = (column[has_both] for column in rows[:3])
    late = is_late[has_both]
    n = int(np.count_nonzero(late))
    if not n:
        return None
    total = np.bincount(annotator[~late], a[~late], minlength=n_annotators)
    mean = (total / np.maximum(n_early, 1))[annotator]
    change = float((a - mean)[late].sum() / n)
    weight = np.where(late, 1.0 / n, -(n_late / np.maximum(n_early, 1) / n)[annotator])
    squares = np.bincount(item, weight * (a - mean - np.where(late, change, 0.0))) ** 2
    variance = float(squares.sum())
    if not variance:  # all agreements are equal
        return None
    freedom = variance**2 / float(squares @ squares)
    margin = -float(stdtrit(freedom, level / 2.0)) * variance**0.5
    return AgreementChange(change, change - margin, change + margin, n)


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
            {  # version 0.1.0 saved the verdict alone
                name: Standing(it, it, 0) if isinstance(it, str) else Standing(*it)
                for name, it in state["verdicts"].items()
            },
            table["item"].combine_chunks(),
            table["n_labels"].to_numpy().copy(),
            AgreementState(*state["agreement"]),
        )


def find_alerts(
    fit: AnyFit, advice: Advice | None, seq: Codes, before: Alerted
) -> tuple[Alerted, list[NewAlert]]:
    """Return the alerts of a fit, after what people were alerted to with them."""
    held, alerts = _find_verdicts(fit, before.verdicts)
    if advice is None:
        return Alerted(held), alerts
    n_reported, finished = _find_finished(fit, advice, before)
    agreement, change = find_agreement_change(fit.data, seq, before.agreement)
    alerts += _finished_alerts(finished)
    if change is not None and change.fell:
        alerts.append(_agreement_alert(change))
    return Alerted(held, fit.data.items, n_reported, agreement), alerts


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
