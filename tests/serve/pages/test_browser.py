"""Pages in a browser, from a real web server: login, live updates, sorting, forms, hostile text."""

import json
import re
import urllib.error
import urllib.parse
import urllib.request

import pytest
from tests.keyboard import walk
from tests.serve.pages.service import Service, simulated_rows
from tests.waiting import MAX_SECONDS

import annotruth as at
from annotruth.serve.store.projects import get_project


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    started = Service.start(tmp_path_factory.mktemp("service"))
    yield started
    started.stop()


@pytest.fixture(scope="module")
def films(service):
    """A project of labels with one snapshot."""
    project = service.add_project("films", settings={"cost_per_label": 0.1})
    rows = simulated_rows()
    service.add_labels(project, rows)
    service.publish(project, at.fit(rows, "gpm"))
    service.add_alert(project, "annotator 3: drop", "3")
    service.add_content(project, {"5": {"text": "A film about bees."}})
    return project


@pytest.fixture(scope="module")
def duels(service):
    """A project of comparisons with one snapshot."""
    project = service.add_project("duels", "comparisons")
    made = at.simulate.comparers(n_items=8, n_annotators=5, comparisons_per_annotator=12, seed=1)
    rows = [tuple(map(str, row.values())) for row in made.comparisons.to_arrow().to_pylist()]
    service.add_labels(project, rows)
    service.publish(project, at.rank(rows))
    return project


class Browser:
    """One window, with the errors and dialogs that its pages caused."""

    def __init__(self, service, context):
        self.service = service
        self.page = context.new_page()
        self.page.set_default_timeout(1e3 * MAX_SECONDS)
        self.errors, self.dialogs, self.requests = [], [], []
        self.page.on(
            "console", lambda m: m.type in ("error", "warning") and self.errors.append(m.text)
        )
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("dialog", lambda d: (self.dialogs.append(d.message), d.accept()))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def log_in(self, token):
        self.page.goto(f"{self.service.address}/login#{token}")
        self.page.wait_for_url("**/projects")
        return self

    def open(self, path):
        self.page.goto(f"{self.service.address}{path}")
        self.page.wait_for_selector("html[data-ready]", state="attached")
        return self.page

    def column(self, table):
        return self.page.locator(f"[aria-label='{table}'] tbody th").all_inner_texts()


@pytest.fixture
def browse(chromium, service):
    """Open a window: ``browse(width=390)``; with a token it is logged in."""
    contexts = []

    def browse(token=None, *, width=1440, dark=False):
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light"
        )
        contexts.append(context)
        browser = Browser(service, context)
        return browser if token is None else browser.log_in(token)

    yield browse
    for context in contexts:
        context.close()


PAGES = (
    "/projects",
    "/projects/films",
    "/projects/films/annotators",
    "/projects/films/annotator?id=3",
    "/projects/films/items",
    "/projects/films/item?id=5",
    "/projects/films/queue",
    "/projects/films/alerts",
    "/projects/films/settings",
    "/projects/duels",
    "/projects/duels/annotators",
    "/projects/duels/annotator?id=3",
    "/projects/duels/items",
    "/projects/duels/item?id=5",
    "/projects/duels/queue",
    "/projects/duels/settings",
)


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (390, True)])
def test_every_page_opens_offline_without_errors_and_within_the_screen(
    browse, service, films, duels, width, dark
):
    browser = browse(service.token(), width=width, dark=dark)
    for path in PAGES:
        page = browser.open(path)
        assert page.locator("h1").inner_text(), path
        overflow = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert overflow <= 0, (path, overflow)
    assert browser.errors == []
    assert all(url.startswith((service.address, "data:")) for url in browser.requests)


def test_the_present_tab_is_within_a_small_screen(browse, service, films):
    page = browse(service.token(), width=390).open("/projects/films/settings")
    box = page.locator(".top nav [aria-current]").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390


def test_the_link_logs_in_and_the_token_is_in_no_address(browse, service, films):
    token = service.token()
    browser = browse(token)
    assert "films" in browser.page.locator("main").inner_text()
    assert all(token not in url for url in browser.requests)
    (cookie,) = browser.page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert token not in json.dumps(cookie)
    browser.page.get_by_role("button", name="Log out").click()
    browser.page.wait_for_url("**/login")
    assert browser.page.goto(f"{service.address}/projects/films").status == 401


def test_the_link_logs_in_from_an_open_login_page(browse, service, films):
    browser = browse()
    browser.open("/login")
    browser.log_in(service.token())
    assert "films" in browser.page.locator("main").inner_text()


def test_a_wrong_token_is_refused(browse, service):
    browser = browse()
    page = browser.open("/login")
    page.get_by_label("Token").fill("at_000000000000_wrong")
    page.get_by_role("button", name="Log in").click()
    assert "unknown, revoked or expired" in page.get_by_role("alert").inner_text()
    assert not page.context.cookies()


def test_pages_follow_new_snapshots_and_keep_what_the_visitor_does(browse, service, films):
    browser = browse(service.token())
    page = browser.open("/projects/films")
    page.wait_for_selector("html[data-live]", state="attached")
    before = page.locator(".facts dd").first.inner_text()
    rows = [*simulated_rows(), *((f"extra {n}", "1", "2") for n in range(7))]
    service.publish(films, at.fit(rows, "gpm"))
    page.wait_for_selector("html[data-refreshed]", state="attached")
    after = page.locator(".facts dd").first.inner_text()
    assert (before.split()[0], after.split()[0]) == ("300", "307")
    assert page.locator(".facts dd.changed").count() >= 1
    assert browser.errors == []


def test_nothing_is_replaced_while_the_visitor_types(browse, service, films):
    page = browse(service.token()).open("/projects/films/items")
    page.wait_for_selector("html[data-live]", state="attached")
    page.get_by_label("Search items").press_sequentially("1")
    service.add_alert(films, "annotator 4: drop", "4")
    page.wait_for_timeout(3000)
    assert page.locator("html[data-refreshed]").count() == 0
    assert page.get_by_label("Search items").input_value() == "1"
    page.locator("h1").click()
    page.wait_for_selector("html[data-refreshed]", state="attached")


def test_a_change_during_a_refresh_is_shown_too(browse, service, films):
    page = browse(service.token()).open("/projects/films/alerts")
    page.wait_for_selector("html[data-live]", state="attached")

    def answer_late(route):
        response = route.fetch()
        if route.request.resource_type == "fetch" and not late:
            late.append(True)
            service.add_alert(films, "annotator 5: drop, while the page is fetched", "5")
            page.wait_for_timeout(2500)  # until the stream has said so
        route.fulfill(response=response)

    late = []
    page.route("**/alerts", answer_late)
    service.add_alert(films, "annotator 4: drop, before the page is fetched", "4")
    page.get_by_text("while the page is fetched").wait_for()
    service.add_alert(films, "annotator 6: drop, at last", "6")
    page.get_by_text("at last").wait_for()


def test_a_login_that_has_ended_is_said(browse, service, films):
    browser = browse(service.token())
    page = browser.open("/projects/films")
    page.wait_for_selector("html[data-live]", state="attached")
    page.context.clear_cookies()
    service.add_alert(films, "annotator 4: drop", "4")
    page.get_by_text("The login has ended: load this page again.").wait_for()
    assert page.locator("h1").inner_text() == "films"


def test_a_refresh_leaves_the_focus_and_the_place_in_a_wide_table(browse, service, films):
    page = browse(service.token(), width=390).open("/projects/films/annotators")
    page.wait_for_selector("html[data-live]", state="attached")
    link = page.locator(".paged tbody a").nth(3)
    name = link.inner_text()
    link.focus()
    page.locator(".paged").evaluate("each => { each.style.width = '100px'; each.scrollLeft = 40; }")
    service.add_alert(films, "annotator 4: drop", "4")
    page.wait_for_selector("html[data-refreshed]", state="attached")
    assert page.evaluate("document.activeElement.textContent") == name


HIDE = "Object.defineProperty(document, 'hidden', {value: %s, configurable: true});"
CHANGED = "document.dispatchEvent(new Event('visibilitychange'));"


def test_hidden_pages_hold_no_connection(browse, service, films):
    browser = browse(service.token())
    tabs = [browser.open("/projects/films")]
    for _ in range(6):  # a browser has six connections to a server at most
        tabs[-1].wait_for_selector("html[data-live]", state="attached")
        tabs[-1].evaluate(HIDE % "true" + CHANGED)
        tabs.append(browser.page.context.new_page())
        tabs[-1].goto(f"{service.address}/projects/films")
    tabs[-1].wait_for_selector("html[data-live]", state="attached")
    assert service.n_listeners() == 1
    service.add_alert(films, "annotator 7: drop, while hidden", "7")
    tabs[-1].get_by_text("while hidden").wait_for()
    assert tabs[0].get_by_text("while hidden").count() == 0
    tabs[0].evaluate(HIDE % "false" + CHANGED)
    tabs[0].get_by_text("while hidden").wait_for()


def test_a_lost_connection_is_said(browse, service, films):
    browser = browse(service.token())
    browser.page.route("**/events", lambda route: route.abort())
    page = browser.open("/projects/films")
    lost = page.locator("#connection")
    lost.wait_for(state="visible")
    said = lost.inner_text()
    assert "Connection lost" in said
    page.wait_for_timeout(3500)  # another attempt, later than the numbers
    assert lost.inner_text() == said
    page.unroute("**/events")
    page.wait_for_selector("html[data-live]", state="attached")
    assert lost.is_hidden()


def test_headings_sort_and_pages_turn_by_the_keyboard(browse, service, films):
    browser = browse(service.token())
    page = browser.open("/projects/films/items?sort=item")
    first = browser.column("Items")
    assert len(first) == 50
    assert first == sorted(first)
    page.get_by_role("link", name="next").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**page=2*")
    assert not set(first) & set(browser.column("Items"))
    page.locator("#sort-item").press("Enter")
    page.wait_for_url("**sort=-item*")
    assert browser.column("Items") == sorted(browser.column("Items"), reverse=True)
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("Item")


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("path", [*PAGES, "/login"])
def test_pages_are_used_with_the_tab_key_alone(browse, service, films, duels, path, width):
    browser = browse(service.token("admin") if path != "/login" else None, width=width)
    walked = walk(browser.open(path))
    assert walked.problems() == []


def test_an_item_leads_to_who_said_what_and_on_to_the_annotator(browse, service, films):
    browser = browse(service.token())
    page = browser.open("/projects/films/items?search=5&sort=item")
    page.get_by_role("link", name="5", exact=True).click()
    page.wait_for_selector("text=Who said what")
    assert page.locator(".content").inner_text() == "A film about bees."
    said = browser.column("Who said what")
    expected = sorted(annotator for item, annotator, _ in simulated_rows() if item == "5")
    assert sorted(said) == expected
    page.get_by_role("link", name=said[0], exact=True).first.click()
    page.wait_for_url(f"**/annotator?id={said[0]}")
    assert page.locator("h1").inner_text() == said[0]


def test_settings_change_tokens_are_made_once_and_revoked(browse, service, films):
    browser = browse(service.token())
    page = browser.open("/projects/films/settings")
    page.get_by_label("Cost per label").fill("0.25")
    page.get_by_role("button", name="Save").click()
    page.wait_for_selector("html[data-ready]", state="attached")
    assert page.get_by_label("Cost per label").input_value() == "0.25"
    page.get_by_text("Create a token").first.click()
    page.locator("[name=name]").fill("<b>robot</b>")
    page.get_by_role("button", name="Create a token").click()
    made = page.locator(".secret code").inner_text()
    assert re.fullmatch(r"at_[0-9a-f]+_[\w-]{43}", made)
    assert "at_" not in page.url
    request = urllib.request.Request(
        f"{service.address}/projects/films", headers={"Authorization": f"Bearer {made}"}
    )
    assert urllib.request.urlopen(request).status == 200
    page.get_by_role("button", name="Revoke").last.click()
    page.wait_for_selector("text=revoked")
    assert browser.dialogs == ["Revoke <b>robot</b>?"]
    page = browser.open("/projects/films/settings")
    assert page.locator(".secret").count() == 0
    assert made not in page.content()


def test_categories_are_kept_as_they_are(browse, service):
    categories = ["yes, sure", " no", "I\ncannot say", "<b>"]
    service.add_project("quiz", settings={"categories": categories})
    page = browse(service.token()).open("/projects/quiz/settings")

    def save():
        page.get_by_role("button", name="Save").click()
        page.wait_for_selector("html[data-ready]", state="attached")
        with service.database.connect() as connection:
            return get_project(connection, "quiz").settings

    page.get_by_label("Cost per label").fill("0.25")
    assert save() == {"categories": categories, "cost_per_label": 0.25}
    page.get_by_label("Categories").fill("yes, sure\n no\n  maybe \n\n")
    assert save()["categories"] == ["yes, sure", " no", "maybe"]
    page.get_by_label("Categories").fill("")
    assert "categories" not in save()


def test_the_secret_of_a_connection_says_what_it_is_of(browse, service, films):
    page = browse(service.token()).open("/projects/films/settings")
    page.get_by_text("Add a connection").first.click()
    page.get_by_role("button", name="Add a connection").click()
    secret = page.locator(".secret")
    secret.wait_for()
    assert re.match(
        r"The secret of the new connection, /hooks/\d+, which is shown only now: whsec_",
        secret.inner_text(),
    )
    assert secret.bounding_box()["y"] < 900  # it is seen without scrolling


def test_a_wrong_setting_is_explained(browse, service, films):
    page = browse(service.token()).open("/projects/films/settings")
    page.evaluate("document.querySelector('[name=cost_per_label]').type = 'text'")
    page.get_by_label("Cost per label").fill("cheap")
    page.get_by_role("button", name="Save").click()
    assert "cost_per_label" in page.get_by_role("alert").inner_text()


def test_projects_are_created_and_shown(browse, service):
    page = browse(service.token()).open("/projects")
    page.get_by_label("Name").fill("new-one")
    page.get_by_role("button", name="Create").click()
    page.wait_for_url("**/projects/new-one")
    assert "Waiting for the first labels" in page.locator("main").inner_text()


def post(service, path, fields, cookie, **headers):
    """Post a form as a page of another site would; return the status."""
    request = urllib.request.Request(
        f"{service.address}{path}",
        urllib.parse.urlencode(fields).encode(),
        {"Cookie": f"{cookie['name']}={cookie['value']}", **headers},
    )
    try:
        return urllib.request.build_opener(_NoRedirect).open(request).status
    except urllib.error.HTTPError as error:
        return error.code


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args):
        return None


def test_forms_without_the_token_of_the_login_change_nothing(browse, service, films):
    mine, other = browse(service.token()), browse(service.token())
    (cookie,) = mine.page.context.cookies()
    forms = {
        "/logout": {},
        "/projects": {"name": "stolen", "kind": "labels"},
        "/projects/films/alerts": {},
        "/projects/films/settings": {"do": "create-token", "name": "x", "scope": "admin"},
    }
    their_token = other.open("/projects").locator("[name=csrf]").first.get_attribute("value")
    for path, fields in forms.items():
        for wrong in ({}, {"csrf": ""}, {"csrf": their_token}):
            assert post(service, path, {**fields, **wrong}, cookie) == 403, path
    own = mine.open("/projects").locator("[name=csrf]").first.get_attribute("value")
    assert post(service, "/projects/films/alerts", {"csrf": own}, cookie) == 303
    assert "stolen" not in mine.open("/projects").content()
    assert post(service, "/login", {"token": "x"}, cookie, Origin="https://evil.example") == 403


def test_a_token_of_one_project_or_without_rights_sees_no_more(browse, service, films, duels):
    browser = browse(service.token("read", duels))
    assert browser.column("Projects") == ["duels"]
    assert browser.page.get_by_label("Name").count() == 0
    for path in ("/projects/films", "/projects/films/item?id=5", "/projects/none"):
        assert browser.page.goto(f"{service.address}{path}").status == 403
    page = browser.open("/projects/duels/settings")
    assert page.locator("main form").count() == 0


def test_hostile_text_runs_nowhere(browse, service, hostile_texts):
    project = service.add_project("hostile")
    texts = [text.replace("\x01", "") for text in hostile_texts]
    rows = [
        (f"{texts[e % 6]}{e}", texts[s], texts[(e * s + e) % 3])
        for e in range(12)
        for s in range(6)
    ]
    service.add_labels(project, rows)
    service.publish(project, at.fit(rows, "gpm"), notes=[texts[0], texts[1]])
    for text in texts:
        service.add_alert(project, text, text)
    item = rows[0][0]
    service.add_content(project, {item: {text: text for text in texts}})
    browser = browse(service.token())
    browser.page.goto(f"{service.address}/login#%3Cscript%3Ealert(1)%3C/script%3E")
    quoted = {"item": urllib.parse.quote(item), "annotator": urllib.parse.quote(texts[1])}
    for path in (
        *("", "/annotators", "/items", "/queue", "/alerts", "/settings"),
        f"/annotator?id={quoted['annotator']}",
        f"/item?id={quoted['item']}",
        f"/items?search={quoted['item']}&sort={quoted['item']}&pick={quoted['item']}",
        f"/annotators?page={quoted['item']}",
        f"/item?id={quoted['item']}x",
    ):
        page = browser.open(f"/projects/hostile{path}")
        page.locator("main a").evaluate_all("links => links.forEach((a) => a.focus())")
    page = browser.open(f"/projects/hostile/item?id={quoted['item']}")
    assert page.locator("h1").inner_text() == item
    assert browser.dialogs == []
    missing = [text for text in browser.errors if "404" not in text]
    assert missing == []


def test_long_ids_stay_within_a_small_screen(browse, service):
    project = service.add_project("long")
    names = [letter * 200 for letter in "abc"]
    rows = [(f"{item}{e}", name, item) for e in range(3) for item in names for name in names]
    service.add_labels(project, rows)
    service.publish(project, at.fit(rows, "gpm"))
    service.add_alert(project, names[0], names[1])
    service.add_content(project, {f"{names[0]}0": {"text": names[0]}})
    browser = browse(service.token(), width=390)
    for path in (
        *("", "/annotators", "/items", "/queue", "/alerts", "/settings"),
        *(f"/annotator?id={names[0]}", f"/item?id={names[0]}0"),
    ):
        page = browser.open(f"/projects/long{path}")
        overflow = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert overflow <= 0, (path, overflow)


def test_unknown_things_are_pages_with_a_message(browse, service, films):
    browser = browse(service.token())
    for path in (
        "/projects/none",
        "/projects/films/item?id=nobody",
        "/projects/films/annotator?id=nobody",
        "/static/0123456789abcdef/serve.js",
    ):
        response = browser.page.goto(f"{service.address}{path}")
        assert response.status == 404, path
        assert "there is no such" in browser.page.locator("main").inner_text()
