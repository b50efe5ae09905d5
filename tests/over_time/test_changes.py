"""Changes of annotators are found where they are, and rarely where there are none."""

from contextlib import closing

import numpy as np
import pytest

import annotruth as at
from annotruth.analyses.over_time import changes
from annotruth.analyses.over_time.analysis import add_over_time
from annotruth.analyses.over_time.changes import (
    MAX_ALARMS,
    ChangeModel,
    Trajectories,
    beats_shuffled,
    find_changes,
)
from annotruth.analyses.over_time.sequences import Sample, Sequences
from annotruth.engines import get_engine


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


def model_of_three_levels():
    thirds = np.full(3, 1 / 3)
    return ChangeModel(np.array([0.1, 0.5, 0.9]), thirds, thirds, hazard=0.05, share=0.5)


def sequences_of(serious, irregular):
    """Sequences of the same length, from arrays of sequences x labels."""
    n, length = serious.shape
    begin = np.arange(n) * length
    return Sequences(serious.ravel(), irregular.ravel(), begin, begin + length)


@pytest.fixture(scope="module")
def session():
    with closing(get_engine("memory").open(at.Labels.of([("a", "x", 1)]))) as session:
        yield session


def which_beat(session, sequences):
    model = model_of_three_levels()
    factors = model.log_bayes_factors(session, sequences)
    all_of_them = np.ones(sequences.n, dtype=np.bool_)
    return beats_shuffled(session, sequences, model, factors, all_of_them)


@pytest.mark.parametrize("n", [1, 30])
def test_constant_sequences_are_as_clear_as_shuffled_ones(session, n):
    """A share of 4% passes, in small groups too."""
    rng = np.random.default_rng(0)
    passed = np.concatenate(
        [
            which_beat(session, sequences_of(*rng.uniform(0.05, 0.9, (2, n, 20))))
            for _ in range(1500 // n)
        ]
    )
    margin = 3 * np.sqrt(MAX_ALARMS / len(passed))
    assert MAX_ALARMS - margin < passed.mean() < MAX_ALARMS + margin


def test_changes_are_clearer_than_shuffled_sequences(session):
    rng = np.random.default_rng(1)
    serious, irregular = rng.uniform(0.05, 0.9, (2, 30, 40))
    is_serious = np.broadcast_to(np.arange(40) < 20, (6, 40))
    serious[:6] = np.where(is_serious, 0.9, 0.1)
    irregular[:6] = 0.3
    assert which_beat(session, sequences_of(serious, irregular))[:6].all()


def test_only_sequences_of_about_the_same_length_are_compared(session):
    """Long sequences do not change what is found in short ones."""
    rng = np.random.default_rng(2)
    short = sequences_of(*rng.uniform(0.05, 0.9, (2, 200, 16)))
    serious, irregular = rng.uniform(0.05, 0.9, (2, 200 * 300))
    begin = short.end[-1] + np.arange(200) * 300
    both = Sequences(
        np.append(short.serious, serious),
        np.append(short.irregular, irregular),
        np.append(short.begin, begin),
        np.append(short.end, begin + 300),
    )
    passed = which_beat(session, short)
    assert passed.any()
    assert np.array_equal(which_beat(session, both)[:200], passed)


def test_parts_share_the_false_alarms(session, monkeypatch):
    """There are twice as many parts, so each may raise half as many alarms."""
    serious = np.repeat([0.9, 0.01], 30)
    one = sequences_of(serious[np.newaxis], np.full((1, 60), 0.3))
    model, allowed = model_of_three_levels(), []

    def beats(session, sequences, model, factors, of_interest, max_alarms):
        allowed.append((sequences.n, max_alarms))
        return beats_shuffled(session, sequences, model, factors, of_interest, max_alarms)

    monkeypatch.setattr(changes, "beats_shuffled", beats)
    find_changes(session, one, model, model.log_bayes_factors(session, one))
    assert allowed == [(1, MAX_ALARMS), (2, MAX_ALARMS / 2)]


def test_the_place_of_a_change_is_near_the_mean_of_likely_places(session):
    """Labels that say little are between those before and after a change."""
    serious = np.concatenate([np.full(30, 0.9), np.full(11, 0.3), np.full(30, 0.01)])
    one = sequences_of(serious[np.newaxis], np.full((1, 71), 0.3))
    model = model_of_three_levels()
    found = find_changes(session, one, model, model.log_bayes_factors(session, one))
    assert found.place.tolist() == [pytest.approx(35.5, abs=1)]


def fit_over_time(made):
    """The fit of a crowd, the trajectories, and p_serious of the parts before and after changes."""
    estimator = at.RobustGPM().fit(made.labels)
    update, kept = Trajectories.update, []

    def keep(trajectories, p_serious):
        kept.append((trajectories, p_serious))
        return update(trajectories, p_serious)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trajectories, "update", keep)
        fit = add_over_time(estimator.result_, estimator)
    return fit, *kept[0]


def test_labels_of_those_who_change_are_known_better_than_by_parts():
    made = at.simulate.changing(n_items=400, n_annotators=40, labels_per_item=10, seed=43)
    fit, _, by_parts = fit_over_time(made)
    theirs = made.change[made.labels.annotator] >= 0
    truth = made.serious[theirs]

    def loss(p):
        p = np.clip(p[theirs], 1e-3, 1 - 1e-3)
        return -np.mean(np.where(truth, np.log(p), np.log(1 - p)))

    assert loss(fit.p_serious) < 0.97 * loss(by_parts)


def test_labels_of_those_who_hardly_change_are_as_before():
    made = at.simulate.changing(n_items=100, n_annotators=60, changing_share=0.035, seed=3)
    fit, trajectories, by_parts = fit_over_time(made)
    varying = np.zeros(made.labels.n_labels, dtype=np.bool_)
    varying[trajectories.clock.order[trajectories.varying.place]] = True
    shares = np.bincount(made.labels.annotator, varying) / made.labels.labels_per_annotator
    assert set(shares) == {0.0, 1.0}  # of an annotator's labels, all or none
    changed = trajectories.clock.order[trajectories.changes.place]
    assert shares[made.labels.annotator[changed]].all()
    assert np.array_equal(fit.p_serious[~varying], by_parts[~varying])
    assert not np.isclose(fit.p_serious[varying], by_parts[varying]).all()


def test_p_serious_follows_bayes_rule():
    n = np.zeros(2, dtype=np.int64)
    serious, irregular = np.array([0.6, 0.1]), np.array([0.2, 0.5])
    constant, changing = np.array([0.1, 0.1]), np.array([0.75, 0.5])
    sample = Sample(n, n, n, serious, irregular, constant, changing)
    np.testing.assert_allclose(sample.p_serious(), [0.45 / (0.45 + 0.05), 0.05 / (0.05 + 0.25)])
