"""When fits are due, and when work is expected to end."""

from datetime import UTC, datetime, timedelta

import pytest

from annotruth.serve.worker.project import is_quiet_refit_due, is_refit_due, retry_after
from annotruth.serve.worker.publish import LastRefit, expected_end

NOW = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.mark.parametrize(("n_changed", "due"), [(0, False), (20, False), (21, True)])
def test_a_refit_is_due_after_a_share_of_new_labels(n_changed, due):
    assert is_refit_due(LastRefit("s", 100, n_changed, 1.0), "s", 0.2) is due


def test_a_refit_is_due_the_first_time_and_with_other_settings():
    assert is_refit_due(None, "s", 0.2)
    assert is_refit_due(LastRefit("s", 100, 0, 1.0), "other", 0.2)


def test_a_refit_is_due_when_no_labels_come_any_more():
    changed = LastRefit("s", 100, 1, seconds=20.0)
    assert not is_quiet_refit_due(changed, 199.0)
    assert is_quiet_refit_due(changed, 200.0)
    assert is_quiet_refit_due(changed._replace(seconds=0.1), 30.0)
    assert not is_quiet_refit_due(changed._replace(n_changed=0), 1e9)
    assert not is_quiet_refit_due(None, 1e9)


def test_waits_double_up_to_a_limit():
    waits = [retry_after(n) for n in range(1, 12)]
    assert waits[:3] == [1.0, 2.0, 4.0]
    assert max(waits) == 30.0


def test_the_rate_is_that_of_the_last_day():
    hour = NOW.replace(minute=0)
    per_hour = {hour - k * HOUR: 10 for k in range(24)} | {hour - 48 * HOUR: 10_000}
    expected = expected_end(per_hour, NOW, n_needed=102)
    assert expected.labels_per_hour == pytest.approx(240 / 23.5)
    assert expected.end == NOW + timedelta(hours=102 / expected.labels_per_hour)


@pytest.mark.parametrize(("counts", "n_needed"), [({}, 5), ({NOW: 5}, 0), ({NOW: 5}, None)])
def test_no_end_is_expected_without_labels_or_without_need(counts, n_needed):
    assert expected_end(counts, NOW, n_needed=n_needed).end is None


def test_an_end_beyond_the_calendar_is_none():
    assert expected_end({NOW: 1}, NOW, n_needed=10**12).end is None
