"""Settings of connections."""

import pytest

from annotruth.errors import InputError
from annotruth.serve.hooks.platforms import (
    can_poll,
    check_settings,
    parse_settings,
    public_settings,
)

API = {"url": "https://labels.example.org", "project": 3, "token": "s3cret"}


def test_good_settings():
    for kind, settings in (
        ("label-studio", {}),
        ("label-studio", {**API, "question": "sentiment", "predictions": True}),
        ("argilla", {"dataset": "reviews"}),
        ("cvat", API),
        ("generic", {}),
    ):
        assert check_settings(kind, settings) == settings


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        ("doccano", {}, "there is no kind 'doccano'"),
        ("potato", {"dataset": "x"}, "connections of potato have no setting 'dataset'"),
        ("label-studio", {"url": API["url"]}, "has no project: polling needs url, project, token"),
        ("label-studio", {"predictions": True}, "predictions need url, project, token"),
        ("label-studio", {**API, "predictions": "yes"}, "give true or false"),
        ("label-studio", {**API, "project": "3"}, "give the number"),
        ("label-studio", {**API, "project": True}, "give the number"),
        ("label-studio", {**API, "url": "file:///etc/passwd"}, "is not the address"),
        ("label-studio", {"question": ""}, "give a text"),
        ("label-studio", {"question": "a\nb"}, "give a text"),
        ("label-studio", {"question": ["a"]}, "give a text"),
    ],
)
def test_bad_settings(kind, settings, message):
    with pytest.raises(InputError, match=message):
        check_settings(kind, settings)


def test_tokens_are_not_shown():
    assert public_settings(API) == {**API, "token": "***"}
    with pytest.raises(InputError) as caught:
        check_settings("label-studio", {**API, "token": "s3cret\n"})
    assert "s3cret" not in str(caught.value)


def test_what_polling_needs():
    assert can_poll(API)
    assert not can_poll({"question": "x"})


def test_settings_of_a_form():
    form = {"kind": "label-studio", "csrf": "x", "question": " ", "dataset": "", "secret": ""}
    assert parse_settings("label-studio", form) == {}
    entered = {**form, **API, "project": " 3 ", "predictions": "true"}
    assert parse_settings("label-studio", entered) == {**API, "predictions": True}
    for wrong, message in (
        ({"project": "three"}, "give the number"),
        ({"project": "9" * 5000}, "give the number"),
        ({"dataset": "reviews"}, "have no setting 'dataset'"),
    ):
        with pytest.raises(InputError, match=message):
            parse_settings("label-studio", {**entered, **wrong})
