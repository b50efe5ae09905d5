"""Signatures of webhooks: Standard Webhooks, HMAC-SHA256 in hexadecimal, and plain secrets.

Standard Webhooks (https://www.standardwebhooks.com) sends three headers: ``webhook-id``,
``webhook-timestamp`` (seconds since 1970) and ``webhook-signature``, a list of ``v1,BASE64`` separated by
spaces. What is signed is ``{id}.{timestamp}.{body}``, by HMAC-SHA256. The timestamp is signed too, so that
a message which somebody recorded is refused after a few minutes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime

from annotruth.errors import AnnotruthError

_PREFIX = "whsec_"
_VERSION = "v1"
_HEX_PREFIX = "sha256="
_KEY_BYTES = 32
TOLERANCE = 300
"""How many seconds the clock of a sender may differ, as the specification recommends."""


class SignatureError(AnnotruthError):
    """A message is not signed by the secret, or was signed too long ago."""


def new_secret() -> str:
    """Return a new secret of Standard Webhooks: ``whsec_`` and 32 random bytes in base64."""
    return _PREFIX + base64.b64encode(secrets.token_bytes(_KEY_BYTES)).decode()


def standard_key(secret: str) -> bytes:
    """Return the key that a secret of Standard Webhooks stands for.

    It is the base64 after ``whsec_``. A secret without the prefix that is no base64 is its own key.
    """
    text = secret.removeprefix(_PREFIX)
    padded = text + "=" * (-len(text) % 4)
    try:
        return base64.b64decode(padded, validate=True)
    except (binascii.Error, ValueError):
        return secret.encode()


def sign(secret: str, message_id: str, timestamp: datetime, body: bytes) -> dict[str, str]:
    """Return the headers that sign a message by Standard Webhooks."""
    seconds = str(int(timestamp.timestamp()))
    return {
        "webhook-id": message_id,
        "webhook-timestamp": seconds,
        "webhook-signature": _standard(standard_key(secret), message_id, seconds, body),
    }


def verify_standard(key: bytes, headers: Mapping[str, str], body: bytes, now: datetime) -> None:
    """Refuse a message whose signature of Standard Webhooks is wrong, missing or too old.

    The key is `standard_key` of the secret, or the bytes of the secret itself where a sender does not
    decode it. Names of headers are in lower case.
    """
    message_id, seconds = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    expected = _standard(key, message_id, seconds, body)
    given = headers.get("webhook-signature", "").split(" ")
    if not key or not message_id or not any(_equal(one, expected) for one in given):
        raise SignatureError("the signature (webhook-signature) is wrong or missing")
    if not seconds.isascii() or not seconds.isdigit() or _age(seconds, now) > TOLERANCE:
        raise SignatureError(
            f"webhook-timestamp differs by more than {TOLERANCE // 60} minutes from the time here: "
            "set the clocks of both machines, or send the message again"
        )


def sign_hex(secret: str, body: bytes) -> str:
    """Return ``sha256=`` and the HMAC-SHA256 of a body in hexadecimal."""
    return _HEX_PREFIX + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def verify_hex(secret: str, given: str, body: bytes) -> None:
    """Refuse a body whose HMAC-SHA256 in hexadecimal, with or without ``sha256=``, is wrong."""
    with_prefix = given if given.startswith(_HEX_PREFIX) else _HEX_PREFIX + given
    if not secret or not _equal(with_prefix, sign_hex(secret, body)):
        raise SignatureError("the signature is wrong or missing")


def verify_secret(given: str, secret: str) -> None:
    """Refuse a secret that is not the expected one."""
    if not secret or not _equal(given, secret):
        raise SignatureError("the secret is wrong or missing")


def _standard(key: bytes, message_id: str, seconds: str, body: bytes) -> str:
    signed = f"{message_id}.{seconds}.".encode() + body
    return f"{_VERSION},{base64.b64encode(hmac.digest(key, signed, 'sha256')).decode()}"


def _equal(given: str, expected: str) -> bool:
    """Compare in constant time; text of a header may have any character."""
    return hmac.compare_digest(given.encode(errors="surrogatepass"), expected.encode())


def _age(seconds: str, now: datetime) -> float:
    """Return by how many seconds a time differs from now; infinite for a time that is none."""
    if len(seconds) > 12:  # seconds since 1970, far beyond any clock
        return float("inf")
    return abs(
        (now.astimezone(UTC) - datetime.fromtimestamp(0, UTC)).total_seconds() - int(seconds)
    )
