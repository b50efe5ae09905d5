"""Gold labels, content, traits and leases."""

import threading
from datetime import timedelta

import pytest

import annotruth as at
from annotruth.serve.store.projects import (
    active_leases,
    all_gold,
    get_content,
    get_gold,
    get_traits,
    items_with_content,
    set_content,
    set_gold,
    set_traits,
    take_lease,
)
from annotruth.serve.store.rows import remove
from annotruth.serve.store.tables import Lease

HOUR = timedelta(hours=1)


def test_gold_content_and_traits_are_set_and_replaced(database, project, now):
    with database.begin() as connection:
        set_gold(connection, project.id, {"film 1": "good", "film 2": "bad"})
        set_gold(connection, project.id, {"film 1": "bad", "film 2": None})
        set_gold(connection, project.id, {})
        assert all_gold(connection, project.id) == {"film 1": "bad"}
        assert get_gold(connection, project.id, "film 2") is None
        set_content(connection, project.id, {"b": {"text": "x"}}, now)
        set_content(connection, project.id, {"a": "y"}, now + HOUR)
        assert items_with_content(connection, project.id) == ["b", "a"]
        assert get_content(connection, project.id, "b") == {"text": "x"}
        assert get_content(connection, project.id, "c") is None
        set_traits(connection, project.id, {"ann": {"group": 1}})
        set_traits(connection, project.id, {"ann": {"group": 2}, "bob": {}})
        assert get_traits(connection, project.id, "ann") == {"group": 2}
        assert get_traits(connection, project.id, "cy") == {}
        for gold in ({" ": "good"}, {"film 1": "nan"}):
            with pytest.raises(at.InputError, match="counts as missing"):
                set_gold(connection, project.id, gold)
        for change in (
            lambda: set_gold(connection, project.id, {"a\0": "x"}),
            lambda: set_gold(connection, project.id, {"a": "\ud800"}),
            lambda: set_content(connection, project.id, {"a" * 600: 1}, now),
            lambda: set_traits(connection, project.id, {"\0": {}}),
        ):
            with pytest.raises(at.InputError):
                change()


def test_leases_are_taken_extended_released_and_expire(database, project, now):
    with database.begin() as connection:

        def take(annotator, time=now, places=1):
            return take_lease(
                connection, project.id, "film", annotator, time, time + HOUR, places=places
            )

        assert take("ann")
        assert not take("bob")
        assert take("bob", places=2)
        assert take("ann", now + HOUR / 2, places=2)
        assert [each.annotator for each in active_leases(connection, project.id, now)] == [
            "bob",
            "ann",
        ]
        assert len(active_leases(connection, project.id, now + HOUR)) == 1
        assert active_leases(connection, project.id, now, item="other") == []
        assert len(active_leases(connection, project.id, now, annotator="ann")) == 1
        assert take("cy", now + HOUR, places=2)  # bob's has expired, and is removed
        assert remove(connection, Lease, project=project.id, item="film", annotator="ann")
        assert not remove(connection, Lease, project=project.id, item="film", annotator="ann")
        assert [each.annotator for each in active_leases(connection, project.id, now)] == ["cy"]


def test_two_people_do_not_get_the_same_last_place(database, project, now):
    taken = []

    def take(annotator):
        with database.begin() as connection:
            if take_lease(connection, project.id, "film", annotator, now, now + HOUR, places=1):
                taken.append(annotator)

    threads = [threading.Thread(target=take, args=(f"p{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 1
