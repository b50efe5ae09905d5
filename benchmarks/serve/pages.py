"""How long pages of a project with many labels take in Chromium."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any
from urllib.parse import quote

from benchmarks.honesty.options import PartTable, Target, TargetFigure
from benchmarks.serve.latency import fill, make_events, wait_for
from benchmarks.serve.processes import PROJECT, Installation, installation, running

_REPEATS = 5
_MOST_SECONDS = 1.0  # for the overview
_PAGES = {
    "overview": "",
    "annotators": "/annotators",
    "one annotator": "/annotator?id={annotator}",
    "items": "/items",
    "items, sorted by label": "/items?sort=label&page=200",
    "items, searched": "/items?search=99",
    "one item": "/item?id={item}",
    "queue": "/queue",
    "alerts": "/alerts",
}


def pages(*, n_labels: int = 1_000_000, seed: int = 0) -> list[PartTable]:
    """Measure the time from a click to a page that is drawn and ready.

    The first visit to a page follows the start of the server, which loads the fit for it, except
    for the overview; the others are the median of several.
    """
    with installation("SQLite") as made:
        first = _fill(made, n_labels, seed)
        with running(made.config, "web"), _browser(made) as page:
            visits = {
                name: [_visit(page, made, path, first) for _ in range(1 + _REPEATS)]
                for name, path in _PAGES.items()
            }
    target = Target(high=_MOST_SECONDS)
    rows = [
        (
            (name,),
            [
                TargetFigure(seconds[0], target if name == "overview" else None, 2),
                TargetFigure(median(seconds[1:]), target if name == "overview" else None, 2),
                TargetFigure(max(seconds[1:]), digits=2),
            ],
        )
        for name, seconds in visits.items()
    ]
    return [
        PartTable(
            f"Seconds until a page is ready in Chromium, {n_labels:,} labels",
            f"Target of the overview: {target}.",
            ("page",),
            ("first visit", "median", "maximum"),
            rows,
        )
    ]


def _fill(made: Installation, n_labels: int, seed: int) -> dict[str, str]:
    """Append labels and wait for a snapshot of them; return an item and an annotator."""
    last = fill(made, n_labels, seed)
    with running(made.config, "worker"):
        wait_for(made.database, made.project.id, last)
        time.sleep(2.0)  # it removes what it no longer needs
    (first,) = make_events(0, 1, seed)
    return {"item": quote(first.item), "annotator": quote(first.annotator)}


@contextmanager
def _browser(made: Installation) -> Iterator[Any]:
    """Return a page of Chromium that is logged in."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(f"{_address(made)}/login#{made.token}")
        page.wait_for_url("**/projects")
        yield page
        browser.close()


def _visit(page: Any, made: Installation, path: str, first: dict[str, str]) -> float:
    """Return how long it takes to open a page, until it is drawn."""
    address = f"{_address(made)}/projects/{PROJECT}{path.format(**first)}"
    start = time.perf_counter()
    response = page.goto(address, wait_until="load")
    page.wait_for_selector("html[data-ready]", state="attached")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    seconds = time.perf_counter() - start
    assert response.status == 200, (address, response.status)
    return seconds


def _address(made: Installation) -> str:
    return f"http://127.0.0.1:{made.config.port}"
