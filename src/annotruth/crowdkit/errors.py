"""Errors that are also those which crowd-kit raises."""

from __future__ import annotations

from annotruth.errors import InputError, one_line


class MissingColumnError(InputError, KeyError):
    """A frame lacks a column: rename the column that the message asks for.

    It is a `KeyError`, as in crowd-kit.

    Examples
    --------
    >>> import pandas as pd
    >>> from annotruth.crowdkit import MajorityVote
    >>> MajorityVote().fit(pd.DataFrame({"task": ["t1"], "label": ["cat"]}))
    Traceback (most recent call last):
    annotruth.crowdkit.errors.MissingColumnError: no column 'worker' (found: task, label): rename one
    """

    def __str__(self) -> str:
        return one_line(self.args[0])  # a KeyError shows the repr of its message


class MissingSkillError(InputError, AssertionError):
    """Workers without a skill, or an aggregator without skills: pass ``workers_skills`` of them all.

    It is an `AssertionError`, as in crowd-kit.

    Examples
    --------
    >>> import pandas as pd
    >>> from annotruth.crowdkit.metrics.data import uncertainty
    >>> frame = pd.DataFrame({"task": ["t1"], "worker": ["w1"], "label": ["cat"]})
    >>> uncertainty(frame, pd.Series({"w2": 0.9}))
    Traceback (most recent call last):
    annotruth.crowdkit.errors.MissingSkillError: workers_skills has no skill of 'w1': add it
    """
