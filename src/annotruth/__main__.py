"""The command line as ``annotruth`` and as ``python -m annotruth``."""

try:
    from annotruth.app.cli import main
except KeyboardInterrupt:  # while it is imported, Ctrl-C ends it as any command
    from annotruth.app import console

    console.exit_interrupted()

__all__ = ["main"]

if __name__ == "__main__":
    main()
