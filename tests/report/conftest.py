"""Fits to report on, and how to open reports in a browser."""

import pytest

import annotruth as at

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    '"><img src=x onerror=alert(3)>',
    "line\u2028separator {{data}}",
    "\u202ereversed & 'quoted'",
    "tab\tand\x01control",
)


@pytest.fixture(scope="session")
def crowd():
    """A fit of a small simulated crowd with a fifth of spammers."""
    made = at.simulate.crowd(n_items=60, n_annotators=20, spammer_share=0.2, seed=1)
    return at.fit(made.labels, "gpm")


@pytest.fixture(scope="session")
def hostile_ids():
    return HOSTILE


@pytest.fixture(scope="session")
def hostile():
    """A fit whose ids and categories would run as code on a page that does not escape them."""
    rows = [
        (f"{HOSTILE[e % 6]}{e}", HOSTILE[s], HOSTILE[(e * s + e) % 3])
        for e in range(12)
        for s in range(6)
    ]
    return at.fit(rows, "gpm")


class Reader:
    """One page of the browser, with the messages and requests it caused."""

    def __init__(self, page):
        self.page = page
        self.messages, self.requests = [], []
        page.on("console", lambda message: self.messages.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.messages.append(str(error)))
        page.on("dialog", lambda dialog: (self.messages.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: self.requests.append(request.url))

    def open(self, path):
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready]", state="attached")
        return self

    def table(self, name):
        return self.page.locator(f"[data-table={name}]")

    def column(self, table, title):
        """The texts of the visible rows under a heading."""
        heads = self.table(table).locator("thead th").all_inner_texts()
        at = next(k for k, head in enumerate(heads) if head.strip() == title)
        return [row.locator("td").nth(at).inner_text() for row in self.rows(table).all()]

    def rows(self, table):
        return self.table(table).locator("tbody tr[aria-rowindex]")

    def count(self, table):
        return self.table(table).locator("output").inner_text()

    def head(self, table, title):
        return self.table(table).locator("thead th", has_text=title)


@pytest.fixture
def read(chromium):
    """Open a report: ``read(path, width=390, dark=True)``."""
    opened = []

    def read(path, *, width=1440, dark=False):
        page = chromium.new_page(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light"
        )
        opened.append(page)
        return Reader(page).open(path)

    yield read
    for page in opened:
        page.close()
