"""Channels: one ask, one answer, and a repeat of any step is harmless."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from msgspec.structs import replace

from crewlet.backends.memory.records import MemoryBucket, MemoryRecordStore
from crewlet.base.errors import Conflict, Unavailable
from crewlet.coordination import CHANNELS, Channel, Channels, ChannelStatus, answered, closed, opened
from crewlet.testing import VirtualClock

pytestmark = pytest.mark.virtual_time

ASKED_AT = datetime(2030, 1, 1, tzinfo=UTC)
LATER = ASKED_AT + timedelta(minutes=5)
ASK = opened(
    channel_id="c1", requester="ceo", target="cto", at=ASKED_AT, brief="which?", trace_id="t" * 32, turn_id="turn-1"
)


@pytest.fixture
async def bucket() -> MemoryBucket:
    return MemoryBucket(CHANNELS, VirtualClock())


@pytest.fixture
async def channels(bucket: MemoryBucket) -> Channels:
    return Channels(MemoryRecordStore(bucket))


def test_an_ask_opens_a_channel_of_two() -> None:
    assert (ASK.status, ASK.participants, ASK.message_count) == (ChannelStatus.OPEN, ("ceo", "cto"), 1)


def test_an_answer_is_counted_and_dated() -> None:
    answer = answered(ASK, at=LATER, answer_event_id="e2", turn_id="turn-2")

    assert answer is not None
    assert (answer.status, answer.message_count, answer.answered_at) == (ChannelStatus.ANSWERED, 2, LATER)
    assert (answer.answer_event_id, answer.answered_turn_id) == ("e2", "turn-2")


def test_the_same_answer_again_changes_nothing() -> None:
    answer = answered(ASK, at=LATER, answer_event_id="e2")
    assert answer is not None
    over = closed(answer, at=LATER)

    assert answered(over, at=LATER + timedelta(hours=1), answer_event_id="e2") == over


def test_a_second_answer_is_refused() -> None:
    answer = answered(ASK, at=LATER, answer_event_id="e2")
    assert answer is not None

    assert answered(answer, at=LATER, answer_event_id="e3") is None


def test_a_closed_channel_refuses_an_answer() -> None:
    assert answered(closed(ASK, at=LATER), at=LATER, answer_event_id="e2") is None


def test_the_first_close_stands() -> None:
    first = closed(ASK, at=LATER, by="cto", turn_id="turn-2")

    assert closed(first, at=LATER + timedelta(hours=1), by="ceo") == first


def test_no_step_is_dated_before_the_one_that_it_follows() -> None:
    early = closed(ASK, at=ASKED_AT - timedelta(seconds=30))

    assert early.closed_at == ASKED_AT


async def test_opening_again_returns_what_stands(channels: Channels) -> None:
    await channels.open(ASK)
    await channels.answer("c1", at=LATER, answer_event_id="e2")

    again = await channels.open(ASK)

    assert again.status is ChannelStatus.ANSWERED
    assert again == await channels.get("c1")


async def test_an_id_that_stands_for_others_is_refused(channels: Channels) -> None:
    await channels.open(ASK)

    with pytest.raises(Conflict):
        await channels.open(replace(ASK, target="coo", participants=("ceo", "coo")))


async def test_an_ask_is_answered_and_closed(channels: Channels) -> None:
    await channels.open(ASK)

    await channels.answer("c1", at=LATER, answer_event_id="e2", turn_id="turn-2")
    over = await channels.close("c1", at=LATER, by="cto", turn_id="turn-2")

    assert over == await channels.get("c1")
    assert over is not None
    assert (over.status, over.closed_by, over.closed_at) == (ChannelStatus.CLOSED, "cto", LATER)


async def test_of_two_different_answers_at_once_one_is_refused(channels: Channels) -> None:
    await channels.open(ASK)

    answers = await asyncio.gather(
        channels.answer("c1", at=LATER, answer_event_id="e2"), channels.answer("c1", at=LATER, answer_event_id="e3")
    )

    assert sorted(answer is None for answer in answers) == [False, True]


async def test_what_is_not_there_is_refused(channels: Channels) -> None:
    assert await channels.get("c9") is None
    assert await channels.answer("c9", at=LATER, answer_event_id="e2") is None
    assert await channels.close("c9", at=LATER) is None


async def test_no_verb_takes_an_unreachable_store_for_an_answer(bucket: MemoryBucket, channels: Channels) -> None:
    await channels.open(ASK)
    bucket.cut = True

    for call in (
        channels.open(ASK),
        channels.get("c1"),
        channels.answer("c1", at=LATER, answer_event_id="e2"),
        channels.close("c1", at=LATER),
    ):
        with pytest.raises(Unavailable):
            await call


async def test_a_change_keeps_what_a_newer_build_wrote(bucket: MemoryBucket, channels: Channels) -> None:
    store = MemoryRecordStore(bucket)
    await channels.open(ASK)
    record = await store.get("channel.c1")
    assert record is not None
    newer = {**msgspec.json.decode(record.value), "mood": {"level": 3}}
    await store.update("channel.c1", msgspec.json.encode(newer), expected=record.revision)

    await channels.close("c1", at=LATER)

    rewritten = await store.get("channel.c1")
    assert rewritten is not None
    assert msgspec.json.decode(rewritten.value)["mood"] == {"level": 3}


async def test_a_record_that_cannot_be_read_is_unknown(bucket: MemoryBucket, channels: Channels) -> None:
    await MemoryRecordStore(bucket).create("channel.c1", b'{"channel_id":"c1"}')

    with pytest.raises(Unavailable):
        await channels.get("c1")


def test_a_status_of_a_newer_build_is_unknown() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({**msgspec.to_builtins(ASK), "status": "paused"}, Channel)
