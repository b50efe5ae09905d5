"""Signatures of webhooks."""

import base64
import hashlib
import hmac
from datetime import UTC, datetime, timedelta

import pytest

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

# The example of the specification of Standard Webhooks' libraries.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
MESSAGE_ID = "msg_p5jXN8AQM9LWM0D4loKWxJek"
TIME = datetime.fromtimestamp(1614265330, UTC)
BODY = b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


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
