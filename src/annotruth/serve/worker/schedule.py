"""When a project is fitted from scratch, and when again after an error: rules without state."""

from __future__ import annotations

from typing import NamedTuple

REFIT_AFTER = 0.2
"""The share of labels that may change after a fit from scratch before the next one is due."""

_QUIET_SECONDS = 30.0
_QUIET_TIMES = 10.0  # a quiet time as long as this many fits, so that refits take a tenth of it
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 30.0


class LastRefit(NamedTuple):
    """A project's last fit from scratch, and what came after it.

    Attributes
    ----------
    settings
        The fingerprint of the settings of that fit.
    n_labels
        How many labels it had.
    n_changed
        How many labels were added, edited or deleted since then.
    seconds
        How long it took.

    Examples
    --------
    >>> LastRefit("", n_labels=100, n_changed=30, seconds=0.1).share
    0.3
    """

    settings: str
    n_labels: int
    n_changed: int
    seconds: float

    @property
    def share(self) -> float:
        """The number of changed labels, relative to those of the fit."""
        return self.n_changed / max(self.n_labels, 1)


def is_refit_due(last: LastRefit | None, settings: str, refit_after: float) -> bool:
    """Return whether the next fit starts from scratch.

    It does the first time, when settings or known truths changed, and when more labels than the
    share ``refit_after`` changed. So the number of labels grows by that factor between refits, and
    all refits together take about ``1 + 1 / refit_after`` times as long as the last.
    """
    return last is None or last.settings != settings or last.share > refit_after


def is_quiet_refit_due(last: LastRefit | None, seconds_without_events: float) -> bool:
    """Return whether a refit is due because labels changed since the last one and none come now."""
    if last is None or not last.n_changed:
        return False
    return seconds_without_events >= max(_QUIET_SECONDS, _QUIET_TIMES * last.seconds)


def retry_after(n_failures: int) -> float:
    """Return how many seconds to wait after some failures in a row."""
    return min(_FIRST_WAIT * 2.0 ** max(n_failures - 1, 0), _LONGEST_WAIT)
