"""The first screen of the report: its numbers, what it says, and that no count contradicts another."""

import re
from dataclasses import replace
from datetime import date
from html import unescape

import numpy as np
import pytest

import annotruth as at
from annotruth.analyses.advice.advice import advise
from annotruth.models.distribution import Distribution
from annotruth.report.consensus import Consensus
from annotruth.report.page import make_report
from annotruth.report.tables import item_table
from annotruth.report.verdict import MeasuredAccuracy, trust_of

expect = pytest.importorskip("playwright.sync_api").expect


def classes(accuracy, *, n_items=80, n_categories=3, seed=0):
    """Labels of items with one right label, by one annotator per accuracy, and the truths."""
    rng = np.random.default_rng(seed)
    names = "abcdefgh"[:n_categories]
    truth = rng.integers(n_categories, size=n_items)
    rows = []
    for s, p in enumerate(accuracy):
        wrong = (truth + rng.integers(1, n_categories, size=n_items)) % n_categories
        given = np.where(rng.random(n_items) < p, truth, wrong)
        rows += [(f"item {e}", f"person {s}", names[given[e]]) for e in range(n_items)]
    return rows, {f"item {e}": names[k] for e, k in enumerate(truth)}


def crowds():
    good, truth = classes([0.95] * 7)
    spammers, _ = classes([0.95] * 4 + [1 / 3] * 6)
    chance, _ = classes([1 / 3] * 8)
    rows, _ = classes([0.9] * 5)
    ordinal = at.simulate.crowd(n_items=60, n_annotators=20, seed=1).labels
    return {
        "good": at.fit(good),
        "mostly spammers": at.fit(spammers),
        "chance": at.fit(chance),
        "few labels": at.fit([row for row in good if row[0] in ("item 0", "item 1")]),
        "ordinal": at.fit(ordinal),
        "ordinal, without intervals": at.fit(ordinal, "gpm"),
        "without reliability": at.fit(rows, "majority"),
        "cannot tell spam": at.fit(spammers, "dawid-skene"),
        "scores": at.fit(ordinal, "mean"),
        "one annotator": at.fit([row for row in good if row[1] == "person 0"]),
        "one label per item": at.fit([(e, e % 3, "ab"[e % 2]) for e in range(30)]),
        "one category": at.fit([(e, s, "yes") for e in range(9) for s in range(9)]),
        "all known": at.fit(good, gold=truth),
    }


@pytest.fixture(scope="module")
def fits():
    return crowds()


@pytest.mark.parametrize(
    ("name", "word", "says"),
    [
        ("good", "Yes", "More than 99% of the recovered labels are expected to be right"),
        ("mostly spammers", "Yes", "expected to be right"),
        ("chance", "No better than chance", "next to nothing"),
        ("few labels", "Too few labels to tell", "whether they agree better than chance"),
        ("ordinal", "Mostly", "13% of the scale from 1 to 5"),
        ("ordinal, without intervals", "Mostly", "Hellinger distance"),
        ("without reliability", "Yes", "Hellinger distance"),
        ("cannot tell spam", "Yes", "expected to be right"),
        ("scores", "Mostly", "Scores are known to within"),
        ("one annotator", "Too few labels to tell", "All labels are by one annotator"),
        ("one label per item", "Too few labels to tell", "No item has two labels"),
        ("one category", "All equal", "nothing can be compared"),
        ("all known", "Known", "truth of every item was given"),
    ],
)
def test_whether_labels_can_be_trusted(name, word, says, fits):
    trust = trust_of(fits[name], advise(fits[name]))
    assert trust.word == word
    assert says in trust.sentence


@pytest.mark.parametrize(
    ("share", "word"), [(0.91, "Yes"), (0.8, "Mostly"), (0.6, "Partly"), (0.4, "No")]
)
def test_measured_accuracy_takes_the_place_of_the_expected_one(share, word):
    fit = at.fit(classes([0.9] * 5)[0], "dawid-skene")
    measured = MeasuredAccuracy("Measured.", 50, share)
    trust = trust_of(fit, advise(fit), measured)
    assert trust.word == word
    assert trust.sentence.startswith("Measured. ")
    assert "where the truth is known: yes from 90%, mostly from 75%, partly from 50%" in trust.rule
    few = trust_of(fit, advise(fit), measured._replace(n_items=49))
    assert few.word == "Yes"
    assert few.rule.startswith("The expected share")


def test_labels_of_chance_are_recognised_for_models_that_do_not_test_it():
    fit = at.fit(classes([1 / 3] * 8)[0], "majority")
    trust = trust_of(fit, advise(fit))
    assert trust.word == "No better than chance"
    assert "an alpha below 0.05 counts as such" in trust.rule


def test_the_numbers_are_those_of_the_advice(fits):
    fit = fits["mostly spammers"]
    advice, shown = advise(fit), first_screen(make_report(fit).html())
    assert advice.of_annotators.count() == {"keep": 4, "drop": 6, "unsure": 0, "too few labels": 0}
    assert advice.n_add == 67
    assert "4 of 10 6 to drop" in shown
    assert "67 labels in this round, 8% more than the 800 so far; from 4 annotators" in shown
    alpha = at.coefficients.krippendorff_alpha(fit.data)
    assert f"Agreement {alpha:.2f} Krippendorff's alpha (nominal)" in shown
    same, by_chance = at.coefficients.pair_agreement(fit.data)
    assert f"{100 * (same - by_chance):+.0f} points two labels of an item are equal" in shown
    kappa = (same - by_chance) / (1 - by_chance)
    assert kappa == pytest.approx(at.coefficients.fleiss_kappa(fit.data))
    ((removed, first),) = re.findall(
        r"would remove about ([0-9]+)% of the uncertainty; a quarter of them \(16\), where they gain"
        " most, ([0-9]+)%",
        shown,
    )
    assert 0 < int(first) < int(removed) < 100


def test_removed_uncertainty_is_what_the_first_labels_gain():
    fit = at.fit(classes([0.7] * 4)[0])
    items = advise(fit).of_items
    from annotruth.analyses.advice.items import share_removed

    one = items.needs_labels.astype(np.int64)
    gained = (items.gain * one).sum() / items.uncertainty.sum()
    assert share_removed(one, items) == pytest.approx(gained, rel=1e-6)
    assert share_removed(0 * one, items) == 0


def first_screen(page):
    """The text of the first screen."""
    (text,) = re.findall(r'<section id="verdict".*?</section>', page, flags=re.DOTALL)
    return unescape(re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", text)))


def counts_of(page, section):
    """The counts beside the chart of a section, by their names."""
    (text,) = re.findall(rf'<section id="{section}".*?</section>', page, flags=re.DOTALL)
    return {
        name.lower(): int(count.replace(",", ""))
        for name, count in re.findall(r"<dt>([^<]*)</dt><dd>([0-9,]+)<", text)
    }


def test_no_count_contradicts_another(fits):
    for name, fit in fits.items():
        page, advice = make_report(fit).html(), advise(fit)
        people, items = advice.of_annotators.count(), advice.of_items.count()
        shown = first_screen(page)
        assert counts_of(page, "annotators").items() <= people.items(), name
        assert counts_of(page, "items").items() <= items.items(), name
        if name == "chance":  # the first screen has no counts then
            continue
        assert f"{people['keep']} of {fit.data.n_annotators}" in shown
        dropped = re.findall(r"([0-9]+) to drop, with", shown)
        assert [int(n) for n in dropped] == [people["drop"]] * bool(people["drop"]), name
        few = re.findall(r"([0-9]+) with too few labels to tell", shown)
        assert {int(n) for n in few} == {people["too few labels"]} - {0}, name
        need = re.findall(r"([0-9]+) of [0-9]+ need labels", shown)
        assert [int(n) for n in need] == [items["needs labels"]] * bool(items["needs labels"]), name
        added = re.findall(r"([0-9,]+) labels? in this round", shown)
        assert [int(n.replace(",", "")) for n in added] == [advice.n_add] * bool(advice.n_add), name
        assert "spammers" not in unescape(re.sub("<[^>]*>", " ", page.split("<script")[0]))


def test_the_dropped_come_with_what_they_do(fits):
    fit = fits["mostly spammers"]
    shown = first_screen(make_report(fit).html())
    worst = int(np.argmin(fit.accuracy))
    about = f"person {worst} {fit.behavior[worst]}, accuracy {fit.accuracy[worst]:.2f}"
    assert f"6 to drop, with 60% of the labels {about}" in shown
    assert shown.index("Can these labels be trusted?") < shown.index("Whom to act on?")
    assert shown.index("Which items to relabel?") < shown.index("What would it cost?")


def test_nobody_is_dropped_by_models_that_cannot_tell_spam(fits):
    page = first_screen(make_report(fits["cannot tell spam"]).html())
    assert "Nobody to drop: dawid-skene cannot tell spam from mistakes." in page
    good = first_screen(make_report(fits["good"]).html())
    assert "Nobody to drop: nobody is flagged as careless or consistently wrong." in good
    rows, _ = classes([0.95] * 7)
    by_reliability = first_screen(make_report(at.fit(rows, "gpm")).html())
    assert "Nobody to drop: all 7 annotators are reliable." in by_reliability
    assert "Nobody to drop or to ask: labels agree no better than chance." in first_screen(
        make_report(fits["chance"]).html()
    )


def test_the_next_command_is_escaped(fits):
    page = make_report(
        fits["mostly spammers"], arguments="'my <labels>.csv' --scale nominal"
    ).html()
    command = "annotruth next 'my <labels>.csv' --scale nominal --assign assignments.csv"
    assert command in first_screen(page)
    assert "annotruth next LABELS --assign" in first_screen(
        make_report(fits["mostly spammers"]).html()
    )


def test_labels_of_chance_do_not_reassure(fits):
    page = make_report(fits["chance"]).html()
    first = first_screen(page)
    assert re.search("Annotators to keep \N{EN DASH} not known", first)
    assert "Which items to relabel? Not known." in first
    assert "Nothing yet: check the task and its instructions before you buy labels." in first
    for reassuring in ("to ask for more", "annotruth next", "need labels", "no more labels"):
        assert reassuring not in first.partition("How this is decided")[0]
    text = unescape(page)
    assert "The median reliability is" not in text
    assert "have a top label above 90%" not in text


def test_contradictions_come_before_all_other_figures(fits):
    fit = fits["good"]
    shares = np.eye(3)[(fit.label + (np.arange(len(fit.label)) % 3 == 0)) % 3]
    wrong = replace(fit, distribution=Distribution.of_dense(shares))
    n_disputed = int(wrong.disputed.sum())
    assert n_disputed > 20
    page = make_report(wrong).html()
    assert "Can these labels be trusted? Check first. Most votes reject the label of 3" in (
        first_screen(page)
    )
    assert "expected to be right" not in first_screen(page).partition("How this")[0]
    counted = f"{n_disputed} disputed: at most one vote in ten supports the label"
    assert counted in first_screen(page)
    assert f"{n_disputed} labels are disputed: at most one vote in ten" in unescape(page)
    for one, hidden in ((wrong, False), (fit, True)):
        columns = item_table(one, Consensus(one), advise(one), 1000).columns
        (column,) = [each for each in columns if each["key"] == "disputed"]
        assert column["hidden"] is hidden
        assert sum(column["values"]) == one.disputed.sum()


def test_the_order_of_the_page(fits):
    page = make_report(fits["mostly spammers"]).html()
    ids = re.findall(r'<section id="(\w+)"', page)
    assert ids == ["verdict", "annotators", "items", "labels", "agreement", "appendix"]
    assert re.findall(r'<a href="#(\w+)">', page) == ids
    appendix = page.index('id="appendix"')
    assert page.index("What was read") > appendix
    assert page.index("How the fit ended") > appendix
    assert 'class="notice"' not in page


def test_the_page_says_file_model_date_and_command(crowd):
    page = make_report(
        crowd, source="a & b.csv", command="annotruth fit 'a & b.csv'", day=date(2026, 3, 1)
    ).html()
    assert "<h1>a &amp; b.csv</h1>" in page
    (under,) = re.findall('<p class="under">(.*?)</p>', page)
    assert under.startswith("gpm · 1 March 2026 · 1,200 labels of 60 items by 20 annotators, ")
    assert " with <code>annotruth fit &#39;a &amp; b.csv&#39;</code>. " in page
    again = make_report(
        crowd, source="a & b.csv", command="annotruth fit 'a & b.csv'", day=date(2026, 3, 1)
    ).html()
    assert again == page


@pytest.mark.parametrize("width", [1440, 390])
def test_the_first_screen_is_one_screen_and_works_by_keyboard(width, fits, tmp_path, read):
    path = tmp_path / "report.html"
    fits["mostly spammers"].report(path, source="labels.csv", command="annotruth fit labels.csv")
    reader = read(path, width=width)
    page = reader.page
    box = page.locator("#verdict").bounding_box()
    assert box["x"] + box["width"] <= width
    if width == 1440:
        assert box["y"] + box["height"] <= 900
    summary = page.locator("#verdict summary")
    page.locator("[data-show='annotators|verdict|drop']").focus()
    for _ in range(10):
        page.keyboard.press("Tab")
        if summary.evaluate("element => element === document.activeElement"):
            break
    page.keyboard.press("Enter")
    expect(page.locator("#verdict details dl")).to_be_visible()
    page.locator("[data-show='annotators|verdict|drop']").focus()
    page.keyboard.press("Enter")
    assert reader.count("annotators") == "6 of 10"
    assert reader.messages == []
    assert [url for url in reader.requests if not url.startswith("data:")] == [path.as_uri()]


def test_one_label_is_reported_in_the_singular():
    page = make_report(at.fit([("a", "ann", "cat")], "majority")).html()
    assert "no item has two labels" in page
    assert "<b>1</b> needs no more labels" in page
    assert "<code>annotruth fit --out DIR</code> writes them in full" in page
