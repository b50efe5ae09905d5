"""The code base as a whole: sizes, unique class names, and the glossary.

Every failure lists the offending places. To retire a word, add it to `RETIRED_WORDS`.
"""

import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "annotruth"

MAX_FILES_PER_DIRECTORY = 20
# Files of one subject each, of some 300 lines, count more than one long file on several subjects.
# Compiled kernels are not seen.
MAX_FILES_PER_FIT = 81

# Classes named after those of crowd-kit, so that its programs change only their import.
MIRRORED_CLASSES = PACKAGE / "crowdkit"


class RetiredWord(NamedTuple):
    """A word that the glossary replaces."""

    say: str  # what to use instead
    # Patterns: no word of an identifier may match the first in full, where identifiers are split at
    # underscores and capitals and compared in lower case; the second may not occur in texts, in any case.
    identifier: str = ""
    phrase: str = ""
    # the paths it concerns, relative to the repository, and those where it is the right word
    under: tuple[str, ...] = ("",)
    allowed_under: tuple[str, ...] = ()

    def concerns(self, file: str) -> bool:
        return file.startswith(self.under) and not file.startswith(self.allowed_under)


_COUNTED = (
    r"(?:\d+(?:[.,]\d+)*%?|one|two|three|four|five|ten|labels?|votes?|rows?|columns?|entry|entries|lines?"
    r"|files?|bytes|ms|seconds|minutes|arrays?|numbers?|values?|weights?|figures?|annotators|people"
    r"|items|distances?|distributions?|draws?|jobs?|passes|methods|points?|cells?|opinions?)"
)
_UNIT = (
    r"(?:label|item|annotator|class|category|cell|pair|row|column|vote|model|condition|measure"
    r"|backend|core|device|fit|pass|step|iteration|second|minute|batch|person|task|worker|process"
    r"|partition|page|place|run|rating|film|picture|question|thread|worker|file|folder)"
)

RETIRED_WORDS = (
    RetiredWord("run_em, iterate", r"climb(s|ed|ing|er)?", r"\bclimb(s|ed|ing|er)?\b"),
    RetiredWord("the objective's name", "watched", r"\bwatched\b"),
    RetiredWord("extrapolate", r"leap(s|ed|ing|t)?", r"\bleap(s|ed|ing|t)?\b"),
    RetiredWord("SQUAREM's terms: extrapolation, starting point, end point", r"depart(s|ed|ure)?"),
    RetiredWord("SQUAREM's terms: extrapolation, starting point, end point", r"arriv(e|es|ed|al)"),
    RetiredWord("unsafeguarded step", r"bold(ly)?", r"\bboldly\b"),
    RetiredWord("safeguarded step", r"cautious(ly)?", r"\bcautious(ly)?\b"),
    RetiredWord("basin, local optimum", r"hills?", r"\bhills?\b"),
    RetiredWord(
        "pass (over labels), grid (of settings)", r"sweeps?|swept", r"\bsweeps?\b|\bswept\b"
    ),
    RetiredWord("LabelSummary, summary", r"tall(y|ies)", r"\btall(y|ies)\b"),
    RetiredWord("AppendedRows", "grown"),
    RetiredWord("LabelBuilder, collect", r"gathering"),
    RetiredWord("LazyTable, partitions", r"pieces?"),
    RetiredWord("response strategy", r"ways?", r"\bways? of (answering|labelling|labeling)\b"),
    RetiredWord("leave-one-out, evaluated", "judged", r"\bjudged\b"),
    RetiredWord("prior, pseudo-counts", "presumed", r"\bpresumed\b"),
    RetiredWord("new annotators", r"newcomers?", r"\bnewcomers?\b"),
    RetiredWord("added to the active set", "", r"\blets? in\b"),
    RetiredWord("refitted, updated", "touched", r"\btouched\b"),
    RetiredWord("converged; needs no more labels; known truth", r"(un)?settled", r"\bsettled\b"),
    RetiredWord("temporary, atomic write", "aside", r"(?<![<\w/.])aside\b(?! ?[>{.])"),
    RetiredWord("input warnings", r"doubts?", r"\bdoubts\b"),
    RetiredWord("what it is: message, result, labels", "told", r"\btold\b"),
    RetiredWord("simd8, simd32", "lanes", r"\blanes\b"),
    RetiredWord(
        "simd32",
        "wide",
        under=("src/annotruth/kernels", "src/annotruth/engines", "src/annotruth/models"),
    ),
    RetiredWord("prefetch", "nearer"),
    RetiredWord("e_step", "weigh"),
    RetiredWord("m_step", "renew"),
    # A JSON object of an export, or one line of a chart's data, is a record.
    RetiredWord(
        "annotator_prior; to_dict; run",
        "record",
        allowed_under=("src/annotruth/io", "src/annotruth/report/charts", "tests/io"),
    ),
    # Platforms call what workers submit answers, and crowd-kit its arguments. A set of labels that an
    # annotator gives is an answer.
    RetiredWord(
        "predict_proba, labels, responses",
        "answers",
        r"\bthe(ir)? answers\b",
        allowed_under=(
            *("src/annotruth/io/formats", "tests/io/formats", "src/annotruth/crowdkit"),
            *(
                "src/annotruth/sets",
                "src/annotruth/report/sets.py",
                "src/annotruth/kernels/native/sets_presence.cpp",
                "src/annotruth/kernels/reference/sets",
                "src/annotruth/observations/sets.py",
            ),
            *("src/annotruth/simulate/sets.py", "tests/sets", "benchmarks/sets"),
            *("src/annotruth/models/fits/accessors.py", "src/annotruth/report/sets.py"),
        ),
    ),
    RetiredWord("informs, shows, says, returns", "", r"\btells\b"),
    RetiredWord("stands for, represents", "", r"\bspeaks? for\b"),
    RetiredWord("in short", "", r"\bin a word\b"),
    RetiredWord(  # crowd-kit has a function normalize_rows
        "normalise",
        r"(un)?normaliz\w+",
        r"\b(un)?normaliz",
        allowed_under=("src/annotruth/crowdkit", "tests/crowdkit"),
    ),
    RetiredWord("3 labels per item", "", rf"\b{_COUNTED} an? {_UNIT}\b"),
)
# This file lists the retired words.
_UNCHECKED = {Path(__file__).resolve()}


def test_no_directory_has_too_many_files():
    counts = Counter(path.parent for path in PACKAGE.rglob("*.py"))
    crowded = {
        str(folder.relative_to(ROOT)): count
        for folder, count in counts.items()
        if count > MAX_FILES_PER_DIRECTORY
    }
    assert not crowded, f"more than {MAX_FILES_PER_DIRECTORY} Python files: {crowded}"


def test_no_public_class_name_exists_twice():
    places = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        if MIRRORED_CLASSES in path.parents:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(PACKAGE)))
    twice = {name: files for name, files in sorted(places.items()) if len(files) > 1}
    assert not twice, listing(f"{name}: {', '.join(files)}" for name, files in twice.items())


# Runs `annotruth` with the given arguments and prints the files of the package of which a function
# ran, in any thread; the bodies of modules and classes are no functions.
COUNT_FILES = """
import inspect, json, os.path, sys, threading

package, *arguments = sys.argv[1:]
sys.path.insert(0, os.path.dirname(package))
files = set()

def profile(frame, event, argument):
    code = frame.f_code
    is_function = code.co_flags & inspect.CO_OPTIMIZED
    if event == "call" and is_function and code.co_filename.startswith(package):
        files.add(code.co_filename)

threading.setprofile(profile)
sys.setprofile(profile)
from annotruth.app.cli import main
sys.argv = ["annotruth", *arguments]
try:
    main()
except SystemExit as stopped:
    assert not stopped.code, stopped.code
sys.setprofile(None)
print("\\n" + json.dumps(sorted(files)))
"""


def test_a_fit_with_tables_and_report_runs_functions_of_few_files(tmp_path):
    rows = [f"item {e},person {s},{1 + (e * s) % 5}" for e in range(12) for s in range(6)]
    (tmp_path / "labels.csv").write_text("\n".join(["item,annotator,label", *rows]) + "\n")
    arguments = ["fit", "labels.csv", "--out", "o", "--report", "r.html"]
    for _ in range(2):  # the first run may compile kernels, which needs further files
        done = subprocess.run(
            [sys.executable, "-c", COUNT_FILES, str(PACKAGE), *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "r.html").exists()
    assert (tmp_path / "o" / "items.csv").exists()
    files = [
        str(Path(file).relative_to(PACKAGE)) for file in json.loads(done.stdout.split("\n")[-2])
    ]
    assert "fitting.py" in files, "the profile saw nothing of the package"
    assert len(files) <= MAX_FILES_PER_FIT, f"functions of {len(files)} files ran:" + listing(files)


class Place(NamedTuple):
    """A text of a file and the line it stands on."""

    file: str
    line: int
    text: str


def test_retired_words_are_recognised(tmp_path):
    path = tmp_path / "module.py"
    path.write_text('"""One row a label."""\nclass Tally:\n    """X."""\n    n = 1  # was told\n')
    found = violations([path], tmp_path)
    assert [line.split(" (")[0] for line in found] == [
        'module.py:1: "row a label"',
        "module.py:2: Tally",
        'module.py:4: "told"',
    ]
    path.write_text('"""One row per label."""\nclass LabelSummary:\n    n = 1  # as stated\n')
    assert violations([path], tmp_path) == []


@pytest.mark.parametrize("folder", ["src", "tests", "benchmarks", "docs", "."])
def test_no_retired_words(folder):
    if folder == ".":
        paths = sorted(ROOT.glob("*.md"))
    else:
        suffixes = (".md",) if folder == "docs" else (".py", ".md")
        paths = [p for p in sorted((ROOT / folder).rglob("*")) if p.suffix in suffixes]
    found = violations([path for path in paths if path not in _UNCHECKED], ROOT)
    assert not found, f"{len(found)} retired words, see STYLE: {listing(found)}"


def violations(paths: list[Path], root: Path) -> list[str]:
    """Return one line per retired word in the files: place, word, and what to say instead."""
    lines = []
    for path in paths:
        source = path.read_text("utf-8")
        file = path.relative_to(root).as_posix()
        if path.suffix == ".py":
            lines += retired_identifiers(file, source)
            texts = python_texts(file, source)
        else:
            texts = (Place(file, at, line) for at, line in enumerate(source.splitlines(), 1))
        lines += retired_phrases(texts)
    return sorted(set(lines), key=lambda line: (line.split(":")[0], int(line.split(":")[1])))


def retired_identifiers(file: str, source: str) -> Iterator[str]:
    for name, line in defined_names(ast.parse(source)):
        for retired in RETIRED_WORDS:
            if retired.identifier and retired.concerns(file):
                matched = [w for w in words_of(name) if re.fullmatch(retired.identifier, w)]
                if matched:
                    yield f"{file}:{line}: {name} ({retired.say})"


def defined_names(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Return the names that a module defines: classes, functions, arguments, variables."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.name, node.lineno
            case ast.arg():
                yield node.arg, node.lineno
            case ast.Name(ctx=ast.Store()):
                yield node.id, node.lineno
            case ast.Attribute(ctx=ast.Store()):
                yield node.attr, node.lineno
            case ast.alias(asname=str(name)):
                yield name, node.lineno
            case _:
                pass


def words_of(name: str) -> list[str]:
    """Split an identifier at underscores, digits and capitals."""
    return [w.lower() for w in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def python_texts(file: str, source: str) -> Iterator[Place]:
    """Return every line of the comments and strings of a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            # Words may stand on both sides of a line break.
            yield Place(file, node.lineno, " ".join(node.value.split()))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Place(file, token.start[0], token.string)


def retired_phrases(texts: Iterator[Place]) -> Iterator[str]:
    for place in texts:
        for retired in RETIRED_WORDS:
            if not retired.phrase or not retired.concerns(place.file):
                continue
            for match in re.finditer(retired.phrase, place.text, re.IGNORECASE):
                yield f'{place.file}:{place.line}: "{match[0]}" ({retired.say})'


def listing(lines) -> str:
    return "\n" + "\n".join(lines)
