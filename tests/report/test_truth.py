"""The report's section on known truths."""

import re
from html import unescape

import numpy as np
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.report.page import make_report
from annotruth.report.render import renderer
from annotruth.report.truth import compare_with_truth

pytest.importorskip("playwright.sync_api")

TRUTH = {"a": "x", "b": "y", "c": "x", "d": "y"}
# Both models and the votes recover x, y, y, y: c is wrong.
ROWS = [
    *((item, who, TRUTH[item]) for item in "abd" for who in "klmn"),
    *(("c", who, label) for who, label in zip("klmn", "yyyx", strict=True)),
]


def text_of(section):
    return unescape(re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", section)))


def figure_of(section, name):
    """The value and the note of a figure."""
    ((value, note),) = re.findall(rf"<dt>{name}</dt><dd>([^<]*)<small>([^<]*)</small>", section)
    return value, note


def test_accuracy_stands_beside_the_majority_vote():
    fit = at.fit(ROWS, "dawid-skene")
    found = compare_with_truth(fit, TRUTH)
    low, high = at.metrics.accuracy_interval(3, 4)
    assert figure_of(renderer().show(found.section), "Accuracy") == (
        "75.0%", f"of 4; 95% interval {low:.1%} to {high:.1%}"
    )  # fmt: skip
    assert figure_of(renderer().show(found.section), "Majority vote")[0] == "75.0%"
    assert found.measured.accuracy == 0.75
    assert found.measured.n_items == 4
    assert (
        "75.0% of the recovered labels are right (majority vote 75.0%)" in found.measured.sentence
    )
    assert found.charts["confusion"].data == {
        "true": ["x", "x", "y", "y"], "recovered": ["x", "y", "x", "y"], "items": [1, 1, 0, 2]
    }  # fmt: skip


def test_the_worst_items_are_wrong_with_confidence():
    made = at.simulate.crowd(n_items=40, n_annotators=12, n_categories=3, seed=3)
    fit = at.fit(made.labels, "one-coin")
    truth = dict.fromkeys(range(1, 41), 2)
    section = renderer().show(compare_with_truth(fit, truth).section)
    label, confidence = fit.label, fit.distribution.confidence()
    wrong = np.flatnonzero(label != 1)
    worst = wrong[np.argsort(-confidence[wrong], kind="stable")][:12]
    assert re.findall(r'data-open="items\|([^"]*)"', section) == [str(e + 1) for e in worst]
    assert f"{len(wrong)} wrong" in section


def test_calibration_is_measured_where_items_have_one_right_label():
    confidence = np.array([0.95, 0.95, 0.95, 0.55])
    right = np.array([True, True, False, True])
    error = (3 * abs(0.95 - 2 / 3) + abs(0.55 - 1)) / 4
    assert at.metrics.calibration_error(confidence, right) == pytest.approx(error)

    fit = at.fit(ROWS, "dawid-skene")
    found = compare_with_truth(fit, TRUTH)
    data = found.charts["calibration"].data
    assert sum(data["items"]) == 4
    expected = np.dot(data["confidence"], data["items"]) / 4
    assert expected == pytest.approx(fit.distribution.confidence().mean())
    assert np.dot(data["right"], data["items"]) == pytest.approx(3)
    measured = at.metrics.calibration_error(fit.distribution.confidence(), np.array([1, 1, 0, 1]))
    assert f"is {measured:.3f}." in found.charts["calibration"].caption
    assert "calibration" not in compare_with_truth(at.fit(ROWS, "gpm"), TRUTH).charts


def test_scores_are_compared_with_scores():
    made = at.simulate.crowd(n_items=40, n_annotators=12, seed=3)
    fit = at.fit(made.labels, "mean")
    truth = {e + 1: float(fit.expectation[e]) / 2 + 1.25 for e in range(40)}
    found = compare_with_truth(fit, truth)
    assert figure_of(renderer().show(found.section), "PLCC")[0] == "1.000"
    expected = at.evaluate(fit, truth, scores=True)
    assert figure_of(renderer().show(found.section), "RMSE")[0] == f"{expected['rmse']:.3f}"
    assert found.measured.accuracy is None
    farthest = int(np.argmax(np.abs(fit.expectation / 2 - 1.25)))
    assert re.findall(r'data-open="items\|([^"]*)"', renderer().show(found.section))[0] == str(
        farthest + 1
    )
    assert list(found.charts) == ["true-scores"]


def test_gold_measures_annotators_and_not_the_fit():
    gold = {"a": "x", "c": "x"}
    fit = at.fit(ROWS, "dawid-skene", gold=gold)
    found = compare_with_truth(fit, None)
    text = text_of(renderer().show(found.section))
    assert found.measured is None
    assert "2 items had known truths (gold), with 8 labels by 4 annotators: 62.5%" in text
    assert "would be circular" in text
    assert "Accuracy<" not in renderer().show(found.section)
    rows = re.findall(r"<tr><th scope=\"row\">.*?</tr>", renderer().show(found.section))
    shares = {text_of(row).split()[0]: text_of(row).split()[2] for row in rows}
    assert shares == {"k": "50%", "l": "50%", "m": "50%", "n": "100%"}
    assert text_of(rows[-1]).split()[0] == "n"


def test_truths_that_were_given_as_gold_are_left_out():
    fit = at.fit(ROWS, "dawid-skene", gold={"c": "x"})
    found = compare_with_truth(fit, TRUTH)
    assert "Left out: 1 truth of 4 that the fit was given as gold" in text_of(
        renderer().show(found.section)
    )
    assert (found.measured.n_items, found.measured.accuracy) == (3, 1.0)
    assert "No item is wrong." in renderer().show(found.section)
    only = compare_with_truth(fit, {"c": "x"})
    assert only.measured is None
    assert "Left out: 1 truth of 1" in text_of(renderer().show(only.section))


def test_truth_that_cannot_be_used_is_one_clear_line(tmp_path):
    path = tmp_path / "truth.csv"
    path.write_text("item,label\na,z\n")
    with pytest.raises(InputError, match=r"truth\.csv: the truth names label 'z'"):
        make_report(at.fit(ROWS, "majority"), truth=path).html()
    with pytest.raises(InputError, match="no such file"):
        at.fit(ROWS, "majority").report(tmp_path / "report.html", truth=tmp_path / "missing.csv")
    assert not (tmp_path / "report.html").exists()


def test_the_page_has_the_section_after_the_verdict_and_the_verdict_says_it(tmp_path):
    path = tmp_path / "truth.csv"
    path.write_text("item,label\n" + "".join(f"{e},{k}\n" for e, k in TRUTH.items()))
    page = make_report(at.fit(ROWS, "dawid-skene"), truth=path).html()
    assert re.findall(r'<section id="(\w+)"', page)[:3] == ["verdict", "truth", "annotators"]
    (verdict,) = re.findall('<section id="verdict".*?</section>', page, flags=re.DOTALL)
    assert "On 4 items with known truth, 75.0% of the recovered labels are right" in verdict


def test_the_section_works_in_a_browser(hostile, tmp_path, read):
    truth = dict.fromkeys(hostile.data.items.to_pylist(), hostile.data.scale.names[0])
    path = tmp_path / "report.html"
    hostile.report(path, truth=truth)
    reader = read(path, width=390, dark=True)
    assert reader.page.evaluate("document.documentElement.scrollWidth") <= 390
    cells = reader.page.locator("figure[data-name=confusion] .narrow text.at-in-heat")
    assert cells.count() > 0
    first = reader.page.locator("#truth button.open").first
    first.focus()
    reader.page.keyboard.press("Enter")
    assert reader.page.locator("dialog h2").inner_text() == " ".join(first.inner_text().split())
    assert reader.messages == []
    assert [url for url in reader.requests if not url.startswith("data:")] == [path.as_uri()]
