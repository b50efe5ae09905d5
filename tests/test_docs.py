"""The documentation: its code runs, its links lead somewhere, the files it names exist."""

import ast
import json
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import annotruth as at
from annotruth import crowdkit as at_crowdkit
from annotruth.app.options import FIRST_OPTIONS
from annotruth.report.charts.fit_charts import FitCharts
from annotruth.report.charts.rank_charts import RankCharts

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PACKAGE = Path(at.__file__).parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted(DOCS.glob("**/*.md")),
    *sorted(DOCS.glob("**/*.ipynb")),
]
NOTEBOOKS = [page for page in PAGES if page.suffix == ".ipynb"]
GUIDE = DOCS / "adding-a-model.md"

# A code block that begins so is a file of the package.
FILE_HEADER = re.compile(r"# src/(annotruth/\S+\.py)\n")


def page_name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def text_of(page: Path) -> str:
    """Return the text of a page; of a notebook, as Markdown with a block per code cell."""
    text = page.read_text("utf-8")
    if page.suffix != ".ipynb":
        return text
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in json.loads(text)["cells"]]
    return "\n".join(f"```python\n{t}\n```\n" if kind == "code" else t + "\n" for kind, t in cells)


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text_of(page), flags=re.MULTILINE | re.DOTALL)


def pages_with(language: str) -> list[Path]:
    return [page for page in PAGES if blocks(page, language)]


def environment(package: Path = PACKAGE) -> dict[str, str]:
    """Return the environment in which other processes import the package from there."""
    return {**os.environ, "PYTHONPATH": str(package.parent)}


def run(arguments: list[str], folder: Path, package: Path = PACKAGE) -> str:
    """Run Python with the arguments; return what it printed."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment(package),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def package_with_files(page: Path, folder: Path) -> Path:
    """Return the package, or a copy of it with the files that the page's code blocks add."""
    files = {
        header[1]: block
        for block in blocks(page, "python")
        if (header := FILE_HEADER.match(block)) is not None
    }
    if not files:
        return PACKAGE
    package = folder / "src" / "annotruth"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in files.items():
        path = package.parent / name
        assert not path.exists(), f"{name} exists already"
        path.write_text(text, "utf-8")
    return package


def skip_without_java(page: Path) -> None:
    needed = "ANNOTRUTH_NEEDS_JAVA" in os.environ
    has_spark = shutil.which("java") is not None and find_spec("pyspark") is not None
    if page.name == "spark.md" and not has_spark and not needed:
        pytest.skip("Java is missing: install it to test Spark")


DISPLAY = "def display(value): getattr(value, '_repr_html_', value.__repr__)()"


def displaying(cell: str) -> str:
    """Return the code of a cell so that its last expression is displayed, as by a notebook."""
    tree = ast.parse(cell)
    if isinstance(last := tree.body[-1], ast.Expr):
        last.value = ast.Call(ast.Name("display"), [last.value], [])
    return ast.unparse(tree)


@pytest.mark.parametrize("page", pages_with("python"), ids=page_name)
def test_python_blocks_run_in_order(page, tmp_path):
    """And draw the pictures of the page; to refresh these, run the page's code in docs/."""
    skip_without_java(page)
    code = "\n".join(block for block in blocks(page, "python") if not FILE_HEADER.match(block))
    if page in NOTEBOOKS:
        code = "\n".join([DISPLAY, *map(displaying, blocks(page, "python"))])
    run(["-W", "error", "-c", code], tmp_path, package_with_files(page, tmp_path))
    if (tmp_path / "pictures").exists():
        made = {path.name: path.read_text("utf-8") for path in (tmp_path / "pictures").iterdir()}
        assert set(made) == set(re.findall(r"\]\(pictures/([^)]*)\)", text_of(page)))
        for picture, text in made.items():
            kept = (DOCS / "pictures" / picture).read_text("utf-8")
            assert words_of(kept) == words_of(text), picture


def test_the_model_of_the_guide_passes_the_contract(tmp_path):
    package = package_with_files(GUIDE, tmp_path)
    (line,) = blocks(GUIDE, "text")
    (name,) = re.findall(r'^ *"([\w-]+)": ', line)
    registry = package / "models" / "registry.py"
    text = registry.read_text("utf-8")
    assert text.count("MODELS = {\n") == 1
    registry.write_text(text.replace("MODELS = {\n", f"MODELS = {{\n{line}"), "utf-8")
    arguments = ["-m", "pytest", str(ROOT / "tests/contract"), "-q", "-k", name, "-n", "0"]
    printed = run([*arguments, "-p", "no:cacheprovider"], tmp_path, package)
    assert int(re.findall(r"(\d+) passed", printed)[0]) > 20


def run_commands(page: Path, folder: Path) -> str:
    """Run the commands of a page in order; return what the last one printed."""
    lines = "\n".join(blocks(page, "console")).splitlines()
    commands = [line.removeprefix("$ ") for line in lines if line.startswith("$ annotruth ")]
    assert commands
    for command in commands:
        done = subprocess.run(
            f"{Path(sys.executable).parent}/{command}",
            shell=True,
            cwd=folder,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


@pytest.mark.parametrize("page", pages_with("console"), ids=page_name)
def test_commands_run(page, tmp_path):
    skip_without_java(page)
    printed = run_commands(page, tmp_path)
    if page.name == "README.md":
        shown = blocks(page, "text")[1]
        assert without_digits(printed) == without_digits(shown)
        assert numbers(shown) == pytest.approx(numbers(printed), rel=0.02)


def numbers(text: str) -> list[float]:
    """Return the numbers of a text."""
    return [float(n.replace(",", "")) for n in re.findall(r"\d[\d,]*(?:\.\d+)?", text)]


def without_digits(text: str) -> str:
    """Return the text with numbers replaced: they may change slightly with an estimator."""
    return re.sub(r"\d[\d.,]*", "#", text)


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_links_lead_to_existing_files(page):
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", text_of(page)):
        path = (page.parent / target).resolve()
        assert path.exists(), target
        if page.is_relative_to(DOCS):  # the site has no other pages
            assert path.is_relative_to(DOCS), target


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_links_within_the_documentation_lead_to_existing_headings(page):
    text = text_of(page)
    for target, heading in re.findall(r"\]\(([^)#:\s]*\.(?:md|ipynb))?#([^)]+)\)", text):
        linked = (page.parent / target) if target else page
        assert heading in headings(linked), f"{target}#{heading}"


def headings(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as MyST and GitHub make them."""
    titles = re.findall(r"^#+ (.+)$", text_of(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\s-]", "", title.lower()).replace(" ", "-") for title in titles}


def named_files(text: str) -> list[str]:
    """Return the files of the repository that a text names, less those with a placeholder."""
    return re.findall(r"`((?:src|tests|benchmarks|docs|\.github|\.ci)/[\w./-]+\w)/?`", text)


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_named_files_exist(page):
    text = text_of(page)
    missing = [name for name in named_files(text) if not (ROOT / name).exists()]
    # Within a room, files are also named relative to the package.
    rooms = "|".join(path.name for path in PACKAGE.iterdir() if path.is_dir())
    inside = re.findall(rf"`((?:{rooms})/[\w./]+\.py)`", text)
    missing += [name for name in inside if not (PACKAGE / name).exists()]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_named_benchmarks_exist(page):
    names = re.findall(r"python -m\s+benchmarks\.(\w+)", text_of(page))
    folder = ROOT / "benchmarks"
    missing = [n for n in names if not (folder / f"{n}.py").exists() and not (folder / n).is_dir()]
    assert not missing


CHANGES = {
    *("A model", "A file format", "A chart", "An engine", "A command", "An irregular behavior"),
    *("A convergence rule", "A covariate", "A database source", "A hook", "An advice rule"),
    *("A metric", "An analysis", "An option of an analysis", "An engine capability"),
    *("A report section", "A sheet of the workbook", "A column of a table"),
}


def test_every_plausible_change_takes_at_most_three_files():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    guide = text.split("## Where to make a change")[1].split("\n## ")[0]
    sections = dict(re.findall(r"^### (.+)\n((?:(?!^###).*\n?)*)", guide, flags=re.MULTILINE))
    assert set(sections) == CHANGES
    for change, section in sections.items():
        entries = re.findall(r"^- (`[\w./<>-]+`:.+)$", section, flags=re.MULTILINE)
        assert 1 <= len(entries) <= 3, change
        assert section.count("\n- ") == len(entries), f"{change}: an entry names no file"
        for entry in entries:
            # Of a file that is yet to be written, the directory exists.
            name = re.match(r"`([^`<]+)", entry)[1]
            assert (ROOT / name).exists(), entry


def words_of(picture: str) -> list[str]:
    """Return the texts of a picture without their numbers; their order may change with these."""
    return sorted(without_digits(text) for text in re.findall(r">([^<>]+)</text>", picture))


def names_in_the_reference() -> list[str]:
    """Return the names with a page of their own, and those on the page itself."""
    tables = "\n".join(blocks(DOCS / "reference.md", "{eval-rst}"))
    return re.findall(r"^(?:   |\.\. auto\w+:: )(annotruth[\w.]*)$", tables, flags=re.MULTILINE)


def test_the_reference_lists_every_public_name():
    listed = set(names_in_the_reference())
    assert {f"annotruth.{name}" for name in at.__all__} <= listed
    assert {f"annotruth.crowdkit.{name}" for name in at_crowdkit.__all__} <= listed


def test_everything_in_the_reference_exists():
    for name in names_in_the_reference():
        assert pkgutil.resolve_name(name).__doc__, name


def test_the_page_on_the_command_line_lists_every_command_and_option_of_fit():
    text = (DOCS / "command-line.md").read_text("utf-8")
    script = "from annotruth.app.cli import main; main()"
    commands = re.findall(r"`annotruth (\w+)", text)
    listed = re.findall(r"^  (\w+) ", run(["-c", script, "--help"], ROOT), flags=re.MULTILINE)
    assert listed
    assert set(listed) == set(commands) - {"COMMAND"}
    shown = run(["-c", script, "fit", "--help-all"], ROOT)
    options = set(re.findall(r"^│ \*?\s*(--[\w-]+)", shown, flags=re.MULTILINE))
    assert "--model" in options
    spark = {"--master", "--storage"}  # described on their own page
    assert options - spark - {"--help"} <= set(re.findall(r"(--[\w-]+)", text))


@pytest.mark.parametrize(
    "command",
    [
        "open",
        "fit",
        "rank",
        "update",
        "report",
        "compare",
        "next",
        "plan",
        "demo",
        "simulate",
        "reproduce",
        "serve",
        "mcp",
    ],
)
def test_examples_of_help_are_on_one_line_each(command):
    """A command that is broken over two lines cannot be copied."""
    script = "from annotruth.app.cli import main; main()"
    option = "--help-all" if command in FIRST_OPTIONS else "--help"
    shown = run(["-c", script, command, option], ROOT).partition(" Examples")[2]
    lines = [line.strip() for line in shown.splitlines() if line.strip()]
    assert lines
    assert [line for line in lines if not line.startswith(("annotruth ", "gzip "))] == []


def test_the_site_leads_to_every_page():
    listed = {line for block in blocks(DOCS / "index.md", "{toctree}") for line in block.split()}
    pages = {path.relative_to(DOCS) for path in PAGES if path.is_relative_to(DOCS)}
    assert {str(page.with_suffix("")) for page in pages} - {"index"} <= listed


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=page_name)
def test_notebooks_are_kept_without_output(notebook):
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)


def chart_names(methods):
    return [name for name in dir(methods) if name[0] != "_" and callable(getattr(methods, name))]


def test_the_gallery_has_every_chart():
    code = "\n".join(blocks(DOCS / "gallery.ipynb", "python"))
    drawn = re.findall(r"(\w+|\))\.plot\.(\w+)\(", code)
    assert {chart for of, chart in drawn if of != "ranking"} == set(chart_names(FitCharts))
    assert {chart for of, chart in drawn if of == "ranking"} == set(chart_names(RankCharts))


def test_the_page_on_citing_has_the_version():
    (version,) = re.findall(
        r"^version: (.+)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.MULTILINE
    )
    assert f"version = {{{version}}}" in text_of(DOCS / "cite.md")
