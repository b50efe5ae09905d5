"""Labels added to a fit, and fits that continue another one."""

import dataclasses
import warnings

import numpy as np
import pyarrow as pa
import pytest

import annotruth as at
from annotruth import simulate
from annotruth.models.registry import MODELS, get_model
from annotruth.observations import Labels

TABLE = [(e, s, (e + (n == e)) % 2) for e in range(6) for n, s in enumerate("uvwxyz")]


def crowd(seed=0, **options):
    # Many labels per item: with few, GPM has many maxima, and each start finds its own.
    defaults = {"n_items": 300, "n_annotators": 40, "n_categories": 3, "labels_per_item": 25}
    return at.simulate.crowd(**{**defaults, "spammer_share": 0.2, **options}, seed=seed).labels


def split(labels, n_new, seed=1):
    """All labels but ``n_new``, and those."""
    is_new = np.zeros(labels.n_labels, dtype=bool)
    is_new[np.random.default_rng(seed).permutation(labels.n_labels)[:n_new]] = True
    return labels.subset(~is_new), labels.subset(is_new)


def in_the_order_of(other, fit):
    """Reliabilities (or None) and scores of a fit, in the order of another fit's ids."""
    annotator = fit.data.annotators.to_pylist()
    item = fit.data.items.to_pylist()
    people = [annotator.index(one) for one in other.data.annotators.to_pylist()]
    items = [item.index(one) for one in other.data.items.to_pylist()]
    reliability = None if fit.reliability is None else fit.reliability[people]
    return reliability, fit.expectation[items]


@pytest.mark.parametrize("name", MODELS)
def test_updates_end_where_a_fit_of_all_labels_ends(name):
    # Few labels per item, so that EM has several optima, and stops before the nearest one.
    labels = crowd(seed=4, n_items=80, labels_per_item=4)
    rows = labels.to_arrow()
    parts = [rows.slice(first, 80) for first in range(0, labels.n_labels, 80)]
    options = {"categories": labels.scale.categories.to_pylist(), "scale": "ordinal"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", at.ConvergenceWarning)
        updated = at.fit(parts[0], name, **options)
        for part in parts[1:]:
            updated = at.update(updated, part)
        full = at.fit(rows, name, **options)
    reliability, expectation = in_the_order_of(updated, full)
    if reliability is not None:
        np.testing.assert_allclose(updated.reliability, reliability, atol=1e-9)
    np.testing.assert_allclose(updated.expectation, expectation, atol=1e-9)
    assert updated.n_iter == full.n_iter
    np.testing.assert_array_equal(updated.parameters.get("choice"), full.parameters.get("choice"))


@pytest.mark.parametrize("name", MODELS)
def test_new_items_and_annotators_are_fitted(name):
    base = [(f"i{e}", f"a{s}", 2 * ((e + (s == 3)) % 2)) for e in range(12) for s in range(5)]
    new = [("i0", "late", 0), ("fresh", "late", 2), ("fresh", "a0", 2), ("fresh", "a1", 2)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", at.ConvergenceWarning)
        fit = get_model(name)().fit(base).partial_fit(new).result_
    assert fit.data.items.to_pylist()[-1] == "fresh"
    assert fit.data.annotators.to_pylist()[-1] == "late"
    assert fit.item_table()["expectation"].to_pylist()[-1] > 1.4


def test_known_truths_of_new_and_old_items_are_used():
    labels = crowd(seed=4)
    base, new = split(labels, 40)
    names = base.scale.categories.to_pylist()
    old_item, new_item = base.items[7].as_py(), new.items[0].as_py()
    gold = {old_item: names[2], new_item: names[1]}
    fit = at.GPM().fit(base).partial_fit(new, gold=gold).result_
    assert (fit.data.known >= 0).sum() == 2
    assert fit.label[base.items.to_pylist().index(old_item)] == 2


def test_known_truths_of_the_last_fit_are_kept():
    labels = crowd(seed=4)
    base, new = split(labels, 40)
    base = base.with_gold({base.items[0].as_py(): base.scale.categories[2].as_py()})
    fit = at.GPM().fit(base).partial_fit(new).result_
    assert fit.data.known[0] == 2
    assert fit.distribution.dense(3)[0].tolist() == [0, 0, 1]


@pytest.mark.parametrize("times", [1, 2])
def test_the_last_label_replaces_the_first_on_request(times):
    model = at.GPM().fit(TABLE)
    for number in range(times):
        again = [(2, "u", 1), (9, "u", 1)] if number == 0 else [(2, "u", 0)]
        model.partial_fit(again, duplicates="last")
    table = model.result_.data.to_arrow().to_pylist()
    mine = [row["label"] for row in table if row["item"] == 2 and row["annotator"] == "u"]
    assert mine == [1 if times == 1 else 0]
    assert len(table) == len(TABLE) + 1
    assert model.result_.data.labels_per_annotator.sum() == len(table)


def test_both_labels_are_kept_on_request():
    model = at.GPM().fit(TABLE).partial_fit([(2, "u", 1)], duplicates="keep")
    assert model.result_.data.n_labels == len(TABLE) + 1


def test_a_second_label_is_refused_and_the_fit_unchanged():
    model = at.GPM().fit(TABLE)
    before = model.result_
    with pytest.raises(at.InputError, match=r"labelled twice: annotator 'u' on item 2"):
        model.partial_fit([(2, "u", 1)])
    assert model.result_ is before


def test_a_new_category_is_refused():
    model = at.GPM().fit(TABLE)
    with pytest.raises(
        at.InputError, match="label 7 is new, and the fit has the categories 0, 1: correct it"
    ):
        model.partial_fit([(2, "new", 7)])


def test_ids_of_different_types_are_matched():
    model = at.GPM().fit(TABLE).partial_fit([("2", "new", "1"), ("x", "new", "0")])
    assert model.result_.data.items.to_pylist() == [*"012345", "x"]
    assert model.result_.data.n_annotators == 7


def test_without_a_fit_the_labels_are_fitted():
    assert at.GPM().partial_fit(TABLE).result_.data.n_labels == len(TABLE)


def test_predictions_include_new_items():
    model = at.GPM().fit(TABLE).partial_fit([(9, "u", 1)])
    np.testing.assert_allclose(model.predict_proba([6], [0]).sum(axis=1), 1.0)


def test_a_saved_fit_is_updated(tmp_path):
    at.fit(TABLE, "gpm").save(tmp_path / "fit")
    fit = at.update(tmp_path / "fit", [(9, "u", 1)])
    assert fit.data.n_labels == len(TABLE) + 1
    assert at.changes(at.load(tmp_path / "fit"), fit).n_items == 1


def test_labels_are_fitted_again_on_request_only():
    before = at.fit(TABLE, "gpm")
    assert at.update(before, TABLE) is before
    again = at.update(before, TABLE, refit=True)
    assert again is not before
    np.testing.assert_array_equal(again.reliability, before.reliability)


def test_why_a_model_was_chosen_is_kept():
    fit = at.fit(crowd(n_items=60, labels_per_item=5), "auto")
    assert at.update(fit, [("later", "nobody", 1)]).chosen == fit.chosen


def test_changes_between_fits():
    model = at.GPM().fit(TABLE)
    fit = model.result_
    votes = [(2, f"s{n}", 1) for n in range(9)]
    other = [(20 + n, s, 1) for n in range(5) for s in ("s1", "s2", "u", "v")]
    changes = at.changes(fit, model.partial_fit(votes + other).result_)
    assert (changes.n_labels, changes.n_items, changes.n_annotators) == (29, 5, 9)
    first = changes.item_table.to_pylist()[0]
    assert (first["item"], first["before"], first["label"]) == (2, 0, 1)
    assert "2: 0 -> 1" in changes.summary()


def test_new_numbers_are_put_into_the_bins_of_the_fit():
    rows = [(e, s, 10.0 * e + n) for e in range(5) for n, s in enumerate("uvwxyz")]
    labels = Labels.of(rows, bins=5)
    fit = at.GPM().fit(labels).partial_fit([(9, "u", 12.25)]).result_
    assert fit.data.scale.edges is labels.scale.edges
    with pytest.raises(at.InputError, match="label 99 is new"):
        at.GPM().fit(labels).partial_fit([(9, "u", 99.0)])


def test_an_annotator_prior_is_extended_to_new_annotators():
    labels = Labels.of(TABLE).with_annotator_prior({"u": 0.9})
    fit = at.RobustGPM().fit(labels).partial_fit([(9, "new", 1)]).result_
    assert fit.data.annotator_prior.shape == (7, 2)
    assert pa.types.is_integer(fit.data.items.type)


def test_options_of_a_wrong_type_are_refused():
    fit = at.fit(TABLE, "gpm")
    fit = dataclasses.replace(fit, settings={**fit.settings, "tol": "small"})
    with pytest.raises(at.InputError, match="tol is 'small': give a number"):
        at.update(fit, [(7, "u", 1)])


SHUFFLED = simulate.crowd(n_items=60, n_annotators=12, labels_per_item=5, seed=3).labels.to_arrow()


def test_labels_are_read_on_the_scale_of_the_fit_that_is_continued(tmp_path):
    rows = [(e, s, "abc"[(e + (s == 0)) % 2]) for e in range(8) for s in range(4)]
    first = at.fit(rows, "dawid-skene", categories=["c", "b", "a"])
    first.save(tmp_path / "fit")
    again = at.fit(rows[::-1], warm_start=tmp_path / "fit")
    for data in (first.data, first, tmp_path / "fit"):
        assert at.fit(data, warm_start=first).model == "dawid-skene"
    assert again.data.scale.names == ["c", "b", "a"]
    assert at.fit(rows, warm_start=first, scale="nominal").data.scale.names == ["a", "b"]
    with pytest.raises(at.InputError, match="warm_start is a fit of dawid-skene, not of gpm"):
        at.fit(rows, "gpm", warm_start=first)


def test_a_saved_fit_is_accepted_as_labels(tmp_path):
    first = at.fit(SHUFFLED, "gpm")
    first.save(tmp_path / "fit")
    for data in (first, tmp_path / "fit", str(tmp_path / "fit")):
        again = at.fit(data, "majority")
        assert (again.model, again.data.n_labels) == ("majority", SHUFFLED.num_rows)
    with pytest.raises(at.InputError, match="scale: only for labels, and this is a fit"):
        at.fit(tmp_path / "fit", scale="nominal")
    (tmp_path / "empty").mkdir()
    with pytest.raises(at.InputError, match="empty: this is a folder with no saved fit in it"):
        at.fit(tmp_path / "empty")
