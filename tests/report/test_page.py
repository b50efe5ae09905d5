"""The report as a file: its contents for each model, and its safety."""

import base64
import gzip
import json
import re
from hashlib import sha256
from html import unescape

import numpy as np
import pytest

import annotruth as at
from annotruth.errors import OutputError
from annotruth.models.registry import MODELS
from annotruth.observations import Scale
from annotruth.report.charts.chart import THEMES, category_colors, color_indices
from annotruth.report.page import make_report

ROWS = [(e, s, 1 + (e * 7 + s * (e % 3)) % 4) for e in range(12) for s in range(6)]


def unpacked(text, part=0):
    (packed,) = re.findall(r'id="data">([^<]*)<', text)
    return json.loads(gzip.decompress(base64.b64decode(packed.split("\n")[part])))


def columns(table):
    return {column["key"]: column for column in table["columns"]}


def shown(fit, table):
    """The columns of a table in the report of a fit."""
    return columns(unpacked(make_report(fit).html())["tables"][table])


@pytest.mark.parametrize("model", MODELS)
def test_every_model_has_a_report(model):
    fit = at.fit(ROWS, model)
    page = make_report(fit).html()
    data = unpacked(page)
    people, items = (columns(data["tables"][name]) for name in ("annotators", "items"))
    assert ("reliability" in people) == (fit.reliability is not None)
    assert ("distribution" in items) == (fit.distribution is not None)
    doubtful = fit.p_serious is not None and (fit.p_serious < 0.5).any()
    assert ("labels" in data["tables"]) == ('data-table="labels"' in page) == doubtful
    assert set(fit.item_columns) <= set(items)
    assert set(fit.annotator_values()) - {"spammer"} <= set(people)


def test_the_tables_hold_the_fits_results(crowd):
    people, items = shown(crowd, "annotators"), shown(crowd, "items")
    assert people["reliability"]["values"] == pytest.approx(crowd.reliability.tolist(), abs=6e-4)
    assert people["low"]["values"] == pytest.approx(crowd.low.tolist(), abs=6e-4)
    assert items["item"]["values"] == crowd.data.items.to_pylist()
    shares = np.zeros((60, 5))
    lengths = items["distribution"]["lengths"]
    shares[np.repeat(np.arange(60), lengths), items["distribution"]["categories"]] = items[
        "distribution"
    ]["values"]
    assert shares == pytest.approx(100 * crowd.distribution.dense(5), abs=0.51)
    confusion = np.array(people["confusion"]["values"]).reshape(20, 5, 5)
    assert confusion.sum(axis=(1, 2)).tolist() == crowd.data.labels_per_annotator.tolist()
    expected = np.zeros((20, 5, 5))
    data = crowd.data
    recovered = crowd.label[data.item_of_label()]
    np.add.at(expected, (data.annotator, recovered, data.category_of_label()), 1)
    np.testing.assert_array_equal(confusion, expected)
    right = np.trace(confusion, axis1=1, axis2=2) / confusion.sum(axis=(1, 2))
    assert people["matches"]["values"] == pytest.approx(right.tolist(), abs=6e-4)


def test_numbers_that_are_not_finite_are_null():
    fit = at.fit([("a", "x", 1), ("b", "x", 2), ("b", "y", 4)], "mean")
    items = shown(fit, "items")
    assert items["std"]["values"] == [None, 1.414]
    assert items["score_low"]["values"][0] is None


def test_ids_that_scripts_cannot_hold_as_numbers_are_texts():
    small, large = (shown(at.fit([(e, "x", 1), (e + 1, "x", 2)]), "items") for e in (7, 2**53))
    assert small["item"]["values"] == [7, 8]
    assert large["item"]["values"] == [str(2**53), str(2**53 + 1)]


@pytest.mark.parametrize(
    ("model", "confidence", "words"),
    [
        ("gpm", "share of opinion of", "shares of opinion"),
        ("dawid-skene", "is the right one", "probabilities of the right label"),
    ],
)
def test_the_page_says_what_probabilities_are(model, confidence, words):
    page = make_report(at.fit(ROWS, model)).html()
    items = columns(unpacked(page)["tables"]["items"])
    assert confidence in items["confidence"]["help"]
    assert items["distribution"]["help"].endswith(words)
    assert f"Distributions and confidence are {words}." in page
    assert f"recovered distributions: {words}." in page
    assert 'class="notice"' not in page


def test_the_content_security_policy_allows_only_the_pages_own_code(hostile):
    text = make_report(hostile).html()
    (policy,) = map(unescape, re.findall(r'Content-Security-Policy" content="([^"]*)"', text))
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for kind in ("style", "script"):
        (own,) = re.findall(rf"<{kind}>(.*?)</{kind}>", text, flags=re.DOTALL)
        hashed = base64.b64encode(sha256(own.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{hashed}'" in policy
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", text)
    assert " style=" not in text


def test_texts_of_the_data_are_escaped(hostile):
    text = make_report(hostile, source="<b>labels</b>.csv").html()
    assert "<b>labels" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert text.count("<script") == 2
    assert "<img" not in text
    assert "\u2028" not in text
    assert "separator {{data}}" in text


def test_dropped_rows_and_a_fit_that_did_not_converge_are_reported():
    rows = {"item": ["a", "a", "b", "b"], "annotator": ["x", "y", "x", "y"]}
    import pyarrow as pa

    data = pa.table({**rows, "label": [1, None, 2, 2]})
    with pytest.warns(at.ConvergenceWarning):
        fit = at.fit(data, "gpm", max_iter=1)
    text = make_report(fit).html()
    assert "<dt>Rows dropped</dt><dd>1<" in text
    assert "Not converged" in text


def test_a_report_that_cannot_be_written_leaves_nothing(crowd, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot write"):
        crowd.report(tmp_path / "file" / "report.html")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("theme", THEMES)
def test_text_has_contrast_to_its_background(theme):
    colors = THEMES[theme]
    for background in ("paper", "card", "sunk"):
        for text in ("ink", "quiet", "accent", "warn", "good"):
            assert contrast(colors[text], colors[background]) >= 4.5, (text, background)


def contrast(one, other):
    """The contrast ratio of WCAG 2."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(color):
    parts = np.array([int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_ordinal_colors_go_from_light_to_dark():
    shades = [luminance(color) for color in category_colors(Scale.ordinal(range(7)))]
    assert shades == sorted(shades, reverse=True)


def test_many_categories_share_colors():
    classes = Scale.nominal([f"class {n}" for n in range(20)])
    steps = Scale.ordinal(range(101))
    assert color_indices(classes)[8] == 0
    assert max(color_indices(steps)) == len(category_colors(steps)) - 1 == 63


def test_long_names_are_cut_in_lists():
    rows = [
        ("i" * 10_000 + str(e), f"{s}", "c" * 10_000 + str(e % 2)) for e in range(4) for s in "ab"
    ]
    text = make_report(at.fit(rows, "gpm")).html()
    assert re.search("c{39}…c{19}[01]<", text)
    assert "c" * 61 not in re.sub("<title>.*?</title>", "", text)
    assert "1 label each" in make_report(at.fit([("a", "x", 1), ("b", "x", 2)], "gpm")).html()
