"""NA and the like are missing labels in text, in every shape, and text where missing values have a type."""

import pandas as pd
import pytest

import annotruth as at

MATRIX = "item,x,y,z\na,cat,dog,{na}\nb,cat,cat,dog\nc,dog,{na},dog\nd,cat,cat,cat\ne,dog,dog,dog\nf,cat,dog,cat\n"
_ROWS = [line.split(",") for line in MATRIX.splitlines()]
WITHOUT_NAMES = "".join(
    f"{item},{annotator},{label}\n"
    for item, *labels in _ROWS[1:]
    for annotator, label in zip(_ROWS[0][1:], labels, strict=True)
)
LONG = f"item,annotator,label\n{WITHOUT_NAMES}"
SHAPES = {"long": LONG, "matrix": MATRIX, "triples": WITHOUT_NAMES}
SAID = "2 cells of NA or the like mean no label; if it is a category, name it among all"


@pytest.fixture(params=SHAPES)
def shaped(request, tmp_path):
    def shaped(na: str):
        path = tmp_path / "labels.csv"
        path.write_text(SHAPES[request.param].format(na=na))
        return path

    return shaped


@pytest.mark.parametrize("na", ["NA", "n/a", "#N/A", "<NA>", "null", "NaT", " NA "])
def test_it_is_no_label_and_said(shaped, na):
    labels = at.read_labels(shaped(na))
    assert labels.scale.names == ["cat", "dog"]
    assert labels.n_labels == 16
    assert SAID in labels.read_as


def test_numbers_beside_it_stay_numbers(shaped):
    path = shaped("NA")
    path.write_text(path.read_text().replace("cat", "1").replace("dog", "2"))
    labels = at.read_labels(path, scale="ordinal")
    assert labels.scale.categories.to_pylist() == [1, 2]


@pytest.mark.parametrize("empty", ["", "nan"])
def test_an_empty_cell_is_no_label_and_not_called_otherwise(shaped, empty):
    labels = at.read_labels(shaped(empty))
    assert labels.n_labels == 16
    assert "NA or the like" not in labels.read_as


def test_it_is_a_category_if_the_caller_lists_it(shaped):
    labels = at.read_labels(shaped("NA"), categories=["cat", "dog", "NA"])
    assert labels.n_labels == 18
    assert labels.scale.names == ["cat", "dog", "NA"]
    assert "NA or the like" not in labels.read_as


@pytest.mark.parametrize("name", ["none", "None", "n.a.", "NAN0", "Nauru"])
def test_other_words_are_categories(shaped, name):
    labels = at.read_labels(shaped(name))
    assert labels.n_labels == 18
    assert name in labels.scale.names


def test_labels_on_disk_and_in_several_files(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(LONG.format(na="NA"))
    again = tmp_path / "more.csv"
    again.write_text("item,annotator,label\ng,x,cat\ng,y,NA\n")
    on_disk = at.read_labels(path, memory="20MB")
    assert on_disk.n_labels == 16
    assert SAID in on_disk.read_as
    both = at.read_labels([path, again])
    assert both.n_labels == 17
    assert both.read_as.startswith("2 files, 3 cells of NA or the like mean no label")


def test_sets_of_labels(read):
    labels = read(LONG.format(na="NA").replace("dog", "cat|dog"), separator="|")
    assert labels.n_labels == 16
    assert SAID in labels.read_as


def test_a_category_of_the_fit_is_one_in_an_update(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(LONG.format(na="NA"))
    more = tmp_path / "more.csv"
    more.write_text("item,annotator,label\ng,x,cat\ng,y,NA\n")
    listed = at.fit(path, "majority", categories=["cat", "dog", "NA"])
    assert at.update(listed, more).data.n_labels == 20
    assert at.update(at.fit(path, "majority"), more).data.n_labels == 17


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("as_matrix", [False, True])
def test_text_in_data_with_types_is_a_category_with_a_warning(as_matrix):
    rows = [line.split(",") for line in LONG.format(na="NA").splitlines()]
    frame = pd.DataFrame(rows[1:], columns=rows[0])
    data = frame.pivot(index="item", columns="annotator", values="label") if as_matrix else frame
    with pytest.warns(at.AnnotruthWarning, match="'NA' is taken for a category"):
        fit = at.fit(data, "majority")
    assert fit.data.scale.names == ["NA", "cat", "dog"]
