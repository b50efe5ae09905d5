"""What to do next: the rules, each at its border."""

import numpy as np

import annotruth as at
from annotruth.models.base_fit import TOO_FEW
from annotruth.report.advice import advise
from annotruth.report.consensus import Consensus


def advised(fit):
    return advise(fit, Consensus(fit))


def votes(**counts):
    """Rows of one item with so many labels of each class, by people of their own."""
    return [("it", f"{label} {n}", label) for label, count in counts.items() for n in range(count)]


def of_item(rows):
    fit = at.fit([*rows, ("other", "a 0", "a"), ("other", "a 1", "b")], "majority")
    said = advised(fit)
    return said.items[0], said.more[0]


def test_a_clear_lead_is_settled():
    assert of_item(votes(a=5)) == ("settled", 0)
    assert of_item(votes(a=9, b=1)) == ("settled", 0)


def test_a_lead_that_may_be_chance_asks_for_labels():
    # 5 to 2: lead 3/7, variance 1 - (3/7)^2; 1.96^2 * 0.816 / 0.184 = 17.1, and 7 are there.
    stand, more = of_item(votes(a=5, b=2))
    assert (stand, more) == ("divided", 0)
    # 6 to 2: lead 1/2, variance 3/4; 1.96^2 * 3 = 11.5 labels, so 4 more.
    assert of_item(votes(a=6, b=2)) == ("more labels", 4)


def test_a_tie_of_many_is_divided_and_of_few_wants_labels():
    assert of_item(votes(a=4, b=4)) == ("divided", 0)
    assert of_item(votes(a=1, b=1)) == ("more labels", 10)
    assert of_item(votes(a=1)) == ("more labels", 1)


def test_scores_are_settled_within_one_step():
    close = [("it", s, 3 + (s % 2)) for s in range(30)]
    far = [("it", s, 1 + 4 * (s % 2)) for s in range(30)]
    for rows, stand in ((close, "settled"), (far, "divided")):
        fit = at.fit([*rows, *[("other", s, 1 + s) for s in range(5)]], "mean")
        assert advised(fit).items[0] == stand


def test_a_known_truth_needs_nothing():
    fit = at.fit(votes(a=1, b=1), "majority", gold={"it": "b"})
    assert advised(fit).items.tolist() == ["known"]


def test_spammers_are_dropped_when_their_whole_interval_says_so(crowd):
    said = advised(crowd).annotators
    assert (crowd.high[said == "drop"] < 0.5).all()
    assert (said[crowd.high < 0.5] == "drop").all()
    assert ((crowd.low < 0.5) & (crowd.high >= 0.5) == (said == "watch")).all()
    assert {"drop", "keep"} <= set(said)


def test_without_spammers_those_far_below_the_others_are_watched():
    rows = [(e, str(s), e % 3 if s < 6 else (e + 1) % 3) for e in range(30) for s in range(7)]
    rows.append((0, "new", 0))
    fit = at.fit(rows, "majority", scale="nominal")
    assert advised(fit).annotators.tolist() == [*["keep"] * 6, "watch", "few labels"]


def test_where_the_model_says_too_few_labels_so_does_the_advice():
    made = at.simulate.crowd(n_items=60, n_annotators=30, labels_per_item=4, seed=3)
    fit = at.fit(made.labels, "robust-gpm")
    too_few = np.array(fit.behavior) == TOO_FEW
    said = advised(fit).annotators
    assert too_few.any()
    assert set(said[too_few]) <= {"few labels", "drop"}
