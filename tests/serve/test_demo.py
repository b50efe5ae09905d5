"""The simulated team of `annotruth serve --demo`."""

from datetime import timedelta

import numpy as np

from annotruth.serve.demo import SimulatedTeam


def test_the_past_of_the_team_has_every_label_once_in_order(now):
    past = SimulatedTeam(1).past_labels(now)
    pairs = {(label["item"], label["annotator"]) for label in past}
    assert len(pairs) == len(past) == 480
    assert all(label["started"] < label["submitted"] for label in past)
    assert [label["submitted"] for label in past] == sorted(label["submitted"] for label in past)
    assert past[-1]["submitted"] <= now.isoformat()
    assert past[0]["submitted"] > (now - timedelta(hours=31)).isoformat()


def test_members_label_as_they_are():
    team = SimulatedTeam(1)
    top = team.shares.argmax(axis=1)
    names = ["negative", "mixed", "positive", "off topic"]

    def share_right(name):
        given = [team.label(name, item) for item in team.items]
        return np.mean([label == names[code] for label, code in zip(given, top, strict=True)])

    assert share_right("ada") > 0.8
    assert share_right("dev") < 0.5


def test_contents_are_sentences_for_every_item():
    team = SimulatedTeam(1)
    contents = team.contents()
    assert [each["item"] for each in contents] == list(team.items)
    assert all(each["content"]["text"].endswith((".", "?")) for each in contents)
