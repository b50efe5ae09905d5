"""What helps to read the page: headings, names of tables, the bar at the top, names that are cut."""

from itertools import pairwise

import pytest

import annotruth as at

expect = pytest.importorskip("playwright.sync_api").expect


@pytest.fixture
def report(tmp_path):
    def report(fit):
        fit.report(tmp_path / "report.html")
        return tmp_path / "report.html"

    return report


def test_headings_are_in_order_and_tables_have_names(crowd, report, read):
    page = read(report(crowd)).page
    levels = [int(tag[1]) for tag in page.locator("main :is(h1, h2, h3, h4)").evaluate_all(
        "all => all.map(each => each.tagName)"
    )]  # fmt: skip
    assert levels[0] == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))
    unnamed = "all => all.filter(t => !t.ariaLabel && !t.caption?.textContent).length"
    assert page.locator("main table").evaluate_all(unnamed) == 0


def test_the_bar_says_where_one_is(crowd, report, read):
    page = read(report(crowd)).page
    name, here = page.locator(".top .name"), page.locator(".top nav [aria-current]")
    expect(here).to_have_text("Verdict")
    expect(name).to_be_hidden()
    page.locator("#items").scroll_into_view_if_needed()
    page.get_by_role("link", name="Items", exact=True).click()
    expect(here).to_have_text("Items")
    expect(name).to_have_text("Labels")


def test_cut_names_differ_and_have_their_whole_text(report, read):
    names = [f"very-long-prefix-of-a-worker-{k:03}" for k in range(3)]
    rows = [(e, name, (e + k) % 2) for e in range(9) for k, name in enumerate(names)]
    reader = read(report(at.fit(rows, "gpm")))
    buttons = reader.rows("annotators").locator("button.open").all()
    assert {each.text_content() for each in buttons} == set(names)
    assert {each.get_attribute("data-tip") for each in buttons} == set(names)
    ends = "button => [...button.childNodes].at(-1).textContent"
    assert {each.evaluate(ends) for each in buttons} == {name[-6:] for name in names}
    assert all(
        each.evaluate(
            "b => b.scrollWidth <= b.clientWidth && b.firstChild.scrollWidth > b.firstChild.clientWidth"
        )
        for each in buttons
    )  # the beginning is cut, not the end


def test_a_cut_name_on_the_first_screen_has_its_whole_as_a_tip(report):
    name = f"{'<b>worker-of-the-crowd-' * 3}007"
    fit = at.fit(
        [(name, who, k) for k, who in enumerate("abc")] + [("b", "a", 0), ("b", "b", 0)], "gpm"
    )
    page = report(fit).read_text()
    cut = f"{name[:26]}…{name[-13:]}".replace("<", "&lt;").replace(">", "&gt;")
    whole = name.replace("<", "&lt;").replace(">", "&gt;")
    assert f'<b data-tip="{whole}">{cut}</b>' in page
