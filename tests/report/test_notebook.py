"""What notebooks show and what completion offers."""

import re
from pathlib import Path

import pytest

import annotruth as at

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def compared(crowd):
    return at.compare(crowd.data, ["gpm", "majority", "mean"])


@pytest.fixture(scope="module")
def shown(crowd, compared):
    """Everything with a block, by name."""
    before = at.fit(crowd.data, "majority")
    after = at.update(before, [("new item", "new annotator", 1)], refit=True)
    return {
        "fit": crowd,
        "comparison": compared,
        "advice": at.next_labels(crowd, budget=20),
        "plan": at.plan_labels(crowd, "hellinger", 0.1),
        "changes": at.changes(before, after),
    }


@pytest.mark.parametrize("name", ["fit", "comparison", "advice", "plan", "changes"])
def test_a_block_is_small_and_has_neither_script_nor_addresses(shown, name):
    block = shown[name]._repr_html_()
    assert len(block) < 25_000
    assert "<script" not in block
    assert not re.search(r"(src|href|url\()", block)
    styled = re.search(r"<style>(.*?)</style>", block)[1]
    assert all(
        rule.lstrip().startswith(".annotruth") for rule in re.findall(r"[^{}]+(?={)", styled)
    )


@pytest.mark.parametrize("name", ["fit", "comparison", "advice", "plan", "changes"])
def test_repr_is_one_short_line(shown, name):
    text = repr(shown[name])
    assert "\n" not in text
    assert len(text) < 200
    assert text.startswith(f"{type(shown[name]).__name__}(")


def test_the_block_of_a_fit_begins_with_the_verdict(crowd):
    block = crowd._repr_html_()
    assert block.index("Can these labels be trusted?") < block.index("gpm on ")
    for text in ("Annotators, least reliable first", "Items, least certain first"):
        assert text in block
    lowest = crowd.annotator_table().sort_by("reliability")["annotator"][0].as_py()
    assert f"<tbody><tr><td>{lowest}</td>" in re.sub(' class="[^"]*"', "", block)
    assert block.count("<tr>") == 2 * (1 + 5)


def test_the_block_of_a_model_of_scores_claims_no_order(crowd):
    block = at.fit(crowd.data, "mean")._repr_html_()
    assert "<h4>Annotators</h4>" in block
    assert "least reliable" not in block


def test_fits_of_many_labels_are_shown_without_advice(crowd, monkeypatch):
    monkeypatch.setattr("annotruth.report.notebook.MAX_LABELS", 10)
    monkeypatch.setattr("annotruth.report.notebook.advise", None)
    block = crowd._repr_html_()
    assert "change of Q below" in block
    assert "Annotators, least reliable first" in block
    assert "Items" not in block


def test_fits_that_have_no_advice_are_shown(crowd, monkeypatch):
    def refuse(fit):
        raise at.InputError("saved by another version")

    monkeypatch.setattr("annotruth.report.notebook.advise", refuse)
    assert "change of Q below" in crowd._repr_html_()


def test_the_block_of_a_comparison_begins_with_the_finding(compared):
    block = compared._repr_html_()
    assert f'<p class="at-lead">{compared.finding}.</p>' in block


def test_blocks_escape_names(hostile, hostile_ids):
    for one in (hostile, at.next_labels(hostile), at.compare(hostile, ["gpm", "majority"])):
        block = one._repr_html_()
        for name in hostile_ids[:3]:
            assert name not in block
    assert "&lt;script&gt;" in hostile._repr_html_()


@pytest.mark.parametrize("background", ["white", "rgb(17, 17, 17)"])
def test_text_has_the_color_of_the_notebook(chromium, shown, background):
    page = chromium.new_page()
    messages = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("request", lambda request: messages.append(request.url))
    color = "rgb(250, 250, 250)" if background != "white" else "rgb(10, 10, 10)"
    blocks = "".join(one._repr_html_() for one in shown.values())
    page.set_content(f"<body style='background:{background};color:{color}'>{blocks}")
    for selector in (".annotruth .at-lead", ".annotruth td"):
        used = page.locator(selector).first.evaluate("one => getComputedStyle(one).color")
        assert used == color
    assert messages == []
    page.close()


@pytest.mark.parametrize("name", ["fit", "comparison", "advice"])
def test_completion_offers_what_can_be_called(shown, name):
    offered = dir(shown[name])
    assert "summary" in offered or "report" in offered
    for attribute in offered:
        assert not attribute.startswith("_")
        getattr(shown[name], attribute)


def test_completion_offers_the_charts_which_have_help(crowd):
    assert {"reliability", "items", "annotator"} <= set(dir(crowd.plot))
    for name in dir(crowd.plot):
        assert getattr(crowd.plot, name).__doc__.startswith("Chart ")


def test_completion_offers_the_public_names_of_the_package():
    assert dir(at) == sorted([*at.__all__, "__version__"])


def test_completion_offers_what_the_documents_name(shown):
    for name, variable in (("fit", "fit"), ("comparison", "compared"), ("advice", "advice")):
        for path in sorted((ROOT / "docs").glob("*.md")):
            blocks = re.findall(r"```python\n(.*?)```", path.read_text("utf-8"), flags=re.DOTALL)
            used = set(re.findall(rf"\b{variable}\.([a-z_]+)\(?", "".join(blocks)))
            # Fits on Spark have a method of their own.
            assert used - {"close"} <= {*dir(shown[name])}, path.name


def test_charts_against_the_truth(crowd):
    truth = dict.fromkeys(crowd.data.items.to_pylist()[:20], 3)
    assert crowd.plot.confusion(truth).name == "confusion"
    assert crowd.plot.true_scores(truth).name == "true-scores"
    with pytest.raises(at.AnnotruthError, match=r"no calibration of gpm .*choose confusion, true_"):
        crowd.plot.calibration(truth)
