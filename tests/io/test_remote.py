"""Labels, truth and gold at https, s3 and gs URLs: read from servers that the tests start."""

import base64
import gc
import gzip
import io
import json
import socket
import sqlite3
import tempfile
import threading
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tests.io.conftest import refused_source as refused

import annotruth as at
from annotruth.io import remote
from annotruth.io.parse import read_table
from annotruth.io.readers import read_labels

CSV = b"item,annotator,label\n1,ann,x\n1,bob,y\n2,ann,x\n2,bob,x\n"
TRUTH = b"item,label\n1,x\n2,x\n"
SIGNED = "X-Amz-Signature=5ecret"


class Store(ThreadingHTTPServer):
    """Answers GET and HEAD of the files in ``files``, by HTTP, and as S3 and Google Cloud do."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {"/labels.csv": CSV, "/truth.csv": TRUTH}
        self.responses: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.seen: list[tuple[str, str | None]] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self, *, body: bool = True) -> None:
        path = self.path.partition("?")[0]
        for prefix in ("/bucket", "/storage/v1/b/bucket/o"):
            path = path.removeprefix(prefix)
        self.server.seen.append((path, self.headers.get("Authorization")))
        content = self.server.files.get(path)
        default = (404, {}, b"") if content is None else (200, {}, content)
        status, headers, content = self.server.responses.get(path, default)
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            if value:
                self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(content)

    def do_HEAD(self) -> None:
        self.do_GET(body=False)

    def log_message(self, *args) -> None:
        pass


@pytest.fixture
def store(monkeypatch):
    """A server of files; s3 and gs URLs lead to it too."""
    with Store() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
        for name, value in {
            **keys,
            "AWS_ENDPOINT_URL": server.url,
            "AWS_EC2_METADATA_DISABLED": "true",
            "CLOUD_STORAGE_EMULATOR_ENDPOINT": server.url,
        }.items():
            monkeypatch.setenv(name, value)
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def copies(tmp_path, monkeypatch):
    """The folder for temporary files, which must be empty afterwards."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    gc.collect()  # labels on disk are removed with their table
    assert not list(folder.iterdir())


@pytest.fixture(params=["http", "s3", "gs"])
def base(request, store) -> str:
    """The URL of a folder."""
    return {"http": store.url, "s3": "s3://bucket", "gs": "gs://anonymous@bucket"}[request.param]


def test_labels_truth_and_gold(base, store, tmp_path):
    (tmp_path / "labels.csv").write_bytes(CSV)
    assert read_labels(f"{base}/labels.csv").same_as(read_labels(tmp_path / "labels.csv"))
    assert read_table(f"{base}/truth.csv").num_rows == 2
    fit = at.fit(f"{base}/labels.csv", gold=f"{base}/truth.csv")
    assert fit.data.known.tolist() == [0, 0]
    assert at.evaluate(fit, f"{base}/truth.csv")["accuracy"] == 1
    assert read_labels(f"{base}/labels.csv", memory="100MB").n_labels == 4


def test_any_format_is_read_and_files_are_combined(base, store, tmp_path):
    tasks = {"0.png": {"ann": 1, "bob": 1}, "1.png": {"ann": 0}}
    store.files["/answers.json"] = json.dumps(tasks).encode()
    store.files["/b.csv.gz"] = gzip.compress(
        CSV.replace(b"\n1,", b"\n8,").replace(b"\n2,", b"\n9,")
    )
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        connection.execute("create table votes as select 1 item, 'ann' annotator, 'x' label")
    store.files["/a.sqlite"] = (tmp_path / "a.db").read_bytes()
    assert read_labels(f"{base}/answers.json").n_labels == 3
    assert read_labels(f"{base}/a.sqlite", query="select * from votes").n_labels == 1
    assert read_labels([f"{base}/labels.csv", f"{base}/b.csv.gz"]).n_labels == 8
    assert "is read twice" in refused([f"{base}/labels.csv", f"{base}/labels.csv"])


def test_missing_files_and_refusals(base, store):
    name = "there is no such object" if "bucket" in base else "the server has no such file (404)"
    assert name in refused(f"{base}/missing.csv")
    store.responses["/labels.csv"] = (403, {}, b"")
    message = refused(f"{base}/labels.csv")
    assert "access" in message
    assert "check that you may read the file" in message


def test_sizes_are_limited(base, store):
    store.files["/labels.csv"] = CSV + b"3,ann,x\n" * 100_000
    message = refused(f"{base}/labels.csv", max_size="100KB")
    assert "the file has more than 100.0 kB, the limit" in message
    assert "max_size=" in message


def test_unclear_ends_are_refused(store):
    store.responses["/labels.csv"] = (200, {"Content-Length": str(len(CSV) + 1)}, CSV)
    expected = f"the connection ended after {len(CSV)} of {len(CSV) + 1} bytes: try again"
    assert expected in refused(f"{store.url}/labels.csv")
    chunked = {"Content-Length": "", "Transfer-Encoding": "chunked"}
    store.responses["/labels.csv"] = (200, chunked, b"5\r\nitem,\r\n5\r\nan")
    assert "the file cannot be fetched" in refused(f"{store.url}/labels.csv")
    store.responses["/labels.csv"] = (200, {"Content-Type": "text/html; charset=utf-8"}, b"<html>")
    assert "the address of a web page" in refused(f"{store.url}/labels.csv")
    store.responses["/labels.csv"] = (503, {}, b"")
    assert "the server answers 503" in refused(f"{store.url}/labels.csv")


def test_redirects_go_to_http_of_this_machine_or_https_only(store):
    def redirect(to: str) -> None:
        store.responses["/moved.csv"] = (302, {"Location": to}, b"")

    redirect("/labels.csv")
    assert read_labels(f"{store.url}/moved.csv").n_labels == 4
    redirect("file:///etc/passwd")
    assert "redirects too often, or not to https (302)" in refused(f"{store.url}/moved.csv")
    redirect("ftp://127.0.0.1/labels.csv")
    assert "redirects to ftp://" in refused(f"{store.url}/moved.csv")
    redirect("http://example.org/labels.csv")
    assert "write https://" in refused(f"{store.url}/moved.csv")
    redirect("/moved.csv")
    assert "redirects too often" in refused(f"{store.url}/moved.csv")


def test_servers_elsewhere_must_not_lead_to_this_machine():
    request = remote.urllib.request.Request("https://example.org/labels.csv")
    follow = remote._CheckedRedirects().redirect_request
    with pytest.raises(at.InputError, match="redirects to http://, which is not followed"):
        follow(request, io.BytesIO(), 302, "Found", {}, "http://127.0.0.1/secret")
    moved = follow(request, None, 302, "Found", {}, "https://example.com/labels.csv")
    assert moved.full_url == "https://example.com/labels.csv"


def test_a_name_and_password_are_sent_once_and_never_shown(store, run, tmp_path):
    store.responses["/moved.csv"] = (302, {"Location": f"{store.url}/labels.csv"}, b"")
    url = store.url.replace("//", "//ann:5ecret%21@")
    assert read_labels(f"{url}/moved.csv?{SIGNED}").n_labels == 4
    login = "Basic " + base64.b64encode(b"ann:5ecret!").decode()
    assert store.seen == [("/moved.csv", login), ("/labels.csv", None)]
    page, saved = tmp_path / "r.html", tmp_path / "fit"
    words = ("--gold", f"{url}/truth.csv?{SIGNED}", "--report", page, "--save", saved)
    code, out, err = run("--verbose", "fit", f"{url}/labels.csv?{SIGNED}", *words)
    assert code == 0
    written = [file.read_bytes() for file in saved.rglob("*") if file.is_file()]
    for text in (out.encode(), err.encode(), page.read_bytes(), *written):
        assert b"5ecret" not in text
    assert "//ann:***@127.0.0.1" in page.read_text()
    code, out, err = run("fit", f"{url}/labels.csv", "--truth", f"{url}/no.csv?{SIGNED}")
    assert (code, err.count("\n")) == (2, 1)
    assert "/no.csv?***: the server has no such file (404)" in err
    assert "5ecret" not in err
    assert "no column" in refused(f"{url}/truth.csv?{SIGNED}")
    with pytest.raises(at.InputError) as caught:
        at.fit(f"{url}/labels.csv", gold=f"{url}/labels.csv?{SIGNED}", duplicates="keep")
    assert "5ecret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("https://nowhere.invalid/labels.csv", "the host is not found: check the address"),
        ("http://127.0.0.1:9/labels.csv", "the file cannot be fetched"),
        ("http://example.org/labels.csv", "http:// is not encrypted"),
        ("https:///labels.csv", "the URL names no host"),
        ("https://h:99999/labels.csv", "this is not a valid URL"),
        (
            "ftp://example.org/labels.csv",
            "ftp:// is not read, only https://, http://, s3://, gs://",
        ),
        ("s3://bucket", "the file cannot be fetched"),
    ],
)
def test_addresses_at_fault(url, message, store):
    assert message in refused(url)


def test_servers_that_do_not_answer(monkeypatch):
    monkeypatch.setattr(remote, "_TIMEOUT", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/labels.csv"
        assert "does not answer within 0.1 seconds" in refused(url)


def test_what_stores_say_becomes_one_line():
    for scheme, text, message in [
        ("s3", "AWS Error NETWORK_CONNECTION during HeadBucket", "the store cannot be reached"),
        ("s3", "AWS Error ACCESS_DENIED during HeadObject", "set AWS_PROFILE"),
        ("gs", "Could not create a OAuth2 access token", "gcloud auth application-default login"),
        ("gs", "CURL error [6]=Could not resolve hostname", "the store cannot be reached"),
        ("s3", "something\nelse", "the file cannot be fetched (something else)"),
    ]:
        with pytest.raises(at.InputError) as caught:
            remote._refuse_object(scheme, OSError(text))
        assert message in str(caught.value)
