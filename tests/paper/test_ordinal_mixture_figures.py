"""The ordinal-discrete mixture on real labels: figures measured, and what its docstring claims."""

import pytest

import annotruth as at
from annotruth.models.ordinal_mixture.model import OrdinalMixture


@pytest.mark.parametrize(
    ("behavior", "rmse", "accuracy"), [("uniform", 0.4697, 0.8243), ("learned", 0.4160, 0.8926)]
)
def test_search_grades(datasets, behavior, rmse, accuracy):
    labels = at.read_labels(datasets / "web" / "labels.csv")
    fit = OrdinalMixture(behavior=behavior, acceleration=False).fit(labels).result_
    assert fit.converged
    found = at.evaluate(fit, datasets / "web" / "truth.csv")
    assert found["rmse"] == pytest.approx(rmse, abs=2e-3)
    assert found["accuracy"] == pytest.approx(accuracy, abs=3e-3)
    gpm = at.evaluate(at.fit(labels, "gpm", tol=1e-2), datasets / "web" / "truth.csv")
    assert found["rmse"] < 0.7 * gpm["rmse"]
    assert found["srocc"] > gpm["srocc"] + 0.05
    # Leaps end higher, and here nearer to the truth.
    faster = OrdinalMixture(behavior=behavior).fit(labels).result_
    assert faster.history.objective[-1] > fit.history.objective[-1]
    assert at.evaluate(faster, datasets / "web" / "truth.csv")["accuracy"] > found["accuracy"]


def test_learned_behavior_is_no_help_with_rare_positives(datasets):
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


def test_a_slider_of_mostly_zeros_is_better_served_by_the_mean(datasets):
    labels = at.read_labels(datasets / "emotion-0-100" / "labels.csv")
    fit = OrdinalMixture(acceleration=False).fit(labels).result_
    truth = datasets / "emotion-0-100" / "truth.csv"
    found = at.evaluate(fit, truth, scores=True)
    assert found["plcc"] == pytest.approx(0.657, abs=5e-3)
    gpm = at.evaluate(at.fit(labels, "gpm"), truth, scores=True)  # here as good as the mean
    assert gpm["rmse"] < found["rmse"]


@pytest.mark.parametrize(("name", "spammers"), [("vqeg-hd", 0), ("uhd4u", 0), ("ftv", 2)])
def test_people_in_a_laboratory_are_serious(datasets, name, spammers):
    fit = OrdinalMixture().fit(at.read_labels(datasets / name / "labels.csv")).result_
    assert fit.n_spammers == spammers
    assert 0.6 < sorted(fit.annotator_columns["noise"])[fit.data.n_annotators // 2] < 0.9
