"""Which buckets a sweep of markers takes, by what rule, and how old a marker is by then."""

from __future__ import annotations

from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from crewlet.backends.memory import MemoryBucket, MemoryRecordStore
from crewlet.base import limits
from crewlet.coordination import MARKER_SWEEP_JOB, SLOTS, Slot, slots, sweep_markers, swept_slots
from crewlet.testing import VirtualClock

EIGHT = {"config", "channels", "sandbox_runs", "secrets", "integrations", "mailboxes", "objects", "positions"}


@pytest.mark.spec("C-148", "C-150")
def test_every_bucket_without_an_age_is_swept_but_the_epochs() -> None:
    assert {slot.name for slot in swept_slots()} == EIGHT


@pytest.mark.spec("C-106")
def test_nine_slots_have_no_age_and_all_others_have_one() -> None:
    assert {slot.name for slot in SLOTS if slot.age_s is None} == EIGHT | {"epochs"}


@pytest.mark.spec("C-151", "C-154")
def test_a_marker_outlives_whatever_read_its_record_before_it_was_removed() -> None:
    assert limits.MARKER_RETENTION_S == limits.MAX_DUTY_TTL_S == timedelta(hours=3).total_seconds()


@pytest.mark.spec("C-149")
@pytest.mark.virtual_time
async def test_a_new_bucket_without_an_age_is_swept_with_nobody_adding_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = VirtualClock()
    added = (Slot("added", None, "a slot of tomorrow"), Slot("aged", 60.0, "another"))
    monkeypatch.setattr(slots, "SLOTS", (*SLOTS, *added))
    stores = {slot.name: MemoryRecordStore(MemoryBucket(slot, clock)) for slot in slots.SLOTS}

    swept = await sweep_markers(stores, clock.now())

    assert swept.removed.keys() == EIGHT | {"added"}


@pytest.mark.virtual_time
async def test_a_bucket_that_could_not_be_swept_is_told() -> None:
    clock = VirtualClock()
    buckets = {slot.name: MemoryBucket(slot, clock) for slot in swept_slots()}
    buckets["objects"].cut = True
    stores = {name: MemoryRecordStore(bucket) for name, bucket in buckets.items()}

    with capture_logs() as logs:
        swept = await sweep_markers(stores, clock.now())

    assert swept.failed == ("objects",)
    told = [(entry["event"], entry["job"], entry["slot"]) for entry in logs if entry["log_level"] == "warning"]
    assert told == [("marker_sweep_failed", MARKER_SWEEP_JOB, "objects")]


@pytest.mark.virtual_time
async def test_a_bucket_that_nobody_opened_is_no_sweep_that_went_well() -> None:
    with pytest.raises(KeyError, match="config"):
        await sweep_markers({}, VirtualClock().now())


def test_the_job_has_the_name_that_the_duty_calls_it_by() -> None:
    assert MARKER_SWEEP_JOB == "coordination_markers"
