"""Results are compared with plain counts of votes, and contradictions are said first."""

import json
from dataclasses import replace

import numpy as np
import pytest

import annotruth as at
from annotruth.models.distribution import Distribution
from annotruth.models.fits import notes
from annotruth.models.fits.notes import CHANCE_LINE, WITHHELD_LINE, support_of
from annotruth.models.robust_gpm import pooling

REASSURING = ("median reliability", "above 90%", "probably not serious", "spammers")


def votes(n_items, shares, per_item, seed=0, n_annotators=20):
    """Return labels that are drawn from the shares of each item, by different annotators."""
    rng = np.random.default_rng(seed)
    names = [f"c{k:03d}" for k in range(len(shares[0]))]
    return [
        (e, int(s), names[rng.choice(len(names), p=shares[e % len(shares)])])
        for e in range(n_items)
        for s in rng.choice(n_annotators, per_item, replace=False)
    ]


def noisy_classes(n_classes, right, n_items=800):
    """Return labels of which a small share is the right one of very many classes."""
    rng = np.random.default_rng(3)
    drawn = rng.integers(n_classes, size=(n_items, 5))
    drawn[rng.random(drawn.shape) < right] = -1
    return [
        (e, int(s), int(drawn[e, k]) if drawn[e, k] >= 0 else e % n_classes)
        for e in range(n_items)
        for k, s in enumerate(rng.choice(60, 5, replace=False))
    ]


def as_classes(rows):
    return at.Labels.of([(e, s, f"class {label}") for e, s, label in rows])


def kinds(fit):
    return [note.kind for note in fit.notes]


def with_labels(fit, label):
    """Return a fit with other labels, each of probability 1."""
    shares = np.eye(fit.data.n_categories)[label]
    return replace(fit, distribution=Distribution.of_dense(shares))


HEALTHY = votes(100, [[0.9, 0.1], [0.1, 0.9]], 5)


# disputed ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "label", "disputed"),
    [
        ("aaaaaaaaab", 1, True),  # one in ten
        ("aaaaaaaabb", 1, False),
        ("aaaaaaaaa", 1, True),  # nobody
        ("aa", 1, True),
        ("a", 1, False),  # one vote decides nothing
        ("ab", 1, False),
        ("aaaaaaaaab", 0, False),
    ],
)
def test_a_class_is_disputed_if_at_most_one_vote_in_ten_is_for_it(given, label, disputed):
    rows = [("e", s, text) for s, text in enumerate(given)] + [("f", 0, "b"), ("f", 1, "a")]
    found = support_of(at.Labels.of(rows), np.array([label, 0]))
    assert found.disputed.tolist() == [disputed, False]


@pytest.mark.parametrize(
    ("given", "label", "disputed"),
    [
        ([2, 2, 2, 4, 4], 3, False),  # votes on both sides
        ([2, 2, 2, 2, 2], 3, True),
        ([4, 4, 4, 4, 4], 3, True),
        ([2] * 9 + [3], 3, True),
        ([2] * 8 + [3, 4], 3, False),
        ([2] * 9 + [5], 4, True),
    ],
)
def test_a_point_on_a_scale_is_disputed_if_nearly_all_votes_are_on_one_side(given, label, disputed):
    rows = [("e", s, value) for s, value in enumerate(given)] + [("f", n, n) for n in range(1, 6)]
    found = support_of(at.Labels.of(rows), np.array([label - 1, 2]))
    assert found.disputed.tolist() == [disputed, False]


def test_items_and_files_say_which_labels_are_disputed(tmp_path):
    fit = with_labels(at.fit(HEALTHY, "majority"), np.zeros(100, dtype=int))
    table = fit.items()
    names = table["item"], table["disputed"]
    shares = {
        e: np.mean([label == "c000" for f, _, label in HEALTHY if f == e]) for e in range(100)
    }
    assert {e: bool(flag) for e, flag in zip(*names, strict=True)} == {
        e: share <= 0.1 for e, share in shares.items()
    }
    assert 10 < table["disputed"].sum() < 50
    assert f"items: {table['disputed'].sum()} are disputed" in fit.summary()
    fit.save(tmp_path / "fit")
    assert at.load(tmp_path / "fit").items()["disputed"].tolist() == table["disputed"].tolist()


def test_known_truths_are_never_disputed():
    rows = [("a", s, "x") for s in range(5)] + [("b", s, "y") for s in range(5)]
    fit = at.fit(rows, "majority", gold={"a": "y"})
    assert fit.items()["label"].tolist() == ["y", "y"]
    assert not fit.items()["disputed"].any()


def test_models_of_scores_have_no_disputed_labels():
    fit = at.fit([("a", 1, 1), ("a", 2, 3), ("b", 1, 2)], "mean")
    assert fit.disputed is None
    assert "disputed" not in fit.items().columns


# notes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["robust-gpm", "gpm", "majority", "dawid-skene", "mace"])
def test_healthy_labels_have_no_notes(model):
    fit = at.fit(HEALTHY, model)
    assert fit.notes == []
    assert "WARNING" not in fit.summary()
    assert WITHHELD_LINE not in fit.summary()


@pytest.mark.parametrize("share", [0.02, 0.05, 0.1])
@pytest.mark.parametrize("model", ["robust-gpm", "gpm", "dawid-skene"])
def test_a_rare_class_that_few_people_see_is_no_contradiction(model, share):
    rows = votes(400, [[0.97, 0.03]] * round(1 / share) + [[0.4, 0.6]], 6)
    assert "reliability" not in kinds(at.fit(rows, model))
    assert "confidence" not in kinds(at.fit(rows, model))


@pytest.mark.parametrize(("same", "is_low"), [(0.79, True), (0.81, False)])
def test_agreement_is_not_low_where_nearly_all_votes_are_equal(same, is_low):
    counts = notes.VoteCounts(0.09, same, same - 0.01, 5.0, 1000)
    assert counts.is_low == is_low
    assert not notes.VoteCounts(0.11, 0.5, 0.4, 5.0, 1000).is_low


def test_labels_that_most_votes_reject_are_said_first():
    fit = at.fit(HEALTHY, "majority")
    few, many = fit.label.copy(), fit.label.copy()
    few[:8], many[:30] = 1 - few[:8], 1 - many[:30]
    assert kinds(with_labels(fit, few)) == []
    found = with_labels(fit, many)
    assert kinds(found) == ["rejected labels"]
    assert found.summary().startswith("WARNING: most votes reject the label of 2")
    assert not found.is_void


def test_a_class_found_twice_as_often_as_votes_say_is_said_first():
    """A crowd that is strict about a rare class, of which a model makes far too much."""
    fit = at.fit(votes(300, [[0.95, 0.05]] * 9 + [[0.2, 0.8]], 6), "majority")
    positive = np.bincount(
        fit.data.item_of_label(), fit.data.category_of_label() == 1, fit.data.n_items
    )
    assert kinds(fit) == []
    half = with_labels(fit, (positive >= 3).astype(int))
    assert kinds(half) == []
    found = with_labels(fit, (positive >= 1).astype(int))
    assert "shares of labels" in kinds(found)
    assert (
        "% of the items are labelled c001, which has at most 1" in found.summary().splitlines()[0]
    )


def test_reliable_annotators_whose_votes_hardly_agree_are_said_first():
    labels = as_classes(noisy_classes(20, 0.3))
    fit = at.fit(labels, "gpm")
    assert 0.05 < fit.vote_counts.alpha < 0.1
    assert np.median(fit.reliability) >= 0.9
    assert kinds(fit) == ["reliability"]
    first, *others = fit.summary().splitlines()
    assert first.startswith("WARNING: the median reliability is 1.00, but votes hardly agree")
    assert not any(phrase in line for phrase in REASSURING for line in others)
    assert kinds(replace(fit, reliability=np.full(60, 0.8))) == []


def test_accuracy_is_compared_where_a_model_gives_it():
    fit = at.fit(as_classes(noisy_classes(20, 0.3)), "gpm")
    n = fit.data.n_annotators
    assert kinds(replace(fit, annotator_columns={"accuracy": np.full(n, 0.3)})) == []
    fit = replace(
        fit, reliability=np.full(n, 0.3), annotator_columns={"accuracy": np.full(n, 0.95)}
    )
    assert "the median accuracy is 0.95" in fit.notice()


def test_unreliable_annotators_whose_votes_agree_are_said_first():
    fit = at.fit(HEALTHY)
    assert fit.vote_counts.above_chance > 0.5
    found = replace(at.fit(HEALTHY, "gpm"), reliability=np.full(20, 0.3))
    assert kinds(found) == ["reliability"]
    assert "the median reliability is 0.30, but votes agree far better" in found.notice()
    assert "median reliability 0.30" in found.summary()


def test_two_camps_are_said_first():
    found = replace(at.fit(HEALTHY), verdict="camps")
    assert kinds(found) == ["camps"]
    assert found.summary().splitlines()[0].startswith("WARNING: about half of the annotators")
    assert "no verdicts on people" in found.summary()


def test_certain_labels_of_few_votes_that_hardly_agree_are_said_first():
    fit = replace(at.fit(as_classes(noisy_classes(20, 0.3)), "majority"), verdict="informative")
    sure = with_labels(fit, fit.label)
    assert kinds(fit) == []
    assert kinds(sure) == ["confidence"]
    first, *others = sure.summary().splitlines()
    assert first.startswith("WARNING: 100% of the items have a label above 90%")
    assert not any(phrase in line for phrase in REASSURING for line in others)


def test_labels_that_are_certain_because_one_class_prevails_are_no_contradiction():
    """Votes of which a fifth is spam, on items of which nine in ten are of one class."""
    rng = np.random.default_rng(5)
    rows = []
    for e in range(300):
        right = 0 if rng.random() < 0.9 else rng.integers(1, 10)
        for s in rng.choice(30, 5, replace=False):
            is_wrong = s < 6 or rng.random() < 0.25
            rows.append((e, int(s), f"c{rng.integers(10) if is_wrong else right}"))
    fit = at.fit(rows)
    assert fit.vote_counts.is_low
    assert fit.vote_counts.sure > 0.5
    assert "confidence" not in kinds(fit)


def test_chance_does_not_reassure():
    rng = np.random.default_rng(1)
    fit = at.fit([(e, s, "abc"[rng.integers(3)]) for e in range(100) for s in range(5)])
    assert fit.verdict == "chance"
    assert [note.severity for note in fit.notes] == ["critical"]
    summary = fit.summary()
    assert summary.startswith(f"WARNING: {CHANCE_LINE}\n")
    assert not any(phrase in summary for phrase in REASSURING)


def test_a_test_that_finds_chance_where_votes_agree_is_said_first():
    fit = replace(at.fit(HEALTHY), verdict="chance")
    assert kinds(fit) == ["chance test"]
    assert not fit.is_void
    first, *others = fit.summary().splitlines()
    assert first.startswith(
        "WARNING: robust-gpm cannot tell these labels from labels of chance, although"
    )
    assert not any(phrase in line for phrase in REASSURING for line in others)


@pytest.mark.parametrize(
    ("alpha", "n_pairs", "is_above"), [(0.2, 100, False), (0.2, 400, True), (0.09, 10**6, False)]
)
def test_alpha_is_above_chance_by_standard_errors(alpha, n_pairs, is_above):
    assert notes.VoteCounts(alpha, 0.6, 0.5, 2.0, n_pairs).is_above_chance == is_above


@pytest.mark.parametrize("model", [None, "gpm"])
def test_hundreds_of_classes_of_noise_do_not_reassure(model, tmp_path):
    fit = at.fit(as_classes(noisy_classes(717, 0.18)), model)
    assert 0.01 < fit.vote_counts.alpha < 0.05
    assert kinds(fit) == ["chance"]
    first, *others = fit.summary().splitlines()
    alpha = "labels hardly agree (Krippendorff's alpha is 0.03)"
    assert first.startswith(f"WARNING: {CHANCE_LINE if model is None else alpha}")
    assert not any(phrase in line for phrase in REASSURING for line in others)
    fit.save(tmp_path / "fit")
    assert at.load(tmp_path / "fit").notes == fit.notes


@pytest.mark.parametrize("right", [0.1, 0.95])
def test_another_model_is_said_first_also_of_labels_that_agree(right, monkeypatch):
    labels = as_classes(noisy_classes(200, right))
    monkeypatch.setattr(pooling, "MAX_BYTES", 10.0)
    with pytest.warns(at.AnnotruthWarning, match="gpm was fitted"):
        fit = at.fit(labels)
    assert kinds(fit) == [*["chance"] * (right < 0.5), "other model"]
    first, *others = fit.summary().splitlines()
    assert "200 categories are too many for robust-gpm: gpm was fitted instead" in first
    assert not any(phrase in line for phrase in REASSURING for line in others)
    again = at.update(fit, [("new", 1, "class 3"), ("new", 2, "class 3")])
    assert "other model" in kinds(again)
    assert "other model" not in kinds(at.fit(labels, "gpm"))


def test_fit_json_lists_the_notes():
    fit = with_labels(at.fit(HEALTHY, "majority"), np.zeros(100, dtype=int))
    listed = json.loads(fit.to_json())["notes"]
    assert [note["kind"] for note in listed] == kinds(fit)
    assert listed[0].keys() == {"kind", "severity", "sentence"}
    assert json.loads(at.fit(HEALTHY).to_json())["notes"] == []


def test_of_very_many_votes_some_items_are_compared(monkeypatch):
    fit = at.fit(HEALTHY, "majority")
    whole = fit.vote_counts
    monkeypatch.setattr(notes, "_MOST_VOTES", 200)
    some = replace(fit).vote_counts
    assert some.votes_per_item == whole.votes_per_item
    assert some.alpha != whole.alpha
    assert some.alpha == pytest.approx(whole.alpha, abs=0.2)
    flipped = with_labels(fit, 1 - fit.label)
    assert flipped.vote_counts.rejected > 0.5


def test_few_items_are_not_compared():
    assert (
        at.fit([(e, s, "ab"[(e + s) % 2]) for e in range(19) for s in range(2)], "gpm").notes == []
    )
