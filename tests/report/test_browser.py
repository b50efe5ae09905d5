"""The report in a browser."""

import csv
import io
import re

import numpy as np
import pytest
from tests.keyboard import walk

import annotruth as at
from annotruth.report.page import make_report

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
    expect(reader.page.locator("dialog")).to_be_visible()
    assert reader.page.locator("dialog h2").inner_text() in {
        " ".join(f"{hostile_ids[e % 6]}{e}".split()) for e in range(12)
    }
    assert reader.page.locator("script").count() == 2
    assert reader.page.locator("main img, dialog img, [onerror]").count() == 0
    check_no_messages(reader, path)


def test_a_row_opens_in_full_and_closes_with_escape(crowd, report, read):
    reader = read(report(crowd))
    opener = reader.rows("annotators").first.locator("button")
    opener.focus()
    reader.page.keyboard.press("Enter")
    dialog = reader.page.locator("dialog")
    expect(dialog).to_be_visible()
    assert "Behavior" in dialog.inner_text()
    confusion = dialog.locator("svg[aria-label^='labels given']")
    assert confusion.locator("rect").count() == 25
    counts = [int(text) for text in confusion.locator(".at-count").all_text_contents()]
    assert sum(counts) == 60
    reader.page.keyboard.press("Escape")
    assert not dialog.is_visible()
    expect(opener).to_be_focused()


def test_an_item_is_read_with_the_keyboard_alone(crowd, report, read):
    path = report(crowd)
    reader = read(path)
    first, second = reader.column("items", "Item")[:2]
    opener = reader.rows("items").first.locator("button")
    opener.focus()
    reader.page.keyboard.press("Enter")
    dialog, title = reader.page.locator("dialog"), reader.page.locator("dialog h2")
    expect(title).to_have_text(first)
    expect(title).to_be_focused()
    reader.page.keyboard.press("ArrowRight")
    expect(title).to_have_text(second)
    reader.page.keyboard.press("ArrowLeft")
    expect(title).to_have_text(first)
    reader.page.keyboard.press("ArrowLeft")  # there is none before it
    expect(title).to_have_text(first)
    dialog.get_by_role("button", name="Next").focus()
    reader.page.keyboard.press("Enter")
    expect(title).to_have_text(second)

    who = dialog.locator(".votes button").first
    name = who.inner_text()
    who.focus()
    reader.page.keyboard.press("Enter")
    expect(dialog.locator(".over")).to_have_text("Annotator")
    expect(title).to_have_text(name)
    expect(title).to_be_focused()
    dialog.get_by_role("button", name="Back").focus()
    reader.page.keyboard.press("Enter")
    expect(title).to_have_text(second)
    reader.page.keyboard.press("Escape")
    expect(dialog).not_to_be_visible()
    expect(opener).to_be_focused()
    check_no_messages(reader, path)


@pytest.mark.parametrize(("width", "key"), [(1440, "Tab"), (1440, "Shift+Tab"), (390, "Tab")])
def test_everything_is_reached_with_the_tab_key_alone(crowd, report, read, width, key):
    reader = read(report(crowd), width=width)
    data = crowd.data
    walked = walk(reader.page, data.n_items + data.n_annotators + data.n_labels, key=key)
    assert walked.problems() == []
    # Rows come and go as the table scrolls. From below, the last one that is drawn comes first.
    assert len(reader.rows("items").all()) < data.n_items
    if key == "Tab":
        names = [each["name"] for each in walked.focused if each["place"] is None]
        assert {str(item) for item in data.items.to_pylist()} <= set(names)


def test_rows_can_be_skipped(crowd, report, read):
    reader = read(report(crowd))
    table = reader.table("items")
    table.get_by_role("link", name="Skip the rows").focus()
    reader.page.keyboard.press("Enter")
    reader.page.keyboard.press("Tab")
    focused = "(table) => table.compareDocumentPosition(document.activeElement)"
    assert table.evaluate(focused) == 4  # Node.DOCUMENT_POSITION_FOLLOWING


def votes_shown(reader):
    """The rows of the table of an item's labels: annotator, label and the numbers."""
    rows = reader.page.locator("dialog .votes tbody tr").all()
    return [[cell.inner_text() for cell in row.locator("td").all()] for row in rows]


def search_and_open(reader, item):
    reader.table("items").get_by_role("searchbox").fill(item)
    expect(reader.rows("items")).to_have_count(1)
    reader.rows("items").first.locator("button").click()
    expect(reader.page.locator("dialog h2")).to_have_text(item)


def given(number, truth, who):
    """A and b are wrong on every tenth item, c and d on every third, each on others."""
    wrong = number % 10 == "ab".find(who) or number % 3 == "cd".find(who)
    return {"cat": "dog", "dog": "cat"}[truth] if wrong else truth


# Item "odd" has two labels for each category: those for "dog" are by reliable annotators.
TIED = [
    *((f"{e}{kind}", s, given(e, kind, s)) for e in range(30) for kind in ("cat", "dog") for s in "abcd"),
    *(("odd", who, "dog" if who in "ab" else "cat") for who in "abcd"),
]  # fmt: skip


@pytest.mark.parametrize("model", ["one-coin", "robust-gpm", "gpm", "majority"])
def test_an_item_shows_who_said_what_and_why(model, report, read):
    fit = at.fit(TIED, model, scale="nominal")
    reader = read(report(fit))
    search_and_open(reader, "odd")
    shown = votes_shown(reader)
    assert {(row[0], row[1]) for row in shown} == {(w, l) for i, w, l in TIED if i == "odd"}
    why = reader.page.locator("dialog .why").inner_text()
    label = fit.data.scale.names[fit.label[-1]]
    other = {"cat": "dog", "dog": "cat"}[label]
    assert why.startswith(f"{label} and {other} each have 2 labels.")
    if fit.reliability is not None:
        estimate = fit.reliability if fit.accuracy is None else fit.accuracy
        estimate = dict(zip(fit.data.annotators.to_pylist(), estimate, strict=True))
        assert [float(row[2]) for row in shown] == pytest.approx(
            [estimate[row[0]] for row in shown], abs=0.006
        )
    if model == "one-coin":
        assert label == "dog"
        p = fit.distribution.dense(2)[-1]
        odds = p.max() / p.min()
        factors = [float(text.split()[0]) ** (1 if " more " in text else -1) for *_, text in shown]
        prior = fit.parameters["prior"][1] / fit.parameters["prior"][0]
        # Each factor is shown in two digits.
        assert prior * np.prod(factors) == pytest.approx(odds, rel=0.2)
        reliable = sorted((estimate[who] for who in "ab"), reverse=True)
        assert " and ".join(f"{one:.2f}" for one in reliable) + ", those for cat from" in why
        assert why.endswith("for dog.")
    elif model == "gpm":
        assert "Labels count by p serious" in why
    elif model == "majority":
        assert "Every label counts as one vote, so this is a tie." in why


def test_the_runner_up_of_web_item_983_is_explained(datasets, report, read):
    fit = at.fit(datasets / "web" / "labels.csv")
    reader = read(report(fit))
    reader.table("items").get_by_role("searchbox").fill("983")
    expect(reader.rows("items")).to_have_count(2)
    reader.rows("items").filter(has=reader.page.get_by_text("983", exact=True)).locator(
        "button"
    ).click()
    assert reader.page.locator("dialog .why").inner_text() == (
        "3 and 4 each have 2 labels. Those for 3 come from annotators with accuracy 0.65 and "
        "0.59, those for 4 from 0.60 and 0.36: odds 1.3 to 1 for 3. 1 has 2 labels, from annotators "
        "with accuracy 0.47 and 0.36, and 16%. 2 has 30%, but nobody gave it."
    )


def test_doubtful_labels_are_listed_by_person(crowd, report, read):
    path = report(crowd)
    reader = read(path)
    advice = crowd.keep()
    dropped = set(advice["annotator"][advice["verdict"] == "drop"].astype(str))
    named = reader.column("labels", "Annotator")
    assert named
    assert not dropped & set(named)
    doubtful = [int(text) for text in reader.column("labels", "Doubtful")]
    assert doubtful == sorted(doubtful, reverse=True)
    reader.rows("labels").first.locator("button").click()
    expect(reader.page.locator("dialog h2")).to_have_text(named[0])
    listed = votes_shown(reader)
    assert len(listed) == 14
    assert [row[-1] for row in listed] == sorted(row[-1] for row in listed)
    assert "and 46 more" in reader.page.locator("dialog").inner_text()
    check_no_messages(reader, path)


def test_an_empty_search_result_says_so(crowd, report, read):
    reader = read(report(crowd))
    reader.table("items").get_by_role("searchbox").fill("no such item")
    reader.page.wait_for_selector("[data-table=items] .empty")
    assert "Nothing matches" in reader.table("items").inner_text()
    assert reader.count("items") == "0 of 60"


@pytest.mark.parametrize("kind", ["PNG", "SVG"])
def test_charts_are_saved(kind, crowd, report, read):
    reader = read(report(crowd))
    with reader.page.expect_download() as started:
        reader.page.get_by_role("button", name=f"Save reliability as {kind}").click()
    assert started.value.suggested_filename == f"reliability.{kind.lower()}"
    content = started.value.path().read_bytes()
    if kind == "PNG":
        assert content.startswith(b"\x89PNG")
        assert len(content) > 5_000
    else:
        assert content.startswith(b"<svg")
        assert b'fill="rgb(43, 95, 143)"' in content  # a file has no style sheet to lean on
        assert content.count(b"<circle") == 20


def test_tables_are_saved_as_they_are_filtered(crowd, report, read):
    reader = read(report(crowd))
    reader.table("annotators").locator("label", has_text="Verdict").locator("select").select_option(
        "drop"
    )
    with reader.page.expect_download() as started:
        reader.table("annotators").get_by_role("button", name="CSV").click()
    rows = list(csv.DictReader(io.StringIO(started.value.path().read_text())))
    assert len(rows) == list(crowd.keep()["verdict"]).count("drop")
    assert {row["verdict"] for row in rows} == {"drop"}


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
    assert "difficulty 0% to 5%" in reader.page.locator("#tip").inner_text()


def test_dark_and_light(crowd, report, read):
    ground = "getComputedStyle(document.body).backgroundColor"
    reader = read(report(crowd), dark=True)
    assert reader.page.evaluate(ground) == "rgb(16, 19, 23)"
    reader.page.get_by_role("button", name="Switch between light and dark").click()
    assert reader.page.evaluate(ground) == "rgb(251, 251, 252)"
    reader.page.emulate_media(media="print", color_scheme="dark")
    assert reader.page.evaluate(ground) == "rgb(255, 255, 255)"


@pytest.mark.parametrize("width", [390, 768])
def test_nothing_overflows_on_small_screens(width, hostile, report, read):
    reader = read(report(hostile), width=width)
    assert reader.page.evaluate("document.documentElement.scrollWidth") <= width
    narrow = reader.page.locator("figure .narrow svg").first
    assert narrow.is_visible() == (width == 390)


CUT = "buttons => buttons.filter(b => b.scrollWidth > b.clientWidth).map(b => b.textContent)"
NARROW = {
    "annotators": ["Annotator", "Accuracy", "Verdict"],
    "items": ["Item", "Label", "Score", "Status"],
}


@pytest.mark.parametrize("letter", ["a", "W", "m", "i", "漢"])
def test_long_names_stay_within_charts_and_cells(letter, report, read):
    names = [letter * 40 + str(k) for k in range(3)]
    rows = [(e, name, names[(e + k) % 3]) for e in range(9) for k, name in enumerate(names)]
    page = read(report(at.fit(rows, "gpm"))).page
    outside = page.locator("figure .wide svg text").evaluate_all(
        "texts => texts.filter(each => each.getBBox().x < -1).map(each => each.textContent)"
    )
    assert outside == []
    cell = page.locator("[data-table=items] .cell > span").first
    assert cell.evaluate("each => getComputedStyle(each).textOverflow") == "ellipsis"
    assert cell.evaluate("each => each.clientWidth < each.scrollWidth")


@pytest.mark.parametrize("width", [1366, 1440])
@pytest.mark.parametrize("model", ["robust-gpm", "subject-bias", "ordinal-binary"])
def test_all_columns_fit_on_a_wide_screen(model, width, report, read):
    labels = at.simulate.crowd(n_items=40, n_annotators=12, seed=1).labels
    reader = read(report(at.fit(labels, model)), width=width)
    for name in ("annotators", "items"):
        view = reader.table(name).locator(".view")
        assert view.evaluate("view => view.scrollWidth - view.clientWidth") == 0
        assert reader.table(name).locator("thead button").evaluate_all(CUT) == []


@pytest.mark.parametrize("name", NARROW)
def test_a_phone_shows_the_columns_that_matter(name, report, read):
    labels = at.simulate.crowd(n_items=40, n_annotators=12, seed=1).labels
    reader = read(report(at.fit(labels, "robust-gpm")), width=390)
    heads = reader.table(name).locator("thead button")
    assert heads.all_inner_texts() == NARROW[name]
    assert heads.evaluate_all(CUT) == []
    view = reader.table(name).locator(".view")
    assert view.evaluate("view => view.scrollWidth - view.clientWidth") == 0


def test_paper_shows_the_first_rows_and_no_cut_columns(crowd, report, read):
    reader = read(report(crowd), width=718)  # A4 within its margins
    reader.page.emulate_media(media="print")
    reader.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    for name in ("annotators", "items", "labels"):
        grid = reader.table(name).locator("table")
        assert grid.evaluate("grid => grid.getBoundingClientRect().right") <= 718
        assert reader.table(name).locator("thead th").evaluate_all(CUT) == []
        assert reader.table(name).locator("thead button").count() == 0  # nothing to press on paper
    heads = reader.table("items").locator("thead th").all_inner_texts()
    assert {"Item", "Label", "Score", "Status"} <= set(heads)
    assert reader.rows("items").count() == 30
    assert "The first 30 of 60 rows" in reader.table("items").inner_text()
    reader.page.emulate_media(media="screen")
    reader.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert reader.rows("items").count() < 30


def test_an_open_item_is_printed_alone(crowd, report, read):
    reader = read(report(crowd))
    reader.rows("items").first.locator("button").click()
    expect(reader.page.locator("dialog")).to_be_visible()
    reader.page.emulate_media(media="print")
    assert reader.page.locator("dialog .votes").is_visible()
    assert not reader.page.locator("main").is_visible()


def test_items_that_do_not_fit_are_left_out_with_a_note(tmp_path, crowd, read):
    path = tmp_path / "small.html"
    (packed,) = re.findall(r'id="data">([^<]*)<', make_report(crowd).html())
    path.write_text(make_report(crowd, max_bytes=int(0.9 * len(packed.split("\n")[0]))).html())
    reader = read(path)
    kept = int(reader.count("items").split(" of ")[0])
    assert 1 <= kept < 60
    assert (
        f"holds the {kept} most difficult of 60 items" in reader.page.locator("#items").inner_text()
    )
    worst = max(crowd.distribution.entropy()) / np.log(5)
    assert reader.column("items", "Difficulty")[0] == f"{worst:.0%}"
