"""A sample report of simulated labels, `sample-report.html` of the site."""

from pathlib import Path

import numpy as np
import pyarrow as pa
from sphinx.application import Sphinx

import annotruth as at

NAME = "sample-report.html"

_TOPICS = {
    "billing": ("I was charged twice for {}.", "Where do I find the invoice for {}?"),
    "bug": ("{} stops as soon as I open it.", "Since the update, {} shows an empty page."),
    "question": ("Can several people use {} at once?", "How do I export my data from {}?"),
    "praise": ("Thank you for {}, it saves us hours.", "We love the new look of {}!"),
}
_PRODUCTS = ("the app", "the calendar", "the team plan", "the editor", "the dashboard")
_PEOPLE = {
    **dict.fromkeys(("Aiko", "Ben", "Chidi", "Dana", "Elif", "Farid", "Grace", "Hugo"), 0.93),
    **dict.fromkeys(("Ines", "Jonas", "Kofi"), 0.75),
    "Lena": 0.1,
    "Milo": 0.25,  # click at random
    "Nora": 0.0,  # always says bug
}


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the report after the build."""
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _write(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        sample_fit().report(Path(app.outdir, NAME), source="Simulated support tickets")


def sample_fit() -> at.Fit:
    """Return a fit of simulated labels: 240 support tickets by 14 people, 5 labels each."""
    rng = np.random.default_rng(11)
    topics = list(_TOPICS)
    tickets, rows = [], []
    for number in range(1, 241):
        topic = rng.choice(topics, p=(0.3, 0.35, 0.25, 0.1))
        text = rng.choice(_TOPICS[topic]).format(rng.choice(_PRODUCTS))
        tickets.append({"item": f"ticket {number}", "text": text})
        hard = rng.random() < 0.15  # reads like a question
        for person in rng.choice(list(_PEOPLE), 5, replace=False):
            label = rng.choice([topic, "question"]) if hard else topic
            if rng.random() > _PEOPLE[person]:
                label = "bug" if person == "Nora" else rng.choice(topics)
            rows.append((f"ticket {number}", str(person), str(label)))
    labels = at.Labels.of(rows).with_item_covariates(pa.Table.from_pylist(tickets))
    return at.fit(labels)
