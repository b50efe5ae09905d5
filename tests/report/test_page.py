"""The report as a file: what it holds for each model, and what it never does."""

import base64
import gzip
import json
import re
from hashlib import sha256

import numpy as np
import pytest

import annotruth as at
from annotruth.errors import OutputError
from annotruth.labels import Scale
from annotruth.models.registry import MODELS
from annotruth.report.page import page
from annotruth.report.palette import THEMES, category_colours, colour_of

ROWS = [(e, s, 1 + (e * 7 + s * (e % 3)) % 4) for e in range(12) for s in range(6)]


def unpacked(text):
    (packed,) = re.findall(r'id="data">([^<]*)<', text)
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def columns(table):
    return {column["key"]: column for column in table["columns"]}


@pytest.mark.parametrize("model", MODELS)
def test_every_model_has_a_report_of_what_it_gives(model):
    fit = at.fit(ROWS, model)
    told = unpacked(page(fit))
    people, items = (columns(told["tables"][name]) for name in ("annotators", "items"))
    assert ("reliability" in people) == (fit.reliability is not None)
    assert ("distribution" in items) == (fit.distribution is not None)
    assert ("labels" in told["tables"]) == (fit.p_serious is not None)
    assert set(fit.item_columns) <= set(items)
    assert set(fit.annotator_columns) <= set(people)


def test_names_of_the_models_own_columns_become_words():
    people = columns(unpacked(page(at.fit(ROWS, "subject-bias")))["tables"]["annotators"])
    assert people["bias_std"]["title"] == "Bias std"
    assert people["at_floor"]["kind"] == "flag"


def test_the_tables_hold_the_fit(crowd):
    tables = unpacked(page(crowd))["tables"]
    people, items = columns(tables["annotators"]), columns(tables["items"])
    assert people["reliability"]["values"] == pytest.approx(crowd.reliability.tolist(), abs=6e-4)
    assert people["low"]["values"] == pytest.approx(crowd.low.tolist(), abs=6e-4)
    assert items["item"]["values"] == crowd.data.items.to_pylist()
    shares = np.zeros((60, 5))
    lengths = items["distribution"]["lengths"]
    shares[np.repeat(np.arange(60), lengths), items["distribution"]["categories"]] = items[
        "distribution"
    ]["values"]
    assert shares == pytest.approx(100 * crowd.distribution.dense(5), abs=0.51)
    confusion = np.array(people["picture"]["values"]).reshape(20, 5, 5)
    assert confusion.sum(axis=(1, 2)).tolist() == crowd.data.labels_per_annotator.tolist()
    right = np.trace(confusion, axis1=1, axis2=2) / confusion.sum(axis=(1, 2))
    assert people["matches"]["values"] == pytest.approx(right.tolist(), abs=6e-4)


def test_doubtful_labels_come_with_the_least_likely_first(crowd):
    labels = columns(unpacked(page(crowd))["tables"]["labels"])
    p = labels["p_serious"]["values"]
    assert len(p) == np.count_nonzero(crowd.p_serious < 0.5) > 0
    assert p == sorted(p)


def test_the_policy_lets_nothing_but_the_pages_own_code_run(hostile):
    text = page(hostile)
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for kind in ("style", "script"):
        (own,) = re.findall(rf"<{kind}>(.*?)</{kind}>", text, flags=re.DOTALL)
        hashed = base64.b64encode(sha256(own.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{hashed}'" in policy
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", text)
    assert " style=" not in text


def test_no_word_of_the_data_is_markup(hostile):
    text = page(hostile, source="<b>labels</b>.csv")
    assert "<b>labels" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert text.count("<script") == 2
    assert "<img" not in text
    assert "\u2028" not in text
    assert "separator {{data}}" in text


def test_the_same_fit_gives_the_same_bytes(crowd):
    assert page(crowd) == page(crowd)


def test_dropped_rows_and_a_cap_are_told():
    rows = {"item": ["a", "a", "b", "b"], "annotator": ["x", "y", "x", "y"]}
    import pyarrow as pa

    data = pa.table({**rows, "label": [1, None, 2, 2]})
    with pytest.warns(at.ConvergenceWarning):
        fit = at.fit(data, "gpm", max_iter=1)
    text = page(fit)
    assert "<dt>Rows dropped</dt><dd>1<" in text
    assert "Not settled" in text


def test_a_report_that_cannot_be_written_leaves_nothing(crowd, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot write"):
        crowd.report(tmp_path / "file" / "report.html")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("theme", THEMES)
def test_text_stands_out_from_its_ground(theme):
    colours = THEMES[theme]
    for ground in ("paper", "card", "sunk"):
        for text in ("ink", "quiet", "accent", "warn", "good"):
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)


def contrast(one, other):
    """The contrast ratio of WCAG 2."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour):
    parts = np.array([int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_ordered_colours_go_from_light_to_dark():
    shades = [luminance(colour) for colour in category_colours(Scale.ordinal(range(7)))]
    assert shades == sorted(shades, reverse=True)


def test_many_categories_share_colours():
    classes = Scale.nominal([f"class {n}" for n in range(20)])
    steps = Scale.ordinal(range(101))
    assert colour_of(classes)[8] == 0
    assert max(colour_of(steps)) == len(category_colours(steps)) - 1 == 63


def test_long_names_are_cut_where_many_stand_together():
    rows = [
        ("i" * 10_000 + str(e), f"{s}", "c" * 10_000 + str(e % 2)) for e in range(4) for s in "ab"
    ]
    text = page(at.fit(rows, "gpm"))
    assert "c" * 59 + "…" in text
    assert "c" * 61 not in re.sub("<title>.*?</title>", "", text)
    assert "1 label each" in page(at.fit([("a", "x", 1), ("b", "x", 2)], "gpm"))
