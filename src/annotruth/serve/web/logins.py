"""Logins of pages: a cookie with a secret, and tokens against cross-site request forgery.

The server knows which logins there are (`annotruth.serve.store.logins`): one that was ended is not
taken any more, whoever has its cookie.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response


class Login(NamedTuple):
    """A login, valid or not.

    Attributes
    ----------
    secret
        Random text, which the cookie holds.

    Examples
    --------
    >>> login = Login("n0")
    >>> login.is_csrf_token(login.csrf_token), login.is_csrf_token("")
    (True, False)
    """

    secret: str

    @classmethod
    def new(cls) -> Login:
        """Return a login with a new secret."""
        return cls(secrets.token_urlsafe(32))

    @property
    def csrf_token(self) -> str:
        """The text that every form of this login must send back."""
        return hashlib.sha256(f"csrf.{self.secret}".encode("utf-8", "surrogatepass")).hexdigest()

    def is_csrf_token(self, text: str) -> bool:
        """Return whether a form's text is that of the login."""
        given = text.encode("utf-8", "surrogatepass")
        return hmac.compare_digest(given, self.csrf_token.encode())


class LoginCookies:
    """Sets, reads and removes the cookies of logins.

    Examples
    --------
    >>> LoginCookies(behind_tls=True).name
    '__Host-annotruth'
    """

    def __init__(self, *, behind_tls: bool) -> None:
        self._behind_tls = behind_tls
        # Browsers accept the prefix only with Secure and without a domain.
        self.name = "__Host-annotruth" if behind_tls else "annotruth"

    def get(self, request: Request) -> Login | None:
        """Return the login of a request's cookie, which may have ended; None without a cookie."""
        secret = request.cookies.get(self.name)
        return None if secret is None else Login(secret)

    def set(self, response: Response, login: Login, seconds: float) -> None:
        """Give a login to a browser."""
        response.set_cookie(
            self.name,
            login.secret,
            max_age=int(seconds),
            path="/",
            secure=self._behind_tls,
            httponly=True,
            samesite="strict",
        )

    def remove(self, response: Response) -> None:
        """Remove the cookie."""
        response.delete_cookie(
            self.name, path="/", secure=self._behind_tls, httponly=True, samesite="strict"
        )
