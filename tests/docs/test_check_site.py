"""The check of the built site notices what is wrong with a page."""

import pytest
from tests.docs.check_site import dead_links, problems_in_browser

SEARCH = """<!doctype html><html><head><link rel="icon" href="data:,"></head><body>
<div id="search-results"><p class="excerpt"><mark>reliability</mark></p></div></body></html>"""


def site(folder, body, search=SEARCH):
    """Write a site of two pages; return its folder and its pages."""
    front = f"""<!doctype html><html><head><link rel="icon" href="data:,"></head><body>
    <form action="search.html"><input name="q"></form>{body}</body></html>"""
    (folder / "index.html").write_text(front, "utf-8")
    (folder / "search.html").write_text(search, "utf-8")
    return folder, sorted(folder.rglob("*.html"))


@pytest.mark.parametrize(
    ("link", "found"),
    [
        ('<a href="search.html">', []),
        ('<a href="search.html#search-results">', []),
        ('<a href="https://example.org/missing.html">', []),
        ('<a href="missing.html">', ["index.html: no file missing.html"]),
        ('<img src="missing.png">', ["index.html: no file missing.png"]),
        ('<a href="../elsewhere.html">', ["index.html: no file ../elsewhere.html"]),
        ('<a href="search.html#missing">', ["index.html: no anchor search.html#missing"]),
        ('<a href="#missing">', ["index.html: no anchor #missing"]),
    ],
)
def test_dead_links_are_found(tmp_path, link, found):
    (tmp_path / "elsewhere.html").write_text("outside of the site", "utf-8")
    (tmp_path / "site").mkdir()
    assert dead_links(*site(tmp_path / "site", link)) == found


BROKEN = """<script>console.error("odd")</script><script>missing()</script>
<img src="http://127.0.0.1:9/x.png"><p style="width: 600px">wide"""


def test_problems_in_the_browser_are_found(tmp_path, chromium):
    said = "\n".join(problems_in_browser(chromium, *site(tmp_path, BROKEN, ""), patience_ms=300))
    assert "index.html: odd" in said
    assert "missing is not defined" in said
    assert "requests http://127.0.0.1:9/x.png" in said
    assert "wide on a screen of 390" in said
    assert "a search for reliability finds nothing" in said


def test_a_site_without_problems_passes(tmp_path, chromium):
    assert problems_in_browser(chromium, *site(tmp_path, "<p>fine")) == []
