"""When a pass has shown enough. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from crewlet.backends.nats.pass_progress import PassProgress
from crewlet.coordination import Revision

AT = datetime(2030, 1, 1, tzinfo=UTC)


def took(progress: PassProgress, revision: int, *, pending: int, delivery: int = 0) -> bool:
    return progress.took((delivery or progress.delivered + 1, Revision(revision), AT, pending))


def test_with_one_copy_what_was_pending_at_first_is_enough() -> None:
    progress = PassProgress()
    progress.expect(2)

    took(progress, 5, pending=9)
    assert not progress.has_shown(0)
    took(progress, 6, pending=9)
    assert progress.has_shown(0)


def test_with_one_copy_nothing_pending_is_enough_whatever_was_expected() -> None:
    progress = PassProgress()
    progress.expect(100)

    took(progress, 5, pending=0)

    assert progress.has_shown(0)


def test_it_is_not_over_before_the_broker_said_how_much_there_is() -> None:
    progress = PassProgress()
    assert not progress.has_shown(0)

    progress.expect(0)

    assert progress.has_shown(0)


@pytest.mark.parametrize(
    ("revision", "pending", "over"), [(19, 0, False), (20, 1, False), (20, 0, True), (25, 0, True)]
)
def test_with_a_goal_it_is_over_at_the_goal_with_nothing_pending(revision: int, pending: int, over: bool) -> None:
    progress = PassProgress()
    progress.expect(1)
    took(progress, revision, pending=pending)

    assert progress.has_shown(20) is over


def test_where_something_is_always_pending_many_times_as_much_past_the_goal_is_enough() -> None:
    progress = PassProgress()
    progress.expect(1)
    took(progress, 20, pending=3)
    assert not progress.has_shown(20)

    ended_at = 0
    for revision in range(21, 1000):
        took(progress, revision, pending=3)
        if progress.may_be_over and progress.has_shown(20):
            ended_at = revision
            break

    assert ended_at == 20 + 100 * 4


def test_a_missing_delivery_is_noticed() -> None:
    progress = PassProgress()

    assert took(progress, 1, pending=5)
    assert not took(progress, 3, pending=4, delivery=3)


def test_a_heartbeat_is_news_where_it_says_more_than_was_shown() -> None:
    progress = PassProgress()
    took(progress, 7, pending=0)

    assert not progress.passed(7)
    assert progress.passed(9)
    assert (progress.position, progress.has_shown(9), progress.has_shown(10)) == (9, True, False)
