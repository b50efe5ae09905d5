"""Messages: in a terminal they name flags, in Python options, whoever raises them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import annotruth as at
from annotruth import errors
from annotruth.errors import did_you_mean, function, messages_for, option, setting

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "annotruth"

# Rooms whose texts are read on one surface only: what is typed, and pages that name commands.
ONE_SURFACE = ("app", "crowdkit", "report", "serve", "paper", "errors.py", "models/prediction.py")

COMMAND = re.compile(r"`annotruth [^`]+`|`?pip install [^`]+")  # whole ones may be named anywhere
FLAG = re.compile(r"(?<![\w-])--[a-z]")
KEYWORD = re.compile(r"\b[a-z_]+=(?:True|False|None|[\[{'\"0-9])")


def texts_of(path: Path) -> Iterator[tuple[int, str]]:
    """Return the texts of a module that are no docstrings, f-strings without what is filled in."""
    tree = ast.parse(path.read_text("utf-8"))
    parts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            words = [each.value for each in node.values if isinstance(each, ast.Constant)]
            parts |= set(map(id, node.values))
            yield node.lineno, "\0".join(map(str, words))
        elif isinstance(node, ast.Constant) and id(node) not in parts:
            yield node.lineno, str(node.value)


def test_messages_of_shared_code_name_neither_flags_nor_keywords():
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith(ONE_SURFACE):
            continue
        found += [
            f"{name}:{line}: {text}"
            for line, text in texts_of(path)
            if FLAG.search(COMMAND.sub("", text)) or (" " in text and KEYWORD.search(text))
        ]
    assert not found, "use errors.option in\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("name", "value", "in_python", "in_a_terminal", "in_the_service"),
    [
        ("memory", None, "memory", "`--memory`", "memory"),
        ("scale", "ordinal", "scale='ordinal'", "`--scale ordinal`", "scale=ordinal"),
        ("sets", True, "sets=True", "`--sets`", "sets=true"),
        ("bins", 20, "bins=20", "`--bins 20`", "bins=20"),
        ("machines", ["a"], "machines=['a']", "`--machine a`", "machines=a"),
        (
            "columns",
            {"item": "my id"},
            "columns={'item': 'my id'}",
            "`--columns 'item=my id'`",
            None,
        ),
        ("categories", [-1, 0], "categories=[-1, 0]", "`--categories=-1,0`", "categories=-1,0"),
        ("n_items", None, "n_items", "`--items`", "n_items"),
    ],
)
def test_an_option_is_named_as_it_is_passed(name, value, in_python, in_a_terminal, in_the_service):
    assert option(name, value) == in_python
    with messages_for("command line"):
        assert option(name, value) == in_a_terminal
    with messages_for("service"):
        assert in_the_service is None or option(name, value) == in_the_service
    assert option(name, value) == in_python


def test_settings_and_functions_are_named_as_they_are_passed():
    assert (setting("tol", 0.1), function("rank")) == ("tol=0.1", "annotruth.rank")
    with messages_for("command line"):
        assert setting("acceleration", False) == "`--set acceleration=false`"
        assert function("rank") == "`annotruth rank`"


def test_messages_are_those_of_python_again_after_an_error():
    with pytest.raises(at.InputError), messages_for("command line"):
        at.fit([("a", "x", 1)], "gmp")
    assert option("scale") == "scale"


def test_the_same_mistake_is_explained_in_both_languages(tmp_path, run):
    path = tmp_path / "labels.csv"
    path.write_text("item,annotator,label\na,x,1\na,x,2\n")
    with pytest.raises(at.InputError, match="duplicates='keep'") as caught:
        at.fit(path)
    assert not FLAG.search(str(caught.value))
    code, _, err = run("fit", path)
    assert code == 2
    assert "`--duplicates keep`" in err
    assert not KEYWORD.search(err)


@pytest.mark.parametrize(
    ("name", "similar"),
    [
        ("dawid_skene", "dawid-skene"),
        ("Robust-GPM", "robust-gpm"),
        ("ordnal", "ordinal"),
        ("xyz", None),
        ("", None),
        (7, None),
        ("\x1b[31m", None),
    ],
)
def test_a_wrong_name_gets_the_similar_one(name, similar):
    names = ["ordinal", "nominal", "dawid-skene", "robust-gpm"]
    assert did_you_mean(name, names) == (f"; did you mean {similar}?" if similar else "")


@pytest.mark.parametrize(
    ("words", "similar"),
    [
        (["fit", "FILE", "--model", "dawid_skene"], "did you mean dawid-skene?"),
        (["fit", "FILE", "--scale", "ordnal"], "did you mean ordinal?"),
        (["fit", "FILE", "--set", "tole=1"], "did you mean tol?"),
        (["fit", "FILE", "--modl", "gpm"], "Did you mean --model?"),
        (["fit", "FILE", "--columns", "item=itm"], "did you mean item?"),
        (["fit", "FILE", "--input-format", "labelstudio"], "did you mean label-studio?"),
        (["fitt", "FILE"], "Did you mean 'fit'?"),
        (["compare", "FILE", "--models", "gpm,majorty"], "did you mean majority?"),
        (["simulate", "--generator", "gausian"], "did you mean gaussian?"),
    ],
)
def test_commands_suggest_what_was_meant(write, refused, words, similar):
    path = write("labels.csv", "item,annotator,label\na,x,1\nb,y,2\n")
    assert similar in refused(*[str(path) if word == "FILE" else word for word in words])


def test_python_suggests_what_was_meant():
    rows = [("a", "x", 1), ("a", "y", 2)]
    for options, name in [
        ({"model": "dawid_skene"}, "dawid-skene"),
        ({"scal": "ordinal"}, "scale"),
    ]:
        with pytest.raises(errors.InputError, match=f"did you mean {name}"):
            at.fit(rows, **options)
