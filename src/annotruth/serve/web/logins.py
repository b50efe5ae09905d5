"""Logins of pages: signed cookies, and tokens against cross-site request forgery.

A login names the token that was used to log in; the token's scope, project and expiry are looked
up at every request, so a revoked token ends its logins. The cookie is signed with a key that lies
in the data directory.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import NamedTuple

from starlette.responses import Response

from annotruth.errors import InputError, system_errors_reported

KEY_FILE = "login.key"
_KEY_BYTES = 32


class Login(NamedTuple):
    """A login.

    Attributes
    ----------
    token_id
        The public part of the token that was used to log in.
    expires
        When the login ends, in seconds since 1970.
    nonce
        Random text that makes each login different.

    Examples
    --------
    >>> Login("k3", 1_900_000_000, "n0").token_id
    'k3'
    """

    token_id: str
    expires: int
    nonce: str


class LoginSigner:
    """Makes and checks the cookies of logins.

    Examples
    --------
    >>> signer = LoginSigner(b"a key of this server")
    >>> cookie = signer.cookie(Login("k3", 1_900_000_000, "n0"))
    >>> signer.login(cookie, now=1_800_000_000).token_id
    'k3'
    >>> signer.login(cookie, now=1_900_000_001) is None
    True
    >>> signer.login(cookie.replace("k3", "k4"), now=1_800_000_000) is None
    True
    """

    def __init__(self, key: bytes, *, behind_tls: bool = False) -> None:
        self._key = key
        self._behind_tls = behind_tls
        # Browsers accept the prefix only with Secure and without a domain.
        self.cookie_name = "__Host-annotruth" if behind_tls else "annotruth"

    def start(self, response: Response, token_id: str, now: float, seconds: float) -> Login:
        """Log in: set the cookie of a new login on a response."""
        login = Login(token_id, int(now + seconds), secrets.token_urlsafe(16))
        response.set_cookie(
            self.cookie_name,
            self.cookie(login),
            max_age=int(seconds),
            path="/",
            secure=self._behind_tls,
            httponly=True,
            samesite="strict",
        )
        return login

    def end(self, response: Response) -> None:
        """Log out: remove the cookie."""
        response.delete_cookie(
            self.cookie_name, path="/", secure=self._behind_tls, httponly=True, samesite="strict"
        )

    def cookie(self, login: Login) -> str:
        """Return the signed text of a login."""
        text = f"{login.token_id}.{login.expires}.{login.nonce}"
        return f"{text}.{self._sign('login', text)}"

    def login(self, cookie: str, now: float) -> Login | None:
        """Return the login of a cookie; None if it is not signed by this server or has ended."""
        text, _, signature = cookie.rpartition(".")
        if not _equal(signature, self._sign("login", text)):
            return None
        token_id, expires, nonce = text.split(".")
        return Login(token_id, int(expires), nonce) if now < int(expires) else None

    def csrf_token(self, login: Login) -> str:
        """Return the text that every form of this login must send back."""
        return self._sign("csrf", f"{login.token_id}.{login.nonce}")

    def is_csrf_token(self, login: Login, text: str) -> bool:
        """Return whether a form's text is that of the login."""
        return _equal(text, self.csrf_token(login))

    def _sign(self, purpose: str, text: str) -> str:
        message = f"{purpose}.{text}".encode("utf-8", "surrogatepass")
        digest = hmac.digest(self._key, message, hashlib.sha256)
        return urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")


def _equal(one: str, other: str) -> bool:
    return hmac.compare_digest(
        one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass")
    )


def login_key(folder: Path) -> bytes:
    """Return the key that signs logins, which is made at the first start."""
    path = folder / KEY_FILE
    with system_errors_reported(path):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            pass
        else:
            with os.fdopen(handle, "wb") as file:
                file.write(secrets.token_bytes(_KEY_BYTES))
        key = path.read_bytes()
    if len(key) != _KEY_BYTES:
        raise InputError(f"{path} is not a key: remove it, which ends all logins")
    return key
