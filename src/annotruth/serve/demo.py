"""`annotruth serve --demo`: a simulated team that labels and compares items live, over HTTP."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import numpy as np

from annotruth import simulate
from annotruth.serve.administration import create_token
from annotruth.serve.config import ServeConfig
from annotruth.serve.start import address_of, run_service
from annotruth.serve.store.database import Database
from annotruth.serve.store.projects import create_project, get_project
from annotruth.serve.store.rows import utc_now

LABELS, COMPARISONS = "film-reviews", "film-duels"
"""The names of the demo's projects."""

_LOGGER = logging.getLogger(__name__)
_RELIABILITY = {
    "ada": 0.97,
    "ben": 0.93,
    "carla": 0.9,
    "dev": 0.15,
    "elif": 0.98,
    "femi": 0.88,
    "grace": 0.94,
    "hugo": 0.1,
    "ines": 0.86,
    "jonas": 0.95,
    "kofi": 0.91,
    "lena": 0.96,
    "mateo": 0.3,
    "nora": 0.92,
}
_DETERIORATES = "elif"  # answers at random once the demo has begun
_REPEATS = "hugo"  # gives one label when not serious; the others give random ones
_CATEGORIES = ("negative", "mixed", "positive", "off topic")
_SETTINGS = {"scale": "nominal", "categories": list(_CATEGORIES), "cost_per_label": 0.08}
_TEXTS = {
    "negative": ("I left after half an hour.", "Two hours of my life are gone."),
    "mixed": ("Some nice pictures, but it drags.", "Not bad, not great."),
    "positive": ("A good evening, well acted.", "The best film I saw this year."),
    "off topic": ("The popcorn was cold.", "Where can I park near this cinema?"),
}
_N_ITEMS, _N_FILMS = 240, 18
_SHARPNESS = 6  # to which opinions are raised: most reviews have one right class
_LABELS_BEFORE = 2  # per item
_HOURS_BEFORE = 30  # of work before the demo began, so that charts have a past
_SECONDS_BETWEEN = 0.25  # two labels of the live team, on average


class SimulatedTeam:
    """People who classify film reviews: most are reliable, some are spammers, one deteriorates."""

    def __init__(self, seed: int) -> None:
        made = simulate.crowd(
            n_items=_N_ITEMS, n_annotators=2, n_categories=len(_CATEGORIES), seed=seed
        )
        assert made.distribution is not None
        sharp = made.distribution**_SHARPNESS
        self.items = [f"review {n:03}" for n in range(1, _N_ITEMS + 1)]
        self.shares = sharp / sharp.sum(axis=1, keepdims=True)  # what serious people say
        self.reliability = dict(_RELIABILITY)  # the probability of a serious label
        self.random = np.random.default_rng(seed)

    def label(self, name: str, item: str) -> str:
        """Return a label that somebody gives to an item."""
        n = len(_CATEGORIES)
        if self.random.random() < self.reliability[name]:
            shares = self.shares[self.items.index(item)]
            return _CATEGORIES[self.random.choice(n, p=shares)]
        return _CATEGORIES[2 if name == _REPEATS else self.random.integers(n)]

    def give(self, name: str, item: str, submitted: datetime) -> dict[str, Any]:
        """Return a label that somebody submits at a time, as the API takes it."""
        seconds = 1.5 if self.reliability[name] < 0.5 else 6.0
        started = submitted - timedelta(seconds=seconds * self.random.lognormal(0.0, 0.4))
        times = {"started": started.isoformat(), "submitted": submitted.isoformat()}
        return {"item": item, "annotator": name, "label": self.label(name, item), **times}

    def past_labels(self, now: datetime) -> list[dict[str, Any]]:
        """Return the labels of the hours before the demo, oldest first."""
        names = list(self.reliability)
        pairs = [
            (name, item)
            for item in self.items
            for name in self.random.choice(names, _LABELS_BEFORE, replace=False).tolist()
        ]
        self.random.shuffle(pairs)
        hours = self.random.triangular(0.0, 0.6 * _HOURS_BEFORE, _HOURS_BEFORE, len(pairs))
        times = [now - timedelta(hours=_HOURS_BEFORE - hour) for hour in sorted(hours.tolist())]
        return [self.give(*pair, time) for pair, time in zip(pairs, times, strict=True)]

    def contents(self) -> list[dict[str, Any]]:
        """Return what the items are: a sentence that fits what serious people say."""
        top = self.shares.argmax(axis=1)
        return [
            {"item": item, "content": {"text": _TEXTS[_CATEGORIES[top[n]]][n % 2]}}
            for n, item in enumerate(self.items)
        ]


def run_demo(config: ServeConfig, say: Callable[[str], None], *, seed: int = 1) -> int:
    """Run the service with two projects in which a simulated team works; return the exit code."""
    quiet = replace(config, log_requests=False)  # the team's would hide the link
    return run_service(quiet, say, then=lambda started, stop: work(started, stop, seed))


def work(config: ServeConfig, stop: threading.Event, seed: int) -> None:
    """Label and compare items of the demo's projects until it is stopped."""
    team = SimulatedTeam(seed)
    headers = {"Authorization": f"Bearer {create_projects(config)}"}
    url = f"{address_of(config)}/api/v1/projects"
    with httpx2.Client(base_url=url, headers=headers, timeout=10.0, trust_env=False) as client:
        steps = _steps(client, team)
        while not stop.wait(float(team.random.exponential(_SECONDS_BETWEEN))):
            try:
                next(steps)
            except httpx2.HTTPError as error:  # the server restarts, or refuses: try again
                _LOGGER.info("the simulated team waits: %s", error)
                steps = _live_steps(client, team, iter(()))
                stop.wait(1.0)


def create_projects(config: ServeConfig) -> str:
    """Create the projects of the demo, where they are missing; return a token to write to them."""
    now = utc_now()
    with Database.open(config.database) as database, database.begin() as connection:
        if get_project(connection, LABELS) is None:
            create_project(connection, LABELS, "labels", _SETTINGS, now)
            create_project(connection, COMPARISONS, "comparisons", {}, now)
        return create_token(connection, "simulated team", "write", now)[1]


def _post(client: httpx2.Client, project: str, what: str, rows: Any) -> None:
    client.post(f"/{project}/{what}", json=rows).raise_for_status()


def _steps(client: httpx2.Client, team: SimulatedTeam) -> Iterator[None]:
    """Send the past at once, then work live, one label or comparison per step."""
    votes = _votes()
    half = len(votes) // 2
    _post(client, LABELS, "labels", team.past_labels(datetime.now(UTC)))
    _post(client, COMPARISONS, "comparisons", votes[:half])
    _post(client, LABELS, "items", team.contents())
    team.reliability[_DETERIORATES] = 0.05
    yield from _live_steps(client, team, iter(votes[half:]))


def _live_steps(
    client: httpx2.Client, team: SimulatedTeam, votes: Iterator[dict[str, Any]]
) -> Iterator[None]:
    """Let members of the team ask what to label next, and label it; or compare two films."""
    while True:
        name = str(team.random.choice(list(team.reliability)))
        task = client.get(f"/{LABELS}/next", params={"annotator": name})
        item = task.raise_for_status().json().get("item")
        if item is not None:
            _post(client, LABELS, "labels", team.give(name, item, datetime.now(UTC)))
        yield
        if team.random.random() < 0.5 and (vote := next(votes, None)) is not None:
            _post(client, COMPARISONS, "comparisons", vote)
            yield


def _votes() -> list[dict[str, Any]]:
    made = simulate.comparers(
        n_items=_N_FILMS, n_annotators=len(_RELIABILITY), comparisons_per_annotator=60, seed=2
    )
    rows = made.comparisons.to_arrow().to_pylist()
    order = np.random.default_rng(2).permutation(len(rows)).tolist()
    names = list(_RELIABILITY)
    return [
        {
            "left": f"film {rows[k]['left']}",
            "right": f"film {rows[k]['right']}",
            "annotator": names[int(rows[k]["annotator"]) - 1],
            "outcome": rows[k]["winner"],
        }
        for k in order
    ]
