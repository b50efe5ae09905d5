"""A week of a campaign by commands alone: fit, five updates, drop, next, and a report each day."""

import csv
import re
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

import annotruth as at
from annotruth.models import base_fit

MONDAY = datetime(2026, 11, 16, 18, 0, tzinfo=UTC)
SPAMMERS = ("p3", "p7")  # serious on a few items of the first day, random from the second
N_FIRST = 8  # items
N_PEOPLE, ITEMS_PER_DAY, LABELS_PER_ITEM = 10, 30, 6


def labels_of_day(day):
    """Labels of new items; all but the spammers are right four times out of five."""
    rng = np.random.default_rng(day)
    rows = []
    for item in range(day * ITEMS_PER_DAY, (day + 1) * ITEMS_PER_DAY):
        truth = item % 3
        names = [f"p{person}" for person in rng.permutation(N_PEOPLE)]
        if N_FIRST <= item < ITEMS_PER_DAY:
            names = [name for name in names if name not in SPAMMERS]
        for name in names[:LABELS_PER_ITEM]:
            right = rng.random() < 0.85 and not (name in SPAMMERS and day > 0)
            label = truth if right else rng.integers(3)
            rows.append((f"item {item}", name, "abc"[label]))
    return rows


class Campaign:
    """The folder of a campaign, and the commands of each day."""

    def __init__(self, folder, run):
        self.folder, self._run, self.rows = folder, run, []

    def export(self, day):
        """Write all labels so far, as a platform exports them."""
        self.rows += labels_of_day(day)
        with (self.folder / "export.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("item", "annotator", "label"), *self.rows])

    def run(self, *words):
        code, out, err = self._run(*words)
        assert code == 0, err
        return out

    def verdicts(self, column="verdict"):
        with (self.folder / "people.csv").open(newline="") as file:
            return {row["annotator"]: row[column] for row in csv.DictReader(file)}

    def page(self):
        """The text of today's report."""
        return (self.folder / "report.html").read_text()

    def past_fits(self):
        """The numbers in the chart of past fits."""
        return at.load(self.folder / "fit").plot.past_fits().data


@pytest.fixture
def campaign(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Campaign(tmp_path, run)


def test_a_week_of_a_campaign(campaign, monkeypatch):
    def set_day(day):
        monkeypatch.setattr(base_fit, "now", lambda: MONDAY + timedelta(days=day))

    written = ("--report", "report.html", "--keep", "people.csv", "--force")
    n_day = ITEMS_PER_DAY * LABELS_PER_ITEM

    set_day(0)
    campaign.export(0)
    campaign.run("fit", "export.csv", "--save", "fit", *written)
    assert "drop" not in campaign.verdicts().values()
    assert "Since the last fit" not in campaign.page()

    dropped_on = None
    for day in range(1, 6):
        set_day(day)
        campaign.export(day)
        # Whom yesterday's list dropped is left out from today on.
        drop = () if dropped_on is None else ("--drop", "dropped.csv")
        out = campaign.run("update", "fit", "export.csv", *drop, *written)
        text, drawn = campaign.page(), campaign.past_fits()
        assert "saved in place: fit" in out
        assert "Since the last fit" in text
        date = MONDAY + timedelta(days=day - 1)
        assert f"The last fit is of {date.day} November 2026, 18:00 UTC." in text
        if not drop:
            assert f"new: {n_day} labels, {ITEMS_PER_DAY} items, 0 annotators" in out
            assert f"{day * n_day} labels were in the fit already" in out
        else:
            assert re.search("2 annotators left out: (p3, p7|p7, p3); ", out)
        fits = len(set(drawn["time"]))
        assert fits == day + 1
        if dropped_on is None and {campaign.verdicts()[name] for name in SPAMMERS} == {"drop"}:
            assert re.search(r"p[37]: [\w ]+ -> drop, reliability", out)
            assert "→ drop" in text
            assert {campaign.verdicts("standing")[name] for name in SPAMMERS} == {"drop"}
            dropped_on = day
            (campaign.folder / "people.csv").rename(campaign.folder / "dropped.csv")
    assert dropped_on in (1, 2, 3)

    fit = at.load("fit")
    assert not set(SPAMMERS) & set(fit.data.annotators.to_pylist())
    assert fit.data.n_items == 6 * ITEMS_PER_DAY
    shown = {name: [] for name in drawn["annotator"]}
    for name, accuracy in zip(drawn["annotator"], drawn["accuracy"], strict=True):
        shown[name].append(accuracy)
    assert len(shown["median of all"]) == 6
    for name in SPAMMERS:  # from accurate to inaccurate; then they are no longer in the fit
        assert shown[name][0] > 0.6
        assert shown[name][-1] < 0.5
        assert len(shown[name]) == dropped_on + 1

    items, people = campaign.folder / "next.csv", campaign.folder / "tasks.csv"
    campaign.run("next", "fit", "--budget", "40", "--out", "next.csv", "--assign", "tasks.csv")
    with people.open(newline="") as file:
        tasks = list(csv.DictReader(file))
    assert len(tasks) == 40
    assert not set(SPAMMERS) & {row["annotator"] for row in tasks}
    assert items.exists()
    set_day(6)
    campaign.run("report", "fit", "--report", "report.html")
    assert "Accuracy over past fits" in campaign.page()
    assert "nothing new: fit stays as it is" in campaign.run(
        "update", "fit", "export.csv", "--drop", "dropped.csv"
    )
