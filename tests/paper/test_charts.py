"""Pictures are records plus a spec."""

import json
import struct
from importlib.resources import files
from xml.etree import ElementTree

import pytest

from annotruth.report import charts

RECORDS = [
    {"panel": panel, "model": model, "x": x, "mean": x, "low": x - 1, "high": x + 1}
    for panel in ("RMSE", "Hellinger distance")
    for model in ("GPM", "observed shares")
    for x in (10, 20, 30)
]
WORDS = {
    "title": "A title & more",
    "subtitle": "a subtitle",
    "x_title": "labels",
    "y_title": "error",
    "x_format": "d",
    "places": [10, 20, 30],
}


@pytest.fixture(scope="module")
def spec():
    return charts.filled("two-panels", RECORDS, WORDS)


def test_every_word_of_the_spec_is_filled_in(spec):
    assert spec["title"]["text"] == "A title & more"
    assert spec["data"]["values"] == RECORDS
    left = {key: value for key, value in spec.items() if key not in ("$schema", "data")}
    assert '"$' not in json.dumps(left)


def test_png_is_a_png_of_a_readable_size(spec):
    picture = charts.png(spec)
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", picture[16:24])
    assert 1300 <= width <= 1600
    assert 600 <= height <= 1000


def test_svg_is_xml_with_the_words_and_both_models(spec):
    root = ElementTree.fromstring(charts.svg(spec))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    said = " ".join(root.itertext())
    for word in ("A title & more", "labels", "error", "GPM", "observed shares", "RMSE"):
        assert word in said


def test_specs_are_json():
    for spec in files("annotruth.report").joinpath("specs").iterdir():
        assert json.loads(spec.read_text())["$schema"].endswith("v5.json")
