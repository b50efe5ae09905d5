"""`compare`: the tables, the page, and models that cannot be fitted."""

import html
import json
import re

import numpy as np
import pytest

import annotruth as at
from annotruth.models.registry import MODELS
from annotruth.report.charts.matrices import hundredths, pair_triangle

HOSTILE = '</script><script>alert("1")</script>{{data}}'
FEW = ["robust-gpm", "majority", "mean"]


@pytest.fixture(scope="module")
def made():
    return at.simulate.crowd(n_items=30, n_annotators=10, spammer_share=0.2, seed=3)


@pytest.fixture(scope="module")
def truth(made):
    names = made.labels.scale.categories.to_pylist()
    return {
        item: names[k] for item, k in zip(made.labels.items.to_pylist(), made.label, strict=True)
    }


@pytest.fixture(scope="module")
def compared(made, truth):
    return at.compare(made.labels, FEW, truth=truth)


def by_model(comparison):
    return {row["model"]: row for row in comparison.model_table().to_pylist()}


def test_a_row_equals_the_results_of_the_model_fitted_alone(made, truth, compared):
    rows = by_model(compared)
    assert set(rows) == set(FEW)
    for name, row in rows.items():
        fit, score = at.fit(made.labels, name), at.held_out(name, made.labels)
        assert row["held_out"] == score.score
        assert row["held_out_error"] == score.standard_error
        assert row["spammers"] == fit.n_spammers
        assert row["iterations"] == fit.n_iter
        assert row["seconds"] > 0
        known = at.evaluate(fit, truth)
        measures = ("accuracy", "f1_macro", "plcc", "srocc", "rmse")
        assert {key: row[key] for key in measures if row[key] is not None} == known


def test_models_are_sorted_by_score_and_the_choice_is_that_of_choose(made, compared):
    scores = [row["held_out"] for row in by_model(compared).values()]
    assert scores == sorted(scores, reverse=True)
    assert compared.choice.model == at.choose(made.labels, FEW).model
    assert compared.why == compared.choice.why


def test_the_accuracy_has_its_interval(compared):
    row = by_model(compared)["majority"]
    n_right = round(row["accuracy"] * 30)
    assert (row["accuracy_low"], row["accuracy_high"]) == pytest.approx(
        at.metrics.accuracy_interval(n_right, 30)
    )
    assert row["accuracy_low"] < row["accuracy"] < row["accuracy_high"]
    assert by_model(compared)["mean"]["accuracy_low"] is None


def test_the_finding_is_the_same_sentence_everywhere(compared, tmp_path):
    compared.report(tmp_path / "page.html")
    assert f'<p class="lead">{compared.finding}.</p>' in (tmp_path / "page.html").read_text()
    entries = compared.to_dict()
    assert entries["finding"] == compared.finding
    assert entries["recommended"] == compared.recommended
    assert compared.recommended in compared.finding


@pytest.mark.parametrize("saved", [True, False])
def test_the_labels_of_a_fit_are_compared(made, compared, saved, tmp_path):
    fit = compared.fits["majority"]
    fit.save(tmp_path / "fit")
    again = at.compare(tmp_path / "fit" if saved else fit, ["majority"])
    assert again.data.n_labels == made.labels.n_labels
    assert by_model(again)["majority"]["held_out"] == by_model(compared)["majority"]["held_out"]
    with pytest.raises(at.InputError, match="scale: only for labels, and this is a fit"):
        at.compare(tmp_path / "fit" if saved else fit, ["majority"], scale="nominal")
    with pytest.raises(at.InputError, match="columns, scale: only for labels, and this is a fit"):
        at.compare(fit, ["majority"], scale="nominal", columns={"item": "x"})


def test_agreement_is_the_share_of_equal_labels_and_the_correlation_of_scores(compared):
    pairs = {
        frozenset((row["model"], row["other"])): row
        for row in compared.agreement_table().to_pylist()
    }
    assert len(pairs) == 3
    one, other = compared.fits["robust-gpm"], compared.fits["majority"]
    row = pairs[frozenset(("robust-gpm", "majority"))]
    assert row["same_label"] == np.mean(one.label == other.label)
    expected = np.corrcoef(one.expectation, other.expectation)[0, 1]
    assert row["score_correlation"] == pytest.approx(expected)
    assert pairs[frozenset(("robust-gpm", "mean"))]["same_label"] is None


def test_tables_are_in_the_callers_frame_library():
    import polars as pl

    rows = [(e, s, (e * s) % 2) for e in range(4) for s in range(3)]
    frame = pl.DataFrame(rows, schema=["item", "annotator", "label"], orient="row")
    compared = at.compare(frame, ["majority", "mean"])
    assert isinstance(compared.models(), pl.DataFrame)
    assert isinstance(compared.agreement(), pl.DataFrame)


def test_models_that_need_an_order_are_listed_with_the_reason():
    rows = [(e, s, "cat" if (e + s) % 3 else "dog") for e in range(6) for s in range(4)]
    compared = at.compare(rows, ["majority", "mean", "subject-bias"])
    assert list(compared.fits) == ["majority"]
    assert set(compared.refused) == {"mean", "subject-bias"}
    assert "needs an ordinal scale" in by_model(compared)["mean"]["refused"]
    assert by_model(compared)["mean"]["held_out"] is None


def test_models_are_fitted_even_if_no_label_can_be_held_out():
    compared = at.compare([("a", "x", "cat")], ["majority", "robust-gpm", "mean"])
    assert compared.choice is None
    assert "no label can be predicted" in compared.why
    assert set(compared.fits) == {"majority", "robust-gpm"}
    assert set(compared.refused) == {"mean"}
    assert json.dumps(compared.to_dict(), allow_nan=False)


def test_if_no_model_can_be_fitted_the_reason_is_given():
    with pytest.raises(at.InputError, match="no model can be fitted; mean needs an ordinal scale"):
        at.compare([("a", "x", "cat"), ("a", "y", "dog")], ["mean"])


@pytest.mark.parametrize(
    ("models", "message"),
    [
        (["gmp"], "unknown model 'gmp'"),
        ([], "no model to compare"),
        ("gpm", "models is 'gpm': give a list of names, some of"),
        ([at.GPM()], r"models is \[GPM\(.*\]: give a list of names, some of"),
    ],
)
def test_unknown_and_missing_models_are_refused_before_reading(models, message):
    for compare in (at.compare, at.compare_rankings):
        with pytest.raises(at.InputError, match=message):
            compare("no such file.csv", models)
    with pytest.raises(at.InputError, match=message):
        at.choose([("a", "x", "cat"), ("a", "y", "dog")], models)


def test_a_truth_that_does_not_match_is_refused_before_fitting(made):
    def never(progress):
        raise AssertionError("a fit was started")

    with pytest.raises(at.InputError, match="truth"):
        at.compare(made.labels, ["gpm"], truth={"nobody": 1}, progress=never)


def test_a_fit_that_did_not_converge_is_marked_in_the_table_without_a_warning(monkeypatch):
    capped = at.GPM(max_iter=1)
    monkeypatch.setattr("annotruth.selection.choose.make_for", lambda name, labels: capped)
    monkeypatch.setattr("annotruth.selection.compare.make_for", lambda name, labels: capped)
    rows = [(e, s, (e * s) % 3) for e in range(6) for s in range(4)]
    assert by_model(at.compare(rows, ["gpm"]))["gpm"]["converged"] is False


def test_the_page_escapes_names_and_works_offline(tmp_path):
    rows = [
        (f"{HOSTILE}{e}", f"{HOSTILE}{s}", HOSTILE[: 9 + (e * s) % 2])
        for e in range(6)
        for s in range(4)
    ]
    compared = at.compare(rows, ["majority", "gpm", "mean"])
    compared.report(tmp_path / "page.html", source=HOSTILE)
    text = (tmp_path / "page.html").read_text()
    assert text.count("<script") == 2
    assert "&lt;/script&gt;&lt;script&gt;alert" in text
    assert "default-src 'none'" in html.unescape(text)
    assert " style=" not in text
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", text)
    assert "mean needs an ordinal scale" in text


def test_the_page_shows_the_tables_and_charts(compared, tmp_path):
    compared.report(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert re.findall(r'data-name="([^"]*)"', text) == ["same-label", "score-correlation"]
    score = by_model(compared)["robust-gpm"]["held_out"]
    assert f"{score:.4f}</td>" in text
    assert 'id="refused"' not in text
    assert "<a href=" not in text.partition("<main>")[2]


def test_pairs_are_drawn_with_numbers_that_are_equal_only_if_all_items_are():
    assert [hundredths(share) for share in (1.0, 0.999, 0.5, -0.25)] == ["=", "99", "50", "-25"]
    share = np.array([[np.nan, np.nan], [0.876, np.nan]])
    drawing = pair_triangle(["gpm", "mean"], share, 300.0, [["", ""], ["both", ""]])
    svg = drawing.svg("pairs")
    assert re.findall(r">([^<>]+)</text>", svg) == ["gpm", "87", "mean"]
    assert svg.count("<rect") == 1


def test_a_single_model_has_a_page(tmp_path):
    at.compare([("a", "x", "cat")], ["majority"]).report(tmp_path / "page.html")
    assert "<figure" not in (tmp_path / "page.html").read_text()


def test_all_models_are_compared_by_default():
    rows = [(e, s, 1 + (e * s) % 3) for e in range(6) for s in range(4)]
    assert set(at.compare(rows).fits) == set(MODELS)
