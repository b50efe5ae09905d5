"""The measurements of `benchmarks/honesty`, on tiny crowds and on figures known by hand."""

import sys
from pathlib import Path

import numpy as np
import pytest

import annotruth as at
from annotruth.observations import Labels, Scale

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # benchmarks are not installed

from benchmarks.honesty import (
    calibration,
    chance,
    crowds,
    nobody_gave,
    opinions,
    real,
    symmetry,
)
from benchmarks.honesty.__main__ import main
from benchmarks.honesty.coverage import measure_coverage
from benchmarks.honesty.measures import (
    area_under_curve,
    calibrated_error,
    calibration_error,
)
from benchmarks.honesty.new_crowds import NEW_CROWDS
from benchmarks.honesty.options import (
    PartTable,
    Target,
    TargetFigure,
    probabilities,
)
from benchmarks.truth.scoring import shared_credit

TINY = crowds.Design(n_items=30, n_annotators=8, n_classes=3, labels_per_item=4)


def test_calibration_error_is_the_mean_gap_over_bins():
    confidence = np.array([0.81, 0.83, 0.99, 0.99])
    correct = np.array([1.0, 0.0, 1.0, 1.0])
    assert calibration_error(confidence, correct) == pytest.approx((0.64 + 0.02) / 4)


def test_calibrated_error_is_that_of_draws():
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.3, 1.0, size=500)
    drawn = [calibration_error(confidence, rng.random(500) < confidence) for _ in range(400)]
    assert calibrated_error(confidence) == pytest.approx(np.mean(drawn), rel=0.05)


def test_area_under_curve_counts_ties_half():
    is_positive = np.array([True, True, False, False])
    assert area_under_curve(is_positive, np.array([0.9, 0.5, 0.5, 0.1])) == 0.875


def test_a_missed_target_is_marked():
    rows = [
        (("a",), [TargetFigure(0.2, Target(high=0.3)), "x"]),
        (("b",), [TargetFigure(0.4, Target(high=0.3)), "x"]),
        (("c",), [TargetFigure(float("nan"), Target(low=0.0)), "x"]),
        (("d",), [TargetFigure(0.4), "x"]),
    ]
    text = PartTable("T", "D", ("n",), ("f", "g"), rows).to_markdown()
    assert [line.split("|")[-2].strip() for line in text.splitlines() if "| x |" in line] == [
        "yes",
        "no",
        "no",
        "",
    ]
    assert "**0.400**" in text
    assert text.endswith("1 of 3 rows meet their targets.")


def test_posterior_with_true_parameters_follows_bayes():
    rng = np.random.default_rng(3)
    rows = rng.dirichlet(np.ones(3), size=(2, 8, 3))
    crowd = crowds.NominalCrowd(
        prior=np.array([0.5, 0.3, 0.2]), rows=rows, variant_weights=np.array([0.6, 0.4])
    )
    drawn = crowds.draw_labels(crowd, TINY, rng)
    labels = drawn.labels
    joint = np.zeros((TINY.n_items, 3))
    for item in range(TINY.n_items):
        of_item = np.flatnonzero(labels.item_of_label() == item)
        for k in range(3):
            for v in range(2):
                terms = [
                    rows[v, drawn.annotator[labels.annotator[n]], k, labels.category_of_label()[n]]
                    for n in of_item
                ]
                joint[item, k] += crowd.prior[k] * crowd.variant_weights[v] * np.prod(terms)
    likelihood = joint.sum(axis=1)
    assert drawn.posterior == pytest.approx(joint / likelihood[:, np.newaxis])
    assert drawn.log_likelihood == pytest.approx(np.log(likelihood).sum())


def test_half_chance_is_measured():
    labels = at.simulate.crowd(n_items=20, n_annotators=4, seed=0).labels
    fit = at.fit(labels, "gpm")
    order = np.argsort(np.argsort(fit.reliability))
    best = chance.measure_half_chance(order >= 2, order / 4, fit)
    assert (best.auc, best.best_auc, best.above_all) == (1, 1, 1)
    assert chance.measure_half_chance(order < 2, order / 4, fit).auc == 0


@pytest.mark.parametrize("kind", [*calibration.WELL_SPECIFIED, *calibration.MISSPECIFIED])
def test_the_oracle_of_every_crowd_is_calibrated(kind):
    makers = {**calibration.WELL_SPECIFIED, **calibration.MISSPECIFIED}
    design = crowds.Design(n_items=4000, n_annotators=20, n_classes=4, labels_per_item=3)
    rng = np.random.default_rng(5)
    crowd = makers[kind](calibration.Setting(design, False), rng)
    drawn = crowds.draw_labels(crowd, design, rng)
    confidence = drawn.posterior.max(axis=1)
    correct = shared_credit(drawn.posterior, drawn.truth)
    assert calibration_error(confidence, correct) < 2.5 * calibrated_error(confidence)


def test_labels_that_nobody_gave_are_counted():
    scale = Scale.nominal(["a", "b", "c"])
    item, annotator = np.repeat(np.arange(4), 3), np.tile(np.arange(3), 4)
    label = np.array([0, 0, 0, 1, 1, 1, 2, 2, 0, 0, 0, 1])
    labels = Labels.from_codes(
        item, annotator, label, items=list("wxyz"), annotators=list("123"), scale=scale
    )
    assert real.votes(labels).tolist() == [[3, 0, 0], [0, 3, 0], [1, 0, 2], [2, 1, 0]]
    fit = at.fit(labels, "majority")
    assert nobody_gave.measure_nobody_gave(fit) == (0, 0)
    other = fit.data.subset(fit.data.item_of_label() >= 0)
    fit = at.fit(other.with_gold({"w": "c"}), "majority")
    assert probabilities(fit)[0, 2] == 1
    assert nobody_gave.measure_nobody_gave(fit) == (25, 25)


def crowd_of_classes() -> Labels:
    design = crowds.Design(n_items=60, n_annotators=12, n_classes=3, labels_per_item=5)
    rng = np.random.default_rng(2)
    crowd = crowds.one_variant(np.array([0.5, 0.3, 0.2]), crowds.dawid_skene_rows(design, rng))
    return crowds.draw_labels(crowd, design, rng, oracle=False).labels


def test_divergence_is_floored_and_0_where_shares_are_equal():
    held_back = np.array([[1, 1, 0], [0, 0, 0], [2, 0, 0]])
    shares = np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    first, last = np.log(1.001), np.log(1.002 / 0.001)
    assert opinions.divergence(held_back, shares) == pytest.approx((first + last) / 2)


def test_a_permutation_is_undone_before_fits_are_compared():
    labels = crowd_of_classes()
    triples, rng = symmetry.triples_of(labels), np.random.default_rng(0)
    before = at.fit(triples.to_labels(3), "dawid-skene")
    for changed in (*symmetry.PERMUTED, "all"):
        by = symmetry.draw_permutation(labels, changed, rng)
        after = at.fit(symmetry.permute(triples, by).to_labels(3), "dawid-skene")
        assert max(symmetry.largest_change(before, after, by)) < 1e-9
        if changed != "row":
            kept = symmetry.draw_permutation(labels, "none", rng)
            assert max(symmetry.largest_change(before, after, kept)) > 0.1


@pytest.mark.parametrize("n_classes", [2, 4])
def test_mirrored_crowds_have_ties(n_classes):
    labels, tied = symmetry.mirrored_crowd(n_classes, np.random.default_rng(0))
    triples = symmetry.triples_of(labels)
    exchanged = np.arange(n_classes)
    exchanged[:2] = 1, 0
    image_of = np.concatenate([np.arange(60) + 60, np.arange(60), tied])
    image = (image_of[triples.item], triples.annotator ^ 1, exchanged[triples.category])
    assert set(zip(*image, strict=True)) == set(zip(*triples, strict=True))
    p = probabilities(at.fit(labels, "dawid-skene"))
    assert symmetry.tie_gap(p, tied) < 1e-9
    assert symmetry.tie_gap(p, np.arange(60)) > 0.5


def test_coverage_counts_true_values_within_intervals():
    crowd = NEW_CROWDS["3 categories"](0)
    fit = at.fit(crowd.labels, "gpm")
    inside = crowd._replace(reliability=(fit.low + fit.high) / 2)
    assert measure_coverage(inside, "gpm")["reliability"] == 1
    outside = crowd._replace(reliability=fit.high + 0.01)
    assert measure_coverage(outside, "gpm")["reliability"] == 0
    assert "score" not in measure_coverage(crowd, "gpm")


def test_parts_print_tables(monkeypatch, capsys):
    monkeypatch.setattr(chance, "N_CLASSES", (2, 3))
    monkeypatch.setattr(chance, "N_ITEMS", (20,))
    monkeypatch.setattr(calibration, "N_CLASSES", (2,))
    monkeypatch.setattr(calibration, "N_ITEMS", (40,))
    argv = ["honesty", "chance", "half-chance", "calibration", "misspecified"]
    monkeypatch.setattr(sys, "argv", [*argv, "--model", "majority", "--runs", "1"])
    assert main() == 0
    first = capsys.readouterr().out
    assert "## Pure chance: majority" in first
    assert "## Calibration by factor: majority" in first
    assert main() == 0
    again = capsys.readouterr().out
    assert [x for x in again.splitlines() if "|" in x] == [
        x for x in first.splitlines() if "|" in x
    ]
