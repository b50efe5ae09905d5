"""CVAT's API, as far as polling needs it: tags of frames in completed jobs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Self

from annotruth.errors import shown
from annotruth.serve.hooks.message import Fields
from annotruth.serve.hooks.platform_client import PlatformClient, PlatformError, TokenAuth

_TITLE = "CVAT"
_AT_ONCE = 100
_LEGACY_TOKEN = re.compile("[0-9a-f]{40}")


class Cvat:
    """A project of CVAT.

    Parameters
    ----------
    settings
        The settings of a connection: ``url``, ``project`` (a number) and ``token``, a personal access
        token or an API key.
    options
        Options of `PlatformClient`.

    Examples
    --------
    >>> import httpx2
    >>> def answer(request):
    ...     return httpx2.Response(200, json={"next": None, "results": [{"id": 7}]})
    >>> settings = {"url": "https://example.org", "project": 3, "token": "0123"}
    >>> with Cvat(settings, transport=httpx2.MockTransport(answer)) as cvat:
    ...     list(cvat.jobs())
    [{'id': 7}]
    """

    def __init__(self, settings: Fields, **options: Any) -> None:
        token = str(settings["token"])
        scheme = "Token" if _LEGACY_TOKEN.fullmatch(token) else "Bearer"
        auth = TokenAuth(f"{scheme} {token}")
        self._number = int(settings["project"])
        self._client = PlatformClient(_TITLE, str(settings["url"]), auth, **options)

    def __enter__(self) -> Self:
        """Return the project."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self._client.__exit__()

    def jobs(self) -> Iterator[dict[str, Any]]:
        """Return all jobs."""
        return self._pages("/api/jobs", project_id=self._number, sort="id")

    def labels(self) -> dict[int, str]:
        """Return the names of the project's labels by their ids."""
        pages = self._pages("/api/labels", project_id=self._number)
        return {each["id"]: str(each["name"]) for each in pages if "id" in each and "name" in each}

    def tags(self, job: int) -> list[dict[str, Any]]:
        """Return the tags of a job's frames."""
        content = self._client.get(f"/api/jobs/{job}/annotations")
        return _list(content.get("tags") if isinstance(content, dict) else None)

    def frames(self, job: int) -> dict[str, Any]:
        """Return what the frames of a job are."""
        content = self._client.get(f"/api/jobs/{job}/data/meta")
        return content if isinstance(content, dict) else {}

    def has_job(self, job: str) -> bool:
        """Return whether a job still exists."""
        return self._client.exists(f"/api/jobs/{job}")

    def _pages(self, path: str, **parameters: Any) -> Iterator[dict[str, Any]]:
        page = 1
        while True:
            content = self._client.get(path, page=page, page_size=_AT_ONCE, **parameters)
            if not isinstance(content, dict):
                raise PlatformError(f"{_TITLE} returned no list ({shown(content)})")
            yield from _list(content.get("results"))
            if not content.get("next"):
                return
            page += 1


def _list(values: Any) -> list[dict[str, Any]]:
    if not isinstance(values, list) or not all(isinstance(each, dict) for each in values):
        raise PlatformError(f"{_TITLE} returned no list ({shown(values)})")
    return values
