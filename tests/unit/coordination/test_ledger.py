"""The completion ledger: by seat and trigger, first record stands, open when it cannot be reached."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from crewlet.backends.memory.records import MemoryBucket, MemoryRecordStore
from crewlet.base import limits
from crewlet.coordination import LEDGER, Ledger, Record, RecordStore
from crewlet.testing import VirtualClock

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def bucket() -> MemoryBucket:
    return MemoryBucket(LEDGER, VirtualClock())


@pytest.fixture
async def ledger(bucket: MemoryBucket) -> Ledger:
    return Ledger(MemoryRecordStore(bucket), VirtualClock())


class Hung(MemoryRecordStore):
    """A store that never answers."""

    async def get(self, key: str) -> Record | None:
        await asyncio.Event().wait()
        return None

    async def create(self, key: str, value: bytes) -> Record:
        await asyncio.Event().wait()
        raise AssertionError


@pytest.mark.spec("S-114")
async def test_of_a_larger_batch_what_was_worked_is_known_by_its_parts(ledger: Ledger) -> None:
    await ledger.record("ceo", ["a", "b"], "turn-1", "completed")

    assert await ledger.worked("ceo", ["a", "b", "c"]) == {"a", "b"}


async def test_what_one_node_recorded_another_reads(bucket: MemoryBucket, ledger: Ledger) -> None:
    peer = Ledger(MemoryRecordStore(bucket), VirtualClock())

    await ledger.record("ceo", ["a"], "turn-1", "completed")

    assert await peer.worked("ceo", ["a"]) == {"a"}


async def test_seats_have_ledgers_of_their_own(ledger: Ledger) -> None:
    await ledger.record("ceo", ["a"], "turn-1", "completed")

    assert await ledger.worked("cto", ["a"]) == frozenset()


async def test_any_text_can_be_an_id(ledger: Ledger) -> None:
    odd = ["slack:D1:1718.001", "a b", "ä*>", "", "x" * 500]

    await ledger.record("ceo", odd, "turn-1", "completed")

    assert await ledger.worked("ceo", [*odd, "slack:D1:1718.002"]) == set(odd)


async def test_the_first_record_of_an_id_stands(ledger: Ledger) -> None:
    await ledger.record("ceo", ["a"], "turn-1", "completed")
    await ledger.record("ceo", ["a", "a"], "turn-2", "failed")

    completion = await ledger.completion("ceo", "a")

    assert completion is not None
    assert (completion.turn_id, completion.outcome) == ("turn-1", "completed")


@pytest.mark.spec("S-112")
async def test_a_record_goes_by_the_buckets_seven_days_alone(ledger: Ledger) -> None:
    await ledger.record("ceo", ["a"], "turn-1", "completed")
    await asyncio.sleep(7 * 24 * 3600 - 1)
    young = await ledger.worked("ceo", ["a"])
    await asyncio.sleep(1)

    assert young == {"a"}
    assert await ledger.worked("ceo", ["a"]) == frozenset()


@pytest.mark.spec("S-118", "C-008")
async def test_a_ledger_that_cannot_be_read_says_not_worked_and_tells(bucket: MemoryBucket, ledger: Ledger) -> None:
    await ledger.record("ceo", ["a"], "turn-1", "completed")
    bucket.cut = True

    with capture_logs() as logs:
        worked = await ledger.worked("ceo", ["a"])

    assert worked == frozenset()
    assert [entry["event"] for entry in logs] == ["ledger_unreadable"]


@pytest.mark.spec("S-118")
async def test_a_ledger_that_cannot_be_written_tells_and_raises_nothing(bucket: MemoryBucket, ledger: Ledger) -> None:
    bucket.cut = True

    with capture_logs() as logs:
        await ledger.record("ceo", ["a"], "turn-1", "completed")

    assert [entry["event"] for entry in logs] == ["ledger_write_failed"]


async def test_a_store_that_never_answers_holds_a_turn_up_for_a_bounded_time(bucket: MemoryBucket) -> None:
    hung: RecordStore = Hung(bucket)
    ledger = Ledger(hung, VirtualClock())

    async with asyncio.timeout(2 * limits.LEDGER_WAIT_S + 1):
        assert await ledger.worked("ceo", ["a"]) == frozenset()
        await ledger.record("ceo", ["a"], "turn-1", "completed")


async def test_what_could_not_be_written_is_known_to_the_process_that_did_it(
    bucket: MemoryBucket, ledger: Ledger
) -> None:
    """The outage that took the record took the acknowledgement too: what comes back is not worked again."""
    bucket.cut = True
    await ledger.record("ceo", ["a"], "turn-1", "completed")

    assert await ledger.worked("ceo", ["a", "b"]) == {"a"}
    assert await ledger.worked("cto", ["a"]) == frozenset()


async def test_what_could_not_be_written_is_written_when_it_is_asked_for_again(
    bucket: MemoryBucket, ledger: Ledger
) -> None:
    peer = Ledger(MemoryRecordStore(bucket), VirtualClock())
    bucket.cut = True
    await ledger.record("ceo", ["a"], "turn-1", "completed")
    bucket.cut = False

    await ledger.worked("ceo", ["a"])

    assert await peer.worked("ceo", ["a"]) == {"a"}


async def test_what_is_kept_of_unwritten_records_is_bounded(
    bucket: MemoryBucket, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LEDGER_UNWRITTEN_MAX", 2)
    bucket.cut = True
    for each in ("a", "b", "c"):
        await ledger.record("ceo", [each], "turn-1", "completed")

    assert await ledger.worked("ceo", ["a", "b", "c"]) == {"b", "c"}
