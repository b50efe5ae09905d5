"""The report of a fit of comparisons: its content, and the page in a browser."""

import re

import numpy as np
import pytest
from tests.models.pairs.rank_fits import full_fit, plain_fit

import annotruth as at
from annotruth.report.page import make_report
from annotruth.report.rank_verdict import expected_order, rank_trust, vote_agreement

TWO_PARTS = [("a", "b", "x", "left"), ("a", "b", "y", "left"), ("c", "d", "x", "right")] * 4


@pytest.fixture(scope="module")
def fit():
    return full_fit()


@pytest.fixture
def page(tmp_path):
    def page(fit, **options):
        fit.report(tmp_path / "ranking.html", source="votes.csv", **options)
        return tmp_path / "ranking.html"

    return page


def text_of(html):
    return re.sub(r"<[^>]+>", " ", html.partition('id="data"')[0])


def test_the_first_screen_says_whether_to_trust_who_is_first_and_whom_to_drop(fit):
    text = text_of(make_report(fit, source="votes.csv", arguments="votes.csv --query a").html())
    assert "Can this ranking be trusted?" in text
    assert re.search(
        r"About \d+% of all pairs of items are expected to be in the right order", text
    )
    assert re.search(r"tied for first|Clear first", text)
    n_dropped = fit.verdict_table()["verdict"].to_pylist().count("drop")
    assert re.search(rf"{n_dropped}\s+to drop, with", text)
    assert "annotruth next votes.csv --query a --assign assignments.csv" in text
    assert "annotruth plan votes.csv --query a --target tau=0.9" in text
    assert "annotruth next VOTES --assign" in text_of(make_report(fit).html())
    assert "Covariate length" in text


def test_votes_that_say_little_are_said_first():
    assert "falls into 2 parts" in text_of(make_report(plain_fit(*TWO_PARTS)).html())
    assert "Parts of the graph" in text_of(make_report(plain_fit(*TWO_PARTS)).html())
    alone = rank_trust(plain_fit(("a", "b", "x", "left"), ("b", "a", "x", "left")))
    assert alone.word == "No"
    one = [("a", "b", "x", "left"), ("b", "a", "x", "right"), ("b", "a", "x", "left")]
    assert rank_trust(plain_fit(*one)).word == "Too few annotators to tell"


def test_a_ranking_with_accuracies_shows_its_tables(read, page):
    votes = at.simulate.comparers(n_items=12, n_annotators=8, seed=1).comparisons
    fit = at.rank(votes, model="pair-gpm")
    assert "accuracy" in fit.annotator_table().column_names
    assert read(page(fit)).count("annotators") == "8 of 8"


def test_agreement_is_that_of_votes_on_the_same_pair():
    rows = [("a", "b", "x", "left"), ("b", "a", "y", "right"), ("a", "b", "z", "right")]
    data = plain_fit(*rows).data
    # Of the three pairs of votes, one agrees: the first two prefer a.
    assert vote_agreement(data) == (pytest.approx(1 / 3), 0.5)
    assert np.isnan(vote_agreement(plain_fit(("a", "b", "x", "left")).data)[0])


def test_the_expected_order_is_that_of_the_posterior(fit):
    rng = np.random.default_rng(0)
    draws = rng.multivariate_normal(fit.scores.mean, fit.scores.covariance, 4000)
    i, j = np.triu_indices(12, 1)
    order = np.sign(fit.scores.mean[i] - fit.scores.mean[j])
    share = np.mean(np.sign(draws[:, i] - draws[:, j]) == order)
    assert expected_order(fit) == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (390, True)])
def test_the_page_works_offline_without_messages(fit, page, read, width, dark):
    path = page(fit)
    reader = read(path, width=width, dark=dark)
    for table in ("items", "annotators", "votes", "pairs"):
        assert reader.rows(table).count() > 0, table
    assert reader.page.evaluate("document.documentElement.scrollWidth") <= width
    assert reader.messages == []
    assert [url for url in reader.requests if not url.startswith("data:")] == [path.as_uri()]


def test_tables_are_sorted_and_rows_open_with_keyboard(fit, page, read):
    reader = read(page(fit))
    assert [text.split()[-1] for text in reader.column("items", "Rank")][:3] == ["1", "2", "3"]
    values = [float(text.split()[-1]) for text in reader.column("annotators", "Reliability")]
    assert values == sorted(values)
    reader.table("items").locator(".open").first.focus()
    reader.page.keyboard.press("Enter")
    dialog = reader.page.locator("dialog")
    dialog.get_by_text("Against whom, best first").wait_for()
    won = [int(text) for text in dialog.locator("tbody tr td:nth-child(4)").all_inner_texts()]
    best = fit.item_table()["item"].to_pylist()[0]
    rows = fit.comparison_table().to_pylist()
    expected = sum(row[row["outcome"]] == best for row in rows if row["outcome"] != "tie")
    assert sum(won) == expected
    reader.page.keyboard.press("Escape")
    reader.table("pairs").locator(".open").first.click()
    dialog.get_by_text("Against whom, best first").wait_for()
    reader.page.keyboard.press("Escape")
    reader.table("votes").locator(".open").first.click()
    dialog.get_by_text("Comparisons, the most doubtful first").wait_for()
    assert reader.messages == []


def test_hostile_ids_do_not_run(hostile_ids, page, read):
    rows = [
        (a, b, s, "left") for a in hostile_ids for b in hostile_ids if a != b for s in hostile_ids
    ]
    reader = read(page(plain_fit(*rows)))
    reader.table("items").locator(".open").first.click()
    assert reader.messages == []
    assert reader.page.evaluate("document.querySelectorAll('img').length") == 0


def test_known_grades_have_a_section(fit):
    grades = dict(zip(fit.data.items.to_pylist(), range(12), strict=True))
    text = text_of(make_report(fit, truth=grades).html())
    assert f"{at.evaluate(fit, grades)['concordance']:.3f}" in text


def test_many_items_have_a_matrix_of_the_first_forty():
    fit = full_fit(n_items=70, n_annotators=30, comparisons_per_annotator=40)
    chart = fit.plot.wins()
    assert "The first 40 of 70 items" in chart.caption
    assert len(set(chart.data["item"]) | set(chart.data["other"])) <= 40
    assert ">40</text>" in chart.inline()
    few = full_fit(n_items=60, n_annotators=30, comparisons_per_annotator=40).plot.wins()
    assert ">59</text>" in few.inline()


def test_the_matrix_counts_wins_on_either_side():
    rows = [("a", "b", "x", "left"), ("b", "a", "y", "right"), ("b", "a", "z", "left")]
    data = plain_fit(*rows, ("a", "b", "w", "tie")).plot.wins().data
    assert (data["wins"], data["losses"], data["ties"]) == ([2], [1], [1])


def test_winners_who_always_come_first_in_a_file_are_no_reason_for_distrust():
    rows = [("a", "b", f"p{s}", "left") for s in range(9)] * 3 + [("a", "c", "p1", "left")]
    trust = rank_trust(plain_fit(*rows, sides_known=False))
    assert (trust.word, "right order" in trust.sentence) == ("Mostly", True)
    assert rank_trust(plain_fit(*rows)).sentence.startswith("Everybody always chose the left")
