"""Charts of lines in panels, which the paper's experiments and the benchmarks draw."""

from itertools import pairwise
from xml.etree import ElementTree

import pytest

from annotruth.report.charts.panels import LineAxes, line_chart

ROWS = [
    {"panel": panel, "series": series, "x": x, "y": 1.0 + x, "low": x, "high": x + 2.0}
    for panel in ("RMSE", "Hellinger distance")
    for series in ("GPM", "observed shares")
    for x in (0.1, 0.2, 0.3)
]
SVG = "{http://www.w3.org/2000/svg}"


def chart(rows=ROWS, **options):
    axes = LineAxes("labels & more", "error", **options)
    return line_chart("errors", "A title", "A caption.", rows, axes)


def test_the_data_are_the_rows_by_column():
    data = chart().data
    assert list(data) == ["panel", "series", "x", "y", "low", "high"]
    assert data["x"] == [row["x"] for row in ROWS]


def test_svg_has_the_texts_the_lines_and_the_bands():
    root = ElementTree.fromstring(chart().svg())
    texts = " ".join(root.itertext())
    for text in ("labels & more", "error", "GPM", "observed shares", "RMSE", "Hellinger distance"):
        assert text in texts
    classes = [element.get("class") for element in root.iter(f"{SVG}path")]
    assert sorted(classes) == sorted(
        ["at-band at-k0", "at-line at-l0", "at-band at-k1", "at-line at-l1"] * 2
    )
    assert len(list(root.iter(f"{SVG}circle"))) == len(ROWS) + 2  # and two in the legend


def test_ticks_may_be_given_and_shown_in_percent():
    texts = [
        e.text
        for e in ElementTree.fromstring(chart(ticks=(0.1, 0.3), percent=True).svg()).iter(
            f"{SVG}text"
        )
    ]
    assert texts.count("10") == texts.count("30") == 2
    assert "20" not in texts


def test_logarithmic_axes_have_powers_of_ten():
    rows = [{"panel": "", "series": "ours", "x": 10**k, "y": 0.01 * 10**k} for k in range(4, 8)]
    root = ElementTree.fromstring(chart(rows, log=True).svg())
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert {"10,000", "100,000", "1,000,000", "10,000,000", "100", "1,000"} <= set(texts)
    xs = [float(c.get("cx")) for c in root.iter(f"{SVG}circle")][1:]
    steps = [b - a for a, b in pairwise(xs)]
    assert steps == pytest.approx([steps[0]] * 3, abs=0.2)
