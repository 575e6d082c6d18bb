"""What a node makes of a bucket that is not what it was."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from crewlet.node.shared_stores import lost_memory
from crewlet.store import BucketMark

MADE = datetime(2026, 3, 1, tzinfo=UTC)
MARK = BucketMark("crewlet_epochs", MADE, 7)


def test_a_bucket_that_went_on_has_lost_nothing() -> None:
    assert [lost_memory(MARK, created_at=MADE, last_revision=revision) for revision in (7, 8)] == ["", ""]


def test_a_bucket_younger_than_what_was_seen_of_it_has_lost_something() -> None:
    assert lost_memory(MARK, created_at=MADE, last_revision=6) == "it is at revision 6 and this node has seen it at 7"


def test_a_bucket_made_anew_has_lost_all_however_far_it_is() -> None:
    assert "made at" in lost_memory(MARK, created_at=MADE + timedelta(seconds=1), last_revision=900)
