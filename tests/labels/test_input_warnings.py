"""Labels that can be read but may be meant otherwise."""

import warnings

import pytest

import annotruth as at
from annotruth.labels import Scale
from annotruth.labels.input_warnings import doubts


def doubted(*categories):
    return " | ".join(doubts(Scale.nominal(list(categories))))


@pytest.mark.parametrize("other", ["cat ", " cat", "Cat", "CAT", "\u00a0cat"])
def test_two_spellings_of_one_category(other):
    assert "differ in blanks or capitals alone" in doubted("cat", other, "dog")


def test_a_word_among_numbers():
    assert "numbers but for 'None', 'null'" in doubted("1", "2", "None", "null")
    assert "taken for words" in doubted("1", "2.5", "n/a")


def test_numbers_with_a_comma():
    assert "such as '1,5' were taken for words: if they are numbers" in doubted("1,5", "2", "2,5")


@pytest.mark.parametrize(
    "categories",
    [
        ("cat", "dog"),
        ("cat", "cat dog"),
        ("none", "some", "all"),
        ("1", "none"),  # one number is no scale
        ("0", "1", "a", "b", "c", "d", "e", "f"),  # digits of a longer alphabet
        ("yes, of course", "no"),
        ("1,5 kg", "2,5 kg"),
    ],
)
def test_plain_words_raise_no_doubt(categories):
    assert doubted(*categories) == ""


ROWS = [("a", "x", "cat"), ("a", "y", "Cat"), ("b", "x", "cat"), ("b", "y", "cat")]


def test_a_fit_warns_of_them():
    with pytest.warns(at.AnnotruthWarning, match="'Cat' and 'cat' differ"):
        at.fit(ROWS, "majority")


@pytest.mark.parametrize("said", [{"scale": "nominal"}, {"categories": ["cat", "Cat"]}])
def test_whoever_says_what_the_labels_are_is_not_asked(said):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        at.fit(ROWS, "majority", **said)
