"""The command line as ``python -m annotruth``."""

from annotruth.app.cli import main

if __name__ == "__main__":
    main()
