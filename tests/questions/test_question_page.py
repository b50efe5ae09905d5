"""The report on several questions."""

import re

import pyarrow as pa
from tests.report.conftest import read  # noqa: F401 - a fixture

import annotruth as at


def test_the_report_has_a_section_per_question(tmp_path, fits):
    path = tmp_path / "report.html"
    fits.report(path, source="votes.csv", command="annotruth fit votes.csv --question all")
    page = path.read_text()
    assert re.findall(r'<section id="([^"]+)"', page) == ["overview", "annotators", "q1", "q2"]
    assert '<a href="#q2">q2</a>' in page
    assert "gpm takes no annotator prior" in page


def test_known_truths_are_measured_in_their_question(tmp_path, fits, simulation):
    truth = [
        {"question": "q1", "item": item + 1, "label": f"c{label + 1}"}
        for item, label in enumerate(simulation.questions["q1"].label)
    ]
    fits.report(tmp_path / "r.html", truth=pa.Table.from_pylist(truth))
    page = (tmp_path / "r.html").read_text()
    first, second = (
        page.split(f'<section id="{name}"')[1].partition("</section>")[0] for name in ("q1", "q2")
    )
    accuracy = at.evaluate(fits["q1"], {row["item"]: row["label"] for row in truth})["accuracy"]
    assert (
        f"On 40 items with known truth, {accuracy:.1%} of the recovered labels are right" in first
    )
    assert "known truth" not in second


def test_the_page_shows_annotators_across_questions(read, tmp_path, fits, hostile):  # noqa: F811
    fits.report(tmp_path / "r.html")
    page = read(tmp_path / "r.html")
    assert page.column("annotators", "Annotator")
    means = [float(text) for text in page.column("annotators", "Mean")]
    assert means == sorted(means)
    assert page.messages == []
    hostile.report(tmp_path / "h.html")
    page = read(tmp_path / "h.html")
    assert page.messages == []
    assert not [url for url in page.requests if not url.startswith(("file:", "data:"))]
