"""Read options: one object, spelled once, taken by everything that reads labels."""

from dataclasses import fields

import numpy as np
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.models.registry import MODELS, get_model
from annotruth.observations.options import ReadOptions

CSV = "film,user,stars\n" + "".join(
    f"{film},{user},{1 + (film * user) % 3}\n" for film in range(1, 9) for user in range(1, 6)
)
COLUMNS = {"item": "film", "annotator": "user", "label": "stars"}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text(CSV)
    return path


def test_no_option_of_a_model_is_a_read_option():
    for name in MODELS:
        options = {field.name for field in fields(get_model(name))}
        assert not options & {*ReadOptions.names(), "read", "gold", "annotator_prior", "progress"}


def test_fit_separates_read_options_from_options_of_the_model(path):
    by_keyword = at.fit(path, "gpm", columns=COLUMNS, scale="nominal", tol=1e-6)
    assert by_keyword.settings["tol"] == 1e-6
    assert not by_keyword.data.scale.is_ordinal
    read = ReadOptions(columns=COLUMNS, scale="nominal")
    as_object = at.fit(path, "gpm", read=read, tol=1e-6)
    np.testing.assert_array_equal(as_object.reliability, by_keyword.reliability)


READERS = {
    "fit": lambda path, **options: at.fit(path, "gpm", **options).data,
    "compare": lambda path, **options: at.compare(path, ["majority"], **options).data,
    "next_labels": lambda path, **options: at.next_labels(path, **options).fit.data,
    "read_labels": at.read_labels,
}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_whatever_reads_labels_takes_the_same_options(reader, path):
    assert reader(path, columns=COLUMNS, categories=[1, 2, 3, 4]).n_categories == 4
    assert reader(path, read=ReadOptions(columns=COLUMNS, bins=[0, 2, 4])).n_categories == 2
    with pytest.raises(InputError, match="scale is given beside ReadOptions"):
        reader(path, read=ReadOptions(columns=COLUMNS), scale="nominal")
    with pytest.raises(InputError, match="dict was given: ReadOptions is needed"):
        reader(path, read={"columns": COLUMNS})
    with pytest.raises(InputError, match="option 'colour'"):
        reader(path, columns=COLUMNS, colour="red")


def test_plans_and_updates_take_read_options(path, write):
    read = ReadOptions(columns=COLUMNS)
    assert at.plan_labels(path, "accuracy", 0.5, read=read).target == "accuracy"
    fit = at.fit(path, "gpm", read=read)
    more = write("more.csv", "film,user,stars\n1,1,3\n")
    assert at.update(fit, more, columns=COLUMNS, duplicates="last").data.n_labels == 40
    for option in ({"scale": "nominal"}, {"categories": [1, 2]}, {"bins": 2}, {"memory": "1GB"}):
        (name,) = option
        with pytest.raises(InputError, match=f"{name} is that of the fit: leave it out"):
            at.update(fit, more, columns=COLUMNS, **option)


@pytest.mark.parametrize(
    "reader", [READERS["compare"], READERS["next_labels"]], ids=["compare", "next_labels"]
)
def test_memory_is_for_fit_alone(reader, path):
    with pytest.raises(InputError, match="memory"):
        reader(path, columns=COLUMNS, memory="1GB")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": "odd"}, "unknown scale 'odd': choose auto, nominal or ordinal"),
        ({"duplicates": "first"}, "unknown duplicates 'first': choose refuse, keep or last"),
        ({"bins": 5, "scale": "nominal"}, "bins make an ordinal scale"),
        ({"bins": 5, "categories": [1, 2]}, "bins make an ordinal scale"),
    ],
)
def test_bad_options_are_refused_when_they_are_made(options, message):
    with pytest.raises(InputError, match=message):
        ReadOptions(**options)


def test_changed_names_the_options_that_were_set():
    assert ReadOptions().changed() == {}
    assert ReadOptions(columns={}, scale="auto").changed() == {}
    set_options = ReadOptions(categories=np.array([1, 2]), question="mood").changed()
    assert list(set_options) == ["categories", "question"]
