"""RobustGPM with many categories: they are merged for the fit, and results are those of all of them."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import annotruth as at
from annotruth.models.robust_gpm import pooling
from annotruth.models.robust_gpm.pooling import (
    GROUP,
    PooledLabels,
    has_room,
    merge_categories,
    needs_pooling,
    pooled_labels,
)
from annotruth.observations import Labels


def many_classes(n_classes=160, n_items=200, n_annotators=12, per_item=4, seed=0):
    """Rows of mostly serious annotators, one who guesses and one who repeats a label; the classes."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n_items)
    rows = []
    for e in range(n_items):
        for s in rng.choice(n_annotators, per_item, replace=False):
            label = truth[e] if rng.random() < 0.8 else rng.integers(n_classes)
            label = {0: rng.integers(n_classes), 1: 7}.get(int(s), label)
            rows.append((e, f"s{s}", f"c{label}"))
    return rows, [f"c{k}" for k in truth]


ROWS, TRUTH = many_classes()
FIT = at.fit(ROWS)


def by_id(fit):
    """Return confidences and labels by item, and reliabilities by annotator."""
    confidence = fit.distribution.confidence().tolist()
    labels = [fit.data.scale.names[k] for k in fit.label]
    items = dict(zip(fit.data.items.to_pylist(), zip(labels, confidence, strict=True), strict=True))
    return items, dict(zip(fit.data.annotators.to_pylist(), fit.reliability, strict=True))


def test_many_classes_are_fitted_by_the_default_model():
    assert FIT.model == "robust-gpm"
    items, _ = by_id(FIT)
    right = np.mean([items[e][0] == TRUTH[e] for e in items])
    majority, _ = zip(*by_id_of_majority(), strict=True)
    assert right >= np.mean([label == TRUTH[e] for e, label in enumerate(majority)])
    people = dict(zip(FIT.data.annotators.to_pylist(), FIT.behavior, strict=True))
    assert people["s0"] == "random"
    assert people["s1"] == "repeated c7"
    assert sum(name == "serious" for name in people.values()) == 10


def by_id_of_majority():
    fit = at.fit(ROWS, "majority")
    names = fit.data.scale.names
    labels = {
        e: (names[k], 0.0) for e, k in zip(fit.data.items.to_pylist(), fit.label, strict=True)
    }
    return [labels[e] for e in range(len(labels))]


def test_distributions_are_over_all_categories():
    dense = FIT.distribution.dense(FIT.data.n_categories)
    np.testing.assert_allclose(dense.sum(axis=1), 1.0)
    assert FIT.distributions("opinion") is not None
    given = np.zeros(dense.shape, dtype=bool)
    given[FIT.data.item_of_label(), FIT.data.category_of_label()] = True
    best = np.where(given, dense, 0.0).max(axis=1)
    assert (np.where(given, 0.0, dense).max(axis=1) <= best).all()
    np.testing.assert_allclose(FIT.item_columns["p_leads"], FIT.distribution.confidence())


def test_classes_of_an_item_are_not_merged():
    labels = Labels.of(ROWS)
    group = merge_categories(labels)
    assert group.max() + 1 == 32
    pairs = labels.item_of_cell() * 1000 + group[labels.cell_category]
    assert len(np.unique(pairs)) == labels.n_cells
    # Frequent classes are on their own as far as possible: merged ones have about as many labels.
    n_labels = np.bincount(group, labels.labels_per_category.sum(axis=0))
    assert n_labels.max() <= max(2 * np.median(n_labels), labels.labels_per_category.sum(0).max())


def test_more_classes_than_merged_ones_on_one_item():
    rows = [(-1, f"s{n}", f"c{n}") for n in range(200)]
    rows += [(e, f"s{n}", f"c{e % 5}") for e in range(30) for n in range(4)]
    labels = Labels.of(rows)
    assert merge_categories(labels).max() < pooling.MAX_CATEGORIES
    fit = at.fit(labels)
    np.testing.assert_allclose(fit.distribution.dense(labels.n_categories).sum(axis=1), 1.0)


def test_few_classes_and_many_labels_are_not_merged(monkeypatch):
    rng = np.random.default_rng(0)
    few = Labels.of([(e, s, int(rng.integers(30))) for e in range(50) for s in range(3)])
    assert not needs_pooling(few)
    many = Labels.of(
        [(e, s, f"c{rng.integers(40)}") for e in range(600) for s in range(3)], scale="nominal"
    )
    assert needs_pooling(many)
    monkeypatch.setattr(pooling, "_LABELS_PER_CELL", 1)
    assert not needs_pooling(many)
    assert GROUP not in at.RobustGPM().without_pooling().fit(ROWS[:200]).result_.parameters


def test_names_order_and_updates_do_not_matter():
    items, people = by_id(FIT)
    order = np.random.default_rng(1).permutation(len(ROWS))
    scale = {"scale": "nominal", "categories": FIT.data.scale.names}
    others = [
        at.fit([ROWS[n] for n in order]),
        at.update(at.fit(ROWS[:300], **scale), ROWS[300:]),
    ]
    renamed = at.fit([(f"item {e}", s[::-1], f"{n}!") for e, s, n in ROWS])
    for other in others:
        again, reliability = by_id(other)
        assert {e: label for e, (label, _) in again.items()} == {
            e: label for e, (label, _) in items.items()
        }
        for e, (_, confidence) in items.items():
            assert again[e][1] == pytest.approx(confidence, abs=1e-9)
        for s, value in people.items():
            assert reliability[s] == pytest.approx(value, abs=1e-9)
    again, _ = by_id(renamed)
    for e, (label, confidence) in items.items():
        assert again[f"item {e}"] == (f"{label}!", pytest.approx(confidence, abs=1e-9))


def test_a_saved_fit_predicts_the_same(tmp_path):
    FIT.save(tmp_path / "fit")
    loaded = at.load(tmp_path / "fit")
    item, annotator = np.divmod(np.arange(60), 12)
    expected = at.RobustGPM().load_fit(FIT).predict_proba(item, annotator)
    np.testing.assert_allclose(expected.sum(axis=1), 1.0)
    predicted = at.RobustGPM().load_fit(loaded).predict_proba(item, annotator)
    np.testing.assert_array_equal(predicted, expected)
    assert loaded.summary() == FIT.summary()


def test_held_out_labels_are_predicted_better_than_by_shares():
    assert at.held_out("robust-gpm", ROWS).score > at.held_out("majority", ROWS).score


def test_results_per_label_are_in_the_order_of_the_labels():
    table = FIT.labels()
    by_guesser = [
        p for s, p in zip(table["annotator"], table["p_serious"], strict=True) if s == "s0"
    ]
    assert np.mean(by_guesser) < 0.3
    assert np.mean(table["p_serious"]) > 0.6
    model = at.RobustGPM().load_fit(FIT)
    top = FIT.label
    second = (top + 1) % FIT.data.n_categories
    odds = model.label_log_odds(top, second)
    on_top = FIT.data.category_of_label() == top[FIT.data.item_of_label()]
    assert odds[on_top].mean() > odds[~on_top].mean()


def test_a_known_truth_is_certain():
    fit = at.fit(ROWS, gold={0: "c3", 1: TRUTH[1]})
    place = fit.data.items.to_pylist().index(0)
    assert fit.data.scale.names[fit.label[place]] == "c3"
    assert fit.distribution.confidence()[place] == 1.0


def test_labels_by_chance_are_said_to_be():
    for seed in range(4):
        rng = np.random.default_rng(seed)
        rows = [(e, s, f"c{rng.integers(300)}") for e in range(150) for s in range(6)]
        fit = at.fit(rows)
        assert fit.verdict == "chance"
        assert fit.summary().startswith("WARNING: labels agree no better than chance")


def long_scale(seed=0, n_values=300):
    rng = np.random.default_rng(seed)
    score, shift = rng.uniform(0.1, 0.9, 60), rng.normal(0.0, 0.03, 10)
    rows = [
        (e, s, round(n_values * float(np.clip(score[e] + shift[s] + rng.normal(0.0, 0.06), 0, 1))))
        for e in range(60)
        for s in range(10)
    ]
    rows = [(e, s, int(rng.integers(n_values)) if s == 9 else n) for e, s, n in rows]
    return rows, n_values * score


def test_scores_of_long_scales_are_on_the_scale():
    rows, score = long_scale()
    fit = at.fit(Labels.of(rows, scale="ordinal"))
    assert fit.model == "robust-gpm"
    assert fit.data.n_categories > pooling.MAX_CATEGORIES
    np.testing.assert_allclose(fit.expectation, score, atol=30.0)
    assert np.corrcoef(fit.expectation, score)[0, 1] > 0.99
    low, high = fit.item_columns["score_low"], fit.item_columns["score_high"]
    assert (low <= fit.expectation).all()
    assert (fit.expectation <= high).all()
    values = fit.data.scale.values[fit.label]
    assert ((values > low - 10.0) & (values < high + 10.0)).mean() > 0.9
    assert fit.reliability.argmin() == fit.data.annotators.to_pylist().index(9)


def test_values_of_a_long_scale_are_merged_with_their_neighbors():
    labels = Labels.of(long_scale()[0], scale="ordinal")
    group = merge_categories(labels)
    assert (np.diff(group) >= 0).all()
    pooled = PooledLabels.of(labels, group)
    assert (np.diff(pooled.labels.scale.values) > 0).all()
    assert pa.types.is_integer(pooled.labels.scale.categories.type)
    assert has_room(labels)


def test_a_damaged_map_of_categories_is_refused():
    parameters = {**FIT.parameters, GROUP: FIT.parameters[GROUP][:-1]}
    with pytest.raises(at.AnnotruthError, match=GROUP):
        pooled_labels(replace(FIT, parameters=parameters))
