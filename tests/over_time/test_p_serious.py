"""`p_serious` is by the reliability at each label."""

import numpy as np
import pytest

import annotruth as at
from annotruth.analyses.over_time.analysis import add_over_time
from annotruth.analyses.over_time.sequences import Sample
from annotruth.analyses.over_time.trajectories import Trajectories


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
