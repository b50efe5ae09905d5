"""Agreement: published worked examples, and the definition with weights."""

import math

import numpy as np
import pytest

from annotruth import coefficients
from annotruth.errors import InputError
from annotruth.observations import Labels, Scale

# Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), section C: four observers,
# twelve units, missing labels; one unit has a single label and does not count.
KRIPPENDORFF = (
    [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
    [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
)
# Fleiss' kappa of ten subjects, fourteen raters and five categories: counts of each.
FLEISS = (
    (0, 0, 0, 0, 14),
    (0, 2, 6, 4, 2),
    (0, 0, 3, 5, 6),
    (0, 3, 9, 2, 0),
    (2, 2, 8, 1, 1),
    (7, 7, 0, 0, 0),
    (3, 2, 6, 3, 0),
    (2, 5, 3, 2, 2),
    (6, 5, 2, 1, 0),
    (0, 2, 2, 3, 7),
)


def observed(rows):
    return Labels.of(
        [
            (unit, observer, value)
            for observer, row in enumerate(rows)
            for unit, value in enumerate(row)
            if value
        ]
    )


def counted(table):
    return Labels.of(
        [
            (subject, f"{subject}-{category}-{copy}", category)
            for subject, row in enumerate(table)
            for category, count in enumerate(row)
            for copy in range(count)
        ]
    )


@pytest.mark.parametrize(
    ("metric", "printed"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_alpha_equals_the_published_example_of_krippendorff(metric, printed):
    found = coefficients.krippendorff_alpha(observed(KRIPPENDORFF), metric)
    assert found == pytest.approx(printed, abs=5e-4)


def test_kappa_equals_the_published_example():
    assert coefficients.fleiss_kappa(counted(FLEISS)) == pytest.approx(0.210, abs=5e-4)


def test_items_of_any_number_of_labels_have_equal_weight_in_kappa():
    rows = [("a", s, 1 + (s == "z")) for s in "wxyz"] + [("b", "x", 1), ("b", "y", 2)]
    # Pairs agree in 6 of 12 on a and in none of 2 on b; two thirds of the labels are 1.
    expected = (0.5 / 2 - 5 / 9) / (1 - 5 / 9)
    assert coefficients.fleiss_kappa([*rows, ("single", "x", 2)]) == pytest.approx(expected)


def alpha_by_pairs(data, metric, weight):
    """Alpha from its definition, pair by pair."""
    cell = data.cell_of_label()
    item, code = data.item_of_cell()[cell], data.cell_category[cell]
    kept = [i for i in range(data.n_labels) if weight[i] > 0]
    m = {i: sum(item[j] == item[i] for j in kept) for i in kept}
    kept = [i for i in kept if m[i] > 1]
    pairs = [(i, j) for i in kept for j in kept if i != j and item[i] == item[j]]
    t = dict.fromkeys(kept, 0.0)
    for i, j in pairs:
        t[i] += weight[i] * weight[j] / (m[i] - 1)
    counts = np.zeros(data.n_categories)
    for i in kept:
        counts[code[i]] += t[i]

    def difference(i, j):
        c, k = sorted((code[i], code[j]))
        if metric == "nominal":
            return float(c != k)
        if metric == "interval":
            return (data.scale.values[c] - data.scale.values[k]) ** 2
        return (counts[c : k + 1].sum() - (counts[c] + counts[k]) / 2) ** 2

    n = sum(t.values())
    observed_ = sum(weight[i] * weight[j] / (m[i] - 1) * difference(i, j) for i, j in pairs) / n
    all_pairs = [(i, j) for i in kept for j in kept if i != j]
    expected = sum(t[i] * t[j] * difference(i, j) for i, j in all_pairs)
    return 1 - observed_ / (expected / sum(t[i] * t[j] for i, j in all_pairs))


@pytest.mark.parametrize("metric", ["nominal", "ordinal", "interval"])
def test_weighted_alpha_equals_its_definition(metric):
    rng = np.random.default_rng(3)
    rows = [(int(e), int(s), int(rng.integers(1, 5)) ** 2) for e in range(9) for s in range(6)]
    data = Labels.of([row for row in rows if rng.random() < 0.5])
    weight = rng.choice([0.0, 0.3, 0.8, 1.0], size=data.n_labels)
    found = coefficients.krippendorff_alpha(data, metric, weight)
    assert found == pytest.approx(alpha_by_pairs(data, metric, weight), abs=1e-12)


@pytest.mark.parametrize("metric", ["nominal", "ordinal", "interval"])
def test_weight_of_0_leaves_a_label_out(metric):
    data = observed(KRIPPENDORFF)
    without_first = coefficients.krippendorff_alpha(observed(KRIPPENDORFF[1:]), metric)
    weight = (data.annotator != 0).astype(float)
    assert coefficients.krippendorff_alpha(data, metric, weight) == pytest.approx(without_first)
    kappa = coefficients.fleiss_kappa(observed(KRIPPENDORFF[1:]))
    assert coefficients.fleiss_kappa(data, weight > 0) == pytest.approx(kappa)


def test_agreement_without_pairs_or_variation_is_nan():
    single = [("a", "x", 1), ("b", "y", 2)]
    one_category = [("a", "x", 1), ("a", "y", 1), ("b", "x", 1), ("b", "y", 1)]
    for rows in (single, one_category):
        data = Labels.of(rows)
        assert math.isnan(coefficients.fleiss_kappa(data))
        for metric in ("nominal", "ordinal", "interval"):
            assert math.isnan(coefficients.krippendorff_alpha(data, metric))


def test_perfect_agreement_is_one():
    rows = [(e, s, e % 3) for e in range(6) for s in range(3)]
    assert coefficients.fleiss_kappa(rows) == pytest.approx(1.0)
    for metric in ("nominal", "ordinal", "interval"):
        assert coefficients.krippendorff_alpha(rows, metric) == pytest.approx(1.0)


def test_wrong_metrics_and_weights_are_refused():
    nominal = Labels.from_codes(
        np.array([0, 0]), np.array([0, 1]), np.array([0, 1]),
        items=["a"], annotators=["x", "y"], scale=Scale.nominal(["cat", "dog"]),
    )  # fmt: skip
    with pytest.raises(InputError, match="ordinal alpha needs an ordinal scale"):
        coefficients.krippendorff_alpha(nominal, "ordinal")
    with pytest.raises(InputError, match="unknown metric 'ratio'"):
        coefficients.krippendorff_alpha(nominal, "ratio")
    with pytest.raises(InputError, match="give one per label"):
        coefficients.krippendorff_alpha(nominal, weight=[1.0])
    with pytest.raises(InputError, match="negative or not finite"):
        coefficients.krippendorff_alpha(nominal, weight=[1.0, float("nan")])
