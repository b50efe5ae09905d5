"""Run the web server: ``python -m annotruth.serve.web``, with settings from the environment."""

from __future__ import annotations

import logging
import os
import sys

import uvicorn

from annotruth.errors import AnnotruthError
from annotruth.serve.config import ServeConfig
from annotruth.serve.start import end_with_parent
from annotruth.serve.web.app import make_app, server_config

_LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def main() -> None:
    """Run the web server until it is stopped."""
    logging.basicConfig(format=_LOG_FORMAT, level=logging.WARNING)
    logging.getLogger("annotruth.serve").setLevel(logging.INFO)
    end_with_parent()
    try:
        config = ServeConfig.from_environment(os.environ)
        if not config.log_requests:
            logging.getLogger("annotruth.serve.access").setLevel(logging.WARNING)
        app = make_app(config)
    except AnnotruthError as error:
        logging.getLogger("annotruth.serve").error("%s", error)
        sys.exit(2)
    uvicorn.Server(server_config(app, config)).run()


if __name__ == "__main__":
    main()
