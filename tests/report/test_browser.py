"""The report in a browser."""

import csv
import io
import re

import pytest

import annotruth as at
from annotruth.report.page import report_page

expect = pytest.importorskip("playwright.sync_api").expect

SOURCES = {"face": ("nominal", "gpm"), "web": ("ordinal", "robust-gpm"), "ftv": ("ordinal", "mean")}


@pytest.fixture
def report(tmp_path):
    def report(fit, name="report.html"):
        fit.report(tmp_path / name, source=name)
        return tmp_path / name

    return report


def check_no_messages(reader, path):
    assert reader.messages == []
    assert [url for url in reader.requests if not url.startswith("data:")] == [path.as_uri()]


@pytest.mark.parametrize("name", SOURCES)
def test_real_labels_are_sorted_filtered_and_searched(name, datasets, report, read):
    scale, model = SOURCES[name]
    fit = at.fit(datasets / name / "labels.csv", model, scale=scale)
    path = report(fit)
    reader = read(path)

    items = [int(text.replace(",", "")) for text in reader.column("items", "Labels")]
    assert items
    reader.head("items", "Labels").get_by_role("button").click()
    assert reader.head("items", "Labels").get_attribute("aria-sort") == "descending"
    assert reader.column("items", "Labels")[0] == f"{fit.data.labels_per_item.max():,}"
    reader.head("items", "Labels").get_by_role("button").click()
    assert reader.head("items", "Labels").get_attribute("aria-sort") == "ascending"
    assert reader.column("items", "Labels")[0] == f"{fit.data.labels_per_item.min():,}"

    everybody = reader.count("annotators")
    who = max((str(one) for one in fit.data.annotators.to_pylist()), key=len)
    reader.table("annotators").get_by_role("searchbox").fill(who)
    expect(reader.table("annotators").locator("output")).not_to_have_text(everybody)
    found = reader.column("annotators", "Annotator")
    assert who in found
    assert all(who in one for one in found)

    reader.table("items").locator("label", has_text="Status").locator("select").select_option(
        "needs no more labels"
    )
    assert set(reader.column("items", "Status")) == {"needs no more labels"}
    check_no_messages(reader, path)


def test_a_hundred_thousand_items_open_quickly(report, read):
    made = at.simulate.crowd(
        n_items=100_000, n_annotators=2_000, labels_per_item=5, behavior="mixed", seed=2
    )
    # Two iterations: how good the fit is does not matter here.
    path = report(at.fit(made.labels, at.GPM(tol=1e12)))
    assert path.stat().st_size < 6_000_000

    painted = []
    for _ in range(3):
        reader = read(path)
        painted.append(
            reader.page.evaluate(
                "Math.max(performance.getEntriesByName('first-contentful-paint')[0].startTime,"
                " performance.getEntriesByName('ready')[0].startTime)"
            )
        )
    assert min(painted) < 2_000  # milliseconds; other work on the machine only adds

    assert reader.count("items") == "100,000 of 100,000"
    assert reader.rows("items").count() < 40
    reader.head("items", "Labels").get_by_role("button").click()
    reader.head("items", "Item").get_by_role("button").click()
    assert reader.column("items", "Item")[0] == "1"
    reader.table("items").locator(".view").evaluate("view => view.scrollTo(0, 1e9)")
    reader.page.wait_for_selector("[data-table=items] tr[aria-rowindex='100001']")
    assert reader.column("items", "Item")[-1] == "100000"
    assert reader.rows("items").count() < 40
    reader.table("items").get_by_role("searchbox").fill("99999")
    expect(reader.table("items").locator("output")).to_have_text("1 of 100,000")
    check_no_messages(reader, path)


def test_hostile_ids_stay_text(hostile, hostile_ids, report, read):
    path = report(hostile)
    reader = read(path)
    shown = set(reader.column("annotators", "Annotator"))
    assert set(hostile_ids[:3]) <= shown
    reader.rows("items").first.locator("button").click()
    assert reader.page.locator("dialog h2").inner_text() in {
        " ".join(f"{hostile_ids[e % 6]}{e}".split()) for e in range(12)
    }
    assert reader.page.locator("script").count() == 2
    assert reader.page.locator("main img, dialog img, [onerror]").count() == 0
    check_no_messages(reader, path)


def test_a_row_opens_in_full_and_closes_with_escape(crowd, report, read):
    reader = read(report(crowd))
    reader.rows("annotators").first.locator("button").focus()
    reader.page.keyboard.press("Enter")
    dialog = reader.page.locator("dialog")
    assert dialog.is_visible()
    assert "Reliability from" in dialog.inner_text()
    assert dialog.locator("svg rect").count() == 25
    reader.page.keyboard.press("Escape")
    assert not dialog.is_visible()


def test_what_to_do_next_shows_the_rows(crowd, report, read):
    reader = read(report(crowd))
    reader.page.locator("[data-show='annotators|verdict|drop']").click()
    assert set(reader.column("annotators", "Verdict")) == {"drop"}


def test_an_empty_search_result_says_so(crowd, report, read):
    reader = read(report(crowd))
    reader.table("items").get_by_role("searchbox").fill("no such item")
    reader.page.wait_for_selector("[data-table=items] .empty")
    assert "Nothing matches" in reader.table("items").inner_text()
    assert reader.count("items") == "0 of 60"


@pytest.mark.parametrize("kind", ["PNG", "SVG", "CSV"])
def test_charts_are_saved(kind, crowd, report, read):
    reader = read(report(crowd))
    with reader.page.expect_download() as started:
        reader.page.get_by_role("button", name=f"Save reliability as {kind}").click()
    assert started.value.suggested_filename == f"reliability.{kind.lower()}"
    content = started.value.path().read_bytes()
    if kind == "PNG":
        assert content.startswith(b"\x89PNG")
        assert len(content) > 5_000
    elif kind == "SVG":
        assert content.startswith(b"<svg")
        assert b'fill="rgb(43, 95, 143)"' in content  # a file has no style sheet to lean on
        assert content.count(b"<circle") == 20
    else:
        rows = list(csv.DictReader(io.StringIO(content.decode())))
        assert [float(row["reliability"]) for row in rows] == pytest.approx(
            sorted(crowd.reliability), abs=1e-5
        )


def test_tables_are_saved_as_they_are_filtered(crowd, report, read):
    reader = read(report(crowd))
    reader.table("annotators").locator("label", has_text="Spammer").locator("select").select_option(
        "yes"
    )
    with reader.page.expect_download() as started:
        reader.table("annotators").get_by_role("button", name="CSV").click()
    rows = list(csv.DictReader(io.StringIO(started.value.path().read_text())))
    assert len(rows) == crowd.n_spammers
    assert {row["spammer"] for row in rows} == {"yes"}


def test_saved_tables_have_no_formulas(report, read):
    rows = [(item, f"={who}", "@a") for item in ("=1+1", "-5", "'=x") for who in "abc"]
    reader = read(report(at.fit(rows, "gpm")))
    cells = {}
    for name in ("items", "annotators"):
        with reader.page.expect_download() as started:
            reader.table(name).get_by_role("button", name="CSV").click()
        rows = list(csv.reader(io.StringIO(started.value.path().read_text())))
        cells[name] = {cell for row in rows for cell in row}
    assert {"'=1+1", "-5", "''=x", "'@a"} <= cells["items"]
    assert {"'=a", "'=b", "'=c"} <= cells["annotators"]


def test_charts_have_tips(crowd, report, read):
    reader = read(report(crowd))
    reader.page.locator("figure[data-name=items] .wide rect.at-mark").first.hover()
    assert "difficulty (entropy) 0.00 to" in reader.page.locator("#tip").inner_text()


def test_dark_and_light(crowd, report, read):
    ground = "getComputedStyle(document.body).backgroundColor"
    reader = read(report(crowd), dark=True)
    assert reader.page.evaluate(ground) == "rgb(20, 23, 27)"
    reader.page.get_by_role("button", name="Switch between light and dark").click()
    assert reader.page.evaluate(ground) == "rgb(253, 253, 251)"
    reader.page.emulate_media(media="print", color_scheme="dark")
    assert reader.page.evaluate(ground) == "rgb(253, 253, 251)"


@pytest.mark.parametrize("width", [390, 768])
def test_nothing_overflows_on_small_screens(width, hostile, report, read):
    reader = read(report(hostile), width=width)
    assert reader.page.evaluate("document.documentElement.scrollWidth") <= width
    narrow = reader.page.locator("figure .narrow svg").first
    assert narrow.is_visible() == (width == 390)


def test_print_shows_the_first_rows_and_says_how_many_there_are(crowd, report, read):
    reader = read(report(crowd))
    reader.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert reader.rows("items").count() == 30
    assert "The first 30 of 60 rows" in reader.table("items").inner_text()
    reader.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert reader.rows("items").count() < 30


def test_items_that_do_not_fit_are_left_out_with_a_note(tmp_path, crowd, read):
    path = tmp_path / "small.html"
    (packed,) = re.findall(r'id="data">([^<]*)<', report_page(crowd))
    path.write_text(report_page(crowd, max_bytes=int(0.9 * len(packed))))
    reader = read(path)
    kept = int(reader.count("items").split(" of ")[0])
    assert 1 <= kept < 60
    assert (
        f"holds the {kept} most difficult of 60 items" in reader.page.locator("#items").inner_text()
    )
    worst = max(crowd.distribution.entropy())
    assert reader.column("items", "Difficulty")[0] == f"{worst:.2f}"


def test_a_comparison_opens_without_errors(tmp_path, hostile_ids, read):
    rows = [(e, s, hostile_ids[(e * s) % 3]) for e in range(8) for s in range(4)]
    path = tmp_path / "models.html"
    at.compare(rows, ["majority", "gpm", "mean"]).report(path, source=hostile_ids[0])
    reader = read(path, width=390, dark=True)
    assert reader.page.locator("h1").inner_text() == hostile_ids[0]
    assert reader.page.locator("figure").first.get_by_role("button", name="CSV").is_visible()
    check_no_messages(reader, path)
