"""Pages as text: what they say, how tables are sorted and paged, and that nothing is run."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.models.distribution import Distribution
from annotruth.serve.pages import lists, settings
from annotruth.serve.pages.details import annotator_page, content_sources, item_page
from annotruth.serve.pages.frame import SCRIPT, Frame, login_page, static_file, static_path
from annotruth.serve.pages.overview import overview_page, thinned_snapshots
from annotruth.serve.pages.tables import ROWS_PER_PAGE, LabelSnapshotTables, TableQuery, chosen_rows
from annotruth.serve.store.tables import (
    Alert,
    AnnotatorHistory,
    ContentRow,
    GoldRow,
    HourlyCount,
    Lease,
    StoredEvent,
    TraitRow,
    WorkerState,
)
from annotruth.serve.web.results import LoadedSnapshot
from annotruth.serve.web.work_queue import LabelTask

ADDRESSES = re.compile(r"(/(?!/)|#|data:,$)")


class Checker(HTMLParser):
    """Collects the elements and texts of a page."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.texts, self.open = [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


def check_safe(page):
    """Check that a page has no inline script or style and links to this server alone."""
    checker = Checker(page)
    for tag, attributes in checker.elements:
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
        assert "style" not in attributes, (tag, attributes)
        if tag == "script":
            assert attributes["src"] == static_path(SCRIPT)
        for name in ("href", "src", "action"):
            if name in attributes and attributes.get("target") != "_blank":
                assert ADDRESSES.match(attributes[name]), (tag, attributes)
    assert not [tag for tag, _ in checker.elements if tag in ("style", "iframe", "object", "img")]
    return checker


def column(page, name):
    """Return the texts of the first column of a table of a page."""
    table = page.split(f'aria-label="{name}"')[1].split("</table>")[0]
    return [
        " ".join(Checker(row).texts)
        for row in re.findall(r'<th scope="row".*?</th>', table, re.DOTALL)
    ]


def event_of(item, annotator, label, now, seq=1, **more):
    fields = {"started": now - timedelta(seconds=5), "submitted": now, "deleted": False} | more
    ids = f"e{seq}", f"a{seq}"
    return StoredEvent(seq, 1, "api", *ids, item, "", annotator, label, received=now, **fields)


def verdict_of(annotator, now, version=1, verdict="drop"):
    estimate = 5, 0.3, 0.2, 0.4, "random"
    return AnnotatorHistory(
        1, annotator, version, now + timedelta(hours=version), *estimate, verdict
    )


def test_the_overview_shows_figures_charts_and_what_to_do(visit, snapshots, now):
    rows = [HourlyCount(1, now + timedelta(hours=k), 10 * k) for k in range(5)]
    rows.append(WorkerState(1, error="all labels are <equal>"))
    rows.append(Alert(1, 1, now, "agreement", "", "agreement fell by 9%", {}))
    page = overview_page(visit(None, *snapshots, *rows, verdict_of("ann & bob", now)))
    text = check_safe(page).text
    for words in (
        *("1,200", "12 of 40", "0.62", "2 spammers", "12.50", "0.5 per label", "77 labels to go"),
        *("5 Apr 2027", "agreement fell by 9%", "62 per hour on average, last 24 hours"),
        *("one <b>note</b>", "1 annotator to drop", "ann & bob", "all labels are <equal>"),
        *("Labels per hour", "Agreement and progress", "share of items finished"),
    ):
        assert words in text, words


def test_the_overview_says_limits_first_and_reassures_nobody(visit, snapshots, now):
    summary = {**snapshots[-1].summary, "n_spammers": None, "notes": ["labels hardly agree"]}
    last = snapshots[-1]._replace(summary=summary)
    text = check_safe(overview_page(visit(None, last, verdict_of("ann", now)))).text
    assert "spammers" not in text
    assert "Annotators 9 not known" in text
    assert text.index("labels hardly agree") < text.index("1 annotator to drop")


def test_pages_of_items_mark_disputed_labels(visit, tables):
    assert "Disputed" not in lists.items_page(visit(tables))
    fit = tables.fit
    category = (fit.label >= 2) * 1  # far from the votes of many items
    shares = np.eye(fit.data.n_categories)[4 * (1 - category)]
    wrong = replace(fit, distribution=Distribution.of_dense(shares))
    assert 0 < wrong.disputed.sum() < len(wrong.disputed)
    changed = LabelSnapshotTables(LoadedSnapshot(None, wrong, tables.advice))
    page = lists.items_page(visit(changed, sort="-disputed"))
    assert page.count(">disputed</span>") == min(ROWS_PER_PAGE, wrong.disputed.sum())
    for code in (wrong.disputed.argmax(), wrong.disputed.argmin()):
        item = changed.items["item"][int(code)].as_py()
        text = check_safe(item_text(visit(changed, id=item))).text
        said = "Disputed yes at most one vote in ten supports the label"
        assert (said in text) == wrong.disputed[code]


@pytest.mark.parametrize(("days", "words"), [(399.5, "12:00 UTC"), (401, "not known")])
def test_an_end_that_has_passed_is_not_expected(visit, snapshots, now, days, words):
    page = overview_page(visit(None, *snapshots, now=now + timedelta(days=days)))
    assert words in check_safe(page).text


def test_one_hour_does_not_fill_the_chart(visit, snapshots, now):
    page = overview_page(visit(None, *snapshots, HourlyCount(1, now, 4321)))
    n_charts = page.count("4,321 labels")  # one per width of the screen
    assert n_charts > 0
    assert page.count("0 labels") == 11 * n_charts


@pytest.mark.parametrize("year", [1, 1970, 2020])
def test_one_old_label_does_not_make_a_bar_for_every_day_since(visit, snapshots, now, year):
    old = HourlyCount(1, datetime(year, 1, 1, tzinfo=UTC), 1)
    page = overview_page(visit(None, *snapshots, old, HourlyCount(1, now, 4321)))
    n_charts = page.count("4,321 labels")
    assert n_charts > 0
    assert page.count(" labels</title>") == 366 * n_charts
    assert len(page) < 1_000_000
    assert "The last 366 days." in page


def test_the_overview_of_a_new_project_says_how_to_send_labels(visit, now):
    text = check_safe(overview_page(visit())).text
    assert "Waiting for the first labels" in text
    assert "/api/v1/projects/films/labels" in text
    text = check_safe(overview_page(visit(None, event_of("a", "ann", "x", now)))).text
    assert "Labels 1 received" in text
    assert "being fitted for the first time" in text


def test_of_many_snapshots_some_are_drawn_the_last_among_them(snapshots):
    many = snapshots * 50
    drawn = thinned_snapshots(many)
    assert 60 < len(drawn) <= 120
    assert drawn[-1] is many[-1]


def test_annotators_are_sorted_searched_and_picked(visit, tables):
    def ids(**asked):
        page = lists.annotators_page(visit(tables, **asked))
        check_safe(page)
        return column(page, "Annotators")

    rows = tables.annotators.to_pylist()
    rows.sort(key=lambda row: (row["reliability"], int(row["annotator"])))
    names = [row["annotator"] for row in rows]
    assert ids() == names
    assert ids(sort="-reliability")[-1] == names[0]
    assert ids(sort="no such column") == ids()
    assert set(ids(search="1")) == {name for name in names if "1" in name}
    dropped = [row["annotator"] for row in rows if row["verdict"] == "drop"]
    assert dropped
    assert ids(pick="drop") == dropped


def test_a_sorted_heading_says_so_and_reverses(visit, tables):
    page = lists.items_page(visit(tables, sort="n_labels", search="a b"))
    assert re.search(r'aria-sort="ascending"><a href="[^"]*sort=-n_labels[^"]*"', page)
    assert page.count("aria-sort") == 1
    assert "search=a+b" in page


def test_items_are_paged(visit, tables):
    def page(number):
        return lists.items_page(visit(tables, sort="item", page=number))

    first, last = column(page("1"), "Items"), column(page("3"), "Items")
    assert (len(first), len(last)) == (ROWS_PER_PAGE, 120 - 2 * ROWS_PER_PAGE)
    assert not set(first) & set(last)
    assert "101 to 120 of 120" in page("3")
    assert column(page("99"), "Items") == last  # beyond the end
    for odd in ("0", "-1", "x", "²", "9" * 40):
        assert column(page(odd), "Items") == first


@pytest.mark.parametrize(("descending", "expected"), [(False, "cab"), (True, "acb")])
def test_missing_values_come_last_in_either_order(descending, expected):
    table = pa.table({"item": ["a", "b", "c"], "value": [2.0, None, 1.0]})
    query = TableQuery(path="/", sort="value", descending=descending)
    rows, _ = chosen_rows(table, query, ids="item")
    assert [row["item"] for row in rows] == list(expected)


def test_the_page_of_an_annotator_shows_the_past_and_doubtful_labels(visit, tables, now):
    history = [verdict_of("3", now, version, "keep") for version in range(4)]
    shown = column(annotator_page(visit(tables, *history, id="3")), "Labels")
    label = event_of(shown[0], "3", "1", now)
    page = annotator_page(visit(tables, label, TraitRow(1, "3", {"team": "<b>"}), id="3"))
    text = check_safe(page).text
    for words in ("Reliability over time", "recovered ↓", "5.0 s", "<b>", "1 Mar 2026, 12:00"):
        assert words in text, words
    assert "id=3&amp;sort=" in page
    n_labels = tables.annotator("3")["n_labels"]
    assert f"of {n_labels}" in text or f"{n_labels} rows" in text
    serious = [float(n) for n in re.findall(r'<td class="right">(0\.\d\d|1\.00)</td>', page)]
    assert len(serious) == len(shown)
    assert serious == sorted(serious)


@pytest.fixture(scope="module")
def flagging_tables():
    """The tables of a model that flags people: of twelve, three answer at random."""
    rng = np.random.default_rng(1)
    truth = rng.integers(3, size=120)
    rows = []
    for s in range(12):
        serious = (rng.random(120) < 0.85) & (s < 9)
        given = np.where(serious, truth, rng.integers(3, size=120))
        rows += [(f"item {e}", f"person {s}", "abc"[given[e]]) for e in range(0, 120, 2)]
    fit = at.fit(rows)
    return LabelSnapshotTables(LoadedSnapshot(None, fit, at.next_labels(fit)))


def test_pages_lead_with_accuracy_where_people_are_flagged(visit, flagging_tables, now):
    tables = flagging_tables
    assert tables.fit.n_spammers == 3
    page = lists.annotators_page(visit(tables))
    assert page.index(">Accuracy") < page.index(">Reliability")
    assert "Accuracy of annotators" in page
    # Flagged people are colored in both columns, nobody else.
    assert page.split("</table>")[0].count('class="at-warn"') == 6
    worst = min(tables.annotators.to_pylist(), key=lambda row: row["accuracy"])
    who = worst["annotator"]
    assert column(page, "Annotators")[0] == who
    history = [verdict_of(who, now, version) for version in range(3)]
    text = check_safe(annotator_page(visit(tables, *history, id=who))).text
    assert text.index("Accuracy") < text.index("Reliability")
    assert f"Accuracy {worst['accuracy']:.2f}" in text
    assert "dashed" not in text
    item = tables.items["item"][0].as_py()
    page = item_text(visit(tables, event_of(item, who, "a", now), id=item))
    assert ">Accuracy" in page
    assert ">Reliability" not in page


def test_an_annotator_without_a_snapshot_has_a_page(visit, tables, now):
    visit(None, event_of("a", "new", "x", now))
    for known in (None, tables):
        assert "in no snapshot yet" in annotator_page(visit(known, id="new"))


def item_text(visit):
    return item_page(visit).body.decode()


def test_the_page_of_an_item_shows_who_said_what(visit, tables, now):
    item = tables.items["item"][0].as_py()
    place = tables.labels_of_item(0)[0]
    who = tables.annotators["annotator"][int(tables.fit.data.annotator[place])].as_py()
    label = tables.names[int(tables.consensus.category[place])]
    rows = [
        event_of(item, who, label, now),
        event_of(item, "stranger", "<i>", now, 2),
        event_of(item, who, "1", now, 3, deleted=True),
        ContentRow(1, item, {"text": "two\nlines", "link": "https://example.org/a"}, now),
        GoldRow(1, item, "4"),
        Lease(1, item, "dora", now + timedelta(minutes=7)),
    ]
    page = item_text(visit(tables, *rows, id=item))
    text = check_safe(page).text
    for words in (
        *("two lines", "Known truth 4", "dora", "stranger", "<i>", "deleted", "https://example"),
    ):
        assert words in text, words
    assert column(page, "Who said what") == [who, "stranger"]


@pytest.mark.parametrize(
    ("value", "sources"),
    [
        ("https://example.org/a.png", {"img-src": "'self' data: https:"}),
        ("http://example.org/a.mp3", {"img-src": "'self' data:", "media-src": "http:"}),
        ("javascript:alert(1)//a.png", {"img-src": "'self' data:"}),
        ("a.png", {"img-src": "'self' data:"}),
    ],
)
def test_a_page_may_load_what_its_content_refers_to(value, sources):
    assert content_sources({"it": value}) == sources


def test_content_that_is_no_address_is_text(visit, now):
    values = ("javascript:alert(1)//a.png", "a.png", "//evil.example/a.png", 7, ["x"])
    for number, value in enumerate(values):
        content = ContentRow(1, f"i{number}", {"it": value}, now)
        page = check_safe(item_text(visit(None, content, id=content.item)))
        assert str(value) in page.text


def test_the_queue_has_items_that_need_labels_and_who_has_them(visit, tables, now):
    waiting = [row for row in tables.items.to_pylist() if row["add"] > 0]
    first = max(waiting, key=lambda row: row["gain"])["item"]
    lease = Lease(1, first, "ann <b>", now + timedelta(minutes=7))
    page = lists.queue_page(visit(tables, lease))
    assert column(page, "Queue")[0] == first
    text = check_safe(page).text
    assert "7 more minutes" in text
    assert text.count("ann <b>") == 2


DUELS = Frame(project="duels", kind="comparisons")


def test_the_ranking_is_best_first_and_its_items_have_opponents(visit, rank_tables):
    page = lists.items_page(visit(rank_tables, frame=DUELS))
    check_safe(page)
    ranks = rank_tables.items.sort_by([("rank", "ascending")])
    assert column(page, "Ranking") == ranks["item"].to_pylist()
    best = ranks["item"][0].as_py()
    page = item_text(visit(rank_tables, frame=DUELS, id=best))
    check_safe(page)
    cells = [int(n) for n in re.findall(r'<td class="right">(\d+)</td>', page)]
    won = sum(cells[1::4])
    assert won == rank_tables.item(best)["won"]


def test_pairs_to_compare_and_comparers_have_pages(visit, rank_tables, now):
    text = check_safe(lists.queue_page(visit(rank_tables, frame=DUELS))).text
    assert f"{rank_tables.advice.n_add} comparisons to ask for" in text
    row = rank_tables.advice.comparison_table().to_pylist()[0]
    pair = [str(row["left"]), str(row["right"])]
    keys = [LabelTask(*names).key for names in (pair, ("x", "y"))]
    leases = [Lease(1, key, "ann", now + timedelta(minutes=7)) for key in keys]
    page = lists.queue_page(visit(rank_tables, *leases, frame=DUELS))
    text = check_safe(page).text
    assert f"{' and '.join(pair)} : ann , for 7 more minutes" in text
    assert "a pair: ann , for 7 more minutes" in text
    assert "pair%3A" not in page
    who = rank_tables.annotators["annotator"][0].as_py()
    assert "20 rows" in check_safe(annotator_page(visit(rank_tables, frame=DUELS, id=who))).text
    check_safe(lists.annotators_page(visit(rank_tables, frame=DUELS)))


def test_alerts_link_to_what_they_are_about(visit, now):
    verdict = Alert(1, 1, now, "verdict", "a/b", "annotator a/b: drop", {})
    text = "item x needs no more labels"
    finished = Alert(2, 1, now, "finished", "", text, {"items": ["x"]}, True)
    page = lists.alerts_page(visit(None, verdict, finished))
    check_safe(page)
    assert "/projects/films/annotator?id=a%2Fb" in page
    assert "Mark all as seen" in page
    assert '/projects/films/alerts?pick=finished">1 alert of finished items</a>' in page
    assert "/projects/films/item?id=x" in lists.alerts_page(visit(pick="finished"))
    reader = Frame(project="films", n_alerts=2)
    assert "Mark all as seen" not in lists.alerts_page(visit(frame=reader))


def test_the_login_takes_the_token_in_a_form():
    page = login_page()
    checker = check_safe(page)
    (field,) = [a for tag, a in checker.elements if tag == "input"]
    assert (field["name"], field["type"]) == ("token", "password")
    assert '<form method="post"' in page


def test_addresses_of_static_files_change_with_their_content():
    path = static_path(SCRIPT)
    assert re.fullmatch(r"/static/[0-9a-f]{16}/serve\.js", path)
    assert "EventSource" in static_file(SCRIPT).content
    assert ".at-k4" in static_file("ordinal-5.css").content
    for name in ("ordinal-0.css", "ordinal-100.css", "../secret", "x.css"):
        with pytest.raises(KeyError):
            static_file(name)


@pytest.mark.parametrize("days", ["0", "36501", "0000019999999999", "9" * 5000, "-1", "1.5", "¹"])
def test_a_lifetime_of_a_token_that_is_not_of_the_list_is_refused(days):
    change = settings._Change(SimpleNamespace(), SimpleNamespace(), {"name": "x", "days": days})
    with pytest.raises(InputError, match="unknown lifetime of the token: choose one of the list"):
        settings._create_token(change)
