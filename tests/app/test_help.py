"""The help of every command, short flags, suggestions and shell completion."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from annotruth.app import cli
from annotruth.app.options import FIRST_OPTIONS, OPTION_GROUPS

FRONT_PAGE = typer.main.get_command(cli.app)
COMMANDS = {"": FRONT_PAGE, **FRONT_PAGE.commands}
SCRIPTS = Path(sys.executable).parent  # where `annotruth` is


def visible_options(command):
    """Return the options that the help of a command lists, --help among them."""
    parameters = command.get_params(command.context_class(command))
    return [p for p in parameters if p.param_type_name == "option" and not p.hidden]


@pytest.fixture(params=COMMANDS)
def command(request):
    return request.param


@pytest.fixture
def shown(run, monkeypatch, command):
    """The whole help of a command in a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = run(*command.split(), "--help-all" if command in FIRST_OPTIONS else "--help")
    assert (code, err) == (0, "")
    return out


def test_the_help_shows_values_without_types(shown):
    assert not re.search(r"<[\w|. ]*>", shown)


def test_the_help_is_within_80_columns_and_words_are_whole(shown):
    assert max(map(len, shown.splitlines())) <= 80
    values = re.findall(r"^│ \*? *--[\w-]+ +(?:-\w)? +([^ ]+)", shown, re.MULTILINE)
    assert all(len(value) <= 20 for value in values), values


def test_every_option_has_a_help_text_and_a_group(command):
    for option in visible_options(COMMANDS[command]):
        assert option.help, option.name
        assert option.rich_help_panel in OPTION_GROUPS.values(), option.name


def test_groups_are_in_one_order(shown, command):
    if not command:
        pytest.skip("the front page lists commands")
    groups = re.findall(r"^╭─ (.+?) ─", shown, re.MULTILINE)
    order = list(dict.fromkeys(OPTION_GROUPS.values()))
    known = [name for name in groups if name in order]
    assert known == [name for name in order if name in known]
    assert known[-1] == "General"


def test_examples_follow_the_options(shown, command):
    if command:
        assert f" annotruth {command} " in shown[shown.rindex("╰─") :]


def test_the_usage_names_arguments_plainly(run):
    assert "Usage: annotruth update [OPTIONS] FIT LABELS" in run("update", "--help")[1]


def test_h_is_help(run, command):
    words = command.split()
    assert run(*words, "-h") == run(*words, "--help")


def in_bash(script):
    path = f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        env={**os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("annotruth ne", ["next"]),
        ("annotruth next --bud", ["--budget"]),
        ("annotruth fit --scale o", ["ordinal"]),
    ],
)
def test_bash_completes_commands_options_and_choices(line, expected):
    words = line.split()
    script = f"""
        eval "$(_ANNOTRUTH_COMPLETE=source_bash annotruth)"
        COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}
        _annotruth_completion annotruth
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    assert in_bash(script).split() == expected


def test_the_front_page_has_one_line_per_command_on_one_screen(run):
    code, out, err = run("--help")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    listed = [line.split()[0] for line in lines if line.startswith("  ")]
    assert listed == list(FRONT_PAGE.commands)
    assert run() == (2, out, "")


@pytest.mark.parametrize("command", FIRST_OPTIONS)
def test_the_help_of_a_command_fits_one_screen(run, command):
    code, out, err = run(command, "--help")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    options = re.findall(r"^  --([\w-]+)", out, re.MULTILINE)
    assert options[-1] == "help-all"
    assert len(options) == len(FIRST_OPTIONS[command]) + 1 <= 12
    assert f"Example: annotruth {command} " in out
    every = [option.opts[0] for option in visible_options(COMMANDS[command])]
    whole = run(command, "--help-all")[1]
    assert all(f" {flag} " in whole for flag in every)


def test_o_is_out_and_q_is_quiet():
    for name, command in FRONT_PAGE.commands.items():
        for option in visible_options(command):
            assert ("-o" in option.opts) == ("--out" in option.opts), name
            assert ("-q" in option.opts) == ("--quiet" in option.opts), name
