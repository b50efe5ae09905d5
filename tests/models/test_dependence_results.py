"""Which annotators seem to copy from one another: tested where items have one right label, and shown."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import annotruth as at
from annotruth import simulate
from annotruth.errors import InputError
from annotruth.models.evidence import dependent_annotators
from annotruth.models.latent_classes import Parts
from annotruth.models.robust_gpm import class_model
from annotruth.observations import Labels
from annotruth.report.further import dependent_annotators as dependence_section
from annotruth.report.render import renderer

KIND = "dependent_annotators"
NAMES = np.array(["ann", "bob", "eve", *(f"w{k:02}" for k in range(3, 12))])
COLUMNS = ["annotator", "other", "n_items", "agreement", "expected", "correlation", "p_value"]


def crowd(seed, *, copied=0.6, distracted=False, n_items=200, n_classes=4):
    """Return labels of items with one right label; bob copies a share of eve's.

    If annotators are distracted, most of their wrong labels of an item are the same one.
    """
    rng = np.random.default_rng(seed)
    shape = n_items, len(NAMES)
    truth = rng.integers(n_classes, size=(n_items, 1))
    wrong = (truth + rng.integers(1, n_classes, size=shape)) % n_classes
    if distracted:
        same = (truth + rng.integers(1, n_classes, size=truth.shape)) % n_classes
        wrong = np.where(rng.random(shape) < 0.6, same, wrong)
    given = np.where(rng.random(shape) < rng.uniform(0.6, 0.9, len(NAMES)), truth, wrong)
    is_copied = rng.random(n_items) < copied
    given[is_copied, 1] = given[is_copied, 2]
    item, annotator = np.indices(shape)
    label = np.array(list("abcdefgh"))[given]
    columns = {"item": item.ravel(), "annotator": NAMES[annotator.ravel()], "label": label.ravel()}
    return pd.DataFrame(columns)


@pytest.fixture(scope="module")
def frame():
    return crowd(0)


@pytest.fixture(scope="module")
def fit(frame):
    return at.fit(frame)


@pytest.mark.parametrize("seed", range(3))
def test_copied_classes_are_found(seed):
    frame = crowd(seed)
    found = at.fit(frame).dependent_annotators()
    assert found.columns.tolist() == COLUMNS
    assert len(found) == 1
    row = found.iloc[0]
    assert (row["annotator"], row["other"], row["n_items"]) == ("bob", "eve", 200)
    wide = frame.pivot_table(index="item", columns="annotator", values="label", aggfunc="first")
    assert row["agreement"] == (wide["bob"] == wide["eve"]).mean()
    excess = (row["agreement"] - row["expected"]) / (1.0 - row["expected"])
    assert row["correlation"] == pytest.approx(excess)
    assert row["correlation"] == pytest.approx(0.6, abs=0.15)
    assert row["p_value"] < 0.05


@pytest.mark.parametrize("distracted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_independent_annotators_of_classes_are_not_listed(seed, distracted):
    fit = at.fit(crowd(seed, copied=0.0, distracted=distracted, n_items=600))
    assert fit.further[KIND].facts == {"n_tested": 66, "n_dependent": 0, "significance": 0.05}
    assert len(fit.dependent_annotators()) == 0
    assert "more often than their items explain" not in fit.summary()
    assert dependence_section(fit, fit.further[KIND]).parts == []


def test_the_best_annotators_are_expected_to_agree():
    rng, shape = np.random.default_rng(5), (150, 20)
    truth = rng.integers(10, size=(150, 1))
    right = rng.random(shape) < rng.uniform(0.4, 0.98, 20)
    wrong = np.where(rng.random(shape) < 0.7, truth ^ 1, rng.integers(10, size=shape))
    given = np.where(right, truth, wrong)
    fit = at.fit([(i, f"w{s}", f"c{given[i, s]}") for i, s in np.ndindex(shape)])
    assert len(fit.dependent_annotators()) == 0


def test_weak_dependence_of_classes_is_not_listed():
    assert len(at.fit(crowd(0, copied=0.3, n_items=800)).dependent_annotators()) == 0


def test_no_estimate_depends_on_the_test(frame, fit, monkeypatch):
    monkeypatch.setattr(class_model, "_find_dependent_pairs", lambda *_: None)
    without = at.fit(frame)
    assert KIND not in without.further
    pd.testing.assert_frame_equal(without.items(), fit.items())
    pd.testing.assert_frame_equal(without.annotators(), fit.annotators())
    pd.testing.assert_frame_equal(without.labels(), fit.labels())


def test_where_opinions_differ_pairs_are_listed():
    labels = simulate.crowd(n_annotators=14, seed=1).labels
    frame = pd.DataFrame(labels.to_codes().to_pandas()).astype(int)
    wide = frame.pivot_table(index="item", columns="annotator", values="label")
    copied = np.random.default_rng(1).random(len(wide)) < 0.6
    wide.loc[copied, 9] = wide.loc[copied, 3]
    fit = at.fit(wide.stack().rename("label").reset_index().astype(int))
    assert fit.readout == "opinion"
    found = fit.dependent_annotators()
    assert found[["annotator", "other"]].to_numpy().tolist() == [[3, 9]]
    assert found["p_value"][0] < 0.05


def test_order_of_rows_and_names_of_others_do_not_matter(frame, fit):
    shuffled = at.fit(frame.sample(frac=1.0, random_state=1)).dependent_annotators()
    pd.testing.assert_frame_equal(shuffled, fit.dependent_annotators(), rtol=1e-9)


def test_labels_on_disk_have_the_same_pairs(frame, fit, tmp_path):
    frame.to_csv(tmp_path / "labels.csv", index=False)
    on_disk = at.fit(tmp_path / "labels.csv", memory="1GB")
    assert on_disk.data.on_disk
    table = on_disk.further_table(KIND, KIND).to_pandas()
    pd.testing.assert_frame_equal(table, fit.dependent_annotators(), rtol=1e-9)


def test_the_summary_names_three_pairs(fit):
    line = fit.summary().splitlines()[-1]
    start = (
        "1 of 66 pairs of annotators agrees more often than their items explain (at a significance"
    )
    assert line.startswith(start)
    row = fit.dependent_annotators().iloc[0]
    shares = f"{row['agreement']:.0%} of 200 items, {row['expected']:.0%} expected"
    assert line.endswith(f"over all pairs): bob and eve ({shares})")
    frame = crowd(1, n_items=400)
    wide = frame.pivot_table(index="item", columns="annotator", values="label", aggfunc="first")
    copied = np.random.default_rng(2).random((400, 3)) < 0.7
    for rows, one, other in zip(
        copied.T, ("w03", "w05", "w07"), ("w04", "w06", "w08"), strict=True
    ):
        wide[other] = np.where(rows, wide[one], wide[other])
    line = at.fit(wide.stack().rename("label").reset_index()).summary().splitlines()[-1]
    assert line.startswith("4 of 66 pairs of annotators agree more often")
    assert line.endswith(", 1 more (table dependent_annotators)")


def test_the_command_line_shows_the_pairs(frame, tmp_path, run):
    source, out, page = (tmp_path / name for name in ("labels.csv", "out", "report.html"))
    frame.to_csv(source, index=False)
    code, printed, _ = run("fit", source, "--out", out, "--report", page, "--json")
    assert code == 0
    facts = {"n_tested": 66, "n_dependent": 1, "significance": 0.05}
    assert json.loads(printed)[KIND] == facts
    assert pd.read_csv(out / f"{KIND}.csv")["other"].tolist() == ["eve"]
    text = page.read_text("utf-8")
    assert f'<section id="{KIND}"' in text
    first = text.partition('id="annotators"')[0]
    assert f'<b>1</b> pair of annotators whose <a href="#{KIND}">labels match</a>' in first
    assert "in up to 5% of crowds, a pair is listed by chance" in text
    assert "fraud" not in text.lower()


def test_the_section_lists_twenty_pairs_and_escapes_names(fit):
    results = fit.further[KIND]
    row = results.tables[KIND].to_pylist()[0] | {"annotator": "<b>"}
    table = results.tables[KIND].from_pylist([row] * 23)
    section = renderer().show(dependence_section(fit, replace(results, tables={KIND: table})))
    assert section.count("&lt;b&gt;") == 20
    assert "And 3 further pairs: see dependent_annotators.csv of --out." in section


@pytest.mark.parametrize("limit", ["chance", "annotators", "operations", "common", "model"])
def test_what_is_not_tested_says_when_it_is(frame, monkeypatch, limit):
    labels, model = frame, None
    if limit == "chance":
        labels = frame.assign(label=np.random.default_rng(0).choice(list("ab"), len(frame)))
    elif limit == "annotators":
        monkeypatch.setattr(dependent_annotators, "MAX_ANNOTATORS", len(NAMES) - 1)
    elif limit == "operations":
        monkeypatch.setattr(class_model, "_MAX_OPERATIONS", 1e3)
    elif limit == "common":
        labels = frame[frame["item"] < 9]
    else:
        model = "dawid-skene"
    fit = at.fit(labels, model)
    with pytest.raises(InputError, match="no results on dependent annotators: fit robust-gpm in"):
        fit.dependent_annotators()


def test_updates_test_all_labels_again(frame):
    first = at.fit(frame[frame["item"] < 100])
    fit = at.update(first, frame[frame["item"] >= 100])
    assert fit.dependent_annotators()["n_items"].tolist() == [200]
    assert isinstance(fit.data, Labels)


def test_fits_of_parts_keep_the_pairs_of_annotators(frame):
    model = at.RobustGPM().fit(frame)
    fit = model.result_
    late = (fit.data.annotator == 5) & (fit.data.item_of_label() >= 100)
    parts = Parts(
        np.where(late, len(NAMES), fit.data.annotator), np.append(np.arange(len(NAMES)), 5)
    )
    pairs = model.fit_parts(parts).fit.dependent_annotators()
    pd.testing.assert_frame_equal(pairs, fit.dependent_annotators())
