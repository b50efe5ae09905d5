"""The code that the documentation shows, run as a reader would run it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import annotruth as at

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("**/*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL
    )


def pages_with(language: str) -> list[Path]:
    return [page for page in PAGES if blocks(page, language)]


@pytest.mark.parametrize("page", pages_with("python"), ids=lambda page: page.name)
def test_python_blocks_run_one_after_the_other(page, tmp_path):
    need_java_for(page)
    code = "\n".join(blocks(page, "python"))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def need_java_for(page: Path) -> None:
    needed = "ANNOTRUTH_NEEDS_JAVA" in os.environ
    if page.name == "spark.md" and shutil.which("java") is None and not needed:
        pytest.skip("no Java here: install it to test Spark")


def run_commands(page: Path, folder: Path) -> str:
    """Run a page's commands one after the other; returns what the last one printed."""
    lines = "\n".join(blocks(page, "console")).splitlines()
    commands = [line.removeprefix("$ ") for line in lines if line.startswith("$ annotruth ")]
    assert commands
    for command in commands:
        done = subprocess.run(
            f"{Path(sys.executable).parent}/{command}",
            shell=True,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("page", pages_with("console"), ids=lambda page: page.name)
def test_commands_run_and_print_what_the_page_says(page, tmp_path):
    need_java_for(page)
    printed = run_commands(page, tmp_path)
    if page.name == "README.md":
        assert without_digits(printed) == without_digits(blocks(page, "text")[1])


def without_digits(text: str) -> str:
    """Keep the words: figures move a little when an estimator gets better."""
    return re.sub(r"\d[\d.,]*", "#", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_our_own_pages_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
        place = (page.parent / target).resolve()
        assert place.exists(), target
        if page.is_relative_to(DOCS):  # the site has no other pages
            assert place.is_relative_to(DOCS), target


@pytest.mark.parametrize("name", ["how-gpm-works.md", "report.md"])
def test_the_pictures_of_a_page_are_those_its_code_makes(name, tmp_path):
    """To refresh them, run the page's code in docs/."""
    page = ROOT / "docs" / name
    code = "\n".join(blocks(page, "python"))
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=True)
    made = {path.name: path.read_text() for path in (tmp_path / "pictures").iterdir()}
    assert set(made) == set(re.findall(r"\]\(pictures/([^)]*)\)", page.read_text()))
    for picture, text in made.items():
        kept = (ROOT / "docs" / "pictures" / picture).read_text()
        assert words_of(kept) == words_of(text), picture


def words_of(picture: str) -> list[str]:
    """Return what a picture says, less its figures; who comes first may change with them."""
    return sorted(without_digits(said) for said in re.findall(r">([^<>]+)</text>", picture))


def test_the_reference_has_every_public_name():
    listed = re.findall(
        r"auto\w+:: annotruth\.(\w+)$", (ROOT / "docs/reference.md").read_text(), re.MULTILINE
    )
    assert set(at.__all__) <= set(listed)


def test_the_site_leads_to_every_page():
    folder = ROOT / "docs"
    listed = {line for block in blocks(folder / "index.md", "{toctree}") for line in block.split()}
    pages = {str(path.relative_to(folder).with_suffix("")) for path in folder.glob("**/*.md")}
    assert pages - {"index"} <= listed
