"""Which columns are taken for what."""

import pytest

from annotruth.errors import InputError
from annotruth.observations.pairs.columns import find_pair_columns

SIDES = ["left", "right", "annotator", "winner"]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (SIDES, SIDES),
        (["worker", "left", "right", "label"], ["left", "right", "worker", "label"]),
        (
            ["question_id", "model_a", "model_b", "winner", "judge", "conversation_a"],
            ["model_a", "model_b", "judge", "winner"],
        ),
        (
            ["response_a", "response_b", "model_a", "model_b", "winner", "user"],
            ["model_a", "model_b", "user", "winner"],
        ),
        (
            ["Image 1", "Image 2", "rater", "preferred"],
            ["Image 1", "Image 2", "rater", "preferred"],
        ),
        (["a", "b", "voter", "outcome"], ["a", "b", "voter", "outcome"]),
        (
            ["left_item", "right_item", "subject", "vote"],
            ["left_item", "right_item", "subject", "vote"],
        ),
    ],
)
def test_sides_are_found_by_name(names, expected):
    columns = find_pair_columns(names)
    assert columns.shape == "sides"
    assert [columns.by_role[role] for role in SIDES] == expected


@pytest.mark.parametrize(
    ("names", "shape"),
    [
        (["winner", "loser", "annotator"], "winners"),
        (["annotator", "item", "rank"], "ranks"),
        (["annotator", "rank_1", "rank_2", "rank_3"], "rank columns"),
        (["annotator", "ranking"], "ranking"),
    ],
)
def test_shapes_are_found_by_name(names, shape):
    assert find_pair_columns(names).shape == shape


def test_rank_columns_are_in_order_of_their_numbers():
    columns = find_pair_columns(["rank 10", "annotator", "rank 2", "rank 1"])
    assert columns.ranked == ("rank 1", "rank 2", "rank 10")


@pytest.mark.parametrize("name", ["prompt", "scene", "context", "question_id"])
def test_contexts_are_taken_and_said(name):
    columns = find_pair_columns([*SIDES, name])
    assert columns.by_role["context"] == name
    assert columns.read_as == ("" if name == "context" else f"context = {name}")


def test_of_two_columns_that_could_be_the_context_none_is_taken():
    assert "context" not in find_pair_columns([*SIDES, "prompt", "scene"]).by_role
    given = {"context": "scene"}
    assert find_pair_columns([*SIDES, "prompt", "scene"], given).by_role["context"] == "scene"


def test_all_missing_columns_are_asked_for_at_once():
    with pytest.raises(InputError) as error:
        find_pair_columns(["foo", "bar"])
    assert (
        "columns={'left': 'NAME', 'right': 'NAME', 'annotator': 'NAME', 'winner': 'NAME'}"
        in str(error.value)
    )
    assert "found: foo, bar" in str(error.value)


def test_a_missing_annotator_may_be_none():
    names = ["model_a", "model_b", "winner"]
    with pytest.raises(InputError, match=r"columns={'annotator': 'none'}"):
        find_pair_columns(names)
    columns = find_pair_columns(names, {"annotator": "none"})
    assert "annotator" not in columns.by_role
    assert "no annotators: all comparisons count as one annotator's" in columns.read_as
    assert find_pair_columns([*names, "none"], {"annotator": "none"}).by_role["annotator"] == "none"


def test_a_missing_winner_does_not():
    with pytest.raises(InputError) as error:
        find_pair_columns(["left", "right"])
    assert "annotator=none" not in str(error.value)


def test_labels_are_refused_with_the_command_for_them():
    with pytest.raises(InputError, match=r"these are labels \(item = task.*annotruth.fit"):
        find_pair_columns(["task", "worker", "label"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"lft": "left"},
            "unknown role 'lft': the roles are left, right, annotator, winner, context",
        ),
        ({"left": "nothing"}, "no column 'nothing'"),
        ({"context": "nothing"}, "no column 'nothing'"),
        ({"winner": "left"}, "cannot be the left and the winner at once"),
    ],
)
def test_bad_options_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        find_pair_columns(SIDES, given)


def test_two_pairs_of_columns_that_could_be_the_sides_are_not_guessed():
    with pytest.raises(InputError, match="no column for the left and the right"):
        find_pair_columns(["text1", "text2", "image1", "image2", "rater", "winner"])


def test_long_and_hostile_names_are_shown_on_one_line():
    with pytest.raises(InputError) as error:
        find_pair_columns(["x\x1b[31m" * 40, "y\nz"])
    assert "\n" not in str(error.value)
    assert "\x1b" not in str(error.value)
