"""`fit.plot`: the same charts in a notebook and in files."""

import re
from xml.etree import ElementTree

import pytest

import annotruth as at
from annotruth.errors import AnnotruthError, InputError
from annotruth.report.drawing import fitted

CHARTS = (
    *("categories", "workload", "history", "reliability", "matches", "items", "scores"),
    "agreement",
)


def drawn(picture):
    return ElementTree.fromstring(picture.svg())


def tips(picture):
    return [title.text for title in drawn(picture).iter("{http://www.w3.org/2000/svg}title")]


@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_is_a_picture_of_its_own(name, crowd):
    picture = getattr(crowd.plot, name)()
    assert drawn(picture).tag.endswith("svg")
    assert tips(picture)
    assert "var(" not in picture.svg()
    assert picture._repr_svg_() == picture.svg()
    assert picture.svg() in picture._repr_html_()
    lengths = {len(column) for column in picture.records.values()}
    assert len(lengths) == 1
    assert lengths != {0}


def test_styles_of_one_picture_do_not_reach_another(crowd):
    one, other = crowd.plot.items().svg(), crowd.plot.categories().svg()
    scopes = {re.search(r'class="(at-[0-9a-f]{12})"', svg)[1] for svg in (one, other)}
    assert len(scopes) == 2
    style = re.search("<style>(.*?)</style>", one)[1]
    assert all(rule.startswith(".at-") and " .at-" in rule for rule in style.split("}") if rule)


@pytest.mark.parametrize(
    ("suffix", "start"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("html", b"<!doctype html>")]
)
def test_pictures_are_saved_by_the_name_of_the_file(suffix, start, crowd, hostile, tmp_path):
    for fit in (crowd, hostile):
        path = tmp_path / f"chart.{suffix}"
        fit.plot.reliability().save(path)
        assert path.read_bytes().startswith(start)


def test_an_unknown_kind_of_file_is_refused(crowd, tmp_path):
    with pytest.raises(InputError, match=r"end the name in \.svg, \.png or \.html"):
        crowd.plot.items().save(tmp_path / "chart.pdf")
    assert list(tmp_path.iterdir()) == []


def test_one_annotator_and_one_item():
    fit = at.fit(
        [("a", "x", 1), ("a", "y", 1), ("b", "x", 2), ("b", "y", 1), ("b", "z", 2)], "majority"
    )
    picture = fit.plot.annotator("y")
    assert picture.records["labels"] == [1, 0, 1, 0]  # rows: recovered 1, 2; columns: given 1, 2
    assert "recovered 2, given 1: 1" in tips(picture)
    picture = fit.plot.item("b")
    assert picture.records["given"] == pytest.approx([1 / 3, 2 / 3])
    with pytest.raises(InputError, match="no annotator 'nobody'"):
        fit.plot.annotator("nobody")


def test_what_a_model_does_not_give_is_said(crowd):
    classes = at.fit([("a", "x", "cat"), ("a", "y", "dog")], "majority")
    with pytest.raises(AnnotruthError, match="gives no reliability"):
        classes.plot.reliability()
    with pytest.raises(AnnotruthError, match="no scores"):
        classes.plot.scores()
    with pytest.raises(AnnotruthError, match="no iterations"):
        classes.plot.history()


def test_too_many_to_draw_are_thinned_and_that_is_said():
    made = at.simulate.crowd(n_items=2_000, n_annotators=10, seed=0)
    picture = at.fit(made.labels, "mean").plot.scores()
    assert "2,000 are too many to draw: at most 424 are" in picture.caption
    assert len(tips(picture)) == len(picture.records["item"]) == 424


def test_many_categories_are_put_together():
    rows = [(e, s, e + s) for e in range(40) for s in range(2)]
    ordinal = at.fit(rows, "majority", categories=list(range(41)))
    assert ordinal.plot.categories().records["category"][0] == "0 to 3"
    nominal = at.fit([(e, s, f"c{e}") for e in range(40) for s in range(2)], "majority")
    assert nominal.plot.categories().records["category"][-1] == "29 others"


@pytest.mark.parametrize("length", [3, 12, 100_000])
def test_a_word_is_cut_to_its_width_however_long_it_is(length):
    # Three letters of 7.2 and room for twelve more; the last of those that fit makes room.
    assert fitted("a" * length, 3 * 7.2 + 12.1) == ("aaa" if length == 3 else "aa…")
