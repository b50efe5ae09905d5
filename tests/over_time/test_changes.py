"""Changes of annotators are found where they are, and rarely where there are none."""

from contextlib import closing

import numpy as np
import pytest
from scipy.stats import binom

import annotruth as at
from annotruth.engines import get_engine
from annotruth.over_time.change_model import ChangeModel
from annotruth.over_time.changes import (
    MAX_AS_CLEAR,
    N_FIRST_SHUFFLES,
    N_SHUFFLES,
    beats_shuffled,
)
from annotruth.over_time.sequences import Sequences


def found_changes(fit):
    """The number of labels before each annotator's first change, -1 without one."""
    table = fit.further_table("over_time", "changes_over_time")
    ids = fit.data.annotators.to_pylist()
    found = np.full(len(ids), -1)
    for row in reversed(table.to_pylist()):
        found[ids.index(row["annotator"])] = row["n_before"]
    return found


@pytest.fixture(scope="module")
def opinions():
    made = at.simulate.changing(n_items=150, n_annotators=40, seed=5)
    return made, at.fit(made.labels)


@pytest.fixture(scope="module")
def classes():
    made = at.simulate.changing(
        n_items=300, n_annotators=25, labels_per_item=8, n_categories=4, ordinal=False, seed=2
    )
    return made, at.fit(made.labels)


@pytest.mark.parametrize("crowd", ["opinions", "classes"])
def test_changes_are_found_near_the_truth(crowd, request):
    made, fit = request.getfixturevalue(crowd)
    found, changes = found_changes(fit), made.change >= 0
    near = (found >= 0) & (np.abs(found - made.change) <= 10)
    assert near[changes].mean() >= 0.8
    assert (found >= 0)[~changes].mean() <= 0.05


@pytest.mark.parametrize("crowd", ["opinions", "classes"])
def test_reliability_is_recovered_before_and_after(crowd, request):
    made, fit = request.getfixturevalue(crowd)
    rows = fit.further_table("over_time", "changes_over_time").to_pylist()
    truth = dict(zip(fit.data.annotators.to_pylist(), made.reliability, strict=True))
    errors = [abs(row["before"] - truth[row["annotator"]]) for row in rows]
    assert np.mean(errors) < 0.15
    assert np.mean([row["after"] for row in rows]) < 0.25


@pytest.mark.parametrize("crowd", ["opinions", "classes"])
def test_one_row_per_annotator_is_the_mean_of_its_parts(crowd, request):
    made, fit = request.getfixturevalue(crowd)
    table = fit.further_table("over_time", "changes_over_time")
    row = next(row for row in table.to_pylist() if row["n_before"] > 20)
    if table["annotator"].to_pylist().count(row["annotator"]) > 1:
        pytest.skip("this annotator changed twice")
    place = fit.data.annotators.to_pylist().index(row["annotator"])
    n_before, n_after = row["n_before"], row["n_after"]
    mean = (n_before * row["before"] + n_after * row["after"]) / (n_before + n_after)
    assert fit.reliability[place] == pytest.approx(mean)
    assert fit.low[place] <= mean <= fit.high[place]
    assert len(fit.reliability) == made.labels.n_annotators
    estimator = at.RobustGPM().load_fit(fit)
    assert estimator.latent_classes().confusion.shape[0] == made.labels.n_annotators
    assert estimator.predict_proba([0], [place]).sum() == pytest.approx(1.0)


def test_p_serious_is_better_than_that_of_constant_annotators(opinions):
    made, fit = opinions
    constant = at.RobustGPM().fit(made.labels).result_
    changed = np.isin(made.labels.annotator, np.flatnonzero(made.change >= 0))
    truth = made.serious[changed]

    def loss(p):
        p = np.clip(p[changed], 1e-3, 1 - 1e-3)
        return -np.mean(np.where(truth, np.log(p), np.log(1 - p)))

    assert loss(fit.p_serious) < 0.9 * loss(constant.p_serious)


def test_constant_annotators_change_nothing_else():
    made = at.simulate.changing(n_items=100, n_annotators=20, changing_share=0.0, seed=3)
    fit = at.fit(made.labels)
    constant = at.RobustGPM().fit(made.labels).result_
    assert len(fit.changes_over_time()) == 0
    assert fit.item_table().equals(constant.item_table())
    assert fit.annotator_table().equals(constant.annotator_table())
    assert np.array_equal(fit.p_serious, constant.p_serious)
    facts = fit.further["over_time"].facts
    assert not facts["order"]["informative"]
    assert not facts["seconds"]["informative"]


def test_reliability_over_time_covers_the_truth(opinions):
    made, fit = opinions
    table = fit.over_time()
    ids = fit.data.annotators.to_pylist()
    inside = []
    for name, rows in table.groupby("annotator"):
        s = ids.index(name)
        if made.change[s] < 0:
            truth = made.reliability[s]
            inside += list((rows["low"] <= truth) & (truth <= rows["high"]))
        else:
            assert rows["reliability"].iloc[0] > rows["reliability"].iloc[-1]
        assert rows["n_labels"].sum() == fit.data.labels_per_annotator[s]
    assert np.mean(inside) > 0.9


def test_the_order_of_rows_does_not_matter(classes):
    made, _ = classes
    data = made.labels
    table = data.to_arrow()
    order = data.in_row_order(data.covariates.labels["order"].to_numpy())
    table = table.append_column("order", [order])
    shuffled = table.take(np.random.default_rng(0).permutation(len(table)))
    one, other = (
        at.fit(each, scale="nominal").changes_over_time().to_pandas() for each in (table, shuffled)
    )
    one, other = (each.sort_values(["annotator", "at"], ignore_index=True) for each in (one, other))
    assert one[["annotator", "at", "n_before"]].equals(other[["annotator", "at", "n_before"]])
    np.testing.assert_allclose(one["after"], other["after"], atol=1e-3)


def test_the_crowd_gets_tired():
    made = at.simulate.changing(n_items=150, n_annotators=30, changing_share=0.5, seed=1)
    fit = at.fit(made.labels)
    trend = fit.further["over_time"].facts["trend"]
    assert trend["slope"] < 0
    assert trend["p_value"] < 0.01
    crowd = fit.crowd_over_time()
    first, *_, last = crowd[crowd["by"] == "position"]["reliability"]
    assert first > last + 0.1


@pytest.mark.parametrize("fast", [0.4, 2.5])
def test_seconds_are_learned_and_not_assumed(fast):
    made = at.simulate.changing(n_items=120, n_annotators=25, fast=fast, seed=7)
    fit = at.fit(made.labels)
    seconds = fit.further["over_time"].facts["seconds"]
    assert seconds["informative"]
    rises = seconds["log_ratio"][0] < seconds["log_ratio"][-1]
    assert rises == (fast < 1)
    data = made.labels
    plain = at.fit(at.simulate.changing(n_items=120, n_annotators=25, fast=fast, seed=7).labels)
    assert np.array_equal(plain.p_serious, fit.p_serious)  # the same seed
    without = at.RobustGPM().fit(data).result_.p_serious
    from scipy.stats import rankdata

    def auc(p):
        ranks = rankdata(p)[made.serious]
        n, m = made.serious.sum(), (~made.serious).sum()
        return (ranks.sum() - n * (n + 1) / 2) / (n * m)

    assert auc(fit.p_serious) > auc(without) + 0.01


def test_shuffling_has_the_size_that_it_says():
    shares = (np.arange(20_000) + 0.5) / 20_000  # of all orders that are as clear
    first, more = N_FIRST_SHUFFLES, N_SHUFFLES - N_FIRST_SHUFFLES
    passed = binom.pmf(0, first, shares)
    for n_first in range(1, MAX_AS_CLEAR + 1):
        of_more = binom.cdf(MAX_AS_CLEAR - n_first, more, shares)
        passed += binom.pmf(n_first, first, shares) * of_more
    assert passed.mean() == pytest.approx(0.0412, abs=1e-4)


def test_shuffling_decides_as_all_shuffled_orders_do():
    """Sequences that do not change pass as often as the test's size says."""
    rng = np.random.default_rng(0)
    n, length = 2000, 12
    serious, irregular = rng.uniform(0.05, 0.9, (2, n * length))
    begin = np.arange(n) * length
    sequences = Sequences(serious, irregular, begin, begin + length)
    levels = np.array([0.1, 0.5, 0.9])
    model = ChangeModel(levels, np.full(3, 1 / 3), np.full(3, 1 / 3), 0.1, share=0.5)
    labels = at.Labels.of([("a", "x", 1)])
    with closing(get_engine("memory").open(labels)) as session:
        passed = beats_shuffled(session, sequences, model)
    assert 0.03 < passed.mean() < 0.0412 + 3 * np.sqrt(0.04 / n)
