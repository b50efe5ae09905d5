"""What can go wrong, said so that the reader knows the next step.

Every exception a user can cause derives from `AnnotruthError`; its text is one line that
says what was found, where, and what to do.
"""

__all__ = [
    "AnnotruthError",
    "AnnotruthWarning",
    "ConvergenceWarning",
    "InputError",
    "NotFittedError",
    "OutputError",
]


class AnnotruthError(Exception):
    """Base of every error that annotruth raises on purpose."""


class InputError(AnnotruthError, ValueError):
    """The labels, the truth or an option cannot be used as they are."""


class NotFittedError(AnnotruthError, AttributeError):
    """An estimator was asked before it was fitted; to ``hasattr`` it has no answer yet."""


class OutputError(AnnotruthError, OSError):
    """A result could not be written; nothing was left half-written."""


class AnnotruthWarning(UserWarning):
    """Base of every warning that annotruth gives; the answer stands, but read the line."""


class ConvergenceWarning(AnnotruthWarning):
    """The fit stopped at its cap of iterations before it settled."""
