"""Warnings about labels that can be read, but may not be what was meant."""

import warnings

import pytest

import annotruth as at
from annotruth.observations import Scale
from annotruth.observations.validate import input_warnings


def warnings_of(*categories):
    return " | ".join(input_warnings(Scale.nominal(list(categories))))


@pytest.mark.parametrize("other", ["cat ", " cat", "Cat", "CAT", "\u00a0cat"])
def test_two_spellings_of_one_category_give_a_warning(other):
    assert "differ only in spaces, capitals or Unicode form" in warnings_of("cat", other, "dog")


def test_text_among_numbers_gives_a_warning():
    assert "numbers except 'None', 'null'" in warnings_of("1", "2", "None", "null")
    assert "read as text" in warnings_of("1", "2.5", "n/a")


@pytest.mark.parametrize("name", ["NA", "n/a", "#N/A", "<NA>", "null", " NULL", "NaT"])
def test_a_mark_of_missing_values_as_a_category_gives_a_warning(name):
    assert f"{name!r} is taken for a category: leave the" in warnings_of("cat", name, "dog")


def test_decimal_commas_give_a_warning():
    assert "such as '1,5' were read as text: if they are numbers" in warnings_of("1,5", "2", "2,5")


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
def test_plain_text_gives_no_warning(categories):
    assert warnings_of(*categories) == ""


ROWS = [("a", "x", "cat"), ("a", "y", "Cat"), ("b", "x", "cat"), ("b", "y", "cat")]


def test_a_fit_gives_the_warnings():
    with pytest.warns(at.AnnotruthWarning, match="'Cat' and 'cat' differ"):
        at.fit(ROWS, "majority")


@pytest.mark.parametrize("said", [{"scale": "nominal"}, {"categories": ["cat", "Cat"]}])
def test_no_warnings_where_scale_or_categories_are_given(said):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        at.fit(ROWS, "majority", **said)
