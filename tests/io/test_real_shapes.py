"""Files in the shapes of real exports are read right, or refused in words that say why.

``real_shapes/shapes.toml`` says what each file holds by the documentation of its platform.
"""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import annotruth as at

FOLDER = Path(__file__).parent / "real_shapes"
_TABLE = tomllib.loads((FOLDER / "shapes.toml").read_text(encoding="utf-8"))
SHAPES, REFUSED = _TABLE["shape"], _TABLE["refused"]
DOCS = Path(__file__).parents[2] / "docs" / "formats.md"

# Shapes that are not read as they should be yet, by the reason.
OPEN: dict[str, list[str]] = {}
_REASONS = {name: reason for reason, names in OPEN.items() for name in names}


def _marked(entries: list[dict[str, Any]]) -> list[Any]:
    return [
        pytest.param(
            entry,
            id=entry["file"],
            marks=[pytest.mark.xfail(reason=_REASONS[entry["file"]], strict=False)]
            if entry["file"] in _REASONS
            else [],
        )
        for entry in entries
    ]


def _file(entry: dict[str, Any]) -> str:
    return str(entry["file"])


def _normal(value: Any) -> Any:
    """Return an id or a label as text, so that 1, 1.0 and "1" are equal; a list as a set."""
    if isinstance(value, str) and value.startswith("["):
        value = json.loads(value)
    if isinstance(value, list):
        return frozenset(map(_normal, value))
    try:
        return f"{float(value):g}"
    except (TypeError, ValueError):
        return str(value)


def _rows(data: Any) -> set[tuple[Any, ...]]:
    width = 4 if data.kind == "comparisons" else 3
    rows = data.to_arrow().to_pylist()
    return {tuple(map(_normal, [*row.values()][:width])) for row in rows}


def _kind(data: Any) -> str:
    if data.kind != "labels":
        return "pairs" if data.kind == "comparisons" else "sets"
    return "scale" if data.scale.kind == "ordinal" else "classes"


def _check(data: Any, shape: dict[str, Any]) -> None:
    counts = (data.n_items, data.n_annotators, data.n_labels)
    assert counts == (shape["items"], shape["annotators"], shape["labels"])
    assert _kind(data) == shape["kind"]
    assert {tuple(map(_normal, row)) for row in shape["says"]} <= _rows(data)
    if "classes" in shape:
        given = data.scale.set_labels if shape["kind"] == "sets" else data.scale.categories
        assert set(map(_normal, given.to_pylist())) == set(map(_normal, shape["classes"]))


def _keywords(options: list[str]) -> dict[str, Any]:
    """Return the options of the command line as those of Python."""
    pairs = zip(options[::2], options[1::2], strict=True)
    named = {name.removeprefix("--").replace("-", "_"): value for name, value in pairs}
    if "columns" in named:
        named["columns"] = dict(pair.split("=", 1) for pair in named["columns"].split(","))
    return named


def _reader(entry: dict[str, Any]) -> Any:
    is_pairs = entry.get("kind") == "pairs" or entry.get("command") == "rank"
    return at.read_comparisons if is_pairs else at.read_labels


@pytest.mark.parametrize("shape", _marked(SHAPES))
def test_a_shape_is_read_right(shape, run, tmp_path):
    path, options = FOLDER / shape["file"], shape.get("options", [])
    _check(_reader(shape)(path, **_keywords(options)), shape)
    command = "rank" if shape["kind"] == "pairs" else "fit"
    code, out, err = run(command, path, *options, "--save", tmp_path / "fit", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert (found["n_items"], found["n_annotators"]) == (shape["items"], shape["annotators"])
    _check(at.load(tmp_path / "fit").data, shape)


@pytest.mark.parametrize("shape", _marked([shape for shape in SHAPES if "options" in shape]))
def test_a_shape_that_needs_an_option_is_refused_without_it(shape, run):
    assert _refusal({**shape, "options": []}, FOLDER / shape["file"])
    code, out, err = run("fit", FOLDER / shape["file"])
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert shape["options"][0] in err, "the message names the option"


@pytest.mark.parametrize("entry", _marked(REFUSED))
def test_a_file_without_labels_of_whole_items_is_refused(entry, run):
    path, options = FOLDER / entry["file"], entry.get("options", [])
    with pytest.raises(at.InputError) as caught:
        _reader(entry)(path, **_keywords(options))
    code, out, err = run(entry.get("command", "fit"), path, *options)
    assert (code, out, err.count("\n")) == (2, "", 1)
    for words in entry["words"]:
        assert words in str(caught.value)
        assert words in err


def test_every_file_is_in_the_table():
    listed = {Path(entry["file"]).parts[0] for entry in (*SHAPES, *REFUSED)}
    assert listed == {path.name for path in FOLDER.iterdir()} - {"shapes.toml"}


def test_the_documentation_says_how_many_shapes_need_no_option():
    without = [s for s in SHAPES if "options" not in s and s["file"] not in _REASONS]
    said = f"{len(without)} of {len(SHAPES)} shapes of real exports are read without a flag"
    assert 6 * len(without) >= 5 * len(SHAPES)
    assert said in " ".join(DOCS.read_text(encoding="utf-8").split())


def _refusal(entry: dict[str, Any], path: Path) -> str:
    """Return why a file is refused; an empty text if it is read."""
    try:
        _reader(entry)(path, **_keywords(entry.get("options", [])))
    except at.InputError as error:
        return str(error)
    return ""


def _damaged(document: Any) -> Iterator[Any]:
    """Return a document with one value replaced by another kind, for values at many places."""
    places: list[tuple[Any, Any]] = []

    def find(value: Any) -> None:
        pairs = value.items() if isinstance(value, dict) else enumerate(value[:2])
        for key, inner in list(pairs):
            places.append((value, key))
            if isinstance(inner, dict | list):
                find(inner)

    find(document)
    for number, (holder, key) in enumerate(places[:: max(1, len(places) // 12)]):
        before = holder[key]
        for wrong in (None, [[1]], {"a": [1]}, "é", 7)[number % 2 :: 2]:
            holder[key] = wrong
            yield document
        holder[key] = before


@pytest.mark.parametrize(
    "entry", [entry for entry in (*SHAPES, *REFUSED) if ".json" in entry["file"]], ids=_file
)
def test_damaged_values_are_read_or_refused_in_one_line(entry, tmp_path):
    path, text = tmp_path / Path(entry["file"]).name, (FOLDER / entry["file"]).read_text()
    is_lines = text.startswith("{") and text.count("\n") > 1 and text[1] != "\n"
    document = [json.loads(line) for line in text.splitlines()] if is_lines else json.loads(text)
    for damaged in _damaged(document):
        path.write_text("\n".join(map(json.dumps, damaged)) if is_lines else json.dumps(damaged))
        assert "\n" not in _refusal(entry, path)


@pytest.mark.parametrize(
    "entry",
    [e for e in (*SHAPES, *REFUSED) if Path(e["file"]).suffix in (".csv", ".tsv", ".txt")],
    ids=_file,
)
def test_rows_that_are_cut_off_are_read_or_refused_in_one_line(entry, tmp_path):
    content = (FOLDER / entry["file"]).read_bytes()
    for size in (len(content) // 7, len(content) // 2, len(content) - 3):
        path = tmp_path / entry["file"]
        path.write_bytes(content[:size])
        assert "\n" not in _refusal(entry, path)
