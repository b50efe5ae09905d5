"""More labels later: as a full fit would have it, without a full fit."""

import dataclasses

import numpy as np
import pyarrow as pa
import pytest

import annotruth as at
from annotruth.labels import Labels
from annotruth.models import incremental as updating
from annotruth.models.registry import MODELS, UPDATABLE, get_model

pytestmark = pytest.mark.usefixtures("however_few")

TIGHT = {"tol": 1e-6, "max_iter": 5_000, "acceleration": True}


@pytest.fixture
def however_few(monkeypatch):
    """Update fits of however few labels, which otherwise are fitted anew."""
    for name in UPDATABLE:
        monkeypatch.setattr(get_model(name), "updates_from", 0)


def crowd(seed=0, **how):
    # Many labels an item: with few, GPM has many maxima, and each start finds its own.
    made = {"n_items": 300, "n_annotators": 40, "n_categories": 3, "labels_per_item": 25}
    made["spammer_share"] = 0.2
    return at.simulate.crowd(**{**made, **how}, seed=seed).labels


def dealt(labels, n_new, seed=1, n_parts=1):
    """Some labels kept, and parts of the others, each of so many."""
    part = np.zeros(labels.n_labels, dtype=int)
    chosen = np.random.default_rng(seed).permutation(labels.n_labels)[: n_new * n_parts]
    part[chosen] = np.repeat(np.arange(1, n_parts + 1), n_new)
    return [labels.subset(part == p) for p in range(n_parts + 1)]


def full(labels, **how):
    return at.GPM(**{**TIGHT, **how}).fit(labels).result_


def apart(found, again):
    """The largest differences of reliabilities and distributions; ids may be in any order."""
    person = [fit.data.annotators.to_pylist() for fit in (found, again)]
    item = [fit.data.items.to_pylist() for fit in (found, again)]
    n = found.data.n_categories
    theta = [fit.distribution.dense(n) for fit in (found, again)]
    order = [person[1].index(one) for one in person[0]], [item[1].index(one) for one in item[0]]
    return max(
        np.abs(found.reliability - again.reliability[order[0]]).max(),
        np.abs(theta[0] - theta[1][order[1]]).max(),
    )


@pytest.mark.parametrize("behavior", ["uniform", "learned"])
def test_an_update_ends_where_a_full_fit_does(behavior):
    labels = crowd(seed=4)
    base, new = dealt(labels, 40)
    model = at.GPM(**TIGHT, behavior=behavior).fit(base)
    before = model.result_
    model.partial_fit(new)
    assert apart(model.result_, full(labels, behavior=behavior)) < 1e-3
    assert np.abs(before.reliability - model.result_.reliability).max() > 2e-3


@pytest.fixture
def alone(monkeypatch):
    """Let in no items but those with new labels."""
    monkeypatch.setattr(updating, "_ROOM", 0)
    monkeypatch.setattr(updating, "_SHARE", 0.0)


@pytest.mark.usefixtures("alone")
def test_labels_elsewhere_are_followed_without_looking_at_them():
    labels = crowd(n_items=1_000, n_annotators=50, labels_per_item=25)
    base, new = dealt(labels, 20)
    model = at.GPM(**TIGHT).fit(base)
    before = model.result_.reliability
    model.partial_fit(new)
    assert model.update_.n_passed < 0.03 * labels.n_labels
    again = full(labels)
    moved = np.abs(again.reliability - before).max()
    assert moved > 2e-3
    assert apart(model.result_, again) < 0.5 * moved


def test_a_fit_that_stopped_early_is_left_as_far_from_its_end():
    labels = crowd(seed=6)
    base, new = dealt(labels, 20)
    early = {"tol": 1.0, "max_iter": 1_000, "acceleration": False}
    model = at.GPM(**early).fit(base)
    found, again = model.partial_fit(new).result_, full(labels, **early)
    assert apart(found, again) < 0.1 * apart(full(labels), again)


def test_new_items_and_new_annotators():
    labels = crowd(seed=4)
    item, person = labels.item_of_label(), labels.annotator
    newcomer = (item >= 295) | (person >= 38)
    base, new = labels.subset(~newcomer), labels.subset(newcomer)
    model = at.GPM(**TIGHT).fit(base).partial_fit(new)
    told = model.update_
    assert (told.n_labels, told.n_items, told.n_annotators) == (new.n_labels, 5, 2)
    assert told.item_table["before"].null_count == 5
    assert told.annotator_table["before"].null_count == 2
    assert apart(model.result_, full(labels)) < 1e-3


def test_several_updates_in_any_order():
    labels = crowd(seed=4)
    base, *parts = dealt(labels, 30, n_parts=3)
    ends = []
    for order in ((0, 1, 2), (2, 0, 1)):
        model = at.GPM(**TIGHT).fit(base)
        for p in order:
            model.partial_fit(parts[p])
        ends.append(model.result_)
    again = full(labels)
    assert apart(ends[0], again) < 1e-3
    assert apart(ends[1], again) < 1e-3
    assert ends[0].data.n_labels == labels.n_labels


def test_asking_for_the_result_between_updates_changes_little():
    labels = crowd(seed=4)
    base, one, two = dealt(labels, 30, n_parts=2)
    asked, other = (at.GPM(**TIGHT).fit(base).partial_fit(one) for _ in range(2))
    assert asked.result_.data.n_labels == base.n_labels + 30
    asked.partial_fit(two)
    other.partial_fit(two)
    assert apart(asked.result_, other.result_) < 1e-3


def test_a_final_touch_brings_it_to_the_full_fit():
    labels = crowd(seed=4)
    base, new = dealt(labels, 100)
    touched = at.GPM(**TIGHT).fit(base).partial_fit(new, touch=True).result_
    again = full(labels)
    assert touched.n_iter > 0
    per_label = (touched.log_likelihood - again.log_likelihood) / labels.n_labels
    assert abs(per_label) < 1e-6
    assert apart(touched, again) < 1e-4


def test_the_whole_fit_is_read_out_as_any():
    labels = crowd(seed=5)
    base, new = dealt(labels, 50)
    found, again = at.GPM(**TIGHT).fit(base).partial_fit(new).result_, full(labels)
    assert found.log_likelihood == pytest.approx(again.log_likelihood, rel=1e-6)
    order = [again.data.annotators.to_pylist().index(s) for s in found.data.annotators.to_pylist()]
    np.testing.assert_allclose(found.low, again.low[order], atol=5e-3)
    assert found.p_serious.shape == (labels.n_labels,)
    assert found.converged


def test_known_truths_of_new_and_old_items():
    labels = crowd(seed=4)
    base, new = dealt(labels, 40)
    names = base.scale.categories.to_pylist()
    old_item, new_item = base.items[7].as_py(), new.items[0].as_py()
    gold = {old_item: names[2], new_item: names[1]}
    found = at.GPM(**TIGHT).fit(base).partial_fit(new, gold=gold).result_
    again = full(found.data)
    assert (again.data.known >= 0).sum() == 2
    assert apart(found, again) < 1e-3
    assert found.label[base.items.to_pylist().index(old_item)] == 2


def test_earlier_gold_stays():
    labels = crowd(seed=4)
    base, new = dealt(labels, 40)
    base = base.with_gold({base.items[0].as_py(): base.scale.categories[2].as_py()})
    found = at.GPM(**TIGHT).fit(base).partial_fit(new).result_
    assert found.data.known[0] == 2
    assert found.distribution.dense(3)[0].tolist() == [0, 0, 1]


TABLE = [(e, s, (e + (n == e)) % 2) for e in range(6) for n, s in enumerate("uvwxyz")]


@pytest.mark.parametrize("times", [1, 2])
def test_whoever_labels_an_item_again(times):
    model = at.GPM().fit(TABLE)
    for _ in range(times):
        model.partial_fit(
            [(2, "u", 1), (9, "u", 1)] if _ == 0 else [(2, "u", 0)], duplicates="last"
        )
    table = model.result_.data.to_arrow().to_pylist()
    mine = [row["label"] for row in table if row["item"] == 2 and row["annotator"] == "u"]
    assert mine == [1 if times == 1 else 0]
    assert len(table) == len(TABLE) + 1
    assert model.result_.data.labels_per_annotator.sum() == len(table)


def test_two_votes_are_kept_when_asked_for():
    model = at.GPM().fit(TABLE).partial_fit([(2, "u", 1)], duplicates="keep")
    assert model.result_.data.n_labels == len(TABLE) + 1


def test_labelling_again_is_refused_and_changes_nothing():
    model = at.GPM().fit(TABLE)
    before = model.result_
    with pytest.raises(at.InputError, match=r"labelled twice: annotator 'u' on item 2; choose"):
        model.partial_fit([(2, "u", 1)])
    assert model.result_ is before
    model.partial_fit([(9, "u", 1)])
    with pytest.raises(at.InputError, match="labelled twice: annotator 'u' on item 9"):
        model.partial_fit([(9, "u", 0), (10, "new", 1)])
    assert model.result_.data.n_labels == len(TABLE) + 1


def test_a_new_category_is_refused():
    model = at.GPM().fit(TABLE)
    with pytest.raises(at.InputError, match="label 7 is new, and the fit knows 0, 1: correct it"):
        model.partial_fit([(2, "new", 7)])


def test_ids_meet_whatever_their_type():
    model = at.GPM().fit(TABLE).partial_fit([("2", "new", "1"), ("x", "new", "0")])
    assert model.result_.data.items.to_pylist() == [*"012345", "x"]
    assert model.result_.data.n_annotators == 7


def test_the_fit_is_neither_copied_nor_changed():
    labels = crowd(seed=7)
    base, new = dealt(labels, 10)
    model = at.GPM().fit(base)
    fit = model.result_
    theta, eps = fit.distribution.probability.copy(), fit.reliability.copy()
    model.partial_fit(new)
    updates = model._updates
    assert updates.pending
    assert updates._grown.base is base
    assert updates._theta.base is fit.distribution
    assert np.shares_memory(updates._grown.items.chunk(0).buffers()[1], base.items.buffers()[1])
    np.testing.assert_array_equal(fit.distribution.probability, theta)
    np.testing.assert_array_equal(fit.reliability, eps)


def test_what_an_update_passes_over_follows_the_new_labels(alone):
    passed = []
    for n_items in (300, 3_000):
        base, new = dealt(crowd(seed=8, n_items=n_items), 15)
        passed.append(
            at.GPM(acceleration=True, tol=1e-2).fit(base).partial_fit(new).update_.n_passed
        )
    assert passed[1] < 1.2 * passed[0]


def test_many_new_labels_make_the_fit_whole_at_once():
    base, new = dealt(crowd(seed=9), 900)
    model = at.GPM().fit(base).partial_fit(new)
    assert model._updates is None
    assert model.result_.data.n_labels == base.n_labels + 900


def test_the_first_labels_are_a_fit():
    assert at.GPM().partial_fit(TABLE).result_.data.n_labels == len(TABLE)


def test_answers_know_the_new():
    model = at.GPM().fit(TABLE).partial_fit([(9, "new", 1), (9, "u", 1), (9, "v", 1)])
    assert model.predict_proba([6], [6]).shape == (1, 2)


def test_a_saved_fit_goes_on(tmp_path):
    labels = crowd(seed=4)
    base, one, two = dealt(labels, 30, n_parts=2)
    at.fit(base, "gpm", **TIGHT).save(tmp_path / "fit")
    first = at.update(tmp_path / "fit", one)
    first.save(tmp_path / "fit")
    found = at.update(tmp_path / "fit", two)
    assert found.settings["tol"] == TIGHT["tol"]
    assert apart(found, full(labels)) < 1e-3


def test_models_that_cannot_say_so_and_name_those_that_can():
    for name in MODELS:
        model = get_model(name)().fit(TABLE)
        if name in UPDATABLE:
            model.partial_fit([(9, "u", 1)])
        else:
            with pytest.raises(
                at.InputError,
                match=f"{name} cannot be updated, only gpm, robust-gpm and dawid-skene can",
            ):
                model.partial_fit([(9, "u", 1)])
            model.partial_fit([(9, "u", 1)], touch=True)
        assert model.result_.data.n_items == 7


@pytest.mark.parametrize("name", ["robust-gpm", "dawid-skene"])
@pytest.mark.parametrize("truth", ["opinions", "class"])
def test_other_models_end_near_a_full_fit(name, truth):
    if truth == "opinions":
        labels = crowd(seed=4, n_items=3_000, n_annotators=200)
        options = {"truth": "opinions"} if name == "robust-gpm" else {}
    else:
        labels = classes(n_items=6_000, n_annotators=200)
        options = {}
    base, new = dealt(labels, 20)
    model = get_model(name)(**options).fit(base)
    before = model.result_
    model.partial_fit(new)
    assert model.update_.n_passed <= labels.n_labels
    again = get_model(name)(**options).fit(model.result_.data).result_
    touched = np.unique(model.result_.data.annotator[model.result_.data.row >= base.n_labels])
    moved, off = (
        np.abs(fit.reliability[touched] - again.reliability[touched]).mean()
        for fit in (before, model.result_)
    )
    assert off < 0.3 * moved
    assert off < 1e-3


def classes(n_items, n_annotators, seed=3):
    """Items of one true class each, 8 labels each, most of them right."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, 3, n_items)
    right = rng.uniform(0.5, 0.95, n_annotators)
    rows = []
    for e in range(n_items):
        for s in rng.choice(n_annotators, 8, replace=False):
            label = true[e] if rng.random() < right[s] else rng.integers(0, 3)
            rows.append((e, int(s), "abc"[label]))
    return Labels.of(rows)


def test_an_annotator_prior_counts_in_an_update():
    labels = classes(n_items=200, n_annotators=20)
    base, new = dealt(labels, 5)
    who = new.annotators[0].as_py()
    ends = []
    for prior in ({who: 0.05}, None):
        told = base if prior is None else base.with_annotator_prior(prior)
        model = at.RobustGPM().fit(told).partial_fit(new)
        place = model.result_.data.annotators.to_pylist().index(who)
        again = at.RobustGPM().fit(model.result_.data).result_
        told = {row["annotator"]: row for row in model.update_.annotator_table.to_pylist()}
        ends.append(told[who]["reliability"])
        assert ends[-1] == pytest.approx(again.reliability[place], abs=0.02)
        assert ends[-1] == pytest.approx(model.result_.reliability[place], abs=1e-6)
    assert ends[0] < ends[1] - 0.1


def test_a_newcomer_who_repeats_a_label_is_found_out():
    labels = classes(n_items=200, n_annotators=20)
    seen = labels.items.to_pylist()[:60]
    model = at.RobustGPM().fit(labels).partial_fit([(e, "new", "c") for e in seen])
    found = model.result_.annotator_table().to_pylist()[-1]
    assert (found["annotator"], found["behavior"]) == ("new", "repeated c")
    assert found["reliability"] < 0.2


@pytest.mark.parametrize("name", UPDATABLE)
def test_a_truth_that_was_sure_already_moves_hardly_anything(name):
    labels = classes(n_items=200, n_annotators=20)
    fit = get_model(name)().fit(labels).result_
    sure = int(fit.distribution.confidence().argmax())
    gold = {labels.items[sure].as_py(): labels.scale.categories[int(fit.label[sure])].as_py()}
    model = get_model(name)().resume(fit)
    none = Labels.of([(0, 0, "a")]).subset(np.zeros(1, dtype=bool))
    model.partial_fit(none, gold=gold)
    assert np.abs(model.result_.reliability - fit.reliability).max() < 5e-3


def test_updates_one_after_the_other_do_not_pass_over_all():
    labels = crowd(seed=4)
    base, *parts = dealt(labels, 10, n_parts=3)
    model = at.GPM(**TIGHT).fit(base)
    fit = model.result_
    for part in parts:
        model.partial_fit(part)
        assert model._result is fit
    assert model.result_.data.n_labels == labels.n_labels


@pytest.mark.parametrize("name", UPDATABLE)
def test_fits_of_few_labels_are_made_anew(name, monkeypatch):
    monkeypatch.setattr(get_model(name), "updates_from", 1_000_000)
    labels = crowd(seed=4)
    base, new = dealt(labels, 40)
    model = get_model(name)().fit(base).partial_fit(new)
    found = model.result_
    again = get_model(name)().fit(found.data).result_
    np.testing.assert_array_equal(found.reliability, again.reliability)
    told = model.update_
    assert (told.n_labels, told.n_items, told.n_annotators) == (40, 0, 0)
    assert told.item_table.num_rows == len(np.unique(new.item_of_label()))
    assert told.annotator_table["before"].null_count == 0
    people = found.data.annotators.to_pylist()
    for row in told.annotator_table.to_pylist():
        assert row["reliability"] == found.reliability[people.index(row["annotator"])]


def test_changes_are_told():
    before = at.GPM().fit(TABLE)
    fit = before.result_
    votes = [(2, f"s{n}", 1) for n in range(9)]
    other = [(20 + n, s, 1) for n in range(5) for s in ("s1", "s2", "u", "v")]
    told = at.changes(fit, before.partial_fit(votes + other).result_)
    assert (told.n_labels, told.n_items, told.n_annotators) == (29, 5, 9)
    first = told.item_table.to_pylist()[0]
    assert (first["item"], first["before"], first["label"]) == (2, 0, 1)
    assert "2: 0 -> 1" in told.summary()
    assert set(told.record()) >= {"new_labels", "changed_items", "changed_annotators"}


def test_labels_of_bins_fall_into_the_same_bins():
    rows = [(e, s, 10.0 * e + n) for e in range(5) for n, s in enumerate("uvwxyz")]
    labels = Labels.of(rows, bins=5)
    found = at.GPM().fit(labels).partial_fit([(9, "u", 12.25)]).result_
    assert found.data.scale is labels.scale
    with pytest.raises(at.InputError, match="label 99 is new"):
        at.GPM().fit(labels).partial_fit([(9, "u", 99.0)])


def test_a_record_grows():
    labels = Labels.of(TABLE).with_annotator_prior({"u": 0.9})
    found = at.RobustGPM().fit(labels).partial_fit([(9, "new", 1)], touch=True).result_
    assert found.data.annotator_prior.shape == (7, 2)
    assert pa.types.is_integer(found.data.items.type)


def test_options_of_a_wrong_type_are_refused_before_labels_are_added():
    fit = at.fit(TABLE, "gpm")
    fit = dataclasses.replace(fit, settings={**fit.settings, "tol": "small"})
    with pytest.raises(at.InputError, match="tol is 'small': give a number"):
        at.update(fit, [(7, "u", 1)])
