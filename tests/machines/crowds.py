"""Simulated people and machines whose items have one right label."""

import numpy as np

import annotruth as at

CATEGORIES = np.array(["cat", "dog", "fox"])


def class_labels(
    seed, *, n_items=300, per_item=4, n_people=20, n_machines=3, accuracy=0.8, correlation=0.0
):
    """Return rows of labels: people p00, p01, ... and machines m0, m1, ..., all in order of items."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n_items)

    def draw(accuracies):
        wrong = (truth + rng.integers(1, 3, size=n_items)) % 3
        return np.where(rng.random(n_items) < accuracies, truth, wrong)

    of_people = [draw(a) for a in np.clip(rng.normal(0.75, 0.1, n_people), 0.4, 0.97)]
    shared = draw(accuracy)
    of_machines = [
        np.where(rng.random(n_items) < np.sqrt(correlation), shared, draw(accuracy))
        for _ in range(n_machines)
    ]
    rows = []
    for item in range(n_items):
        for person in rng.choice(n_people, per_item, replace=False):
            rows.append((f"i{item}", f"p{person:02}", CATEGORIES[of_people[person][item]]))
        for k, labels in enumerate(of_machines):
            rows.append((f"i{item}", f"m{k}", CATEGORIES[labels[item]]))
    return rows


def votes(seed, *, n_pairs=250, n_people=12, per_pair=4, n_machines=2, side_bias=1.0, length=0.0):
    """Return rows of comparisons under prompts; machines prefer a side, and the longer answer."""
    rng = np.random.default_rng(seed)
    score = rng.normal(0.0, 1.5, 12)
    rows = []

    def vote(name, prompt, pair, difference, bias, effect):
        logit = score[pair[0]] - score[pair[1]] + bias + effect * difference
        winner = "left" if rng.random() < 1.0 / (1.0 + np.exp(-logit)) else "right"
        row = (f"q{prompt}", f"a{pair[0]:02}", f"a{pair[1]:02}", name, winner, difference)
        rows.append(dict(zip(COLUMNS, row, strict=True)))

    for prompt in range(n_pairs):
        pair, difference = rng.choice(12, 2, replace=False), round(float(rng.normal()), 3)
        for person in rng.choice(n_people, per_pair, replace=False):
            vote(f"p{person:02}", prompt, pair, difference, 0.0, 0.0)
        for k in range(n_machines):
            vote(f"m{k}", prompt, pair, difference, side_bias, length)
    return rows


COLUMNS = ("prompt", "left", "right", "annotator", "winner", "length_difference")


def copies(rows, machine, n, at_place):
    """Return rows in which a machine occurs n times, by different names."""
    made = [row for row in rows if name_of(row, at_place) != machine]
    for k in range(n):
        for row in rows:
            if name_of(row, at_place) == machine:
                made.append(_renamed(row, at_place, f"{machine} copy {k}"))
    return made


def name_of(row, at_place):
    """Return the annotator of a row."""
    return row[at_place]


def _renamed(row, at_place, name):
    if isinstance(row, dict):
        return {**row, at_place: name}
    return (*row[:at_place], name, *row[at_place + 1 :])


def opinion_labels(seed, **options):
    """Return a simulated crowd with opinions, and machines."""
    crowd = at.simulate.crowd(n_items=200, n_annotators=20, labels_per_item=4, seed=seed)
    return at.simulate.with_machines(crowd, seed=seed, **options)
