"""Check a built site as a reader sees it who opens its pages as files, without a network.

    python -m tests.docs.check_site build/docs

prints what is wrong: links to files or anchors that do not exist and, in Chromium, messages on the
console, requests to the network, pages wider than the screen, and a search that finds nothing.
"""

import os
import shutil
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:  # only `main` needs a browser
    from playwright.sync_api import Browser
    from playwright.sync_api import Page as Tab

SEARCHED = "reliability"
PHONE, DESKTOP = 390, 1440


@dataclass
class Page(HTMLParser):
    """The anchors of a page, and the places that it links to or loads."""

    ids: set[str] = field(default_factory=set)
    targets: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name == "id" or (name == "name" and tag == "a"):
                self.ids.add(value or "")
            elif name in ("href", "src") and value:
                self.targets.add(value)


def main(folder: Path) -> int:
    """Print what is wrong with the site; return how much that is, at most 1."""
    paths = sorted(folder.rglob("*.html"))
    if not paths:
        return _say([f"{folder} has no pages: run make docs"])
    wrong = dead_links(folder, paths)
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is not None:
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            # Chromium refuses to run its sandbox as root, as in containers.
            chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
            wrong += problems_in_browser(chromium, folder, paths)
            chromium.close()
    elif "ANNOTRUTH_NEEDS_BROWSER" in os.environ:
        wrong.append("no Chromium found, but ANNOTRUTH_NEEDS_BROWSER is set")
    how = "links only: no Chromium found" if browser is None else "links, and in Chromium"
    return _say(wrong or [f"checked {len(paths)} pages ({how})"], failed=bool(wrong))


def _say(lines: list[str], *, failed: bool = True) -> int:
    print("\n".join(lines), file=sys.stderr if failed else sys.stdout)
    return int(failed)


def dead_links(folder: Path, paths: list[Path]) -> list[str]:
    """Return the links to files or anchors of the site that do not exist."""
    pages = {path: _read(path) for path in paths}
    wrong = []
    for path, page in pages.items():
        for target in sorted(page.targets):
            url = urlsplit(target)
            if url.scheme or url.netloc:
                continue  # elsewhere, or data in the page itself
            linked = (path.parent / unquote(url.path)).resolve() if url.path else path
            if not linked.is_file() or not linked.is_relative_to(folder.resolve()):
                wrong.append(f"{path.relative_to(folder)}: no file {target}")
            elif (
                url.fragment and linked in pages and unquote(url.fragment) not in pages[linked].ids
            ):
                wrong.append(f"{path.relative_to(folder)}: no anchor {target}")
    return wrong


def _read(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text("utf-8"))
    return page


def problems_in_browser(
    chromium: "Browser", folder: Path, paths: list[Path], *, patience_ms: int = 10_000
) -> list[str]:
    """Return what Chromium says about the pages on two screens, and about a search."""
    wrong: list[str] = []
    for width in (DESKTOP, PHONE):
        tab = chromium.new_page(viewport={"width": width, "height": 900})
        # What the console says during the search is added to the first list.
        wrong += _problems_in_tab(tab, paths, width) + _search(tab, folder, patience_ms)
        tab.close()
    return wrong


def _problems_in_tab(tab: "Tab", paths: list[Path], width: int) -> list[str]:
    wrong: list[str] = []
    tab.on("console", lambda said: wrong.append(f"{tab.url}: {said.text}"))
    tab.on("pageerror", lambda error: wrong.append(f"{tab.url}: {error}"))
    tab.on("request", lambda request: wrong.extend(_remote(tab.url, request.url)))
    for path in paths:
        tab.goto(path.as_uri())
        needed = tab.evaluate("document.documentElement.scrollWidth")
        if needed > width:
            wrong.append(f"{tab.url}: {needed} pixels wide on a screen of {width}")
    return wrong


def _remote(page: str, url: str) -> list[str]:
    local = urlsplit(url).scheme in ("file", "data", "blob")
    return [] if local else [f"{page}: requests {url}"]


def _search(tab: "Tab", folder: Path, patience_ms: int) -> list[str]:
    """Return what is wrong with a search from the front page."""
    from playwright.sync_api import TimeoutError

    tab.goto((folder / "index.html").as_uri())
    box = tab.locator("input[name=q]").first
    box.evaluate("(box, text) => { box.value = text; box.form.submit(); }", SEARCHED)
    tab.wait_for_url("**/search.html?*")
    found = f"#search-results .excerpt mark:text-matches('^{SEARCHED}', 'i')"
    try:
        tab.wait_for_selector(found, timeout=patience_ms)
    except TimeoutError:
        return [f"a search for {SEARCHED} finds nothing with an excerpt"]
    return []


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
