"""Categories, their order and their values."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.observations import Labels, ReadOptions, Scale
from annotruth.observations.build import LabelBuilder
from annotruth.observations.options import ParsedLabels
from annotruth.observations.validate import input_warnings


def scale_of(values, **options) -> Scale:
    rows = {"item": list(range(len(values))), "annotator": ["a"] * len(values), "label": values}
    if isinstance(values, pa.Array):
        return Labels.of(pa.table(rows), **options).scale
    if isinstance(values, pl.Series):
        return Labels.of(pl.DataFrame(rows), **options).scale
    return Labels.of(pd.DataFrame(rows), **options).scale


def from_text(values, **options) -> Scale:
    rows = {"item": ["i"] * len(values), "annotator": ["a"] * len(values), "label": values}
    table = pa.table(rows)
    builder = LabelBuilder(ReadOptions(duplicates="keep", **options))
    builder.add(ParsedLabels(table, from_text=True))
    builder.end_source()
    return builder.finish().scale


@pytest.mark.parametrize(
    ("values", "categories"),
    [
        ([10, 2, 1], [1, 2, 10]),
        ([0, 2, 0], [0, 2]),
        ([3, -2, 0], [-2, 0, 3]),
        ([2.5, 1.0, -0.5], [-0.5, 1.0, 2.5]),
        ([3.0, 1.0, 2.0], [1, 2, 3]),
        ([0.0, -0.0, 2.0], [0, 2]),
        ([-0.0, 0.5], [0.0, 0.5]),
        ([Decimal("2.5"), Decimal(1), Decimal(1)], [1.0, 2.5]),
        (["10", "9", "1"], ["1", "9", "10"]),
        ([" 2", "10", "1.5"], ["1.5", " 2", "10"]),
        (pd.Categorical([3, 1, 2]), [1, 2, 3]),
        (pl.Series([3, 1], dtype=pl.UInt8), [1, 3]),
        (pl.Series(["3", "1"], dtype=pl.Categorical), ["1", "3"]),
        (pa.array([3, 1], pa.float32()), [1, 3]),
    ],
)
def test_numbers_are_ordinal_and_their_own_values(values, categories):
    scale = scale_of(values)
    assert scale.is_ordinal
    found = scale.categories.to_pylist()
    assert found == categories
    assert scale.names == [str(category) for category in categories]  # 1 is not 1.0, nor 0 -0
    assert scale.values.tolist() == [float(category) for category in categories]


@pytest.mark.parametrize(
    ("values", "categories"),
    [
        (["b", "a", "b"], ["a", "b"]),
        (["10", "x", "9"], ["10", "9", "x"]),
        ([True, False, True], [False, True]),
        (pd.array([True, None, False], dtype="boolean"), [False, True]),
        (pd.Categorical(["b", "a"], categories=["b", "a", "c"]), ["a", "b"]),
        ([datetime.date(2024, 2, 1), datetime.date(2024, 1, 1)],
         [datetime.date(2024, 1, 1), datetime.date(2024, 2, 1)]),
    ],
)  # fmt: skip
def test_everything_else_is_nominal_sorted_as_text(values, categories):
    scale = scale_of(values)
    assert scale.kind == "nominal"
    assert scale.categories.to_pylist() == categories
    assert scale.values.tolist() == list(range(1, len(categories) + 1))


def test_timestamps_are_nominal():
    times = pd.to_datetime(["2024-01-02 10:00", "2024-01-01 09:00"])
    assert scale_of(times).categories.to_pylist() == sorted(times.to_pydatetime())
    assert len(scale_of(times.tz_localize("UTC"))) == 2


@pytest.mark.parametrize(
    ("values", "categories"),
    [
        (["2", "1", "10"], [1, 2, 10]),
        (["2.0", "1", "2"], [1, 2]),
        (["0.5", "1"], [0.5, 1.0]),
        (["01", "2"], ["01", "2"]),
        (["x", "1"], ["1", "x"]),
        (["true", "false"], ["false", "true"]),
    ],
)
def test_numbers_in_text_files_are_numbers(values, categories):
    found = from_text(values).categories.to_pylist()
    assert found == categories
    assert [type(value) for value in found] == [type(value) for value in categories]


@pytest.mark.parametrize("make", [list, lambda values: [str(value) for value in values]])
def test_integers_too_large_for_a_double_are_distinct_classes(make):
    values = make([2**53, 2**53 + 1, 2**53 + 2])
    scale = scale_of(values)
    assert scale.kind == "nominal"
    assert scale.categories.to_pylist() == values
    assert len(from_text([str(value) for value in values])) == 3


def test_the_kind_of_scale_can_be_chosen():
    assert scale_of([2, 1], scale="nominal").kind == "nominal"
    words = scale_of(["good", "bad"], scale="ordinal", categories=["bad", "fair", "good"])
    assert words.is_ordinal
    assert words.categories.to_pylist() == ["bad", "fair", "good"]
    assert words.values.tolist() == [1, 2, 3]
    assert scale_of(["good", "bad"], categories=["good", "bad"]).is_ordinal
    nominal = scale_of(["good", "bad"], scale="nominal", categories=["good", "bad"])
    assert nominal.categories.to_pylist() == ["good", "bad"]
    assert scale_of([True, False], scale="ordinal").is_ordinal


@pytest.mark.parametrize(
    "column",
    [
        pd.Categorical(["fair", "bad", None], ["bad", "fair", "good"], ordered=True),
        pl.Series(["fair", "bad", None], dtype=pl.Enum(["bad", "fair", "good"])),
    ],
    ids=["pandas", "polars"],
)
def test_an_ordered_categorical_gives_the_categories(column):
    assert scale_of(column).names == ["bad", "fair", "good"]
    assert scale_of(column).is_ordinal
    assert scale_of(column, categories=["fair", "bad"]).names == ["fair", "bad"]


@pytest.mark.parametrize(
    "categories", [[1, 2, 3, 4, 5], ["5", "4", "3", "2", "1"], [5.0, 1, 2, 3, 4]]
)
def test_listed_numbers_are_sorted_and_may_be_unused(categories):
    for values in ([2, 4], [2.0, 4.0], ["2", "4"], ["4.0", "02"]):
        labels = Labels.of([(i, "a", value) for i, value in enumerate(values)],
                           categories=categories)  # fmt: skip
        assert labels.scale.categories.to_pylist() == [1, 2, 3, 4, 5]
        assert sorted(labels.cell_category) == [1, 3]
        assert labels.n_categories == 5


def test_listed_numbers_and_text_keep_the_given_order():
    assert scale_of(["no", "2"], categories=["no", 1, 2]).names == ["no", "1", "2"]


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        (["x", "y"], {"categories": ["x", "z"]}, r"label 'y' is not among the categories x, z"),
        ([1, 6], {"categories": [1, 2]}, r"label 6 is not among the categories 1, 2: list every"),
        (["x", "y"], {"categories": [1, 2]}, "label 'x' is not among"),
        (["x"], {"categories": ["x", "y", "x"]}, "categories name x twice"),
        ([1], {"categories": [1, "1.0"]}, "categories name 1, 1.0 twice"),
        ([1], {"categories": []}, "at least one category"),
        ([1], {"categories": "abc"}, "must be a list"),
        (["bad", "good"], {"categories": {"bad", "good"}}, "must be a list"),
        (["x"], {"categories": ["x", None]}, "empty one"),
        (["x", "y"], {"scale": "ordinal"}, r"needs an order.*found: x, y"),
        (list("abcdefghijkl"), {"scale": "ordinal"}, r"found: a, .*, j and 2 more"),
        (["x"], {"scale": "interval"}, "unknown scale 'interval': choose auto, nominal or ordinal"),
        ([1.0, float("inf")], {}, "a label is infinite"),
        (["1", "inf"], {}, "a label is infinite"),
        ([-1.7e308, 1.0], {}, r"label -1.7e\+308 is too large to compute with: scale the labels"),
        ([0.0, 1e-300], {}, "two labels are only 1e-300 apart"),
        ([10**30, 1], {"categories": [10**30]}, "label '1' is not among"),
    ],
)
def test_bad_scales_are_refused(values, options, message):
    with pytest.raises(InputError, match=message):
        scale_of(values, **options)


def test_scales_of_listed_categories():
    assert Scale.ordinal([3, 1, 2]).values.tolist() == [1, 2, 3]
    assert Scale.ordinal(["low", "high"]).names == ["low", "high"]
    assert Scale.nominal(["dog", "cat"]).kind == "nominal"
    assert len(Scale.nominal(np.array(["dog", "cat"]))) == 2


@pytest.mark.parametrize(
    ("scale", "values", "codes"),
    [
        (Scale.ordinal([1, 2, 3]), pa.array(["2", " 3", "1.0"]), [1, 2, 0]),
        (Scale.ordinal([1, 2, 3]), pa.array([2.0, 2.5, 9.0]), [1, -1, -1]),
        (Scale.ordinal([1, 2, 3]), pa.array(["2", "x"]), [1, -1]),
        (Scale.ordinal(["1", "2"]), pa.array([2, 1]), [1, 0]),
        (Scale.nominal(["b", "a"]), pa.array(["a", "b", "c"]), [1, 0, -1]),
        (Scale.nominal(["b", "a"]), pa.array(["a", "b"]).dictionary_encode(), [1, 0]),
        (Scale.nominal(["b", "a"]), pa.array([1, 2]), [-1, -1]),
        (Scale.nominal([False, True]), pa.array(["True", "true", "x"]), [1, 1, -1]),
    ],
)
def test_numbers_match_by_value_and_text_exactly(scale, values, codes):
    assert scale.codes_of(values).tolist() == codes


@pytest.mark.parametrize("scale", ["auto", "nominal"])
@pytest.mark.parametrize("codes", [["007", "7"], ["010", "10"], ["-01", "-1"], ["00", "0", "1.5"]])
def test_codes_with_leading_zeros_are_not_merged_with_numbers(read, scale, codes):
    rows = [(f"i{n}", f"a{k}", code) for n in range(3) for k, code in enumerate(codes)]
    for labels in (
        read("item,annotator,label\n" + "".join(f"{i},{a},{x}\n" for i, a, x in rows), scale=scale),
        Labels.of(rows, scale=scale),
    ):
        assert labels.scale.names == sorted(codes)
        assert labels.scale.kind == "nominal"
        assert labels.read_as == (
            f"labels as text, because {codes[0]} is not how a number is written"
        )
        assert not list(input_warnings(labels.scale))
        again = labels.scale.codes_of(pa.array(codes))
        assert [labels.scale.names[code] for code in again] == codes


def test_zeros_of_a_slider_are_numbers_by_any_route():
    rows = [(f"i{n}", f"a{k}", str((5 * n + k) % 40)) for n in range(20) for k in range(3)]
    rows += [("i0", "z", "00"), ("i1", "z", "05")]
    whole = Labels.of(rows)
    assert whole.scale.kind == "ordinal"
    assert not {"00", "05"} & set(whole.scale.names)
    fit = at.update(at.fit(Labels.of(rows[:-2]), "mean"), rows[-2:])
    assert fit.data.scale.names == whole.scale.names
    assert fit.expectation.tolist() == at.fit(whole, "mean").expectation.tolist()
    assert {"00", "0", "05", "5"} <= set(Labels.of(rows, scale="nominal").scale.names)


def test_codes_of_other_tables_are_said_too(read):
    labels = read("item,ann,bob,cy\n" + "".join(f"{n},007,7,8\n" for n in range(5)), "matrix.csv")
    assert labels.scale.names == ["007", "7", "8"]
    assert "labels as text, because 007" in labels.read_as
    matrix = pd.DataFrame({"ann": ["007", "7"], "bob": ["7", "8"]}, index=["x", "y"])
    assert "labels as text, because 007" in Labels.of(matrix).read_as


def test_text_with_other_zeros_is_a_number():
    labels = Labels.of([("a", "x", "0.50"), ("a", "y", "0"), ("b", "x", "10")])
    assert labels.scale.values.tolist() == [0.0, 0.5, 10.0]
