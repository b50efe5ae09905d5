"""Decisions on annotators: kept in the page, and saved for --drop."""

import csv
import io
import json

import pytest

import annotruth as at

expect = pytest.importorskip("playwright.sync_api").expect


@pytest.fixture
def report(tmp_path):
    def report(fit):
        fit.report(tmp_path / "report.html")
        return tmp_path / "report.html"

    return report


def decide(host, name, word):
    select = host.get_by_label(f"Decision on {name}", exact=True)
    select.focus()
    select.select_option(word)


@pytest.mark.parametrize("width", [1440, 390])
def test_decisions_on_annotators_are_saved_for_drop(width, report, read, run, write):
    people = ["=1+1", "<b>ann</b>", "a,b", "zoe"]
    rows = [
        (f"i{e}", who, "cat" if (e + k) % 5 else "dog")
        for e in range(9)
        for k, who in enumerate(people)
    ]
    fit = at.fit(rows, "gpm")
    reader = read(report(fit), width=width)
    table, dialog = reader.table("annotators"), reader.page.locator("dialog")
    button = table.get_by_role("button", name="Decisions")
    expect(button).to_be_hidden()  # there is nothing to save yet
    for name, word in zip(people, ("do not pay", "look", "do not pay", "pay"), strict=True):
        if width == 1440:
            decide(table, name, word)
            expect(table.get_by_label(f"Decision on {name}", exact=True)).to_be_focused()
        else:  # a phone has room for it where a person is opened
            table.get_by_role("button", name=name, exact=True).click()
            decide(dialog, name, word)
            reader.page.keyboard.press("Escape")
    table.get_by_role("button", name="Annotator", exact=True).click()  # sorted again, and kept
    with reader.page.expect_download() as started:
        button.click()
    text = started.value.path().read_text()
    assert started.value.suggested_filename == "decisions.csv"
    assert sorted(csv.reader(io.StringIO(text))) == sorted([
        ["annotator", "decision", "verdict"],
        ["'=1+1", "do not pay", "drop"], ["<b>ann</b>", "look", "unsure"],
        ["a,b", "do not pay", "drop"], ["zoe", "pay", "keep"],
    ])  # fmt: skip
    labels = io.StringIO()
    csv.writer(labels).writerows([("item", "annotator", "label"), *rows])
    words = ["--drop", write("decisions.csv", text), "--json"]
    code, out, _ = run("fit", write("l.csv", labels.getvalue()), *words)
    assert (code, json.loads(out)["n_annotators"]) == (0, 2)
    assert reader.messages == []


def test_decisions_stay_where_the_browser_keeps_them_and_are_not_needed(crowd, report, read):
    path, name = report(crowd), crowd.data.annotators[0]
    reader = read(path)
    decide(reader.table("annotators"), name, "look")
    reader.open(path)
    chosen = reader.table("annotators").get_by_label(f"Decision on {name}", exact=True)
    expect(chosen).to_have_value("2")
    reader.page.add_init_script("delete window.localStorage")
    reader.page.add_init_script(
        "Object.defineProperty(window, 'localStorage', {get() { throw Error('none') }})"
    )
    reader.open(path)
    expect(chosen).to_have_value("0")
    decide(reader.table("annotators"), name, "pay")
    expect(reader.table("annotators").get_by_role("button", name="Decisions (1)")).to_be_visible()
    assert reader.messages == []
