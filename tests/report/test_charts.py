"""`fit.plot`: the same charts in a notebook and in files."""

import re
import sys
from xml.etree import ElementTree

import pytest

import annotruth as at
from annotruth.errors import AnnotruthError, InputError
from annotruth.report.charts.drawing import Axis, Drawing, shorten, text_width

CHARTS = ("categories", "history", "reliability", "matches", "items", "scores")


def drawn(chart):
    return ElementTree.fromstring(chart.svg())


def tips(chart):
    return [title.text for title in drawn(chart).iter("{http://www.w3.org/2000/svg}title")]


@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_is_self_contained_svg(name, crowd):
    chart = getattr(crowd.plot, name)()
    assert drawn(chart).tag.endswith("svg")
    assert tips(chart)
    assert "var(" not in chart.svg()
    assert chart.svg() in chart._repr_html_()
    lengths = {len(column) for column in chart.data.values()}
    assert len(lengths) == 1
    assert lengths != {0}


def test_texts_of_a_drawing_are_texts_whatever_they_contain():
    hostile = 'a " onload="b" <c> & \'d\' \x01\x1b\x7f\ud800\uffff e\n\tf'
    shown = 'a " onload="b" <c> & \'d\' \ufffd\ufffd\ufffd\ufffd\ufffd e f'
    drawing = Drawing(10, 10)
    drawing.text(0, 0, hostile)
    drawing.rect(0, 0, 1, 1, "at-mark", tip=hostile)
    with drawing.group(hostile):
        pass
    svg = ElementTree.fromstring(drawing.svg(hostile))
    assert svg.get("aria-label") == shown
    assert svg.get("onload") is None
    assert [element.text for element in svg.iter() if element.text] == [shown] * 3
    # Single quotes too, for attributes that others write with these.
    assert "'" not in drawing.svg(hostile)


def test_ticks_are_round_and_reach_both_ends():
    assert Axis(0.0, 1.0, 0.0, 100.0).ticks(5) == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert Axis(-3.0, 7.0, 0.0, 100.0).ticks(4) == pytest.approx([-2.5, 0.0, 2.5, 5.0])
    assert Axis(2.0, 2.0, 0.0, 100.0).ticks(4) == [2.0]


def test_styles_of_one_chart_do_not_apply_to_another(crowd):
    one, other = crowd.plot.items().svg(), crowd.plot.categories().svg()
    scopes = {re.search(r'class="(at-[0-9a-f]{12})"', svg)[1] for svg in (one, other)}
    assert len(scopes) == 2
    style = re.search("<style>(.*?)</style>", one)[1]
    assert all(rule.startswith(".at-") and " .at-" in rule for rule in style.split("}") if rule)


@pytest.mark.parametrize(
    ("suffix", "start"),
    [("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF-"), ("html", b"<!doctype html>")],
)
def test_charts_are_saved_in_the_format_of_the_file_name(suffix, start, crowd, hostile, tmp_path):
    for fit in (crowd, hostile):
        path = tmp_path / f"chart.{suffix}"
        fit.plot.reliability().save(path)
        assert path.read_bytes().startswith(start)


def test_an_unknown_format_is_refused(crowd, tmp_path):
    with pytest.raises(InputError, match=r"end the name in \.svg, \.png, \.pdf or \.html"):
        crowd.plot.items().save(tmp_path / "chart.eps")
    assert list(tmp_path.iterdir()) == []


def test_one_annotator_and_one_item():
    fit = at.fit(
        [("a", "x", 1), ("a", "y", 1), ("b", "x", 2), ("b", "y", 1), ("b", "z", 2)], "majority"
    )
    chart = fit.plot.annotator("y")
    assert chart.data["labels"] == [1, 0, 1, 0]  # rows: recovered 1, 2; columns: given 1, 2
    assert "recovered 2, given 1: 1" in tips(chart)
    chart = fit.plot.item("b")
    assert chart.data["given"] == pytest.approx([1 / 3, 2 / 3])
    with pytest.raises(InputError, match="no annotator 'nobody'"):
        fit.plot.annotator("nobody")


def test_charts_that_a_model_has_no_data_for_are_refused(crowd):
    classes = at.fit([("a", "x", "cat"), ("a", "y", "dog")], "majority")
    with pytest.raises(AnnotruthError, match="gives no reliability"):
        classes.plot.reliability()
    with pytest.raises(AnnotruthError, match="no scores"):
        classes.plot.scores()
    with pytest.raises(AnnotruthError, match="no iterations"):
        classes.plot.history()


def test_too_many_values_are_thinned_and_the_caption_says_so():
    made = at.simulate.crowd(n_items=2_000, n_annotators=10, seed=0)
    chart = at.fit(made.labels, "mean").plot.scores()
    assert "2,000 are too many to draw: at most 424 are" in chart.caption
    assert len(tips(chart)) == len(chart.data["item"]) == 424


def test_many_categories_are_put_into_bins():
    rows = [(e, s, e + s) for e in range(40) for s in range(2)]
    ordinal = at.fit(rows, "majority", categories=list(range(41)))
    assert ordinal.plot.categories().data["category"][0] == "0 to 3"
    nominal = at.fit([(e, s, f"c{e}") for e in range(40) for s in range(2)], "majority")
    assert nominal.plot.categories().data["category"][-1] == "29 others"


@pytest.mark.parametrize("length", [3, 12, 100_000])
def test_a_text_is_cut_to_its_width(length):
    # Three letters of 7.44, of which two make room for the ellipsis.
    assert shorten("a" * length, 3 * 7.44 + 12.1) == ("aaa" if length == 3 else "a…")


def test_cut_names_with_the_same_beginning_differ():
    names = [f"very-long-prefix-of-a-crowd-worker-{k:03}" for k in range(3)]
    assert len({shorten(name, 150.0) for name in names}) == 3
    assert all(text_width([shorten(name, 150.0)], 400.0) <= 150.0 for name in names)


@pytest.mark.parametrize(
    "name", ["alpha (nominal)", "alpha (ordinal)", "Zoë Müller", "abcdefghijk"]
)
def test_a_text_is_not_cut_to_the_width_that_it_needs(name):
    assert shorten(name, text_width([name], 400.0)) == name


@pytest.mark.parametrize(
    ("high", "ticks"),
    [(1, [0, 1]), (2, [0, 1, 2]), (11, [0, 5, 10]), (100, [0, 20, 40, 60, 80, 100])],
)
def test_ticks_of_counts_are_whole_numbers(high, ticks):
    assert Axis(0, high, 0, 100).ticks(5, integers=True) == ticks


def test_ranks_start_at_one():
    fit = at.rank([("x", "y", "ann", "x"), ("y", "x", "bob", "x"), ("x", "y", "cid", "y")])
    texts = re.findall('<text class="at-tick"[^>]*>([^<]*)<', fit.plot.ranks().svg())
    assert texts == ["1", "2", "rank"]


def without_vl_convert(monkeypatch):
    """Make `import vl_convert` fail, as it does where the extra is not installed."""
    monkeypatch.setitem(sys.modules, "vl_convert", None)


def test_png_without_the_extra_is_refused_with_what_to_install(crowd, tmp_path, monkeypatch):
    without_vl_convert(monkeypatch)
    with pytest.raises(InputError, match=r"run `pip install annotruth\[png\]`") as refused:
        crowd.plot.items().save(tmp_path / "chart.png")
    assert "\n" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", ["svg", "html"])
def test_svg_and_html_need_no_extra(suffix, crowd, tmp_path, monkeypatch):
    without_vl_convert(monkeypatch)
    crowd.plot.items().save(tmp_path / f"chart.{suffix}")
    crowd.report(tmp_path / "report.html")
    assert (tmp_path / f"chart.{suffix}").stat().st_size > 1000


def test_results_are_one_short_line_and_a_fit_is_its_summary(crowd, hostile):
    before = at.fit(crowd.data, "majority")
    after = at.update(before, [("new item", "new annotator", 1)], refit=True)
    compared = at.compare(crowd.data, ["gpm", "majority"])
    advice = at.next_labels(crowd, budget=20), at.plan_labels(crowd, "hellinger", 0.1)
    for shown in (crowd, compared, *advice, at.changes(before, after)):
        assert repr(shown).startswith(f"{type(shown).__name__}(")
        assert len(repr(shown)) < 200
        assert "\n" not in repr(shown)
    assert crowd._repr_html_().startswith("<pre>gpm on ")
    assert "<script" not in hostile._repr_html_()


def test_completion_offers_the_charts_which_have_help(crowd):
    others = ("accuracy", "annotator", "calibration", "confusion", "item", "past_fits")
    assert dir(crowd.plot) == sorted([*CHARTS, *others, "true_scores"])
    for name in dir(crowd.plot):
        assert getattr(crowd.plot, name).__doc__.startswith("Chart ")


def test_charts_against_the_truth(crowd):
    truth = dict.fromkeys(crowd.data.items.to_pylist()[:20], 3)
    assert crowd.plot.confusion(truth).name == "confusion"
    assert crowd.plot.true_scores(truth).name == "true-scores"
    with pytest.raises(at.AnnotruthError, match=r"no calibration of gpm .*choose confusion, true_"):
        crowd.plot.calibration(truth)
