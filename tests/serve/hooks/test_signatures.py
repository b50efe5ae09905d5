"""Signatures of messages, settings of connections, and requests to platforms."""

import base64
import hashlib
import hmac
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from annotruth.errors import InputError
from annotruth.serve.hooks.message import (
    TOLERANCE,
    SignatureError,
    new_secret,
    sign,
    sign_hex,
    standard_key,
    verify_hex,
    verify_secret,
    verify_standard,
)
from annotruth.serve.hooks.platforms import (
    can_poll,
    check_settings,
    parse_settings,
    public_settings,
)
from annotruth.serve.outgoing import PlatformClient, PlatformError, PrivateAddressError, token_auth

# The example of the specification of Standard Webhooks' libraries.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
MESSAGE_ID = "msg_p5jXN8AQM9LWM0D4loKWxJek"
TIME = datetime.fromtimestamp(1614265330, UTC)
BODY = b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="

API = {"url": "https://labels.example.org", "project": 3, "token": "s3cret"}


def test_the_published_example():
    headers = sign(SECRET, MESSAGE_ID, TIME, BODY)
    assert headers == {
        "webhook-id": MESSAGE_ID,
        "webhook-timestamp": "1614265330",
        "webhook-signature": SIGNATURE,
    }
    verify_standard(standard_key(SECRET), headers, BODY, TIME)


def test_a_signature_by_hand():
    key = b"0123456789abcdef"
    secret = "whsec_" + base64.b64encode(key).decode()
    digest = hmac.new(key, b"m1.1614265330." + BODY, hashlib.sha256).digest()
    assert sign(secret, "m1", TIME, BODY)["webhook-signature"] == (
        "v1," + base64.b64encode(digest).decode()
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"webhook-id": "another"},
        {"webhook-id": ""},
        {"webhook-timestamp": "1614265331"},
        {"webhook-timestamp": ""},
        {"webhook-signature": ""},
        {"webhook-signature": "v1,"},
        {"webhook-signature": SIGNATURE.replace("v1", "v2")},
        {"webhook-signature": "v1,ü\udc80"},
    ],
)
def test_what_is_signed_cannot_be_changed(changes):
    headers = sign(SECRET, MESSAGE_ID, TIME, BODY) | changes
    with pytest.raises(SignatureError, match=r"signature .* wrong or missing"):
        verify_standard(standard_key(SECRET), headers, BODY, TIME)


def test_another_body_another_key_and_no_headers():
    headers = sign(SECRET, MESSAGE_ID, TIME, BODY)
    for key, given, body in (
        (standard_key(SECRET), headers, BODY + b" "),
        (b"another", headers, BODY),
        (b"", headers, BODY),
        (standard_key(SECRET), {}, BODY),
    ):
        with pytest.raises(SignatureError, match="wrong or missing"):
            verify_standard(key, given, body, TIME)


def test_one_of_several_signatures_is_enough():
    headers = sign(SECRET, MESSAGE_ID, TIME, BODY)
    headers["webhook-signature"] = f"v1,AAAA v1a,BBBB {SIGNATURE}"
    verify_standard(standard_key(SECRET), headers, BODY, TIME)


@pytest.mark.parametrize("seconds", [-TOLERANCE - 1, TOLERANCE + 1])
def test_old_and_future_messages_are_refused(seconds):
    headers = sign(SECRET, MESSAGE_ID, TIME, BODY)
    verify_standard(standard_key(SECRET), headers, BODY, TIME + timedelta(seconds=TOLERANCE))
    with pytest.raises(SignatureError, match="differs by more than 5 minutes"):
        verify_standard(standard_key(SECRET), headers, BODY, TIME + timedelta(seconds=seconds))


@pytest.mark.parametrize("text", ["1e9", "-5", "٣", "9" * 400, "nan", "1614265330.5"])
def test_times_that_are_none(text):
    key = standard_key(SECRET)
    signed = f"{MESSAGE_ID}.{text}.".encode() + BODY
    digest = base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
    headers = {
        "webhook-id": MESSAGE_ID,
        "webhook-timestamp": text,
        "webhook-signature": f"v1,{digest}",
    }
    with pytest.raises(SignatureError, match="webhook-timestamp"):
        verify_standard(key, headers, BODY, TIME)


def test_secrets_are_new_and_long():
    one, other = new_secret(), new_secret()
    assert one != other
    assert len(standard_key(one)) == 32
    assert standard_key("plain text!") == b"plain text!"
    assert standard_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw") == standard_key(
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    )


def test_hexadecimal_signatures():
    expected = hmac.new(b"secret", BODY, hashlib.sha256).hexdigest()
    assert sign_hex("secret", BODY) == f"sha256={expected}"
    verify_hex("secret", f"sha256={expected}", BODY)
    verify_hex("secret", expected, BODY)
    for secret, given in (("other", expected), ("secret", ""), ("", sign_hex("", BODY))):
        with pytest.raises(SignatureError, match="wrong or missing"):
            verify_hex(secret, given, BODY)


def test_plain_secrets():
    verify_secret("abc", "abc")
    for given, secret in (("abd", "abc"), ("", "abc"), ("", ""), ("ü", "abc")):
        with pytest.raises(SignatureError, match="secret is wrong or missing"):
            verify_secret(given, secret)


def test_good_settings():
    for kind, settings in (
        ("label-studio", {}),
        ("label-studio", {**API, "question": "sentiment", "predictions": True}),
        ("argilla", {"dataset": "reviews"}),
        ("cvat", API),
        ("generic", {}),
    ):
        assert check_settings(kind, settings) == settings


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        ("doccano", {}, "there is no kind 'doccano'"),
        ("potato", {"dataset": "x"}, "connections of potato have no setting 'dataset'"),
        ("label-studio", {"url": API["url"]}, "has no project: polling needs url, project, token"),
        ("label-studio", {"predictions": True}, "predictions need url, project, token"),
        (
            "label-studio",
            {**API, "predictions": "yes"},
            "predictions: Input should be a valid boolean",
        ),
        ("label-studio", {**API, "project": "3"}, "project: Input should be a valid integer"),
        ("label-studio", {**API, "project": True}, "project: Input should be a valid integer"),
        ("label-studio", {**API, "url": "file:///etc/passwd"}, "is not the address"),
        ("label-studio", {"question": ""}, "question: String should have at least 1"),
        ("label-studio", {"question": "a\nb"}, "give a text without control"),
        ("label-studio", {"question": ["a"]}, "question: Input should be a valid string"),
    ],
)
def test_bad_settings(kind, settings, message):
    with pytest.raises(InputError, match=message):
        check_settings(kind, settings)


def test_tokens_are_not_shown():
    assert public_settings(API) == {**API, "token": "***"}
    with pytest.raises(InputError) as caught:
        check_settings("label-studio", {**API, "token": "s3cret\n"})
    assert "s3cret" not in str(caught.value)


def test_what_polling_needs():
    assert can_poll(API)
    assert not can_poll({"question": "x"})


def test_settings_of_a_form():
    form = {"kind": "label-studio", "csrf": "x", "question": " ", "dataset": "", "secret": ""}
    assert parse_settings("label-studio", form) == {}
    entered = {**form, **API, "project": " 3 ", "predictions": "true"}
    assert parse_settings("label-studio", entered) == {**API, "predictions": True}
    for wrong, message in (
        ({"project": "three"}, "project: Input should be a valid integer"),
        ({"project": "9" * 5000}, "project: Unable to parse input string as an integer"),
        ({"dataset": "reviews"}, "have no setting 'dataset'"),
    ):
        with pytest.raises(InputError, match=message):
            parse_settings("label-studio", {**entered, **wrong})


@pytest.fixture
def server():
    """A server on this machine that says by which name and token it was asked."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            text = f'["{self.headers["Host"]}", "{self.headers["Authorization"]}"]'.encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"localhost:{running.server_port}"
        running.shutdown()
        thread.join()


def client(host, **options):
    auth = token_auth("Token 0123")
    return PlatformClient("Label Studio", f"http://{host}", auth, sleep=lambda _: None, **options)


def test_the_name_of_the_host_is_kept(server):
    with client(server, allow_private=True) as opened:
        assert opened.get("/api") == [server, "Token 0123"]


def test_private_addresses_are_refused(server):
    with client(server) as opened, pytest.raises(PrivateAddressError, match="private address"):
        opened.get("/api")


def test_a_host_that_does_not_exist():
    message = r"does not answer \(ConnectError\)"
    with client("nowhere.invalid") as opened, pytest.raises(PlatformError, match=message):
        opened.get("/api")


def test_an_answer_that_is_too_large(server, monkeypatch):
    monkeypatch.setattr("annotruth.serve.outgoing._MAX_ANSWER", 10)
    opened = client(server, allow_private=True)
    with opened, pytest.raises(PlatformError, match="is too large: /api"):
        opened.get("/api")
