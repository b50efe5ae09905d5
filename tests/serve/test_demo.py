"""The simulated team of `annotruth serve --demo`."""

from datetime import timedelta

import numpy as np

from annotruth.serve.demo import SimulatedTeam


def test_the_team_has_spammers_and_one_whose_reliability_falls(now):
    team = SimulatedTeam.of_seed(1)
    past = team.past_labels(now, np.random.default_rng(0))
    pairs = {(label["item"], label["annotator"]) for label in past}
    assert len(pairs) == len(past) == 480
    assert all(label["started"] < label["submitted"] for label in past)
    assert [label["submitted"] for label in past] == sorted(label["submitted"] for label in past)
    assert past[-1]["submitted"] <= now.isoformat()
    assert past[0]["submitted"] > (now - timedelta(hours=31)).isoformat()
    assert sum(member.reliability < 0.5 for member in team.members) == 3
    assert team.deteriorating_member.reliability > 0.9


def test_members_label_as_they_are():
    team, random = SimulatedTeam.of_seed(1), np.random.default_rng(0)
    top = team.shares.argmax(axis=1)
    names = ["negative", "mixed", "positive", "off topic"]

    def share_right(member):
        given = [team.label(member, item, random) for item in team.items]
        return np.mean([label == names[code] for label, code in zip(given, top, strict=True)])

    by_name = {member.name: member for member in team.members}
    assert share_right(by_name["ada"]) > 0.8
    assert share_right(by_name["dev"]) < 0.5


def test_contents_are_sentences_for_every_item():
    team = SimulatedTeam.of_seed(1)
    contents = team.contents()
    assert [each["item"] for each in contents] == list(team.items)
    assert all(each["content"]["text"].endswith((".", "?")) for each in contents)
