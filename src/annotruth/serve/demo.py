"""`annotruth serve --demo`: a simulated team that labels and compares items live, over HTTP."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import httpx2
import numpy as np

from annotruth import simulate
from annotruth.kernels.arrays import Floats
from annotruth.serve.administration import create_token
from annotruth.serve.config import ServeConfig
from annotruth.serve.start import address_of, run_service
from annotruth.serve.store.database import Database
from annotruth.serve.store.projects import create_project, get_project
from annotruth.serve.store.rows import utc_now

LABELS, COMPARISONS = "film-reviews", "film-duels"
"""The names of the demo's projects."""

_LOGGER = logging.getLogger(__name__)
# Names, how reliable they are, and what they do when they are not serious.
_TEAM = {
    "ada": (0.97, "random"),
    "ben": (0.93, "random"),
    "carla": (0.9, "random"),
    "dev": (0.15, "random"),
    "elif": (0.98, "random"),
    "femi": (0.88, "random"),
    "grace": (0.94, "random"),
    "hugo": (0.1, "repeated"),
    "ines": (0.86, "random"),
    "jonas": (0.95, "random"),
    "kofi": (0.91, "random"),
    "lena": (0.96, "random"),
    "mateo": (0.3, "random"),
    "nora": (0.92, "random"),
}
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


class TeamMember(NamedTuple):
    """An annotator of the simulated team."""

    name: str  # their id
    reliability: float  # the probability of a serious label
    behavior: str  # what they do otherwise: "random", "repeated" or "inverted"
    repeated: int  # the label that they repeat, counted from 0
    seconds: float  # how long they take for a label


@dataclass(frozen=True, eq=False)
class SimulatedTeam:
    """People who classify film reviews: most are reliable, some are spammers, one deteriorates."""

    members: Sequence[TeamMember]  # the people
    items: Sequence[str]  # the ids of the reviews
    shares: Floats  # what serious people say about each review, items x categories

    @classmethod
    def of_seed(cls, seed: int) -> SimulatedTeam:
        """Return a team and its items, drawn at random."""
        made = simulate.crowd(
            n_items=_N_ITEMS, n_annotators=2, n_categories=len(_CATEGORIES), seed=seed
        )
        assert made.distribution is not None
        sharp = made.distribution**_SHARPNESS
        members = [
            TeamMember(name, reliability, behavior, 2, 1.5 if reliability < 0.5 else 6.0)
            for name, (reliability, behavior) in _TEAM.items()
        ]
        items = [f"review {n:03}" for n in range(1, _N_ITEMS + 1)]
        return cls(members, items, sharp / sharp.sum(axis=1, keepdims=True))

    @property
    def deteriorating_member(self) -> TeamMember:
        """The most reliable one, who answers at random once the demo has begun."""
        return max(self.members, key=lambda member: member.reliability)

    def label(self, member: TeamMember, item: str, random: np.random.Generator) -> str:
        """Return a label that a member gives to an item."""
        n = len(_CATEGORIES)
        if random.random() < member.reliability:
            return _CATEGORIES[random.choice(n, p=self.shares[self.items.index(item)])]
        repeats = member.behavior == "repeated"
        return _CATEGORIES[member.repeated if repeats else int(random.integers(n))]

    def past_labels(self, now: datetime, random: np.random.Generator) -> list[dict[str, Any]]:
        """Return the labels of the hours before the demo, oldest first."""
        n_labels = _N_ITEMS * _LABELS_BEFORE
        hours = np.sort(random.triangular(0.0, 0.6 * _HOURS_BEFORE, _HOURS_BEFORE, n_labels))
        pairs = [
            (item, self.members[s])
            for item in self.items
            for s in random.choice(len(self.members), _LABELS_BEFORE, replace=False).tolist()
        ]
        given = []
        for hour, k in zip(hours.tolist(), random.permutation(n_labels).tolist(), strict=True):
            item, member = pairs[k]
            submitted = now - timedelta(hours=_HOURS_BEFORE - hour)
            label = self.label(member, item, random)
            given.append(_given(item, member, label, submitted, random))
        return given

    def contents(self) -> list[dict[str, Any]]:
        """Return what the items are: a sentence that fits what serious people say."""
        top = self.shares.argmax(axis=1)
        return [
            {"item": item, "content": {"text": _TEXTS[_CATEGORIES[top[n]]][n % 2]}}
            for n, item in enumerate(self.items)
        ]


def _given(
    item: str, member: TeamMember, label: str, submitted: datetime, random: np.random.Generator
) -> dict[str, Any]:
    seconds = member.seconds * float(random.lognormal(0.0, 0.4))
    return {
        "item": item,
        "annotator": member.name,
        "label": label,
        "started": (submitted - timedelta(seconds=seconds)).isoformat(),
        "submitted": submitted.isoformat(),
    }


def run_demo(config: ServeConfig, say: Callable[[str], None], *, seed: int = 1) -> int:
    """Run the service with two projects in which a simulated team works; return the exit code."""
    quiet = replace(config, log_requests=False)  # the team's would hide the link
    return run_service(quiet, say, then=lambda started, stop: work(started, stop, seed))


def work(config: ServeConfig, stop: threading.Event, seed: int) -> None:
    """Label and compare items of the demo's projects until it is stopped."""
    random = np.random.default_rng(seed)
    team = SimulatedTeam.of_seed(seed)
    headers = {"Authorization": f"Bearer {create_projects(config)}"}
    url = f"{address_of(config)}/api/v1/projects"
    with httpx2.Client(base_url=url, headers=headers, timeout=10.0, trust_env=False) as client:
        steps = _steps(client, team, random)
        while not stop.wait(float(random.exponential(_SECONDS_BETWEEN))):
            try:
                next(steps)
            except httpx2.HTTPError as error:  # the server restarts, or refuses: try again
                _LOGGER.info("the simulated team waits: %s", error)
                steps = _live_steps(client, team, random, iter(()))
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


def _steps(
    client: httpx2.Client, team: SimulatedTeam, random: np.random.Generator
) -> Iterator[None]:
    """Send the past at once, then work live, one label or comparison per step."""
    votes = _votes()
    half = len(votes) // 2
    _post(client, LABELS, "labels", team.past_labels(datetime.now(UTC), random))
    _post(client, COMPARISONS, "comparisons", votes[:half])
    _post(client, LABELS, "items", team.contents())
    yield from _live_steps(client, team, random, iter(votes[half:]))


def _live_steps(
    client: httpx2.Client,
    team: SimulatedTeam,
    random: np.random.Generator,
    votes: Iterator[dict[str, Any]],
) -> Iterator[None]:
    """Let members of the team ask what to label next, and label it; or compare two films."""
    turned = team.deteriorating_member._replace(reliability=0.05, behavior="random", seconds=1.0)
    members = [turned if each.name == turned.name else each for each in team.members]
    while True:
        member = members[int(random.integers(len(members)))]
        task = client.get(f"/{LABELS}/next", params={"annotator": member.name})
        item = task.raise_for_status().json().get("item")
        if item is not None:
            label = team.label(member, item, random)
            given = _given(item, member, label, datetime.now(UTC), random)
            _post(client, LABELS, "labels", given)
        yield
        if random.random() < 0.5 and (vote := next(votes, None)) is not None:
            _post(client, COMPARISONS, "comparisons", vote)
            yield


def _votes() -> list[dict[str, Any]]:
    """Return simulated comparisons of films."""
    made = simulate.comparers(
        n_items=_N_FILMS, n_annotators=len(_TEAM), comparisons_per_annotator=60, seed=2
    )
    rows = made.comparisons.to_arrow().to_pylist()
    order = np.random.default_rng(2).permutation(len(rows)).tolist()
    names = list(_TEAM)
    return [
        {
            "left": f"film {rows[k]['left']}",
            "right": f"film {rows[k]['right']}",
            "annotator": names[int(rows[k]["annotator"]) - 1],
            "outcome": rows[k]["winner"],
        }
        for k in order
    ]
