"""Run the web server: ``python -m annotruth.serve.web``, with settings from the environment."""

from __future__ import annotations

import logging
import os
import sys

import uvicorn

from annotruth.errors import AnnotruthError
from annotruth.serve.config import ServeConfig
from annotruth.serve.web.app import make_app

_STOP_SECONDS = 5  # open streams end after this time at a stop
_MOST_CONNECTIONS = 2_000


def main() -> None:
    """Run the web server until it is stopped."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level="INFO")
    try:
        config = ServeConfig.from_environment(os.environ)
        app = make_app(config)
    except AnnotruthError as error:
        sys.exit(_bad_settings(error))
    uvicorn.run(
        app,
        host=config.host,
        port=config.port,
        log_config=None,
        access_log=False,  # the application has its own, without queries
        server_header=False,
        proxy_headers=bool(config.trusted_proxies),
        forwarded_allow_ips=list(config.trusted_proxies),
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=_STOP_SECONDS,
        ws="none",
    )


def _bad_settings(error: AnnotruthError) -> int:
    logging.getLogger("annotruth.serve").error("%s", error)
    return 2


if __name__ == "__main__":
    main()
