"""Numbers on a continuous scale, put into bins."""

import numpy as np
import pandas as pd
import pytest

import annotruth as at
from annotruth.observations import Labels


def votes(values):
    return [(item, "ann", value) for item, value in enumerate(values)]


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        ((0, 50, 100), 0, 100),
        ((2.5, 50.0, 98.0), 0, 100),
        ((0.03, 0.5, 0.97), 0, 1),
        ((1.2, 3.0, 4.9), 1, 5),
        ((-98, 3, 95), -100, 100),
        ((7, 7), 6.5, 7.5),
    ],
)
def test_equal_bins_cover_the_range_rounded_outward(values, low, high):
    scale = Labels.of(votes(values), bins=4).scale
    assert scale.bounds == pytest.approx((low, high))
    assert np.diff(scale.edges) == pytest.approx((high - low) / 4)
    assert scale.values == pytest.approx((scale.edges[:-1] + scale.edges[1:]) / 2)
    assert scale.kind == "ordinal"


def test_a_number_on_an_edge_is_in_the_upper_bin_except_the_last_edge():
    labels = Labels.of(votes([0, 19.9, 20, 50, 99, 100]), bins=[0, 20, 50, 100])
    assert labels.cell_category.tolist() == [0, 0, 1, 2, 2, 2]
    assert labels.scale.categories.to_pylist() == [10.0, 35.0, 75.0]


def test_numbers_in_text_and_integer_centres(read):
    labels = read("item,annotator,label\n1,a,0\n2,a,5\n3,a,39.5\n", bins=2)
    assert labels.scale.categories.to_pylist() == [10, 30]
    assert labels.cell_category.tolist() == [0, 0, 1]


def test_ordered_categoricals_of_numbers_are_binned():
    frame = pd.DataFrame(votes([1, 2, 9]), columns=["item", "annotator", "label"])
    frame["label"] = pd.Categorical(frame["label"], ordered=True)
    assert Labels.of(frame, bins=[0, 5, 10]).cell_category.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("values", "bins", "text"),
    [
        (["1", "good"], 3, "label 'good' is not a number"),
        ([-1.7e308, 1.7e308], 3, "too far apart"),
        *(
            ([0, 50, 100], *case)
            for case in (
                (1, "choose from 2 to 1000"),
                (10**9, "choose from 2 to 1000"),
                (True, "ascending edges"),
                ([0, 100], "at least three ascending edges"),
                ([0, 50, 50], "ascending edges"),
                ([0, 50, float("nan")], "ascending edges"),
                ([0, 50, float("inf")], "infinite"),
                ("many", "ascending edges"),
                ([[1, 2, 3]], "ascending edges"),
                ([0, 50, 60], "label 100 is outside the bins 0 to 60: give wider edges"),
                ([1, 50, 160], "label 0 is outside the bins 1 to 160"),
            )
        ),
    ],
)
def test_bad_bins_are_refused(values, bins, text):
    with pytest.raises(at.InputError, match=text):
        Labels.of(votes(values), bins=bins)


@pytest.mark.parametrize("other", [{"scale": "nominal"}, {"categories": [1, 2]}])
def test_bins_with_categories_or_a_nominal_scale_are_refused(other):
    with pytest.raises(at.InputError, match="an ordinal scale of their own"):
        Labels.of(votes([1, 2]), bins=2, **other)
    with pytest.raises(at.InputError, match="Labels already"):
        Labels.of(Labels.of(votes([1, 2])), bins=2)


def test_known_truths_are_binned_too():
    rows = [(e, s, 10 * e + s) for e in range(10) for s in range(5)]
    fit = at.fit(rows, bins=[0, 25, 50, 75, 100], gold={0: 99})
    assert fit.items()["label"][0] == 87.5
    # 0 and 100 lie outside the centres, but not outside the scale.
    found = at.evaluate(fit, {1: 0, 2: 24.9, 9: 100}, scores=True)
    assert found["accuracy"] == 1.0
    assert "rmse" in found
    with pytest.raises(at.InputError, match="score 101, outside the scale 0 to 100"):
        at.evaluate(fit, {1: 101, 2: 0.5}, scores=True)


def test_bins_are_in_the_summary_and_in_saved_fits(tmp_path):
    fit = at.fit(votes([0, 30, 60, 100]), bins=4)
    assert "labels put into 4 bins from 0 to 100; the value" in fit.summary()
    fit.save(tmp_path / "fit")
    loaded = at.load(tmp_path / "fit")
    assert loaded.data.scale.edges.tolist() == fit.data.scale.edges.tolist()
    assert at.evaluate(loaded, {0: 3})["accuracy"] == 1.0


def test_many_numbers_give_a_warning_only_for_models_of_categories():
    rows = votes(range(30))
    with pytest.warns(at.AnnotruthWarning, match=r"30 different numbers.*bins=20"):
        at.fit(rows, "gpm")
    at.fit(rows, "gpm", bins=10)
    at.fit(rows, "mean")  # takes the numbers as they are
    at.fit(rows, "gpm", scale="nominal")
    at.fit(rows, "gpm", categories=list(range(30)))
    at.fit(Labels.of(rows), "gpm")  # whoever made them knows them
    at.fit(votes(range(25)), "gpm")
    at.fit(votes(f"word {n}" for n in range(30)), "gpm")


def test_expectations_stay_on_the_sliders_scale(datasets):
    folder = datasets / "emotion-0-100"
    fit = at.fit(folder / "labels.csv", "gpm", bins=20)
    assert fit.data.scale.bounds == (-100, 100)
    assert at.evaluate(fit, folder / "truth.csv", scores=True)["plcc"] > 0.7
