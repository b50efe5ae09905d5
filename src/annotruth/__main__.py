"""The command line as ``annotruth`` and as ``python -m annotruth``."""

from __future__ import annotations


def main() -> None:
    """Run the command line; Ctrl-C while it is imported ends it as any command."""
    try:
        from annotruth.app import cli

        cli.main()
    except KeyboardInterrupt:
        from annotruth.app import console

        console.exit_interrupted()


if __name__ == "__main__":
    main()
