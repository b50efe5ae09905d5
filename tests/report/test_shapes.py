"""What is drawn where: bars, dots and intervals at their values, categories in bins, digits."""

from xml.etree import ElementTree

import numpy as np
import pytest

from annotruth.observations import Labels
from annotruth.report.charts import matrices, shapes
from annotruth.report.charts.drawing import short_number
from annotruth.report.consensus import category_bins
from annotruth.report.tables import STYLE, number_cells

SVG = "{http://www.w3.org/2000/svg}"


def drawn(drawing, kind, css_class):
    """Return the attributes of a drawing's shapes of one kind and class, as numbers."""
    svg = ElementTree.fromstring(drawing.svg("drawing"))
    found = [shape for shape in svg.iter(f"{SVG}{kind}") if shape.get("class") == css_class]
    return [
        {name: float(value) for name, value in shape.items() if name != "class"} for shape in found
    ]


def intervals(**changes):
    given = {
        "names": ["ann", "bob", "cem"],
        "value": np.array([0.9, 0.5, 0.2]),
        "low": np.array([0.7, np.nan, -0.3]),
        "high": np.array([1.4, np.nan, 0.4]),
        "flagged": [False, False, True],
        "domain": (0.0, 1.0),
        "title": "reliability",
    }
    return shapes.Intervals(**{**given, **changes})


def test_intervals_end_within_the_domain_and_say_so_in_tips():
    made = intervals()
    assert [made.ends(k) for k in range(3)] == [(0.7, 1.0), (0.5, 0.5), (0.0, 0.4)]
    assert made.tip(0) == "ann: 0.90 (95% interval 0.70 to 1.40)"
    assert made.tip(1) == "bob: 0.50"
    assert intervals(low=None).tip(0) == "ann: 0.90"


def test_dots_and_intervals_are_at_their_values():
    drawing = shapes.interval_rows(intervals(limit=0.5), 400.0)
    dots = drawn(drawing, "circle", "at-mark") + drawn(drawing, "circle", "at-warn")
    lines = drawn(drawing, "line", "at-range") + drawn(drawing, "line", "at-warn-range")
    (limit,) = drawn(drawing, "line", "at-limit")
    per_unit = (dots[0]["cx"] - dots[2]["cx"]) / 0.7
    assert limit["x1"] == limit["x2"] == pytest.approx(dots[1]["cx"], abs=0.1)
    assert dots[0]["cx"] - dots[1]["cx"] == pytest.approx(0.4 * per_unit, abs=0.2)
    assert lines[0]["x2"] - lines[0]["x1"] == pytest.approx(0.3 * per_unit, abs=0.2)
    assert lines[2]["x2"] - lines[2]["x1"] == pytest.approx(0.4 * per_unit, abs=0.2)
    assert [dot["cy"] for dot in dots] == [line["y1"] for line in lines] == [16.0, 36.0, 56.0]


def test_bars_of_a_histogram_have_the_heights_of_counts():
    edges, counts = np.array([0.0, 1.0, 2.0, 4.0]), np.array([3, 6, 1])
    drawing = shapes.bars(edges, counts, 400.0, ("labels", "items"), ["", "six", ""])
    bars = drawn(drawing, "rect", "at-mark")
    assert [bar["height"] / bars[1]["height"] for bar in bars] == pytest.approx(
        [3 / 6, 1.0, 1 / 6], abs=0.01
    )
    assert bars[2]["width"] == pytest.approx(2 * bars[1]["width"] + 1, abs=0.2)
    assert {bar["y"] + bar["height"] for bar in bars} == {196.0}
    assert "<title>six</title>" in drawing.svg("drawing")


def test_lines_go_through_their_points():
    drawing = shapes.line(
        np.array([0.0, 1.0, 4.0]), np.array([-9.0, -3.0, -1.0]), 400.0, ("x", "y")
    )
    dots = drawn(drawing, "circle", "at-mark")
    x, y = ([dot[name] for dot in dots] for name in ("cx", "cy"))
    assert (x[1] - x[0]) / (x[2] - x[0]) == pytest.approx(1 / 4, abs=0.01)
    assert (y[1] - y[0]) / (y[2] - y[0]) == pytest.approx(6 / 8, abs=0.01)
    assert y[0] > y[2]  # higher values are further up


def test_shares_of_the_confusion_matrix_are_of_its_rows():
    counts = np.array([[3, 1, 0], [0, 2, 0], [0, 0, 0]])
    keys = "true", "recovered", "items"
    chart = matrices.matrix_chart("", "", "", list("abc"), counts, keys, ("true", "recovered"))
    drawing = chart.draw(400.0)
    squares = drawn(drawing, "rect", "at-heat")
    opacity = [square["fill-opacity"] for square in squares]
    expected = [0.75, 0.25, 0, 0, 1.0, 0, 0, 0, 0]
    assert opacity == pytest.approx([0.04 + 0.96 * share for share in expected], abs=0.006)


def test_neighbours_on_a_scale_share_bins():
    labels = Labels.of([(e, "x", e) for e in range(1, 11)])
    bins = category_bins(labels, 4)
    assert bins.names == ["1 to 3", "4 to 5", "6 to 8", "9 to 10"]
    assert bins.of.tolist() == [0, 0, 0, 1, 1, 2, 2, 2, 3, 3]
    assert bins.first.tolist() == [0, 3, 5, 8]
    assert category_bins(labels, 10).names == [str(n) for n in range(1, 11)]


def test_rare_classes_share_one_bin():
    votes = {"a": 1, "b": 5, "c": 2, "d": 4, "e": 1}
    rows = [(f"{name}{n}", "x", name) for name, count in votes.items() for n in range(count)]
    bins = category_bins(Labels.of(rows), 3)
    assert bins.names == ["b", "d", "3 others"]
    assert bins.of.tolist() == [2, 0, 2, 1, 2]
    assert bins.first.tolist() == [1, 3, 0]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (0.1 + 0.2, "0.3"), (1000.0, "1,000"), (999.0, "999"), (1234.5, "1234.5")],
)
def test_numbers_are_short(value, text):
    assert short_number(value) == text


@pytest.mark.parametrize(
    ("values", "listed", "digits"),
    [
        ([0.12345, 10.0], [0.123, 10.0], 2),
        ([0.12345, 10.5], [0.12, 10.5], 2),
        ([0.5, 1000.5], [0, 1000], 0),
        ([2.0, 30.0], [2, 30], 0),
        ([0.0, 1.0], [0.0, 1.0], 2),
    ],
)
def test_columns_have_the_digits_that_one_reads(values, listed, digits):
    column = number_cells(values)
    assert (column["values"], column["digits"], column["kind"]) == (listed, digits, "number")


def test_counts_stay_counts():
    numbers = {"n_labels": np.array([3, 1]), "confidence": np.array([0.5, 1.0])}
    assert [column["kind"] for column in STYLE.columns(numbers)] == ["count", "share"]
