"""`annotruth serve` and its sub-commands: settings, messages of one line, and what they do."""

import errno
import socket
import sys

import pytest
import typer
from tests.app.test_help import visible_options

from annotruth.app import cli
from annotruth.app.commands.serve import config_of
from annotruth.app.options import OPTION_GROUPS
from annotruth.errors import InputError
from annotruth.serve import start
from annotruth.serve.administration import create_token, find_token, list_tokens
from annotruth.serve.config import ServeConfig
from annotruth.serve.start import address_of, check_address, prepare
from annotruth.serve.store import maintenance as importing
from annotruth.serve.store.database import Database
from annotruth.serve.store.events import current_labels
from annotruth.serve.store.projects import get_project
from annotruth.serve.store.rows import utc_now

SERVE = typer.main.get_command(cli.app).commands["serve"]


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "data"


@pytest.fixture
def serve(run, folder):
    """Run a sub-command with a data folder of its own; returns exit code, stdout and stderr."""
    return lambda *words: run("serve", *words, "--data-dir", folder)


@pytest.fixture
def database(folder):
    """Open the database that commands made."""
    opened = []

    def open_database():
        opened.append(Database.open(f"sqlite:///{folder}/annotruth.db"))
        return opened[-1]

    yield open_database
    for each in opened:
        each.dispose()


def sub_commands(group, words=("serve",)):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from sub_commands(command, (*words, name))
        else:
            yield (*words, name), command


@pytest.mark.parametrize(("words", "command"), list(sub_commands(SERVE)), ids=str)
def test_sub_commands_have_help_and_examples(run, monkeypatch, words, command):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = run(*words, "--help")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    assert f"annotruth {' '.join(words)}" in out[out.rindex("╰─") :]
    for option in visible_options(command):
        assert option.help, option.name
        assert option.rich_help_panel in OPTION_GROUPS.values(), option.name


def test_tokens_are_created_listed_and_revoked(serve, database, now):
    assert serve("project", "create", "films")[:2] == (0, "created films\n")
    code, out, err = serve("token", "create", "<b>robot", "--project", "films", "--days", "3")
    assert (code, err) == (0, "")
    with database().connect() as connection:
        (token,) = list_tokens(connection)
        assert (token.name, token.scope, (token.expires - token.created).days) == (
            "<b>robot",
            "write",
            3,
        )
        assert find_token(connection, out.strip(), token.created) == token
    shown = serve("token", "list")[1]
    assert "<b>robot" in shown
    assert out.strip() not in shown
    assert serve("token", "revoke", token.id)[:2] == (0, f"revoked {token.id}\n")
    code, out, err = serve("token", "revoke", token.id)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "annotruth serve token list" in err
    assert "revoked" in serve("token", "list")[1]


def test_ids_are_listed_in_full_beside_long_names(serve, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    ids = [serve("token", "create", name)[1].split("_")[1] for name in ("x", "long name " * 12)]
    out = serve("token", "list")[1]
    assert all(each in out for each in ids)


def test_files_are_imported_once_and_exported(serve, database, tmp_path, run):
    serve("project", "create", "films", "--model", "gpm")
    labels = tmp_path / "labels.csv"
    labels.write_text("item,annotator,label\na,ann,1\na,bob,2\nb,ann,1\n")
    assert "added 3 labels to films; 0 were" in serve("import", "films", labels)[1]
    labels.write_text("item,annotator,label\na,ann,2\na,bob,2\nb,ann,1\n")
    assert "added 1 label to films; 2 were" in serve("import", "films", labels)[1]
    with database().connect() as connection:
        project = get_project(connection, "films")
        assert project.settings == {"model": "gpm"}
        rows = {(e.item, e.annotator): e.label for e in current_labels(connection, project.id)}
    assert rows == {("a", "ann"): "2", ("a", "bob"): "2", ("b", "ann"): "1"}
    out = tmp_path / "out.csv"
    assert f"wrote 3 labels to {out}" in serve("export", "films", out)[1].replace("\n", "")
    assert run("fit", out, "--model", "majority", "--quiet")[0] == 0


def test_warnings_about_a_file_are_single_lines(serve, tmp_path):
    serve("project", "create", "films")
    path = tmp_path / "labels.csv"
    path.write_text("item,annotator,label,time\na,x,1,never\n")
    code, out, err = serve("import", "films", path)
    assert (code, out) == (0, "added 1 label to films; 0 were there already\n")
    assert err.startswith("annotruth: warning: column 'time' holds no time of labels")
    assert err.count("\n") == 1


def test_limits_of_settings_are_written_in_full(run, folder, monkeypatch):
    monkeypatch.setenv("ANNOTRUTH_SERVE_MAX_BODY", "1")
    err = run("serve", "--data-dir", folder)[2]
    assert err == "annotruth: max_body is '1': it should be greater than or equal to 1024\n"


def test_a_label_that_a_file_changes_back_is_current_again(serve, database, tmp_path):
    serve("project", "create", "films")
    labels = tmp_path / "labels.csv"
    for label, n_new in (("1", 2), ("2", 1), ("1", 1), ("1", 0), ("2", 1), ("1", 1)):
        labels.write_text(f"item,annotator,label\na,ann,{label}\na,bob,2\n")
        said = serve("import", "films", labels)[1]
        assert said.startswith(f"added {n_new} label"), (label, said)
        with database().connect() as connection:
            found = current_labels(connection, get_project(connection, "films").id)
        assert {each.annotator: each.label for each in found} == {"ann": label, "bob": "2"}


def test_the_database_is_free_while_a_file_is_read(serve, database, tmp_path, monkeypatch):
    serve("project", "create", "films")
    labels = tmp_path / "labels.csv"
    labels.write_text("item,annotator,label\na,ann,1\n")
    read = importing.read_labels

    def write_meanwhile(path):
        with database().begin() as connection:
            create_token(connection, "meanwhile", "read", utc_now())
        return read(path)

    monkeypatch.setattr("annotruth.serve.store.database._SECONDS_FOR_LOCK", 1)
    monkeypatch.setattr(importing, "read_labels", write_meanwhile)
    assert serve("import", "films", labels)[0] == 0


def test_comparisons_are_imported_with_repeated_votes(serve, tmp_path):
    serve("project", "create", "duels", "--kind", "comparisons")
    votes = tmp_path / "votes.csv"
    votes.write_text("left,right,annotator,winner\na,b,ann,left\na,b,ann,left\nb,c,ann,tie\n")
    assert "added 3 comparisons" in serve("import", "duels", votes)[1]
    assert "added 0 comparisons to duels; 3 were" in serve("import", "duels", votes)[1]
    assert "wrote 3 comparisons" in serve("export", "duels", tmp_path / "out.csv")[1]
    assert "erased 3 comparisons" in serve("erase", "duels", "ann")[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "left,right,annotator,winner\na,b,ann,left\n",
            "these are comparisons, and the project 'films' collects labels: import them into an",
        ),
        (
            "text,who,said\na,ann,1\nb,ann,2\n",
            "; `annotruth serve import` has no such options: write a table with the columns item, a",
        ),
        (f"item,annotator,label\n{'x' * 999},ann,1\n", "is longer than 512 characters"),
    ],
)
def test_a_file_that_cannot_be_imported_is_named(serve, database, tmp_path, text, message):
    serve("project", "create", "films")
    path = tmp_path / "file.csv"
    path.write_text(text)
    code, out, err = serve("import", "films", path)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"annotruth: {path}: ")
    assert message in err


def test_a_person_is_erased_and_a_backup_is_written(serve, database, tmp_path):
    serve("project", "create", "films")
    labels = tmp_path / "labels.csv"
    labels.write_text("item,annotator,label\na,ann,1\na,bob,2\n")
    serve("import", "films", labels)
    copy = tmp_path / "copy.db"
    assert serve("backup", copy)[0] == 0
    assert "erased 1 label" in serve("erase", "films", "ann")[1]
    with database().connect() as connection:
        project = get_project(connection, "films")
        assert [each.annotator for each in current_labels(connection, project.id)] == ["bob"]
    kept = Database.open(f"sqlite:///{copy}")
    with kept.connect() as connection:
        assert len(current_labels(connection, project.id)) == 2
    kept.dispose()


@pytest.mark.parametrize("words", [("export", "films"), ("backup",)])
def test_existing_files_are_replaced_only_with_force(serve, tmp_path, words):
    serve("project", "create", "films")
    mine = tmp_path / "mine.csv"
    mine.write_text("mine")
    code, out, err = serve(*words, mine)
    assert (code, out) == (2, "")
    assert "mine.csv: the file exists: choose another path, or pass --force" in err
    assert mine.read_text() == "mine"
    assert serve(*words, mine, "--force")[0] == 0
    assert mine.read_bytes() != b"mine"


def test_a_backup_does_not_replace_the_database_itself(serve, database):
    serve("project", "create", "films")
    path = database().name
    code, _, err = serve("backup", path, "--force")
    assert code == 2
    assert "which FILE writes, is also the input --database" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        *(
            (words, "does not exist: start `annotruth serve`, or give --data-dir")
            for words in (
                ("token", "list"),
                ("upgrade",),
                ("token", "create", "x", "--project", "films"),
            )
        ),
        (("--host", "0.0.0.0", "--port", "0"), "needs a token first"),
        (("project", "create", "No Good"), "1 to 60 lower-case letters"),
        (("project", "create", "x", "--model", "nope"), "unknown model 'nope': choose one of maj"),
        (("project", "create", "x", "--model", "n" * 300), "unknown model 'nnn"),
        (("project", "create", "x", "--model", "pair-gpm"), "unknown model 'pair-gpm': choose one"),
        (
            ("project", "create", "x", "--kind", "comparisons", "--model", "gpm"),
            "unknown model 'gpm': choose one of bradley-terry, thurstone, crowd-bt, pair-gpm, auto",
        ),
        (("token", "create", "x", "--scope", "root"), "Invalid value for '--scope'"),
        (("token", "create", " "), "the token's name ' ' must have 1 to 200 characters"),
        (("token", "create", "x" * 201), "must have 1 to 200 characters"),
        (("token", "create", "a\x1bb"), "none of them a control character"),
        (("token", "list", "--database", "mysql://a/b"), "are not supported"),
        (
            ("token", "list", "--database", "postgresql://u:secret@127.0.0.1:five/x"),
            "is not the URL of a database: give sqlite:///FILE or postgresql://USER:PASSWORD@HOST",
        ),
        (("token", "list", "--database", "postgresql://u:secret@[::1/x"), "is not the URL of a da"),
        (("token", "list", "--database", "postgresql://u:secret@127.0.0.1:1/x"), "127.0.0.1"),
    ],
)
def test_mistakes_are_one_line_and_create_nothing(serve, folder, words, message, monkeypatch):
    monkeypatch.setitem(Database.open.__kwdefaults__, "wait", 0.1)
    code, out, err = serve(*words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err
    assert "secret" not in err
    assert not folder.exists()


def test_projects_that_exist_are_named(serve):
    serve("project", "create", "films")
    code, _, err = serve("token", "create", "x", "--project", "none")
    assert code == 2
    assert "there is no project 'none': there are films" in err


def test_a_database_that_is_missing_is_not_created_whatever_its_url_says(run, tmp_path):
    url = f"sqlite+pysqlite:///{tmp_path}/typo.db"
    code, _, err = run("serve", "project", "list", "--database", url)
    assert code == 2
    assert "typo.db does not exist: start `annotruth serve`, or give --data-dir" in err
    assert list(tmp_path.iterdir()) == []


def test_upgrade_needs_a_database(serve, folder):
    folder.mkdir()
    code, _, err = serve("upgrade")
    assert code == 2
    assert "annotruth.db does not exist: start `annotruth serve`, or give --data-dir" in err
    assert list(folder.iterdir()) == []
    serve("token", "create", "x")
    assert serve("upgrade") == (0, "the database is up to date\n", "")


def test_missing_packages_are_named(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "fastapi" else 1)
    code, out, err = run("serve")
    assert (code, out) == (2, "")
    assert "run `pip install 'annotruth[serve]'`" in err


def test_a_port_in_use_is_one_line(run, folder):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, out, err = run("serve", "--data-dir", folder, "--port", port)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"cannot listen on 127.0.0.1, port {port}: address already in use" in err
    assert "stop the other program, or give another --port" in err


@pytest.mark.parametrize(
    "host", ["no.such.host.invalid", "256.1.1.1", "x" * 300, "a\x07b", f"é.{'x' * 80}"]
)
def test_a_host_that_is_not_this_machine_is_one_line(run, folder, host):
    code, out, err = run("serve", "--data-dir", folder, "--host", host)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.endswith("; give --host an address of this machine, such as 127.0.0.1\n")
    assert len(err) < 300
    assert not folder.exists()


def test_port_0_is_a_free_port(folder, monkeypatch):
    started = []
    monkeypatch.setattr(start, "wait_for_server", lambda config, stop: True)

    def supervise(commands, environment, *, stop):
        stop.wait(10)
        return 0

    def then(config, stop):
        started.append(config.port)
        stop.set()

    monkeypatch.setattr(start, "supervise", supervise)
    config = ServeConfig(database=f"sqlite:///{folder}/a.db", data_dir=folder, port=0)
    said = []
    assert start.run_service(config, said.append, then=then) == 0
    assert started[0] > 0
    assert f"http://127.0.0.1:{started[0]}/login#at_" in said[0]


def test_a_link_that_cannot_be_shown_ends_the_service_and_the_next_start_shows_another(
    folder, monkeypatch
):
    monkeypatch.setattr(start, "wait_for_server", lambda config, stop: True)
    monkeypatch.setattr(start, "supervise", lambda *_, stop: 0 if stop.wait(10) else 1)
    config = ServeConfig(database=f"sqlite:///{folder}/a.db", data_dir=folder, port=0)

    def fail(line):
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        start.run_service(config, fail)
    said = []
    start.run_service(config, said.append, then=lambda _, stop: stop.set())
    assert said[0].startswith("log in as administrator: http://127.0.0.1:")


@pytest.mark.parametrize("words", [("--port", "99999"), ("--database", "x")])
def test_a_demo_that_does_not_start_leaves_nothing_behind(run, tmp_path, monkeypatch, words):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code, out, err = run("serve", "--demo", *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert list(tmp_path.iterdir()) == []


def test_a_demo_does_not_use_the_database_of_the_environment(run, tmp_path, monkeypatch):
    used = []
    monkeypatch.setenv("ANNOTRUTH_SERVE_DATABASE", f"sqlite:///{tmp_path}/real.db")
    monkeypatch.setattr(
        "annotruth.serve.demo.run_demo", lambda config, say: used.append(config.database) or 0
    )
    assert run("serve", "--demo") == (0, "", "")
    assert "annotruth-demo-" in used[0]
    assert run("serve", "--demo", "--database", f"sqlite:///{tmp_path}/own.db") == (0, "", "")
    assert used[1] == f"sqlite:///{tmp_path}/own.db"


def test_options_come_before_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("ANNOTRUTH_SERVE_PORT", "1234")
    monkeypatch.setenv("ANNOTRUTH_SERVE_HOST", "10.0.0.1")
    config = config_of({"port": 99, "host": None, "data_dir": tmp_path, "database": None})
    assert (config.port, config.host) == (99, "10.0.0.1")
    assert config.database == f"sqlite:///{tmp_path}/annotruth.db"


def test_the_first_start_makes_one_token_and_others_can_not_reach_a_server_without(folder):
    config = ServeConfig(database=f"sqlite:///{folder}/a.db", data_dir=folder)
    public = ServeConfig(database=config.database, data_dir=folder, host="0.0.0.0")
    with pytest.raises(InputError, match="needs a token first: run `annotruth serve token create"):
        prepare(public)
    assert prepare(config).startswith("at_")
    assert prepare(config) == ""
    assert prepare(public) == ""


def test_addresses_for_this_machine(folder):
    def at(host):
        return address_of(ServeConfig(database="sqlite:///a", data_dir=folder, host=host, port=80))

    assert at("127.0.0.1") == at("0.0.0.0") == "http://127.0.0.1:80"
    assert at("::1") == at("[::1]") == at("::") == "http://[::1]:80"
    with pytest.raises(InputError, match=r"cannot listen on 192\.0\.2\.1"):
        check_address(
            ServeConfig(database="sqlite:///a", data_dir=folder, host="192.0.2.1", port=0)
        )
