"""Ord-dis-mix on real labels: measured figures, and the claims of its docstring."""

import pytest

import annotruth as at
from annotruth.models.scales.ordinal_mixture import OrdinalMixture


@pytest.mark.parametrize(
    ("behavior", "rmse", "accuracy"), [("uniform", 0.4697, 0.8243), ("learned", 0.4160, 0.8926)]
)
def test_errors_on_search_grades(datasets, behavior, rmse, accuracy):
    labels = at.read_labels(datasets / "web" / "labels.csv")
    fit = OrdinalMixture(behavior=behavior, acceleration=False).fit(labels).result_
    assert fit.converged
    measured = at.evaluate(fit, datasets / "web" / "truth.csv")
    assert measured["rmse"] == pytest.approx(rmse, abs=2e-3)
    assert measured["accuracy"] == pytest.approx(accuracy, abs=3e-3)
    gpm = at.evaluate(at.fit(labels, "gpm", tol=1e-2), datasets / "web" / "truth.csv")
    assert measured["rmse"] < 0.7 * gpm["rmse"]
    assert measured["srocc"] > gpm["srocc"] + 0.05
    # SQUAREM ends at a higher objective, here with higher accuracy.
    accelerated = OrdinalMixture(behavior=behavior).fit(labels).result_
    assert accelerated.history.objective[-1] > fit.history.objective[-1]
    assert (
        at.evaluate(accelerated, datasets / "web" / "truth.csv")["accuracy"] > measured["accuracy"]
    )


def test_learned_behavior_lowers_accuracy_with_rare_positives(datasets):
    labels = at.read_labels(datasets / "product" / "labels.csv")
    uniform, learned = (
        at.evaluate(
            OrdinalMixture(behavior=behavior, tol=1e-2).fit(labels).result_,
            datasets / "product" / "truth.csv",
        )
        for behavior in ("uniform", "learned")
    )
    assert uniform["accuracy"] > 0.92
    assert learned["accuracy"] < 0.9


def test_mean_is_better_for_a_slider_with_mostly_zeros(datasets):
    labels = at.read_labels(datasets / "emotion-0-100" / "labels.csv")
    fit = OrdinalMixture(acceleration=False).fit(labels).result_
    truth = datasets / "emotion-0-100" / "truth.csv"
    measured = at.evaluate(fit, truth, scores=True)
    assert measured["plcc"] == pytest.approx(0.657, abs=5e-3)
    gpm = at.evaluate(at.fit(labels, "gpm"), truth, scores=True)  # here as good as the mean
    assert gpm["rmse"] < measured["rmse"]


@pytest.mark.parametrize(("name", "spammers"), [("vqeg-hd", 0), ("uhd4u", 0), ("ftv", 2)])
def test_laboratory_annotators_are_mostly_serious(datasets, name, spammers):
    fit = OrdinalMixture().fit(at.read_labels(datasets / name / "labels.csv")).result_
    assert fit.n_spammers == spammers
    assert 0.6 < sorted(fit.annotator_columns["noise"])[fit.data.n_annotators // 2] < 0.9
