"""Attacks by tools that know only the description of the API: Schemathesis, and a generated client."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from tests.serve.web.conftest import Server

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "ignored_auth",
)
CLIENT = """
import json, sys
from annotruth_serve_client import AuthenticatedClient
from annotruth_serve_client.api.labels import get_labels_api_v1_projects_project_labels_get as get
from annotruth_serve_client.api.labels import post_labels_api_v1_projects_project_labels_post as post
from annotruth_serve_client.models import NewLabel

client = AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2])
label = NewLabel(item="generated", annotator="ann", label="owl", event_id="generated-1")
done = post.sync(project="birds", client=client, body=label)
assert done.accepted + done.repeated == 1, done
since, found = 0, []
while since is not None:
    read = get.sync(project="birds", client=client, since=since, limit=1000).to_dict()
    found += [each for each in read["labels"] if each["item"] == "generated"]
    since = read["next"]
assert [each["label"] for each in found] == ["owl"], found
assert get.sync_detailed(project="none", client=client).status_code == 404
"""


def run_schemathesis(server: Server, folder: Path, seconds: float) -> str:
    """Run Schemathesis for some seconds; return what it reports if something is wrong."""
    command = [
        *(str(folder / "schemathesis"), "run", f"http://127.0.0.1:{server.port}/openapi.json"),
        *("--header", f"Authorization: Bearer {server.tokens['admin']}"),
        *("--checks", ",".join(CHECKS), "--max-time", str(int(seconds)), "--no-color"),
        *("--exclude-path", "/api/v1/projects/{project}/events"),  # it does not end
        *("--phases", "examples,coverage,fuzzing", "--generation-database", "none"),
        *("--warnings", "off", "--continue-on-failure"),
    ]
    with tempfile.TemporaryDirectory() as work:
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout[-6_000:] + done.stderr[-2_000:]


def run_generated_client(server: Server, folder: Path) -> str:
    """Generate a client, which posts and reads labels; return what went wrong, if anything."""
    url = f"http://127.0.0.1:{server.port}"
    with tempfile.TemporaryDirectory() as work:
        generate = [
            str(folder / "openapi-python-client"),
            "generate",
            "--url",
            f"{url}/openapi.json",
        ]
        path = f"{folder}{os.pathsep}{os.environ.get('PATH', '')}"  # it formats with ruff
        done = subprocess.run(
            [*generate, "--output-path", "client"],
            cwd=work,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PATH": path},
        )
        if done.returncode:
            return done.stdout + done.stderr
        use = [str(folder / "python"), "-c", CLIENT, url, server.tokens["admin"]]
        done = subprocess.run(
            use, cwd=Path(work, "client"), capture_output=True, text=True, check=False
        )
        return done.stdout + done.stderr if done.returncode else ""
