"""The command line as ``annotruth`` and as ``python -m annotruth``."""

from __future__ import annotations

import signal


def _terminate(number: int, _: object) -> None:
    """End the process as an error does, so that nothing is left behind; a second time, at once."""
    signal.signal(number, signal.SIG_DFL)
    raise SystemExit(128 + number)


def main() -> None:
    """Run the command line; Ctrl-C while it is imported ends it as any command."""
    signal.signal(signal.SIGTERM, _terminate)
    try:
        from annotruth.app import cli

        cli.main()
    except KeyboardInterrupt:
        from annotruth.app import console

        console.exit_interrupted()


if __name__ == "__main__":
    main()
