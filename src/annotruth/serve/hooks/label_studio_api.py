"""Label Studio's API, as far as polling and predictions need it."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any, Self

import httpx2

from annotruth.errors import shown
from annotruth.serve.hooks.message import Fields
from annotruth.serve.hooks.platform_client import PlatformClient, PlatformError, TokenAuth

_TITLE = "Label Studio"
_TASKS_AT_ONCE = 100
_REFRESH = "/api/token/refresh/"


class AccessTokenAuth(httpx2.Auth):
    """Authentication by a personal access token.

    It is exchanged for an access token, which Label Studio accepts for some minutes; after a 401, for
    a new one.

    Examples
    --------
    >>> request = httpx2.Request("GET", "https://example.org/api/projects/")
    >>> str(next(AccessTokenAuth("eyJ.eyJ.x", "https://example.org").auth_flow(request)).url)
    'https://example.org/api/token/refresh/'
    """

    requires_response_body = True

    def __init__(self, token: str, url: str) -> None:
        self._token = token
        self._url = url.rstrip("/")
        self._access = ""

    def auth_flow(
        self, request: httpx2.Request
    ) -> Generator[httpx2.Request, httpx2.Response, None]:
        """Add the access token to a request, and get a new one if there is none that is accepted."""
        for _ in range(2):
            if not self._access:
                content = {"refresh": self._token}
                answer = yield httpx2.Request("POST", self._url + _REFRESH, json=content)
                self._access = _access_token(answer)
            request.headers["Authorization"] = f"Bearer {self._access}"
            response = yield request
            if response.status_code != 401:
                return
            self._access = ""


def _access_token(answer: httpx2.Response) -> str:
    try:
        content = answer.json() if answer.status_code == 200 else None
    except ValueError:
        content = None
    if not isinstance(content, dict) or not isinstance(content.get("access"), str):
        raise PlatformError(
            f"{_TITLE} refuses the personal access token ({answer.status_code}): give the "
            "connection a valid one"
        )
    return str(content["access"])


class LabelStudio:
    """A project of Label Studio.

    Parameters
    ----------
    settings
        The settings of a connection: ``url``, ``project`` (a number) and ``token``, a legacy token
        or a personal access token.
    options
        Options of `PlatformClient`.

    Examples
    --------
    >>> def answer(request):
    ...     return httpx2.Response(200, json={"total": 1, "tasks": [{"id": 7}]})
    >>> settings = {"url": "https://example.org", "project": 3, "token": "0123"}
    >>> with LabelStudio(settings, transport=httpx2.MockTransport(answer)) as label_studio:
    ...     list(label_studio.tasks())
    [{'id': 7}]
    """

    def __init__(self, settings: Fields, **options: Any) -> None:
        url, token = str(settings["url"]), str(settings["token"])
        is_personal = token.count(".") == 2  # a JSON web token
        auth = AccessTokenAuth(token, url) if is_personal else TokenAuth(f"Token {token}")
        self.number = int(settings["project"])
        self._client = PlatformClient(_TITLE, url, auth, **options)

    def __enter__(self) -> Self:
        """Return the project."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self._client.__exit__()

    def tasks(self) -> Iterator[dict[str, Any]]:
        """Return all tasks, with annotations and predictions, page by page in order of their ids.

        Tasks that are deleted meanwhile move the pages, so that a task may be missed.
        """
        page, n_read = 1, 0
        while True:
            content = self._client.get(
                "/api/tasks",
                project=self.number,
                page=page,
                page_size=_TASKS_AT_ONCE,
                fields="all",
            )
            tasks = content.get("tasks") if isinstance(content, dict) else None
            if not isinstance(tasks, list) or not all(isinstance(each, dict) for each in tasks):
                raise PlatformError(f"{_TITLE} returned no list of tasks ({shown(content)})")
            yield from tasks
            n_read += len(tasks)
            if not tasks or n_read >= content.get("total", 0):
                return
            page += 1

    def has_annotation(self, number: str) -> bool:
        """Return whether an annotation still exists."""
        return self._client.exists(f"/api/annotations/{number}/")

    def project(self) -> dict[str, Any]:
        """Return the settings of the project."""
        content = self._client.get(f"/api/projects/{self.number}/")
        if not isinstance(content, dict):
            raise PlatformError(f"{_TITLE} returned no project ({shown(content)})")
        return content

    def choose_model(self, version: str) -> None:
        """Make the Data Manager show the scores of a model's predictions."""
        self._client.patch(f"/api/projects/{self.number}/", {"model_version": version})

    def add_predictions(self, predictions: Sequence[Fields]) -> int:
        """Add predictions, and return how many Label Studio took; it leaves out invalid ones."""
        path = f"/api/projects/{self.number}/import/predictions"
        content = self._client.post(path, list(predictions))
        created = content.get("created") if isinstance(content, dict) else None
        return created if isinstance(created, int) else len(predictions)

    def change_prediction(self, number: int, changes: Fields) -> None:
        """Change a prediction."""
        self._client.patch(f"/api/predictions/{number}/", dict(changes))

    def delete_prediction(self, number: int) -> None:
        """Delete a prediction."""
        self._client.delete(f"/api/predictions/{number}/")
