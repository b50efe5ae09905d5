"""Labels from SQLite and DuckDB files, and from a PostgreSQL server that the tests start."""

import importlib.util
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NoReturn

import pytest
from tests.io.conftest import refused_source as refused
from tests.postgresql import PASSWORD

import annotruth as at
from annotruth.io.readers import read_labels

ROWS = [(1, "ann", "x"), (1, "bob", "y"), (2, "ann", "x"), (2, "bob", "x")]
COLUMNS = "item integer, annotator text, label text"


def make_sqlite(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements or (f"create table votes ({COLUMNS})",):
            connection.execute(statement)
        if not statements:
            connection.executemany("insert into votes values (?, ?, ?)", ROWS)
    return path


@pytest.mark.parametrize("name", ["labels.db", "labels.sqlite", "a ?#%.sqlite3", "labels"])
def test_the_only_suitable_table_is_read(tmp_path, name):
    path = make_sqlite(tmp_path / name)
    labels = read_labels([path])
    assert labels.same_as(read_labels(path, query="select item, annotator, label from votes;"))
    assert labels.same_as(at.Labels.of(ROWS))
    assert labels.read_as == "SQLite database, table votes"


def test_queries_choose_rows_and_columns(tmp_path):
    path = make_sqlite(tmp_path / "labels.db")
    query = "-- some\nwith v as (select * from votes) select item as film, annotator, label, ';' "
    options = {"columns": {"item": "film"}, "query": query + "as c from v where item < 2"}
    labels = read_labels(path, covariates=["c"], **options)
    assert (labels.n_labels, labels.read_as) == (2, "SQLite database, query")


def test_files_of_several_days(tmp_path):
    make_sqlite(tmp_path / "a.db")
    make_sqlite(
        tmp_path / "b.db", f"create table v ({COLUMNS})", "insert into v values (9,'c','x')"
    )
    assert read_labels(tmp_path / "*.db").n_labels == 5


def test_several_suitable_tables_are_listed(tmp_path):
    names = ("a", 'b"c', "other")
    tables = [f'create table "{name.replace(chr(34), chr(34) * 2)}" ({COLUMNS})' for name in names]
    path = make_sqlite(tmp_path / "labels.db", *tables[:2], "create table other (x integer)")
    message = refused(path)
    assert 'several tables have the columns of labels (a, b"c): pass query=' in message
    assert "query='select * from \"a\"'" in message
    path = make_sqlite(tmp_path / "none.db", "create table p (x)", "create table q (x)")
    assert "no table has the columns of labels (p, q)" in refused(path)
    path = make_sqlite(tmp_path / "one.db", "create table p (x, y)")
    assert "columns" in refused(path)
    assert "the database has no tables" in refused(
        make_sqlite(tmp_path / "empty.db", "create table t (x)", "drop table t")
    )


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("delete from votes", "the query starts with 'delete': only SELECT and WITH are run"),
        ("pragma user_version = 3", "only SELECT and WITH"),
        ("select 1; drop table votes", "several statements"),
        ("with x as (select 1) delete from votes", "readonly database"),
        ("select * from nowhere", "the database cannot be read: no such table: nowhere"),
        ("select item from votes", "columns"),
        ("select * from votes where item > 5", "the query returns no rows"),
        (
            "select item, annotator, case when item = 1 then 2 else 'x' end as label from votes",
            "column 'label' holds values of several types",
        ),
    ],
)
def test_queries_at_fault_are_reported_and_nothing_is_written(tmp_path, query, message):
    path = make_sqlite(tmp_path / "labels.db")
    before = path.read_bytes()
    assert message in refused(path, query=query)
    assert path.read_bytes() == before


def test_views_that_do_not_end_are_limited(tmp_path):
    endless = (
        "create view votes as with recursive n(item) as (select 1 union all select item + 1 from n)"
        " select item, 'ann' as annotator, 'x' as label from n"
    )
    path = make_sqlite(tmp_path / "labels.db", endless)
    assert "take more than 1.0 MB, the limit" in refused(path, max_size="1MB")


def test_files_that_are_no_databases(tmp_path):
    for name, content in {
        "text.sqlite": b"item,annotator,label\n",
        "cut.db": b"SQLite format 3\0" + b"x" * 100,
        "text.duckdb": b"select 1;",
    }.items():
        (tmp_path / name).write_bytes(content)
        assert refused(tmp_path / name).startswith(f"{tmp_path / name}: the ")


def test_a_locked_database_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr("annotruth.io.databases._WAIT_FOR_LOCK", 0)
    path = make_sqlite(tmp_path / "labels.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin exclusive")
        assert "the database is locked by another program" in refused(path)


def test_databases_only_where_they_are_read(tmp_path, write):
    path = make_sqlite(tmp_path / "labels.db")
    csv = write("labels.csv", "item,annotator,label\n1,ann,x\n")
    assert "this is not a database or workbook: leave out query" in refused(csv, query="select 1")
    assert "save the table as CSV" in refused(path, memory="100MB")
    with pytest.raises(at.InputError, match="query is for files"):
        at.fit(ROWS, query="select 1")
    with pytest.raises(at.InputError, match="read only as LABELS"):
        at.fit(ROWS, gold=path)


def test_duckdb(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "labels.duckdb"
    (tmp_path / "secret.csv").write_text("item,annotator,label\n1,ann,x\n")
    with closing(duckdb.connect(str(path))) as connection:
        connection.execute(f"create table votes ({COLUMNS})")
        connection.executemany("insert into votes values (?, ?, ?)", ROWS)
    assert read_labels(path).same_as(at.Labels.of(ROWS))
    assert read_labels(path, query="from votes where item = 1").n_labels == 2
    secret = f"select * from read_csv('{tmp_path / 'secret.csv'}')"
    assert "the database cannot be read" in refused(path, query=secret)


def test_duckdb_without_its_package(tmp_path, monkeypatch):
    (tmp_path / "labels.duckdb").write_bytes(b"x" * 8 + b"DUCK" + b"x" * 100)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "pip install 'annotruth[sql]'" in refused(tmp_path / "labels.duckdb")


def test_servers_without_a_driver_or_a_query(monkeypatch):
    url = f"postgresql://ann:{PASSWORD}@localhost/db?sslpassword=hidden"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for options in ({}, {"query": "select 1"}, {"memory": "1GB"}, {"query": "drop table x"}):
        message = refused(url, **options)
        assert message.startswith("postgresql://ann:***@localhost/db?sslpassword=***: ")
        assert PASSWORD not in message


def test_the_command_takes_a_query_and_hides_passwords(run, tmp_path, monkeypatch):
    path = make_sqlite(tmp_path / "labels.db")
    page = tmp_path / "r.html"
    query = "select * from votes where item = 1"
    assert run("fit", path, "--query", query, "--json", "--report", page)[0] == 0
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    code, out, err = run("fit", f"mysql://u:{PASSWORD}@host/db", "--query", query)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "mysql://u:***@host/db: database servers need a driver" in err


def _skip(reason: str) -> NoReturn:
    if os.environ.get("ANNOTRUTH_NEEDS_POSTGRESQL"):
        pytest.fail(f"{reason}, but ANNOTRUTH_NEEDS_POSTGRESQL is set")
    pytest.skip(reason)


@pytest.fixture(scope="module")
def server(postgresql_server):
    """The URL of a PostgreSQL server with a table of labels, which asks for a password."""
    values = ",".join(str(row) for row in ROWS)
    postgresql_server.run(f"create table votes ({COLUMNS}, seconds numeric)")
    postgresql_server.run(f"insert into votes values {values}")
    return postgresql_server.url()


@pytest.fixture(params=["adbc_driver_postgresql", "sqlalchemy"])
def url(request, monkeypatch):
    """The URL of the server, read by one of the drivers."""
    driver = "psycopg" if request.param == "sqlalchemy" else request.param
    if any(importlib.util.find_spec(name) is None for name in (request.param, driver)):
        _skip(f"{driver} is not installed")
    if request.param == "sqlalchemy":
        find = importlib.util.find_spec
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda name: None if "adbc" in name else find(name)
        )
    return request.getfixturevalue("server")


def test_postgresql(url, run, tmp_path):
    query = "select item, annotator, label from votes where label like '%' order by 1, 2"
    labels = read_labels(url, query=query)
    assert labels.same_as(at.Labels.of(ROWS))
    assert labels.read_as == "database server, query"
    page, saved = tmp_path / "r.html", tmp_path / "fit"
    code, out, err = run(
        "--verbose", "fit", url, "--query", query, "--report", page, "--save", saved
    )
    assert code == 0
    written = [file.read_bytes() for file in saved.rglob("*") if file.is_file()]
    for text in (out.encode(), err.encode(), page.read_bytes(), *written):
        assert b"cr%3Aet" not in text
    assert "postgresql://ann:***@127.0.0.1" in page.read_text()


def test_postgresql_is_only_read_and_limited(url):
    deleting = "with gone as (delete from votes returning *) select * from gone"
    assert "the database cannot be read: " in refused(url, query=deleting)
    select = "select item, annotator, label from votes"
    assert read_labels(url, query=select).n_labels == 4
    endless = "select n as item, 'a' as annotator, 'x' as label from generate_series(1, 100000) n"
    assert "take more than 1.0 MB, the limit" in refused(url, query=endless, max_size="1MB")
    wrong = url.replace("se%2F", "no%2F")
    message = refused(wrong, query="select 1")
    assert "password authentication failed" in message
    assert "cr%3Aet" not in message
